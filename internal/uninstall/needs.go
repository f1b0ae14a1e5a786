// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// accountOf names the ServiceAccount as which Flux deletes what an object of its own has deployed, empty when it is the controller's own
// (github.com/fluxcd/pkg/runtime/client/impersonator.go, CanImpersonate).
func accountOf(n graph.Node, o *unstructured.Unstructured) string {
	if resource := n.Resource().GroupResource(); resource != delivery.Kustomizations && resource != delivery.HelmReleases {
		return ""
	}
	return evidence.Nested(o, "spec", "serviceAccountName")
}

// noAccount returns the account as which an object's controller would delete, when that has certainly gone by then: both controllers then
// delete nothing, and remove their finalizer (kustomization_controller.go, finalize; helmrelease_controller.go, reconcileReleaseDeletion).
func (f *following) noAccount(at int, n graph.Node, o *unstructured.Unstructured) graph.Identity {
	name := accountOf(n, o)
	if name == "" {
		return graph.Identity{}
	}
	id := evidence.Identity(evidence.ServiceAccounts, n.Namespace(), name)
	found := f.Evidence.Named(evidence.ServiceAccounts.GroupResource(), n.Namespace(), name)
	if len(found) == 0 && f.Graph.Snapshot().Covers(evidence.ServiceAccounts.GroupResource(), n.Namespace(), name) {
		return id
	}
	for _, account := range found {
		before := f.plan.before(at)
		gone := func(barrier int) bool { return before[barrier] }
		if len(account.Finalizers()) == 0 && slices.ContainsFunc(f.plan.in(account.UID()), gone) {
			return id
		}
	}
	return graph.Identity{}
}

// keepWithoutAccount keeps what would have been deleted as an account that has gone.
func (p *Plan) keepWithoutAccount(barriers []Barrier, account, by graph.Identity) {
	for _, b := range barriers {
		for _, id := range b.Objects {
			p.Kept = append(p.Kept, Kept{Object: id, Reason: NoAccount, Detail: say.Plain(account), By: by})
		}
	}
}

// ownWithoutAccount keeps all that the tool's own object has deployed if the account as which Flux deletes that does not exist.
func (f *following) ownWithoutAccount() {
	own, o := f.own()
	if o == nil || len(f.plan.Barriers) == 0 {
		return
	}
	if account := f.noAccount(0, own, o); account.Name != "" {
		f.plan.keepWithoutAccount(f.plan.Barriers[1:], account, graph.Identity{})
		f.plan.Barriers = f.plan.Barriers[:1]
	}
}

// own returns the tool's own object, if it has one that could be read.
func (f *following) own() (graph.Node, *unstructured.Unstructured) {
	n, known := f.Graph.Node(f.plan.Own.UID)
	if !known || f.plan.Own.UID == "" {
		return n, nil
	}
	o, _ := f.Evidence.Whole(n)
	return n, o
}

// needs finds out what the controller of a tool's object needs that goes by the plan, or does not exist, and what that means. d is nil for
// the tool's own object, of which by is empty.
func (f *following) needs(n graph.Node, o *unstructured.Unstructured, by types.UID, d *delegate) {
	f.need(n, f.needed(n, o))
	if d != nil && n.Resource().GroupResource() == delivery.HelmReleases {
		_, _, storage := HelmReleaseOf(o)
		for _, namespace := range f.Evidence.Named(evidence.Namespaces.GroupResource(), "", storage) {
			f.mayKeep(d, namespace)
		}
	}
	name := accountOf(n, o)
	if name == "" || !acts(n, o) {
		return
	}
	id, grants := evidence.Identity(evidence.ServiceAccounts, n.Namespace(), name), f.grants(n.Namespace(), name)
	f.deprivesItself(by, n.UID(), id, grants)
	for _, account := range f.Evidence.Named(evidence.ServiceAccounts.GroupResource(), n.Namespace(), name) {
		if d != nil && f.mayKeep(d, account) { // with the account its deletion would end, sooner or later
			continue
		}
		f.lacksRights(by, n.UID(), id, grants)
		if d != nil {
			f.need(n, slices.DeleteFunc(grants, func(need preview.Need) bool { return f.plan.deletes(n.UID(), need.Object.UID) }))
		}
	}
}

