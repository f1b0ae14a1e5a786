// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// namespaceFinalizer is the namespace controller's, in the spec.
const namespaceFinalizer = "kubernetes"

// deleteNamespace is the DELETE of a namespace (registry/core/namespace/storage,
// Delete). The first only marks it; those that follow do nothing as long as the
// spec has finalizers.
func (s *Server) deleteNamespace(before graph.Object, r request) error {
	if slices.Contains(immortalNamespaces, before.Name) {
		return apierrors.NewForbidden(namespaceResource, before.Name, errors.New("this namespace may not be deleted"))
	}
	if before.BeingDeleted() {
		if spec, read := s.view.specFinalizers(before.UID); read && len(spec) == 0 {
			s.deleteObject(before, r)
		}
		return nil
	}
	if r.dryRun() {
		return nil
	}
	after := before
	after.DeletionTimestamp = stamp(s.clock.now)
	after.Finalizers = namespaceFinalizers(before.Finalizers, r.options)
	s.write(before, after)
	return nil
}

// namespaceFinalizers is FinalizersForDeletion as namespaces have it
// (shouldHaveOrphanFinalizer and shouldHaveDeleteDependentsFinalizer): here
// orphanDependents=false means Foreground. The API server puts the list in
// random order; this keeps it.
func namespaceFinalizers(finalizers []string, options metav1.DeleteOptions) []string {
	//nolint:staticcheck // SA1019: orphanDependents is deprecated, and served
	if orphan := options.OrphanDependents; orphan != nil {
		policy := metav1.DeletePropagationForeground
		if *orphan {
			policy = metav1.DeletePropagationOrphan
		}
		options = metav1.DeleteOptions{PropagationPolicy: &policy}
	}
	if options.PropagationPolicy == nil {
		return finalizers
	}
	return FinalizersForDeletion(finalizers, schema.GroupVersionResource{}, options)
}

// specFinalizers returns the finalizers in a namespace's spec, and whether they
// were read.
func (v *view) specFinalizers(uid types.UID) ([]string, bool) {
	if h, known := v.snapshot.Handle(uid); known {
		if t := v.objects.Get(h); t != nil && t.specFinalizers != nil {
			return t.specFinalizers, true
		}
	}
	facts, read := v.snapshot.Facts.Namespaces[uid]
	return facts.Finalizers, read
}

// namespaceAbsent reports whether there is provably no such namespace.
func (v *view) namespaceAbsent(name string) bool {
	if v.made.Has(name) {
		return false
	}
	h, found := v.located(location{namespaceResource, "", name})
	if !found {
		return v.snapshot.Covers(namespaceResource, "", name)
	}
	return v.isGone(h)
}

// unchangeable reports whether the server refuses to change an object, whoever asks,
// because its namespace does not exist.
func (v *view) unchangeable(o *graph.Object) bool {
	return o.Namespace != "" && !v.version.ChangesWithoutNamespace() && v.namespaceAbsent(o.Namespace)
}

// namespaceController empties and finalizes terminating namespaces, and lets those act who have finalizers of
// their own in the spec. It owns which namespaces it empties.
type namespaceController struct {
	view     *view
	clock    *clock
	groups   *memberships
	actors   *Actors
	api      api
	emptying map[string]types.UID
}

// planNamespace lets the namespace controller see a terminating namespace.
func (n *namespaceController) planNamespace(o *graph.Object) {
	n.planSpecFinalizers(o)
	if n.actors.NamespaceController {
		n.emptying[o.Name] = o.UID
		n.clock.after(namespaceSyncs, o.UID, namespaceDelay)
	}
}

// writtenInNamespace lets the namespace controller see that an object in a
// terminating namespace is to be deleted another way than it wants.
func (n *namespaceController) writtenInNamespace(o *graph.Object) {
	uid, emptying := n.emptying[o.Namespace]
	if emptying && slices.ContainsFunc(o.Finalizers, graph.IsCollectorFinalizer) {
		n.clock.after(namespaceSyncs, uid, namespaceDelay)
	}
}

