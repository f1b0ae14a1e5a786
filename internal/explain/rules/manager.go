// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// kube-controller-manager: cmd/kube-controller-manager/app, whose leader runs the garbage collector and the controllers
// beside it.

// How long the controllers of kube-controller-manager may take before their silence means something.
const (
	managerDelay = 30 * time.Second
	// customDelay holds for kinds that the garbage collector may just have discovered.
	customDelay = 60 * time.Second
	// secondLook is how long an object must stay as it is before a garbage collector without a lease is said not to act.
	secondLook = 5 * time.Second
	// deletionsPerSecond is how fast the garbage collector is by default.
	deletionsPerSecond = 20
	// recently is how long ago a controller must have acted for that to show that it works.
	recently = time.Minute
	// maxSuspects is the number of idle objects that are looked at twice.
	maxSuspects = 3
)

// Manager is what is known of kube-controller-manager.
type Manager struct {
	Lease evidence.LeaseState
	// Shows is its lease, or else what one of its controllers did a moment ago.
	Shows finding.Fact
	// Taken is when the one that holds the lease took it, zero when that is not known.
	Taken time.Time
	// Dead: nothing shows that it lives. Idle are objects that a working one would have handled long ago then.
	Dead bool
	Idle []finding.Fact
	// deletions counts those that the garbage collector has still to make, looks the objects that were looked at twice besides.
	deletions, looks int
}

// Manager finds out whether the garbage collector and the other controllers beside it work.
func (f *Facts) Manager() *Manager {
	if f.manager != nil {
		return f.manager
	}
	m := &Manager{}
	f.manager = m
	for _, o := range f.Outcomes {
		if o.Result == gc.Deleted {
			m.deletions++
		}
	}
	m.Lease, m.Shows = f.Lease("kube-system", "kube-controller-manager")
	if m.Dead = m.Lease == evidence.LeaseStale || m.Lease == evidence.LeaseMissing; !m.Dead {
		m.Taken = f.LeaseTaken("kube-system", "kube-controller-manager")
		return m
	}
	if acted := lastAct(f); acted != nil {
		m.Dead, m.Shows = false, *acted
		return m
	}
	suspects := idleObjects(f)
	if len(suspects) > 0 {
		f.Settle(secondLook)
	}
	for _, s := range suspects {
		if unchanged(f.Reader, s.Node) {
			m.Idle = append(m.Idle, notDone(f, s.Node, s.what))
		}
	}
	return m
}

// lastAct returns the last thing that a controller of kube-controller-manager is seen to have made, if that was a moment
// ago; nil otherwise. A manager that elects no leader shows only by what it does that it runs.
func lastAct(f *Facts) *finding.Fact {
	var last graph.Node
	var at time.Time
	f.Needs(graph.Part{})
	for n := range f.Graph.Nodes() {
		if n.Virtual() {
			continue
		}
		if made := n.CreationTimestamp().Time; made.After(at) && madeByManager(n) {
			last, at = n, made
		}
	}
	ago := f.Now.Sub(at)
	if ago > recently {
		return nil
	}
	fact := finding.FieldSays(last, "metadata.creationTimestamp", MadeAgo, duration.HumanDuration(max(ago, 0)))
	return &fact
}

// madeOf are the kinds of which controllers make objects of a kind.
var madeOf = map[string][]string{"Pod": {"ReplicaSet", "StatefulSet", "DaemonSet", "Job"}, "ReplicaSet": {"Deployment"}, "Job": {"CronJob"}}

// madeByManager reports whether only a controller of kube-controller-manager creates such an object: one that a workload of
// Kubernetes controls, or the certificate in every namespace.
func madeByManager(n graph.Node) bool {
	if n.Resource().Group == "" && n.Resource().Resource == "configmaps" && n.Name() == "kube-root-ca.crt" {
		return true
	}
	kinds := madeOf[n.Resource().Kind]
	return len(kinds) > 0 && graph.BuiltinGroup(n.Resource().Group) &&
		slices.ContainsFunc(n.Object().OwnerReferences, func(ref metav1.OwnerReference) bool {
			group, _, _ := strings.Cut(ref.APIVersion, "/")
			return ref.Controller != nil && *ref.Controller && (group == "apps" || group == "batch") && slices.Contains(kinds, ref.Kind)
		})
}

