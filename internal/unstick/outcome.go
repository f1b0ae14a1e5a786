// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Followers remembers what was asked for in a run, and the dependents that were terminating with it: an owner that is freed without them
// has left them behind. Its zero value has seen no look.
type Followers struct {
	asked sets.Set[types.UID]
	// of are the dependents of what was asked for that were not themselves, by the UID of the owner.
	of map[types.UID][]graph.Object
}

// Note takes in what a look was asked for.
func (f *Followers) Note(l *Look) {
	if f.asked == nil {
		f.asked, f.of = sets.Set[types.UID]{}, map[types.UID][]graph.Object{}
	}
	for i := range l.Report.Objects {
		f.asked.Insert(l.Report.Objects[i].Object.UID)
	}
	for i := range l.Report.Objects {
		o := &l.Report.Objects[i]
		if n, known := l.Graph.Node(o.Object.UID); known && o.BeingDeleted() {
			f.of[o.Object.UID] = f.terminating(n, sets.New(n.UID()), nil)
		}
	}
}

// terminating adds the dependents of an object that are being deleted, and theirs.
func (f *Followers) terminating(n graph.Node, met sets.Set[types.UID], all []graph.Object) []graph.Object {
	for _, d := range n.Dependents() {
		if d.Virtual() || !d.BeingDeleted() || met.Has(d.UID()) {
			continue
		}
		if met.Insert(d.UID()); !f.asked.Has(d.UID()) {
			all = append(all, *d.Object())
		}
		all = f.terminating(d, met, all)
	}
	return all
}

// Behind are the dependents of what a look does not find any more. What became of them has to be found out.
func (f *Followers) Behind(l *Look) []graph.Object {
	left := sets.New[types.UID]()
	for _, id := range l.left() {
		left.Insert(id.UID)
	}
	var behind []graph.Object
	for owner, objects := range f.of {
		for i := range objects {
			if !left.Has(owner) && !slices.ContainsFunc(behind, func(o graph.Object) bool { return o.UID == objects[i].UID }) {
				behind = append(behind, objects[i])
			}
		}
	}
	graph.SortByIdentity(behind, func(o *graph.Object) graph.Identity { return o.Identity() })
	return behind
}

// Found takes an explanation of what Behind has returned into the look: what is still being deleted is left. The causes are not: nothing
// was agreed to about them.
func (f *Followers) Found(l *Look, report *explain.Report) {
	left := sets.New[types.UID]()
	for i := range report.Objects {
		if o := &report.Objects[i]; o.BeingDeleted() {
			left.Insert(o.Object.UID)
			l.Report.Objects = append(l.Report.Objects, *o)
		}
	}
	freed := sets.New[types.UID]()
	for _, o := range f.Behind(l) {
		if !left.Has(o.UID) {
			freed.Insert(o.UID)
		}
	}
	for owner, objects := range f.of {
		f.of[owner] = slices.DeleteFunc(objects, func(o graph.Object) bool { return freed.Has(o.UID) })
	}
}

// Outcome is what a run has come to.
type Outcome struct {
	// Freed are gone, and so are the dependents that were terminating with them.
	Freed []graph.Identity
	// Bare are gone without theirs.
	Bare []Bare
	// Left are still being deleted.
	Left []*explain.Explanation
}

// Bare is an object that is gone, with the dependents that are still being deleted.
type Bare struct {
	Object  graph.Identity
	Hanging []*explain.Explanation
}

// Done reports whether everything is gone.
func (o *Outcome) Done() bool { return len(o.Bare)+len(o.Left) == 0 }

// Outcome finds out what a run has come to by its report. What is not being deleted, and what does not exist, hangs nowhere.
func (f *Followers) Outcome(r *Report) *Outcome {
	var o Outcome
	hanging := map[types.UID]*explain.Explanation{}
	for i := range r.Last.Report.Objects {
		switch e := &r.Last.Report.Objects[i]; {
		case !e.BeingDeleted():
		case f.asked.Has(e.Object.UID):
			o.Left = append(o.Left, e)
		default:
			hanging[e.Object.UID] = e
		}
	}
	for _, id := range r.Freed {
		if !f.asked.Has(id.UID) {
			continue
		}
		b := Bare{Object: id}
		for i := range f.of[id.UID] {
			if e := hanging[f.of[id.UID][i].UID]; e != nil {
				b.Hanging = append(b.Hanging, e)
			}
		}
		if len(b.Hanging) > 0 {
			o.Bare = append(o.Bare, b)
		} else {
			o.Freed = append(o.Freed, id)
		}
	}
	return &o
}
