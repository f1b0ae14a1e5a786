// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

var (
	clusterRoles = rbacv1.SchemeGroupVersion.WithResource("clusterroles")
	roles        = rbacv1.SchemeGroupVersion.WithResource("roles")
	roleBindings = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
)

// Account is a ServiceAccount.
type Account struct{ Namespace, Name string }

// User is the name that the API server gives the account.
func (a Account) User() string { return "system:serviceaccount:" + a.Namespace + ":" + a.Name }

// Is reports whether a subject of a binding in a namespace is the account, or all of its namespace.
func (a Account) Is(s *rbacv1.Subject, in string) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name == a.User()
	case rbacv1.GroupKind:
		return s.Name == "system:serviceaccounts:"+a.Namespace
	}
	return s.Kind == rbacv1.ServiceAccountKind && s.Name == a.Name && cmp.Or(s.Namespace, in) == a.Namespace
}

// accountNamed returns the service account that a user is, ok if he is one.
func accountNamed(user string) (a Account, ok bool) {
	parts := strings.Split(user, ":")
	if len(parts) != 4 || !strings.HasPrefix(user, "system:serviceaccount:") {
		return Account{}, false
	}
	return Account{parts[2], parts[3]}, true
}

// ID names the ServiceAccount.
func (a Account) ID() graph.Identity {
	return evidence.Identity(evidence.ServiceAccounts, a.Namespace, a.Name)
}

// policyRule is a rule of a Role or ClusterRole.
type policyRule rbacv1.PolicyRule

type subject rbacv1.Subject

func (s subject) String() string { return fmt.Sprint(s.named()) }

// named is the ServiceAccount, or says which user or group that is.
func (s subject) named() any {
	if s.Kind == rbacv1.ServiceAccountKind {
		return Account{s.Namespace, s.Name}.ID()
	}
	return s.Kind + " " + s.Name
}

// grant is a rule that a binding gives a subject.
type grant struct {
	policyRule
	subject subject
	// namespace is where it holds, empty for everywhere.
	namespace string
	// role and binding name the objects that it comes from.
	role, binding graph.Identity
	// aggregated: the role is one of those that clusters hand out to people, and to a ServiceAccount one of the default ones.
	aggregated bool
}

// key is that of the subject in rights.of.
func (g *grant) key() string {
	if g.subject.Kind == rbacv1.ServiceAccountKind {
		return g.subject.Kind + " " + Account{g.subject.Namespace, g.subject.Name}.User()
	}
	return g.subject.Kind + " " + g.subject.Name
}

// rights are what RBAC allows. Another authorizer may allow more; rules for
// service accounts outside RBAC are rare.
type rights struct {
	grants []*grant
	// bindings are those of Roles and ClusterRoles, whatever these allow.
	bindings []rbacv1.RoleBinding
	// of has the grants of a subject, by its name for the API server.
	of map[string][]*grant
	// unread says what could not be read, empty when everything was.
	unread []string
	// granted has the grants of an account, known what they let it change of a type.
	granted map[Account][]*grant
	known   map[question][]allowance
	// namespaces are those in which its grants let an account do something with a type.
	namespaces map[question]map[string]bool
	// holding has the holders of a type.
	holding map[schema.GroupResource][]*grant
	// clusterRoles are by their names.
	clusterRoles map[string]*rbacv1.ClusterRole
	// hollow are the bindings of users to a role that is gone or has no rules: they have lost what it gave.
	hollow map[string][]hollow
}

// hollow is a binding, which holds in a namespace, to a role that gives nothing; gone: there is none.
type hollow struct {
	namespace string
	gone      bool
}

// question is which objects of a type an account may change.
type question struct {
	account  Account
	resource schema.GroupResource
}

// allowance lets objects be changed in a namespace, empty for all: those of the names, or
// all when there are none.
type allowance struct {
	namespace string
	names     []string
}

