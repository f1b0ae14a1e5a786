// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// unlessFirst begins what is said of an object that goes only before something else.
const unlessFirst = "gets stuck unless it is gone first: "

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

// Service is what is known of who removes a finalizer.
type Service struct {
	Object    graph.Identity
	Finalizer string
	Outlook   Outlook
	// Because says it in a sentence.
	Because string
	// By is the controller, without a name when none is known.
	By graph.Identity
	// Doomed: its controller works, and goes, or loses what it needs, by the plan. It
	// can do its work when the object is deleted first.
	Doomed bool
	// Early: its controller, in whatever state, goes or loses what it needs by the plan.
	// As long as the object is there, that must not happen in a safe order.
	Early bool
	// asFirst and first are Outlook and Because for when it is.
	asFirst Outlook
	first   string
	// needs are objects that go and that have to be there as long as the object is, if
	// it is Early.
	needs []types.UID
	// tangled: in no order are they.
	tangled bool
}

// outlook is that of a plan in the usual order, or in a safe one.
func (s *Service) outlook(safe bool) Outlook {
	if safe && s.Doomed && !s.tangled {
		return s.asFirst
	}
	return s.Outlook
}

func (s *Service) words(safe bool) string {
	switch {
	case safe && s.Doomed && s.tangled:
		return strings.Replace(s.Because, unlessFirst, "may get stuck in any order: ", 1)
	case safe && s.Doomed:
		return s.first
	}
	return s.Because
}

// mostFinalizers is the number of foreign finalizers of one object that are judged: who
// removes the others is not known. Nobody needs as many; who can write an object can give
// it tens of thousands.
const mostFinalizers = 100

