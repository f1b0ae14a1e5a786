// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/collector"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/definition"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/namespace"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// kube-controller-manager: cmd/kube-controller-manager/app, whose leader runs the
// garbage collector and the controllers beside it.

// How long the controllers of kube-controller-manager may take before their
// silence means something (docs/stuck-causes, thresholds).
const (
	managerDelay = 30 * time.Second
	// customDelay holds for kinds that the garbage collector may just have
	// discovered.
	customDelay = 60 * time.Second
	// secondLook is how long an object must stay as it is before a garbage
	// collector without a lease is said not to act.
	secondLook = 5 * time.Second
	// deletionsPerSecond is how fast the garbage collector is by default.
	deletionsPerSecond = 20
)

// health is what is known of kube-controller-manager.
type health struct {
	lease    evidence.LeaseState
	evidence Evidence
	// taken is when the one that holds the lease took it, zero when that is not known.
	taken time.Time
	// idle are objects that a working controller would have handled long ago.
	idle []Evidence
	// acted is something that a controller of it did a moment ago, nil for nothing.
	acted *Evidence
	// looks counts the objects that were looked at twice besides.
	looks int
}

// dead reports whether nothing shows that it lives.
func (h *health) dead() bool {
	return h.acted == nil && (h.lease == evidence.LeaseStale || h.lease == evidence.LeaseMissing)
}

// health finds out whether the garbage collector and the other controllers
// beside it work.
func (w *walker) health() *health {
	if w.gcHealth != nil {
		return w.gcHealth
	}
	h := &health{}
	w.gcHealth = h
	h.lease, h.evidence = w.evidence.Lease("kube-system", "kube-controller-manager")
	if !h.dead() {
		h.taken = w.evidence.LeaseTaken("kube-system", "kube-controller-manager")
		return h
	}
	if h.acted = lastAct(w.evidence, w.Graph); h.acted != nil {
		h.evidence = *h.acted
		return h
	}
	suspects := w.idleObjects()
	if len(suspects) > 0 {
		w.evidence.Settle(secondLook)
	}
	for _, s := range suspects {
		if unchanged(w.evidence, s.node) {
			h.idle = append(h.idle, s.evidence)
		}
	}
	return h
}

// recently is how long ago a controller of kube-controller-manager must have acted for
// that to show that it works.
const recently = time.Minute

// lastAct returns the last thing that a controller of kube-controller-manager is seen to
// have made, if that was a moment ago; nil otherwise. A manager that elects no leader
// shows only by what it does that it runs.
func lastAct(facts *evidence.Reader, g *graph.Graph) *Evidence {
	var last graph.Node
	var at time.Time
	facts.Needs(graph.Part{})
	for n := range g.Nodes() {
		if n.Virtual() {
			continue
		}
		if made := n.CreationTimestamp().Time; made.After(at) && madeByManager(n) {
			last, at = n, made
		}
	}
	if ago := facts.Now.Sub(at); ago <= recently {
		fact := evidence.Field(last, "metadata.creationTimestamp", fmt.Sprintf(madeAgo, duration.HumanDuration(max(ago, 0))))
		return &fact
	}
	return nil
}

// madeOf are the kinds of which controllers make objects of a kind.
var madeOf = map[string][]string{"Pod": {"ReplicaSet", "StatefulSet", "DaemonSet", "Job"}, "ReplicaSet": {"Deployment"}, "Job": {"CronJob"}}

// madeByManager reports whether only a controller of kube-controller-manager creates
// such an object: one that a workload of Kubernetes controls, or the certificate in
// every namespace.
func madeByManager(n graph.Node) bool {
	if n.Resource().Group == "" && n.Resource().Resource == "configmaps" && n.Name() == "kube-root-ca.crt" {
		return true
	}
	kinds := madeOf[n.Resource().Kind]
	return len(kinds) > 0 && graph.BuiltinGroup(n.Resource().Group) && slices.ContainsFunc(n.Object().OwnerReferences, func(ref metav1.OwnerReference) bool {
		group, _, _ := strings.Cut(ref.APIVersion, "/")
		return ref.Controller != nil && *ref.Controller && (group == "apps" || group == "batch") && slices.Contains(kinds, ref.Kind)
	})
}

// unmadePods is what shows that no controller manager works that would create pods, nil when
// one might.
func (w *walker) unmadePods() []Evidence {
	if h := w.health(); h.dead() && len(h.idle) > 0 {
		return append([]Evidence{h.evidence}, h.idle...)
	}
	return nil
}

// unproven is a reason why nothing shows that a controller manager that renews no lease does not act.
type unproven int

