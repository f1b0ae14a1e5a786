// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Result is what became of an object.
type Result string

// The results.
const (
	// Deleted: the object is gone.
	Deleted Result = "Deleted"
	// Orphaned: the object stays without the reference to its deleted owner.
	Orphaned Result = "Orphaned"
	// OwnerReferenceRemoved: the object stays, kept by another owner, without
	// references that kept nothing.
	OwnerReferenceRemoved Result = "OwnerReferenceRemoved"
	// Remaining: the object is being deleted and is still there, or its
	// deletion was refused.
	Remaining Result = "Remaining"
	// Untouched: nothing was done to the object.
	Untouched Result = "Untouched"
	// Unknown: what happens to the object cannot be told.
	Unknown Result = "Unknown"
)

// Outcome is what became of one object, and why.
type Outcome struct {
	Object graph.Object
	Result Result
	Reason string
	// WaitingFor are objects that must go, or change, before this one goes.
	WaitingFor []graph.Identity
	// Finalizers are those, other than the garbage collector's own, that hold a
	// Remaining object.
	Finalizers []string
}

// Report is what a Collector did and what it left.
type Report struct {
	// Steps are the writes in the order of the server's answers.
	Steps []Step
	// Outcomes are those of every object that the deletion concerned, in the
	// order of their identities.
	Outcomes []Outcome
}

// Remaining returns the outcomes of the objects that should be gone and are
// not.
func (r *Report) Remaining() []Outcome {
	var remaining []Outcome
	for _, o := range r.Outcomes {
		if o.Result == Remaining || o.Result == Unknown {
			remaining = append(remaining, o)
		}
	}
	return remaining
}

// report collects what happens. It may be used by several goroutines.
type report struct {
	mu       sync.Mutex
	included map[types.UID]bool
	steps    []Step
	fates    map[types.UID]fate
}

// fate is what is known of an object beside its state.
type fate struct {
	unknown bool
	reason  string
	// keptBy is why references were removed that kept nothing.
	keptBy string
	// left is why an owner is not finished.
	left string
	err  error
}

func newReport() *report {
	return &report{included: map[types.UID]bool{}, fates: map[types.UID]fate{}}
}

// expect includes the nodes of a deletion, and makes room for its steps: mostly
// one each.
func (r *report) expect(nodes graph.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.included = make(map[types.UID]bool, nodes.Len())
	for n := range nodes.All() {
		r.included[n.UID()] = true
	}
	r.steps = slices.Grow(r.steps, nodes.Len())
}

func (r *report) include(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.included[uid] = true
}

func (r *report) includes(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.included[uid]
}

// note changes an object's fate.
func (r *report) note(uid types.UID, change func(*fate)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.fates[uid]
	change(&f)
	r.fates[uid] = f
}

func (r *report) step(s Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
	f, known := r.fates[s.Object.UID]
	f.err = s.Err
	if s.Err == nil && s.Action == ActionRemoveOwnerReferences {
		f.keptBy = s.Reason
	}
	if known || f != (fate{}) { // of most objects there is nothing to be noted
		r.fates[s.Object.UID] = f
	}
}

func (r *report) failed(uid types.UID, err error) { r.note(uid, func(f *fate) { f.err = err }) }

// left records why an owner whose deletion was begun is not finished.
func (r *report) left(uid types.UID, reason string) { r.note(uid, func(f *fate) { f.left = reason }) }

// kept records why an object was left alone, for certain or for want of
// knowledge.
func (r *report) kept(uid types.UID, reason string, unknown bool) {
	r.note(uid, func(f *fate) { f.reason, f.unknown = reason, unknown })
}

// conclude returns what is to be said.
func (c *Collector) conclude() *Report {
	uids := c.included()
	result := &Report{Steps: c.report.steps, Outcomes: make([]Outcome, 0, len(uids))}
	for _, uid := range uids {
		v, ok := c.state.view(uid)
		if !ok {
			continue // a missing owner
		}
		result.Outcomes = append(result.Outcomes, c.outcome(v, c.report.fates[uid]))
	}
	explainNamespaces(result.Outcomes)
	compare := func(a, b Outcome) int { return a.Object.Identity().Compare(b.Object.Identity()) }
	if !slices.IsSortedFunc(result.Outcomes, compare) {
		slices.SortFunc(result.Outcomes, compare)
	}
	return result
}

// included returns what the report is about, in the order that the graph knows:
// of all but objects that are newer.
func (c *Collector) included() []types.UID {
	var uids []types.UID
	nodes := make([]graph.Node, 0, len(c.report.included))
	for uid := range c.report.included {
		if n, ok := c.state.graph.Node(uid); ok {
			nodes = append(nodes, n)
		} else {
			uids = append(uids, uid)
		}
	}
	slices.SortFunc(nodes, graph.Node.Compare)
	uids = slices.Grow(uids, len(nodes))
	for _, n := range nodes {
		uids = append(uids, n.UID())
	}
	return uids
}

