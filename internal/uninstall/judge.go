// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/lease"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// judge finds what keeps an object, but for those that name it.
func (j *judging) judge(c *candidate) {
	for _, ref := range c.node.Owners() {
		c.hold(OwnedBy, ref.Owner.Identity(), ref.UID)
	}
	for _, n := range c.node.Dependents() {
		if replaceable(n, c.node) {
			continue
		}
		c.hold(OwnerOf, n.Identity(), n.UID())
	}
	if by := j.deliveredBy(c.whole); !by.IsZero() {
		c.hold(DeliveredBy, by, "")
	}
	j.belongs(c)
	switch r := c.Object.Resource; {
	case r.GroupResource() == evidence.Leases.GroupResource():
		j.leased(c)
	case r.GroupResource() == evidence.Claims.GroupResource():
		j.claimed(c)
	case r.IsNamespace():
		j.holds(c)
	case bindingKinds[r.GroupVersionResource] != "":
		j.grants(c)
	default:
		j.calls(c)
	}
}

// belongs holds what has lost its label, or belongs to one object, which exists again.
func (j *judging) belongs(c *candidate) {
	switch c.left.By {
	case ByLabel:
		key, value, _ := strings.Cut(c.left.Detail, "=")
		if now, has := c.whole.GetLabels()[key]; !has || now != value {
			c.hold(Unlabelled, c.left.Detail, "")
		}
		j.namesake(c)
	case ByRelease:
		if delivery.Release(c.whole).Path() != c.left.Detail {
			c.hold(Changed, "", "")
		}
	case ByService, ByClaimTemplate, ByHolder, ByManager:
		j.back(c)
		if c.left.By == ByManager {
			j.running(c)
		}
		services, _ := servicesOf(c.whole)
		if of := c.left.of(); c.left.By == ByService && !slices.Contains(services, of.Namespace+"/"+of.Name) {
			c.hold(Repointed, of, "")
		}
	}
}

// namesake holds what is outside the namespace of a release when there is one of its name in another, which may have made it.
func (j *judging) namesake(c *candidate) {
	releases := j.Of.releases()
	if delivery.Release(c.whole).Path() != "" || len(releases) == 0 ||
		slices.ContainsFunc(releases, func(d Deliverer) bool { return d.Namespace == c.Object.Namespace }) {
		return
	}
	for _, n := range j.namesakes() {
		c.hold(NamedBy, say.Of(hasNamesake, n.Identity()), n.UID())
	}
	if !j.Evidence.RecordsListed("") || !j.Graph.Snapshot().ListedIn(evidence.Namespaces.GroupResource(), "") {
		c.hold(NotRead, evidence.Secrets.Resource, "")
	}
}

// releasesNamed are the latest records of installed releases of the name in other namespaces.
func (j *judging) releasesNamed() (all []graph.Node) {
	for namespace := range j.Evidence.Instances(evidence.Namespaces.GroupResource()) {
		for _, d := range j.Of.releases() {
			if namespace.Name() != d.Records {
				all = append(all, j.Evidence.Installed(namespace.Name(), d.Name)...)
			}
		}
	}
	return all
}

// belonged are the types of what something else belongs to.
var belonged = map[string]schema.GroupResource{
	"Service": evidence.Services.GroupResource(), "Pod": evidence.Pods.GroupResource(),
	"Deployment": workloads[0], "StatefulSet": workloads[1], "DaemonSet": workloads[2], "Job": jobs, "CronJob": cronJobs,
}

// back holds what belongs to an object of which the name exists: that which was to be deleted is gone.
func (j *judging) back(c *candidate) {
	of := c.left.of()
	resource, known := belonged[of.Resource.Kind]
	switch found := j.Evidence.Named(resource, of.Namespace, of.Name); {
	case !known || of.Name == "": // the document was changed by hand
		c.hold(NotRead, string(c.left.By), "")
	case len(found) > 0:
		c.hold(Back, of, found[0].UID())
	case !j.Graph.Snapshot().Covers(resource, of.Namespace, of.Name):
		c.hold(NotRead, of, "")
	}
}