const (
	proven unproven = iota // something shows it
	waitedShortly
	workUnaccepted
	contentUnaccepted
	changedInTheMeantime
)

// actsNot reports whether objects show that no controller manager acts, which renews no
// lease: those that its garbage collector ignores, or else this one, for which only
// a controller in it is missing, when it does not change at a second look.
func (w *walker) actsNot(n graph.Node, because string) unproven {
	h := w.health()
	if len(h.idle) > 0 {
		return proven
	}
	// The garbage collector's own work is judged by idleObjects: it retries what
	// was refused ever more rarely. Pod garbage collection looks every 20 seconds.
	periodic := n.Resource().IsPod() && len(n.Finalizers()) == 0
	collectors := slices.ContainsFunc(n.Finalizers(), graph.IsCollectorFinalizer)
	refused := func(f string) bool { return !w.asker.TryRemoval(n, f).OK() }
	switch h.looks++; {
	case h.looks > maxSuspects || periodic || collectors:
		return waitedShortly
	case slices.ContainsFunc(n.Finalizers(), refused):
		return workUnaccepted
	case n.Resource().IsNamespace() && !w.rules.Emptiable(n):
		return contentUnaccepted
	}
	w.evidence.Settle(secondLook)
	if !unchanged(w.evidence, n) {
		return changedInTheMeantime
	}
	h.idle = append(h.idle, evidence.Field(n, "metadata.deletionTimestamp", fmt.Sprintf(notDoneFor, duration.HumanDuration(w.rules.Age(n)), because)))
	return proven
}

type suspect struct {
	node     graph.Node
	evidence Evidence
}

// maxSuspects is the number of idle objects that are looked at twice.
const maxSuspects = 3

// idleObjects finds objects that a working controller manager would have
// handled long ago.
func (w *walker) idleObjects() []suspect {
	var suspects []suspect
	w.evidence.Needs(graph.Part{})
	for n := range w.Graph.Nodes() {
		if len(suspects) == maxSuspects {
			break
		}
		if n.Virtual() || !n.BeingDeleted() || !w.late(n) {
			continue
		}
		if what := w.idle(n); what != "" {
			suspects = append(suspects, suspect{n, evidence.Field(n, "metadata.deletionTimestamp", fmt.Sprintf(notDoneFor, duration.HumanDuration(w.rules.Age(n)), what))})
		}
	}
	return suspects
}

// idle says what a controller would have done about the object, empty when
// nothing shows that one is missing.
func (w *walker) idle(n graph.Node) string {
	o := n.Object()
	switch {
	case w.evidence.NamespaceGone(o.Namespace) && !w.rules.Changeable(n):
	case o.Resource.IsNamespace():
		if full, err := w.evidence.Whole(n); err == nil && len(evidence.Conditions(full)) == 0 && slices.Contains(namespace.Finalizers(full), "kubernetes") && w.rules.Emptiable(n) {
			return noCondition
		}
	case w.rules.Incomplete() != nil:
	case isForeground(o) && w.rules.Pending(n, metav1.FinalizerDeleteDependents):
		blocking := n.BlockingDependents()
		for _, d := range blocking[:min(len(blocking), evidence.MaxShown)] {
			if !d.BeingDeleted() && collectable(w.asker, n, d) {
				return fmt.Sprintf(dependentNotDeleted, d.Identity())
			}
		}
		if len(blocking) == 0 && w.asker.TryRemoval(n, metav1.FinalizerDeleteDependents).OK() {
			return foregroundNotEnded
		}
	case o.HasFinalizer(metav1.FinalizerOrphanDependents) && w.rules.Pending(n, metav1.FinalizerOrphanDependents):
		if w.asker.TryRemoval(n, metav1.FinalizerOrphanDependents).OK() {
			return notOrphaned
		}
	}
	return ""
}

// collectable reports whether the API server accepts what the garbage collector
// does with a blocking dependent. After a refusal it retries ever more
// rarely, and looks idle.
func collectable(asker *admission.Asker, owner, d graph.Node) bool {
	if collector.Keeper(owner, d) != nil {
		return asker.TryRelease(d, owner.UID()).Kind == answer.Accepted
	}
	return asker.TryDelete(d, "").Kind == answer.Accepted
}

// unchanged reports whether the object is still as the graph has it.
func unchanged(facts *evidence.Reader, n graph.Node) bool {
	id := n.Identity()
	o, err := facts.Anew(id.Resource.GroupVersionResource, id.Namespace, id.Name)
	return err == nil && o.GetUID() == id.UID && o.GetResourceVersion() == n.Object().ResourceVersion
}

