// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
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

	likely  = 2
	certain = 3
)

// Candidate is a workload that may be the controller of a finalizer.
type Candidate struct {
	*Workload
	score int
	// identified: something other than rights points at it. foreign: nothing is left of rights to the type or others of its group.
	identified, foreign bool
	Signs               []evidence.Fact
	// Named is set when managed fields, an event, a lease, or the place that the
	// catalogue states name it; strong when that is who set the finalizer, or the
	// place.
	Named, strong bool
}

// The paths of signs that are no more than names.
const (
	nameAlone  = "metadata.name"
	nameOf     = "metadata.managedFields"
	nameIn     = "spec.template.spec.containers"
	nameLabels = "metadata.labels"
)

// names are the paths of signs that are no more than names, byRule is that of a rule of RBAC.
var names = []string{nameAlone, nameOf, nameIn, nameLabels}

const byRule = "roleRef"

// The paths of signs that others than the controller seldom have: an auditor reports events, has a webhook for the type, and is
// installed with it, too.
const (
	byHolder     = "spec.holderIdentity"
	byConversion = "spec.conversion.webhook.clientConfig.service"
	byServing    = "spec.service"
)

var seldom = []string{nameOf, nameIn, byHolder, byConversion, byServing}

// isFound reports whether nothing but names and rights points at the workload.
func (c *Candidate) isFound() bool {
	return !slices.ContainsFunc(c.Signs, func(e evidence.Fact) bool { return e.Path != byRule && !slices.Contains(names, e.Path) })
}

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
	managers
	candidates []*Candidate // the best first
	// namesakes are workloads that have no right to such objects, nor to others of their group: anybody may be called so, hold a
	// lease of that name, or be of one release with much else.
	namesakes []*Candidate
	// prospects has by namespace the candidates that count for objects in it.
	prospects map[string][]prospect
	// inPlace are the workloads that are where the catalogue has the controller, or are called so; placed: one of them may be it, as it has
	// rights to such objects.
	inPlace []graph.Identity
	placed  bool
	// instance is the object of a product in whose pods the controller runs; nil for none.
	instance *Workload
	// lost are grants to accounts that are gone with their namespace, outside
	// those to users and groups who may be the controller.
	lost, outside []*grant
	lostServices  []evidence.Fact
	// leases are those for it that no workload here holds or held; orphanLease is
	// one that its controller renews elsewhere.
	leases []*unstructured.Unstructured
	// abroad are those for it that pods of another namespace hold.
	abroad      []*unstructured.Unstructured
	OrphanLease *evidence.Fact
	// strangersLease is one for it, or of a domain above its own, that somebody renews who is no workload
	// here and may have nothing to do with it.
	strangersLease graph.Identity
	unread         []string
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

// searcher finds who is named as the controller of finalizers: by the catalogue, field managers, events, rights, and
// what was installed with a type. It owns the searches, each of which is made once.
type searcher struct {
	*roster
	catalogue *finalizers.Catalogue
	searches  map[string]*Search
	managers  map[string]managers
}

// search looks for the controller of a finalizer on objects of n's type, once:
// a number of lists that does not depend on how many objects there are.
func (f *searcher) search(n graph.Node, finalizer string, field finalizers.Field) *Search {
	resource := n.Resource()
	known := f.entriesFor(n, finalizer, field)
	key := string(field) + " " + finalizer + " " + resource.GroupResource().String()
	if local(known) {
		key += fmt.Sprint(" ", n.Namespace(), known[0].Workloads)
	}
	if s, done := f.searches[key]; done {
		return s
	}
	s := &Search{Finalizer: finalizer, Field: field, resource: *resource, Known: known, possible: map[string][]*Workload{},
		prospects: map[string][]prospect{}, states: map[graph.Identity]State{}}
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
	for _, c := range found {
		if c.IsPod() && !c.strong { // the pods of accounts are known from rights alone
			s.calls(c.Workload, add)
		}
	}
	f.byDefinition(s, add)
	f.byWebhooks(s, add)
	f.byLease(s, n.Namespace(), add)
	of := s.groups
	if group := s.resource.Group; !s.own && !graph.BuiltinGroup(group) {
		of = append(slices.Clip(of), schema.GroupResource{Group: group})
	}
	for _, c := range found {
		c.foreign = len(f.rights().unread) == 0 && !f.otherwise(c.Workload) && !f.rights().knows(c.Account(), s.resource.GroupResource(), of)
		if c.foreign && len(f.rights().hollow[c.Account().User()]) == 0 {
			s.namesakes = append(s.namesakes, c)
			continue
		}
		c.identified = c.strong || slices.ContainsFunc(c.Signs, func(e evidence.Fact) bool { return slices.Contains(seldom, e.Path) })
		s.candidates, s.placed = append(s.candidates, c), s.placed || slices.Contains(s.inPlace, c.ID())
	}
	slices.SortFunc(s.candidates, func(a, b *Candidate) int { return cmp.Or(b.score-a.score, a.ID().Compare(b.ID())) })
	f.renewed(s, n.Namespace())
	f.complete(s)
	return s
}