// needed is what the controller of a tool's object needs for it besides an account: for an Application its AppProject
// (github.com/argoproj/argo-cd/v3/controller/appcontroller.go, finalizeApplicationDeletion: getAppProj), and for a Kustomization the Secret
// or ConfigMap by which it reaches its cluster (kustomization_controller.go, finalize), but neither its source nor the Secret of its
// spec.decryption. Without such a Secret helm-controller uninstalls nothing, and ends (reconcileReleaseDeletion).
func (f *following) needed(n graph.Node, o *unstructured.Unstructured) []preview.Need {
	secret, settings := evidence.Nested(o, "spec", "kubeConfig", "secretRef", "name"),
		evidence.Nested(o, "spec", "kubeConfig", "configMapRef", "name")
	switch resource := n.Resource().GroupResource(); {
	case !acts(n, o), f.noAccount(0, n, o).Name != "": // without its account it does nothing either
		return nil
	case resource == delivery.Applications:
		return f.project(n, o)
	case resource == delivery.Kustomizations && secret != "":
		return f.necessary(evidence.Secrets, "Secret", n.Namespace(), secret)
	case resource == delivery.Kustomizations && settings != "":
		return f.necessary(evidence.ConfigMaps, "ConfigMap", n.Namespace(), settings)
	}
	return nil
}

// acts reports whether the controller of a tool's object does anything for its deletion but remove its finalizer, for which it needs
// nothing.
func acts(n graph.Node, o *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend")
	switch n.Resource().GroupResource() {
	case delivery.Kustomizations:
		return keepsInventory(o) == "" && len(inventory(delivery.Kustomizations, o)) > 0
	case delivery.HelmReleases:
		return !suspended && installed(o)
	}
	return len(n.Finalizers()) > 0
}

var appProjects = schema.GroupVersionResource{Group: delivery.Applications.Group, Version: "v1alpha1", Resource: "appprojects"}

func projectName(app *unstructured.Unstructured) string {
	return cmp.Or(evidence.Nested(app, "spec", "project"), "default")
}

// project is the AppProject of an Application, which is in the namespace of the controller. One with a finalizer is there until no
// Application names it (finalizeProjectDeletion).
func (f *following) project(n graph.Node, o *unstructured.Unstructured) []preview.Need {
	namespace, certain := f.argoNamespace(n, o)
	needs := f.necessary(appProjects, "AppProject", namespace, projectName(o))
	needs = slices.DeleteFunc(needs, func(need preview.Need) bool {
		project, exists := f.Graph.Node(need.Object.UID)
		guarded := exists && !need.Absent && len(project.Finalizers()) > 0
		if guarded && n.UID() == f.plan.Own.UID && len(f.plan.in(project.UID())) > 0 { // each waits for the other
			f.plan.doubt(n.UID(), say.Of(foresight.MayStick, say.Of(projectFirst, project.Identity())))
			f.plan.doubt(project.UID(), say.Of(foresight.MayStick, say.Of(projectFirst, project.Identity())))
		}
		return guarded
	})
	for i := range needs {
		needs[i].Certain = needs[i].Certain && certain
	}
	return needs
}

// necessary is an object that is needed, or, where that is proved, that does not exist.
func (f *following) necessary(resource schema.GroupVersionResource, kind, namespace, name string) []preview.Need {
	var needs []preview.Need
	for _, n := range f.Evidence.Named(resource.GroupResource(), namespace, name) {
		needs = append(needs, preview.Need{Object: n.Identity(), Certain: true})
	}
	if len(needs) == 0 && f.Graph.Snapshot().Covers(resource.GroupResource(), namespace, name) {
		id := graph.Identity{Resource: graph.Resource{GroupVersionResource: resource, Kind: kind, Namespaced: true},
			Namespace: namespace, Name: name}
		needs = append(needs, preview.Need{Object: id, Certain: true, Absent: true})
	}
	return needs
}

// lacksRights looks for an account to which no binding gives rights: the controllers try again for ever then. The rights may be those of
// all accounts, so it is not certain. by is as in Barrier.
func (f *following) lacksRights(by, own types.UID, account graph.Identity, grants []preview.Need) {
	if len(grants) > 0 || !f.bindingsRead() {
		return
	}
	for _, b := range f.plan.Barriers {
		for _, id := range b.Objects {
			if b.By.UID == by && id.UID != own {
				f.plan.doubt(id.UID, say.Of(foresight.MayStick, say.Of(withoutRights, account)))
				f.plan.doubt(own, say.Of(foresight.MayStick, say.Of(withoutRights, account)))
			}
		}
	}
}

// bindingKinds are the types of bindings.
var bindingKinds = map[schema.GroupVersionResource]string{evidence.ClusterRoleBindings: "ClusterRoleBinding",
	rbacv1.SchemeGroupVersion.WithResource("rolebindings"): "RoleBinding"}

// bindingsRead reports whether all bindings could be read.
func (f *following) bindingsRead() bool {
	for resource := range bindingKinds {
		if _, err := f.Evidence.List(resource, ""); err != nil {
			return false
		}
	}
	return true
}