// suspect is an object that a working controller manager would have handled long ago, with what that would have done.
type suspect struct {
	graph.Node
	what say.Text
}

// idleObjects finds suspects.
func idleObjects(f *Facts) []suspect {
	var suspects []suspect
	f.Needs(graph.Part{})
	for n := range f.Graph.Nodes() {
		if len(suspects) == maxSuspects {
			break
		}
		if n.Virtual() || !n.BeingDeleted() || !f.Late(n) {
			continue
		}
		if what := idle(f, n); !what.IsZero() {
			suspects = append(suspects, suspect{n, what})
		}
	}
	return suspects
}

// notDone shows what has not been done about an object since its deletion was asked for.
func notDone(f *Facts, n graph.Node, what say.Text) finding.Fact {
	return finding.FieldSays(n, "metadata.deletionTimestamp", NotDoneFor, duration.HumanDuration(f.Age(n)), what)
}

// idle says what a controller would have done about the object, nil when nothing shows that one is missing.
func idle(f *Facts, n graph.Node) say.Text {
	o := n.Object()
	switch {
	case f.NamespaceGone(o.Namespace) && !f.Changeable(n):
	case o.Resource.IsNamespace():
		if full, err := f.Whole(n); err == nil && len(evidence.Conditions(full)) == 0 && slices.Contains(SpecFinalizers(full), "kubernetes") &&
			f.Emptiable(n) {
			return say.Of(NoCondition)
		}
	case !f.Incomplete().IsZero():
	case o.HasFinalizer(metav1.FinalizerDeleteDependents) && f.Pending(n, metav1.FinalizerDeleteDependents):
		blocking := n.BlockingDependents()
		for _, d := range blocking[:min(len(blocking), evidence.MaxShown)] {
			if !d.BeingDeleted() && collectable(f, n, d) {
				return say.Of(DependentNotDeleted, d.Identity())
			}
		}
		if len(blocking) == 0 && f.Admission.TryRemoval(n, metav1.FinalizerDeleteDependents).OK() {
			return say.Of(ForegroundNotEnded)
		}
	case o.HasFinalizer(metav1.FinalizerOrphanDependents) && f.Pending(n, metav1.FinalizerOrphanDependents):
		if f.Admission.TryRemoval(n, metav1.FinalizerOrphanDependents).OK() {
			return say.Of(NotOrphaned)
		}
	}
	return say.Text{}
}

// collectable reports whether the API server accepts what the garbage collector does with a blocking dependent. After a
// refusal it retries ever more rarely, and looks idle.
func collectable(f *Facts, owner, d graph.Node) bool {
	if Keeper(owner, d) != nil {
		return f.Admission.TryRelease(d, owner.UID()).Kind == answer.Accepted
	}
	return f.Admission.TryDelete(d, "").Kind == answer.Accepted
}

// Keeper returns the reference of a dependent to another owner, which exists: the garbage collector keeps the dependent
// because of that. It is nil without one.
func Keeper(owner, d graph.Node) *graph.Reference {
	for _, ref := range d.Owners() {
		if ref.UID != owner.UID() && ref.State == graph.Solid {
			return &ref
		}
	}
	return nil
}

// SpecFinalizers returns the finalizers in the spec of a namespace.
func SpecFinalizers(o *unstructured.Unstructured) []string {
	names, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "finalizers")
	return names
}

// unchanged reports whether the object is still as the graph has it.
func unchanged(r *evidence.Reader, n graph.Node) bool {
	id := n.Identity()
	o, err := r.Anew(id.Resource.GroupVersionResource, id.Namespace, id.Name)
	return err == nil && o.GetUID() == id.UID && o.GetResourceVersion() == n.Object().ResourceVersion
}

// Waited is for how long the deletion of an object has waited for the controller manager that leads: not longer than that
// does.
func (f *Facts) Waited(n graph.Node) time.Duration {
	return min(f.Age(n), f.Now.Sub(f.Manager().Taken))
}

// Late reports whether a working controller manager would have acted.
func (f *Facts) Late(n graph.Node) bool {
	delay := managerDelay
	if !graph.BuiltinGroup(n.Resource().Group) {
		delay = customDelay
	}
	if f.Waited(n) <= delay {
		return false
	}
	f.Needs(graph.Part{}) // what it has to do is anywhere
	return f.Waited(n) > delay+time.Duration(f.Manager().deletions/deletionsPerSecond)*time.Second
}
