// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Finder finds out who removes a finalizer from an object, and whether that works.
// It looks at everything once, and creates no cause. It is for one goroutine. It is made of
// what there is, who works, who is named, and what objects name; it owns the choice among these.
type Finder struct {
	evidence *evidence.Reader
	*roster
	*liveness
	*searcher
	*references
	// able are the workloads that may change some object of a type.
	able map[schema.GroupResource][]*Workload
	// latest are the field managers of the object that was asked about last.
	latest fieldManagers
}

// New returns a Finder that looks where the reader does, and at the workloads of that
// cluster. unmade says what shows that
// no controller manager works that would make pods, nil when one may.
func New(reader *evidence.Reader, workloads *Workloads, catalogue *finalizers.Catalogue, unmade func() []evidence.Fact) *Finder {
	all := &roster{evidence: reader, workloads: workloads}
	return &Finder{
		evidence:   reader,
		roster:     all,
		liveness:   &liveness{roster: all, unmade: unmade, states: map[graph.Identity]State{}},
		searcher:   &searcher{roster: all, catalogue: catalogue, searches: map[string]*Search{}, managers: map[string]managers{}},
		references: &references{evidence: reader},
		able:       map[schema.GroupResource][]*Workload{},
	}
}

// Situation is how things stand about the finalizer of an object.
type Situation int

// The situations.
const (
	// Unclear says that what could be read does not tell.
	Unclear Situation = iota
	// Served says that a controller works that removes it.
	Served
	// NotAllowed says that its controller may not change the object, and is not dead.
	NotAllowed
	// Unserved says that its controller, or what that needs beside it, does not run.
	Unserved
	// NamespaceGone says that its controller goes, or went, down with a namespace.
	NamespaceGone
	// NoController says that nothing in the cluster serves it.
	NoController
	// Manual says that a person set it, and nothing in the cluster serves it.
	Manual
)

// Answer is what is found about the finalizer of one object.
type Answer struct {
	*Search
	Choice
	Is Situation
	// By is the controller, or what that needs. It is nil when nothing of it is
	// left, when nobody serves the finalizer, and for one outside the cluster that
	// renews a lease.
	By *Candidate
	// Helped: By is what the controller needs, which works itself.
	Helped bool
	// Why says what makes it unclear.
	Why say.Text
	// Called is a workload that is called as the controller, and has no right at all to such objects; nil for none.
	Called *Candidate
	// Gone is the object that the finalizer names, without which its controller leaves it alone, if that does not exist; nil otherwise.
	Gone *graph.Identity
	// might are those of which nothing tells but that they could.
	might []*Workload
}

// Others returns the candidates that do not run either, and of which one may be the
// controller in the place of By.
func (a *Answer) Others() []*Contender {
	var others []*Contender
	for i := range a.Among[:min(len(a.Among), evidence.MaxShown)] {
		if k := &a.Among[i]; k.Candidate != a.best.Candidate && k.how == down && k.against.IsZero() && k.rivals() && !a.best.beats(k) {
			others = append(others, k)
		}
	}
	return others
}

// Equals returns the candidates of which one is the controller, all of which work;
// none when it may be another.
func (a *Answer) Equals() []Contender {
	if len(a.tied) < 2 || slices.ContainsFunc(a.Among, func(k Contender) bool { return k.rivals() }) {
		return nil
	}
	return a.tied
}

// Guessed reports whether nothing but its rights points at the one that does not run: to start it is no first step.
func (a *Answer) Guessed() bool {
	return a.best != nil && a.best.how == down && !a.best.against.IsZero()
}

// Went returns the namespace with which the controller went, empty for none, and what
// shows it.
func (s *Search) Went() (namespace string, shown []evidence.Fact) {
	if len(s.lost) > 0 {
		for _, g := range s.lost[:min(len(s.lost), evidence.MaxShown)] {
			shown = append(shown, g.evidence())
		}
		return s.lost[0].subject.Namespace, shown
	}
	if len(s.lostServices) > 0 {
		_, service := s.lostServices[0].Value.Find(serviceLeaving)
		return service[0].(graph.Identity).Namespace, slices.Clip(s.lostServices[:min(len(s.lostServices), evidence.MaxShown)])
	}
	return "", nil
}

