// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// serving is what is known of a service that the API server calls: a webhook,
// or an aggregated API.
type serving struct {
	namespace, name string
	// dead is set when nothing can answer there.
	dead bool
	// uninstalled is set when the namespace or the service does not exist.
	uninstalled bool
	// homeless is set when the namespace does not exist, ending when it is being
	// deleted.
	homeless, ending bool
	evidence         []Evidence
	// idle names the workload behind the service that is scaled to nothing.
	idle string
}

// serving follows a service to its endpoints and the pods behind it.
func (w *walker) serving(namespace, name string) *serving {
	source := evidence.Identity(services, namespace, name).String()
	s := &serving{namespace: namespace, name: name}
	service, err := w.evidence.Get(services, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		s.dead, s.uninstalled = true, true
		s.evidence = []Evidence{{Source: source, Value: "does not exist"}}
		w.missingNamespace(s)
		return s
	case err != nil:
		s.evidence = []Evidence{{Source: source, Value: "could not be read: " + err.Error()}}
		return s
	}
	if evidence.Nested(service, "spec", "type") == "ExternalName" {
		s.evidence = []Evidence{{Source: source, Path: "spec.externalName", Value: evidence.Nested(service, "spec", "externalName")}}
		return s
	}
	list, err := w.evidence.List(slicesOf, namespace)
	if err != nil {
		s.evidence = []Evidence{{Source: source, Value: "exists; its EndpointSlices could not be read: " + err.Error()}}
		return s
	}
	ready := readyEndpoints(list, name)
	s.dead = ready == 0
	s.evidence = []Evidence{{Source: source, Value: "exists, with " + number(ready, "ready endpoint")}}
	if s.dead {
		w.silentPods(s, service)
	}
	return s
}

// missingNamespace adds that the namespace of a service is gone, or going.
func (w *walker) missingNamespace(s *serving) {
	namespace, err := w.evidence.Get(namespaces, "", s.namespace)
	switch {
	case apierrors.IsNotFound(err):
		s.homeless = true
		s.evidence = append(s.evidence, Evidence{Source: "Namespace/" + s.namespace, Value: "does not exist"})
	case err == nil && namespace.GetDeletionTimestamp() != nil:
		s.ending = true
		s.evidence = append(s.evidence, Evidence{Source: "Namespace/" + s.namespace, Value: "is being deleted, so nothing can be created in it"})
	}
}

func readyEndpoints(list []unstructured.Unstructured, service string) int {
	ready := 0
	for i := range list {
		if list[i].GetLabels()["kubernetes.io/service-name"] != service {
			continue
		}
		endpoints, _, _ := unstructured.NestedSlice(list[i].Object, "endpoints")
		for _, e := range endpoints {
			endpoint, _ := e.(map[string]any)
			if isReady, stated, _ := unstructured.NestedBool(endpoint, "conditions", "ready"); isReady || !stated {
				ready++
			}
		}
	}
	return ready
}

// silentPods adds the pods that a service without endpoints selects, and if
// there are none the workload that should make them.
func (w *walker) silentPods(s *serving, service *unstructured.Unstructured) {
	w.missingNamespace(s)
	selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
	if len(selector) == 0 {
		return
	}
	selected := labels.SelectorFromSet(selector)
	list, err := w.evidence.List(pods, s.namespace)
	if err != nil {
		return
	}
	found := 0
	for i := range list {
		if !selected.Matches(labels.Set(list[i].GetLabels())) {
			continue
		}
		if found++; found <= evidence.MaxShown {
			s.evidence = append(s.evidence, Evidence{Source: evidence.Identity(pods, s.namespace, list[i].GetName()).String(), Path: "status", Value: describePod(&list[i])})
		}
	}
	if found > 0 {
		return
	}
	s.evidence = append(s.evidence, Evidence{Source: "Pods in namespace " + s.namespace, Value: "none matches the selector " + selected.String()})
	for _, l := range w.finder.Behind(s.namespace, s.name) {
		s.evidence = append(s.evidence, Evidence{Source: l.ID.String(), Path: "spec.replicas", Value: fmt.Sprint(l.Replicas)})
		if l.Replicas == 0 {
			s.idle = l.Ref()
		}
	}
}

// describePod says in a few words why a pod serves nothing.
func describePod(pod *unstructured.Unstructured) string {
	state := evidence.Nested(pod, "status", "phase")
	if pod.GetDeletionTimestamp() != nil {
		state += ", being deleted"
	}
	statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	var reasons []string
	for _, entry := range statuses {
		status, _ := entry.(map[string]any)
		for _, path := range [][]string{{"state", "waiting", "reason"}, {"lastState", "terminated", "reason"}} {
			if reason, _, _ := unstructured.NestedString(status, path...); reason != "" && !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
		}
	}
	if c, ok := evidence.ConditionOf(pod, "PodScheduled"); ok && c.Status != "True" {
		reasons = append(reasons, c.Reason+": "+c.Message)
	}
	if c, ok := evidence.ConditionOf(pod, "Ready"); ok && c.Status != "True" {
		state += ", not ready"
	}
	for _, reason := range reasons {
		state += ", " + reason
	}
	return state
}

// hopeless ends the summary of a cause with why the service cannot be made to
// answer again where it is; it is empty when that is possible.
func (s *serving) hopeless() string {
	if !s.ending {
		return ""
	}
	return "; it cannot be repaired where it was: the namespace " + s.namespace + " is being deleted, so nothing can be created in it"
}

// repair are the ways to make a service answer again: none in a namespace that
// is being deleted.
func (w *walker) repair(s *serving, effect string) []Remedy {
	switch {
	case s.ending:
		return nil
	case s.homeless:
		return []Remedy{{
			Risk: Safe, Command: w.Kubectl + " create namespace " + shell.Quote(s.namespace),
			Effect: "makes the namespace again, which comes first: then install the service " + s.name + " and its pods in it, and " + effect,
		}}
	case s.uninstalled:
		return []Remedy{{
			Risk: Safe, Command: shell.In(w.Kubectl, s.namespace) + " get service,endpointslices,pods,deployments",
			Effect: "shows what is left beside it: install the service " + s.name + " and its pods again, and " + effect,
		}}
	case s.idle != "":
		return []Remedy{{
			Risk: Safe, Command: fmt.Sprintf("%s scale %s --current-replicas=0 --replicas=1", shell.In(w.Kubectl, s.namespace), shell.Quote(s.idle)),
			Effect: "starts what serves it, which is scaled to nothing; " + effect,
		}}
	default:
		return []Remedy{{
			Risk: Safe, Command: shell.In(w.Kubectl, s.namespace) + " get service,endpointslices,pods,deployments",
			Effect: "shows what serves it: make the service " + s.name + " and its pods work, and " + effect,
		}}
	}
}
