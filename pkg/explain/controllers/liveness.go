// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
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
	Because  string
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

// podView is what is needed of a pod.
type podView struct {
	Spec   corev1.PodSpec `json:"spec"`
	Status struct {
		Phase                 string            `json:"phase"`
		Reason                string            `json:"reason"`
		Message               string            `json:"message"`
		ContainerStatuses     []containerStatus `json:"containerStatuses"`
		InitContainerStatuses []containerStatus `json:"initContainerStatuses"`
	} `json:"status"`
}

type containerStatus struct {
	Name         string         `json:"name"`
	RestartCount int64          `json:"restartCount"`
	State        containerState `json:"state"`
	LastState    containerState `json:"lastState"`
}

type containerState struct {
	Waiting *struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"waiting"`
	Running *struct {
		StartedAt string `json:"startedAt"`
	} `json:"running"`
	Terminated *struct {
		Reason   string `json:"reason"`
		Message  string `json:"message"`
		ExitCode int64  `json:"exitCode"`
	} `json:"terminated"`
}

// StateOf finds out whether a workload works, once.
func (f *Finder) StateOf(l *Workload) State {
	if s, known := f.states[l.ID()]; known {
		return s
	}
	s := f.look(l)
	f.states[l.ID()] = s
	return s
}

func (f *Finder) look(l *Workload) State {
	if l.resource.Kind == "CronJob" || l.resource.Kind == "Job" {
		return l.scheduled()
	}
	own, err := f.podsOf(l)
	if err != nil {
		return State{Liveness: Unsure, Because: "its pods could not be read", Evidence: []evidence.Fact{{Source: "pods in namespace " + l.namespace, Value: err.Error()}}}
	}
	if len(own) == 0 {
		s := f.withoutPods(l)
		return f.heldLease(l, own, s.Liveness == Dead).led(l, s)
	}
	best := f.bestOf(own)
	best = f.heldLease(l, own, best.Liveness == Dead).led(l, best)
	best = f.leavingState(l, best, own)
	if best.Liveness == Dead && l.Replicas == 0 && l.deleted == nil && best.Trouble != Hung {
		best.Trouble, best.Because = ScaledDown, "it is scaled to 0"
	}
	best = f.accountState(l, best, own)
	best.Evidence = append([]evidence.Fact{f.replicasOf(l, own)}, best.Evidence...)
	return best
}

// scheduled is a CronJob, which works at its times, or a Job that is suspended.
func (l *Workload) scheduled() State {
	suspended, _, _ := unstructured.NestedBool(l.whole.Object, "spec", "suspend")
	at := func(path, value string) []evidence.Fact {
		return []evidence.Fact{{Source: l.ID().String(), Path: path, Value: value}}
	}
	if suspended {
		return State{Liveness: Dead, Trouble: Suspended, Because: "it is suspended", Evidence: at("spec.suspend", "true")}
	}
	last := cmp.Or(evidence.Nested(l.whole, "status", "lastScheduleTime"), "never")
	return State{
		Liveness: Alive, Because: "it runs by the schedule " + evidence.Nested(l.whole, "spec", "schedule"),
		Evidence: at("status.lastScheduleTime", last),
	}
}

// leavingState corrects the state of a workload that is being deleted, or whose
// best pod is: until that has ended it may still work, and after it no other
// comes, or one that does not work.
func (f *Finder) leavingState(l *Workload, s State, own []*unstructured.Unstructured) State {
	deleted := l.deleted
	last := deleted != nil || l.Replicas == 0 || f.evidence.Ending(l.namespace)
	if l.IsPod() { // the owner of a pod may make another
		last = metav1.GetControllerOf(l.whole) == nil
	}
	if deleted != nil && (!l.IsPod() || s.Trouble != Leaving) {
		s.Evidence = append(s.Evidence, evidence.Fact{Source: l.ID().String(), Path: "metadata.deletionTimestamp", Value: deleted.UTC().Format(time.RFC3339)})
	}
	switch {
	case s.Trouble == Leaving && last:
		s.Because += ", and no other comes"
		if deleted != nil && !l.IsPod() {
			s.Because = "it is being deleted: " + s.Because
		}
		if !s.ready && !s.leads {
			s.Liveness = Dead
		}
	case s.Trouble == Leaving:
		return f.after(s, own)
	case s.Liveness == Dead && last && deleted != nil: // whatever is wrong with it
		s.Trouble, s.Because = Leaving, "it is being deleted, "+s.Because+", and no other comes"
	case s.Liveness == Alive && deleted != nil:
		s.Liveness, s.Trouble, s.Because = Unsure, Leaving, "it is being deleted, while "+s.Because
	}
	return s
}

// accountState corrects the state of a workload whose ServiceAccount is provably
// gone, or was made after the pod that works: the API server refuses the token
// of an account that was deleted. The account "default" is made anew by itself.
func (f *Finder) accountState(l *Workload, s State, own []*unstructured.Unstructured) State {
	at := evidence.Identity(evidence.ServiceAccounts, l.Account().Namespace, l.Account().Name).String()
	switch {
	case s.Liveness == Dead || l.elsewhere:
		return s
	case f.accountLeft(l.Account()):
		s.Evidence = append(s.Evidence, evidence.Fact{Source: at, Path: "metadata.deletionTimestamp", Value: "more than a minute ago: the API server refuses the tokens of an account that is being deleted"})
		if s.leads {
			s.Liveness, s.Trouble, s.Because = Unsure, noTrouble, "it has renewed its lease, but its account "+at+" is being deleted"
			return s
		}
		s.Liveness, s.Trouble, s.Because = Dead, LeavingAccount, "its account "+at+" is being deleted, so the API server refuses it"
		return s
	case f.accountAfter(l.Account(), s.Pod, own) && !s.leads:
		s.Evidence = append(s.Evidence, evidence.Fact{Source: at, Path: "metadata.creationTimestamp", Value: "later than that of pod " + s.Pod})
		s.Liveness, s.Trouble, s.Because = Unsure, NewAccount, "its account "+at+" was deleted and made again after its pod, whose token the API server refuses until the kubelet gets a new one"
		return s
	case l.Account().Name == "default" || !f.accountMissing(l.Account()):
		return s
	}
	s.Evidence = append(s.Evidence, evidence.Fact{Source: at, Value: "does not exist; the API server refuses the tokens of an account that is gone"})
	if s.leads {
		s.Liveness, s.Trouble, s.Because = Unsure, noTrouble, "it has renewed its lease, but its account "+at+" does not exist any more"
		return s
	}
	s.Liveness, s.Trouble, s.Because = Dead, NoAccount, "its account "+at+" does not exist, so the API server refuses it"
	return s
}

// accountLeft reports whether an account has been in deletion for so long that its
// tokens are refused: a minute (kubernetes/pkg/serviceaccount, Validate).
func (f *Finder) accountLeft(a Account) bool {
	return slices.ContainsFunc(f.evidence.Named(evidence.ServiceAccounts.GroupResource(), a.Namespace, a.Name), func(n graph.Node) bool {
		return n.BeingDeleted() && f.evidence.Now.Sub(n.Object().DeletionTimestamp.Time) > time.Minute
	})
}

// tokenLife is how long the token of a pod is valid, after which the kubelet has
// got another for certain.
const tokenLife = time.Hour

// accountAfter reports whether an account was made a short time ago, and after
// the pod that uses it: there was another of its name.
func (f *Finder) accountAfter(a Account, pod string, own []*unstructured.Unstructured) bool {
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
func (f *Finder) accountMissing(a Account) bool {
	if !f.accountUnlisted(a) {
		return false
	}
	_, err := f.evidence.Get(evidence.ServiceAccounts, a.Namespace, a.Name)
	return apierrors.IsNotFound(err)
}

// maxPods is the number of pods of one workload that are looked at.
const maxPods = 20

// bestOf returns the state of the pod that is most alive.
func (f *Finder) bestOf(own []*unstructured.Unstructured) State {
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
		best.Liveness, best.Because = Unsure, fmt.Sprintf("%d of its %d pods do not work", maxPods, len(own))
	}
	return best
}

// after adds to the state of a pod that is being deleted that the one which comes after it does
// not work. Of one that has stopped, and should have ended, that is the state.
func (f *Finder) after(leaving State, own []*unstructured.Unstructured) State {
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
			leaving.Because += ", and the next, " + next.Pod + ", does not work: " + next.Because
			leaving.Evidence = append(leaving.Evidence, next.Evidence...)
			return leaving
		}
	}
	return leaving
}

var aliveness = map[string]int{Alive: 0, Unsure: 1, Dead: 2}

func (f *Finder) replicasOf(l *Workload, own []*unstructured.Unstructured) evidence.Fact {
	has := fmt.Sprintf("it has %d pods", len(own))
	if len(own) == 1 {
		has = "it has one pod"
	}
	if l.Replicas < 0 {
		return evidence.Fact{Source: l.ID().String(), Value: has}
	}
	return evidence.Fact{Source: l.ID().String(), Path: "spec.replicas", Value: fmt.Sprintf("%d, and %s", l.Replicas, has)}
}

// withoutPods is a workload that has none. Unless something says why, its pods
// may be just about to be made.
func (f *Finder) withoutPods(l *Workload) State {
	s := State{Liveness: Dead, Trouble: NoPods, Because: "it has no pods", Unstarted: true, Evidence: []evidence.Fact{f.replicasOf(l, nil)}}
	switch failure := l.failure; {
	case l.deleted != nil:
		s.Trouble, s.Because = Leaving, "it is being deleted, and has no pods any more"
		s.Evidence = append(s.Evidence, evidence.Fact{Source: l.ID().String(), Path: "metadata.deletionTimestamp", Value: l.deleted.UTC().Format(time.RFC3339)})
	case l.Replicas == 0:
		s.Trouble, s.Because = ScaledDown, "it is scaled to 0"
	case failure != nil && failure.Status == "True":
		s.Because = "its pods cannot be made: " + failure.Message
		s.Obstacle = failure.Message
		s.Evidence = append(s.Evidence, failure.Fact(l.ID().String()))
	case f.evidence.Ending(l.namespace):
		s.Because = "its namespace is being deleted, in which no pods can be made"
	case len(f.unmade()) > 0:
		s.Because = "it has no pods, and no controller manager works that would make them"
		s.Evidence = append(s.Evidence, f.unmade()...)
	case f.evidence.Now.Sub(time.Unix(l.made, 0)) < startDelay:
		s.Liveness, s.Trouble, s.Because = Unsure, noTrouble, "it is new and has no pods yet"
	case l.nowhere: // its controller has found no node for it
		s.Because = "no node matches it"
	case l.Paused:
		s.Because = "it is paused and has no pods"
	default:
		s.Liveness, s.Trouble = Unsure, noTrouble
	}
	return s
}

// managerLease is how the lease of kube-controller-manager stands.
func (f *Finder) managerLease() evidence.LeaseState {
	state, _ := f.evidence.Lease("kube-system", "kube-controller-manager")
	return state
}

// podState says whether a pod of a controller works.
func (f *Finder) podState(p *unstructured.Unstructured) State {
	var view podView
	name := "Pod/" + p.GetNamespace() + "/" + p.GetName()
	if !evidence.Decode(p, &view) {
		return State{Liveness: Unsure, Because: "its pod has an unknown form", Pod: p.GetName()}
	}
	s := view.state(name, f.evidence.Now)
	s.Pod = p.GetName()
	if ready, _ := evidence.ConditionOf(p, "Ready"); s.Liveness == Unsure && ready.Status == "True" && s.Because == "" {
		s = f.readyState(p, view, ready.Fact(name))
	}
	if scheduled, ok := evidence.ConditionOf(p, "PodScheduled"); ok && scheduled.Status == "False" && view.Spec.NodeName == "" {
		s = State{Liveness: Dead, Trouble: unscheduled, Because: "its pod is on no node", Pod: p.GetName(), Evidence: []evidence.Fact{scheduled.Fact(name)}}
		if f.evidence.Now.Sub(evidence.Latest(scheduled.Since, p.GetCreationTimestamp().Time)) < placeDelay {
			s.Liveness, s.Because = Unsure, "its pod waits for a node, and has not for long"
		}
	}
	if s.Liveness == Unsure && s.Because == "" && p.GetDeletionTimestamp() == nil {
		s = f.startState(p, s)
	}
	if d := p.GetDeletionTimestamp(); d != nil && s.Liveness != Dead {
		s = f.endingPod(p, d.Time)
	}
	if s.Because == "" {
		s.Because = "its pod is not ready"
		s.Evidence = append(s.Evidence, evidence.Fact{Source: name, Path: "status.phase", Value: view.Status.Phase})
	}
	s.Unstarted = !view.started()
	return s
}

// started reports whether a container has run.
func (v *podView) started() bool {
	return v.Status.Phase != "Pending" || slices.ContainsFunc(slices.Concat(v.Status.InitContainerStatuses, v.Status.ContainerStatuses), func(c containerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.RestartCount > 0
	})
}

// startState is a pod that is on a node and not ready: when its kubelet says again and
// again that something is missing, its containers do not start.
func (f *Finder) startState(p *unstructured.Unstructured, s State) State {
	if ready, _ := evidence.ConditionOf(p, "PodReadyToStartContainers"); ready.Status == "True" || f.evidence.Now.Sub(p.GetCreationTimestamp().Time) < startDelay {
		return s
	}
	for _, e := range merged(f.evidence.Events(p.GetNamespace(), p.GetUID())) {
		if e.Type == "Warning" && startFailures[e.Reason] && e.Repeats(startDelay) && f.evidence.Now.Sub(e.Last) <= SameFailure {
			return State{
				Liveness: Dead, Trouble: NotStarted, Pod: p.GetName(), Because: "its pod does not start: " + e.Message, Evidence: []evidence.Fact{e.Fact()},
			}
		}
	}
	return s
}

// startFailures are the reasons of events with which a kubelet says that it cannot start
// a pod (kubernetes/pkg/kubelet/events).
var startFailures = map[string]bool{"FailedMount": true, "FailedAttachVolume": true, "FailedMapVolume": true, "FailedCreatePodSandBox": true}

// endingPod is a pod that is being deleted. Until it has ended it may still
// work, but most controllers stop as soon as they are asked to.
func (f *Finder) endingPod(p *unstructured.Unstructured, by time.Time) State {
	name := "Pod/" + p.GetNamespace() + "/" + p.GetName()
	ready, _ := evidence.ConditionOf(p, "Ready")
	s := State{Liveness: Unsure, Trouble: Leaving, Pod: p.GetName(), Because: "its pod " + p.GetName() + " is being deleted"}
	s.ready = ready.Status == "True"
	if s.late = f.evidence.Now.After(by); s.late {
		s.Because = "its pod " + p.GetName() + " should have ended"
	}
	s.Evidence = []evidence.Fact{{Source: name, Path: "metadata.deletionTimestamp", Value: by.UTC().Format(time.RFC3339)}}
	return s
}

// readyState is a pod that says that it is ready. When its node does not report
// that is an old word.
func (f *Finder) readyState(p *unstructured.Unstructured, view podView, ready evidence.Fact) State {
	if view.Spec.NodeName == "" {
		return State{Liveness: Unsure, Because: "its pod says that it is ready, and is on no node", Pod: p.GetName(), Evidence: []evidence.Fact{ready}}
	}
	node, lease := f.evidence.Lease("kube-node-lease", view.Spec.NodeName)
	s := State{Liveness: Alive, Because: "its pod " + p.GetName() + " is ready", Pod: p.GetName(), Evidence: []evidence.Fact{ready}}
	if node == evidence.LeaseFresh || node != evidence.LeaseStale && f.managerLease() == evidence.LeaseFresh {
		return s
	}
	s.Liveness, s.Because = Unsure, "its pod says that it is ready, and whether its node reports is not known"
	if node == evidence.LeaseStale {
		s.Because = "its pod says that it is ready, but its node does not report"
	}
	s.Evidence = append(s.Evidence, lease)
	return s
}

// waitingFor are the reasons for which a container does not start.
var waitingFor = map[string]Trouble{
	"CrashLoopBackOff": Crashing, "RunContainerError": Crashing, "CreateContainerError": NotStarted, "CreateContainerConfigError": NotStarted,
	"ImagePullBackOff": noImage, "ErrImagePull": noImage, "InvalidImageName": noImage, "ErrImageNeverPull": noImage,
}

// State says what a pod's containers tell. Unsure without a reason means that
// nothing is wrong with them.
func (v *podView) state(name string, now time.Time) State {
	at := func(path, value string) []evidence.Fact {
		return []evidence.Fact{{Source: name, Path: path, Value: value}}
	}
	switch {
	case v.Status.Phase == "Failed" || v.Status.Phase == "Succeeded":
		return State{Liveness: Dead, Trouble: ended, Because: "its pod has ended",
			Evidence: at("status.phase", strings.TrimSpace(v.Status.Phase+" "+v.Status.Reason+" "+v.Status.Message))}
	case len(v.Spec.SchedulingGates) > 0:
		return State{Liveness: Dead, Trouble: unscheduled, Because: "its pod is held by scheduling gates", Evidence: at("spec.schedulingGates", "not empty")}
	}
	runs := false
	for _, c := range v.Status.ContainerStatuses {
		runs = runs || c.State.Running != nil && !strings.HasSuffix(c.Name, "proxy")
	}
	for _, c := range slices.Concat(v.Status.InitContainerStatuses, v.Status.ContainerStatuses) {
		if c.State.Waiting != nil && waitingFor[c.State.Waiting.Reason] != noTrouble {
			s := State{Liveness: Dead, Trouble: waitingFor[c.State.Waiting.Reason], Because: "its container " + c.Name + " is in " + c.State.Waiting.Reason,
				Evidence: at("status.containerStatuses["+c.Name+"].state.waiting", c.describe())}
			if s.Trouble == NotStarted && c.State.Waiting.Message != "" {
				s.Because += ": " + c.State.Waiting.Message
			}
			if runs {
				s.Liveness = Unsure
			}
			return s
		}
		if c.RestartCount >= manyCrashes && c.failed() && c.startedAfter(now.Add(-startDelay)) {
			return State{Liveness: Unsure, Because: "its container " + c.Name + " has just been restarted after crashes",
				Evidence: at("status.containerStatuses["+c.Name+"]", c.describe())}
		}
	}
	return State{Liveness: Unsure}
}

// failed reports whether the container ended with an error before.
func (c *containerStatus) failed() bool {
	return c.LastState.Terminated != nil && c.LastState.Terminated.ExitCode != 0
}

func (c *containerStatus) startedAfter(t time.Time) bool {
	if c.State.Running == nil {
		return false
	}
	started, err := time.Parse(time.RFC3339, c.State.Running.StartedAt)
	return err == nil && started.After(t)
}

func (c *containerStatus) describe() string {
	text := ""
	if c.State.Waiting != nil {
		text = strings.TrimSuffix(c.State.Waiting.Reason+": "+c.State.Waiting.Message, ": ") + "; "
	}
	text += fmt.Sprintf("%d restarts", c.RestartCount)
	if t := c.LastState.Terminated; t != nil {
		text += fmt.Sprintf("; ended with code %d (%s) %s", t.ExitCode, cmp.Or(t.Reason, "no reason"), t.Message)
	}
	return strings.TrimSpace(text)
}
