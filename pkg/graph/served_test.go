// SPDX-License-Identifier: Apache-2.0

package graph_test

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
