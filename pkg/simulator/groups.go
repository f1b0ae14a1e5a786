// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// group is a set of objects that somebody waits for to be gone: all in a
// namespace, all of a resource, or all of a resource in a namespace.
type group struct {
	resource  schema.GroupResource // empty for every resource
	namespace string               // empty for all
	// scheduled leaves out pods that are known to be on no node.
	scheduled bool
	// claim leaves out pods that are known not to use the claim of that name.
	claim string
	// uid is that of the only object, empty for all.
	uid types.UID
}

func (v *view) has(g group, o *graph.Object) bool {
	switch {
	case g.namespace != "" && o.Namespace != g.namespace:
		return false
	case g.resource != (schema.GroupResource{}) && !is(o, g.resource):
		return false
	case g.uid != "" && o.UID != g.uid:
		return false
	case !g.scheduled && g.claim == "":
		return true
	}
	facts, read := v.snapshot.Facts.Pods[o.UID]
	return !read || (!g.scheduled || facts.NodeName != "") && (g.claim == "" || slices.Contains(facts.Claims, g.claim))
}

// listed reports whether the snapshot holds all of the group.
func (v *view) listed(g group) bool { return v.snapshot.Covers(g.resource, g.namespace, "") }

// members returns the objects of the group that are left, in the order of the
// snapshot.
func (v *view) members(g group) []types.UID {
	x := v.ensureIndex()
	candidates := x.ranges.OfType(g.resource)
	switch {
	case g.claim != "":
		candidates = slices.Values(v.mayUse(g))
	case g.namespace != "":
		candidates = x.ranges.InNamespace(g.namespace)
	}
	var left []types.UID
	for i := range candidates {
		if o, gone := v.at(x.objects[i]); !gone && v.has(g, &o) {
			left = append(left, o.UID)
		}
	}
	return left
}

// membership is how much is left of a group, and what is to be done when
// nothing is.
type membership struct {
	left    int
	waiting []task
	known   map[task]bool // what is in waiting
}

// memberships count what is left of groups that somebody waits for, and own what is to be done when nothing is.
// What goes has to leave.
type memberships struct {
	view    *view
	clock   *clock
	counted map[group]*membership
}

// left returns how many objects of the group are left. They are counted once.
func (ms *memberships) left(g group) int { return ms.membership(g).left }

func (ms *memberships) membership(g group) *membership {
	m := ms.counted[g]
	if m == nil {
		m = &membership{left: len(ms.view.members(g)), known: map[task]bool{}}
		ms.counted[g] = m
	}
	return m
}

// mayUse returns the pods that use the claim, and those of which that is not known, in
// the order of the snapshot.
func (v *view) mayUse(g group) []int32 {
	users, known := v.users[g.namespace]
	if !known {
		users = map[string][]int32{}
		x := v.ensureIndex()
		for i := range x.ranges.InNamespace(g.namespace) {
			if o, _ := v.at(x.objects[i]); is(&o, podResource) {
				for _, name := range v.claimsOf(&o) {
					users[name] = append(users[name], i)
				}
			}
		}
		v.users[g.namespace] = users
	}
	all := slices.Concat(users[g.claim], users[""])
	slices.Sort(all)
	return all
}

// claimsOf returns the names of the claims that a pod uses, each once; one that is empty
// when that is not known.
func (v *view) claimsOf(pod *graph.Object) []string {
	facts, read := v.snapshot.Facts.Pods[pod.UID]
	if !read {
		return []string{""}
	}
	return slices.Compact(slices.Sorted(slices.Values(facts.Claims)))
}

// waitFor puts work on the agenda for when nothing is left of the group.
func (ms *memberships) waitFor(g group, w work, uid types.UID) {
	m, t := ms.membership(g), task{work: w, uid: uid}
	if !m.known[t] {
		m.known[t] = true
		m.waiting = append(m.waiting, t)
	}
}

// leave takes an object that is gone out of the groups that were counted.
func (ms *memberships) leave(o *graph.Object) {
	resource := o.Resource.GroupResource()
	ms.leaveGroup(group{resource: resource}, o)
	ms.leaveGroup(group{resource: resource, uid: o.UID}, o)
	if o.Namespace != "" {
		ms.leaveGroup(group{namespace: o.Namespace}, o)
		ms.leaveGroup(group{resource: resource, namespace: o.Namespace}, o)
	}
	if o.Resource.IsPod() {
		ms.leaveClaims(o)
	}
}

// leaveClaims is leave for the claims that a pod uses, or may use.
func (ms *memberships) leaveClaims(pod *graph.Object) {
	names := ms.view.claimsOf(pod)
	if len(names) == 1 && names[0] == "" {
		names = nil
		for g := range ms.counted {
			if g.claim != "" && g.namespace == pod.Namespace {
				names = append(names, g.claim)
			}
		}
		slices.Sort(names)
	}
	for _, name := range names {
		ms.leaveGroup(group{resource: podResource, namespace: pod.Namespace, scheduled: true, claim: name}, pod)
	}
}

func (ms *memberships) leaveGroup(g group, o *graph.Object) {
	m := ms.counted[g]
	if m == nil || !ms.view.has(g, o) {
		return
	}
	m.left--
	if m.left > 0 {
		return
	}
	for _, t := range m.waiting {
		ms.clock.plan(t.work, t.uid, ms.clock.now.Add(controllerDelay))
	}
	m.waiting, m.known = nil, map[task]bool{}
}
