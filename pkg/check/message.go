// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"

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
		return fmt.Sprintf("the owner is %s, and the garbage collector looks in the object's own namespace only", named(s.ref.Owner.Identity()))
	case CoordinatesMismatch:
		id := s.ref.Owner.Identity()
		return fmt.Sprintf("the object with this UID is %s %s, not %s %s", id.Resource.GroupVersion(), named(id), s.ref.APIVersion, stated(s.ref.OwnerReference))
	case UnresolvableKind:
		return fmt.Sprintf("the server does not serve the kind %s of %s", s.ref.Kind, s.ref.APIVersion)
	case ClusterScopedDependent:
		return fmt.Sprintf("the object is cluster-scoped, and its owner %s is in a namespace", stated(s.ref.OwnerReference))
	}
	return ""
}

// consequence says what the garbage collector does about a dangling reference.
func (s *subject) consequence() string {
	switch s.fate {
	case deleted:
		return "the garbage collector deletes the object"
	case trimmed:
		text := "another reference keeps the object, and the garbage collector removes this one"
		if s.takesRight() {
			text += ", and the right one with the same UID"
		}
		return text
	case stripped:
		return "the garbage collector removes the reference, and the right one with the same UID: the object is left without an owner, and stays for ever"
	case stalled:
		return "the garbage collector would treat the owner as absent, but is held up by another reference of the object"
	case undecided:
		return "the garbage collector treats the owner as absent; what becomes of the object depends on another owner, which could not be read"
	case terminating:
		return "the object is being deleted"
	}
	return ""
}