// syncNamespace is one pass of the namespace controller (pkg/controller/
// namespace/deletion, Delete and deleteAllContent): all pods first, everything
// else when no pod is left, the controller's finalizer when nothing is left.
func (n *namespaceController) syncNamespace(o graph.Object) {
	spec, read := n.view.specFinalizers(o.UID)
	if !o.BeingDeleted() || read && len(spec) == 0 {
		return
	}
	for _, g := range [...]group{{resource: podResource, namespace: o.Name}, {namespace: o.Name}} {
		if g.resource == podResource && !n.view.listed(g) {
			return
		}
		n.deleteAll(g)
		if n.groups.left(g) > 0 {
			n.groups.waitFor(g, namespaceSyncs, o.UID)
			return
		}
	}
	if slices.Contains(spec, namespaceFinalizer) && n.view.unreadIn(o.Name) == "" {
		n.api.finalizeNamespace(o, without(spec, namespaceFinalizer))
	}
}

// deleteAll is the deletecollection of the group. Owner references do not
// matter to it, and foregroundDeletion and orphan are stripped.
func (n *namespaceController) deleteAll(g group) {
	background := metav1.DeletePropagationBackground
	for _, uid := range n.view.members(g) {
		if o, gone, _ := n.view.look(uid); !gone {
			n.api.deleteAs(o, metav1.DeleteOptions{PropagationPolicy: &background})
		}
	}
}

// finalizeNamespace stores what is left of the spec's finalizers
// (registry/core/namespace/storage, FinalizeREST).
func (s *Server) finalizeNamespace(o graph.Object, spec []string) {
	t := s.view.touched(&o)
	t.specFinalizers = append([]string{}, spec...)
	if s.view.endsWith(&o, &o) {
		s.remove(o)
		return
	}
	s.store(o)
}

// planSpecFinalizers plans the work of those who act on finalizers in a
// namespace's spec.
func (n *namespaceController) planSpecFinalizers(o *graph.Object) {
	spec, _ := n.view.specFinalizers(o.UID)
	for _, f := range spec {
		if f != namespaceFinalizer && n.actors.isControllers(o, f) {
			n.clock.after(specIsFinalized, o.UID, controllerDelay)
			return
		}
	}
}

// finalizeSpec removes the finalizers of others from a terminating namespace's
// spec.
func (n *namespaceController) finalizeSpec(o graph.Object) {
	spec, _ := n.view.specFinalizers(o.UID)
	rest := slices.DeleteFunc(slices.Clone(spec), func(f string) bool {
		return f != namespaceFinalizer && n.actors.isControllers(&o, f)
	})
	if o.BeingDeleted() && len(rest) < len(spec) {
		n.api.finalizeNamespace(o, rest)
	}
}

// unreadIn says what could not be read of a namespace's content, for which the
// namespace controller would look; empty when nothing is missing.
func (v *view) unreadIn(name string) string {
	if reason, known := v.unread[name]; known {
		return reason
	}
	reason := v.findUnread(name)
	v.unread[name] = reason
	return reason
}

func (v *view) findUnread(name string) string {
	if !v.listed(group{resource: podResource, namespace: name}) {
		return "pods in namespace " + name + " could not be listed"
	}
	for _, u := range v.snapshot.Unlisted() {
		switch {
		case u.Name != "" || u.Namespace != "" && u.Namespace != name:
		case u.Resource == "":
			return "what is in group " + u.Group + " could not be discovered"
		case v.listed(group{resource: u.GroupResource(), namespace: name}) || v.clusterScoped(u):
		default:
			return u.GroupResource().String() + " in namespace " + name + " could not be listed"
		}
	}
	return ""
}

// clusterScoped reports whether the resource is known to have no objects in
// namespaces.
func (v *view) clusterScoped(u graph.Unlisted) bool {
	if v.snapshot.Mapper == nil {
		return false
	}
	kind, err := v.snapshot.Mapper.KindFor(u.GroupVersionResource)
	if err != nil {
		return false
	}
	mapping, err := v.snapshot.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
}
