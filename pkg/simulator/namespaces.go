// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		if spec, read := s.specFinalizers(before.UID); read && len(spec) == 0 {
			s.deleteObject(before, r)
		}
		return nil
	}
	if r.dryRun() {
		return nil
	}
	after := before
	after.DeletionTimestamp = stamp(s.now)
	after.Finalizers = namespaceFinalizers(before.Finalizers, r.options)
	s.write(before, after)
	return nil
}

// namespaceFinalizers is finalizersForDeletion as namespaces have it
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
	return finalizersForDeletion(finalizers, deleteDependents, options)
}

// specFinalizers returns the finalizers in a namespace's spec, and whether they
// were read.
func (s *Server) specFinalizers(uid types.UID) ([]string, bool) {
	if h, known := s.snapshot.Handle(uid); known {
		if t := s.objects.Get(h); t != nil && t.specFinalizers != nil {
			return t.specFinalizers, true
		}
	}
	facts, read := s.snapshot.Facts.Namespaces[uid]
	return facts.Finalizers, read
}

// namespaceAbsent reports whether there is provably no such namespace.
func (s *Server) namespaceAbsent(name string) bool {
	if s.made.Has(name) {
		return false
	}
	h, found := s.located(location{namespaceResource, "", name})
	if !found {
		return s.snapshot.Covers(namespaceResource, "", name)
	}
	return s.isGone(h)
}

// unchangeable reports whether the server refuses to change an object, whoever asks,
// because its namespace does not exist.
func (s *Server) unchangeable(o *graph.Object) bool {
	return o.Namespace != "" && !s.version.ChangesWithoutNamespace() && s.namespaceAbsent(o.Namespace)
}

// planNamespace lets the namespace controller see a terminating namespace.
func (s *Server) planNamespace(o *graph.Object) {
	s.planSpecFinalizers(o)
	if s.actors.NamespaceController {
		s.emptying[o.Name] = o.UID
		s.plan(namespaceSyncs, o.UID, s.now.Add(namespaceDelay))
	}
}

// writtenInNamespace lets the namespace controller see that an object in a
// terminating namespace is to be deleted another way than it wants.
func (s *Server) writtenInNamespace(o *graph.Object) {
	uid, emptying := s.emptying[o.Namespace]
	if emptying && slices.ContainsFunc(o.Finalizers, graph.IsCollectorFinalizer) {
		s.plan(namespaceSyncs, uid, s.now.Add(namespaceDelay))
	}
}

// syncNamespace is one pass of the namespace controller (pkg/controller/
// namespace/deletion, Delete and deleteAllContent): all pods first, everything
// else when no pod is left, the controller's finalizer when nothing is left.
func (s *Server) syncNamespace(o graph.Object) {
	spec, read := s.specFinalizers(o.UID)
	if !o.BeingDeleted() || read && len(spec) == 0 {
		return
	}
	for _, g := range [...]group{{resource: podResource, namespace: o.Name}, {namespace: o.Name}} {
		if g.resource == podResource && !s.listed(g) {
			return
		}
		s.deleteAll(g)
		if s.left(g) > 0 {
			s.waitFor(g, namespaceSyncs, o.UID)
			return
		}
	}
	if slices.Contains(spec, namespaceFinalizer) && s.unreadIn(o.Name) == "" {
		s.finalizeNamespace(o, without(spec, namespaceFinalizer))
	}
}

// deleteAll is the deletecollection of the group. Owner references do not
// matter to it, and foregroundDeletion and orphan are stripped.
func (s *Server) deleteAll(g group) {
	background := metav1.DeletePropagationBackground
	for _, uid := range s.members(g) {
		if o, gone, _ := s.look(uid); !gone {
			s.deleteAs(o, metav1.DeleteOptions{PropagationPolicy: &background})
		}
	}
}

// finalizeNamespace stores what is left of the spec's finalizers
// (registry/core/namespace/storage, FinalizeREST).
func (s *Server) finalizeNamespace(o graph.Object, spec []string) {
	t := s.touched(&o)
	t.specFinalizers = append([]string{}, spec...)
	if s.endsWith(&o, &o) {
		s.remove(o)
		return
	}
	s.store(o)
}

// planSpecFinalizers plans the work of those who act on finalizers in a
// namespace's spec.
func (s *Server) planSpecFinalizers(o *graph.Object) {
	spec, _ := s.specFinalizers(o.UID)
	for _, f := range spec {
		if f != namespaceFinalizer && s.isControllers(o, f) {
			s.plan(specIsFinalized, o.UID, s.now.Add(controllerDelay))
			return
		}
	}
}

// finalizeSpec removes the finalizers of others from a terminating namespace's
// spec.
func (s *Server) finalizeSpec(o graph.Object) {
	spec, _ := s.specFinalizers(o.UID)
	rest := slices.DeleteFunc(slices.Clone(spec), func(f string) bool {
		return f != namespaceFinalizer && s.isControllers(&o, f)
	})
	if o.BeingDeleted() && len(rest) < len(spec) {
		s.finalizeNamespace(o, rest)
	}
}

// unreadIn says what could not be read of a namespace's content, for which the
// namespace controller would look; empty when nothing is missing.
func (s *Server) unreadIn(name string) string {
	if reason, known := s.unread[name]; known {
		return reason
	}
	reason := s.findUnread(name)
	s.unread[name] = reason
	return reason
}

func (s *Server) findUnread(name string) string {
	if !s.listed(group{resource: podResource, namespace: name}) {
		return "pods in namespace " + name + " could not be listed"
	}
	for _, u := range s.snapshot.Unlisted() {
		switch {
		case u.Name != "" || u.Namespace != "" && u.Namespace != name:
		case u.Resource == "":
			return "what is in group " + u.Group + " could not be discovered"
		case s.listed(group{resource: u.GroupResource(), namespace: name}) || s.clusterScoped(u):
		default:
			return u.GroupResource().String() + " in namespace " + name + " could not be listed"
		}
	}
	return ""
}

// clusterScoped reports whether the resource is known to have no objects in
// namespaces.
func (s *Server) clusterScoped(u graph.Unlisted) bool {
	if s.snapshot.Mapper == nil {
		return false
	}
	kind, err := s.snapshot.Mapper.KindFor(u.GroupVersionResource)
	if err != nil {
		return false
	}
	mapping, err := s.snapshot.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
}
