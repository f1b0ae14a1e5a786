// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// Outlook is what is to be expected of a finalizer when its object is deleted.
type Outlook int

// The outlooks, the worst last.
const (
	// Expected: a controller works that removes it, and keeps what it needs.
	Expected Outlook = iota
	// Unclear: what could be read does not tell.
	Unclear
	// Racing: its controller goes as well, and who is faster is not known.
	Racing
	// Stuck: nobody will remove it.
	Stuck
)

// FinalizerForecast is what is known of who removes a finalizer.
type FinalizerForecast struct {
	Object    graph.Identity
	Finalizer string
	Outlook   Outlook
	// Why is the reason, in the usual order.
	Why say.Text
	// By is the controller, without a name when none is known.
	By graph.Identity
	// LosesController: its controller works, and goes, or loses what it needs, by the plan. It can do its work when the object is deleted
	// first.
	LosesController bool
	// DeleteFirst: its controller, in whatever state, goes or loses what it needs by the plan. As long as the object is there, that must not
	// happen in a safe order.
	DeleteFirst bool
	// asFirst and first are Outlook and Why for when it is.
	asFirst Outlook
	first   say.Text
	// needs are objects that go, and that have to be there as long as the object is, if DeleteFirst.
	needs []types.UID
	// users are what uses the object, all of which goes.
	users []graph.Identity
	// cyclic: no order keeps them until then.
	cyclic bool
}

// outlook is that of a plan in the usual order, or in a safe one.
func (s *FinalizerForecast) outlook(safe bool) Outlook {
	if safe && s.LosesController && !s.cyclic {
		return s.asFirst
	}
	return s.Outlook
}

// why is the reason for the outlook.
func (s *FinalizerForecast) why(safe bool) say.Text {
	at, args := s.Why.Find(UnlessFirst)
	switch {
	case safe && s.LosesController && s.cyclic && at == 0:
		return say.Of(InAnyOrder, args...)
	case safe && s.LosesController && !s.cyclic:
		return s.first
	}
	return s.Why
}

// mostFinalizers is the number of foreign finalizers of one object that are judged: who removes the others is not known. Nobody needs as
// many; who can write an object can give it tens of thousands.
const mostFinalizers = 100

