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
}

func (s *Server) has(g group, o *graph.Object) bool {
	switch {
	case g.namespace != "" && o.Namespace != g.namespace:
		return false
	case g.resource != (schema.GroupResource{}) && !is(o, g.resource):
		return false
	case !g.scheduled && g.claim == "":
		return true
	}
	facts, read := s.snapshot.Facts.Pods[o.UID]
	return !read || (!g.scheduled || facts.NodeName != "") && (g.claim == "" || slices.Contains(facts.Claims, g.claim))
}

// listed reports whether the snapshot holds all of the group.
func (s *Server) listed(g group) bool { return s.snapshot.Covers(g.resource, g.namespace, "") }

// members returns the objects of the group that are left, in the order of the
// snapshot.
func (s *Server) members(g group) []types.UID {
	x := s.ensureIndex()
	candidates := x.ranges.OfType(g.resource)
	switch {
	case g.claim != "":
		candidates = slices.Values(s.mayUse(g))
	case g.namespace != "":
		candidates = x.ranges.InNamespace(g.namespace)
	}
	var left []types.UID
	for i := range candidates {
		if o, gone := s.at(x.objects[i]); !gone && s.has(g, &o) {
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

// left returns how many objects of the group are left. They are counted once.
func (s *Server) left(g group) int { return s.membership(g).left }

func (s *Server) membership(g group) *membership {
	m := s.groups[g]
	if m == nil {
		m = &membership{left: len(s.members(g)), known: map[task]bool{}}
		s.groups[g] = m
	}
	return m
}

// mayUse returns the pods that use the claim, and those of which that is not known, in
// the order of the snapshot.
func (s *Server) mayUse(g group) []int32 {
	users, known := s.users[g.namespace]
	if !known {
		users = map[string][]int32{}
		x := s.ensureIndex()
		for i := range x.ranges.InNamespace(g.namespace) {
			if o, _ := s.at(x.objects[i]); is(&o, podResource) {
				for _, name := range s.claimsOf(&o) {
					users[name] = append(users[name], i)
				}
			}
		}
		s.users[g.namespace] = users
	}
	all := slices.Concat(users[g.claim], users[""])
	slices.Sort(all)
	return all
}

// claimsOf returns the names of the claims that a pod uses, each once; one that is empty
// when that is not known.
func (s *Server) claimsOf(pod *graph.Object) []string {
	facts, read := s.snapshot.Facts.Pods[pod.UID]
	if !read {
		return []string{""}
	}
	return slices.Compact(slices.Sorted(slices.Values(facts.Claims)))
}

// waitFor puts work on the agenda for when nothing is left of the group.
func (s *Server) waitFor(g group, w work, uid types.UID) {
	m, t := s.membership(g), task{work: w, uid: uid}
	if !m.known[t] {
		m.known[t] = true
		m.waiting = append(m.waiting, t)
	}
}

// leave takes an object that is gone out of the groups that were counted.
func (s *Server) leave(o *graph.Object) {
	resource := o.Resource.GroupResource()
	s.leaveGroup(group{resource: resource}, o)
	if o.Namespace != "" {
		s.leaveGroup(group{namespace: o.Namespace}, o)
		s.leaveGroup(group{resource: resource, namespace: o.Namespace}, o)
	}
	if o.Resource.IsPod() {
		s.leaveClaims(o)
	}
}

// leaveClaims is leave for the claims that a pod uses, or may use.
func (s *Server) leaveClaims(pod *graph.Object) {
	names := s.claimsOf(pod)
	if len(names) == 1 && names[0] == "" {
		names = nil
		for g := range s.groups {
			if g.claim != "" && g.namespace == pod.Namespace {
				names = append(names, g.claim)
			}
		}
		slices.Sort(names)
	}
	for _, name := range names {
		s.leaveGroup(group{resource: podResource, namespace: pod.Namespace, scheduled: true, claim: name}, pod)
	}
}

func (s *Server) leaveGroup(g group, o *graph.Object) {
	m := s.groups[g]
	if m == nil || !s.has(g, o) {
		return
	}
	m.left--
	if m.left > 0 {
		return
	}
	for _, t := range m.waiting {
		s.plan(t.work, t.uid, s.now.Add(controllerDelay))
	}
	m.waiting, m.known = nil, map[task]bool{}
}
