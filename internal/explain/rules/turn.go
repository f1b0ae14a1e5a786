// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Objects at which it is the turn of kube-controller-manager: nothing else is missing.

// Protected is an object whose finalizer a controller of kube-controller-manager has to remove, for which nothing else is
// missing.
func (f *Facts) Protected(n graph.Node, symptom finding.Kind, because say.Text) []finding.Blocker {
	return []finding.Blocker{f.Turn(n, symptom, because, f.Late(n))}
}

// Turn is an object at which a controller of kube-controller-manager has to act, overdue if it should have by now. It has no
// cause as long as nothing is wrong with that.
func (f *Facts) Turn(n graph.Node, symptom finding.Kind, because say.Text, overdue bool) finding.Blocker {
	m, b := f.Manager(), finding.Blocker{Symptom: symptom, Because: because}
	switch {
	case m.Dead:
		why := f.unproven(n, because, overdue)
		b.Cause = m.Cause(fmt.Sprint(why), say.Of(ManagerDead))
		if m.Lease == evidence.LeaseMissing { // the age of another would be news at each look
			b.Cause.Decides = say.Of(LeaseIs, m.Shows.Value)
		}
		if b.Cause.Ways = m.repair(); !why.IsZero() {
			b.Because, b.Cause.Summary = why, say.Of(ManagerUnproven, why)
		} else {
			b.Cause.Verdict, b.Cause.Evidence = finding.Stuck, append(b.Cause.Evidence, m.Idle...)
		}
	case !overdue:
		return b
	case m.Lease == evidence.LeaseUnread:
		b.Cause = m.Cause("late", say.Of(ManagerLateUnread))
	default:
		b.Cause = m.Cause("late", say.Of(ManagerLate))
	}
	b.Cause.OwnWays = collecting(n)
	return b
}

// Cause is kube-controller-manager as a cause, which stands at its lease.
func (m *Manager) Cause(key string, summary say.Text) *finding.Cause {
	return &finding.Cause{
		Kind: finding.GcAbsent, At: evidence.Identity(evidence.Leases, "kube-system", "kube-controller-manager"), Key: key, Shared: true,
		Verdict: finding.Unknown, Summary: summary, Evidence: []finding.Fact{m.Shows},
	}
}

// repair are the ways to have it run again.
func (m *Manager) repair() []finding.Way {
	in := graph.Identity{Namespace: "kube-system"}
	if m.Lease == evidence.LeaseMissing {
		return []finding.Way{finding.See(remedy.Look{Of: in, Words: "get pods -l", Args: []string{"component=kube-controller-manager"},
			Flags: " -o wide"}, FindManager)}
	}
	return []finding.Way{finding.See(remedy.Look{Of: in, Words: "get lease", Args: []string{"kube-controller-manager"}, Flags: " -o yaml"},
		FindHolder)}
}

// collecting is the plugin's own garbage collection, for an object that waits for the garbage collector's.
func collecting(n graph.Node) []finding.Way {
	if !slices.ContainsFunc(n.Finalizers(), graph.IsCollectorFinalizer) {
		return nil
	}
	where := graph.Identity{Namespace: n.Namespace()}
	if slices.ContainsFunc(n.Dependents(), func(d graph.Node) bool { return d.Namespace() != where.Namespace }) {
		where.Namespace = ""
	}
	return []finding.Way{finding.Does(remedy.Op{Verb: remedy.Collect, Object: where}, CollectThere)}
}

// unproven says why nothing shows that a controller manager does not act that renews no lease, and is nil when objects do:
// those that its garbage collector ignores, or else this one, for which only a controller in it is missing, when it does not
// change at a second look.
func (f *Facts) unproven(n graph.Node, because say.Text, overdue bool) say.Text {
	m := f.Manager()
	if !overdue {
		return say.Of(WaitedShortly)
	}
	if len(m.Idle) > 0 {
		return say.Text{}
	}
	// The garbage collector's own work is judged by idleObjects: it retries what was refused ever more rarely. Pod garbage
	// collection looks every 20 seconds.
	periodic := n.Resource().IsPod() && len(n.Finalizers()) == 0
	collectors := slices.ContainsFunc(n.Finalizers(), graph.IsCollectorFinalizer)
	refused := func(finalizer string) bool { return !f.Admission.TryRemoval(n, finalizer).OK() }
	switch m.looks++; {
	case m.looks > maxSuspects || periodic || collectors:
		return say.Of(WaitedShortly)
	case slices.ContainsFunc(n.Finalizers(), refused):
		return say.Of(WorkUnaccepted)
	case n.Resource().IsNamespace() && !f.Emptiable(n):
		return say.Of(ContentUnaccepted)
	}
	f.Settle(secondLook)
	if !unchanged(f.Reader, n) {
		return say.Of(ChangedMeanwhile, n.Identity())
	}
	m.Idle = append(m.Idle, notDone(f, n, because))
	return say.Text{}
}

// UnmadePods is what shows that no controller manager works that would create pods, nil when one might.
func (f *Facts) UnmadePods() []finding.Fact {
	m := f.Manager()
	if len(m.Idle) == 0 {
		return nil
	}
	return append([]finding.Fact{m.Shows}, m.Idle...)
}
