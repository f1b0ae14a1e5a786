// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Actors says who works in the simulated cluster besides the caller. The zero
// value is a kube-apiserver alone.
type Actors struct {
	// NamespaceController empties terminating namespaces and finalizes them.
	// When false nobody is known to.
	NamespaceController bool
	// Kubelets end pods on nodes that report (Facts.Nodes) after their grace
	// period. When false no pod on a node ever ends.
	Kubelets bool
	// PodGC deletes pods whose node does not exist.
	PodGC bool
	// Finalizer says who removes a finalizer from an object, and for Unknown why that
	// is so, if there is more to say than that. The garbage collector's are the
	// caller's and the clean-up of custom resources is the API server's, so it is
	// asked of the others alone; nil stands for Unknown.
	Finalizer func(o *graph.Object, finalizer string) (who Actor, why say.Text)
}

// Actor says whether there is somebody for a task.
type Actor int

// The answers to who does something.
const (
	// Unknown: nobody is known to act, and nobody is known not to.
	Unknown Actor = iota
	// Acts: it is done as soon as its condition holds.
	Acts
	// Nobody acts.
	Nobody
)

// String returns the actor's name for messages.
func (a Actor) String() string { return [...]string{"Unknown", "Acts", "Nobody"}[a] }

// How long the actors take. Only the order matters for the end state.
const (
	// kubeletDelay passes between the end of the grace period and the kubelet's
	// last DELETE.
	kubeletDelay = 2 * time.Second
	// podGCDelay is podgc's quarantine for nodes and one period
	// (pkg/controller/podgc/gc_controller.go).
	podGCDelay = 60 * time.Second
	// namespaceDelay is how long the namespace controller lets caches settle
	// (pkg/controller/namespace/namespace_controller.go,
	// namespaceDeletionGracePeriod).
	namespaceDelay = 5 * time.Second
	// controllerDelay is anyone else's.
	controllerDelay = time.Second
)

// start lets the actors see what the snapshot holds, before the first write.
func (s *Server) start() {
	if s.started {
		return
	}
	s.started = true
	x := s.view.ensureIndex()
	for _, i := range x.terminating {
		o := s.view.snapshot.Unlabelled(x.objects[i])
		s.written(&o)
	}
	s.pods.startPodGC()
}

// perform does what is left to do of a task.
func (s *Server) perform(t task) {
	o, gone, _ := s.view.look(t.uid)
	if gone {
		return
	}
	switch t.work {
	case kubeletEndsPod:
		s.pods.kubeletEnds(o)
	case podGCDeletesPod:
		s.pods.podGCDeletes(o)
	case controllerFinalizes:
		s.finalizing.finalize(o)
	case namespaceSyncs:
		s.namespaces.syncNamespace(o)
	case specIsFinalized:
		s.namespaces.finalizeSpec(o)
	case instancesAreDeleted:
		s.definitions.syncCRD(o)
	}
}

// deleteAs sends an actor's DELETE, which cannot fail: the object is there and
// nothing is asked of it.
func (s *Server) deleteAs(o graph.Object, options metav1.DeleteOptions) {
	s.deleteObject(o, request{*o.Resource, o.Namespace, o.Name, options})
}

// written tells the actors that an object changed.
func (s *Server) written(o *graph.Object) {
	s.namespaces.writtenInNamespace(o)
	if !o.BeingDeleted() {
		return
	}
	switch {
	case is(o, podResource):
		s.pods.planPod(o)
	case is(o, namespaceResource):
		s.namespaces.planNamespace(o)
	case is(o, crdResource):
		s.definitions.planCRD(o)
	}
	s.finalizing.planFinalizers(o)
}

// removed tells the actors that an object is gone, and does what the API server
// itself does then.
func (s *Server) removed(o *graph.Object) {
	s.groups.leave(o)
	switch {
	case is(o, serviceResource) && (s.view.version.TakesEndpoints() || s.actors.NamespaceController):
		s.deleteEndpoints(o)
	case is(o, nodeResource):
		s.pods.planPodsOf(o.Name)
	case is(o, crdResource):
		s.crdRemoved(o)
	}
}

// deleteEndpoints deletes the Endpoints of a Service that is gone
// (registry/core/service/storage, afterDelete; pkg/controller/endpoint, syncService, which
// is in kube-controller-manager like the namespace controller).
func (s *Server) deleteEndpoints(service *graph.Object) {
	where := location{endpointsResource, service.Namespace, service.Name}
	if endpoints, err := s.view.find(where); err == nil {
		s.deleteAs(endpoints, metav1.DeleteOptions{})
	}
}
