// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
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
	// Paused: the object says that it is to be left alone, and its controller may obey.
	Paused bool
	// first is Because for when it is.
	first string
}

// outlook is that of a plan in the usual order, or in a safe one.
func (s *Service) outlook(safe bool) Outlook {
	if safe && s.Doomed && !s.Paused {
		return Expected
	}
	return s.Outlook
}

func (s *Service) words(safe bool) string {
	if safe && s.Doomed && !s.Paused {
		return s.first
	}
	return s.Because
}

// services judges the foreign finalizers of all that goes.
func (l *looker) services() []Service {
	var nodes []graph.Node
	for uid := range l.going {
		if n, ok := l.node(uid); ok && slices.ContainsFunc(n.Object().Finalizers, isForeign) {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, graph.Node.Compare)
	var all []Service
	for _, n := range nodes {
		for _, finalizer := range n.Object().Finalizers {
			if isForeign(finalizer) {
				all = append(all, l.service(n, finalizer))
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
		s.By = a.By.ID
	}
	switch a.Is {
	case controllers.Served:
		l.served(&s, n, a)
		l.paused(&s, n)
		l.admitted(&s, n)
	case controllers.Unserved:
		s.Outlook, s.Because = Stuck, fmt.Sprintf("stuck: %s, which has to remove its finalizer %s, does not work: %s", a.By.ID, finalizer, l.now.finder.StateOf(a.By.Workload).Because)
	case controllers.NotAllowed:
		s.Outlook, s.Because = Stuck, fmt.Sprintf("stuck: %s, which has to remove its finalizer %s, may neither update nor patch %s", a.By.ID, finalizer, n.Resource().GroupResource())
	case controllers.Displaced:
		s.Outlook, s.Because = Stuck, fmt.Sprintf("stuck: the %s, which has to remove its finalizer %s, went with its namespace", a.Whose(), finalizer)
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
	if a.By != nil && l.loses(n, a.By.Workload) != "" {
		s.Early = true
	}
	return s
}

// served is a finalizer whose controller works now.
func (l *looker) served(s *Service, n graph.Node, a *controllers.Answer) {
	by := "somebody outside the cluster, who renews a lease,"
	if a.By != nil {
		by = a.By.ID.String()
	}
	when, used := "", false
	for _, m := range a.Known {
		if m.WaitsFor != "" {
			when, used = ", when "+m.WaitsFor, m.WhileUsed != ""
		}
	}
	s.first = fmt.Sprintf("its finalizer %s is removed by %s, which works%s", s.Finalizer, strings.TrimSuffix(by, ","), when)
	if used {
		s.Outlook, s.Because = Unclear, s.first+"; whether that is so was not looked at"
		return
	}
	if a.By == nil {
		s.Because = s.first
		return
	}
	loss := l.loses(n, a.By.Workload)
	switch {
	case loss == "":
		s.Because = s.first
	case l.podsFirst(n, a.By.Workload):
		s.Doomed, s.Outlook = true, Stuck
		s.Because = fmt.Sprintf("stuck: its finalizer %s is served by %s, %s before it", s.Finalizer, by, loss)
	default:
		s.Doomed, s.Outlook = true, Racing
		s.Because = fmt.Sprintf("gets stuck unless it is gone first: its finalizer %s is served by %s, %s", s.Finalizer, by, loss)
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
		s.Doomed = false
		s.worsen(Stuck, fmt.Sprintf("stuck: %s, which has to remove its finalizer %s, leaves it alone while it is told to: %s", s.By, s.Finalizer, p))
	default:
		s.worsen(Racing, fmt.Sprintf("gets stuck if %s, which has to remove its finalizer %s, leaves it alone: %s", s.By, s.Finalizer, p))
		s.Paused = true
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
			if m, ok := l.node(uid); ok && slices.ContainsFunc(m.Object().Finalizers, isForeign) {
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

// loses says what of a controller goes by the plan, empty for nothing that it needs.
func (l *looker) loses(n graph.Node, w *controllers.Workload) string {
	if l.going[w.ID.UID] {
		return "which goes" + l.with(w.ID)
	}
	account := "ServiceAccount/" + w.Account.Namespace + "/" + w.Account.Name
	if id, goes := l.named[account]; goes {
		return "whose " + account + " goes" + l.with(id)
	}
	if !l.now.finder.MayNotChange(w, n) && l.then.finder.MayNotChange(w, n) {
		return "whose rights go with " + strings.Join(l.grantsThatGo(w, n), ", ")
	}
	for _, need := range l.now.finder.Mounts(w) {
		if id, goes := l.named[need]; goes {
			return "whose " + need + " goes" + l.with(id)
		}
	}
	if id, all := l.nodesGo(w); all {
		return "whose last pod is on " + id.String() + ", which goes"
	}
	return ""
}

// with says with what an object goes that no write of the plan is for.
func (l *looker) with(id graph.Identity) string {
	for i := range l.Plan.Report.Steps {
		if l.Plan.Report.Steps[i].Object.UID == id.UID {
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
	for i := range l.Plan.Job.Targets {
		if !l.Plan.Job.Targets[i].Resource.IsNamespace() {
			return false
		}
	}
	return l.Server.PodsFirst() && len(l.Plan.Job.Targets) > 0 && l.going[w.ID.UID] && n.Namespace() != "" && n.Namespace() == w.ID.Namespace && !n.BeingDeleted()
}

// admitted looks at the webhooks that have to allow that the finalizer is removed: one
// that nothing serves then refuses it.
func (l *looker) admitted(s *Service, n graph.Node) {
	for h, serving := range l.now.asker.DeadWebhooks(n, "UPDATE", "") {
		where := fmt.Sprintf("%s must allow every change of it, and nothing answers at Service/%s/%s", h.Config, serving.Namespace, serving.Name)
		if l.going[h.Config.UID] {
			s.worsen(Racing, "gets stuck unless that goes first: "+where)
		} else {
			s.Doomed = false
			s.worsen(Stuck, "stuck: "+where)
		}
		return
	}
	for h, serving := range l.then.asker.DeadWebhooks(n, "UPDATE", "") {
		s.Doomed, s.Early = true, true
		s.worsen(Racing, fmt.Sprintf("gets stuck unless it is gone first: %s must allow every change of it, and what answers at Service/%s/%s goes", h.Config, serving.Namespace, serving.Name))
		return
	}
}

// worsen takes a worse outlook.
func (s *Service) worsen(o Outlook, because string) {
	if o > s.Outlook {
		s.Outlook, s.Because = o, because
	}
}
