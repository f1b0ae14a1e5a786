// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
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
	Unknown []say.Text
	// ComesBack is who creates a removed object anew. It is among
	// the Notes.
	ComesBack Maker
	// Notes are what else there is to say, such as who creates a removed object
	// anew.
	Notes []say.Text
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
	Unknown say.Text
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
	h, known := s.view.snapshot.Handle(uid)
	if !known {
		return graph.Object{}, Fate{}
	}
	o, gone := s.view.at(h)
	return o, s.fates.fate(&o, gone)
}

// fates tell what becomes of objects, and why, from what is so now. They change nothing, and own what they
// found out about namespaces that are being deleted.
type fates struct {
	view    *view
	groups  *memberships
	actors  *Actors
	began   time.Time
	stalled map[string]stall             // answers of stalledIn
	manned  map[types.UID]bool           // by what has pods; nil until it is asked
	sets    map[types.UID][]graph.Object // ReplicaSets by their Deployments
}

func (x *fates) fate(o *graph.Object, gone bool) Fate {
	switch {
	case gone:
		return Fate{State: Gone, ComesBack: x.comesBack(o), Notes: x.notesOfGone(o)}
	case o.BeingDeleted():
		waits := x.waits(o)
		return Fate{State: Terminating, Waits: waits, Unknown: unknowns(waits), Notes: x.notesOfTerminating(o)}
	}
	return Fate{State: Live, Unknown: x.unknownsOfLive(o), Notes: x.notesOfLive(o)}
}

// unknowns says why an object that waits for all this may go. It surely stays
// when one of the waits surely does not end.
func unknowns(waits []Wait) []say.Text {
	var reasons []say.Text
	seen := map[string]bool{} // there may be a million
	for _, w := range waits {
		switch said := w.Unknown.String(); {
		case w.isCallers():
		case w.Unknown.IsZero():
			return nil
		case !seen[said]:
			seen[said] = true
			reasons = append(reasons, w.Unknown)
		}
	}
	return reasons
}

// waits returns what a terminating object waits for.
func (x *fates) waits(o *graph.Object) []Wait {
	var waits []Wait
	for _, f := range o.Finalizers {
		waits = append(waits, x.waitForFinalizer(o, f))
	}
	switch {
	case is(o, namespaceResource):
		waits = append(waits, x.waitsForSpec(o)...)
	case is(o, podResource) && (len(o.Finalizers) == 0 || !x.view.nothingButFinalizers(o)):
		waits = append(waits, x.waitForKubelet(o))
	}
	return waits
}

func (x *fates) waitForFinalizer(o *graph.Object, finalizer string) Wait {
	w := Wait{Kind: ForFinalizer, Finalizer: finalizer, Actor: x.actors.actor(o, finalizer)}
	switch {
	case x.view.unchangeable(o):
		w.Actor = Nobody // not even the caller: a PATCH is answered with 404
	case finalizer == crdCleanup && is(o, crdResource):
		d := x.view.define(o)
		w.Kind, w.Objects = ForInstances, x.view.members(d.instances)
		w.Unknown = x.mayGo(w.Objects)
		if len(w.Objects) == 0 {
			w.Unknown = say.Plain(d.unread)
		}
	case w.Actor == Acts && !w.isCallers():
		unmet, _ := x.groups.unmet(finalizer, o)
		w.Unknown = say.Plain(unmet)
	case w.Actor == Unknown:
		w.Unknown = x.actors.unsure(o, finalizer)
	}
	return w
}

// waitsForSpec returns what a terminating namespace waits for besides its
// metadata's finalizers.
func (x *fates) waitsForSpec(o *graph.Object) []Wait {
	spec, read := x.view.specFinalizers(o.UID)
	if !read {
		return []Wait{{Kind: ForSpecFinalizer, Unknown: say.Of(specUnread)}}
	}
	var waits []Wait
	for _, f := range spec {
		w := Wait{Kind: ForSpecFinalizer, Finalizer: f, Actor: x.actors.actor(o, f)}
		switch {
		case f == namespaceFinalizer:
			w = x.waitForContent(o)
		case w.Actor == Unknown:
			w.Unknown = say.Of(specUnsure, f)
		}
		waits = append(waits, w)
	}
	return waits
}

