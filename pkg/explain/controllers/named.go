// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// adder takes a sign that points at a workload.
type adder func(l *Workload, weight int, named bool, e evidence.Fact)

// byCatalogue finds the workloads that the catalogue names.
func (f *searcher) byCatalogue(s *Search, namespace string, add adder) {
	for _, m := range s.Known {
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
				add(l, strongSign, true, evidence.Fact{Source: l.ID().String(), Path: nameAlone, Value: fmt.Sprintf(podCalledAfter, m.Product)})
			}
		}
	}
}

// byPlace compares a workload with the places that the catalogue has: one of
// them is more than its name in another namespace.
func (f *searcher) byPlace(s *Search, m finalizers.Match, l *Workload, namespace string, add adder) {
	kind, name := l.resource.Kind, l.name
	says := func(what string) evidence.Fact {
		return evidence.Fact{Source: l.ID().String(), Path: nameAlone, Value: what}
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
			s.inPlace = append(s.inPlace, l.ID())
			add(l, goodSign, false, evidence.Fact{Source: l.ID().String(), Path: nameIn, Value: fmt.Sprintf(programInCatalogue, usual.Name, m.Product)})
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
			add(l, strongSign, true, evidence.Fact{Source: l.ID().String(), Path: nameOf, Value: fmt.Sprintf(setByName, s.setOn[manager], manager)})
		}
		for _, l := range f.loosePods("", manager) {
			add(l, strongSign, true, evidence.Fact{Source: l.ID().String(), Path: nameOf, Value: fmt.Sprintf(setByPodName, s.setOn[manager], manager)})
		}
	}
	for _, l := range slices.Concat(f.inventory().workloads, f.loose(s)) {
		for _, manager := range s.Setters {
			if l.calledBy(manager) {
				add(l, strongSign, true, evidence.Fact{Source: l.ID().String(), Path: nameOf, Value: fmt.Sprintf(setByName, s.setOn[manager], manager)})
			}
		}
		for _, manager := range s.workers {
			if l.calledBy(manager) && !slices.Contains(s.Setters, manager) {
				add(l, weakSign, true, evidence.Fact{Source: l.ID().String(), Path: nameOf, Value: fmt.Sprintf(changedByName, manager, s.workedOn[manager])})
			}
		}
	}
}

// loose returns the pods that run as accounts which have a rule for the type, and belong to no workload of the inventory.
func (f *searcher) loose(s *Search) []*Workload {
	var found []*Workload
	seen := map[Account]bool{}
	for _, g := range f.rights().holders(s.resource.GroupResource()) {
		a := Account{g.subject.Namespace, g.subject.Name}
		if s.own && g.subject.Kind == rbacv1.ServiceAccountKind && !seen[a] {
			seen[a] = true
			found = append(found, slices.DeleteFunc(f.usersOf(s, a), func(l *Workload) bool { return !l.IsPod() })...)
		}
	}
	return found
}

