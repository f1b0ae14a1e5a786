// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Due returns what the simulated controllers ask of the API server as the snapshot is, without what
// follows: those of kube-controller-manager and kubelets, and not the garbage collector.
// Package deletiontest sends it, and asks again when the world has changed: the rules by which a preview
// lets namespaces, pods and finalizers end are those by which they end there.
func Due(snapshot *graph.Snapshot, o Options) []remedy.Op {
	s, due := New(snapshot, o), &requests{}
	s.pods.api, s.namespaces.api, s.finalizing.api = due, due, due
	s.definitions.api = &requests{} // the API server's own
	s.start()
	for s.clock.advance(s.perform) {
	}
	return due.ops
}

// OfControllerManager says of the finalizers that kube-controller-manager removes that it does, as
// Actors.Finalizer.
func OfControllerManager(_ *graph.Object, finalizer string) (Actor, say.Text) {
	if _, known := conditions[finalizer]; known && !strings.HasPrefix(finalizer, "external-") {
		return Acts, say.Text{}
	}
	if slices.Contains(unconditional, finalizer) {
		return Acts, say.Text{}
	}
	return Nobody, say.Text{}
}

// requests is an api that keeps what it is asked, and changes nothing.
type requests struct{ ops []remedy.Op }

// deleteAs leaves out what would change nothing: asked for again and again, it would have no end.
func (r *requests) deleteAs(o graph.Object, options metav1.DeleteOptions) {
	if o.BeingDeleted() && options.GracePeriodSeconds == nil && !slices.ContainsFunc(o.Finalizers, graph.IsCollectorFinalizer) {
		return
	}
	r.ops = append(r.ops, remedy.DeleteOf(o.Identity(), options))
}

func (r *requests) update(before, after graph.Object) graph.Object {
	path := "/metadata/finalizers"
	r.ops = append(r.ops, remedy.PatchOf(before.Identity(), remedy.Test(path, before.Finalizers), remedy.Replace(path, after.Finalizers)))
	return after
}

func (r *requests) finalizeNamespace(o graph.Object, spec []string) {
	r.ops = append(r.ops, remedy.Op{Verb: remedy.Finalize, Object: o.Identity(), Value: namespaceFinalizer})
}
