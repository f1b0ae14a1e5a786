// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The weights of the signs that a workload is the controller of a finalizer.
// One of at least likely makes it a candidate, of at least certain the
// controller, if no other has as many.
const (
	strongSign = 4
	goodSign   = 3
	weakSign   = 2
	hint       = 1

	likely  = 2
	certain = 3
)

// Candidate is a workload that may be the controller of a finalizer.
type Candidate struct {
	*Workload
	score int
	// identified: something other than rights points at it.
	identified bool
	Signs      []evidence.Fact
	// Named is set when managed fields, an event, a lease, or the place that the
	// catalogue states name it; strong when that is who set the finalizer, or the
	// place.
	Named, strong bool
}

// guessed reports whether nothing but its name points at the workload: that it
// fits a pattern of the catalogue, or is there in another namespace than the
// one that the catalogue states. Another product's may be called alike.
func (c *Candidate) guessed() bool {
	return !c.Named && !slices.ContainsFunc(c.Signs, func(e evidence.Fact) bool { return e.Path != nameAlone })
}

// nameAlone is the path of a sign that is no more than a name.
const nameAlone = "metadata.name"

// Search is what was found of the controller of a finalizer on a type.
type Search struct {
	Finalizer string
	Field     finalizers.Field
	resource  graph.Resource
	// Known are the entries of the catalogue that fit best.
	Known []finalizers.Match
	// groups are the API groups that the finalizer's domain points at.
	groups []schema.GroupResource
	// own: the type's own group is one of them.
	own bool
	// domainServed: a CustomResourceDefinition or API of the domain is there.
	domainServed bool
	// Setters are the managers that set it on the objects that were looked at,
	// workers those that changed such an object after its deletion.
	Setters, workers []string
	// setOn and workedOn name the first object on which each of them did.
	setOn, workedOn map[string]graph.Identity
	candidates      []*Candidate // the best first
	// prospects has by namespace the candidates that count for objects in it.
	prospects map[string][]prospect
	// placed: a workload is where the catalogue has the controller, or is called so.
	placed bool
	// lost are grants to accounts that are gone with their namespace, outside
	// those to users and groups who may be the controller.
	lost, outside []*grant
	lostServices  []evidence.Fact
	// leases are those for it that no workload here holds or held; orphanLease is
	// one that somebody renews.
	leases      []*unstructured.Unstructured
	OrphanLease *evidence.Fact
	// leaseAbove is a lease of a domain above the finalizer's that somebody renews who is
	// no workload here.
	leaseAbove string
	unread     []string
	// workloadsUnread says what could not be read of workloads beside the inventory.
	workloadsUnread []string
	Looked          evidence.Fact
	// possible has by namespace what may serve the finalizer although nothing
	// says so.
	possible map[string][]*Workload
	// asked is for how many objects the users were looked for.
	asked int
	// states are those of the candidates, with the leases for the finalizer.
	states map[graph.Identity]State
}

// searched are the lists that every search looks at.
var searched = []schema.GroupVersionResource{
	clusterRoles, roles, evidence.ClusterRoleBindings, roleBindings, evidence.ValidatingWebhooks, evidence.MutatingWebhooks,
}

// Search looks for the controller of a finalizer on objects of n's type, once:
// a number of lists that does not depend on how many objects there are.
func (f *Finder) search(n graph.Node, finalizer string, field finalizers.Field) *Search {
	resource := n.Resource()
	known := f.Entries(finalizer, resource.GroupVersionKind().GroupKind(), field)
	key := string(field) + " " + finalizer + " " + resource.GroupResource().String()
	if local(known) {
		key += " " + n.Namespace()
	}
	if s, done := f.searches[key]; done {
		return s
	}
	s := &Search{Finalizer: finalizer, Field: field, resource: *resource, Known: known, possible: map[string][]*Workload{}, prospects: map[string][]prospect{}, states: map[graph.Identity]State{}}
	f.searches[key] = s
	f.evidence.ListTogether(f.workloads.readAhead(), searched...)
	s.groups, s.own = f.groupsOf(s)
	f.managersOf(s, n)
	found := map[graph.Identity]*Candidate{}
	add := func(l *Workload, weight int, named bool, e evidence.Fact) {
		c := found[l.ID()]
		if c == nil {
			c = &Candidate{Workload: l}
			found[l.ID()] = c
		}
		c.score += weight
		c.Named, c.strong = c.Named || named, c.strong || named && weight >= strongSign
		c.Signs = append(c.Signs, e)
	}
	f.byCatalogue(s, n.Namespace(), add)
	f.byManagers(s, add)
	f.byEvents(s, n, add)
	f.byRights(s, add)
	f.byDefinition(s, add)
	f.byWebhooks(s, add)
	f.byLease(s, n.Namespace(), add)
	for _, c := range found {
		c.identified = c.Named || slices.ContainsFunc(c.Signs, func(e evidence.Fact) bool { return e.Path != "roleRef" && e.Path != nameAlone })
		s.candidates = append(s.candidates, c)
	}
	slices.SortFunc(s.candidates, func(a, b *Candidate) int { return cmp.Or(b.score-a.score, a.ID().Compare(b.ID())) })
	f.complete(s)
	return s
}

