// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
)

// Serving is what is known of a service that the API server calls: a webhook,
// or an aggregated API.
type Serving struct {
	Namespace, Name string
	// Dead is set when nothing can answer there.
	Dead bool
	// Unread is set when what answers there could not be read.
	Unread bool
	// Uninstalled is set when the namespace or the service does not exist.
	Uninstalled bool
	// Ending is set when the namespace is being deleted.
	Ending   bool
	Evidence []evidence.Fact
	// Idle is the workload behind the service that is scaled to nothing.
	Idle *controllers.Workload
}

// Serving follows a service to its endpoints and the pods behind it, once. What it returns
// is not to be changed.
func (a *Reviewer) Serving(namespace, name string) *Serving {
	at := types.NamespacedName{Namespace: namespace, Name: name}
	if a.services[at] == nil {
		a.services[at] = a.follow(namespace, name)
	}
	return a.services[at]
}

func (a *Reviewer) follow(namespace, name string) *Serving {
	source := evidence.Identity(evidence.Services, namespace, name)
	s := &Serving{Namespace: namespace, Name: name}
	service, err := a.evidence.Get(evidence.Services, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		s.Dead, s.Uninstalled = true, true
		s.Evidence = []evidence.Fact{evidence.At(source, "", "does not exist")}
		a.missingNamespace(s)
		return s
	case err != nil:
		s.Unread = true
		s.Evidence = []evidence.Fact{evidence.At(source, "", "could not be read: "+err.Error())}
		return s
	}
	if evidence.Nested(service, "spec", "type") == "ExternalName" {
		s.Evidence = []evidence.Fact{evidence.At(source, "spec.externalName", evidence.Nested(service, "spec", "externalName"))}
		return s
	}
	list, err := a.evidence.List(evidence.EndpointSlices, namespace)
	if err != nil {
		s.Unread = true
		s.Evidence = []evidence.Fact{evidence.At(source, "", fmt.Sprintf(endpointsUnread, err))}
		return s
	}
	ready := a.readyEndpoints(list, name)
	s.Dead = ready == 0
	s.Evidence = []evidence.Fact{evidence.At(source, "", "exists, with "+evidence.Number(ready, "ready endpoint"))}
	if s.Dead {
		a.silentPods(s, service)
	}
	return s
}

// missingNamespace adds that the namespace of a service is gone, or going.
func (a *Reviewer) missingNamespace(s *Serving) {
	namespace, err := a.evidence.Get(evidence.Namespaces, "", s.Namespace)
	switch {
	case apierrors.IsNotFound(err):
		s.Evidence = append(s.Evidence, evidence.At(evidence.Identity(evidence.Namespaces, "", s.Namespace), "", "does not exist"))
	case err == nil && namespace.GetDeletionTimestamp() != nil:
		s.Ending = true
		s.Evidence = append(s.Evidence, evidence.At(evidence.Identity(evidence.Namespaces, "", s.Namespace), "", namespaceDeleted))
	}
}

// Behind returns the pods that answer at a service, as far as they can be read.
func (a *Reviewer) Behind(namespace, name string) []types.UID {
	list, err := a.evidence.List(evidence.EndpointSlices, namespace)
	if err != nil {
		return nil // it is noted as unread
	}
	var pods []types.UID
	for endpoint := range endpointsOf(list, name) {
		if pod, _, _ := unstructured.NestedString(endpoint, "targetRef", "uid"); pod != "" {
			pods = append(pods, types.UID(pod))
		}
	}
	return pods
}

// endpointsOf goes over the endpoints of a service.
func endpointsOf(slices []unstructured.Unstructured, service string) iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		for i := range slices {
			if slices[i].GetLabels()["kubernetes.io/service-name"] != service {
				continue
			}
			endpoints, _, _ := unstructured.NestedSlice(slices[i].Object, "endpoints")
			for _, e := range endpoints {
				if endpoint, is := e.(map[string]any); is && !yield(endpoint) {
					return
				}
			}
		}
	}
}

// readyEndpoints counts those of a service whose pods do not count as gone.
func (a *Reviewer) readyEndpoints(list []unstructured.Unstructured, service string) int {
	ready := 0
	for endpoint := range endpointsOf(list, service) {
		if pod, _, _ := unstructured.NestedString(endpoint, "targetRef", "uid"); a.evidence.IsGone(types.UID(pod)) {
			continue
		}
		if isReady, stated, _ := unstructured.NestedBool(endpoint, "conditions", "ready"); isReady || !stated {
			ready++
		}
	}
	return ready
}

// silentPods adds the pods that a service without endpoints selects, and if
// there are none the workload that should make them.
func (a *Reviewer) silentPods(s *Serving, service *unstructured.Unstructured) {
	a.missingNamespace(s)
	selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
	if len(selector) == 0 {
		return
	}
	selected := labels.SelectorFromSet(selector)
	list, err := a.evidence.List(evidence.Pods, s.Namespace)
	if err != nil {
		return
	}
	found := 0
	for i := range list {
		if !selected.Matches(labels.Set(list[i].GetLabels())) {
			continue
		}
		if found++; found <= evidence.MaxShown {
			s.Evidence = append(s.Evidence, evidence.At(evidence.Identity(evidence.Pods, s.Namespace, list[i].GetName()),
				"status", describePod(&list[i])))
		}
	}
	if found > 0 || a.finder == nil {
		return
	}
	s.Evidence = append(s.Evidence, evidence.At("Pods in namespace "+s.Namespace, "", fmt.Sprintf(noneMatchSelector, selected)))
	for _, l := range a.finder.Behind(s.Namespace, s.Name) {
		s.Evidence = append(s.Evidence, evidence.At(l.ID(), "spec.replicas", fmt.Sprint(l.Replicas)))
		if l.Replicas == 0 {
			s.Idle = l
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
