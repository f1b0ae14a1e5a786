// SPDX-License-Identifier: Apache-2.0

// Package change deletes objects, or collects garbage, with somebody's consent: Make makes the plan
// of a job and finds out what else it means, Plan.Consent asks whether it may be done, and Consent.Run
// does it. It reaches the cluster through a Cluster and people through an Asker; it prints
// nothing, and without a Consent it writes nothing.
package change

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Job is one deletion or one pass of collection, with what was read for it. Making a plan of it sets its
// Waves and Workloads, and the facts of the snapshot.
type Job struct {
	preview.Job
	Cluster Cluster
	// Graph is of what was read.
	Graph *graph.Graph
	// Whole is the graph of the cluster with all labels, nil if it was not read.
	Whole *graph.Graph
	// Workloads are those of the cluster, nil if nobody has begun to read them.
	Workloads *controllers.Workloads
	// Again, which must be set, finds out what there is by now for the same job: it is called after
	// somebody was asked, and before each wave but the first. Targets that it leaves out are not deleted.
	Again func(context.Context) (*Job, error)
}

// Options say how a job is done, and who agrees to it.
type Options struct {
	// Safe: what needs a controller that goes is deleted before that.
	Safe bool
	// Beforehand: plain is what does not belong to the system.
	Beforehand
	// Tolerance is what the job does without.
	Tolerance Tolerance
	// NoWait: nobody waits for the grace periods of pods and for controllers that remove finalizers.
	NoWait bool
	// Timeout is how long the run may take; with 0 it gives up when nothing has changed for a while.
	Timeout time.Duration
	// Concurrency is the number of writes in flight.
	Concurrency int
	// Keep makes the journal that keeps the plan, and then each write before it is sent; nil keeps nothing. It is called
	// once, before the first write. After an error nothing is changed.
	Keep func(context.Context, *Plan) (*Journal, error)
	// Asker is asked where Yes and Digest do not answer; with nil the answer is no.
	Asker Asker
	// Log is told what happens, by one goroutine at a time; nil is for nobody.
	Log func(Event)
}

// Event is something that happens on the way; one field is set.
type Event struct {
	// Unread is what a later look has read, and not enough of it.
	Unread *graph.Snapshot
	// LeftOut are targets that are none any more: they are gone, other objects, or not chosen.
	LeftOut []graph.Identity
	// Changed is the first object with which the job goes beyond what was agreed to. Asker is shown that next.
	Changed *graph.Identity
	// Begins is before the first write of a run, Wrote is one with its answer, Ends is after the last.
	Begins, Ends bool
	Wrote        *gc.Step
}

func (o *Options) tell(e Event) {
	if o.Log != nil {
		o.Log(e)
	}
}

// over reports whether nothing is left of what was to be deleted. A collection is over when its
// plan has no steps.
func (j *Job) over(before *Job) bool { return len(j.Targets) == 0 && len(before.Targets) > 0 }

// dropped returns the targets of before that are none of the job's.
func (j *Job) dropped(before *Job) []graph.Identity {
	left := j.named()
	return slices.DeleteFunc(slices.Clone(before.Targets), func(id graph.Identity) bool { return left.Has(id.UID) })
}

// named returns the targets by UID.
func (j *Job) named() sets.Set[types.UID] {
	named := sets.New[types.UID]()
	for _, id := range j.Targets {
		named.Insert(id.UID)
	}
	return named
}

// OutOfReach returns the outcomes of the objects that should have gone with their owners, or
// lost them, when these are gone: of those that are being deleted by now, the ones whose own
// dependents have to be dealt with first. The same job again would not find them. The report is of a run.
func (j *Job) OutOfReach(report *gc.Report) []gc.Outcome {
	if len(j.Targets) == 0 {
		return nil
	}
	gone, named := map[types.UID]bool{}, j.named()
	for i := range report.Outcomes {
		gone[report.Outcomes[i].Object.UID] = report.Outcomes[i].Result == gc.Deleted
	}
	keeps := func(ref metav1.OwnerReference) bool {
		n, known := j.Graph.Node(ref.UID)
		return !gone[ref.UID] && !(known && n.Virtual())
	}
	return slices.DeleteFunc(report.Remaining(), func(o gc.Outcome) bool {
		refs := o.Object.OwnerReferences
		return named.Has(o.Object.UID) || len(refs) == 0 || slices.ContainsFunc(refs, keeps) ||
			o.Object.BeingDeleted() && !slices.ContainsFunc(o.Object.Finalizers, graph.IsCollectorFinalizer)
	})
}

// Finishes reports whether the deletion of the objects meets an owner that it would
// have to finish: one with a finalizer of the garbage collector. References to it may come from anywhere
// by mistake, so that the whole cluster is to be read.
func Finishes(g *graph.Graph, targets []types.UID) bool {
	for n := range gc.Concerned(g, targets).All() {
		if meetsMarked(n) {
			return true
		}
	}
	return false
}

// meetsMarked reports whether an object or one of its owners is marked.
func meetsMarked(n graph.Node) bool {
	return isMarked(n) || slices.ContainsFunc(n.Owners(), func(r graph.Reference) bool { return isMarked(r.Owner) })
}

// isMarked reports whether an object has a finalizer of the garbage collector, so that its deletion
// is to be finished by one.
func isMarked(n graph.Node) bool {
	return slices.ContainsFunc(n.Finalizers(), graph.IsCollectorFinalizer)
}