// adder takes a sign that points at a workload.
type adder func(l *Workload, weight int, named bool, e evidence.Fact)

// Entries returns what the catalogue has of the finalizer: what is said of this
// kind, or else what is said of this name.
func (f *Finder) Entries(finalizer string, kind schema.GroupKind, field finalizers.Field) []finalizers.Match {
	all := slices.DeleteFunc(f.catalogue.Find(finalizer, kind), func(m finalizers.Match) bool { return m.Field != field })
	fitting := slices.DeleteFunc(slices.Clone(all), func(m finalizers.Match) bool { return !m.KindFits })
	if len(fitting) > 0 {
		return fitting[:1]
	}
	return slices.DeleteFunc(all, func(m finalizers.Match) bool { return !m.Exact })
}

// local reports whether the controller may run in the object's own namespace.
func local(known []finalizers.Match) bool {
	return slices.ContainsFunc(known, func(m finalizers.Match) bool {
		return slices.ContainsFunc(m.Workloads, func(l finalizers.Workload) bool { return l.Namespace == finalizers.ObjectNamespace })
	})
}

// groupsOf returns the types whose controllers may serve the finalizer: the
// object's own, unless the finalizer is another product's, and all of the groups
// of CustomResourceDefinitions that the domain points at.
func (f *Finder) groupsOf(s *Search) (groups []schema.GroupResource, own bool) {
	domain := finalizers.Domain(s.Finalizer)
	group := s.resource.Group
	if strings.Contains(group, ".") && !graph.BuiltinGroup(group) && (domain == "" || related(domain, group) || s.ofType()) {
		groups, own = append(groups, s.resource.GroupResource()), true
		s.domainServed = domain != ""
	}
	for n := range f.evidence.Instances(evidence.CRDs.GroupResource()) {
		_, group, _ := strings.Cut(n.Name(), ".")
		whole := schema.GroupResource{Group: group}
		if domain != "" && related(domain, group) && !slices.Contains(groups, whole) && (!own || group != s.resource.Group) {
			groups, s.domainServed = append(groups, whole), true
		}
	}
	return groups, own
}

// ofType reports whether the catalogue has the finalizer as one of whoever serves the type: a
// framework's, which every operator sets that is built on it, or a product's on types of its own.
// An API of Kubernetes' own domain has implementations of many products.
func (s *Search) ofType() bool {
	shared := strings.HasSuffix(s.resource.Group, ".k8s.io") || strings.HasSuffix(s.resource.Group, ".x-k8s.io")
	return slices.ContainsFunc(s.Known, func(m finalizers.Match) bool {
		framework := len(m.Workloads) == 0 && len(m.Kinds) == 0 && m.Builtin == ""
		return m.KindFits && (framework || len(m.Kinds) > 0 && !shared)
	})
}

// related reports whether two domains are of one product: one of them ends with
// the other. Domains that many products share tell nothing.
func related(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	shared := slices.Contains([]string{"k8s.io", "x-k8s.io", "kubernetes.io", "coreos.com", "github.io", "openshift.io", "cluster.local"}, b)
	return a == b || strings.HasSuffix(a, "."+b) && strings.Contains(b, ".") && !shared
}