func (x *fates) waitForContent(o *graph.Object) Wait {
	w := Wait{Kind: ForContent, Finalizer: namespaceFinalizer}
	pods, all := group{resource: podResource, namespace: o.Name}, group{namespace: o.Name}
	if !x.actors.NamespaceController {
		w.Objects, w.Unknown = x.view.members(all), say.Of(namespaceControllerUnknown)
		return w
	}
	w.Actor, w.Objects = Acts, x.view.members(pods)
	if len(w.Objects) == 0 {
		w.Objects = x.view.members(all)
	}
	w.Unknown = x.mayGo(w.Objects)
	if len(w.Objects) == 0 || !x.view.listed(pods) {
		w.Unknown = say.Plain(x.view.unreadIn(o.Name))
	}
	return w
}

// mayGo says why all the objects that are left may go: the first reason. It is
// empty when one of them surely stays.
func (x *fates) mayGo(left []types.UID) say.Text {
	var first say.Text
	for _, uid := range left {
		o, _, _ := x.view.look(uid)
		var reasons []say.Text
		if o.BeingDeleted() {
			reasons = unknowns(x.waits(&o))
		} else {
			reasons = x.unknownsOfLive(&o)
		}
		if len(reasons) == 0 {
			return say.Text{}
		}
		if first.IsZero() {
			first = say.Of(thatOf, o.Identity(), reasons[0])
		}
	}
	return first
}

func (x *fates) waitForKubelet(o *graph.Object) Wait {
	facts, read := x.view.snapshot.Facts.Pods[o.UID]
	if !read {
		return Wait{Kind: ForKubelet, Unknown: say.Of(podUnread)}
	}
	w := Wait{Kind: ForKubelet, Node: facts.NodeName}
	if w.Node == "" {
		w.Unknown = say.Of(onNoNode)
		return w
	}
	w.NodeState = x.view.node(w.Node)
	switch {
	case w.NodeState == NodeAbsent:
		w.Unknown = x.nodeAbsent(w.Node)
	case w.NodeState == NodeUnread && (x.actors.Kubelets || x.actors.PodGC):
		w.Unknown = say.Of(nodeUnread, w.Node)
	case w.NodeState == NodeSilent && x.actors.Kubelets:
		w.Unknown = say.Of(nodeSilent, w.Node)
	}
	switch {
	case !w.Unknown.IsZero():
	case x.actors.Kubelets:
		w.Actor = Acts
	default:
		w.Actor = Nobody
	}
	return w
}

func (x *fates) nodeAbsent(node string) say.Text { return say.Of(nodeGone, node) }

// unknownsOfLive says why an object that nobody deleted here may be deleted.
func (x *fates) unknownsOfLive(o *graph.Object) []say.Text {
	var reasons []say.Text
	facts, read := x.view.snapshot.Facts.Pods[o.UID]
	if read && facts.NodeName != "" && !x.actors.PodGC && x.view.node(facts.NodeName) == NodeAbsent {
		reasons = append(reasons, x.nodeAbsent(facts.NodeName))
	}
	if reason := x.stalledIn(o.Namespace); !reason.IsZero() {
		reasons = append(reasons, reason)
	}
	return reasons
}

// stall is an answer of stalledIn, with how much had changed by then.
type stall struct {
	changes int
	reason  say.Text
}

// stalledIn says why the content of a terminating namespace, whose turn has not
// come, may be deleted. It is empty when it is not going to be.
func (x *fates) stalledIn(namespace string) say.Text {
	if known, ok := x.stalled[namespace]; ok && known.changes == x.view.changes {
		return known.reason
	}
	var reason say.Text
	if h, found := x.view.located(location{namespaceResource, "", namespace}); namespace != "" && found {
		if o, gone := x.view.at(h); !gone && o.BeingDeleted() {
			reason = x.findStall(&o)
		}
	}
	x.stalled[namespace] = stall{x.view.changes, reason}
	return reason
}

func (x *fates) findStall(o *graph.Object) say.Text {
	pods := group{resource: podResource, namespace: o.Name}
	spec, read := x.view.specFinalizers(o.UID)
	switch {
	case read && len(spec) == 0:
		return say.Text{} // its controller is done with it
	case !x.actors.NamespaceController:
		return say.Of(namespaceControllerUnknown)
	case !x.view.listed(pods):
		return say.Plain(x.view.unreadIn(o.Name))
	}
	return x.mayGo(x.view.terminating(x.view.members(pods)))
}
