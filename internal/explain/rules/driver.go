// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/workload"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Leader says of a cause's controller what its lease tells. A lease that is not renewed may be left over, since leader
// election can be switched off: its holder is dead only when the pod or the workload that it names does not run.
// Otherwise the state is evidence.LeaseUnread.
func (f *Facts) Leader(c *finding.Controller, lease *unstructured.Unstructured) evidence.LeaseState {
	state, fact := f.LeaseState(lease)
	c.Evidence = append(c.Evidence, fact)
	switch state {
	case evidence.LeaseFresh:
		c.Liveness = controllers.Alive
	case evidence.LeaseStale:
		holder := controllers.PodOfHolder(evidence.Nested(lease, "spec", "holderIdentity"))
		l := f.Finder.WorkloadOfPod(lease.GetNamespace(), holder)
		if l == nil {
			c.Evidence = append(c.Evidence, finding.AtSays(evidence.Named("Pod", lease.GetNamespace(), holder), "", HolderGone))
			return evidence.LeaseUnread
		}
		st := f.Finder.StateOf(l)
		c.Evidence = append(append(c.Evidence, finding.At(l.ID(), "", st.Because)), finding.Facts(st.Evidence...)...)
		if st.Liveness != controllers.Dead {
			return evidence.LeaseUnread
		}
		c.Liveness, c.Ways = controllers.Dead, workload.Revive(f.Reader, l, st)
	}
	return state
}

// Judge judges a driver that should have acted: it is stuck with a failure that lasts, and when nothing of it runs; it is
// at work when it has a lease and nothing failed.
func Judge(r *evidence.Reader, c *finding.Cause, n graph.Node, failure string, lease evidence.LeaseState) {
	asked := evidence.Requested(n.Object())
	age := r.Now.Sub(asked)
	if failure != "" {
		c.Summary = c.Summary.And(Saying, admission.Shortened(failure))
	}
	switch {
	case lease == evidence.LeaseStale:
		c.Verdict, c.Summary = finding.Stuck, c.Summary.And(DriverDown)
	case failure != "" && age > DriverDelay:
		c.Verdict = finding.Stuck
	case failure == "" && lease == evidence.LeaseFresh && age <= DriverDelay:
		c.Verdict, c.Until = finding.Progressing, asked.Add(DriverDelay)
	default:
		c.Verdict, c.Summary = finding.Unknown, c.Summary.Then(unclear(failure, lease))
	}
}

// unclear says why it is not known whether a driver will act.
func unclear(failure string, lease evidence.LeaseState) say.Text {
	switch {
	case failure != "":
		return say.Of(Retries)
	case lease == evidence.LeaseFresh:
		return say.Of(RunsSilent)
	case lease == evidence.LeaseMissing:
		return say.Of(NoLease)
	}
	return say.Of(LeaseOpen)
}

// Lasting returns what an event says that tells of the same failure again and again; empty for none. One that came once
// may be over.
func Lasting(r *evidence.Reader, n graph.Node, reasons ...string) string {
	asked := evidence.Requested(n.Object())
	for _, o := range r.Events(n.Namespace(), n.UID()) {
		e := evidence.NewEvent(&o)
		about := len(reasons) == 0 || slices.Contains(reasons, e.Reason)
		if e.Type == "Warning" && about && !e.Last.Before(asked) && e.Repeats(controllers.SameFailure) &&
			r.Now.Sub(e.Last) <= controllers.SameFailure {
			return e.Message
		}
	}
	return ""
}