// services judges the foreign finalizers of all that goes.
func (l *looker) services() []Service {
	var nodes []graph.Node
	for uid := range l.going {
		if n, ok := l.node(uid); ok && Foreign(n.Finalizers()) {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, graph.Node.Compare)
	var all []Service
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
func (l *looker) service(n graph.Node, finalizer string) Service {
	s := Service{Object: n.Identity(), Finalizer: finalizer}
	a := l.now.finder.Find(n, finalizer, finalizers.Metadata)
	if a.By != nil {
		s.By = a.By.ID()
	}
	loss := ""
	if a.By != nil {
		if loss = l.loses(n, a.By.Workload); loss != "" {
			s.Early, s.needs = true, l.needs(n, a.By.Workload)
		}
	}
	switch a.Is {
	case controllers.Served:
		l.served(&s, n, a, loss)
		l.doubted(&s, n, a)
		l.paused(&s, n)
		l.admitted(&s, n)
		l.judged(&s, n)
	case controllers.Unserved:
		s.Outlook, s.Because = Stuck, fmt.Sprintf("stuck: %s, which has to remove its finalizer %s, does not work: %s", a.By.ID(), finalizer, l.now.finder.StateOf(a.By.Workload).Because)
	case controllers.NotAllowed:
		s.Outlook, s.Because = Stuck, fmt.Sprintf("stuck: %s, which has to remove its finalizer %s, may neither update nor patch %s", a.By.ID(), finalizer, n.Resource().GroupResource())
	case controllers.Displaced:
		s.Outlook, s.Because = Stuck, fmt.Sprintf("stuck: %s, which has to remove its finalizer %s, went with its namespace", a.Whose(), finalizer)
	case controllers.Unclaimed:
		s.Outlook, s.Because = Stuck, fmt.Sprintf("stuck: nothing in the cluster removes its finalizer %s", finalizer)
	case controllers.Manual:
		s.Outlook, s.Because = Stuck, fmt.Sprintf("stuck: a person set its finalizer %s (%s), and nothing in the cluster removes it", finalizer, strings.Join(a.Setters, ", "))
	default:
		s.Outlook, s.Because = Unclear, fmt.Sprintf("whether a controller removes its finalizer %s is not known", finalizer)
		if a.Why != "" {
			s.Because += ": " + a.Why
		}
	}
	if a.Is == controllers.Unclear {
		l.maybe(&s, n, a)
	}
	return s
}

// maybe notes that something goes which may be the controller of a finalizer of which that
// is not known: as long as the object is there, it had better not.
func (l *looker) maybe(s *Service, n graph.Node, a *controllers.Answer) {
	var going []string
	for _, w := range a.Maybe() {
		if name := w.ID().String(); l.loses(n, w) != "" && !slices.Contains(going, name) {
			s.Early, s.needs, going = true, append(s.needs, l.needs(n, w)...), append(going, name)
		}
	}
	if len(going) > 0 {
		s.Because += "; and the plan takes away " + strings.Join(going, ", ") + ", or what it needs"
	}
}

// served is a finalizer whose controller works now, and is to lose something.
func (l *looker) served(s *Service, n graph.Node, a *controllers.Answer, loss string) {
	by := "somebody outside the cluster, who renews a lease,"
	if a.By != nil {
		by = a.By.ID().String()
	}
	when, used := "", false
	for _, m := range a.Known {
		if m.WaitsFor != "" {
			when, used = ", when "+m.WaitsFor, m.WhileUsed != ""
		}
	}
	s.first = fmt.Sprintf("its finalizer %s is removed by %s, which works%s", s.Finalizer, strings.TrimSuffix(by, ","), when)
	s.Because = s.first
	if used {
		s.whenever(Unclear, s.first+"; whether that is so was not looked at")
	}
	if a.By == nil {
		return
	}
	switch {
	case loss == "":
	case l.podsFirst(n, a.By.Workload):
		s.Doomed, s.Outlook = true, Stuck
		s.Because = fmt.Sprintf("stuck: its finalizer %s is served by %s, %s before it", s.Finalizer, by, loss)
	default:
		s.Doomed, s.Outlook = true, Racing
		s.Because = fmt.Sprintf(unlessFirst+"its finalizer %s is served by %s, %s", s.Finalizer, by, loss)
	}
}

// doubted notes what could not be read of a controller that works.
func (l *looker) doubted(s *Service, n graph.Node, a *controllers.Answer) {
	if a.By != nil {
		for _, doubt := range l.now.finder.Doubts(a.By.Workload, n) {
			s.whenever(Unclear, fmt.Sprintf("may get stuck: its finalizer %s is served by %s, and %s", s.Finalizer, a.By.ID(), doubt))
		}
		if a.By.ID().Resource.Kind == "CronJob" {
			s.whenever(Unclear, s.first+"; but only when it runs next, by its schedule")
		}
	}
	if !l.now.asker.Configured() {
		s.whenever(Unclear, fmt.Sprintf("may get stuck: whether a webhook has to allow that its finalizer %s is removed could not be read", s.Finalizer))
	}
}

// paused looks for a word to leave the object alone: its controller may obey.
func (l *looker) paused(s *Service, n graph.Node) {
	full, err := l.whole(n)
	if err != nil {
		return // it is noted as unread
	}
	p, certain := l.now.finder.PauseOf(n, full)
	switch {
	case p == nil:
	case certain:
		s.whenever(Stuck, fmt.Sprintf("stuck: %s, which has to remove its finalizer %s, leaves it alone while it is told to: %s", s.By, s.Finalizer, p))
	default:
		s.whenever(Racing, fmt.Sprintf("gets stuck if %s, which has to remove its finalizer %s, leaves it alone: %s", s.By, s.Finalizer, p))
	}
}

// maxWhole is the number of objects of a type up to which each is read by itself.
const maxWhole = 20

// whole reads the whole of an object: of many of a type all at once.
func (l *looker) whole(n graph.Node) (*unstructured.Unstructured, error) {
	resource := n.Resource().GroupVersionResource
	if l.held == nil {
		l.held = map[schema.GroupVersionResource]int{}
		for uid := range l.going {
			if m, ok := l.node(uid); ok && Foreign(m.Finalizers()) {
				l.held[m.Resource().GroupVersionResource]++
			}
		}
	}
	if l.held[resource] > maxWhole {
		if _, err := l.now.evidence.List(resource, ""); err != nil {
			return nil, err
		}
	}
	return l.now.evidence.Whole(n)
}

// loses says what of a controller goes by the plan while the object still needs it, empty
// for nothing.
func (l *looker) loses(n graph.Node, w *controllers.Workload) string {
	goes := func(name string) (graph.Identity, bool) {
		id, is := l.named[name]
		return id, is && !l.goesAfter(id.UID, n.UID())
	}
	if l.going[w.ID().UID] && !l.goesAfter(w.ID().UID, n.UID()) && !l.leavesPods(w) && !l.replaced(w) {
		return "which goes" + l.with(w.ID())
	}
	account := w.Account().String()
	if id, is := goes(account); is {
		return "whose " + account + " goes" + l.with(id)
	}
	if !l.now.finder.MayNotChange(w, n) && l.then.finder.MayNotChange(w, n) {
		return "whose rights go with " + strings.Join(l.grantsThatGo(w, n), ", ")
	}
	for _, need := range l.now.finder.Mounts(w) {
		if id, is := goes(need); is {
			return "whose " + need + " goes" + l.with(id)
		}
	}
	if id, all := l.nodesGo(w); all {
		return "whose last pod is on " + id.String() + ", which goes"
	}
	return ""
}

// leavesPods reports whether the pods of a workload that goes are orphaned, and work on.
func (l *looker) leavesPods(w *controllers.Workload) bool {
	_, namespace := l.named["Namespace/"+w.ID().Namespace]
	return l.Plan.Job.Policy == metav1.DeletePropagationOrphan && !namespace && !w.IsPod()
}

// replaced reports whether a workload is a pod in the place of which its controller, which
// stays, makes another.
func (l *looker) replaced(w *controllers.Workload) bool {
	n, ok := l.node(w.ID().UID)
	if !ok || !w.IsPod() || !l.remade(n.UID()) {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: n.Object().OwnerReferences})
	controller, known := l.node(owner.UID)
	return known && !controller.BeingDeleted() && simulator.Replaces(controller.Resource().GroupVersionKind().GroupKind(), n.Resource().GroupVersionKind().GroupKind())
}

// needs are the objects that go by the plan and without which a controller cannot, or may
// not be able to, change an object.
func (l *looker) needs(n graph.Node, w *controllers.Workload) []types.UID {
	needs := []types.UID{w.ID().UID}
	names := slices.Concat([]string{w.Account().String()}, l.grantsThatGo(w, n), l.now.finder.Mounts(w))
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

// with says by which write of the plan an object goes, or with what if none is for it. The
// writes of a safe order are not known yet.
func (l *looker) with(id graph.Identity) string {
	for i := range l.Plan.Report.Steps {
		if l.Plan.Report.Steps[i].Object.UID == id.UID {
			if l.Safe {
				return ""
			}
			return fmt.Sprintf(" (step %d)", i+1)
		}
	}
	if namespace, goes := l.named["Namespace/"+id.Namespace]; goes {
		return " with " + namespace.String()
	}
	return ""
}

// grantsThatGo names the bindings and roles that go and that let a controller change
// the object.
func (l *looker) grantsThatGo(w *controllers.Workload, n graph.Node) []string {
	var names []string
	for _, name := range l.now.finder.GrantedBy(w, n) {
		if _, goes := l.named[name]; goes && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// nodesGo reports whether all nodes go on which the controller has pods.
func (l *looker) nodesGo(w *controllers.Workload) (first graph.Identity, all bool) {
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

// podsFirst reports whether the controller has certainly gone when the object's
// deletion begins: nothing but namespaces is deleted by the plan itself, both are in one
// of them, and it is emptied of its pods before all else.
func (l *looker) podsFirst(n graph.Node, w *controllers.Workload) bool {
	return l.Server.PodsFirst() && l.onlyNamespaces() && l.going[w.ID().UID] && n.Namespace() != "" && n.Namespace() == w.ID().Namespace && !n.BeingDeleted()
}

// onlyNamespaces reports whether the plan itself deletes nothing else.
func (l *looker) onlyNamespaces() bool {
	targets := l.Plan.Job.Targets
	return len(targets) > 0 && !slices.ContainsFunc(targets, func(id graph.Identity) bool { return !id.Resource.IsNamespace() })
}

// admitted looks at the webhooks that have to allow that the finalizer is removed: one
// that nothing serves then refuses it.
func (l *looker) admitted(s *Service, n graph.Node) {
	for h, certain := range l.now.asker.Refusing(n, "UPDATE", "") {
		at := h.ClientConfig.Service
		service := evidence.Identity(evidence.Services, at.Namespace, at.Name).String()
		outlook, must := Racing, "must"
		if !certain {
			outlook, must = Unclear, "may have to"
		}
		goes, serving := l.going[h.Config.UID], l.now.asker.ServingOf(h)
		switch dead := serving.Dead; {
		case dead && goes:
			s.Doomed = true
			s.worsen(outlook, fmt.Sprintf("gets stuck unless that goes first: %s %s allow every change of it, and nothing answers at %s", h.Config, must, service))
		case dead && certain:
			s.whenever(Stuck, fmt.Sprintf("stuck: %s must allow every change of it, and nothing answers at %s", h.Config, service))
		case dead:
			s.whenever(Unclear, fmt.Sprintf("gets stuck if %s has to allow every change of it: nothing answers at %s", h.Config, service))
		case goes:
		case serving.Unread:
			s.whenever(Unclear, fmt.Sprintf("gets stuck if %s has to allow every change of it, and nothing answers at %s, which could not be read", h.Config, service))
			fallthrough
		default:
			if silenced, sure := l.silenced(at.Namespace, at.Name); silenced {
				l.refused(s, service, at.Namespace, at.Name)
				if !sure {
					outlook = Unclear
				}
				s.worsen(outlook, fmt.Sprintf(unlessFirst+"%s %s allow every change of it, and what answers at %s goes", h.Config, must, service))
			}
		}
	}
}

// refused notes that the object has to go before what answers at a service.
func (l *looker) refused(s *Service, service, namespace, name string) {
	s.Doomed, s.Early = true, true
	s.needs = append(s.needs, l.now.asker.Behind(namespace, name)...)
	if id, goes := l.named[service]; goes {
		s.needs = append(s.needs, id.UID)
	}
}

// whenever takes a worse outlook that holds in whatever order.
func (s *Service) whenever(o Outlook, because string) {
	s.worsen(o, because)
	if o > s.asFirst {
		s.asFirst, s.first = o, because
	}
}

// worsen takes a worse outlook that holds in the usual order.
func (s *Service) worsen(o Outlook, because string) {
	if o > s.Outlook {
		s.Outlook, s.Because = o, because
	}
}