// Entries returns what the catalogue has of the finalizer: what is said of this
// kind, or else what is said of this name. The controllers of Kubernetes handle the
// kinds that are said, and no others; a product may have others of its own API.
func (f *searcher) Entries(finalizer string, kind schema.GroupKind, field finalizers.Field) []finalizers.Match {
	all := slices.DeleteFunc(f.catalogue.Find(finalizer, kind), func(m finalizers.Match) bool { return m.Field != field })
	fitting := slices.DeleteFunc(slices.Clone(all), func(m finalizers.Match) bool { return !m.KindFits })
	if len(fitting) > 0 {
		return fitting[:1]
	}
	all = slices.DeleteFunc(all, func(m finalizers.Match) bool { return !m.Exact || m.Builtin != "" })
	if !slices.ContainsFunc(all, func(m finalizers.Match) bool { return !isOnOthers(&m, kind) }) {
		return nil
	}
	return all
}

// isOnOthers reports whether an entry is for kinds that are stated, none of which is of the same API or product. One for all kinds of an
// API is of a framework, with which others have APIs.
func isOnOthers(m *finalizers.Match, kind schema.GroupKind) bool {
	builtin := graph.BuiltinGroup(kind.Group)
	return len(m.Kinds) > 0 && (builtin || !related(finalizers.Domain(m.Finalizer), kind.Group)) &&
		!slices.ContainsFunc(m.Kinds, func(stated string) bool {
			_, group, _ := strings.Cut(stated, ".")
			return group == kind.Group || !builtin && (strings.Contains(stated, "*") || related(group, kind.Group))
		})
}

// OfOthers returns the entry of a controller that has the finalizer on other kinds alone, with all of these; nil for none.
func (f *searcher) OfOthers(s *Search) (of *finalizers.Match) {
	kind := s.resource.GroupVersionKind().GroupKind()
	for _, m := range f.catalogue.Find(s.Finalizer, kind) {
		switch {
		case m.Field != s.Field || len(s.Known) > 0 || m.Builtin == "" && !(m.Exact && isOnOthers(&m, kind)):
		case of == nil:
			of = &m
		case of.Product == m.Product:
			of.Kinds = append(slices.Clip(of.Kinds), m.Kinds...)
		}
	}
	return of
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
func (f *searcher) groupsOf(s *Search) (groups []schema.GroupResource, own bool) {
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
		return m.KindFits && (s.ofFramework() || len(m.Kinds) > 0 && !shared)
	})
}

// ofFramework reports whether the catalogue has the finalizer as one that every operator sets which is built on a framework.
func (s *Search) ofFramework() bool {
	return slices.ContainsFunc(s.Known, func(m finalizers.Match) bool {
		return m.KindFits && len(m.Workloads) == 0 && len(m.Kinds) == 0 && m.Builtin == ""
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

// sample returns a few of the objects of n's type with the finalizer: terminating ones of its namespace, n first, and those that
// live and were written last, of a custom type anywhere.
func (f *searcher) sample(n graph.Node, finalizer string) []graph.Node {
	few, alive := []graph.Node{n}, []graph.Node{}
	all := slices.Values(f.evidence.Within(n.Resource().GroupResource(), n.Namespace()))
	if !graph.BuiltinGroup(n.Resource().Group) {
		all = f.evidence.Instances(n.Resource().GroupResource())
	}
	for m := range all {
		switch terminates := m.BeingDeleted(); {
		case m.UID() == n.UID() || !m.HasFinalizer(finalizer):
		case !terminates:
			alive = append(alive, m)
		case len(few) < evidence.MaxShown && m.Namespace() == n.Namespace():
			few = append(few, m)
		}
	}
	slices.SortStableFunc(alive, func(a, b graph.Node) int {
		x, y := a.Object().ResourceVersion, b.Object().ResourceVersion
		return cmp.Or(len(y)-len(x), cmp.Compare(y, x)) // numbers
	})
	return append(few, alive[:min(len(alive), evidence.MaxShown)]...)
}

// managers are the field managers of a few objects of a type.
type managers struct {
	// Setters are those that set the finalizer, workers those that changed such an object after its deletion. Those that have changed
	// others with the finalizer since then, which live, are in wrote alone.
	Setters, workers []string
	// SetAt is when one of the Setters last wrote what it set, zero where that is not known.
	SetAt time.Time
	// setOn and workedOn name the first object on which each of them did, and wrote is when he last changed one.
	setOn, workedOn map[string]graph.Identity
	wrote           map[string]time.Time
	unknown         []string // the types of which one could not be read
}

// managersOf finds out who set the finalizer, and who has changed the objects
// since they were deleted, if they are. A few objects are looked at.
func (f *searcher) managersOf(s *Search, n graph.Node) {
	key := s.Finalizer + " " + s.resource.GroupResource().String()
	known, done := f.managers[key]
	if !done {
		known = f.readManagers(s.Finalizer, f.sample(n, s.Finalizer))
		f.managers[key] = known
	}
	s.managers, s.unread = known, append(s.unread, known.unknown...)
}

func (f *searcher) readManagers(finalizer string, sample []graph.Node) managers {
	s := managers{setOn: map[string]graph.Identity{}, workedOn: map[string]graph.Identity{}, wrote: map[string]time.Time{}}
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
				s.unknown = append(s.unknown, n.Resource().GroupResource().String())
			}
			continue
		}
		since := evidence.Requested(n.Object())
		if !n.BeingDeleted() {
			since = evidence.Latest(evidence.Requested(sample[0].Object()), f.evidence.Now.Add(-lively))
		}
		for _, entry := range full.GetManagedFields() {
			if entry.FieldsV1 != nil && evidence.SetsFinalizer(entry.FieldsV1.Raw, finalizer) {
				s.Setters = append(s.Setters, entry.Manager)
				if entry.Time != nil {
					s.SetAt = evidence.Latest(s.SetAt, entry.Time.Time)
				}
				first(s.setOn, entry.Manager, n)
			}
			if isPerson(entry.Manager) || entry.Time == nil || !sample[0].BeingDeleted() || !entry.Time.After(since) {
				continue
			}
			if n.BeingDeleted() {
				s.workers = append(s.workers, entry.Manager)
			}
			s.wrote[entry.Manager] = evidence.Latest(s.wrote[entry.Manager], entry.Time.Time)
			first(s.workedOn, entry.Manager, n)
		}
	}
	slices.Sort(s.Setters)
	s.Setters = slices.Compact(s.Setters)
	slices.Sort(s.workers)
	s.workers = slices.Compact(s.workers)
	return s
}

