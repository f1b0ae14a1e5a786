// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// named names an object: Kind/name, and where it is.
func named(id graph.Identity) string {
	if id.Namespace == "" {
		return id.Resource.Kind + "/" + id.Name
	}
	return id.Resource.Kind + "/" + id.Name + " in namespace " + id.Namespace
}

// stated names the owner of a reference as the reference does.
func stated(ref metav1.OwnerReference) string { return ref.Kind + "/" + ref.Name }

// place says where the garbage collector looks for the owner: " in namespace
// x", or nothing for a cluster-scoped kind.
func (s *subject) place() string {
	mapping, err := s.snapshot.Resolve(s.ref.APIVersion, s.ref.Kind)
	if err != nil || !graph.ResourceOf(mapping).Namespaced {
		return ""
	}
	return " in namespace " + s.node.Namespace()
}

// wrong says what is wrong with the reference.
func (s *subject) wrong(rule string) string {
	switch rule {
	case OwnerAbsent:
		return fmt.Sprintf("there is no %s%s", stated(s.ref.OwnerReference), s.place())
	case UIDMismatch:
		return fmt.Sprintf("%s%s has another UID than the reference states: it is another object", stated(s.ref.OwnerReference), s.place())
	case WrongNamespace:
		if s.node.Namespace() == "" {
			return fmt.Sprintf("the object with this UID is %s, and an object without a namespace cannot have an owner in one", named(s.ref.Owner.Identity()))
		}
		return fmt.Sprintf("the owner is %s, and the garbage collector looks in the object's own namespace only", named(s.ref.Owner.Identity()))
	case CoordinatesMismatch:
		id := s.ref.Owner.Identity()
		return fmt.Sprintf("the object with this UID is %s %s, not %s %s", id.Resource.GroupVersion(), named(id), s.ref.APIVersion, stated(s.ref.OwnerReference))
	case UnresolvableKind:
		return fmt.Sprintf("the server does not serve the kind %s of %s", s.ref.Kind, s.ref.APIVersion)
	case ClusterScopedDependent:
		return fmt.Sprintf("the object is cluster-scoped, and its owner %s is in a namespace", stated(s.ref.OwnerReference))
	case InvalidName:
		return fmt.Sprintf("no object can have the name of the owner %s", stated(s.ref.OwnerReference))
	}
	return ""
}

// noOwner is what becomes of an object without references.
const noOwner = "the object is left without an owner, and stays for ever"

// consequence says what the garbage collector does about a dangling reference.
func (s *subject) consequence() []string {
	takes := "by another one the right owner"
	if s.takesRight() {
		takes = "the right one with the same UID"
	}
	switch s.fate {
	case deleted:
		return []string{"the garbage collector deletes the object"}
	case trimmed:
		text := "another reference keeps the object, and the garbage collector removes this one"
		if s.takesRight() {
			text += ", and " + takes
		}
		return []string{text}
	case stripped:
		return []string{"the garbage collector removes the reference, and " + takes, noOwner}
	case exposed:
		return []string{"the garbage collector removes the reference, and " + takes, "whether the object has another owner is not known"}
	case stalled:
		return []string{"the garbage collector would treat the owner as absent, but is held up by another reference of the object"}
	case undecided:
		return []string{
			"the garbage collector treats the owner as absent",
			"what becomes of the object depends on another reference, which could not be decided",
		}
	case terminating:
		return []string{"the object is being deleted"}
	}
	return nil
}

// loses says what becomes of a right reference beside a dangling one that
// states the same UID.
func (s *subject) loses() []string {
	sentences := []string{
		"another reference of the object states the same UID and is dangling",
		"the garbage collector removes references by UID, and so this one, too",
	}
	switch s.fate {
	case stripped:
		return append(sentences, noOwner)
	case exposed:
		return append(sentences, "whether the object has another owner is not known")
	}
	return sentences
}

// neverHandled says what the garbage collector does about an object that it
// cannot handle. It stops at the first reference that it cannot look up, and
// tries again unless that one is ClusterScopedDependent
// (garbagecollector.go, attemptToDeleteWorker).
func (s *subject) neverHandled(rule string) string {
	const nothing = "never deletes the object, nor removes any of its references"
	if rule == ClusterScopedDependent {
		return "the garbage collector " + nothing
	}
	first := slices.IndexFunc(s.refs, func(ref graph.Reference) bool {
		return ref.Reason == graph.Unresolvable || ref.Reason == graph.ClusterScopedDependent
	})
	if s.refs[first].Reason == graph.ClusterScopedDependent {
		return "the garbage collector gives the object up because of an earlier reference, and " + nothing
	}
	return "the garbage collector tries again for ever, and neither deletes the object nor removes any of its references"
}

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
		does := ""
		switch s.fateIn(d.Namespace()) {
		case deleted, undecided:
			does = "may delete the object"
		case trimmed, stripped, exposed:
			does = "may remove the reference"
		default:
			continue
		}
		return "but if it sees " + named(d.Identity()) + ", which the object owns, before the object, as happens when it starts or both are new, it looks for the owner in that namespace, and " + does
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