// MayNotChange reports whether RBAC provably lets a workload neither update nor patch
// an object.
func (f *Finder) MayNotChange(l *Workload, n graph.Node) bool {
	id, rights := n.Identity(), f.rights()
	return !f.otherwise(l) && len(rights.unread) == 0 && !rights.mayChange(l.Account(), id.Resource.GroupResource(), id.Namespace, id.Name)
}

// Identified reports whether something else points at the controller than types below the finalizer's domain: a company has several
// operators.
func (f *roster) Identified(a *Answer) bool {
	definition := func(e evidence.Fact) bool {
		id, is := e.Object()
		return is && id.Resource.IsCRD() && strings.HasSuffix(id.Name, "."+a.resource.Group)
	}
	return slices.ContainsFunc(a.By.Signs, definition) || a.By.identified || a.By.Named || len(a.Known) > 0 ||
		slices.ContainsFunc(a.groups, func(of schema.GroupResource) bool {
			return (of.Group == a.resource.Group || len(of.Group) <= len(finalizers.Domain(a.Finalizer))) && f.rights().states(a.By.Account(), of)
		})
}

// Says says for people what RBAC lets a workload do with an object.
func (f *Finder) Says(l *Workload, n graph.Node) say.Text {
	id := n.Identity()
	return f.rights().said(l.Account(), id.Resource.GroupResource(), id.Namespace, id.Name)
}

// Find says who should remove a finalizer from an object.
func (f *Finder) Find(n graph.Node, finalizer string, list finalizers.Field) *Answer {
	s := f.search(n, finalizer, list)
	ch := f.choose(n, s)
	a := &Answer{Search: s, Choice: ch, By: ch.controller()}
	a.Is, a.Why = f.weigh(n, a)
	return a
}

// Candidates returns the workloads of which something tells that they may be the controller of a
// finalizer on the objects of a node's type and namespace, or, where nothing does, those that
// could be. The object itself is not read.
func (f *Finder) Candidates(n graph.Node, finalizer string) []*Workload {
	var workloads []*Workload
	s := f.search(n, finalizer, finalizers.Metadata)
	for _, p := range f.prospects(s, n.Namespace()) {
		workloads = append(workloads, p.Workload)
	}
	if len(workloads) == 0 {
		return f.possible(n, s)
	}
	return workloads
}

// Server returns the workload that works and serves the type of an object: the one that calls itself as
// the program does, or else the only one that has a rule for the type. It is nil when neither tells.
func (f *Finder) Server(n graph.Node, program string) (_ *Workload, named bool) {
	var serving []*Workload
	for _, l := range f.inventory().workloads {
		called := program != "" && l.calledBy(program) && f.rights().knows(l.Account(), n.Resource().GroupResource(), nil)
		if !called && !f.rights().states(l.Account(), n.Resource().GroupResource()) || f.StateOf(l).Liveness == Dead {
			continue
		}
		if called {
			return l, true
		}
		serving = append(serving, l)
	}
	if len(serving) == 1 {
		return serving[0], false
	}
	return nil, false
}

// weigh takes what the candidates tell together with all else.
func (f *Finder) weigh(n graph.Node, a *Answer) (Situation, say.Text) {
	s := a.Search
	if !f.justDeleted(n) {
		if a.Gone = f.namedGone(n, s); a.Gone != nil {
			return NoController, say.Text{}
		}
	}
	switch a.how {
	case works:
		if helper := f.helper(n, s); helper != nil {
			a.By, a.Helped = helper, true
			return Unserved, say.Text{}
		}
		if a.might = f.closer(n, a); len(a.might) > 0 {
			return Unclear, say.Of(undecidedAmong, say.Join(", ", append(f.saidOf(a.might), a.best.said())...))
		}
		return Served, say.Text{}
	case mayNot:
		return NotAllowed, say.Text{}
	case down:
		return f.weighDown(n, a)
	case nobody:
		if s.OrphanLease != nil {
			return Served, say.Text{}
		}
		return f.withoutCandidates(n, a)
	}
	switch {
	case a.best.how == apart:
		return Unclear, f.ofAnother(n, a)
	case a.best.how == mayNot || !a.best.against.IsZero(): // nothing ties it, and it may hide one that has no rule for the type
		a.might = slices.DeleteFunc(slices.Clone(f.possible(n, s)), func(l *Workload) bool {
			return slices.ContainsFunc(a.Among, func(k Contender) bool { return k.Workload == l })
		})
	}
	if a.best.how == mayNot && len(a.might) > 0 && !a.best.Lacks() {
		a.Among = nil
		return Unclear, say.Of(ownerUnknown, f.namesOf(a.might))
	}
	return Unclear, a.undecided(f.saidOf(a.might)...)
}