// deprivesItself looks for what a controller deletes itself of the rights by which it does: whether what comes after it is deleted depends
// on how soon RBAC forgets. by is as in Barrier.
func (f *following) deprivesItself(by, own types.UID, account graph.Identity, grants []preview.Need) {
	p := f.plan
	for _, grant := range grants {
		for _, i := range p.in(grant.Object.UID) {
			if p.Barriers[i].By.UID != by {
				continue
			}
			for j := i + 1; j < len(p.Barriers); j++ {
				if p.Barriers[j].By.UID != by || !p.before(j)[i] {
					continue
				}
				p.doubt(own, say.Of(foresight.MayStick, say.Of(deprivedItself, account, grant.Object, i+1)))
				for _, id := range p.Barriers[j].Objects {
					p.doubt(id.UID, say.Of(foresight.MayStick, say.Of(deprivedItself, account, grant.Object, i+1)))
				}
			}
		}
	}
}

// deletes reports whether an object is deleted by a delegate's controller.
func (p *Plan) deletes(by, uid types.UID) bool {
	return slices.ContainsFunc(p.in(uid), func(i int) bool { return p.Barriers[i].By.UID == by })
}

func (f *following) need(n graph.Node, needs []preview.Need) {
	if len(needs) == 0 {
		return
	}
	if f.plan.needs == nil {
		f.plan.needs = map[types.UID][]preview.Need{}
	}
	f.plan.needs[n.UID()] = append(f.plan.needs[n.UID()], needs...)
}

// mayKeep reports whether something goes without which a delegate's controller deletes nothing, and ends: if it goes first, what the
// controller would have deleted is kept.
func (f *following) mayKeep(d *delegate, needed graph.Node) bool {
	p := f.plan
	in := p.in(needed.UID())
	for _, namespace := range f.Evidence.Named(evidence.Namespaces.GroupResource(), "", needed.Namespace()) {
		in = append(in, p.in(namespace.UID())...)
	}
	own := p.in(d.node.UID())
	in = slices.DeleteFunc(in, func(i int) bool {
		before := p.before(i)
		return p.Barriers[i].By.UID == d.node.UID() ||
			slices.ContainsFunc(own, func(barrier int) bool { return p.Barriers[barrier].Awaited && before[barrier] })
	})
	if len(in) == 0 {
		return false
	}
	for _, b := range p.Barriers {
		if b.By.UID != d.node.UID() {
			continue
		}
		for _, id := range b.Objects {
			if !f.emptied(id.Namespace) {
				p.doubt(id.UID, say.Of(keptWithout, needed.Identity(), in[0]+1, d.node.Identity()))
			}
		}
	}
	return true
}

// emptied reports whether a namespace goes by the plan, with all that is in it.
func (f *following) emptied(name string) bool {
	return name != "" && slices.ContainsFunc(f.Evidence.Named(evidence.Namespaces.GroupResource(), "", name),
		func(n graph.Node) bool { return len(f.plan.in(n.UID())) > 0 })
}

// grants are the bindings that give a service account rights, and their roles. While the account is there, kustomize-controller and
// helm-controller try again for ever when they may not delete. It is certain of the only binding alone.
func (f *following) grants(namespace, name string) []preview.Need {
	var needs []preview.Need
	bindings, account := 0, controllers.Account{Namespace: namespace, Name: name}
	for resource, kind := range bindingKinds {
		items, err := f.Evidence.List(resource, "")
		if err != nil {
			continue // it is noted as unread
		}
		for i := range items {
			var b rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
			if !evidence.Decode(&items[i], &b) ||
				!slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return account.Is(&s, b.Namespace) }) {
				continue
			}
			bindings++
			needs = append(needs, preview.Need{Object: evidence.IdentityOf(resource, kind, &items[i]), Certain: true})
			of, role := "", schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}
			if b.RoleRef.Kind == "Role" {
				of, role.Resource = b.Namespace, "roles"
			}
			for _, n := range f.Evidence.Named(role, of, b.RoleRef.Name) {
				needs = append(needs, preview.Need{Object: n.Identity(), Certain: true})
			}
		}
	}
	for i := range needs {
		needs[i].Certain = bindings == 1
	}
	return needs
}

// Settle takes out of the plan what the controllers of tools' objects would have deleted that certainly do not get that far, by what is
// foreseen, and reports whether there was any: then it is to be played again.
func (p *Plan) Settle(outcomes []gc.Outcome, s *foresight.Forecast) bool {
	if s == nil {
		return false
	}
	results := map[types.UID]gc.Result{}
	for i := range outcomes {
		results[outcomes[i].Object.UID] = outcomes[i].Result
	}
	before := len(p.Barriers)
	for _, d := range slices.Clone(p.delegates) {
		uid := d.node.UID()
		result, is := results[uid]
		if !is || result == gc.Untouched || s.Outlook(uid) == foresight.Stuck || slices.Contains(s.Refused(), uid) {
			p.drop(d)
		}
	}
	p.keepNoTargets()
	return len(p.Barriers) < before
}

