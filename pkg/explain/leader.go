// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// leader says who holds a lease, from a workload's point of view.
type leader int

const (
	// ownPod is a pod of the workload.
	ownPod leader = iota
	// formerPod is called as pods of the workload are, and is none of them.
	formerPod
	// stranger calls itself after something else.
	stranger
	// anybody does not say who it is.
	anybody
)

// held is a lease of a workload: one that a pod of it holds or held, or that is
// called after it.
type held struct {
	id       graph.Identity
	state    evidence.LeaseState
	evidence Evidence
	by       leader
	holder   string
	runs     bool // the pod that holds it is not known to have stopped
}

// heldLease finds the lease that tells most of the workload: one that a pod of
// it renews, else one that somebody else renews, else one that expired; nil when
// there is none. What a former pod held tells nothing more of one that is dead.
func (w *walker) heldLease(l *workload, own []*unstructured.Unstructured, dead bool) *held {
	if !w.hasLeases(l.id.Namespace) {
		return nil
	}
	items, err := w.evidence.List(leases, l.id.Namespace)
	if err != nil {
		return nil
	}
	var best *held
	for _, by := range []leader{ownPod, stranger, formerPod, anybody} {
		if by == formerPod && dead {
			continue
		}
		for i := range items {
			if best != nil && best.state == evidence.LeaseFresh {
				return best
			}
			if h := w.leaseOf(&items[i], l, own, by); h != nil && (best == nil || h.state == evidence.LeaseFresh) {
				best = h
			}
		}
	}
	return best
}

func (w *walker) hasLeases(namespace string) bool {
	for _, n := range w.evidence.Instances(leases.GroupResource()) {
		if n.Namespace() == namespace {
			return true
		}
	}
	return false
}

// leaseOf tells how a lease of the workload stands that is held in such a way,
// nil for another.
func (w *walker) leaseOf(lease *unstructured.Unstructured, l *workload, own []*unstructured.Unstructured, by leader) *held {
	holder := evidence.Nested(lease, "spec", "holderIdentity")
	i, who := leaderOf(holder, l, own)
	if who != by || who > formerPod && !calledAfter(lease.GetName(), l) {
		return nil
	}
	w.evidence.Known(leases, lease)
	h := &held{id: evidence.IdentityOf(leases, "Lease", lease), by: who, holder: holder}
	h.state, h.evidence = w.evidence.Lease(lease.GetNamespace(), lease.GetName())
	h.runs = i >= 0 && w.podState(own[i]).liveness != Dead
	return h
}

// leaderOf says who holds a lease, and which of the pods, -1 for none. Its
// holder calls itself after its host, as client-go/tools/leaderelection has it:
// that is its pod, or the node for a pod in the node's network. What has another
// form may be anybody.
func leaderOf(holder string, l *workload, own []*unstructured.Unstructured) (int, leader) {
	host, _, hasHost := strings.Cut(holder, "_")
	if i := slices.IndexFunc(own, func(p *unstructured.Unstructured) bool { return p.GetName() == host }); i >= 0 {
		return i, ownPod
	}
	mentions := func(p *unstructured.Unstructured) bool {
		if node := evidence.Nested(p, "spec", "nodeName"); host != "" && strings.HasPrefix(node, host+".") {
			return true
		}
		for _, name := range []string{p.GetName(), string(p.GetUID()), evidence.Nested(p, "spec", "nodeName"), evidence.Nested(p, "spec", "hostname"), evidence.Nested(p, "status", "podIP"), evidence.Nested(p, "status", "hostIP")} {
			if len(name) > 2 && strings.Contains(holder, name) {
				return true
			}
		}
		// A host's name has at most 63 characters.
		return len(host) == 63 && strings.HasPrefix(p.GetName(), host)
	}
	switch {
	case holder == "":
		return -1, anybody
	case slices.ContainsFunc(own, mentions):
		return -1, anybody
	case l.selector != nil && podName(l.id.Name).MatchString(host):
		return -1, formerPod
	case hasHost && host != "" && !strings.HasPrefix(host, l.id.Name):
		return -1, stranger
	}
	return -1, anybody
}

