// SPDX-License-Identifier: Apache-2.0

package explaintest

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Facts are what the whole objects say beyond metadata, as cluster.Reader reads them. What is unreadable is left out.
func (s *World) Facts() graph.Facts {
	facts := graph.Facts{
		Pods: map[types.UID]graph.PodFacts{}, Namespaces: map[types.UID]graph.NamespaceFacts{}, CRDs: map[types.UID]graph.CRDFacts{},
		Volumes: map[types.UID]types.UID{},
		Nodes:   map[string]bool{}, NodesRead: !s.unreadable["nodes"] && !s.unlisted["nodes"],
	}
	for _, o := range s.objects.Objects {
		whole := s.Whole[o.Resource.Resource+"/"+o.Namespace+"/"+o.Name]
		if s.unreadable[o.Resource.Resource] || whole == nil {
			continue
		}
		switch o.Resource.Resource {
		case "pods":
			facts.Pods[o.UID] = podFacts(whole)
		case "namespaces":
			finalizers, found, _ := unstructured.NestedStringSlice(whole.Object, "spec", "finalizers")
			if !found {
				finalizers = []string{"kubernetes"}
			}
			facts.Namespaces[o.UID] = graph.NamespaceFacts{Finalizers: finalizers}
		case "customresourcedefinitions":
			plural, group, _ := strings.Cut(o.Name, ".")
			facts.CRDs[o.UID] = graph.CRDFacts{Group: group, Plural: plural, Established: true}
		case "persistentvolumes":
			claim := evidence.Nested(whole, "spec", "claimRef", "uid")
			if bound := evidence.Nested(whole, "status", "phase") == "Bound"; !bound {
				facts.Volumes[o.UID] = ""
			} else if claim != "" {
				facts.Volumes[o.UID] = types.UID(claim)
			}
		case "nodes":
			ready, _ := evidence.ConditionOf(whole, "Ready")
			facts.Nodes[o.Name] = ready.Status == "True"
		}
	}
	return facts
}

func podFacts(pod *unstructured.Unstructured) graph.PodFacts {
	facts := graph.PodFacts{
		NodeName: evidence.Nested(pod, "spec", "nodeName"), Phase: evidence.Nested(pod, "status", "phase"), TerminationGracePeriodSeconds: 30,
	}
	volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		if name, found, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName"); found {
			facts.Claims = append(facts.Claims, name)
		}
	}
	return facts
}

// ControllerManager reports whether kube-controller-manager renewed its lease lately.
func (s *World) ControllerManager() bool {
	return s.Whole["leases/kube-system/kube-controller-manager"] != nil
}
