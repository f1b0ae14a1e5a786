// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Guarded returns the name that the user must type before something of the system
// is touched, empty when nothing is.
func (p *Plan) Guarded() string {
	for i := range p.Job.Targets {
		if ofSystem(&p.Job.Targets[i]) {
			return p.Job.Targets[i].Name
		}
	}
	for id := range p.ofSystem() {
		return cmp.Or(id.Namespace, id.Name)
	}
	return ""
}

// ofSystem returns what belongs to the system of all that the plan writes to, or
// that goes with something else.
func (p *Plan) ofSystem() iter.Seq[graph.Identity] {
	return func(yield func(graph.Identity) bool) {
		for i := range p.Report.Steps {
			if id := p.Report.Steps[i].Object.Identity(); ofSystem(&id) && !yield(id) {
				return
			}
		}
		for i := range p.ensuing { // what others delete because of it
			if id := p.ensuing[i]; ofSystem(&id) && !yield(id) {
				return
			}
		}
		for i := range p.Report.Outcomes { // what controllers delete with something else
			o := &p.Report.Outcomes[i]
			id := o.Object.Identity()
			if !ofSystem(&id) || o.Result != gc.Deleted && !o.Object.BeingDeleted() && !p.followers[id.UID] {
				continue
			}
			before, known := p.Graph.Snapshot().Object(o.Object.UID)
			if !(known && before.BeingDeleted()) && !yield(id) {
				return
			}
		}
	}
}

// Guard returns a function that refuses to write to what belongs to the system and
// does not go by the plan that the user agreed to: it was made since, or was not to
// be touched.
func (p *Plan) Guard() func(gc.Action, graph.Object) error {
	agreed := map[types.UID]bool{}
	for id := range p.ofSystem() {
		agreed[id.UID] = true
	}
	return func(_ gc.Action, o graph.Object) error {
		if id := o.Identity(); ofSystem(&id) && !agreed[id.UID] {
			return errOfSystem
		}
		return nil
	}
}

// ofSystem holds for the namespaces of the system, and for what is in kube-system.
func ofSystem(id *graph.Identity) bool {
	return id.Namespace == metav1.NamespaceSystem ||
		id.Resource.IsNamespace() && slices.Contains(systemNamespaces, id.Name)
}

var systemNamespaces = []string{metav1.NamespaceSystem, metav1.NamespacePublic, metav1.NamespaceDefault, "kube-node-lease"}