// calledAfter reports whether a lease has the name of the workload, with or
// without a word for what it is.
func calledAfter(lease string, l *workload) bool {
	for _, suffix := range []string{"", "-leader", "-lock", "-lease", "-leader-election", "-leader-elect", "-leader-lock", "-resource-lock"} {
		if lease == l.id.Name+suffix {
			return true
		}
	}
	return false
}

// led corrects what pods tell of a workload by its lease.
func (h *held) led(l *workload, s state) state {
	if h == nil {
		return s
	}
	switch {
	case h.by == ownPod && h.state == evidence.LeaseFresh && h.runs:
		if s.liveness != Alive && s.trouble != leaving {
			s = state{liveness: Alive, because: "it renews its lease"}
		}
		s.leads = true
	case h.by == ownPod && h.state == evidence.LeaseStale && s.liveness == Alive:
		s.liveness, s.trouble, s.because = Dead, hung, "a pod of it is ready, and does not renew its lease"
		if l.id.Resource.Kind == "StatefulSet" { // a pod of an older version had the same name
			s.liveness, s.trouble = Unsure, noTrouble
		}
	case h.state == evidence.LeaseFresh && (h.by == stranger || h.by == anybody && s.liveness == Dead):
		s.liveness, s.trouble, s.because = Unsure, notLeading, "its lease is renewed by "+h.holder+", which is no pod of it"
		if h.by == anybody {
			s.because = "its lease is renewed by " + h.holder
		}
		s.lease = h.id
	case h.state == evidence.LeaseStale && s.liveness == Alive:
		// It may be left over, since leader election can be switched off.
		s.liveness, s.trouble, s.because = Unsure, leaderless, "a pod of it is ready, and its lease is not renewed"
		s.lease = h.id
	case h.by != ownPod:
		return s
	}
	s.evidence = append(s.evidence, h.evidence)
	return s
}

// stateFor is how a workload stands as the candidate for a finalizer: a lease in
// its namespace that is named after the finalizer's domain or the type's group
// counts as its own.
func (w *walker) stateFor(s *search, c *candidate) state {
	if st, known := s.states[c.id]; known {
		return st
	}
	st := w.stateByLeases(s, c)
	s.states[c.id] = st
	return st
}

func (w *walker) stateByLeases(s *search, c *candidate) state {
	st := w.stateOf(c.workload)
	if st.leads || len(s.leases) == 0 || st.lease.Name != "" {
		return st
	}
	own, err := w.podsOf(c.workload)
	if err != nil {
		return st
	}
	for _, lease := range s.leases {
		_, by := leaderOf(evidence.Nested(lease, "spec", "holderIdentity"), c.workload, own)
		if lease.GetNamespace() != c.id.Namespace || by == ownPod || w.workloadOfHolder(lease) != nil {
			continue
		}
		h := &held{id: evidence.IdentityOf(leases, "Lease", lease), by: by, holder: evidence.Nested(lease, "spec", "holderIdentity")}
		h.state, h.evidence = w.evidence.Lease(lease.GetNamespace(), lease.GetName())
		st.evidence = slices.Clone(st.evidence)
		if st = h.led(c.workload, st); st.lease.Name != "" {
			break
		}
	}
	return st
}

// workloadOfHolder returns the workload whose pod holds, or held, a lease.
func (w *walker) workloadOfHolder(lease *unstructured.Unstructured) *workload {
	return w.workloadOfPod(lease.GetNamespace(), podOfHolder(evidence.Nested(lease, "spec", "holderIdentity")))
}

// podOfHolder takes the name of a pod out of a lease's holder.
func podOfHolder(identity string) string {
	name, _, _ := strings.Cut(identity, "_")
	return name
}
