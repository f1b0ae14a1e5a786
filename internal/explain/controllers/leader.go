// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
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
	evidence evidence.Fact
	by       leader
	holder   string
	runs     bool // the pod that holds it is not known to have stopped
}

// heldLease finds the lease that tells most of the workload: one that a pod of
// it renews, else one that somebody else renews, else one that expired; nil when
// there is none. What a former pod held tells nothing more of one that is dead.
func (f *liveness) heldLease(l *Workload, own []*unstructured.Unstructured, dead bool) *held {
	if !f.hasLeases(l.namespace) {
		return nil
	}
	items, err := f.evidence.List(evidence.Leases, l.namespace)
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
			if h := f.leaseOf(&items[i], l, own, by); h != nil && (best == nil || h.state == evidence.LeaseFresh) {
				best = h
			}
		}
	}
	return best
}

func (f *liveness) hasLeases(namespace string) bool {
	return len(f.evidence.Within(evidence.Leases.GroupResource(), namespace)) > 0
}

// leaseOf tells how a lease of the workload stands that is held in such a way,
// nil for another.
func (f *liveness) leaseOf(lease *unstructured.Unstructured, l *Workload, own []*unstructured.Unstructured, by leader) *held {
	holder := evidence.Nested(lease, "spec", "holderIdentity")
	i, who := leaderOf(holder, l, own)
	if who != by || who > formerPod && !calledAfter(lease.GetName(), l.name) {
		return nil
	}
	f.evidence.Known(evidence.Leases, lease)
	h := &held{id: evidence.IdentityOf(evidence.Leases, "Lease", lease), by: who, holder: holder}
	h.state, h.evidence = f.evidence.Lease(lease.GetNamespace(), lease.GetName())
	h.runs = i >= 0 && f.podState(own[i]).Liveness != Dead
	return h
}