// services judges the foreign finalizers of all that goes.
func (l *forecaster) services() []FinalizerForecast {
	var nodes []graph.Node
	for uid := range l.going {
		if n, ok := l.node(uid); ok && Foreign(n.Finalizers()) {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, graph.Node.Compare)
	var all []FinalizerForecast
	for _, n := range nodes {
		judged := 0
		for _, finalizer := range n.Object().Finalizers {
			if isForeign(finalizer) && judged < mostFinalizers {
				all = append(all, l.service(n, finalizer))
				judged++
			}
		}
	}
	return all
}

// service judges one finalizer.
func (l *forecaster) service(n graph.Node, finalizer string) FinalizerForecast {
	s := FinalizerForecast{Object: n.Identity(), Finalizer: finalizer}
	a := l.now.finder.Find(n, finalizer, finalizers.Metadata)
	if a.By != nil {
		s.By = a.By.ID()
	}
	var loss deprivation
	if a.By != nil {
		if loss = l.loses(n, a.By.Workload); loss.kind != ofNothing {
			s.DeleteFirst, s.needs = true, l.needs(n, a.By.Workload)
		}
	}
	switch a.Is {
	case controllers.Served:
		l.served(&s, n, a, loss)
		l.doubted(&s, n, a)
		l.paused(&s, n)
		l.needed(&s, n)
		l.admitted(&s, n)
		l.judged(&s, n)
	case controllers.Unserved:
		s.Outlook, s.Why = Stuck, say.Of(StuckBy, say.Of(notWorking, s.By, finalizer, l.now.finder.StateOf(a.By.Workload).Because))
	case controllers.NotAllowed:
		s.Outlook, s.Why = Stuck, say.Of(StuckBy, say.Of(denied, s.By, finalizer, n.Resource().GroupResource()))
	case controllers.NamespaceGone:
		s.Outlook, s.Why = Stuck, say.Of(StuckBy, say.Of(wentWithNamespace, a.Whose(), finalizer))
	case controllers.NoController:
		s.Outlook, s.Why = Stuck, say.Of(StuckBy, say.Of(unclaimed, finalizer))
	case controllers.Manual:
		s.Outlook, s.Why = Stuck, say.Of(StuckBy, say.Of(manual, finalizer, strings.Join(a.Setters, ", ")))
	default:
		if s.Outlook, s.Why = Unclear, say.Of(unknownService, finalizer); !a.Why.IsZero() {
			s.Why = s.Why.And(because, a.Why)
		}
	}
	if a.Is == controllers.Unclear && !l.eachLoses(&s, n, a) {
		l.maybe(&s, n, a)
	}
	if a.Is == controllers.Served || a.Is == controllers.Unclear {
		l.creates(&s, n, a)
	}
	l.lacks(&s, n)
	return s
}

// maybe notes that something goes which may be the controller of a finalizer of which that is not known: as long as the object is there, it
// had better not.
func (l *forecaster) maybe(s *FinalizerForecast, n graph.Node, a *controllers.Answer) {
	var going []graph.Identity
	for _, w := range a.Maybe() {
		if l.loses(n, w).kind != ofNothing && !slices.Contains(going, w.ID()) {
			s.DeleteFirst, s.needs, going = true, append(s.needs, l.needs(n, w)...), append(going, w.ID())
		}
	}
	if len(going) > 0 {
		s.Why = s.Why.And(mightTake, allOf(going))
	}
}

// eachLoses reports whether one of several workloads that work is the controller of a finalizer, and each is to lose something: which it is
// does not matter then.
func (l *forecaster) eachLoses(s *FinalizerForecast, n graph.Node, a *controllers.Answer) bool {
	equals := a.Equals()
	var all []graph.Identity
	var needs []types.UID
	before := true
	for i := range equals {
		w := equals[i].Workload
		if l.loses(n, w).kind == ofNothing {
			return false
		}
		all, needs = append(all, w.ID()), append(needs, l.needs(n, w)...)
		before = before && l.order.lost(n, w, func() []graph.Identity { return l.grantsThatGo(w, n) }).kind != ofNothing
	}
	if len(equals) == 0 {
		return false
	}
	among := allOf(all)
	s.LosesController, s.DeleteFirst, s.needs, s.first = true, true, needs, say.Of(oneWorks, among, s.Finalizer)
	s.Outlook, s.Why = Racing, say.Of(UnlessFirst, say.Of(eachLoses, among, s.Finalizer))
	if before {
		s.Outlook, s.Why = Stuck, say.Of(StuckBy, say.Of(eachLoses, among, s.Finalizer))
	}
	return true
}

// served is a finalizer whose controller works now, and is to lose something.
func (l *forecaster) served(s *FinalizerForecast, n graph.Node, a *controllers.Answer, loss deprivation) {
	when, used := "", false
	for _, m := range a.Known {
		if m.WaitsFor != "" {
			when, used = m.WaitsFor, m.WhileUsed != ""
		}
	}
	s.first = does(s.Finalizer, s.By, when)
	if s.Why = s.first; used {
		l.used(s, n, a, s.first)
	}
	var first deprivation
	if loss.kind != ofNothing {
		first = l.order.lost(n, a.By.Workload, func() []graph.Identity { return l.grantsThatGo(a.By.Workload, n) })
	}
	switch {
	case loss.kind == ofNothing:
	case indirect(a):
		s.LosesController = true
		s.worsen(Unclear, say.Of(UnlessFirst, losing(s.Finalizer, s.By, loss, false)))
	case first.kind != ofNothing:
		s.LosesController, s.Outlook, s.Why = true, Stuck, say.Of(StuckBy, losing(s.Finalizer, s.By, first, true))
	case l.podsFirst(n, a.By.Workload):
		s.LosesController, s.Outlook, s.Why = true, Stuck, say.Of(StuckBy, losing(s.Finalizer, s.By, loss, true))
	default:
		s.LosesController, s.Outlook, s.Why = true, Racing, say.Of(UnlessFirst, losing(s.Finalizer, s.By, loss, false))
	}
}

// creates notes that a controller has to create something in a namespace that goes: the object had better go first.
func (l *forecaster) creates(s *FinalizerForecast, n graph.Node, a *controllers.Answer) {
	id, goes := l.named["Namespace/"+n.Namespace()]
	for _, m := range a.Known {
		what, field, _ := strings.Cut(m.Creates, " if ")
		if what != "" && goes && !n.BeingDeleted() && !l.goesAfter(id.UID, n.UID()) && !l.order.spares(id.UID, n.UID()) && l.isSet(n, field) {
			s.DeleteFirst, s.needs = true, append(s.needs, id.UID)
			if a.Is == controllers.Served {
				s.LosesController = true
				s.worsen(Racing, say.Of(UnlessFirst, say.Of(createsWithin, s.By, s.Finalizer, what, id.Name)))
			}
		}
	}
}

// isSet reports whether a field of an object is true, or could not be read, or none is stated.
func (l *forecaster) isSet(n graph.Node, field string) bool {
	if field == "" {
		return true
	}
	full, err := l.now.evidence.Whole(n)
	if err != nil {
		return true
	}
	set, _, _ := unstructured.NestedBool(full.Object, strings.Split(field, ".")...)
	return set
}

// doubted notes what could not be read of a controller that works.
func (l *forecaster) doubted(s *FinalizerForecast, n graph.Node, a *controllers.Answer) {
	if a.By != nil {
		for _, doubt := range l.now.finder.Doubts(a.By.Workload, n) {
			s.whenever(Unclear, say.Of(MayStick, say.Of(doubted, s.By, s.Finalizer, doubt)))
		}
		if a.By.ID().Resource.Kind == "CronJob" {
			if at, _ := s.first.Find(works, worksWhen); at == 0 && s.first.Len() == 1 {
				s.whenever(Unclear, s.first.And(bySchedule))
			}
		}
	}
	if !l.now.reviewer.Configured() {
		s.whenever(Unclear, say.Of(MayStick, say.Of(webhooksUnread, s.Finalizer)))
	}
}

// paused looks for a word to leave the object alone: its controller may obey.
func (l *forecaster) paused(s *FinalizerForecast, n graph.Node) {
	full, err := l.now.evidence.Whole(n)
	if err != nil {
		return // it is noted as unread
	}
	p, certain := l.now.finder.PauseOf(n, full)
	switch {
	case p == nil:
	case certain:
		s.whenever(Stuck, say.Of(StuckBy, say.Of(pausedBy, s.By, s.Finalizer, p.Text())))
	default:
		s.whenever(Racing, say.Of(ifPausedBy, s.By, s.Finalizer, p.Text()))
	}
}

// loses returns what of a controller goes by the plan while the object still needs it.
func (l *forecaster) loses(n graph.Node, w *controllers.Workload) deprivation {
	goes := func(name string) (graph.Identity, bool) {
		id, is := l.named[name]
		return id, is && !l.goesAfter(id.UID, n.UID()) && !l.order.spares(id.UID, n.UID())
	}
	if l.going[w.ID().UID] && !l.order.spares(w.ID().UID, n.UID()) && !l.goesAfter(w.ID().UID, n.UID()) && !l.leavesPods(w) && !l.replaced(w) {
		return l.goesWith(deprivation{kind: ofItself}, w.ID())
	}
	if id, is := goes(w.Account().ID().String()); is {
		return l.goesWith(deprivation{kind: ofObject}, id)
	}
	if !l.now.finder.MayNotChange(w, n) && l.order.afterwards(n).finder.MayNotChange(w, n) {
		return deprivation{kind: ofRights, what: l.grantsThatGo(w, n)}
	}
	for _, need := range l.now.finder.Mounts(w) {
		if id, is := goes(need); is {
			return l.goesWith(deprivation{kind: ofObject}, id)
		}
	}
	if id, all := l.nodesGo(w); all {
		return deprivation{kind: ofNodes, what: []graph.Identity{id}}
	}
	return deprivation{}
}

// needed looks at what the plan says that the controller needs for the object beside what is its own.
func (l *forecaster) needed(s *FinalizerForecast, n graph.Node) {
	m, _ := l.order.begins(n.UID())
	for _, need := range l.Plan.Job.Needs[n.UID()] {
		id := need.Object
		if !l.going[id.UID] || l.order.spares(id.UID, n.UID()) {
			continue
		}
		s.LosesController, s.DeleteFirst, s.needs = true, true, append(s.needs, id.UID)
		loss := l.goesWith(deprivation{kind: ofNeed}, id)
		if need.Certain && l.order.gone(id.UID, m) {
			s.worsen(Stuck, say.Of(StuckBy, losing(s.Finalizer, s.By, loss, true)))
		} else {
			s.worsen(Racing, say.Of(UnlessFirst, losing(s.Finalizer, s.By, loss, false)))
		}
	}
}

// lacks looks at what the plan says that the controller needs for the object and does not have: in no order does it remove the finalizer.
func (l *forecaster) lacks(s *FinalizerForecast, n graph.Node) {
	for _, need := range l.Plan.Job.Needs[n.UID()] {
		lacks := say.Of(oneNeedsAbsent, s.By, s.Finalizer, need.Object)
		if s.By.Name == "" {
			lacks = say.Of(needsAbsent, s.Finalizer, need.Object)
		}
		switch {
		case need.Absent && need.Certain:
			s.whenever(Stuck, say.Of(StuckBy, lacks))
		case need.Absent:
			s.whenever(Unclear, say.Of(MayStick, lacks))
		}
	}
}

// leavesPods reports whether the pods of a workload that goes are orphaned, and work on.
func (l *forecaster) leavesPods(w *controllers.Workload) bool {
	_, namespace := l.named["Namespace/"+w.ID().Namespace]
	return l.Plan.Job.Policy == metav1.DeletePropagationOrphan && !namespace && !w.IsPod()
}

// replaced reports whether a workload is a pod in the place of which its controller, which stays, makes another.
func (l *forecaster) replaced(w *controllers.Workload) bool {
	n, ok := l.node(w.ID().UID)
	if !ok || !w.IsPod() || !l.remade(n.UID()) {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: n.Object().OwnerReferences})
	controller, known := l.node(owner.UID)
	return known && !controller.BeingDeleted() && simulator.Replaces(controller.Resource().GroupVersionKind().GroupKind(),
		n.Resource().GroupVersionKind().GroupKind())
}