func (a allowance) holds(namespace, name string) bool {
	return (a.namespace == "" || a.namespace == namespace) && (len(a.names) == 0 || slices.Contains(a.names, name))
}

// rights reads the roles and bindings of the cluster, once: four lists.
func (f *roster) rights() *rights {
	if f.allowed != nil {
		return f.allowed
	}
	r := &rights{
		of: map[string][]*grant{}, granted: map[Account][]*grant{}, known: map[question][]allowance{}, namespaces: map[question]map[string]bool{},
		holding:      map[schema.GroupResource][]*grant{},
		clusterRoles: map[string]*rbacv1.ClusterRole{}, hollow: map[string][]hollow{},
	}
	f.allowed = r
	rules, aggregated := map[string][]rbacv1.PolicyRule{}, map[string]bool{}
	for _, resource := range []schema.GroupVersionResource{clusterRoles, roles} {
		items := f.listFor(resource, &r.unread)
		for i := range items {
			role := new(rbacv1.ClusterRole) // a Role has the same fields
			if evidence.Decode(&items[i], role) {
				if resource == clusterRoles {
					r.clusterRoles[role.Name] = role
				}
				key := role.Namespace + "/" + role.Name
				rules[key], aggregated[key] = role.Rules, isAggregated(role)
			}
		}
	}
	goes := map[string]bool{}
	for _, resource := range []schema.GroupVersionResource{clusterRoles, roles} {
		for n := range f.evidence.Going(resource.GroupResource()) {
			goes[n.Namespace()+"/"+n.Name()] = true
		}
	}
	for name, role := range r.clusterRoles {
		if role.AggregationRule != nil && len(goes) > 0 {
			rules["/"+name] = r.ofPieces(role)
		}
	}
	for _, resource := range []schema.GroupVersionResource{evidence.ClusterRoleBindings, roleBindings} {
		items := f.listFor(resource, &r.unread)
		for i := range items {
			var b rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
			if !evidence.Decode(&items[i], &b) {
				continue
			}
			in, role := "", evidence.Named("ClusterRole", "", b.RoleRef.Name)
			if b.RoleRef.Kind == "Role" {
				in, role = b.Namespace, evidence.Named("Role", b.Namespace, b.RoleRef.Name)
			}
			key := in + "/" + b.RoleRef.Name
			_, known := rules[key]
			r.bind(&b, rules[key], role, aggregated[key], !known && !goes[key])
			r.bindings = append(r.bindings, b)
		}
	}
	return r
}

// listFor lists whole objects everywhere, and notes when that fails.
func (f *roster) listFor(resource schema.GroupVersionResource, unread *[]string) []unstructured.Unstructured {
	items, err := f.evidence.List(resource, "")
	if err != nil && !slices.Contains(*unread, resource.GroupResource().String()) {
		*unread = append(*unread, resource.GroupResource().String())
	}
	return items
}

// isAggregated reports whether a role is one for people, as those that are aggregated to the default ones are.
func isAggregated(role *rbacv1.ClusterRole) bool {
	for label := range role.Labels {
		if strings.HasPrefix(label, rbacv1.GroupName+"/aggregate-to-") {
			return true
		}
	}
	return false
}

// defaultRoles are those of Kubernetes, as a role of a grant.
var defaultRoles = []string{"ClusterRole/cluster-admin", "ClusterRole/admin", "ClusterRole/edit", "ClusterRole/view"}

