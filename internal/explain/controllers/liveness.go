// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What Controller.Liveness says.
const (
	// Alive: a replica is ready on a node that reports, or renews its lease.
	Alive = "Alive"
	// Dead: the workload is there, and nothing of it runs.
	Dead = "Dead"
	// Absent: no controller in the cluster removes the finalizer.
	Absent = "Absent"
	// Denied: whether it runs or not, it may not change the object.
	Denied = "Denied"
	// Unsure: what could be read does not tell.
	Unsure = "Unknown"
)

// Trouble is what keeps a workload from running.
type Trouble int

// The troubles.
const (
	noTrouble Trouble = iota
	ScaledDown
	Crashing
	unscheduled
	noImage
	NoPods
	ended
	Hung           // its leader does not renew its lease
	NotLeading     // its lease is somebody else's
	Leaderless     // nobody renews its lease
	Leaving        // it, or its last pod, is being deleted
	NotStarted     // its containers cannot be started
	Suspended      // it is a CronJob or a Job that is suspended
	LeavingAccount // its ServiceAccount is being deleted
	NoAccount      // its ServiceAccount does not exist
	NewAccount     // its ServiceAccount is newer than its pod
)

// State is whether a workload works, and what shows it.
type State struct {
	Liveness string
	Trouble  Trouble
	// Because says it in a few words.
	Because  say.Text
	Evidence []evidence.Fact
	// Obstacle is what the API server says against its pods, empty for nothing.
	Obstacle string
	// Pod is the pod that shows it, empty for none.
	Pod string
	// leads: a pod of it renews a lease. lease is the one for
	// notLeading and leaderless.
	leads bool
	Lease graph.Identity
	// ready: a pod that is being deleted has not stopped yet. late: it should have ended.
	ready, late bool
	// Unstarted: no container of it has run yet, so there is no log.
	Unstarted bool
	// Next is that of the pod which comes after one that is being deleted, if it does not work.
	Next *State
}

const (
	// startDelay is how long a workload may be without pods, and a container
	// without having proved itself after crashes.
	startDelay  = 2 * time.Minute
	manyCrashes = 3
	// placeDelay is how long a pod may wait for a node: one may be about to be
	// made for it.
	placeDelay = 10 * time.Minute
)

// liveness says who works, by their pods, leases and accounts. It owns the state of each workload, which does
// not depend on what is asked about.
type liveness struct {
	*roster
	// unmade says what shows that nobody makes pods, nil when that is not so.
	unmade func() []evidence.Fact
	states map[graph.Identity]State
}

// StateOf finds out whether a workload works, once.
func (f *liveness) StateOf(l *Workload) State {
	if s, known := f.states[l.ID()]; known {
		return s
	}
	s := f.look(l)
	f.states[l.ID()] = s
	return s
}

func (f *liveness) look(l *Workload) State {
	if l.resource.Kind == "CronJob" || l.resource.Kind == "Job" {
		return l.scheduled()
	}
	own, err := f.podsOf(l)
	if err != nil {
		return State{Liveness: Unsure, Because: say.Of(podsUnread),
			Evidence: []evidence.Fact{evidence.At("pods in namespace "+l.namespace, "", err.Error())}}
	}
	if len(own) == 0 {
		s := f.withoutPods(l)
		return f.heldLease(l, own, s.Liveness == Dead).led(l, s)
	}
	best := f.bestOf(own)
	best = f.heldLease(l, own, best.Liveness == Dead).led(l, best)
	best = f.leavingState(l, best, own)
	if best.Liveness == Dead && l.Replicas == 0 && l.deleted == nil && best.Trouble != Hung {
		best.Trouble, best.Because = ScaledDown, say.Of(scaledToZero)
	}
	best = f.accountState(l, best, own)
	best.Evidence = append([]evidence.Fact{f.replicasOf(l, own)}, best.Evidence...)
	return best
}

// scheduled is a CronJob, which works at its times, or a Job that is suspended.
func (l *Workload) scheduled() State {
	stops, _, _ := unstructured.NestedBool(l.whole.Object, "spec", "suspend")
	at := func(path, value string) []evidence.Fact {
		return []evidence.Fact{evidence.At(l.ID(), path, value)}
	}
	if stops {
		return State{Liveness: Dead, Trouble: Suspended, Because: say.Of(suspended), Evidence: at("spec.suspend", "true")}
	}
	last := cmp.Or(evidence.Nested(l.whole, "status", "lastScheduleTime"), "never")
	return State{
		Liveness: Alive, Because: say.Of(runsBySchedule, evidence.Nested(l.whole, "spec", "schedule")),
		Evidence: at("status.lastScheduleTime", last),
	}
}