// waited is for how long the deletion of an object has waited for the controller manager that
// leads: not longer than that does.
func (w *walker) waited(n graph.Node) time.Duration {
	return min(w.rules.Age(n), w.evidence.Now.Sub(w.health().taken))
}

// late reports whether a working controller manager would have acted.
func (w *walker) late(n graph.Node) bool {
	delay := managerDelay
	if !graph.BuiltinGroup(n.Resource().Group) {
		delay = customDelay
	}
	if w.waited(n) <= delay {
		return false
	}
	w.evidence.Needs(graph.Part{}) // what it has to do is anywhere
	return w.waited(n) > delay+time.Duration(w.deletions/deletionsPerSecond)*time.Second
}

// managerLease is where causes stand that kube-controller-manager is.
func managerLease() graph.Identity {
	return evidence.Identity(evidence.Leases, "kube-system", "kube-controller-manager")
}

// manager is a hold that only a controller of kube-controller-manager ends, for
// which nothing else is missing. late says that it should have acted.
func (w *walker) manager(n graph.Node, because string, late bool) hold {
	h := w.health()
	at := managerLease()
	why := waitedShortly
	if h.dead() && late {
		why = w.actsNot(n, because)
	}
	switch {
	case why == proven:
		c := w.shared("", finding.GcAbsent, at, func(c *Cause) {
			c.Verdict, c.Summary = Stuck, managerDead
			c.Evidence = append([]Evidence{h.evidence}, h.idle...)
			c.Remedies = repairManager(w.Kubectl, h)
		})
		w.collectRemedy(c, n)
		return hold{because: because, cause: c}
	case h.dead():
		because, key := whyUnproven[why], fmt.Sprint("unproven ", why)
		if why == changedInTheMeantime {
			because, key = fmt.Sprintf(because, n.Identity()), key+n.Identity().String()
		}
		c := w.shared(key, finding.GcAbsent, at, func(c *Cause) {
			c.Summary = fmt.Sprintf(managerUnproven, because)
			c.Evidence = []Evidence{h.evidence}
			c.Remedies = repairManager(w.Kubectl, h)
		})
		w.collectRemedy(c, n)
		return hold{because: because, cause: c}
	case late && w.blindingType(n) != nil:
		return hold{because: fmt.Sprintf(blindAfterRestart, because), cause: w.blindingType(n)}
	case late:
		c := w.shared("late", finding.GcAbsent, at, func(c *Cause) {
			c.Summary = managerLate
			if h.lease == evidence.LeaseUnread {
				c.Summary = managerLateUnread
			}
			c.Evidence = []Evidence{h.evidence}
		})
		w.collectRemedy(c, n)
		return hold{because: because, cause: c}
	}
	return hold{because: because}
}

// protection is a finalizer that a controller of kube-controller-manager has to remove, for which nothing else is missing.
func (w *walker) protection(n graph.Node, symptom finding.Kind, because string) hold {
	return w.manager(n, because, w.late(n)).as(symptom)
}

// blindingType is the cause for which a type cannot be listed, on a server whose garbage
// collector does not start before it has listed all of them; nil for none.
func (w *walker) blindingType(n graph.Node) *Cause {
	if w.Server.CollectsWithoutAll() || !slices.ContainsFunc(n.Finalizers(), graph.IsCollectorFinalizer) {
		return nil
	}
	for _, u := range w.rules.Unlisted {
		if c := definition.Unlisted(w.rules, u); c != nil {
			return w.caused(c)
		}
	}
	return nil
}

func repairManager(kubectl string, h *health) []Remedy {
	if h.lease == evidence.LeaseMissing {
		return []Remedy{{Risk: Safe, Action: shows("%s -n kube-system get pods -l component=kube-controller-manager -o wide", kubectl), Effect: findManager}}
	}
	return []Remedy{{Risk: Safe, Action: shows("%s -n kube-system get lease kube-controller-manager -o yaml", kubectl), Effect: findHolder}}
}

// collectRemedy adds the plugin's own garbage collection for an object that
// waits for the garbage collector's.
func (w *walker) collectRemedy(c *Cause, n graph.Node) {
	o := n.Object()
	if !isForeground(o) && !o.HasFinalizer(metav1.FinalizerOrphanDependents) {
		return
	}
	where := graph.Identity{Namespace: o.Namespace}
	if slices.ContainsFunc(n.Dependents(), func(d graph.Node) bool { return d.Namespace() != o.Namespace }) {
		where.Namespace = ""
	}
	if len(c.Remedies) <= evidence.MaxShown {
		w.offerOnce(c, Remedy{Risk: Safe, Action: w.does(remedy.Op{Verb: remedy.Collect, Object: where}), Effect: collectThere})
	}
}
