// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

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
	// Absent: nothing in the cluster serves the finalizer.
	Absent = "Absent"
	// Denied: it runs, and may not change the object.
	Denied = "Denied"
	// Unsure: what could be read does not tell.
	Unsure = string(Unknown)
)

// trouble is what keeps a workload from running.
type trouble int

const (
	noTrouble trouble = iota
	scaledDown
	crashing
	unscheduled
	noImage
	noPods
	ended
	hung       // its leader does not renew its lease
	notLeading // its lease is somebody else's
	leaderless // nobody renews its lease
	leaving    // it, or its last pod, is being deleted
	noAccount  // its ServiceAccount does not exist
	newAccount // its ServiceAccount is newer than its pod
)

// state is whether a workload works, and what shows it.
type state struct {
	liveness string
	trouble  trouble
	// because says it in a few words.
	because  string
	evidence []Evidence
	// pod is the pod that shows it, empty for none.
	pod string
	// leads: a pod of it renews a lease. lease is the one for
	// notLeading and leaderless.
	leads bool
	lease graph.Identity
	// ready: a pod that is being deleted has not stopped yet.
	ready bool
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
	Spec   podSpec `json:"spec"`
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

// stateOf finds out whether a workload works, once.
func (w *walker) stateOf(l *workload) state {
	if s, known := w.states[l.id]; known {
		return s
	}
	s := w.look(l)
	w.states[l.id] = s
	return s
}

func (w *walker) look(l *workload) state {
	own, err := w.podsOf(l)
	if err != nil {
		return state{liveness: Unsure, because: "its pods could not be read", evidence: []Evidence{{Source: "pods in namespace " + l.id.Namespace, Value: err.Error()}}}
	}
	if len(own) == 0 {
		s := w.withoutPods(l)
		return w.heldLease(l, own, s.liveness == Dead).led(l, s)
	}
	best := w.bestOf(own)
	best = w.heldLease(l, own, best.liveness == Dead).led(l, best)
	best = w.leavingState(l, best)
	if best.liveness == Dead && l.replicas == 0 && best.trouble != hung {
		best.trouble, best.because = scaledDown, "it is scaled to 0"
	}
	best = w.accountState(l, best, own)
	best.evidence = append([]Evidence{w.replicasOf(l, own)}, best.evidence...)
	return best
}

// leavingState corrects the state of a workload that is being deleted, or whose
// best pod is: until that has ended it may still work, and after it no other
// comes.
func (w *walker) leavingState(l *workload, s state) state {
	deleted := l.whole.GetDeletionTimestamp()
	last := deleted != nil || l.replicas == 0 || w.evidence.Ending(l.id.Namespace)
	if l.selector == nil { // the owner of a pod may make another
		last = metav1.GetControllerOf(l.whole) == nil
	}
	if deleted != nil && l.selector != nil {
		s.evidence = append(s.evidence, Evidence{Source: l.id.String(), Path: "metadata.deletionTimestamp", Value: deleted.UTC().Format(time.RFC3339)})
	}
	switch {
	case s.trouble == leaving && last:
		s.because += ", and no other comes"
		if deleted != nil && l.selector != nil {
			s.because = "it is being deleted: " + s.because
		}
		if !s.ready {
			s.liveness = Dead
		}
	case s.liveness == Alive && deleted != nil:
		s.liveness, s.trouble, s.because = Unsure, leaving, "it is being deleted, while "+s.because
	}
	return s
}

// accountState corrects the state of a workload whose ServiceAccount is provably
// gone, or was made after the pod that works: the API server refuses the token
// of an account that was deleted. The account "default" is made anew by itself.
func (w *walker) accountState(l *workload, s state, own []*unstructured.Unstructured) state {
	at := evidence.Identity(serviceAccounts, l.account.namespace, l.account.name).String()
	switch {
	case s.liveness == Dead || l.elsewhere:
		return s
	case w.accountAfter(l.account, s.pod, own) && !s.leads:
		s.evidence = append(s.evidence, Evidence{Source: at, Path: "metadata.creationTimestamp", Value: "later than that of pod " + s.pod})
		s.liveness, s.trouble, s.because = Unsure, newAccount, "its account "+at+" was deleted and made again after its pod, whose token the API server refuses until the kubelet gets a new one"
		return s
	case l.account.name == "default" || !w.accountMissing(l.account):
		return s
	}
	s.evidence = append(s.evidence, Evidence{Source: at, Value: "does not exist; the API server refuses the tokens of an account that is gone"})
	if s.leads {
		s.liveness, s.trouble, s.because = Unsure, noTrouble, "it has renewed its lease, but its account "+at+" does not exist any more"
		return s
	}
	s.liveness, s.trouble, s.because = Dead, noAccount, "its account "+at+" does not exist, so the API server refuses it"
	return s
}

// tokenLife is how long the token of a pod is valid, after which the kubelet has
// got another for certain.
const tokenLife = time.Hour

// accountAfter reports whether an account was made a short time ago, and after
// the pod that uses it: there was another of its name.
func (w *walker) accountAfter(a account, pod string, own []*unstructured.Unstructured) bool {
	made := func(p *unstructured.Unstructured) time.Time { return p.GetCreationTimestamp().Time }
	i := slices.IndexFunc(own, func(p *unstructured.Unstructured) bool { return p.GetName() == pod })
	if i < 0 || made(own[i]).IsZero() {
		return false
	}
	return slices.ContainsFunc(w.evidence.Instances(serviceAccounts.GroupResource()), func(n graph.Node) bool {
		o := n.Object()
		return o.Namespace == a.namespace && o.Name == a.name && o.CreationTimestamp.After(made(own[i])) && w.evidence.Now.Sub(o.CreationTimestamp.Time) < tokenLife
	})
}

// accountMissing reports whether a ServiceAccount provably does not exist.
func (w *walker) accountMissing(a account) bool {
	if !w.accountUnlisted(a) {
		return false
	}
	_, err := w.evidence.Get(serviceAccounts, a.namespace, a.name)
	return apierrors.IsNotFound(err)
}

// maxPods is the number of pods of one workload that are looked at.
const maxPods = 20

// bestOf returns the state of the pod that is most alive.
func (w *walker) bestOf(own []*unstructured.Unstructured) state {
	isReady := func(p *unstructured.Unstructured) int {
		if ready, _ := evidence.ConditionOf(p, "Ready"); ready.Status == "True" && p.GetDeletionTimestamp() == nil {
			return 0
		}
		return 1
	}
	own = slices.Clone(own)
	slices.SortStableFunc(own, func(a, b *unstructured.Unstructured) int { return isReady(a) - isReady(b) })
	best := w.podState(own[0])
	for _, p := range own[1:min(len(own), maxPods)] {
		if best.liveness == Alive {
			break
		}
		if s := w.podState(p); aliveness[s.liveness] < aliveness[best.liveness] {
			best = s
		}
	}
	if len(own) > maxPods && best.liveness == Dead {
		best.liveness, best.because = Unsure, fmt.Sprintf("%d of its %d pods do not work", maxPods, len(own))
	}
	return best
}

var aliveness = map[string]int{Alive: 0, Unsure: 1, Dead: 2}

func (w *walker) replicasOf(l *workload, own []*unstructured.Unstructured) Evidence {
	has := fmt.Sprintf("it has %d pods", len(own))
	if len(own) == 1 {
		has = "it has one pod"
	}
	if l.replicas < 0 {
		return Evidence{Source: l.id.String(), Value: has}
	}
	return Evidence{Source: l.id.String(), Path: "spec.replicas", Value: fmt.Sprintf("%d, and %s", l.replicas, has)}
}

// withoutPods is a workload that has none. Unless something says why, its pods
// may be just about to be made.
func (w *walker) withoutPods(l *workload) state {
	s := state{liveness: Dead, trouble: noPods, because: "it has no pods", evidence: []Evidence{w.replicasOf(l, nil)}}
	failure, failed := evidence.ConditionOf(l.whole, "ReplicaFailure")
	switch {
	case l.replicas == 0:
		s.trouble, s.because = scaledDown, "it is scaled to 0"
	case failed && failure.Status == "True":
		s.because = "its pods cannot be made"
		s.evidence = append(s.evidence, failure.Fact(l.id.String()))
	case l.whole.GetDeletionTimestamp() != nil:
		s.trouble, s.because = leaving, "it is being deleted, and has no pods any more"
		s.evidence = append(s.evidence, Evidence{Source: l.id.String(), Path: "metadata.deletionTimestamp", Value: l.whole.GetDeletionTimestamp().UTC().Format(time.RFC3339)})
	case w.evidence.Ending(l.id.Namespace):
		s.because = "its namespace is being deleted, in which no pods can be made"
	case w.health().dead() && len(w.health().idle) > 0:
		s.because = "it has no pods, and no controller manager works that would make them"
		s.evidence = append(append(s.evidence, w.health().evidence), w.health().idle...)
	case w.evidence.Now.Sub(l.whole.GetCreationTimestamp().Time) < startDelay:
		s.liveness, s.trouble, s.because = Unsure, noTrouble, "it is new and has no pods yet"
	case l.matchesNoNode():
		s.because = "no node matches it"
	case l.paused:
		s.because = "it is paused and has no pods"
	default:
		s.liveness, s.trouble = Unsure, noTrouble
	}
	return s
}

// matchesNoNode reports whether a DaemonSet's controller has found no node for
// it.
func (l *workload) matchesNoNode() bool {
	wanted, stated, _ := unstructured.NestedInt64(l.whole.Object, "status", "desiredNumberScheduled")
	seen, _, _ := unstructured.NestedInt64(l.whole.Object, "status", "observedGeneration")
	return l.id.Resource.Kind == "DaemonSet" && stated && wanted == 0 && seen == l.whole.GetGeneration()
}

// managerLease is how the lease of kube-controller-manager stands.
func (w *walker) managerLease() evidence.LeaseState {
	state, _ := w.evidence.Lease("kube-system", "kube-controller-manager")
	return state
}

// podState says whether a pod of a controller works.
func (w *walker) podState(p *unstructured.Unstructured) state {
	var view podView
	name := "Pod/" + p.GetNamespace() + "/" + p.GetName()
	if !evidence.Decode(p, &view) {
		return state{liveness: Unsure, because: "its pod has an unknown form", pod: p.GetName()}
	}
	s := view.state(name, w.evidence.Now)
	s.pod = p.GetName()
	if ready, _ := evidence.ConditionOf(p, "Ready"); s.liveness == Unsure && ready.Status == "True" && s.because == "" {
		s = w.readyState(p, view, ready.Fact(name))
	}
	if scheduled, ok := evidence.ConditionOf(p, "PodScheduled"); ok && scheduled.Status == "False" && view.Spec.NodeName == "" {
		s = state{liveness: Dead, trouble: unscheduled, because: "its pod is on no node", pod: p.GetName(), evidence: []Evidence{scheduled.Fact(name)}}
		if w.evidence.Now.Sub(evidence.Latest(scheduled.Since, p.GetCreationTimestamp().Time)) < placeDelay {
			s.liveness, s.because = Unsure, "its pod waits for a node, and has not for long"
		}
	}
	if d := p.GetDeletionTimestamp(); d != nil && s.liveness != Dead {
		s = w.endingPod(p, d.Time)
	}
	if s.because == "" {
		s.because = "its pod is not ready"
		s.evidence = append(s.evidence, Evidence{Source: name, Path: "status.phase", Value: view.Status.Phase})
	}
	return s
}

// endingPod is a pod that is being deleted. Until it has ended it may still
// work, but most controllers stop as soon as they are asked to.
func (w *walker) endingPod(p *unstructured.Unstructured, by time.Time) state {
	name := "Pod/" + p.GetNamespace() + "/" + p.GetName()
	ready, _ := evidence.ConditionOf(p, "Ready")
	s := state{liveness: Unsure, trouble: leaving, pod: p.GetName(), because: "its pod " + p.GetName() + " is being deleted"}
	s.ready = ready.Status == "True"
	if w.evidence.Now.After(by) {
		s.because = "its pod " + p.GetName() + " should have ended"
	}
	s.evidence = []Evidence{{Source: name, Path: "metadata.deletionTimestamp", Value: by.UTC().Format(time.RFC3339)}}
	return s
}

// readyState is a pod that says that it is ready. When its node does not report
// that is an old word.
func (w *walker) readyState(p *unstructured.Unstructured, view podView, ready Evidence) state {
	node, lease := w.evidence.Lease("kube-node-lease", view.Spec.NodeName)
	s := state{liveness: Alive, because: "its pod " + p.GetName() + " is ready", pod: p.GetName(), evidence: []Evidence{ready}}
	if node == evidence.LeaseFresh || node != evidence.LeaseStale && w.managerLease() == evidence.LeaseFresh {
		return s
	}
	s.liveness, s.because = Unsure, "its pod says that it is ready, and whether its node reports is not known"
	if node == evidence.LeaseStale {
		s.because = "its pod says that it is ready, but its node does not report"
	}
	s.evidence = append(s.evidence, lease)
	return s
}

// waitingFor are the reasons for which a container does not start.
var waitingFor = map[string]trouble{
	"CrashLoopBackOff": crashing, "RunContainerError": crashing, "CreateContainerError": crashing, "CreateContainerConfigError": crashing,
	"ImagePullBackOff": noImage, "ErrImagePull": noImage, "InvalidImageName": noImage, "ErrImageNeverPull": noImage,
}

// state says what a pod's containers tell. Unsure without a reason means that
// nothing is wrong with them.
func (v *podView) state(name string, now time.Time) state {
	at := func(path, value string) []Evidence { return []Evidence{{Source: name, Path: path, Value: value}} }
	switch {
	case v.Status.Phase == "Failed" || v.Status.Phase == "Succeeded":
		return state{liveness: Dead, trouble: ended, because: "its pod has ended",
			evidence: at("status.phase", strings.TrimSpace(v.Status.Phase+" "+v.Status.Reason+" "+v.Status.Message))}
	case len(v.Spec.SchedulingGates) > 0:
		return state{liveness: Dead, trouble: unscheduled, because: "its pod is held by scheduling gates", evidence: at("spec.schedulingGates", "not empty")}
	}
	runs := false
	for _, c := range v.Status.ContainerStatuses {
		runs = runs || c.State.Running != nil && !strings.HasSuffix(c.Name, "proxy")
	}
	for _, c := range slices.Concat(v.Status.InitContainerStatuses, v.Status.ContainerStatuses) {
		if c.State.Waiting != nil && waitingFor[c.State.Waiting.Reason] != noTrouble {
			s := state{liveness: Dead, trouble: waitingFor[c.State.Waiting.Reason], because: "its container " + c.Name + " is in " + c.State.Waiting.Reason,
				evidence: at("status.containerStatuses["+c.Name+"].state.waiting", c.describe())}
			if runs {
				s.liveness = Unsure
			}
			return s
		}
		if c.RestartCount >= manyCrashes && c.failed() && c.startedAfter(now.Add(-startDelay)) {
			return state{liveness: Unsure, because: "its container " + c.Name + " has just been restarted after crashes",
				evidence: at("status.containerStatuses["+c.Name+"]", c.describe())}
		}
	}
	return state{liveness: Unsure}
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