// lively is for how long who has written to another object of a type is taken to live.
const lively = 24 * time.Hour

// isPerson reports whether a field manager is a tool with which people change
// objects, or that applies what people wrote.
func isPerson(manager string) bool { return isManifest(manager) || begins(manager, byHand) }

// isManifest reports whether a field manager is a tool that applies what people wrote: a finalizer in that may be there for a
// controller.
func isManifest(manager string) bool {
	exactly := slices.Contains([]string{"kubectl", "helm", "Helm", "argocd", "argocd-controller", "argocd-server",
		"argocd-application-controller", "HashiCorp", "kustomize-controller", "helm-controller", "terraform", "Terraform", "pulumi"}, manager)
	return exactly || !begins(manager, byHand) && begins(manager, []string{"kubectl-", "terraform-provider", "pulumi-"})
}

// byHand are the tools with which people change single objects.
var byHand = []string{"kubectl-edit", "kubectl-patch", "kubectl-annotate", "kubectl-label", "Mozilla", "k9s", "Lens", "curl"}

func begins(manager string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(manager, prefix) })
}

// complete notes what absence cannot be told without, and what was looked at.
func (f *searcher) complete(s *Search) {
	workloadsUnread := slices.Concat(f.inventory().unread, s.workloadsUnread)
	s.unread = append(s.unread, workloadsUnread...)
	s.unread = append(s.unread, f.rights().unread...)
	for _, resource := range []schema.GroupResource{evidence.CRDs.GroupResource(), evidence.Leases.GroupResource(),
		evidence.Namespaces.GroupResource()} {
		if !f.evidence.Covers(resource, "", "") {
			s.unread = append(s.unread, resource.String())
		}
	}
	slices.Sort(s.unread)
	s.unread = slices.Compact(s.unread)
	s.Looked = evidence.At("searched", "", strings.Join([]string{
		f.groupsLooked(s),
		looked(len(f.inventory().workloads), "workload", "workloads", workloadsUnread),
		looked(len(f.rights().grants), "rule of RBAC", "rules of RBAC", f.rights().unread),
		looked(f.evidence.Count(evidence.Leases.GroupResource()), "lease", "leases", f.notListed(evidence.Leases)),
	}, ", "))
}

// groupsLooked says which API group the finalizer points at, or that it could
// not be looked for.
func (f *searcher) groupsLooked(s *Search) string {
	unread := f.notListed(evidence.CRDs)
	switch {
	case len(s.groups) > 0:
		return "the API group " + s.groups[0].Group
	case len(unread) > 0:
		return "API groups unknown (" + unread[0] + " could not be read)"
	}
	return noAPIGroup
}

// notListed names a type if not all objects of it could be listed.
func (f *roster) notListed(resource schema.GroupVersionResource) []string {
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
