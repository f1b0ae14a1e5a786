// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Workloads of which nothing tells but that they could remove a finalizer.

// possible returns the workloads that work, could change the object by a rule for the type, or by one for everything or unknown rights
// if a name of them is akin, and may therefore serve a finalizer that nothing else tells anything about. What a person holds back by
// hand is nobody's. One that does not run counts if it has a controller's name,
// and always where the finalizer is a framework's and has the name of none.
func (f *Finder) possible(n graph.Node, s *Search) []*Workload {
	id := n.Identity()
	setters, _ := f.managersIn(n, s.Finalizer)
	if s.byPerson() && !slices.ContainsFunc(s.Setters, isManifest) {
		return nil
	}
	key := id.Namespace + " " + strings.Join(setters, " ")
	if found, known := s.possible[key]; known {
		return found
	}
	var found []*Workload
	resource, r := id.Resource.GroupResource(), f.rights()
	for _, l := range slices.Concat(f.changers(resource), f.periodic(s)) {
		c, a := Candidate{Workload: l}, l.Account()
		able := (f.otherwise(l) || r.mayChange(a, resource, id.Namespace, id.Name)) && (r.states(a, resource) || c.akin(s))
		if !able || isPerson(l.name) || f.isAnother(n, s, &c) || f.StateOf(l).Liveness == Dead && !s.ofFramework() && !c.kindred(s, false, true) {
			continue
		}
		if found = append(found, l); len(found) == evidence.MaxShown {
			break
		}
	}
	s.possible[key] = found
	return found
}

// closer returns the workloads without a rule for the type that are called after it, where the one that works is called after nothing but a
// domain, which may be that of a company with several operators.
func (f *Finder) closer(n graph.Node, a *Answer) []*Workload {
	ofType := func(l *Workload) bool {
		group, _, _ := strings.Cut(a.resource.Group, ".")
		return shareWord(strings.Join(append(slices.Clone(l.programs), l.name), " "), a.resource.Kind+" "+group)
	}
	if a.best.identified || a.best.Named || len(a.Known) > 0 || ofType(a.best.Workload) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.possible(n, a.Search)), func(l *Workload) bool {
		return !ofType(l) || f.rights().states(l.Account(), a.resource.GroupResource())
	})
}

// changers returns the workloads that may change some object of a type, so far as is known: few of many.
func (f *Finder) changers(resource schema.GroupResource) []*Workload {
	able, known := f.able[resource]
	if !known {
		for _, l := range f.inventory().workloads {
			if f.otherwise(l) || len(f.rights().changes(l.Account(), resource)) > 0 {
				able = append(able, l)
			}
		}
		f.able[resource] = able
	}
	return able
}

func (f *liveness) namesOf(workloads []*Workload) say.Text {
	return say.Join(", ", f.saidOf(workloads)...)
}

func (f *liveness) saidOf(workloads []*Workload) (names []say.Text) {
	for _, l := range workloads {
		names = append(names, described(l, f.StateOf(l).Liveness))
	}
	return names
}

// Possible says of the workloads of which nothing tells but that they could remove the finalizer
// what lets them.
func (f *Finder) Possible(n graph.Node, a *Answer) []evidence.Fact {
	var facts []evidence.Fact
	for _, l := range a.might {
		facts = append(facts, f.could(l, n))
	}
	return facts
}

// could says of a workload that could change an object what lets it.
func (f *Finder) could(l *Workload, n graph.Node) evidence.Fact {
	st := f.StateOf(l)
	value := say.Of(livesBecause, st.Liveness, st.Because)
	if by := f.GrantedBy(l, n); len(by) > 1 {
		value = value.And(givesRight, by[0], by[1])
	} else if why := f.otherRights(l); why != "" {
		value = value.And(andThat, why)
	}
	return evidence.At(l.ID(), "candidate", value)
}

// Mighty says of the workloads that work and may change everything, the object as well, what lets them. That is no sign that
// one of them serves a finalizer.
func (f *Finder) Mighty(n graph.Node) []evidence.Fact {
	var facts []evidence.Fact
	id := n.Identity()
	for _, l := range f.changers(id.Resource.GroupResource()) {
		if len(facts) < evidence.MaxShown && f.rights().mayAll(l.Account(), id.Namespace) && f.StateOf(l).Liveness != Dead {
			facts = append(facts, f.could(l, n))
		}
	}
	return facts
}

// Might returns those of which nothing tells but that they could.
func (a *Answer) Might() []*Workload { return a.might }

// Maybe returns the workloads of which one may remove the finalizer, when that is Unclear.
func (a *Answer) Maybe() []*Workload {
	maybe := slices.Clone(a.might)
	for i := range a.Among {
		maybe = append(maybe, a.Among[i].Workload)
	}
	return maybe
}
