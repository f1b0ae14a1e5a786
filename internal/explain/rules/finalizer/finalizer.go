// SPDX-License-Identifier: Apache-2.0

// Package finalizer has the rules of finalizers that controllers outside this program remove: who should, and why that has
// not happened yet.
package finalizer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/usage"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/write"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

const (
	// maxByHand is the number of objects for which a cause shows how to remove the finalizer by hand.
	maxByHand = 3
	// maxAuthors is the number of objects that are read for who set a finalizer.
	maxAuthors = 100
)

// Foreign is a finalizer, in one of the lists, of a controller outside this program. Objects that wait for the same share
// the cause. Behind a controller that does not run may be what refuses its pods.
func Foreign(f *rules.Facts, n rules.Mark, list finalizers.Field) []finding.Blocker {
	if b, is := component(f, n, list); is {
		return []finding.Blocker{entry(b, n, list)}
	}
	a := f.Finder.Find(n.Node, n.Key, list)
	used, unused := users(f, n.Node, a)
	if len(used) > 0 && a.Is == controllers.Served {
		return used
	}
	j := &judgement{Facts: f, n: n, s: a.Search, unused: unused}
	c := j.judge(a)
	if refused := j.refused(c); len(refused) > 0 {
		return refused
	}
	if j.next != nil {
		return []finding.Blocker{entry(finding.Blocker{Symptom: c.Kind, Because: c.Summary, Next: j.next}, n, list)}
	}
	j.share(c)
	blockers := append([]finding.Blocker{entry(finding.Blocker{Cause: c}, n, list)}, used...)
	if a.Is == controllers.Unserved {
		for _, refused := range write.ForPods(f, a.By.Workload) {
			blockers = append(blockers, entry(finding.Blocker{Because: say.Of(PodsNotMade), Cause: refused}, n, list))
		}
	}
	return blockers
}

// refused is what refuses the removal of the finalizer, where that is what its controller says itself, who works: then that is no cause of
// its own.
func (j *judgement) refused(c *finding.Cause) (blockers []finding.Blocker) {
	if c.Kind != finding.FinFailing && c.Kind != finding.FinWorking || j.s.Field != finalizers.Metadata {
		return nil
	}
	r := j.Removal(j.n.Node, j.n.Key)
	words := r.Words()
	if r.Kind == answer.WebhookFailed {
		words = `failed calling webhook "` + r.Name + `"`
	}
	if words == "" {
		return nil
	}
	if _, seen := j.Admission.SeenFailing(j.n.Node, words); !seen {
		return nil
	}
	for _, cause := range write.Obstacles(j.Facts, j.n.Node, r, "UPDATE") {
		blockers = append(blockers, entry(finding.Blocker{Because: say.Of(MetBy, c.Controller.Name), Cause: cause}, j.n, j.s.Field))
	}
	return blockers
}

// entry is a blocker that is the finalizer, which is in one of the lists: that comes first in what is said of it.
func entry(b finding.Blocker, n rules.Mark, list finalizers.Field) finding.Blocker {
	because := say.Of(OfSpec, n.Key)
	if list != finalizers.Spec {
		b.Finalizer, because = n.Key, say.Of(OfFinalizer, n.Key)
	}
	if !b.Because.IsZero() {
		because = because.And(That).Then(b.Because)
	}
	b.Because = because
	return b
}

// component is a finalizer that a part of kube-controller-manager removes, of which the conditions are not looked at.
func component(f *rules.Facts, n rules.Mark, list finalizers.Field) (b finding.Blocker, is bool) {
	known := f.Finder.Entries(n.Key, n.Resource().GroupVersionKind().GroupKind(), list)
	if len(known) == 0 || known[0].Builtin != finalizers.ControllerManager {
		return b, false
	}
	name := controllers.Whose(n.Key, known)
	m := f.Manager()
	if m.Lease != evidence.LeaseFresh || !f.Late(n.Node) {
		return f.Protected(n.Node, finding.Kind{}, say.Of(MustRemove, name))[0], true
	}
	return finding.Blocker{Because: say.Of(MustRemove, name), Cause: &finding.Cause{
		Kind: finding.FinWorking, At: n.Identity(), Key: n.Key, Shared: true, Verdict: finding.Unknown,
		Summary:    say.Of(NotChecked, name, known[0].WaitsFor),
		Controller: &finding.Controller{Name: name, Liveness: controllers.Alive, Evidence: []finding.Fact{m.Shows}, Known: known[:1]},
		Evidence:   []finding.Fact{finding.Field(n.Node, string(list), n.Key)},
	}}, true
}

// users are the objects that use one whose controller waits until none does: they must be deleted, however well
// it works. A controller that must do something else, or does not work, is looked at when none is left. Unused are the
// types of which none does.
func users(f *rules.Facts, n graph.Node, a *controllers.Answer) (blockers []finding.Blocker, unused []string) {
	if !a.Waits() || a.Is != controllers.Served && a.Is != controllers.Unclear {
		return nil, nil
	}
	used := f.Finder.UsersOf(n, a.Search)
	for _, user := range used.By[:min(len(used.By), evidence.MaxShown)] {
		blockers = append(blockers, usage.InUse(n, user.Node, user.Evidence))
	}
	for _, what := range used.Unread {
		f.Note(say.Of(UsersOf, n.Identity(), what))
	}
	if len(used.By) == 0 {
		unused = used.Of
	}
	return blockers, unused
}