// sample returns a few of the terminating objects of n's type and namespace with the
// finalizer, n first.
func (f *Finder) sample(n graph.Node, finalizer string) []graph.Node {
	few := []graph.Node{n}
	for _, m := range f.evidence.Within(n.Resource().GroupResource(), n.Namespace()) {
		if len(few) == evidence.MaxShown {
			break
		}
		if m.BeingDeleted() && m.UID() != n.UID() && m.HasFinalizer(finalizer) {
			few = append(few, m)
		}
	}
	return few
}

// managers are the field managers of a few objects of a type.
type managers struct {
	setters, workers, unread []string
	setOn, workedOn          map[string]graph.Identity
}

// managersOf finds out who set the finalizer, and who has changed the objects
// since they were deleted, if they are. A few objects are looked at.
func (f *Finder) managersOf(s *Search, n graph.Node) {
	key := s.Finalizer + " " + s.resource.GroupResource().String()
	if known, done := f.managers[key]; done {
		s.Setters, s.workers, s.unread = known.setters, known.workers, slices.Clone(known.unread)
		s.setOn, s.workedOn = known.setOn, known.workedOn
		return
	}
	f.readManagers(s, f.sample(n, s.Finalizer))
	f.managers[key] = managers{s.Setters, s.workers, slices.Clone(s.unread), s.setOn, s.workedOn}
}

func (f *Finder) readManagers(s *Search, sample []graph.Node) {
	s.setOn, s.workedOn = map[string]graph.Identity{}, map[string]graph.Identity{}
	first := func(on map[string]graph.Identity, manager string, n graph.Node) {
		if _, known := on[manager]; !known {
			on[manager] = n.Identity()
		}
	}
	f.evidence.Together(sample)
	for _, n := range sample {
		full, err := f.evidence.Whole(n)
		if err != nil {
			if !apierrors.IsNotFound(err) {
				s.unread = append(s.unread, n.Resource().GroupResource().String())
			}
			continue
		}
		for _, entry := range full.GetManagedFields() {
			if entry.FieldsV1 != nil && evidence.SetsFinalizer(entry.FieldsV1.GetRawBytes(), s.Finalizer) {
				s.Setters = append(s.Setters, entry.Manager)
				first(s.setOn, entry.Manager, n)
			}
			if n.BeingDeleted() && entry.Time != nil && entry.Time.After(evidence.Requested(n.Object())) && !isPerson(entry.Manager) {
				s.workers = append(s.workers, entry.Manager)
				first(s.workedOn, entry.Manager, n)
			}
		}
	}
	slices.Sort(s.Setters)
	s.Setters = slices.Compact(s.Setters)
	slices.Sort(s.workers)
	s.workers = slices.Compact(s.workers)
}

// isPerson reports whether a field manager is a tool with which people change
// objects, or that applies what people wrote.
func isPerson(manager string) bool {
	for _, prefix := range []string{"kubectl", "Mozilla", "helm", "argocd", "kustomize-controller", "helm-controller", "k9s", "Lens", "terraform", "Terraform", "pulumi", "curl", "Helm"} {
		if strings.HasPrefix(manager, prefix) {
			return true
		}
	}
	return false
}

// byCatalogue finds the workloads that the catalogue names.
func (f *Finder) byCatalogue(s *Search, namespace string, add adder) {
	for _, m := range s.Known {
		for _, l := range f.inventory().workloads {
			f.byPlace(s, m, l, namespace, add)
		}
		for _, usual := range m.Workloads {
			if usual.Namespace == "" || strings.Contains(usual.Name, "*") || isCommon(usual.Name) {
				continue
			}
			where := usual.Namespace
			if where == finalizers.ObjectNamespace {
				where = namespace
			}
			for _, l := range f.loosePods(where, usual.Name) {
				s.placed = true
				add(l, strongSign, true, evidence.Fact{Source: l.ID().String(), Path: "metadata.name", Value: "is called after the controller of " + m.Product})
			}
		}
	}
}