// needs are the objects that go by the plan and without which a controller cannot, or may not be able to, change an object.
func (l *forecaster) needs(n graph.Node, w *controllers.Workload) []types.UID {
	needs := []types.UID{w.ID().UID}
	for _, grant := range l.grantsThatGo(w, n) {
		needs = append(needs, grant.UID)
	}
	names := append([]string{w.Account().ID().String()}, l.now.finder.Mounts(w)...)
	for _, node := range l.now.finder.NodesOf(w) {
		names = append(names, "Node/"+node)
	}
	for _, name := range names {
		if id, goes := l.named[name]; goes {
			needs = append(needs, id.UID)
		}
	}
	return needs
}

// goesWith adds which object goes, and by which write of the plan, or with what if none is for it. The writes of a safe order are not known
// yet.
func (l *forecaster) goesWith(d deprivation, id graph.Identity) deprivation {
	d.what = []graph.Identity{id}
	if d.step = l.order.step(id.UID); d.step > 0 {
		return d
	}
	for i := range l.Plan.Report.Steps {
		if l.Plan.Report.Steps[i].Object.UID == id.UID {
			if !l.Safe {
				d.step = i + 1
			}
			return d
		}
	}
	if namespace, goes := l.named["Namespace/"+id.Namespace]; goes {
		d.with = namespace
	}
	return d
}