// bind adds what a binding gives; gone: nothing of its role is known.
func (r *rights) bind(b *rbacv1.RoleBinding, rules []rbacv1.PolicyRule, role graph.Identity, aggregated, gone bool) {
	name := evidence.Named("ClusterRoleBinding", "", b.Name)
	if b.Namespace != "" {
		name = evidence.Named("RoleBinding", b.Namespace, b.Name)
	}
	for _, s := range b.Subjects {
		if a, ok := accountNamed(s.Name); ok && s.Kind == rbacv1.UserKind {
			s = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.Namespace, Name: a.Name}
		}
		user := s.Name
		if s.Kind == rbacv1.ServiceAccountKind {
			if s.Namespace == "" {
				s.Namespace = b.Namespace
			}
			user = Account{s.Namespace, s.Name}.User()
		}
		if len(rules) == 0 {
			r.hollow[user] = append(r.hollow[user], hollow{b.Namespace, gone})
		}
		for _, rule := range rules {
			g := &grant{policyRule: policyRule(rule), subject: subject(s), namespace: b.Namespace, role: role, binding: name}
			g.aggregated = aggregated && s.Kind != rbacv1.ServiceAccountKind || slices.Contains(defaultRoles, role.String())
			r.grants = append(r.grants, g)
			r.of[g.key()] = append(r.of[g.key()], g)
		}
	}
}

// grantsOf returns what a service account may do, with what it may as a member
// of the groups that all are in.
func (r *rights) grantsOf(a Account) []*grant {
	if all, asked := r.granted[a]; asked {
		return all
	}
	all := slices.Clone(r.of["ServiceAccount "+a.User()])
	all = append(all, r.of["User "+a.User()]...)
	for _, group := range []string{"system:serviceaccounts", "system:serviceaccounts:" + a.Namespace, "system:authenticated"} {
		all = append(all, r.of["Group "+group]...)
	}
	r.granted[a] = all
	return all
}

// UserMay reports whether RBAC gives a user a right in a namespace, with what could not be
// read of RBAC.
func (f *Finder) UserMay(right answer.Right, namespace string) (may bool, unread []string) {
	r := f.rights()
	grants := append(slices.Clone(r.of["User "+right.User]), r.of["Group system:authenticated"]...)
	if a, ok := accountNamed(right.User); ok {
		grants = r.grantsOf(a)
	}
	return slices.ContainsFunc(grants, func(g *grant) bool {
		return (g.namespace == "" || g.namespace == namespace) && len(g.ResourceNames) == 0 && g.covers(right.Resource) && g.allows(right.Verb)
	}), r.unread
}

var changing = []string{"update", "patch"}

// mayChange reports whether the account may take a finalizer off the object:
// update or patch it.
func (r *rights) mayChange(a Account, resource schema.GroupResource, namespace, name string) bool {
	return slices.ContainsFunc(r.changes(a, resource), func(some allowance) bool { return some.holds(namespace, name) })
}

// maySome reports whether the account may change some object of a type in a namespace.
func (r *rights) maySome(a Account, resource schema.GroupResource, namespace string) bool {
	return slices.ContainsFunc(r.changes(a, resource),
		func(some allowance) bool { return some.namespace == "" || some.namespace == namespace })
}

// changes returns what the account may change of a type.
func (r *rights) changes(a Account, resource schema.GroupResource) []allowance {
	q := question{a, resource}
	some, asked := r.known[q]
	if !asked {
		for _, g := range r.grantsOf(a) {
			if g.covers(resource) && g.allows(changing...) {
				some = append(some, allowance{g.namespace, g.ResourceNames})
			}
		}
		r.known[q] = some
	}
	return some
}

// states reports whether a rule that states the type lets the account change its
// objects.
func (r *rights) states(a Account, resource schema.GroupResource) bool {
	return slices.ContainsFunc(r.of["ServiceAccount "+a.User()], func(g *grant) bool {
		return !g.aggregated && g.names(resource) && g.allows(changing...)
	})
}

// knows reports whether a rule lets the account do something with objects of the type, or with
// those of one of the groups or of one below or above it.
func (r *rights) knows(a Account, resource schema.GroupResource, groups []schema.GroupResource) bool {
	return slices.ContainsFunc(r.grantsOf(a), func(g *grant) bool {
		return g.covers(resource) || slices.ContainsFunc(groups, func(of schema.GroupResource) bool {
			return slices.ContainsFunc(g.APIGroups, func(group string) bool { return group != "" && related(group, of.Group) })
		})
	})
}

