// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// All that check says. Nothing reads it to decide anything.

var rules = []Rule{
	{
		OwnerAbsent, Error, "The owner does not exist.",
		"The garbage collector deletes the object, or, when another owner keeps it, removes the reference.",
	},
	{
		UIDMismatch, Error, "Another object has the owner's name: its UID is not the one that the reference states.",
		"The garbage collector treats the owner as absent: it deletes the object, or, when another owner keeps it, removes the reference.",
	},
	{
		WrongNamespace, Error, "The owner is in another namespace.",
		"The garbage collector looks in the object's own namespace only and treats the owner as absent: it deletes the object, or, when another owner keeps it, removes the reference.",
	},
	{
		CoordinatesMismatch, Error, "The object with the stated UID has another kind, group or name.",
		"The garbage collector looks for the owner by kind and name and treats it as absent: it deletes the object, or, when another owner keeps it, removes the reference.",
	},
	{
		UnresolvableKind, Error, "The server does not serve the stated apiVersion and kind.",
		"The garbage collector cannot look for the owner. It retries forever, and never deletes the object nor removes any of its references.",
	},
	{
		ClusterScopedDependent, Error, "A cluster-scoped object names an owner that is in a namespace.",
		"The garbage collector gives up on the object: it never deletes it nor removes any of its references. Only if it sees a dependent in a namespace before the object, as happens when it starts or both are new, does it look for the owner in that namespace, and deletes the object if the owner is not there.",
	},
	{
		InvalidName, Error, "No object can have the owner's name.",
		"The garbage collector asks for something else than the owner: mostly it gets an error, retries forever, and keeps the object; it might also treat the owner as absent, and delete the object.",
	},
	{
		OwnsItself, Error, "The object is its own owner.",
		"The reference keeps the object, so the garbage collector never deletes it. If it blocks, a foreground deletion of the object waits for itself forever.",
	},
	{
		OwnerCycle, Warning, "Objects own each other in a circle.",
		"Each is kept by the next, so the garbage collector never deletes any of them, even when all other owners are gone.",
	},
	{
		BlockingCycle, Warning, "Objects own each other in a circle of references with blockOwnerDeletion.",
		"Once two of them are in foreground deletion at the same time, they can wait for each other forever.",
	},
	{
		RepeatedUID, Error, "Several references of the object state the same UID.",
		"The garbage collector removes references by UID: when it removes one of these, it removes all of them.",
	},
}

// What remedies do, and sentences of findings.
const (
	orphansIt        = "; the object has no owner then, and only you can delete it"
	deletesIt        = "; the garbage collector then deletes the object because of its other references"
	mightDeleteIt    = "; the garbage collector might then delete the object: another reference could not be decided"
	notLookedFor     = "; whether an object has the owner's UID was not looked for everywhere: "
	askAll           = "ask with check -A first"
	unreadable       = "not everything could be read"
	correctsIt       = "make the reference state what the object with this UID is"
	explainsIt       = "see why the object still exists"
	dropsWrong       = "drop this reference, and leave the right one"
	keepsIt          = "keep the object by dropping the reference"
	asCollector      = ", as the garbage collector would"
	adoptsIt         = "make the object that has this name now the owner"
	asksElse         = "the garbage collector asks for something else instead"
	triesForever     = "it retries forever and keeps the object, or treats the owner as absent"
	dropsOther       = "drop the wrong reference, and leave this one"
	danglingTwin     = "a dangling reference has the same UID"
	statesSameUID    = "another reference of the object states the same UID"
	takenForOne      = "the garbage collector takes them for one"
	twin             = "another reference has the same UID"
	keepsItself      = "the object is its own owner, which keeps it: the garbage collector never deletes it"
	waitsForItself   = "a foreground deletion of it waits for itself forever"
	dropsItself      = "drop the reference to itself"
	keptByNext       = "each is kept by the next, so the garbage collector never deletes any of them"
	breaksCircle     = "break the circle here, by dropping the reference"
	dropsOne         = "drop one of the references that close the circle"
	othersClose      = "; others still do: ask again"
	waitForEachOther = "when several of them are in foreground deletion at once, they can wait for each other forever"
	unblocksIt       = "make this reference one that does not block"
)

// waitedFor is of owners whose foreground deletion waits for the object.
func waitedFor(owners []string) string {
	return "a foreground deletion of " + strings.Join(owners, " or of ") + " waits for it forever"
}

// What the garbage collector might do to an object that it takes for one in a namespace.
const (
	mayDelete = "might delete the object"
	mayRemove = "might remove the reference"
)

// seenFirst is of an object without a namespace, of which the garbage collector sees a dependent first.
func seenFirst(dependent graph.Identity, does string) string {
	return "but if it sees " + named(dependent) +
		", which the object owns, before the object, as when it starts or both are new, it looks for the owner in that namespace, and " + does
}

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
			return fmt.Sprintf("the object with this UID is %s, and an object without a namespace cannot have an owner in one",
				named(s.ref.Owner.Identity()))
		}
		return fmt.Sprintf("the owner is %s, and the garbage collector looks in the object's own namespace only", named(s.ref.Owner.Identity()))
	case CoordinatesMismatch:
		id := s.ref.Owner.Identity()
		return fmt.Sprintf("the object with this UID is %s %s, not %s %s", id.Resource.GroupVersion(), named(id), s.ref.APIVersion,
			stated(s.ref.OwnerReference))
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
const noOwner = "the object is left without an owner, and is kept forever"

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
		return []string{"the garbage collector removes the reference, and " + takes, "unclear whether the object has another owner"}
	case stalled:
		return []string{"the garbage collector would treat the owner as absent, but another reference of the object blocks that"}
	case undecided:
		return []string{
			"the garbage collector treats the owner as absent",
			"whether the object is deleted depends on another reference, which could not be decided",
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
		return append(sentences, "unclear whether the object has another owner")
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
		return "the garbage collector gives up on the object because of an earlier reference, and " + nothing
	}
	return "the garbage collector retries forever, and neither deletes the object nor removes any of its references"
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