// byPlace compares a workload with the places that the catalogue has: one of
// them is more than its name in another namespace.
func (f *Finder) byPlace(s *Search, m finalizers.Match, l *Workload, namespace string, add adder) {
	kind, name := l.resource.Kind, l.name
	says := func(what string) evidence.Fact {
		return evidence.Fact{Source: l.ID().String(), Path: nameAlone, Value: what}
	}
	for _, usual := range m.Workloads {
		if !usual.Is(kind, l.namespace, name, namespace) {
			continue
		}
		s.placed = true
		if !strings.Contains(usual.Name, "*") {
			add(l, strongSign, true, says("is where the catalogue of finalizers has the controller of "+m.Product))
			return
		}
		weight := weakSign
		if f.rights().states(l.Account(), s.resource.GroupResource()) {
			weight = goodSign
		}
		add(l, weight, false, says("is called as the catalogue of finalizers has it for controllers of "+m.Product+", of which there may be several"))
		return
	}
	for _, usual := range m.Workloads {
		anywhere := usual
		anywhere.Namespace = ""
		if usual.Namespace == finalizers.ObjectNamespace || strings.Contains(usual.Name, "*") || isCommon(usual.Name) {
			continue
		}
		if anywhere.Is(kind, l.namespace, name, namespace) {
			s.placed = true
			add(l, goodSign, false, says("has the name that the catalogue of finalizers has for the controller of "+m.Product))
			return
		}
		if slices.Contains(l.programs, usual.Name) {
			s.placed = true
			add(l, goodSign, false, evidence.Fact{Source: l.ID().String(), Path: "spec.template.spec.containers", Value: "runs " + usual.Name + ", which is the name that the catalogue of finalizers has for the controller of " + m.Product})
			return
		}
	}
}

// byManagers finds the workloads whose programs call themselves as who set the
// finalizer, or who still works on the objects.
func (f *Finder) byManagers(s *Search, add adder) {
	for _, manager := range s.Setters {
		if !isProgram(manager) {
			continue
		}
		for _, l := range f.cronJobs(s, manager) {
			add(l, strongSign, true, evidence.Fact{Source: l.ID().String(), Path: "metadata.managedFields", Value: fmt.Sprintf("the finalizer was set on %s by %q, which is a name of it", s.setOn[manager], manager)})
		}
		for _, l := range f.loosePods("", manager) {
			add(l, strongSign, true, evidence.Fact{Source: l.ID().String(), Path: "metadata.managedFields", Value: fmt.Sprintf("the finalizer was set on %s by %q, after which the pod is called", s.setOn[manager], manager)})
		}
	}
	for _, l := range f.inventory().workloads {
		for _, manager := range s.Setters {
			if l.calledBy(manager) {
				add(l, strongSign, true, evidence.Fact{Source: l.ID().String(), Path: "metadata.managedFields", Value: fmt.Sprintf("the finalizer was set on %s by %q, which is a name of it", s.setOn[manager], manager)})
			}
		}
		for _, manager := range s.workers {
			if l.calledBy(manager) && !slices.Contains(s.Setters, manager) {
				add(l, weakSign, true, evidence.Fact{Source: l.ID().String(), Path: "metadata.managedFields", Value: fmt.Sprintf("%q, which is a name of it, has changed %s since its deletion", manager, s.workedOn[manager])})
			}
		}
	}
}

// byEvents finds the workloads that have reported events about the object since
// its deletion.
func (f *Finder) byEvents(s *Search, n graph.Node, add adder) {
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
	return (manager == l.name || slices.Contains(l.programs, manager)) && isProgram(manager)
}

// isProgram reports whether a field manager's name is one of a program that does nothing
// but its own.
func isProgram(manager string) bool { return !isCommon(manager) && !isPerson(manager) }

