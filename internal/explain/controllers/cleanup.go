// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// halted returns what keeps the objects that were made for the clean-up of an object, after its deletion, from getting
// anywhere; nil for nothing.
func (f *Finder) halted(n graph.Node, asked time.Time) *Failure {
	var made []graph.Node
	for _, d := range f.dependents(n) {
		if !d.CreationTimestamp().After(asked) || d.BeingDeleted() {
			continue
		}
		if made = append(made, d); d.Resource().GroupResource() == jobs.GroupResource() {
			made = append(made, slices.DeleteFunc(f.dependents(d), func(pod graph.Node) bool { return f.isRetried(d, pod) })...)
		}
	}
	var worst *Failure
	for _, d := range made {
		if failure := f.haltOf(d); failure != nil && (worst == nil || d.Resource().IsPod()) { // a pod says why its Job fails
			worst = failure
		}
	}
	return worst
}

// isRetried reports whether a pod has ended and its Job goes on, or is done.
func (f *roster) isRetried(job, pod graph.Node) bool {
	whole, err := f.evidence.Whole(job)
	ended, unread := f.evidence.Whole(pod)
	if err != nil || unread != nil || !evidence.PodEnded(ended) {
		return false
	}
	active, _, _ := unstructured.NestedInt64(whole.Object, "status", "active")
	succeeded, _, _ := unstructured.NestedInt64(whole.Object, "status", "succeeded")
	return active+succeeded > 0
}

// haltOf returns what keeps a Job, a pod, or what a controller has made of its own API from getting anywhere.
func (f *Finder) haltOf(d graph.Node) *Failure {
	full, err := f.evidence.Whole(d)
	if err != nil {
		return nil
	}
	halt := func(because string, e evidence.Fact) *Failure {
		return &Failure{Kind: Failing, Message: say.Of(madeForCleanup, d.Identity(), because).String(), made: d.Identity(), because: because,
			Evidence: e, Since: d.CreationTimestamp().Time, Dated: true, Lasting: true}
	}
	if d.Resource().IsPod() {
		if st := f.podState(full); st.Liveness == Dead && len(st.Evidence) > 0 && evidence.Nested(full, "status", "phase") != "Succeeded" {
			return halt(st.Because.String(), st.Evidence[0])
		}
		return nil
	}
	for _, l := range f.inventory().workloads {
		if st := f.StateOf(l); l.uid == d.UID() && st.Liveness == Dead && len(st.Evidence) > 0 {
			return halt(st.Because.String(), st.Evidence[0])
		}
	}
	if d.Resource().GroupResource() != jobs.GroupResource() {
		for _, failure := range (&statusOf{full: full}).failures(d, d.CreationTimestamp().Time) {
			if !failure.weak {
				return halt(failure.Message, failure.Evidence)
			}
		}
		return nil
	}
	if stops, _, _ := unstructured.NestedBool(full.Object, "spec", "suspend"); stops {
		return halt(suspended, evidence.Field(d, "spec.suspend", "true"))
	}
	if failed, _ := evidence.ConditionOf(full, "Failed"); failed.Status == "True" {
		return halt(failed.Said(), failed.Fact(d.Identity()))
	}
	return nil
}