// byEvents finds the workloads that have reported events about the object since
// its deletion.
func (f *searcher) byEvents(s *Search, n graph.Node, add adder) {
	if !n.BeingDeleted() {
		return
	}
	reporters := map[string]evidence.Fact{}
	for _, o := range f.evidence.Events(n.Identity().Namespace, n.UID()) {
		if e := evidence.NewEvent(&o); !e.Last.Before(evidence.Requested(n.Object())) && e.Reporter != "" {
			reporters[e.Reporter] = e.Fact()
		}
	}
	names := slices.Sorted(maps.Keys(reporters))
	for _, l := range f.inventory().workloads {
		for _, reporter := range names {
			if l.calledBy(reporter) && !slices.Contains(s.Setters, reporter) {
				add(l, goodSign, true, reporters[reporter])
			}
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
	seen := map[string]bool{}
	for _, resource := range s.groups {
		for _, g := range r.holders(resource) {
			if namespace, all := strings.CutPrefix(g.subject.Name, "system:serviceaccounts:"); g.subject.Kind == "Group" && all {
				for _, l := range f.within(s, namespace) {
					add(l, goodSign, false, g.evidence())
				}
				continue
			}
			if g.subject.Kind != "ServiceAccount" {
				if !seen[g.subject.String()] && !strings.HasPrefix(g.subject.Name, "system:") {
					s.outside = append(s.outside, g)
				}
				seen[g.subject.String()] = true
				continue
			}
			if seen[g.subject.String()] {
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
				s.lost = append(s.lost, g)
			case !strings.HasPrefix(g.role, "ClusterRole/system:"):
				// A Job may run as it, or somebody outside with a token of it.
				s.outside = append(s.outside, g)
			}
		}
	}
}

// within returns the workloads of a namespace, and the pods that belong to none.
func (f *roster) within(s *Search, namespace string) []*Workload {
	var found []*Workload
	accounts := map[Account]bool{}
	for _, l := range f.inventory().workloads {
		if l.namespace == namespace {
			found = append(found, l)
			accounts[l.Account()] = true
		}
	}
	if !f.hasPods(namespace) {
		return found
	}
	items, err := f.evidence.List(evidence.Pods, namespace)
	if err != nil && len(s.workloadsUnread) == 0 {
		s.workloadsUnread = []string{"pods"}
	}
	for i := range items {
		if l := newPodWorkload(&items[i]); l != nil && !accounts[l.Account()] && !evidence.PodEnded(&items[i]) {
			found = append(found, l)
		}
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
	return len(f.evidence.Named(evidence.ServiceAccounts.GroupResource(), a.Namespace, a.Name)) == 0 && f.evidence.Covers(evidence.ServiceAccounts.GroupResource(), a.Namespace, a.Name)
}

// usersOf returns the workloads that run as an account, and pods that do and
// belong to none, or else CronJobs, and Jobs that are suspended. That pods could not be read is noted in the search, and says nothing
// of others.
func (f *roster) usersOf(s *Search, a Account) []*Workload {
	var found []*Workload
	for _, l := range f.inventory().workloads {
		if l.Account() == a {
			found = append(found, l)
		}
	}
	if len(found) == 0 && f.hasPods(a.Namespace) || len(found) > 0 && f.hasLoosePods(a.Namespace) {
		found = append(found, f.podsAs(s, a)...)
	}
	if len(found) > 0 || a.Name == "default" { // which many have that serve nothing
		return found
	}
	return slices.DeleteFunc(slices.Concat(f.periodic(s), f.suspended(s)), func(l *Workload) bool { return l.Account() != a })
}

// podsAs returns the pods that run as an account and belong to no workload of the inventory. An ended pod serves nothing any
// more.
func (f *roster) podsAs(s *Search, a Account) []*Workload {
	items, err := f.evidence.List(evidence.Pods, a.Namespace)
	if err != nil && len(s.workloadsUnread) == 0 {
		s.workloadsUnread = []string{"pods"}
	}
	var found []*Workload
	for i := range items {
		if l := newPodWorkload(&items[i]); l != nil && l.Account() == a && !evidence.PodEnded(&items[i]) && !f.selected(&items[i]) {
			found = append(found, l)
		}
	}
	return found
}

// hasLoosePods reports whether pods are in the namespace that bear no mark of a Deployment or a Job, and have no owner in
// the inventory.
func (f *roster) hasLoosePods(namespace string) bool {
	for n := range f.evidence.UnmarkedPods(func(string) bool { return true }) {
		if n.Namespace() != namespace {
			continue
		}
		owner := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: n.Object().OwnerReferences})
		if owner == nil || !f.ownerKnown(namespace, owner) {
			return true
		}
	}
	return false
}

// hasPods reports whether pods may be in the namespace.
func (f *roster) hasPods(namespace string) bool {
	return !f.evidence.Covers(evidence.Pods.GroupResource(), namespace, "") ||
		len(f.evidence.Within(evidence.Pods.GroupResource(), namespace)) > 0
}