// beside reports whether rules let the account do something with objects of another group of a product, and nothing with any of this one.
func (r *rights) beside(a Account, group string) bool {
	in := func(is func(string) bool) bool {
		return slices.ContainsFunc(r.grantsOf(a), func(g *grant) bool { return slices.ContainsFunc(g.APIGroups, is) })
	}
	return len(r.unread) == 0 && in(func(other string) bool { return related(other, group) }) &&
		!in(func(other string) bool { return other == group || other == "*" })
}

// lost reports whether the account may have lost a right in the namespace, by what is left of it; of a role that is gone what it gave is
// not known.
func (r *rights) lost(a Account, namespace string, goneToo bool) bool {
	return slices.ContainsFunc(r.hollow[a.User()], func(h hollow) bool {
		return (h.namespace == "" || h.namespace == namespace) && (goneToo || !h.gone)
	})
}

// mayAnything reports whether a rule lets the account do
// something with objects of the type in the namespace.
func (r *rights) mayAnything(a Account, resource schema.GroupResource, namespace string) bool {
	within := r.within(a, resource)
	return within[""] || within[namespace]
}

// ownsFinalizers reports whether a rule states the finalizers of the type for an account: controllers that
// set them are given that.
func (r *rights) ownsFinalizers(a Account, resource schema.GroupResource) bool {
	return slices.ContainsFunc(r.grantsOf(a), func(g *grant) bool {
		return g.part(resource, "finalizers")
	})
}

// within returns the namespaces in which rules let the account do something with objects of the
// type, empty for everywhere.
func (r *rights) within(a Account, resource schema.GroupResource) map[string]bool {
	q := question{a, resource}
	namespaces, asked := r.namespaces[q]
	if !asked {
		namespaces = map[string]bool{}
		for _, g := range r.grantsOf(a) {
			if g.covers(resource) {
				namespaces[g.namespace] = true
			}
		}
		r.namespaces[q] = namespaces
	}
	return namespaces
}

// mayAll reports whether the account may change objects of every type in the
// namespace.
func (r *rights) mayAll(a Account, namespace string) bool {
	return slices.ContainsFunc(r.grantsOf(a), func(g *grant) bool {
		return (g.namespace == "" || g.namespace == namespace) && len(g.ResourceNames) == 0 &&
			slices.Contains(g.APIGroups, "*") && slices.Contains(g.Resources, "*") && g.allows(changing...)
	})
}

// mayImpersonate reports whether the account may send requests as somebody else who may have other rights: in a namespace it may as the
// accounts of that alone (k8s.io/apiserver/pkg/endpoints/filters/impersonation), which tenants may of their own.
func (r *rights) mayImpersonate(a Account) bool {
	return slices.ContainsFunc(r.grantsOf(a), func(g *grant) bool {
		accounts := evidence.Lists(g.Resources, "serviceaccounts")
		switch {
		case !evidence.Lists(g.APIGroups, "") || !g.allows("impersonate"):
			return false
		case g.namespace == "":
			return accounts || evidence.Lists(g.Resources, "users") || evidence.Lists(g.Resources, "groups")
		}
		return accounts && slices.ContainsFunc(r.grants, func(other *grant) bool {
			return other.subject.Namespace == g.namespace && other.namespace != g.namespace
		})
	})
}

