// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/usage"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/write"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// maxByHand is the number of objects for which a cause shows how to remove the
// finalizer by hand.
const maxByHand = 3

// foreign is a finalizer of a controller outside this program. Objects that
// wait for the same share the cause. Behind it may be what keeps the controller from
// running.
func (w *walker) foreign(n graph.Node, index int, finalizer string, list finalizers.Field) []hold {
	resource := n.Resource().GroupResource().String()
	because, of := fmt.Sprintf(ofFinalizer, finalizer), finalizer
	if list == finalizers.Spec {
		because, of = fmt.Sprintf(ofSpecFinalizer, finalizer), ""
	}
	if h, is := w.component(n, finalizer, list); is {
		h.because, h.finalizer = because+": "+h.because, of
		return []hold{h}
	}
	a := w.finder.Find(n, finalizer, list)
	used := w.users(n, a)
	if len(used) > 0 && a.Is == controllers.Served {
		return used
	}
	j := judgement{w, n, a.Search}
	r := j.judge(a)
	if r.next != nil {
		return []hold{{symptom: r.id, because: because + ": " + r.summary, finalizer: of, next: r.next}}
	}
	key, at := r.id.ID+" "+r.key, n.Identity()
	alike := r.at == nil && !n.Resource().IsNamespace()
	switch {
	case n.Resource().IsNamespace():
		key += " " + resource
		r.id = finding.NsMetaFinalizers
		if list == finalizers.Spec {
			r.id = finding.NsSpecFinalizers
		}
	case r.at != nil:
		at = *r.at
	case !r.kinds:
		key += " " + resource
	}
	c := w.shared(key, r.id, at, func(c *Cause) {
		c.Verdict, c.Summary, c.Controller = r.verdict, r.summary, r.controller
		c.Evidence, c.Remedies = r.shared, r.remedies
	})
	j.takeIn(c, index, r)
	if r.kinds && !n.Resource().IsNamespace() {
		w.nameAll(c, finalizer)
	}
	holds := append([]hold{{because: because, finalizer: of, cause: c, alike: alike}}, used...)
	if a.Is == controllers.Unserved {
		for _, root := range write.ForPods(w.rules, a.By.Workload) {
			holds = append(holds, hold{because: because + podsCannotBeMade, finalizer: of, cause: w.caused(root)})
		}
	}
	return holds
}

// users are the objects that use one whose controller waits until none does: they must be deleted, however well
// it works. A controller that must do something else, or does not work, is looked at when none is left.
func (w *walker) users(n graph.Node, a *controllers.Answer) []hold {
	if !a.Waits() || a.Is != controllers.Served && a.Is != controllers.Unclear {
		return nil
	}
	users, unread := w.finder.UsersOf(n, a.Search)
	var holds []hold
	for i := range users[:min(len(users), evidence.MaxShown)] {
		u := &users[i]
		holds = append(holds, w.hold(usage.InUse(n, u.Node, u.Evidence)))
	}
	for _, what := range unread {
		w.evidence.NoteUnread(fmt.Sprintf(usersOf, n.Identity(), what))
	}
	return holds
}

// nameAll adds a finalizer to those of a cause that is one for several.
func (w *walker) nameAll(c *Cause, finalizer string) {
	all := w.served[c]
	if slices.Contains(all, finalizer) {
		return
	}
	all = append(all, finalizer)
	w.served[c] = all
	if len(all) > 1 {
		c.Summary = noController(all...)
	}
}

// takeIn adds the object to those that a cause blocks.
func (j *judgement) takeIn(c *Cause, index int, r ruling) {
	var facts []Evidence
	if j.members[c] < evidence.MaxShown {
		facts = slices.Concat([]Evidence{evidence.Field(j.n, fmt.Sprintf("%s[%d]", j.s.Field, index), j.s.Finalizer)}, j.author(), outlivedDefinition(j.evidence, j.n), r.own)
	}
	members := j.join(c, facts...)
	for _, way := range r.ownRemedies {
		j.offerOnce(c, way)
	}
	if (members <= maxByHand || j.Each) && r.byHand {
		j.offer(c, j.byHand(index, r))
	}
}