// judgement finds out who should remove one finalizer from one object, and why that does not happen. The objects with the
// same cause differ in what it has besides.
type judgement struct {
	*rules.Facts
	n rules.Mark
	s *controllers.Search
	// unused are the types of which nothing uses the object, for which the controller waits.
	unused []string
	// about is another object that the cause is about.
	about string
	// byHand: removing the finalizer by hand is a way out, the last one.
	byHand bool
	// kinds: the cause is one for all kinds of objects.
	kinds bool
	// mighty are those who work, may change everything, and are not known to have nothing to do with the finalizer.
	mighty []finding.Fact
	// next must be deleted first and is being deleted; there is no cause then.
	next *graph.Node
}

// share makes the cause one for all objects that wait for the same, and adds what is of this object alone. Where nothing
// else is at fault, it is named after the first of them. A namespace has a kind of its own for each list.
func (j *judgement) share(c *finding.Cause) {
	resource, itself := " "+j.n.Resource().GroupResource().String(), c.At == graph.Identity{}
	c.Key, c.Shared = c.Kind.ID+" "+c.Key, true
	switch {
	case j.n.Resource().IsNamespace():
		c.At, c.Key, c.Kind = j.n.Identity(), c.Key+resource, finding.NsMetaFinalizers
		if j.s.Field == finalizers.Spec {
			c.Kind = finding.NsSpecFinalizers
		}
	case itself && j.kinds:
		c.At, c.Alike = j.n.Identity(), true
		if all, added := j.Gather(c.Key, j.s.Finalizer); added && len(all) > 1 {
			c.Summary, c.Grows = unserved(all...), true
		}
	case itself:
		c.At, c.Alike, c.Key = j.n.Identity(), true, c.Key+resource
	}
	own, nth := []finding.Fact{finding.Field(j.n.Node, fmt.Sprintf("%s[%d]", j.s.Field, j.n.Index), j.s.Finalizer)},
		j.Count(c.Kind.ID+" "+c.Key)
	if nth <= evidence.MaxShown {
		own = slices.Concat(own, j.author(), j.outlivedDefinition(), c.Own)
	}
	c.Own = own
	if j.byHand && (nth <= maxByHand || j.Each) {
		c.OwnWays = append(c.OwnWays, j.removal(c.Kind))
	}
}

// outlivedDefinition tells of an instance that is older than its CustomResourceDefinition: that was
// deleted and recreated, and so may have been its controller.
func (j *judgement) outlivedDefinition() []finding.Fact {
	for _, definition := range j.Named(evidence.CRDs.GroupResource(), "", j.n.Resource().GroupResource().String()) {
		made, instance := definition.Object().CreationTimestamp, j.n.Object().CreationTimestamp
		if !made.IsZero() && !instance.IsZero() && instance.Before(&made) {
			return []finding.Fact{finding.FieldSays(definition, "metadata.creationTimestamp", Outlived, made.UTC().Format(time.RFC3339),
				instance.UTC().Format(time.RFC3339))}
		}
	}
	return nil
}

// removal removes the finalizer instead of its controller, the last way out.
func (j *judgement) removal(of finding.Kind) finding.Way {
	known, harmless := "", false
	for _, m := range j.s.Known {
		known, harmless = cmp.Or(m.Leaks, known), m.Harmless
	}
	loss := finding.Lost(remedy.Leaks, graph.Identity{}, LostCleanup)
	if known != "" {
		loss[0].What = say.Plain(known)
	}
	way := rules.RemoveFinalizer(j.n, loss)
	switch {
	case j.s.Field == finalizers.Spec:
		// Only the subresource finalize can. The resourceVersion that the object carries is the guard against changes in between,
		// the name in the entry that against another list.
		way = finding.Does(remedy.Op{Verb: remedy.Finalize, Object: j.n.Identity(), Value: j.s.Finalizer}, RemoveFromSpec)
		way.Loss = loss
	case harmless && (of == finding.FinAbsent || of == finding.FinInNamespace):
		way.Risk = finding.Disruptive
	}
	if len(j.mighty) > 0 {
		var names []say.Text
		for _, fact := range j.mighty {
			names = append(names, fact.Source)
		}
		way.Effect = way.Effect.And(NotExcluded, say.Join(", ", names...))
	}
	return way
}

// author says who set the finalizer, by the object's managed fields.
func (j *judgement) author() []finding.Fact {
	if j.Count("authors") > maxAuthors {
		return nil
	}
	full, err := j.Whole(j.n.Node)
	if err != nil {
		return nil
	}
	var facts []finding.Fact
	for _, e := range full.GetManagedFields() {
		if e.FieldsV1 == nil || !evidence.SetsFinalizer(e.FieldsV1.Raw, j.s.Finalizer) {
			continue
		}
		fact := finding.FieldSays(j.n.Node, "metadata.managedFields", SetBy, e.Manager, string(e.Operation))
		if e.Time != nil {
			fact.Value = fact.Value.And(SetAt, e.Time.UTC().Format(time.RFC3339))
		}
		facts = append(facts, fact)
	}
	return facts
}
