// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"container/heap"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	Finalizer func(o *graph.Object, finalizer string) (who Actor, why string)
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

// work is what an actor does.
type work int

const (
	kubeletEndsPod work = iota
	podGCDeletesPod
	controllerFinalizes
	namespaceSyncs
	specIsFinalized
	instancesAreDeleted
)

// task is a piece of work that an actor does at a time. Whether there is still
// anything to do is found out then.
type task struct {
	at   time.Time
	seq  int // the order of tasks at the same time
	work work
	uid  types.UID // the object, or the namespace
}

// agenda is what the actors will do, earliest first.
type agenda struct {
	tasks []task
	seq   int
	// waiting holds what is on the agenda, with the time, so that nothing is
	// planned twice.
	waiting map[task]bool
}

// Len implements heap.Interface.
func (a *agenda) Len() int { return len(a.tasks) }

// Less implements heap.Interface.
func (a *agenda) Less(i, j int) bool {
	if c := a.tasks[i].at.Compare(a.tasks[j].at); c != 0 {
		return c < 0
	}
	return a.tasks[i].seq < a.tasks[j].seq
}

// Swap implements heap.Interface.
func (a *agenda) Swap(i, j int) { a.tasks[i], a.tasks[j] = a.tasks[j], a.tasks[i] }

// Push implements heap.Interface.
func (a *agenda) Push(t any) { a.tasks = append(a.tasks, t.(task)) }

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := len(a.tasks) - 1
	t := a.tasks[last]
	a.tasks = a.tasks[:last]
	return t
}

// plan puts work on the agenda unless it is there.
func (s *Server) plan(w work, uid types.UID, at time.Time) {
	t := task{at: at.UTC(), work: w, uid: uid}
	if s.agenda.waiting[t] {
		return
	}
	if s.agenda.waiting == nil {
		s.agenda.waiting = map[task]bool{}
	}
	s.agenda.waiting[t] = true
	s.agenda.seq++
	t.seq = s.agenda.seq
	heap.Push(&s.agenda, t)
}

// advance moves the clock to the next task and does all that is due then. It
// returns false when there is none.
func (s *Server) advance() bool {
	if s.agenda.Len() == 0 {
		return false
	}
	if next := s.agenda.tasks[0].at; next.After(s.now) {
		s.now = next
	}
	for last := s.agenda.seq; s.agenda.Len() > 0; {
		next := s.agenda.tasks[0]
		if next.at.After(s.now) || next.seq > last {
			break
		}
		heap.Pop(&s.agenda)
		delete(s.agenda.waiting, task{at: next.at, work: next.work, uid: next.uid})
		s.perform(next)
	}
	return true
}

// start lets the actors see what the snapshot holds, before the first write.
func (s *Server) start() {
	if s.started {
		return
	}
	s.started = true
	x := s.ensureIndex()
	for _, i := range x.terminating {
		o := s.snapshot.Unlabelled(x.objects[i])
		s.written(&o)
	}
	s.startPodGC()
}

// perform does what is left to do of a task.
func (s *Server) perform(t task) {
	o, gone, _ := s.look(t.uid)
	if gone {
		return
	}
	switch t.work {
	case kubeletEndsPod:
		s.kubeletEnds(o)
	case podGCDeletesPod:
		s.podGCDeletes(o)
	case controllerFinalizes:
		s.finalize(o)
	case namespaceSyncs:
		s.syncNamespace(o)
	case specIsFinalized:
		s.finalizeSpec(o)
	case instancesAreDeleted:
		s.syncCRD(o)
	}
}

// deleteAs sends an actor's DELETE, which cannot fail: the object is there and
// nothing is asked of it.
func (s *Server) deleteAs(o graph.Object, options metav1.DeleteOptions) {
	s.deleteObject(o, request{*o.Resource, o.Namespace, o.Name, options})
}

// written tells the actors that an object changed.
func (s *Server) written(o *graph.Object) {
	s.writtenInNamespace(o)
	if !o.BeingDeleted() {
		return
	}
	switch {
	case is(o, podResource):
		s.planPod(o)
	case is(o, namespaceResource):
		s.planNamespace(o)
	case is(o, crdResource):
		s.planCRD(o)
	}
	s.planFinalizers(o)
}

// removed tells the actors that an object is gone, and does what the API server
// itself does then.
func (s *Server) removed(o *graph.Object) {
	s.leave(o)
	switch {
	case is(o, serviceResource) && (s.version.TakesEndpoints() || s.actors.NamespaceController):
		s.deleteEndpoints(o)
	case is(o, nodeResource):
		s.planPodsOf(o.Name)
	case is(o, crdResource):
		s.crdRemoved(o)
	}
}

// deleteEndpoints deletes the Endpoints of a Service that is gone
// (registry/core/service/storage, afterDelete; pkg/controller/endpoint, syncService, which
// is in kube-controller-manager like the namespace controller).
func (s *Server) deleteEndpoints(service *graph.Object) {
	where := location{endpointsResource, service.Namespace, service.Name}
	if endpoints, err := s.find(where); err == nil {
		s.deleteAs(endpoints, metav1.DeleteOptions{})
	}
}
