// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Outcome is what the garbage collector makes of an object, as far as one finding tells. Of several findings about
// an object the latest in this order counts.
type Outcome uint8

// The outcomes.
const (
	// Open: the finding does not tell, or nothing happens to the object because of it.
	Open Outcome = iota
	// Never: the garbage collector never deletes the object.
	Never
	// Unsure: what the garbage collector does depends on what is not known.
	Unsure
	// Orphaned: the object loses its owner, and is never deleted then.
	Orphaned
	// Deleted: the garbage collector deletes the object.
	Deleted
)

// outcomeOf is the outcome of an object with a finding about a dangling reference, or about one that shares its UID.
func (s *subject) outcomeOf() Outcome {
	switch s.fate {
	case deleted:
		return Deleted
	case stripped:
		return Orphaned
	case undecided:
		return Unsure
	}
	return Open
}

// called names an object as users of kubectl do, without the namespace that it shares with the subject.
func (s *subject) called(id graph.Identity) string {
	text := strings.ToLower(id.Resource.Kind) + "/" + id.Name
	if id.Namespace != s.node.Namespace() && id.Namespace != "" {
		text += " -n " + id.Namespace
	}
	return text
}

// owner names the owner as the reference does.
func (s *subject) owner() string { return strings.ToLower(s.ref.Kind) + "/" + s.ref.Name }

// problem says in a few words what is wrong with the reference, by a rule that is not about circles.
func (s *subject) problem(rule string) string {
	switch rule {
	case OwnerAbsent:
		return fmt.Sprintf("owner %s not found", s.owner())
	case UIDMismatch:
		return fmt.Sprintf("owner %s has another UID", s.owner())
	case WrongNamespace:
		id := s.ref.Owner.Identity()
		return fmt.Sprintf("owner %s/%s is in namespace %s", strings.ToLower(id.Resource.Kind), id.Name, id.Namespace)
	case CoordinatesMismatch:
		return s.misstated()
	case UnresolvableKind:
		return fmt.Sprintf("no kind %s in %s", s.ref.Kind, s.ref.APIVersion)
	case ClusterScopedDependent:
		return fmt.Sprintf("owner %s is namespaced", s.owner())
	case InvalidName:
		return fmt.Sprintf("owner %s has an invalid name", s.owner())
	case OwnsItself:
		return "owns itself"
	}
	return ""
}

// misstated says what the object with the stated UID is, with the groups where nothing else differs.
func (s *subject) misstated() string {
	id := s.ref.Owner.Identity()
	stated, is := s.owner(), s.called(id)
	if strings.EqualFold(id.Resource.Kind, s.ref.Kind) && id.Name == s.ref.Name {
		stated, is = s.ref.APIVersion+" "+stated, id.Resource.GroupVersion().String()+" "+is
	}
	return fmt.Sprintf("owner is %s, not %s", is, stated)
}

// becomes says in a few words what becomes of an object with a dangling reference.
func (s *subject) becomes() string {
	switch s.fate {
	case deleted:
		return "; will be deleted"
	case trimmed:
		return "; kept by another owner"
	case stripped:
		return "; loses its owner"
	case stalled:
		return "; another reference stalls the garbage collector"
	case exposed, undecided:
		return "; outcome unknown"
	case terminating:
		return "; being deleted"
	}
	return ""
}

// circled names a circle by the next object in it, and how many there are besides.
func (s *subject) circled(rule string, ring []graph.Node) string {
	text := "owner cycle"
	if rule == BlockingCycle {
		text = "blocking owner cycle"
	}
	text += " with " + s.called(ring[1].Identity())
	if more := len(ring) - 3; more > 0 {
		text += fmt.Sprintf(" +%d", more)
	}
	return text
}