// said says for people what the account may do with an object, and by which
// roles. Rules for other objects of the type, by their names, are told apart.
func (r *rights) said(a Account, resource schema.GroupResource, namespace, name string) say.Text {
	var verbs []string
	var by, others []say.Text
	for _, g := range r.grantsOf(a) {
		switch {
		case g.namespace != "" && g.namespace != namespace || !g.covers(resource):
		case len(g.ResourceNames) > 0 && !slices.Contains(g.ResourceNames, name):
			others = append(others, say.Of(onlyNamed, g.role, strings.Join(g.Verbs, ", "), strings.Join(g.ResourceNames, ", ")))
		default:
			verbs, by = append(verbs, g.Verbs...), append(by, say.Plain(g.role))
		}
	}
	said := say.Of(allowsNothing)
	if slices.Sort(verbs); len(verbs) > 0 {
		said = say.Of(allowsOther, strings.Join(slices.Compact(verbs), ", "), say.Join(", ", sorted(by)...))
	}
	if others = sorted(others); len(others) > evidence.MaxShown {
		others = append(others[:evidence.MaxShown], say.Of(moreRules, len(others)-evidence.MaxShown))
	}
	return say.Join("; ", append([]say.Text{said}, others...)...)
}

// sorted sorts texts, each once.
func sorted(texts []say.Text) []say.Text {
	slices.SortFunc(texts, func(a, b say.Text) int { return strings.Compare(a.String(), b.String()) })
	return slices.CompactFunc(texts, say.Text.Equal)
}

// covers reports whether the rule is about objects of the type, all or some.
func (p policyRule) covers(resource schema.GroupResource) bool {
	return evidence.Lists(p.APIGroups, resource.Group) && evidence.Lists(p.Resources, resource.Resource)
}

// names reports whether the rule states the type, or its group, not "*", and all types, or the finalizers or status of its objects.
func (p policyRule) names(resource schema.GroupResource) bool {
	return slices.Contains(p.APIGroups, resource.Group) && (resource.Resource == "" || evidence.Lists(p.Resources, resource.Resource)) ||
		p.covers(resource) && slices.Contains(p.Resources, resource.Resource) || p.part(resource, "finalizers") || p.part(resource, "status")
}

// part reports whether the rule states a subresource of the type, or of all types in its group.
func (p policyRule) part(resource schema.GroupResource, sub string) bool {
	return slices.Contains(p.APIGroups, resource.Group) &&
		slices.ContainsFunc([]string{"*/" + sub, resource.Resource + "/" + sub}, func(r string) bool {
			return slices.Contains(p.Resources, r)
		})
}

func (p policyRule) allows(verbs ...string) bool {
	return slices.ContainsFunc(verbs, func(verb string) bool { return evidence.Lists(p.Verbs, verb) })
}

// holders returns the grants that state the type and let their subject change
// its objects, but for those of aggregated roles. They are the best sign of who
// works on a type.
func (r *rights) holders(resource schema.GroupResource) []*grant {
	found, known := r.holding[resource]
	if !known {
		for _, g := range r.grants {
			if !g.aggregated && g.names(resource) && g.allows(changing...) {
				found = append(found, g)
			}
		}
		slices.SortStableFunc(found, func(a, b *grant) int { // what is said of an account is the best of its rules
			return cmp.Or(weight(b.covers(resource))-weight(a.covers(resource)), cmp.Compare(a.binding.String(), b.binding.String()))
		})
		r.holding[resource] = found
	}
	return found
}

func (g *grant) evidence() evidence.Fact {
	what, verbs := strings.Join(g.Resources, ","), strings.Join(g.Verbs, ",")
	switch {
	case !slices.Contains(g.Resources, "*"):
	case slices.Contains(g.APIGroups, "*"):
		what = "everything"
	default:
		groups := slices.Clone(g.APIGroups)
		if core := slices.Index(groups, ""); core >= 0 {
			groups[core] = "the core group"
		}
		what = "everything in " + strings.Join(groups, ", ")
	}
	if slices.Contains(g.Verbs, "*") {
		verbs = "all verbs"
	}
	if len(g.ResourceNames) > 0 {
		what += " named " + strings.Join(g.ResourceNames, ",")
	}
	return evidence.At(g.binding, byRule, say.Of(roleGives, g.role, g.subject.named(), verbs, what))
}