// leavingState corrects the state of a workload that is being deleted, or whose
// best pod is: until that has ended it may still work, and after it no other
// comes, or one that does not work.
func (f *liveness) leavingState(l *Workload, s State, own []*unstructured.Unstructured) State {
	deleted := l.deleted
	last := deleted != nil || l.Replicas == 0 || f.evidence.Ending(l.namespace)
	if l.IsPod() { // the owner of a pod may make another
		last = metav1.GetControllerOf(l.whole) == nil
	}
	if deleted != nil && (!l.IsPod() || s.Trouble != Leaving) {
		s.Evidence = append(s.Evidence, evidence.At(l.ID(), "metadata.deletionTimestamp", deleted.UTC().Format(time.RFC3339)))
	}
	switch {
	case s.Trouble == Leaving && last:
		s.Because = s.Because.And(notReplaced)
		if deleted != nil && !l.IsPod() {
			s.Because = say.Of(leavingBecause, s.Because)
		}
		if !s.ready && !s.leads {
			s.Liveness = Dead
		}
	case s.Trouble == Leaving:
		return f.after(s, own)
	case s.Liveness == Dead && last && deleted != nil: // whatever is wrong with it
		s.Trouble, s.Because = Leaving, say.Of(leavingForGood, s.Because)
	case s.Liveness == Alive && deleted != nil:
		s.Liveness, s.Trouble, s.Because = Unsure, Leaving, say.Of(leavingWhile, s.Because)
	}
	return s
}

// accountState corrects the state of a workload whose ServiceAccount is provably
// gone, or was made after the pod that works: the API server refuses the token
// of an account that was deleted. The account "default" is made anew by itself.
func (f *liveness) accountState(l *Workload, s State, own []*unstructured.Unstructured) State {
	at := l.Account().ID()
	switch {
	case s.Liveness == Dead || l.line.Kubeconfig:
		return s
	case f.accountLeft(l.Account()):
		s.Evidence = append(s.Evidence, evidence.At(at, "metadata.deletionTimestamp", tokensOfLeaving))
		if s.leads {
			s.Liveness, s.Trouble, s.Because = Unsure, noTrouble, say.Of(accountLeavingLeads, at)
			return s
		}
		s.Liveness, s.Trouble, s.Because = Dead, LeavingAccount, say.Of(accountLeaving, at)
		return s
	case f.accountAfter(l.Account(), s.Pod, own) && !s.leads:
		s.Evidence = append(s.Evidence, evidence.At(at, "metadata.creationTimestamp", fmt.Sprintf(laterThanPod, s.Pod)))
		s.Liveness, s.Trouble, s.Because = Unsure, NewAccount, say.Of(accountRecreated, at)
		return s
	case l.Account().Name == "default" || !f.accountMissing(l.Account()):
		return s
	}
	s.Evidence = append(s.Evidence, evidence.At(at, "", tokensOfGone))
	if s.leads {
		s.Liveness, s.Trouble, s.Because = Unsure, noTrouble, say.Of(accountGoneLeads, at)
		return s
	}
	s.Liveness, s.Trouble, s.Because = Dead, NoAccount, say.Of(accountGone, at)
	return s
}

// accountLeft reports whether an account has been in deletion for so long that its
// tokens are refused: a minute (kubernetes/pkg/serviceaccount, Validate).
func (f *liveness) accountLeft(a Account) bool {
	return slices.ContainsFunc(f.evidence.Named(evidence.ServiceAccounts.GroupResource(), a.Namespace, a.Name), func(n graph.Node) bool {
		return n.BeingDeleted() && f.evidence.Now.Sub(n.Object().DeletionTimestamp.Time) > time.Minute
	})
}

// tokenLife is how long the token of a pod is valid, after which the kubelet has
// got another for certain.
const tokenLife = time.Hour

// accountAfter reports whether an account was made a short time ago, and after
// the pod that uses it: there was another of its name.
func (f *liveness) accountAfter(a Account, pod string, own []*unstructured.Unstructured) bool {
	made := func(p *unstructured.Unstructured) time.Time { return p.GetCreationTimestamp().Time }
	i := slices.IndexFunc(own, func(p *unstructured.Unstructured) bool { return p.GetName() == pod })
	if i < 0 || made(own[i]).IsZero() {
		return false
	}
	return slices.ContainsFunc(f.evidence.Named(evidence.ServiceAccounts.GroupResource(), a.Namespace, a.Name), func(n graph.Node) bool {
		created := n.CreationTimestamp()
		return created.After(made(own[i])) && f.evidence.Now.Sub(created.Time) < tokenLife
	})
}

