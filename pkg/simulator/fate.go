// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// State says what became of an object.
type State int

// The states of an object.
const (
	// Unread: the snapshot does not hold the object.
	Unread State = iota
	// Live: it exists and is not being deleted.
	Live
	// Terminating: it is being deleted and waits for something.
	Terminating
	// Gone: it was removed.
	Gone
)

// String returns the state's name for messages.
func (s State) String() string { return [...]string{"Unread", "Live", "Terminating", "Gone"}[s] }

// Fate is what became of an object, and how sure that is. It means something
// when Events has said that all is at rest.
type Fate struct {
	State State
	// Waits is what a terminating object waits for. It goes when all of them
	// have ended.
	Waits []Wait
	// Unknown says why the real object may go although this one does not, in the
	// order of Waits. It is empty when the object surely stays. How it stands
	// with foregroundDeletion and orphan depends on other objects and is the
	// caller's to know: they never make a fate unknown.
	Unknown []string
	// ComesBack is who creates a removed object anew. It is among
	// the Notes.
	ComesBack Maker
	// Notes are what else there is to say, such as who creates a removed object
	// anew.
	Notes []string
}

// WaitKind says what kind of thing an object waits for.
type WaitKind int

// The kinds of Wait.
const (
	// ForFinalizer: somebody who removes a finalizer.
	ForFinalizer WaitKind = iota
	// ForSpecFinalizer: somebody who removes a finalizer in a namespace's spec.
	ForSpecFinalizer
	// ForKubelet: the kubelet of a pod's node.
	ForKubelet
	// ForContent: the content of a namespace.
	ForContent
	// ForInstances: the instances of a CustomResourceDefinition.
	ForInstances
)

// String returns the kind's name for messages.
func (k WaitKind) String() string {
	return [...]string{"Finalizer", "SpecFinalizer", "Kubelet", "Content", "Instances"}[k]
}

// Wait is one thing that a terminating object waits for.
type Wait struct {
	Kind WaitKind
	// Finalizer is empty for ForKubelet, and for ForSpecFinalizer when the spec
	// could not be read.
	Finalizer string
	// Actor is who ends the wait. The garbage collector's finalizers have Acts:
	// the caller's engine removes them.
	Actor Actor
	// Node is the node's name for ForKubelet; empty when the pod is on none or
	// could not be read.
	Node      string
	NodeState NodeState
	// Objects are what keeps a namespace or CustomResourceDefinition: those that
	// have to go first.
	Objects []types.UID
	// Unknown says why the wait may end in the real cluster although it does not
	// here; it is empty when it surely does not end.
	Unknown string
}

// isCallers reports whether the caller's engine ends the wait.
func (w Wait) isCallers() bool {
	return w.Kind == ForFinalizer && w.Actor == Acts && graph.IsCollectorFinalizer(w.Finalizer)
}

// Object returns an object as it is now, or as it was when it was removed, and
// what became of it.
func (s *Server) Object(uid types.UID) (graph.Object, Fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, known := s.snapshot.Handle(uid)
	if !known {
		return graph.Object{}, Fate{}
	}
	o, gone := s.at(h)
	return o, s.fate(&o, gone)
}

func (s *Server) fate(o *graph.Object, gone bool) Fate {
	switch {
	case gone:
		return Fate{State: Gone, ComesBack: s.comesBack(o), Notes: s.notesOfGone(o)}
	case o.BeingDeleted():
		waits := s.waits(o)
		return Fate{State: Terminating, Waits: waits, Unknown: unknowns(waits), Notes: s.notesOfTerminating(o)}
	}
	return Fate{State: Live, Unknown: s.unknownsOfLive(o), Notes: s.notesOfLive(o)}
}

// unknowns says why an object that waits for all this may go. It surely stays
// when one of the waits surely does not end.
func unknowns(waits []Wait) []string {
	var reasons []string
	seen := sets.New[string]()
	for _, w := range waits {
		switch {
		case w.isCallers() || seen.Has(w.Unknown):
		case w.Unknown == "":
			return nil
		default:
			seen.Insert(w.Unknown)
			reasons = append(reasons, w.Unknown)
		}
	}
	return reasons
}

// waits returns what a terminating object waits for.
func (s *Server) waits(o *graph.Object) []Wait {
	var waits []Wait
	for _, f := range o.Finalizers {
		waits = append(waits, s.waitForFinalizer(o, f))
	}
	switch {
	case is(o, namespaceResource):
		waits = append(waits, s.waitsForSpec(o)...)
	case is(o, podResource) && (len(o.Finalizers) == 0 || !s.nothingButFinalizers(o)):
		waits = append(waits, s.waitForKubelet(o))
	}
	return waits
}

func (s *Server) waitForFinalizer(o *graph.Object, finalizer string) Wait {
	w := Wait{Kind: ForFinalizer, Finalizer: finalizer, Actor: s.actor(o, finalizer)}
	switch {
	case s.unchangeable(o):
		w.Actor = Nobody // not even the caller: a PATCH is answered with 404
	case finalizer == crdCleanup && is(o, crdResource):
		d := s.define(o)
		w.Kind, w.Objects = ForInstances, s.members(d.instances)
		w.Unknown = s.mayGo(w.Objects)
		if len(w.Objects) == 0 {
			w.Unknown = d.unread
		}
	case w.Actor == Acts && !w.isCallers():
		w.Unknown = s.conditionUnknown(finalizer, o)
	case w.Actor == Unknown:
		w.Unknown = s.unsure(o, finalizer)
	}
	return w
}