// weighDown is weigh for a controller that does not run. That it is called so is no proof where somebody lives or has rights
// who cannot be seen from here.
func (f *Finder) weighDown(n graph.Node, a *Answer) (Situation, say.Text) {
	s, c := a.Search, a.By
	if s.OrphanLease != nil {
		return Unclear, a.undecided().And(andStrangersLease)
	}
	if who := s.cannotBeSeen(n); !c.Named && !who.IsZero() {
		return Unclear, a.undecided().And("; ").Then(who)
	}
	a.might = f.deputies(s, c)
	if i := slices.IndexFunc(a.might, func(l *Workload) bool {
		return l.IsPod() && (l.runsAs(c.Workload) || !l.personal()) && f.StateOf(l).Liveness == Alive
	}); i >= 0 {
		a.By = &Candidate{Workload: a.might[i], Signs: c.Signs}
		return Served, say.Text{}
	}
	if len(a.might) == 0 && !c.Named && !c.similar(s) {
		a.might = slices.DeleteFunc(slices.Clone(f.possible(n, s)), func(l *Workload) bool { return f.StateOf(l).Liveness == Dead })
	}
	if len(a.might) > 0 {
		return Unclear, say.Of(deadOrPossible, described(c.Workload, Dead), f.namesOf(a.might))
	}
	if f.evidence.Ending(c.namespace) {
		return NamespaceGone, say.Text{}
	}
	return Unserved, say.Text{}
}

// withoutCandidates is a finalizer for which no workload was found.
func (f *Finder) withoutCandidates(n graph.Node, a *Answer) (Situation, say.Text) {
	s := a.Search
	if why := f.doubt(n, s); !why.IsZero() {
		return Unclear, why
	}
	a.Called = f.namesake(s)
	a.might = f.possible(n, s)
	switch {
	case len(a.might) > 0 && len(s.Known) > 0:
		return Unclear, say.Of(noKnownWorkload, s.Whose(), f.namesOf(a.might))
	case len(a.might) > 0:
		return Unclear, say.Of(ownerUnknown, f.namesOf(a.might))
	case a.Called != nil:
		return Unclear, say.Of(calledSoWithoutRights, described(a.Called.Workload, f.StateOf(a.Called.Workload).Liveness),
			s.resource.GroupResource())
	case f.justDeleted(n):
		return Unclear, say.Of(justDeleted)
	case f.inEnding(n, s):
		return NamespaceGone, say.Text{}
	case s.byPerson():
		return Manual, say.Text{}
	}
	return NoController, say.Text{}
}

// justDeleted reports whether the deletion of an object was requested so lately that who removes its finalizers may not be known yet.
func (f *Finder) justDeleted(n graph.Node) bool {
	return n.BeingDeleted() && f.evidence.Now.Sub(evidence.Requested(n.Object())) < Settling
}

// namesake returns a workload that is called as the controller, and may have lost all its rights; nil for none. One that serves
// others is another's.
func (f *Finder) namesake(s *Search) *Candidate {
	for _, c := range s.namesakes {
		called := slices.ContainsFunc(c.Signs, func(e evidence.Fact) bool { return e.Path != nameLabels && slices.Contains(names, e.Path) })
		if (called || c.kindred(s, false, false)) && !f.MayServe(c.Account()) {
			return c
		}
	}
	return nil
}

// helper returns a workload without which the controller gets nowhere, by the
// catalogue, and that does not work; nil for none.
func (f *Finder) helper(n graph.Node, s *Search) *Candidate {
	for _, m := range s.Known {
		for _, usual := range m.Helpers {
			for _, l := range f.inventory().workloads {
				if usual.Is(l.resource.Kind, l.namespace, l.name, n.Namespace()) && f.StateOf(l).Liveness == Dead && len(f.inventory().unread) == 0 {
					return &Candidate{Workload: l, score: strongSign, Named: true, identified: true,
						Signs: []evidence.Fact{evidence.At(l.ID(), "metadata.name", say.Of(mustRunBeside, s.Whose()))}}
				}
			}
		}
	}
	return nil
}

// Whose names the controller for a sentence.
func (s *Search) Whose() say.Text { return Whose(s.Finalizer, s.Known) }

