// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// How long the small protection controllers of kube-controller-manager may take after the last user of an object ended,
// and for how long an external driver may have the same failure before that counts.
const (
	protectionDelay = 15 * time.Second
	driverDelay     = 10 * time.Minute
)

// protection is a finalizer that a controller of kube-controller-manager has to remove, for which nothing else is missing.
func (w *walker) protection(n graph.Node, symptom Kind, because string) hold {
	return w.manager(n, because, w.late(n)).as(symptom)
}

// objectLink leads to an object of a type that must be deleted, or change, first: by the graph when it is being deleted,
// to the cause that fill makes when it is not.
func objectLink(r *evidence.Reader, symptom Kind, because string, of schema.GroupVersionResource, o *unstructured.Unstructured, fill func() *Cause) hold {
	if m, known := r.Node(of.GroupResource(), o.GetNamespace(), o.GetUID()); known && m.BeingDeleted() {
		return hold{symptom: symptom, because: because, next: &m}
	}
	return hold{symptom: symptom, because: because, cause: fill()}
}

// warnings are the failures that events tell of an object since its deletion
// was asked for; with reasons only those of these.
func warnings(r *evidence.Reader, n graph.Node, reasons ...string) []Evidence {
	asked := evidence.Requested(n.Object())
	var facts []Evidence
	for _, o := range r.Events(n.Namespace(), n.UID()) {
		e := evidence.NewEvent(&o)
		if e.Type != "Warning" || e.Last.Before(asked) || len(reasons) > 0 && !slices.Contains(reasons, e.Reason) {
			continue
		}
		if len(facts) < evidence.MaxShown {
			facts = append(facts, e.Fact())
		}
	}
	return facts
}