// accountMissing reports whether a ServiceAccount provably does not exist.
func (f *liveness) accountMissing(a Account) bool {
	if !f.accountUnlisted(a) {
		return false
	}
	_, err := f.evidence.Get(evidence.ServiceAccounts, a.Namespace, a.Name)
	return apierrors.IsNotFound(err)
}

// maxPods is the number of pods of one workload that are looked at.
const maxPods = 20

// bestOf returns the state of the pod that is most alive.
func (f *liveness) bestOf(own []*unstructured.Unstructured) State {
	isReady := func(p *unstructured.Unstructured) int {
		if ready, _ := evidence.ConditionOf(p, "Ready"); ready.Status == "True" && p.GetDeletionTimestamp() == nil {
			return 0
		}
		return 1
	}
	own = slices.Clone(own)
	slices.SortStableFunc(own, func(a, b *unstructured.Unstructured) int { return isReady(a) - isReady(b) })
	best := f.podState(own[0])
	for _, p := range own[1:min(len(own), maxPods)] {
		if best.Liveness == Alive {
			break
		}
		if s := f.podState(p); aliveness[s.Liveness] < aliveness[best.Liveness] {
			best = s
		}
	}
	if len(own) > maxPods && best.Liveness == Dead {
		best.Liveness, best.Because = Unsure, say.Of(somePodsFail, maxPods, len(own))
	}
	return best
}

// after adds to the state of a pod that is being deleted that the one which comes after it does
// not work. Of one that has stopped, and should have ended, that is the state.
func (f *liveness) after(leaving State, own []*unstructured.Unstructured) State {
	for _, p := range own[:min(len(own), maxPods)] {
		if p.GetDeletionTimestamp() != nil {
			continue
		}
		switch next := f.podState(p); {
		case next.Liveness != Dead || next.Trouble == ended:
		case leaving.late && !leaving.ready && !leaving.leads:
			return next
		default:
			leaving.Next = &next
			leaving.Because = leaving.Because.And(nextPodFails, next.Pod, next.Because)
			leaving.Evidence = append(leaving.Evidence, next.Evidence...)
			return leaving
		}
	}
	return leaving
}

var aliveness = map[string]int{Alive: 0, Unsure: 1, Dead: 2}

func (f *liveness) replicasOf(l *Workload, own []*unstructured.Unstructured) evidence.Fact {
	has := fmt.Sprintf("it has %d pods", len(own))
	if len(own) == 1 {
		has = "it has one pod"
	}
	if l.Replicas < 0 {
		return evidence.At(l.ID(), "", has)
	}
	return evidence.At(l.ID(), "spec.replicas", fmt.Sprintf("%d, and %s", l.Replicas, has))
}

// withoutPods is a workload that has none. Unless something says why, its pods
// may be just about to be made.
func (f *liveness) withoutPods(l *Workload) State {
	s := State{Liveness: Dead, Trouble: NoPods, Because: say.Of(noPods), Unstarted: true, Evidence: []evidence.Fact{f.replicasOf(l, nil)}}
	switch failure := l.failure; {
	case l.deleted != nil:
		s.Trouble, s.Because = Leaving, say.Of(leavingNoPods)
		s.Evidence = append(s.Evidence, evidence.At(l.ID(), "metadata.deletionTimestamp", l.deleted.UTC().Format(time.RFC3339)))
	case l.Replicas == 0:
		s.Trouble, s.Because = ScaledDown, say.Of(scaledToZero)
	case failure != nil && failure.Status == "True":
		s.Because = say.Of(podsNotCreated, failure.Message)
		s.Obstacle = failure.Message
		s.Evidence = append(s.Evidence, failure.Fact(l.ID()))
	case f.evidence.Ending(l.namespace):
		s.Because = say.Of(namespaceLeaving)
	case len(f.unmade()) > 0:
		s.Because = say.Of(noPodsNoManager)
		s.Evidence = append(s.Evidence, f.unmade()...)
	case f.evidence.Now.Sub(time.Unix(l.made, 0)) < startDelay:
		s.Liveness, s.Trouble, s.Because = Unsure, noTrouble, say.Of(newWithoutPods)
	case l.isIdle(f.evidence.Now):
	case l.nowhere: // its controller has found no node for it
		s.Because = say.Of(noNode)
	case l.Paused:
		s.Because = say.Of(pausedNoPods)
	default:
		s.Liveness, s.Trouble = Unsure, noTrouble
	}
	return s
}

// managerLease is how the lease of kube-controller-manager stands.
func (f *liveness) managerLease() evidence.LeaseState {
	state, _ := f.evidence.Lease("kube-system", "kube-controller-manager")
	return state
}