// running holds what a program has written that runs again, maybe in a workload of another name.
func (j *judging) running(c *candidate) {
	for _, r := range j.present() {
		ran := func(e metav1.ManagedFieldsEntry) bool {
			return e.Subresource == "" && r.programs.of(c.Object.Namespace, e.Manager) != ""
		}
		if slices.ContainsFunc(c.whole.GetManagedFields(), ran) {
			c.hold(UsedBy, r.Identity(), r.UID())
		}
	}
}

// runner is a workload that is there.
type runner struct {
	graph.Node
	programs programs
}

// runnersNow are all of them.
func (j *judging) runnersNow() (all []runner) {
	for _, n := range j.runners(func(string) bool { return true }) {
		p := programs{}
		for _, name := range j.programsOf(n) {
			if controllers.IsProgram(name) || controllers.IsCommon(name) {
				p[[2]string{n.Namespace(), name}] = name
			}
		}
		all = append(all, runner{n, p})
	}
	return all
}

// deliveredBy is the release or the tool's object that an object says it is of, zero when that is what was uninstalled, or nothing.
func (s *Saved) deliveredBy(o *unstructured.Unstructured) say.Text {
	own, other := s.Of.of(o)
	if own || !other.IsZero() {
		return other
	}
	manager := o.GetLabels()[managedBy]
	gone := slices.ContainsFunc(s.Goes, func(id graph.Identity) bool { return id.Name == manager })
	if manager != "" && !byHelm(o.GetLabels()) && !gone {
		return say.Plain(manager + " (" + managedBy + ")")
	}
	return say.Text{}
}

// leased holds a lease whose holder works, or may: it is none of the pods that are gone.
func (j *judging) leased(c *candidate) {
	l := lease.Of(c.whole.Object)
	pod := controllers.PodOfHolder(l.Holder)
	if l.Holder == "" {
		return
	}
	if pods := j.Evidence.Named(evidence.Pods.GroupResource(), c.Object.Namespace, pod); len(pods) > 0 {
		c.hold(Leased, pods[0].Identity(), pods[0].UID())
		return
	}
	gone := slices.ContainsFunc(j.Goes, func(id graph.Identity) bool {
		return id.Resource.IsPod() && id.Namespace == c.Object.Namespace && id.Name == pod
	})
	if !gone && (c.left.By == ByHolder || l.Judge(j.Evidence.Now) == lease.Held) {
		c.hold(Leased, l.Holder, "")
	}
}

// claimed holds the claim of a StatefulSet, which may have no pods just now.
func (j *judging) claimed(c *candidate) {
	sets, err := j.Evidence.List(workloads[1].WithVersion("v1"), c.Object.Namespace)
	if err != nil {
		c.hold(NotRead, "statefulsets.apps", "")
		return
	}
	for i := range sets {
		if evidence.IsTemplateClaim(&sets[i], c.Object.Name) {
			c.hold(ClaimedBy, evidence.IdentityOf(workloads[1].WithVersion("v1"), "StatefulSet", &sets[i]), sets[i].GetUID())
		}
	}
}

// holds holds a namespace with contents, or with some that were not listed. The history of a release is contents.
func (j *judging) holds(c *candidate) {
	if blind := j.blind(c.Object.Name); blind != "" {
		c.hold(NotRead, blind, "")
	}
	var contents []graph.Identity
	for _, n := range j.Evidence.In(c.Object.Name) {
		if everywhere(n) {
			continue
		}
		contents = append(contents, n.Identity())
		if !j.enough(c) {
			c.hold(Holds, n.Identity(), j.madeBy(n))
		}
	}
	if c.left.By == ByNamespace {
		c.left.Detail, c.left.contents = someOf(contents).String(), contents
		c.Belongs = c.left.Says()
	}
}

// enough reports whether so much keeps an object that not all of it is among the leftovers.
func (j *judging) enough(c *candidate) bool { return len(c.holds) > 2*len(j.all)+1 }