// grantsThatGo are the bindings and roles that go and that let a controller change the object.
func (l *forecaster) grantsThatGo(w *controllers.Workload, n graph.Node) (all []graph.Identity) {
	for _, by := range l.now.finder.GrantedBy(w, n) {
		if id, goes := l.named[by.String()]; goes && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

// nodesGo reports whether all nodes go on which the controller has pods.
func (l *forecaster) nodesGo(w *controllers.Workload) (first graph.Identity, all bool) {
	on := l.now.finder.NodesOf(w)
	for _, name := range on {
		id, goes := l.named["Node/"+name]
		if !goes {
			return graph.Identity{}, false
		}
		first = id
	}
	return first, len(on) > 0
}

// podsFirst reports whether the controller has certainly gone when the object's deletion begins: nothing but namespaces is deleted by the
// plan itself, both are in one of them, and it is emptied of its pods before all else.
func (l *forecaster) podsFirst(n graph.Node, w *controllers.Workload) bool {
	return l.Server.PodsFirst() && l.onlyNamespaces() && l.going[w.ID().UID] && n.Namespace() != "" &&
		n.Namespace() == w.ID().Namespace && !n.BeingDeleted()
}

// onlyNamespaces reports whether the plan itself deletes nothing else.
func (l *forecaster) onlyNamespaces() bool {
	targets := l.Plan.Job.Targets
	return len(targets) > 0 && !slices.ContainsFunc(targets, func(id graph.Identity) bool { return !id.Resource.IsNamespace() })
}

// admitted looks at the webhooks that have to allow that the finalizer is removed: one that nothing serves then refuses it.
func (l *forecaster) admitted(s *FinalizerForecast, n graph.Node) {
	for h, certain := range l.now.reviewer.Refusing(n, "UPDATE", "") {
		at := h.ClientConfig.Service
		service := evidence.Identity(evidence.Services, at.Namespace, at.Name)
		outlook, asked := Racing, must
		if !certain {
			outlook, asked = Unclear, mightHaveTo
		}
		goes, serving := l.going[h.Config.UID], l.now.reviewer.ServingOf(h)
		switch dead := serving.Dead; {
		case dead && goes:
			s.LosesController = true
			s.worsen(outlook, say.Of(silentUntilGone, h.Config, asked, service))
		case dead && certain:
			s.whenever(Stuck, say.Of(StuckBy, say.Of(silentNow, h.Config, service)))
		case dead:
			s.whenever(Unclear, say.Of(silentIfAsked, h.Config, service))
		case goes:
		case serving.Unread:
			s.whenever(Unclear, say.Of(silentIfUnread, h.Config, service))
			fallthrough
		default:
			if silenced, sure := l.silenced(at.Namespace, at.Name); silenced {
				l.refused(s, service)
				if !sure {
					outlook = Unclear
				}
				s.worsen(outlook, say.Of(UnlessFirst, say.Of(silentByThePlan, h.Config, asked, service)))
			}
		}
	}
}

// refused notes that the object has to go before what answers at a service.
func (l *forecaster) refused(s *FinalizerForecast, service graph.Identity) {
	s.LosesController, s.DeleteFirst = true, true
	s.needs = append(s.needs, l.now.reviewer.Behind(service.Namespace, service.Name)...)
	if id, goes := l.named[service.String()]; goes {
		s.needs = append(s.needs, id.UID)
	}
}

// whenever takes a worse outlook that holds in whatever order.
func (s *FinalizerForecast) whenever(o Outlook, why say.Text) {
	s.worsen(o, why)
	if o > s.asFirst {
		s.asFirst, s.first = o, why
	}
}

// worsen takes a worse outlook that holds in the usual order.
func (s *FinalizerForecast) worsen(o Outlook, why say.Text) {
	if o > s.Outlook {
		s.Outlook, s.Why = o, why
	}
}