// doubtNested has outcomes be Unknown of what is deleted only if a delegate is, or if what its controller needs is there by then; and what
// awaits something be as that is.
func (p *Plan) doubtNested(outcomes []gc.Outcome, s *foresight.Forecast) {
	by := map[types.UID]*gc.Outcome{}
	for i := range outcomes {
		o := &outcomes[i]
		by[o.Object.UID] = o
		if why := p.doubts[o.Object.UID]; !why.IsZero() && o.Result == gc.Deleted {
			o.Result, o.Reason = gc.Unknown, why
		}
	}
	for i := range p.Barriers {
		unsure := p.unsure(i, s)
		if unsure.Name == "" {
			continue
		}
		for _, id := range p.Barriers[i].Objects {
			if o := by[id.UID]; o != nil && o.Result == gc.Deleted && len(p.in(id.UID)) == 1 {
				o.Result, o.Reason = gc.Unknown, say.Of(onlyWithDelegate, unsure)
			}
		}
	}
	p.tried(by, s)
	for again := true; again; {
		again = p.await(by)
	}
}

// unsure is the tool's object by whose deletion a barrier is, if that might get stuck: a delegate, or the plan's own where it is not known
// whether any controller acts on it.
func (p *Plan) unsure(barrier int, s *foresight.Forecast) graph.Identity {
	switch by := p.Barriers[barrier].By; {
	case s == nil:
	case by.UID != "" && s.Outlook(by.UID) != foresight.Expected:
		return by
	case by.UID == "" && s.Outlook(p.Own.UID) == foresight.Unclear:
		return p.Own
	}
	return graph.Identity{}
}

// tried has a tool's object stay as long as its controller may not delete something: that tries again for ever
// (kustomization_controller.go, finalize; helm-controller/internal/reconcile/uninstall.go; argo-cd/v3/controller/appcontroller.go,
// finalizeApplicationDeletion).
func (p *Plan) tried(by map[types.UID]*gc.Outcome, s *foresight.Forecast) {
	for i := range p.Barriers {
		tool := by[cmp.Or(p.Barriers[i].By.UID, p.Own.UID)]
		for _, id := range p.Barriers[i].Objects {
			o := by[id.UID]
			refused := s != nil && s.Refusal(id.UID) > foresight.Expected && o != nil && (o.Result == gc.Remaining || o.Result == gc.Unknown)
			if refused && tool != nil && tool != o && tool.Result == gc.Deleted {
				tool.Result, tool.Reason = o.Result, say.Of(waitsFor, id)
			}
		}
	}
}

// mayKeep reports whether it is not known of an object only if the tool keeps it: then nothing awaits it.
func (p *Plan) mayKeep(o *gc.Outcome) bool {
	return o != nil && o.Result == gc.Unknown && slices.ContainsFunc(p.Open, func(open Open) bool {
		return (open.Cause == Untracked || open.Cause == MayKeep) && open.Item.Name == o.Object.Name && o.Reason.Equal(open.Says())
	})
}

// await has what awaits something that is not deleted not be deleted either, and reports whether anything changed: the barriers after an
// awaited one, and a delegate that waits for all that its controller deletes. gc.InWaves says it of the tool's own barriers.
func (p *Plan) await(by map[types.UID]*gc.Outcome) (changed bool) {
	for _, o := range by {
		if held, args := o.Reason.Find(gc.EarlierWave); held >= 0 && o.Result == gc.Remaining {
			id, _ := args[0].(graph.Identity)
			if before := by[id.UID]; before != nil && before.Result == gc.Unknown {
				o.Result, o.Reason, changed = gc.Unknown, say.Of(waitsFor, id), true
			}
		}
	}
	wait := func(id graph.Identity, awaited *Barrier) {
		o := by[id.UID]
		for _, before := range awaited.Objects {
			if b := by[before.UID]; o != nil && !p.mayKeep(b) && b != nil && o.Result == gc.Deleted &&
				(b.Result == gc.Remaining || b.Result == gc.Unknown) {
				o.Result, o.Reason, changed = b.Result, say.Of(waitsFor, before), true
			}
		}
	}
	for j := range p.Barriers {
		b := &p.Barriers[j]
		for i, before := range p.before(j) {
			if before && p.Barriers[i].Awaited {
				for _, id := range b.Objects {
					wait(id, &p.Barriers[i])
				}
			}
		}
		if b.Awaited && b.By.UID != "" {
			wait(b.By, b)
		}
	}
	return changed
}