// leaderOf says who holds a lease, and which of the pods, -1 for none. Its
// holder calls itself after its host, as client-go/tools/leaderelection has it:
// that is its pod, or the node for a pod in the node's network. What has another
// form may be anybody.
func leaderOf(holder string, l *Workload, own []*unstructured.Unstructured) (int, leader) {
	host, _, hasHost := strings.Cut(holder, "_")
	if i := slices.IndexFunc(own, func(p *unstructured.Unstructured) bool { return p.GetName() == host }); i >= 0 {
		return i, ownPod
	}
	mentions := func(p *unstructured.Unstructured) bool {
		if node := evidence.Nested(p, "spec", "nodeName"); host != "" && strings.HasPrefix(node, host+".") {
			return true
		}
		for _, name := range []string{p.GetName(), string(p.GetUID()), evidence.Nested(p, "spec", "nodeName"),
			evidence.Nested(p, "spec", "hostname"), evidence.Nested(p, "status", "podIP"), evidence.Nested(p, "status", "hostIP")} {
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
	case !l.IsPod() && isPodOf(l.name, host):
		return -1, formerPod
	case hasHost && host != "" && !strings.HasPrefix(host, l.name):
		return -1, stranger
	}
	return -1, anybody
}

// calledAfter reports whether a lease has the name of a program, with or
// without a word for what it is.
func calledAfter(lease, program string) bool {
	for _, suffix := range []string{"", "-leader", "-lock", "-lease", "-leader-election", "-leader-elect", "-leader-lock", "-resource-lock"} {
		if lease == program+suffix {
			return true
		}
	}
	return false
}

// leaderWord is in the name of a lease by which leaders are elected; controller-runtime and kubebuilder name it after a domain.
var leaderWord = pattern.New(`leader|elect|controller|operator|manager|\.`)

// led corrects what pods tell of a workload by its lease.
func (h *held) led(l *Workload, s State) State {
	if h == nil {
		return s
	}
	switch {
	case h.by == ownPod && h.state == evidence.LeaseFresh && h.runs:
		if s.Liveness != Alive && s.Trouble != Leaving {
			s = State{Liveness: Alive, Because: say.Of(renewsLease)}
		}
		s.leads = true
	case h.by == ownPod && h.state == evidence.LeaseStale && !calledAfter(h.id.Name, l.name) && !leaderWord().MatchString(h.id.Name):
		return s // it has done something alone, once
	case h.by == ownPod && h.state == evidence.LeaseStale && s.Liveness == Alive:
		s.Liveness, s.Trouble, s.Because = Dead, Hung, say.Of(leaseHung)
		if l.resource.Kind == "StatefulSet" { // a pod of an older version had the same name
			s.Liveness, s.Trouble = Unsure, noTrouble
		}
	case h.state == evidence.LeaseFresh && (h.by == stranger || h.by == anybody && s.Liveness == Dead):
		s.Liveness, s.Trouble, s.Because = Unsure, NotLeading, say.Of(leaseOfStranger, h.holder)
		if h.by == anybody {
			s.Because = say.Of(leaseOfAnybody, h.holder)
		}
		s.Lease = h.id
	case h.state == evidence.LeaseStale && s.Liveness == Alive:
		// It may be left over, since leader election can be switched off.
		s.Liveness, s.Trouble, s.Because = Unsure, Leaderless, say.Of(leaseNotRenewed)
		s.Lease = h.id
	case h.by != ownPod:
		return s
	}
	s.Evidence = append(s.Evidence, h.evidence)
	return s
}

// stateFor is how a workload stands as the candidate for a finalizer: a lease in
// its namespace that is named after the finalizer's domain or the type's group
// counts as its own. Who writes lives, whatever is said of its pods and leases.
func (f *liveness) stateFor(s *Search, c *Candidate) State {
	if st, known := s.states[c.ID()]; known {
		return st
	}
	st := f.stateByLeases(s, c)
	if by, ago := f.lastWrite(s, c, st.Liveness == Dead && c.Named); by != "" {
		switch wrote := say.Of(changedLately, by, s.workedOn[by], duration.HumanDuration(ago)); {
		case st.Liveness == Unsure && st.Trouble != Leaving && ago <= Quiet:
			st.Liveness, st.Trouble, st.Because, st.Lease = Alive, noTrouble, wrote, graph.Identity{}
		case st.Liveness != Dead:
		case ago <= Settling, ago <= Quiet && st.Trouble == Hung, // it leads by no such lease
			ago <= Quiet && st.Trouble == ScaledDown && !c.calledBy(by): // another instance has written
			st.Liveness, st.Because, st.Unstarted = Unsure, st.Because.And(although, wrote), false
		}
	}
	s.states[c.ID()] = st
	return st
}

// lastWrite returns under which name of a candidate such objects were changed last since their deletion, empty for none, and how
// long ago. A name of no workload is as good for one that is known not to run: another instance may.
func (f *liveness) lastWrite(s *Search, c *Candidate, down bool) (by string, ago time.Duration) {
	for _, manager := range slices.Sorted(maps.Keys(s.wrote)) {
		its := c.calledBy(manager) || down && !slices.Contains(components, manager) && !f.calledSo(manager)
		if its && (by == "" || s.wrote[manager].After(s.wrote[by])) {
			by, ago = manager, f.evidence.Now.Sub(s.wrote[manager])
		}
	}
	return by, ago
}

func (f *liveness) stateByLeases(s *Search, c *Candidate) State {
	st := f.StateOf(c.Workload)
	if st.leads || len(s.leases)+len(s.abroad) == 0 || st.Lease.Name != "" {
		return st
	}
	own, err := f.podsOf(c.Workload)
	if err != nil {
		return st
	}
	for _, lease := range slices.Concat(s.leases, s.abroad) {
		i, by := leaderOf(evidence.Nested(lease, "spec", "holderIdentity"), c.Workload, own)
		abroad := slices.Contains(s.abroad, lease)
		if abroad && by != ownPod || !abroad && (lease.GetNamespace() != c.namespace || by == ownPod || f.workloadOfHolder(lease) != nil) {
			continue
		}
		h := &held{id: evidence.IdentityOf(evidence.Leases, "Lease", lease), by: by, holder: evidence.Nested(lease, "spec", "holderIdentity")}
		h.state, h.evidence = f.evidence.Lease(lease.GetNamespace(), lease.GetName())
		h.runs = abroad && f.podState(own[i]).Liveness != Dead
		st.Evidence = slices.Clone(st.Evidence)
		if st = h.led(c.Workload, st); st.Lease.Name != "" {
			break
		}
	}
	return st
}

// workloadOfHolder returns the workload whose pod holds, or held, a lease.
func (f *liveness) workloadOfHolder(lease *unstructured.Unstructured) *Workload {
	return f.WorkloadOfPod(lease.GetNamespace(), PodOfHolder(evidence.Nested(lease, "spec", "holderIdentity")))
}

// PodOfHolder takes the name of a pod out of a lease's holder.
func PodOfHolder(identity string) string {
	name, _, _ := strings.Cut(identity, "_")
	return name
}