// outlivedDefinition tells of an instance that is older than its CustomResourceDefinition: that was
// deleted and recreated, and so may have been its controller.
func outlivedDefinition(facts *evidence.Reader, n graph.Node) []Evidence {
	for _, definition := range facts.Named(evidence.CRDs.GroupResource(), "", n.Resource().GroupResource().String()) {
		made, instance := definition.Object().CreationTimestamp, n.Object().CreationTimestamp
		if !made.IsZero() && !instance.IsZero() && instance.Before(&made) {
			return []Evidence{evidence.Field(definition, "metadata.creationTimestamp", fmt.Sprintf(outlived, made.UTC().Format(time.RFC3339), instance.UTC().Format(time.RFC3339)))}
		}
	}
	return nil
}

// byHand removes the finalizer instead of its controller, the last way out.
func (j *judgement) byHand(index int, r ruling) Remedy {
	known, harmless := "", false
	for _, m := range j.s.Known {
		known, harmless = cmp.Or(m.Leaks, known), m.Harmless
	}
	if j.s.Field == finalizers.Spec {
		// Only the subresource finalize can. The resourceVersion that the object carries is the guard against changes in between,
		// the name in the entry that against another list.
		finalize := remedy.Op{Verb: remedy.Finalize, Object: j.n.Identity(), Value: j.s.Finalizer}
		return Remedy{Risk: Dangerous, Action: j.does(finalize), Effect: removesSpecFinalizer, Loss: leaves(known)}
	}
	by := rules.RemoveFinalizer(rules.Mark{Node: j.n, Index: index, Key: j.s.Finalizer}, nil)
	way := j.remedy(&by)
	way.Loss = leaves(known)
	if harmless && (r.id == finding.FinAbsent || r.id == finding.FinInNamespace) {
		way.Risk = Disruptive
	}
	return way
}

// component is a finalizer that a part of kube-controller-manager removes, of
// which the conditions are not looked at.
func (w *walker) component(n graph.Node, finalizer string, list finalizers.Field) (hold, bool) {
	known := w.finder.Entries(finalizer, n.Resource().GroupVersionKind().GroupKind(), list)
	if len(known) == 0 || known[0].Builtin != finalizers.ControllerManager || !known[0].KindFits {
		return hold{}, false
	}
	name := controllers.Whose(finalizer, known)
	because := fmt.Sprintf(mustRemove, name)
	m := w.rules.Manager()
	if late := w.rules.Late(n); m.Lease != evidence.LeaseFresh || !late {
		return w.hold(w.rules.Turn(n, finding.Kind{}, finding.Plain(because), late)), true
	}
	return hold{because: because, cause: w.shared(finalizer, finding.FinWorking, n.Identity(), func(c *Cause) {
		c.Summary = fmt.Sprintf(notChecked, because, known[0].WaitsFor)
		c.Controller = &Controller{Name: name, Liveness: controllers.Alive, Evidence: append(shown([]finding.Fact{m.Shows}), entryEvidence(known[0])...)}
		c.Evidence = []Evidence{evidence.Field(n, string(list), finalizer)}
	})}, true
}

// maxAuthors is the number of objects that are read for who set a finalizer.
const maxAuthors = 100

// author says who set the finalizer, by the object's managed fields.
func (j *judgement) author() []Evidence {
	if j.authors++; j.authors > maxAuthors {
		return nil
	}
	full, err := j.evidence.Whole(j.n)
	if err != nil {
		return nil
	}
	var facts []Evidence
	for _, entry := range full.GetManagedFields() {
		if entry.FieldsV1 == nil || !evidence.SetsFinalizer(entry.FieldsV1.GetRawBytes(), j.s.Finalizer) {
			continue
		}
		when := ""
		if entry.Time != nil {
			when = " at " + entry.Time.UTC().Format(time.RFC3339)
		}
		facts = append(facts, evidence.Field(j.n, "metadata.managedFields", fmt.Sprintf(setFinalizer, entry.Manager, string(entry.Operation), when)))
	}
	return facts
}
