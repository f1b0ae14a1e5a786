// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// servedTypes is what discovery says in the tests. The first version of a
// group is its preferred one; a kind without a stated apiVersion is the first
// of its name.
const servedTypes = `
v1                           Pod                      pods                      namespaced
v1                           Secret                   secrets                   namespaced
v1                           ConfigMap                configmaps                namespaced
v1                           Event                    events                    namespaced
v1                           Node                     nodes                     cluster
v1                           PersistentVolume         persistentvolumes         cluster
apps/v1                      Deployment               deployments               namespaced
apps/v1                      ReplicaSet               replicasets               namespaced
autoscaling/v2               HorizontalPodAutoscaler  horizontalpodautoscalers  namespaced
autoscaling/v1               HorizontalPodAutoscaler  horizontalpodautoscalers  namespaced
networking.k8s.io/v1         Ingress                  ingresses                 namespaced
extensions/v1beta1           Ingress                  ingresses                 namespaced
rbac.authorization.k8s.io/v1 ClusterRole              clusterroles              cluster
example.com/v1               Widget                   widgets                   namespaced
example.com/v1               Gizmo                    gizmos                    cluster
`

func parseServedTypes() []graph.Resource {
	var types []graph.Resource
	for line := range strings.Lines(strings.TrimSpace(servedTypes)) {
		f := strings.Fields(line)
		gv, err := schema.ParseGroupVersion(f[0])
		if err != nil {
			panic(err)
		}
		types = append(types, graph.Resource{
			GroupVersionResource: gv.WithResource(f[2]), Kind: f[1], Namespaced: f[3] == "namespaced",
		})
	}
	return types
}

// newMapper returns the RESTMapper that client-go makes of the types.
func newMapper(types []graph.Resource) meta.RESTMapper {
	var groups []*restmapper.APIGroupResources
	byName := map[string]*restmapper.APIGroupResources{}
	for _, r := range types {
		version := metav1.GroupVersionForDiscovery{GroupVersion: r.GroupVersion().String(), Version: r.Version}
		g := byName[r.Group]
		if g == nil {
			g = &restmapper.APIGroupResources{
				Group:              metav1.APIGroup{Name: r.Group, PreferredVersion: version},
				VersionedResources: map[string][]metav1.APIResource{},
			}
			byName[r.Group], groups = g, append(groups, g)
		}
		if _, known := g.VersionedResources[r.Version]; !known {
			g.Group.Versions = append(g.Group.Versions, version)
		}
		g.VersionedResources[r.Version] = append(g.VersionedResources[r.Version],
			metav1.APIResource{Name: r.Resource, Kind: r.Kind, Namespaced: r.Namespaced})
	}
	return restmapper.NewDiscoveryRESTMapper(groups)
}
