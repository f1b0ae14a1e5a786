// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// adder takes a sign that points at a workload.
type adder func(l *Workload, weight int, named bool, e evidence.Fact)

// byCatalogue finds the workloads that the catalogue names.
func (f *searcher) byCatalogue(s *Search, namespace string, add adder) {
	for _, m := range s.Known {
		if s.instance = f.instanceOf(s, m, namespace); s.instance != nil {
			s.inPlace = append(s.inPlace, s.instance.ID())
			add(s.instance, strongSign, true, evidence.At(s.instance.ID(), nameAlone, say.Of(whereCatalogueSays, m.Product)))
			continue
		}
		for _, l := range f.inventory().workloads {
			f.byPlace(s, m, l, namespace, add)
		}
		for _, usual := range m.Workloads {
			if usual.Namespace == "" || strings.Contains(usual.Name, "*") || IsCommon(usual.Name) {
				continue
			}
			where := usual.Namespace
			if where == finalizers.ObjectNamespace {
				where = namespace
			}
			for _, l := range f.loosePods(where, usual.Name) {
				s.inPlace = append(s.inPlace, l.ID())
				add(l, strongSign, true, evidence.At(l.ID(), nameAlone, say.Of(podCalledAfter, m.Product)))
			}
		}
	}
}

// byPlace compares a workload with the places that the catalogue has: one of
// them is more than its name in another namespace.
func (f *searcher) byPlace(s *Search, m finalizers.Match, l *Workload, namespace string, add adder) {
	kind, name := l.resource.Kind, l.name
	says := func(what string) evidence.Fact {
		return evidence.At(l.ID(), nameAlone, what)
	}
	for _, usual := range m.Workloads {
		if !usual.Is(kind, l.namespace, name, namespace) {
			continue
		}
		s.inPlace = append(s.inPlace, l.ID())
		if !strings.Contains(usual.Name, "*") {
			add(l, strongSign, true, says(fmt.Sprintf(whereCatalogueSays, m.Product)))
			return
		}
		weight := weakSign
		if f.rights().states(l.Account(), s.resource.GroupResource()) {
			weight = goodSign
		}
		add(l, weight, false, says(fmt.Sprintf(calledAsInTable, m.Product)))
		return
	}
	for _, usual := range m.Workloads {
		anywhere := usual
		anywhere.Namespace = ""
		if usual.Namespace == finalizers.ObjectNamespace || strings.Contains(usual.Name, "*") || IsCommon(usual.Name) {
			continue
		}
		if anywhere.Is(kind, l.namespace, name, namespace) {
			s.inPlace = append(s.inPlace, l.ID())
			add(l, goodSign, false, says(fmt.Sprintf(nameInCatalogue, m.Product)))
			return
		}
		if slices.Contains(l.programs, usual.Name) {
			if cmp.Or(usual.Kind, kind) == kind || strings.Contains(name, usual.Name) { // one image does several things
				s.inPlace = append(s.inPlace, l.ID())
			}
			add(l, goodSign, false, evidence.At(l.ID(), nameIn, say.Of(programInCatalogue, usual.Name, m.Product)))
			return
		}
	}
}

// byManagers finds the workloads whose programs call themselves as who set the
// finalizer, or who still works on the objects.
func (f *searcher) byManagers(s *Search, add adder) {
	for _, manager := range s.Setters {
		if !IsProgram(manager) {
			continue
		}
		for _, l := range f.cronJobs(s, manager) {
			add(l, strongSign, true, evidence.At(l.ID(), nameOf, say.Of(setByName, s.setOn[manager], manager)))
		}
		for _, l := range f.loosePods("", manager) {
			add(l, strongSign, true, evidence.At(l.ID(), nameOf, say.Of(setByPodName, s.setOn[manager], manager)))
		}
	}
	for _, l := range f.inventory().workloads {
		s.calls(l, add)
	}
}

// calls adds the signs that the field managers have the names of a workload.
func (s *Search) calls(l *Workload, add adder) {
	for _, manager := range s.Setters {
		if l.calledBy(manager) {
			add(l, strongSign, true, evidence.At(l.ID(), nameOf, say.Of(setByName, s.setOn[manager], manager)))
		}
	}
	for _, manager := range s.workers {
		if l.calledBy(manager) && !slices.Contains(s.Setters, manager) {
			add(l, weakSign, true, evidence.At(l.ID(), nameOf, say.Of(changedByName, manager, s.workedOn[manager])))
		}
	}
}

// byEvents finds the workloads that have reported events about the object since
// its deletion. Who else has, lives as well.
func (f *searcher) byEvents(s *Search, n graph.Node, add adder) {
	if !n.BeingDeleted() {
		return
	}
	reporters := map[string]evidence.Event{}
	for _, o := range f.evidence.Events(n.Identity().Namespace, n.UID()) {
		if e := evidence.NewEvent(&o); !e.Last.Before(evidence.Requested(n.Object())) && e.Reporter != "" {
			reporters[e.Reporter] = e
		}
	}
	names := slices.Sorted(maps.Keys(reporters))
	for _, l := range f.inventory().workloads {
		for _, reporter := range names {
			if l.calledBy(reporter) && !slices.Contains(s.Setters, reporter) {
				add(l, goodSign, true, reporters[reporter].Fact())
			}
		}
	}
	for _, reporter := range names {
		ofKubernetes := graph.BuiltinGroup(s.resource.Group) && !s.sharesWord(reporter)
		if !ofKubernetes && !f.calledSo(reporter) && !slices.Contains(s.workers, reporter) {
			s.workers, s.workedOn[reporter], s.wrote[reporter] = append(slices.Clip(s.workers), reporter), n.Identity(), reporters[reporter].Last
		}
	}
}