// byRights finds the workloads whose accounts may change the type by a rule
// that states it.
func (f *Finder) byRights(s *Search, add adder) {
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
func (f *Finder) within(s *Search, namespace string) []*Workload {
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
func (f *Finder) accountGone(s subject) bool {
	return f.evidence.Ending(s.Namespace) || f.accountUnlisted(Account{s.Namespace, s.Name})
}

// accountUnlisted reports whether a ServiceAccount was not there when all were
// listed.
func (f *Finder) accountUnlisted(a Account) bool {
	return len(f.evidence.Named(evidence.ServiceAccounts.GroupResource(), a.Namespace, a.Name)) == 0 && f.evidence.Covers(evidence.ServiceAccounts.GroupResource(), a.Namespace, a.Name)
}

// usersOf returns the workloads that run as an account, or else pods that do and
// belong to none, or else CronJobs, and Jobs that are suspended. That pods could not be read is noted in the search, and says nothing
// of others.
func (f *Finder) usersOf(s *Search, a Account) []*Workload {
	var found []*Workload
	for _, l := range f.inventory().workloads {
		if l.Account() == a {
			found = append(found, l)
		}
	}
	if len(found) > 0 {
		return found
	}
	var items []unstructured.Unstructured
	if f.hasPods(a.Namespace) {
		var err error
		if items, err = f.evidence.List(evidence.Pods, a.Namespace); err != nil && len(s.workloadsUnread) == 0 {
			s.workloadsUnread = []string{"pods"}
		}
	}
	for i := range items {
		// An ended pod serves nothing any more, and what a Job runs comes and goes.
		if evidence.PodEnded(&items[i]) {
			continue
		}
		if l := newPodWorkload(&items[i]); l != nil && l.Account() == a {
			found = append(found, l)
		}
	}
	if len(found) > 0 || a.Name == "default" { // which many have that serve nothing
		return found
	}
	return slices.DeleteFunc(slices.Concat(f.periodic(s), f.suspended(s)), func(l *Workload) bool { return l.Account() != a })
}

// hasPods reports whether pods may be in the namespace.
func (f *Finder) hasPods(namespace string) bool {
	return !f.evidence.Covers(evidence.Pods.GroupResource(), namespace, "") ||
		len(f.evidence.Within(evidence.Pods.GroupResource(), namespace)) > 0
}

// complete notes what absence cannot be told without, and what was looked at.
func (f *Finder) complete(s *Search) {
	workloadsUnread := slices.Concat(f.inventory().unread, s.workloadsUnread)
	s.unread = append(s.unread, workloadsUnread...)
	s.unread = append(s.unread, f.rights().unread...)
	for _, resource := range []schema.GroupResource{evidence.CRDs.GroupResource(), evidence.Leases.GroupResource(), evidence.Namespaces.GroupResource()} {
		if !f.evidence.Covers(resource, "", "") {
			s.unread = append(s.unread, resource.String())
		}
	}
	slices.Sort(s.unread)
	s.unread = slices.Compact(s.unread)
	s.Looked = evidence.Fact{Source: "searched", Value: strings.Join([]string{
		f.groupsLooked(s),
		looked(len(f.inventory().workloads), "workload", "workloads", workloadsUnread),
		looked(len(f.rights().grants), "rule of RBAC", "rules of RBAC", f.rights().unread),
		looked(f.evidence.Count(evidence.Leases.GroupResource()), "lease", "leases", f.notListed(evidence.Leases)),
	}, ", ")}
}

// groupsLooked says which API group the finalizer points at, or that it could
// not be looked for.
func (f *Finder) groupsLooked(s *Search) string {
	unread := f.notListed(evidence.CRDs)
	switch {
	case len(s.groups) > 0:
		return "the API group " + s.groups[0].Group
	case len(unread) > 0:
		return "API groups unknown (" + unread[0] + " could not be read)"
	}
	return "no API group of its domain"
}

// notListed names a type if not all objects of it could be listed.
func (f *Finder) notListed(resource schema.GroupVersionResource) []string {
	if f.evidence.Covers(resource.GroupResource(), "", "") {
		return nil
	}
	return []string{resource.GroupResource().String()}
}

// looked says how many objects were looked at. What could not be read is not
// said to be none.
func looked(n int, one, many string, unread []string) string {
	said := fmt.Sprintf("%d %s", n, many)
	if n == 1 {
		said = "1 " + one
	}
	switch {
	case len(unread) == 0:
		return said
	case n == 0:
		said = many + " unknown"
	}
	return said + " (" + strings.Join(unread, ", ") + " could not be read)"
}

// serviceOf returns the service that a client configuration of a webhook names.
func serviceOf(config map[string]any) (namespace, name string) {
	namespace, _, _ = unstructured.NestedString(config, "service", "namespace")
	name, _, _ = unstructured.NestedString(config, "service", "name")
	return namespace, name
}