func (c *Collector) outcome(v view, f fate) Outcome {
	o := Outcome{Object: v.object, Reason: f.reason}
	lost, orphaned := c.state.lostReferences(v.object.UID)
	switch {
	case v.gone:
		o.Result, o.Reason = Deleted, ""
	case Unanswered(f.err) && !v.object.BeingDeleted():
		o.Result, o.Reason = Remaining, fmt.Sprintf("no answer, and no effect seen: %v", f.err)
	case f.err != nil && !Unanswered(f.err):
		o.Result, o.Reason = Remaining, fmt.Sprintf("refused: %v", f.err)
	case v.object.BeingDeleted():
		o.Result = Remaining
		c.explain(&o, v, f)
	case v.lost:
		o.Result, o.Reason = Unknown, "its type is not served any more, so whether it still exists is not known"
	case v.deleteSent:
		o.Result, o.Reason = Remaining, "its deletion was accepted, and its end not seen"
	case f.unknown:
		o.Result = Unknown
	case c.abandoned(v):
		o.Result, o.Reason = Remaining, "nothing keeps it, but it was not reached"
	case orphaned:
		o.Result, o.Reason = Orphaned, ""
	case lost:
		o.Result, o.Reason = OwnerReferenceRemoved, cmp.Or(f.keptBy, f.reason)
	default:
		o.Result = Untouched
		if o.Reason == "" {
			o.Reason = c.untouched(v)
		}
	}
	return o
}

// abandoned reports whether all owners of an object that was not decided about
// are gone or wait for their dependents' deletion: the run ended before.
func (c *Collector) abandoned(v view) bool {
	for _, ref := range v.object.OwnerReferences {
		if owner, ok := c.state.view(ref.UID); !ok || !owner.gone && !owner.object.DeletingDependents() {
			return false
		}
	}
	return len(v.object.OwnerReferences) > 0
}

// explain says what a terminating object waits for.
func (c *Collector) explain(o *Outcome, v view, f fate) {
	var reasons []string
	for _, finalizer := range v.object.Finalizers {
		if finalizer != metav1.FinalizerDeleteDependents && finalizer != metav1.FinalizerOrphanDependents {
			o.Finalizers = append(o.Finalizers, finalizer)
		}
	}
	if len(o.Finalizers) > 0 {
		reasons = append(reasons, "finalizer "+strings.Join(o.Finalizers, ", "))
	}
	if grace := v.object.DeletionGracePeriodSeconds; grace != nil && *grace > 0 {
		reasons = append(reasons, "its kubelet must end it")
	}
	if f.left != "" {
		reasons = append(reasons, f.left)
	}
	if orphaning(&v.object) && f.left == "" {
		reasons = append(reasons, c.notOrphaned(v.object.UID))
	}
	if v.object.DeletingDependents() && v.blocking == 0 && f.left == "" {
		reasons = append(reasons, "its finalizer foregroundDeletion was not taken off")
	}
	if v.object.HasFinalizer(metav1.FinalizerDeleteDependents) && v.blocking > 0 {
		for _, uid := range c.state.blockingDependents(v.object.UID) {
			if d, ok := c.state.view(uid); ok {
				o.WaitingFor = append(o.WaitingFor, d.object.Identity())
			}
		}
		reasons = append(reasons, blockedBy(v.blocking)) // last: WaitingFor is named after it
	}
	o.Reason = strings.Join(reasons, "; ")
	if o.Reason == "" && !v.object.Resource.IsNamespace() {
		o.Reason = "nothing visible holds it"
	}
}

// notOrphaned says what keeps an owner from having orphaned its dependents: that
// some are not to be touched, if anything.
func (c *Collector) notOrphaned(owner types.UID) string {
	for _, uid := range c.state.dependents(owner) {
		if d, ok := c.state.view(uid); ok && !c.within(d.object.Namespace) {
			return fmt.Sprintf("its dependents outside namespace %s are not orphaned", c.namespace)
		}
	}
	return "its dependents are not orphaned yet"
}

// explainNamespaces says of namespaces that remain what is left in them. The
// namespace controller keeps them until that is gone (namespace_controller.go).
func explainNamespaces(outcomes []Outcome) {
	left := map[string][]graph.Identity{}
	for i := range outcomes {
		if o := &outcomes[i]; o.Result == Remaining && o.Object.Namespace != "" {
			left[o.Object.Namespace] = append(left[o.Object.Namespace], o.Object.Identity())
		}
	}
	for i := range outcomes {
		o := &outcomes[i]
		if o.Result != Remaining || !o.Object.Resource.IsNamespace() || !o.Object.BeingDeleted() || o.Reason != "" {
			continue
		}
		o.Reason = "the namespace controller has not ended it"
		if o.WaitingFor = left[o.Object.Name]; len(o.WaitingFor) > 0 {
			slices.SortFunc(o.WaitingFor, graph.Identity.Compare)
			o.Reason = "what is in it must go first" // WaitingFor is named after it
		}
	}
}

func blockedBy(n int) string {
	if n == 1 {
		return "a blocking dependent must go first"
	}
	return fmt.Sprintf("%d blocking dependents must go first", n)
}

// untouched says why an object that depends on a target was never looked at:
// an owner of it is still there.
func (c *Collector) untouched(v view) string {
	for _, ref := range v.object.OwnerReferences {
		if owner, ok := c.state.view(ref.UID); ok && !owner.gone {
			return fmt.Sprintf("its owner %s/%s is still there", ref.Kind, ref.Name)
		}
	}
	return ""
}