// calledBy reports whether a field manager is a name of the workload.
func (l *Workload) calledBy(manager string) bool {
	return (manager == l.name || slices.Contains(l.programs, manager)) && IsProgram(manager)
}

// IsProgram reports whether a field manager's name is one of a program that does nothing
// but its own.
func IsProgram(manager string) bool { return !IsCommon(manager) && !isPerson(manager) }

// byRights finds the workloads whose accounts may change the type by a rule
// that states it.
func (f *searcher) byRights(s *Search, add adder) {
	r := f.rights()
	seen, idle := map[string]bool{}, map[string]bool{} // idle: nothing here runs as it
	of, foreign := s.groups, s.resource.GroupResource()
	if !s.own {
		of = append(slices.Clip(of), foreign)
	}
	for _, resource := range of {
		for _, g := range r.holders(resource) {
			name, isGroup := g.subject.Name, g.subject.Kind == "Group"
			if !s.own && resource == foreign && (g.subject.Kind == rbacv1.ServiceAccountKind || !s.sharesWord(name)) {
				continue // many may change objects of other products: workloads are looked at if nothing else is found
			}
			if namespace, all := strings.CutPrefix(name, "system:serviceaccounts:"); isGroup && all {
				for _, l := range f.within(s, namespace) {
					add(l, goodSign, false, g.evidence())
				}
				continue
			}
			if g.subject.Kind != rbacv1.ServiceAccountKind {
				everybody := isGroup && (name == "system:serviceaccounts" || name == "system:authenticated")
				if everybody || !strings.HasPrefix(name, "system:") {
					s.outside = append(s.outside, g)
				}
				continue
			}
			if who := g.subject.String(); seen[who] {
				if idle[who] {
					s.outside = append(s.outside, g)
				}
				continue
			}
			seen[g.subject.String()] = true
			users := f.usersOf(s, Account{g.subject.Namespace, g.subject.Name})
			for _, l := range users {
				add(l, goodSign, false, g.evidence())
			}
			switch {
			case len(users) > 0:
			case f.accountGone(g.subject):
				if s.maySet(g.subject.Namespace + " " + g.subject.Name) {
					s.lost = append(s.lost, g)
				}
			case !strings.HasPrefix(g.role.String(), "ClusterRole/system:"):
				// A Job may run as it, or somebody outside with a token of it.
				idle[g.subject.String()], s.outside = true, append(s.outside, g)
			}
		}
	}
}

// within returns the workloads of a namespace, and the pods that belong to none.
func (f *roster) within(s *Search, namespace string) []*Workload {
	found := slices.DeleteFunc(slices.Clone(f.inventory().workloads), func(l *Workload) bool { return l.namespace != namespace })
	if f.hasPods(namespace) {
		found = append(found, f.podsIn(s, namespace, func(Account) bool { return true })...)
	}
	return found
}

// accountGone reports whether a ServiceAccount provably cannot be used: its
// namespace is being deleted or gone, or it does not exist.
func (f *searcher) accountGone(s subject) bool {
	return f.evidence.Ending(s.Namespace) || f.accountUnlisted(Account{s.Namespace, s.Name})
}

// accountUnlisted reports whether a ServiceAccount was not there when all were
// listed.
func (f *roster) accountUnlisted(a Account) bool {
	return len(f.evidence.Named(evidence.ServiceAccounts.GroupResource(), a.Namespace, a.Name)) == 0 &&
		f.evidence.Covers(evidence.ServiceAccounts.GroupResource(), a.Namespace, a.Name)
}

// usersOf returns the workloads that run as an account, or else pods that do, or else CronJobs, and Jobs that are suspended. That pods
// could not be read is noted in the search, and says nothing of others.
func (f *roster) usersOf(s *Search, a Account) []*Workload {
	var found []*Workload
	for _, l := range f.inventory().workloads {
		if l.Account() == a {
			found = append(found, l)
		}
	}
	if len(found) == 0 && f.hasPods(a.Namespace) {
		found = f.podsIn(s, a.Namespace, func(of Account) bool { return of == a })
	}
	if len(found) > 0 || a.Name == "default" { // which many have that serve nothing
		return found
	}
	return slices.DeleteFunc(slices.Concat(f.periodic(s), f.suspended(s)), func(l *Workload) bool { return l.Account() != a })
}

// podsIn returns the pods in a namespace that run as an account which is wanted and belong to no workload of the inventory. An ended pod
// serves nothing any more.
func (f *roster) podsIn(s *Search, namespace string, wanted func(Account) bool) []*Workload {
	items, err := f.evidence.List(evidence.Pods, namespace)
	if err != nil && len(s.workloadsUnread) == 0 {
		s.workloadsUnread = []string{"pods"}
	}
	var found []*Workload
	for i := range items {
		if l := newPodWorkload(&items[i]); l != nil && wanted(l.Account()) && !evidence.PodEnded(&items[i]) && !f.selected(&items[i]) {
			found = append(found, l)
		}
	}
	return found
}

// hasPods reports whether pods may be in the namespace.
func (f *roster) hasPods(namespace string) bool {
	return !f.evidence.Covers(evidence.Pods.GroupResource(), namespace, "") ||
		len(f.evidence.Within(evidence.Pods.GroupResource(), namespace)) > 0
}