// spare holds what only a person decides about: definitions with instances, what might have data, and what has changed or is kept by the
// tool.
func (j *judging) spare(c *candidate) {
	switch r := c.Object.Resource; {
	case r.IsCRD():
		j.ruled(c)
		instances := schema.ParseGroupResource(c.Object.Name)
		c.Instances = j.instances(c.Object, func(types.UID) bool { return false })
		for _, id := range c.Instances {
			if !j.enough(c) {
				c.hold(HasInstances, "", id.UID)
			}
		}
		if !j.Graph.Snapshot().ListedIn(instances, "") {
			c.hold(NotRead, instances.String(), "")
		}
	case evidence.KeepsData(r.GroupResource()), evidence.Stores(r.GroupResource()):
		c.hold(Data, "", "")
	case c.left.By == ByManager && slices.Contains(workloads, r.GroupResource()):
		c.hold(Runs, "", "")
	}
	if all := c.node.Finalizers(); foresight.Foreign(all) {
		c.hold(Finalizers, strings.Join(all, ", "), "")
	}
	if c.Changed {
		c.hold(Changed, "", "")
	}
	if c.left.By == "" || keepMark(c.whole) != "" {
		c.hold(ByTool, "", "")
	}
}

// ruled holds a definition about whose objects a rule of a role is that stays: another operator may serve them, or read them.
func (j *judging) ruled(c *candidate) {
	of := schema.ParseGroupResource(c.Object.Name)
	for resource, kind := range map[schema.GroupVersionResource]string{
		rbacv1.SchemeGroupVersion.WithResource("clusterroles"): "ClusterRole", rbacv1.SchemeGroupVersion.WithResource("roles"): "Role",
	} {
		items, err := j.Evidence.List(resource, "")
		if err != nil {
			c.hold(NotRead, resource.GroupResource().String(), "")
			continue
		}
		for i := range items {
			var role rbacv1.ClusterRole // a Role has the same rules
			if !evidence.Decode(&items[i], &role) || role.AggregationRule != nil {
				continue
			}
			about := func(rule rbacv1.PolicyRule) bool {
				names := func(name string) bool { name, _, _ = strings.Cut(name, "/"); return name == of.Resource }
				everyGroup, every := slices.Contains(rule.APIGroups, "*"), slices.Contains(rule.Resources, "*")
				return !(everyGroup && every) && (everyGroup || slices.Contains(rule.APIGroups, of.Group)) &&
					(every || slices.ContainsFunc(rule.Resources, names))
			}
			if id := evidence.IdentityOf(resource, kind, &items[i]); slices.ContainsFunc(role.Rules, about) && !j.enough(c) {
				c.hold(NamedBy, say.Of(ruledBy, id), id.UID)
			}
		}
	}
}

// grants holds a binding that gives rights to an account that exists, or to users that are outside the cluster.
func (j *judging) grants(c *candidate) {
	var b rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
	if !evidence.Decode(c.whole, &b) {
		return
	}
	accounts := evidence.ServiceAccounts.GroupResource()
	for _, s := range b.Subjects {
		for n := range j.Evidence.Instances(accounts) {
			if (controllers.Account{Namespace: n.Namespace(), Name: n.Name()}).Is(&s, b.Namespace) && !j.enough(c) {
				c.hold(UsedBy, n.Identity(), n.UID())
			}
		}
		switch in := cmp.Or(s.Namespace, b.Namespace); {
		case s.Kind != rbacv1.ServiceAccountKind && !strings.HasPrefix(s.Name, "system:serviceaccount"):
			c.hold(UsedBy, s.Kind+" "+s.Name, "")
		case s.Kind == rbacv1.ServiceAccountKind && !j.Graph.Snapshot().ListedIn(accounts, in):
			c.hold(NotRead, accounts.String(), "")
		}
	}
}

// calls holds the configuration of webhooks, an APIService or a definition of which a service exists.
func (j *judging) calls(c *candidate) {
	services, outside := servicesOf(c.whole)
	if outside {
		c.hold(Calls, "", "")
	}
	for _, at := range services {
		namespace, name, _ := strings.Cut(at, "/")
		switch found := j.Evidence.Named(evidence.Services.GroupResource(), namespace, name); {
		case len(found) > 0:
			c.hold(Calls, "Service/"+at, found[0].UID())
		case !j.Graph.Snapshot().Covers(evidence.Services.GroupResource(), namespace, name):
			c.hold(NotRead, "Service/"+at, "")
		}
	}
}