// Whose names the controller of a finalizer of which the catalogue has these entries, with an
// article where it is no name of a product.
func Whose(finalizer string, known []finalizers.Match) say.Text {
	if len(known) == 0 {
		return say.Of(ControllerOf, finalizer)
	}
	m := known[0]
	name := strings.TrimPrefix(strings.TrimPrefix(cmp.Or(m.Controller, "controller"), "an "), "the ")
	switch {
	case strings.EqualFold(name, m.Product):
		return say.Plain(m.Product)
	case strings.Contains(strings.ToLower(name), strings.ToLower(m.Product)), strings.HasPrefix(m.Product, name):
		return called(name)
	}
	return called(name + " of " + m.Product)
}

// called is a controller by what the catalogue calls it.
func called(controller string) say.Text {
	if of, unnamed := strings.CutPrefix(controller, "controller of "); unnamed {
		return say.Of(ControllerOf, of)
	}
	return say.Of(theController, controller)
}

// Operator names what serves more than one finalizer: the controller of a product, or whoever serves the
// API group of the type; it is empty when neither is known.
func (s *Search) Operator() string {
	for _, m := range s.Known {
		if len(m.Workloads) > 0 {
			return "of " + m.Product + " " + m.Controller
		}
	}
	if s.own {
		return "of " + s.resource.Group
	}
	return ""
}

// SetByPeople reports whether only people set the finalizer, and it is that of no product that is known, of no API group in the
// cluster, and not one of whoever serves the type.
func (s *Search) SetByPeople() bool {
	domain := finalizers.Domain(s.Finalizer)
	return len(s.Known) == 0 && !s.own && len(s.Setters) > 0 && !slices.ContainsFunc(s.Setters, func(m string) bool { return !isPerson(m) }) &&
		!slices.ContainsFunc(s.groups, func(g schema.GroupResource) bool { return g.Group == domain })
}

// byPerson reports whether, besides, no API group of its domain is there.
func (s *Search) byPerson() bool { return s.SetByPeople() && !s.domainServed }

// inEnding reports whether the controller was in a namespace that is going or
// gone.
func (f *Finder) inEnding(n graph.Node, s *Search) bool {
	if slices.ContainsFunc(s.lost, func(g *grant) bool { return f.evidence.Ending(g.subject.Namespace) }) || len(s.lostServices) > 0 {
		return true
	}
	return local(s.Known) && n.Namespace() != "" && f.evidence.Ending(n.Namespace())
}

// components are those of Kubernetes that change objects and remove no finalizers of
// others.
var components = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "cloud-controller-manager"}

// Elsewhere says where the controller may run out of sight, by the catalogue. It is
// empty when there is no such place, and when this is certain not to be a cluster of the
// provider who has it.
func (f *Finder) Elsewhere(s *Search) string {
	for _, m := range s.Known {
		place := strings.TrimSuffix(m.OffCluster, finalizers.Always)
		provider, _, _ := strings.Cut(place, " ")
		several := strings.ContainsAny(place, ",;")
		if m.OffCluster != "" && (several || !f.evidence.Server().IsNot(provider)) {
			return m.OffCluster
		}
	}
	return ""
}

// doubt says why finding nothing does not show that nothing is there, empty if
// it does.
func (f *Finder) doubt(n graph.Node, s *Search) say.Text {
	if elsewhere := f.Elsewhere(s); elsewhere != "" {
		return say.Of(outsideCluster, elsewhere)
	}
	working := f.strangers(s)
	switch {
	case len(s.unread) > 0:
		named := s.unread
		if more := len(named) - 2; more > 1 {
			named = append(named[:2:2], fmt.Sprintf("%d more types", more))
		}
		return say.Of(existenceUnread, strings.Join(named, ", "))
	case len(working) > 0:
		return say.Of(strangerWrites, s.changed(working[0]))
	case s.strangersLease.Name != "":
		return say.Of(strangersLease, s.strangersLease)
	}
	return s.cannotBeSeen(n)
}

// cannotBeSeen says who has a rule for such objects in the namespace of one and runs where that cannot be seen; empty for nobody.
func (s *Search) cannotBeSeen(n graph.Node) say.Text {
	for _, who := range s.outside {
		if who.namespace == "" || who.namespace == n.Namespace() {
			return say.Of(strangersRule, who.subject.named(), who.role)
		}
	}
	return say.Text{}
}
