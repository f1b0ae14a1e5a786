// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"cmp"
	_ "embed" // for builtin.txt
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

//go:embed builtin.txt
var builtin string

// addBuiltin adds the types of Kubernetes itself.
func (p *printed) addBuiltin() {
	for line := range strings.Lines(builtin) {
		words := strings.Fields(line)
		if len(words) < 4 || words[0] == "#" {
			continue
		}
		gvk := schema.FromAPIVersionAndKind(words[0], words[1])
		p.addType(&List{Group: gvk.Group, Version: gvk.Version, Resource: words[2], Kind: gvk.Kind, Namespaced: words[3] == "namespaced"},
			words[4:])
	}
}

// plural guesses what the objects of a kind are called in a path.
func plural(gvk schema.GroupVersionKind) string {
	guess, _ := meta.UnsafeGuessKindToResource(gvk)
	return guess.Resource
}

func sortedTypes(types map[schema.GroupVersionKind]*List) []*List {
	return slices.SortedFunc(maps.Values(types), func(a, b *List) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource))
	})
}

// discovery is what a server would say that serves these types. The versions of groups
// of which nothing is known are stale in it.
func (p *printed) discovery() []*Answer {
	groups := map[string]*apidiscovery.APIGroupDiscovery{}
	versionOf := func(gv schema.GroupVersion) *apidiscovery.APIVersionDiscovery {
		g := groups[gv.Group]
		if g == nil {
			g = &apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: gv.Group}}
			groups[gv.Group] = g
		}
		for i := range g.Versions {
			if g.Versions[i].Version == gv.Version {
				return &g.Versions[i]
			}
		}
		g.Versions = append(g.Versions, apidiscovery.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
		return &g.Versions[len(g.Versions)-1]
	}
	for _, t := range sortedTypes(p.types) {
		v := versionOf(schema.GroupVersion{Group: t.Group, Version: t.Version})
		v.Resources = append(v.Resources, p.resource(t))
	}
	for gv := range p.unknown {
		versionOf(gv).Freshness = apidiscovery.DiscoveryFreshnessStale
	}
	var core, named apidiscovery.APIGroupDiscoveryList
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		into := &named
		if name == "" {
			into = &core
		}
		into.Items = append(into.Items, *groups[name])
	}
	return []*Answer{groupsAnswer("/api", &core), groupsAnswer("/apis", &named), versionAnswer()}
}

// resource describes a type.
func (p *printed) resource(t *List) apidiscovery.APIResourceDiscovery {
	scope := apidiscovery.ScopeCluster
	if t.Namespaced {
		scope = apidiscovery.ScopeNamespace
	}
	return apidiscovery.APIResourceDiscovery{
		Resource: t.Resource, ResponseKind: &metav1.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind}, Scope: scope,
		SingularResource: strings.ToLower(t.Kind), Verbs: []string{"delete", "get", "list", "watch"}, ShortNames: p.short[t.GroupResource()],
	}
}

func groupsAnswer(path string, list *apidiscovery.APIGroupDiscoveryList) *Answer {
	list.TypeMeta = metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}
	body, _ := json.Marshal(list) // strings
	return &Answer{Path: path, Code: http.StatusOK, ContentType: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
		Body: body}
}

// versionAnswer says nothing of a version: nobody knows it.
func versionAnswer() *Answer {
	body, _ := json.Marshal(version.Info{}) // strings
	return &Answer{Path: "/version", Code: http.StatusOK, ContentType: "application/json", Body: body}
}
