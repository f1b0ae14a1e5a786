// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// misplaced says what becomes of an object without a namespace, whose owner has one, if the
// garbage collector sees a dependent first: empty when that makes no difference. It knows the
// object from the dependent's reference then, takes it for one in the dependent's namespace, and
// looks for the owner there (graph_builder.go, addDependentToOwners; garbagecollector.go,
// isDangling).
func (s *subject) misplaced() string {
	leads := func(ref graph.Reference) bool {
		return ref.State == graph.Solid || ref.State == graph.WaitingForDependentsDeletion
	}
	for _, d := range s.node.Dependents() {
		if d.Namespace() == "" || ownerIn(s.ref, d.Namespace()) == graph.Solid || !slices.ContainsFunc(d.ReferencesTo(s.node), leads) {
			continue
		}
		switch s.fateIn(d.Namespace()) {
		case deleted, undecided:
			return seenFirst(d.Identity(), mayDelete)
		case trimmed, stripped, exposed:
			return seenFirst(d.Identity(), mayRemove)
		}
	}
	return ""
}

// fateIn is the fate of an object without a namespace if it were in one.
func (s *subject) fateIn(namespace string) fate {
	refs := slices.Clone(s.refs)
	for i := range refs {
		if refs[i].Reason == graph.ClusterScopedDependent {
			refs[i].State = ownerIn(&refs[i], namespace)
		}
	}
	return fateOf(s.node, refs)
}

// ownerIn is what a reference to a namespaced owner would mean in a namespace.
func ownerIn(ref *graph.Reference, namespace string) graph.State {
	owner := ref.Owner
	switch {
	case owner.Virtual(), owner.Namespace() != namespace, owner.Name() != ref.Name, owner.Resource().Kind != ref.Kind:
		return graph.Dangling
	case owner.DeletingDependents():
		return graph.WaitingForDependentsDeletion
	}
	return graph.Solid
}
