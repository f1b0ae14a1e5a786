// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// maxFallbackNamespaces bounds the lists that replace one forbidden list of
// all namespaces.
const maxFallbackNamespaces = 100

// Scope is the part of the cluster that a snapshot covers.
type Scope struct {
	// Namespace limits the snapshot to the namespaced types in it; empty means
	// the whole cluster. Owners outside, which can only be cluster-scoped, are
	// read one by one.
	Namespace string
}

// Snapshot lists the metadata of everything in the scope that the garbage
// collector handles, adds the extra objects, and reads the owners that the
// lists leave undecided. What cannot be read is Unlisted in the snapshot and
// no error; an error means that the context ended.
func (r *Reader) Snapshot(ctx context.Context, scope Scope, extra ...graph.Object) (*graph.Snapshot, error) {
	s := &graph.Snapshot{Mapper: r.catalog.mapper}
	for gv, err := range r.catalog.failed {
		s.MarkUnlisted(graph.Unlisted{
			GroupVersionResource: gv.WithResource(""), Reason: graph.DiscoveryFailed, Message: err.Error(),
		})
	}
	for _, result := range r.list(ctx, r.work(ctx, scope)) {
		result.addTo(s)
	}
	for _, o := range extra {
		if _, listed := s.Object(o.UID); !listed {
			s.Add(o)
		}
	}
	r.decide(ctx, s)
	return s, ctx.Err()
}

// listing is one list to make and what became of it.
type listing struct {
	resource  *graph.Resource
	namespace string
	// fallback names the namespaces to list one by one when the list of all is
	// forbidden. It is asked only then.
	fallback func() []string

	objects  []graph.Object
	version  string // the list's resourceVersion
	complete bool
	unlisted []graph.Unlisted
	parts    []*listing
}

// work returns the lists that the scope needs.
func (r *Reader) work(ctx context.Context, scope Scope) []*listing {
	fallback := sync.OnceValue(func() []string { return r.namespaces(ctx) })
	var work []*listing
	for _, resource := range r.catalog.resources {
		if scope.Namespace != "" && !resource.Namespaced {
			continue
		}
		l := &listing{resource: resource, namespace: scope.Namespace}
		if scope.Namespace == "" && resource.Namespaced {
			l.fallback = fallback
		}
		work = append(work, l)
	}
	return work
}

// list makes the lists, a few at a time.
func (r *Reader) list(ctx context.Context, work []*listing) []*listing {
	var group errgroup.Group
	group.SetLimit(listsInFlight)
	for _, l := range work {
		group.Go(func() error {
			r.listOne(ctx, l)
			return nil
		})
	}
	_ = group.Wait() // failures are in the listings
	return work
}

// listOne makes one list, page by page. When it is forbidden it tries the
// namespaces at hand.
func (r *Reader) listOne(ctx context.Context, l *listing) {
	err := r.listPages(ctx, l)
	if err == nil {
		l.complete = true
		return
	}
	l.objects = nil
	l.unlisted = []graph.Unlisted{{
		GroupVersionResource: l.resource.GroupVersionResource,
		Namespace:            l.namespace,
		Reason:               unlistedReason(err),
		Message:              err.Error(),
	}}
	if l.fallback == nil || !apierrors.IsForbidden(err) {
		return
	}
	for _, namespace := range l.fallback() {
		part := &listing{resource: l.resource, namespace: namespace}
		r.listOne(ctx, part)
		l.parts = append(l.parts, part)
	}
}

// listPages fills l.objects. The pager starts over with one whole list when the
// continue token has expired; a request without a token therefore drops what
// came before.
func (r *Reader) listPages(ctx context.Context, l *listing) error {
	r.stats.lists.Add(1)
	client := r.client(l.resource, l.namespace)
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if options.Continue == "" {
			l.objects = nil
		}
		r.stats.pages.Add(1)
		page, err := client.List(ctx, options)
		if err != nil {
			return nil, err
		}
		l.version = page.ResourceVersion
		for i := range page.Items {
			l.objects = append(l.objects, graph.NewObject(l.resource, &page.Items[i]))
		}
		return &metav1.PartialObjectMetadataList{ListMeta: page.ListMeta}, nil
	})
	pages.PageSize = r.options.PageSize
	_, _, err := pages.List(ctx, metav1.ListOptions{})
	return err
}

// addTo records the result in the snapshot.
func (l *listing) addTo(s *graph.Snapshot) {
	for _, o := range l.objects {
		s.Add(o)
	}
	if l.complete {
		s.MarkListed(l.resource.GroupResource(), l.namespace, l.version)
	}
	for _, u := range l.unlisted {
		s.MarkUnlisted(u)
	}
	for _, part := range l.parts {
		part.addTo(s)
	}
}

// namespaces returns the namespaces to try when lists of all are forbidden:
// those that can be listed, otherwise the one of the context.
func (r *Reader) namespaces(ctx context.Context) []string {
	l := &listing{resource: &graph.Resource{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace",
	}}
	if err := r.listPages(ctx, l); err != nil || len(l.objects) > maxFallbackNamespaces {
		return []string{r.options.Namespace}
	}
	var names []string
	for _, o := range l.objects {
		names = append(names, o.Name)
	}
	return names
}

// decide reads the owners that the lists can neither show nor prove absent, a
// GET each, and their owners in turn.
func (r *Reader) decide(ctx context.Context, s *graph.Snapshot) {
	type place struct {
		resource        schema.GroupResource
		namespace, name string
	}
	at := func(u graph.Undecided) place { return place{u.Resource.GroupResource(), u.Namespace, u.Name} }
	tried := map[place]bool{}
	for ctx.Err() == nil {
		undecided := slices.DeleteFunc(s.Undecided(), func(u graph.Undecided) bool { return tried[at(u)] })
		if len(undecided) == 0 {
			return
		}
		r.decideAll(ctx, s, undecided)
		for _, u := range undecided {
			tried[at(u)] = true
		}
	}
}

// decideAll reads the owners a few at a time and records what it found.
func (r *Reader) decideAll(ctx context.Context, s *graph.Snapshot, undecided []graph.Undecided) {
	objects := make([]graph.Object, len(undecided))
	errs := make([]error, len(undecided))
	var group errgroup.Group
	group.SetLimit(getsInFlight)
	for i, u := range undecided {
		group.Go(func() error {
			objects[i], errs[i] = r.Get(ctx, u.Resource, u.Namespace, u.Name)
			return nil
		})
	}
	_ = group.Wait() // failures are in errs
	for i, u := range undecided {
		switch err := errs[i]; {
		case err == nil:
			s.Add(objects[i])
		case isNoSuchObject(err):
			s.MarkAbsent(u.Resource.GroupResource(), u.Namespace, u.Name)
		default:
			s.MarkUnlisted(graph.Unlisted{
				GroupVersionResource: u.Resource.GroupVersionResource, Namespace: u.Namespace, Name: u.Name,
				Reason: unlistedReason(err), Message: err.Error(),
			})
		}
	}
}

// isNoSuchObject reports whether the server said that the object does not
// exist. A 404 of a proxy or of an unknown path has no details of a kind and is
// not such an answer.
func isNoSuchObject(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Name != ""
}