// waitsForSpec returns what a terminating namespace waits for besides its
// metadata's finalizers.
func (s *Server) waitsForSpec(o *graph.Object) []Wait {
	spec, read := s.specFinalizers(o.UID)
	if !read {
		return []Wait{{Kind: ForSpecFinalizer, Unknown: "the finalizers in its spec could not be read"}}
	}
	var waits []Wait
	for _, f := range spec {
		w := Wait{Kind: ForSpecFinalizer, Finalizer: f, Actor: s.actor(o, f)}
		switch {
		case f == namespaceFinalizer:
			w = s.waitForContent(o)
		case w.Actor == Unknown:
			w.Unknown = "whether a controller removes the finalizer " + f + " in its spec is not known"
		}
		waits = append(waits, w)
	}
	return waits
}

func (s *Server) waitForContent(o *graph.Object) Wait {
	w := Wait{Kind: ForContent, Finalizer: namespaceFinalizer}
	pods, all := group{resource: podResource, namespace: o.Name}, group{namespace: o.Name}
	if !s.actors.NamespaceController {
		w.Objects, w.Unknown = s.members(all), namespaceControllerUnknown
		return w
	}
	w.Actor, w.Objects = Acts, s.members(pods)
	if len(w.Objects) == 0 {
		w.Objects = s.members(all)
	}
	w.Unknown = s.mayGo(w.Objects)
	if len(w.Objects) == 0 || !s.listed(pods) {
		w.Unknown = s.unreadIn(o.Name)
	}
	return w
}

const (
	namespaceControllerUnknown = "the namespace controller is not known to run"
	podGCUnknown               = "pod garbage collection is not known to run"
)

// mayGo says why all the objects that are left may go: the first reason. It is
// empty when one of them surely stays.
func (s *Server) mayGo(left []types.UID) string {
	first := ""
	for _, uid := range left {
		o, _, _ := s.look(uid)
		var reasons []string
		if o.BeingDeleted() {
			reasons = unknowns(s.waits(&o))
		} else {
			reasons = s.unknownsOfLive(&o)
		}
		if len(reasons) == 0 {
			return ""
		}
		if first == "" {
			first = o.Identity().String() + ": " + reasons[0]
		}
	}
	return first
}

func (s *Server) waitForKubelet(o *graph.Object) Wait {
	facts, read := s.snapshot.Facts.Pods[o.UID]
	if !read {
		return Wait{Kind: ForKubelet, Unknown: "the pod could not be read"}
	}
	w := Wait{Kind: ForKubelet, Node: facts.NodeName}
	if w.Node == "" {
		w.Unknown = "the pod is on no node and " + podGCUnknown
		return w
	}
	w.NodeState = s.node(w.Node)
	switch {
	case w.NodeState == NodeAbsent:
		w.Unknown = s.nodeAbsent(w.Node)
	case w.NodeState == NodeUnread && (s.actors.Kubelets || s.actors.PodGC):
		w.Unknown = "node " + w.Node + " could not be read"
	case w.NodeState == NodeSilent && s.actors.Kubelets:
		w.Unknown = "node " + w.Node + " does not report"
	}
	switch {
	case w.Unknown != "":
	case s.actors.Kubelets:
		w.Actor = Acts
	default:
		w.Actor = Nobody
	}
	return w
}

func (s *Server) nodeAbsent(node string) string {
	return "node " + node + " does not exist and " + podGCUnknown
}

// unknownsOfLive says why an object that nobody deleted here may be deleted.
func (s *Server) unknownsOfLive(o *graph.Object) []string {
	var reasons []string
	facts, read := s.snapshot.Facts.Pods[o.UID]
	if read && facts.NodeName != "" && !s.actors.PodGC && s.node(facts.NodeName) == NodeAbsent {
		reasons = append(reasons, s.nodeAbsent(facts.NodeName))
	}
	if reason := s.stalledIn(o.Namespace); reason != "" {
		reasons = append(reasons, reason)
	}
	return reasons
}

// stall is an answer of stalledIn, with how much had changed by then.
type stall struct {
	changes int
	reason  string
}

// stalledIn says why the content of a terminating namespace, whose turn has not
// come, may be deleted. It is empty when it is not going to be.
func (s *Server) stalledIn(namespace string) string {
	if known, ok := s.stalled[namespace]; ok && known.changes == s.changes {
		return known.reason
	}
	reason := ""
	if h, found := s.located(location{namespaceResource, "", namespace}); namespace != "" && found {
		if o, gone := s.at(h); !gone && o.BeingDeleted() {
			reason = s.findStall(&o)
		}
	}
	s.stalled[namespace] = stall{s.changes, reason}
	return reason
}

func (s *Server) findStall(o *graph.Object) string {
	pods := group{resource: podResource, namespace: o.Name}
	spec, read := s.specFinalizers(o.UID)
	switch {
	case read && len(spec) == 0:
		return "" // its controller is done with it
	case !s.actors.NamespaceController:
		return namespaceControllerUnknown
	case !s.listed(pods):
		return s.unreadIn(o.Name)
	}
	return s.mayGo(s.terminating(s.members(pods)))
}

// terminating returns those of the objects that are being deleted.
func (s *Server) terminating(objects []types.UID) []types.UID {
	return slices.DeleteFunc(objects, func(uid types.UID) bool {
		o, _, _ := s.look(uid)
		return !o.BeingDeleted()
	})
}
