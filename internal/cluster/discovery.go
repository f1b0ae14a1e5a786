// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// catalog is what discovery said.
type catalog struct {
	mapper    meta.RESTMapper
	resources []*graph.Resource // what the garbage collector handles, sorted
	preferred map[schema.GroupResource]*graph.Resource
	failed    map[schema.GroupVersion]error
}

// discoveryClient returns a client whose answers are kept in memory for the
// run, never on disk: a CRD made a minute ago must be seen.
func discoveryClient(config *rest.Config, client *http.Client) (discovery.CachedDiscoveryInterface, error) {
	fresh, err := discovery.NewDiscoveryClientForConfigAndClient(config, typesOnly(client))
	if err != nil {
		return nil, err
	}
	return memory.NewMemCacheClient(fresh), nil
}

// Discovery returns the discovery answers of this run.
func (r *Reader) Discovery() discovery.CachedDiscoveryInterface { return r.discovery }

// Mapper returns a RESTMapper over all served versions.
func (r *Reader) Mapper() meta.RESTMapper { return r.catalog.mapper }

// discover asks for everything that the server serves. Groups that fail are
// kept as such; it is an error only when nothing could be learnt.
func discover(ctx context.Context, client discovery.CachedDiscoveryInterface) (*catalog, error) {
	type answer struct {
		catalog *catalog
		err     error
	}
	// The discovery client takes no context for its retries.
	done := make(chan answer, 1)
	go func() {
		c, err := newCatalog(client)
		done <- answer{c, err}
	}()
	select {
	case a := <-done:
		return a.catalog, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func newCatalog(client discovery.CachedDiscoveryInterface) (*catalog, error) {
	c := &catalog{preferred: map[schema.GroupResource]*graph.Resource{}, failed: map[schema.GroupVersion]error{}}
	// First, because it says what failed. What it was answered is cached, so the
	// mapper, which leaves out what fails without a word, lacks no more than that.
	preferred, err := discovery.ServerPreferredResources(client)
	if failed, ok := discovery.GroupDiscoveryFailedErrorGroups(err); ok {
		c.failed = failed
	} else if err != nil {
		return nil, fmt.Errorf("asking the server for its types: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return nil, fmt.Errorf("asking the server for its types: %w", err)
	}
	c.mapper = &rememberingMapper{RESTMapper: restmapper.NewDiscoveryRESTMapper(groups)}
	for _, list := range preferred {
		c.add(list)
	}
	if len(c.resources) == 0 {
		return nil, errors.New("asking the server for its types: it serves none that can be listed")
	}
	c.hidesCore(groups)
	slices.SortFunc(c.resources, func(a, b *graph.Resource) int {
		return graph.Identity{Resource: *a}.Compare(graph.Identity{Resource: *b})
	})
	return c, nil
}

// rememberingMapper answers the same question for one version once: the mapper of discovery
// goes through all groups each time, and makes kilobytes of garbage.
type rememberingMapper struct {
	meta.RESTMapper
	known sync.Map // of mapped, by GroupVersionKind
}

type mapped struct {
	mapping *meta.RESTMapping
	err     error
}

// RESTMapping implements meta.RESTMapper.
func (m *rememberingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	asked := kind.WithVersion(versions[0])
	if known, ok := m.known.Load(asked); ok {
		return known.(mapped).mapping, known.(mapped).err
	}
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	m.known.Store(asked, mapped{mapping, err})
	return mapping, err
}

// core is the group version of Namespaces, without which no API server is.
var core = schema.GroupVersion{Version: "v1"}

// hidesCore notes when the core group is missing: the discovery client takes NotFound
// under /api for a server that has none (discovery_client.go, downloadLegacy), and it
// would seem that nothing of the group exists.
func (c *catalog) hidesCore(groups []*restmapper.APIGroupResources) {
	if _, failed := c.failed[core]; failed ||
		slices.ContainsFunc(groups, func(g *restmapper.APIGroupResources) bool { return g.Group.Name == "" }) {
		return
	}
	if c.failed == nil {
		c.failed = map[schema.GroupVersion]error{}
	}
	c.failed[core] = errors.New("the server does not say which types it has under /api")
}

// add takes the resources of one group version. Groups that do not parse are
// skipped, as the garbage collector skips them.
func (c *catalog) add(list *metav1.APIResourceList) {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return
	}
	for i := range list.APIResources {
		r := &list.APIResources[i]
		resource := &graph.Resource{
			GroupVersionResource: gv.WithResource(r.Name),
			Kind:                 r.Kind,
			Namespaced:           r.Namespaced,
		}
		c.preferred[resource.GroupResource()] = resource
		if collectable(resource.GroupResource(), r.Verbs) {
			c.resources = append(c.resources, resource)
		}
	}
}

// collectable reports whether the garbage collector handles the resource: it
// can be deleted, listed and watched, and is not an event
// (garbagecollector.go, GetDeletableResources; graph_builder.go,
// DefaultIgnoredResources).
func collectable(resource schema.GroupResource, verbs []string) bool {
	if resource.Resource == "events" && (resource.Group == "" || resource.Group == "events.k8s.io") {
		return false
	}
	return sets.New(verbs...).HasAll("delete", "list", "watch")
}

// canonical returns the shared description of a resource, in its preferred
// version.
func (c *catalog) canonical(resource graph.Resource) *graph.Resource {
	if preferred, ok := c.preferred[resource.GroupResource()]; ok {
		return preferred
	}
	return &resource
}

// Resource returns the shared description of a mapping's resource.
func (r *Reader) Resource(mapping *meta.RESTMapping) *graph.Resource {
	return r.catalog.canonical(graph.ResourceOf(mapping))
}
