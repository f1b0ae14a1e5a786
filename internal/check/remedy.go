// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// patch changes one owner reference of the object by JSON patch. It is guarded
// by the object's UID, and by all that the reference says of its owner.
func (c *checker) patch(s *subject, ref *graph.Reference, change func(at string) []remedy.Step) string {
	if c.WithoutRemedies {
		return ""
	}
	at := fmt.Sprintf("/metadata/ownerReferences/%d", ref.Index)
	steps := []remedy.Step{
		remedy.Test(at+"/uid", ref.UID),
		remedy.Test(at+"/apiVersion", ref.APIVersion),
		remedy.Test(at+"/kind", ref.Kind),
		remedy.Test(at+"/name", ref.Name),
	}
	op := remedy.PatchOf(s.node.Identity(), append(steps, change(at)...)...)
	return op.Command(remedy.Programs{Kubectl: c.Kubectl})
}

// drop takes a reference out of the object. The effect goes on with what comes
// of that.
func (c *checker) drop(s *subject, ref *graph.Reference, effect string) *Remedy {
	others := slices.DeleteFunc(slices.Clone(s.refs), func(r graph.Reference) bool { return r.Index == ref.Index })
	switch next := fateOf(s.node, others); {
	case len(others) == 0:
		effect += orphansIt
	case next == deleted:
		effect += deletesIt
	case next == undecided:
		effect += mightDeleteIt
	}
	return &Remedy{effect + c.doubt(ref), c.patch(s, ref, func(at string) []remedy.Step { return []remedy.Step{remedy.Remove(at)} })}
}

// doubt says when not finding the owner does not mean that no object has its
// UID. Where the garbage collector looks for it, there is none; but to correct
// the reference may be better than what the remedy does.
func (c *checker) doubt(ref *graph.Reference) string {
	const text = notLookedFor
	switch {
	case !ref.Owner.Virtual():
		return ""
	case c.Partial:
		return text + askAll
	case !c.graph.Snapshot().Complete():
		return text + unreadable
	}
	return ""
}

// correct makes the reference state what the object with its UID is.
func (c *checker) correct(s *subject) *Remedy {
	id := s.ref.Owner.Identity()
	return &Remedy{
		correctsIt,
		c.patch(s, s.ref, func(at string) []remedy.Step {
			return []remedy.Step{
				remedy.Replace(at+"/apiVersion", id.Resource.GroupVersion().String()),
				remedy.Replace(at+"/kind", id.Resource.Kind), remedy.Replace(at+"/name", id.Name),
			}
		}),
	}
}

// correctable reports whether the object with the reference's UID can be an
// owner of this one, and will be.
func (s *subject) correctable() bool {
	if s.ref.Owner.Virtual() || s.ref.Owner == s.node || s.ref.Owner.BeingDeleted() {
		return false
	}
	namespace := s.ref.Owner.Namespace()
	return namespace == "" || namespace == s.node.Namespace()
}

func (c *checker) remedyOfDangling(s *subject, rule string) *Remedy {
	if s.fate == terminating {
		id := s.node.Identity()
		return &Remedy{explainsIt, shell.In(c.Plugin+" explain-stuck", id.Namespace) + " " + shell.Target(id)}
	}
	if rule == CoordinatesMismatch && s.correctable() && s.alone() {
		return c.correct(s)
	}
	if s.takesRight() {
		return c.drop(s, s.ref, dropsWrong)
	}
	effect := "drop the reference"
	switch {
	case len(s.refs) == 1:
		effect = keepsIt
	case s.fate == trimmed:
		effect += asCollector
	}
	return c.drop(s, s.ref, effect)
}

func (c *checker) remedyOfNever(s *subject) *Remedy {
	if s.correctable() && s.alone() {
		return c.correct(s)
	}
	return c.drop(s, s.ref, "drop the reference")
}

// namesake is a finding of UIDMismatch: the owner could be the object that has
// the stated name now.
type namesake struct {
	finding         int
	subject         subject
	resource        schema.GroupResource
	namespace, name string
}

func newNamesake(s *subject, finding int) namesake {
	n := namesake{finding: finding, subject: *s, name: s.ref.Name}
	mapping, err := s.snapshot.Resolve(s.ref.APIVersion, s.ref.Kind)
	if err != nil {
		return n // is in no namespace of that name, so nothing is found
	}
	resource := graph.ResourceOf(mapping)
	n.resource = resource.GroupResource()
	if resource.Namespaced {
		n.namespace = s.node.Namespace()
	}
	return n
}

// adopt looks for the objects that have the names of owners with other UIDs,
// and makes the remedies of these findings: to take the object for the owner,
// unless it is one already.
func (c *checker) adopt() {
	type place struct{ namespace, name string }
	wanted := map[place][]namesake{}
	for _, n := range c.namesakes {
		at := place{n.namespace, n.name}
		wanted[at] = append(wanted[at], n)
	}
	if len(wanted) == 0 {
		return
	}
	for found := range c.graph.Nodes() {
		if found.Virtual() {
			break // virtual nodes follow the objects
		}
		for _, n := range wanted[place{found.Namespace(), found.Name()}] {
			o := found.Object()
			if c.graph.Snapshot().IsAt(o, n.resource, n.namespace, n.name) && found != n.subject.node && !o.BeingDeleted() &&
				!n.subject.owns(o.UID) {
				c.report.Findings[n.finding].Remedy = c.adoptBy(&n.subject, o.UID)
			}
		}
	}
}

func (s *subject) owns(uid types.UID) bool {
	for k := range s.refs {
		if s.refs[k].UID == uid {
			return true
		}
	}
	return false
}

// adoptBy puts the UID of the object that has the stated name into the
// reference.
func (c *checker) adoptBy(s *subject, uid types.UID) *Remedy {
	return &Remedy{
		adoptsIt + c.doubt(s.ref),
		c.patch(s, s.ref, func(at string) []remedy.Step { return []remedy.Step{remedy.Replace(at+"/uid", uid)} }),
	}
}
