// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Result is what a run did.
type Result struct {
	// Job is the job as it was looked for last: before the run, or before the last wave.
	Job *Job
	// Report has every write with the answer, and what became of each object.
	Report *gc.Report
}

// Run does the job. A consent is for one run, and not for several goroutines at once. What was written stands in
// the result, which is nil only if nothing was. The error is that of the context, which ends with the timeout, an
// UnacceptableError, or says why the run could not begin or go on. That something remains is none.
func (c *Consent) Run(ctx context.Context) (*Result, error) {
	p, approved := c.Plan, c.approved
	if c.approved = nil; approved == nil {
		return nil, errNoConsent
	}
	o := p.options
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	if err := p.Job.acceptable(ctx, 0); err != nil {
		return nil, UnacceptableError{err}
	}
	r := &running{Options: o, job: p.Job, plan: p, approved: approved, stop: func() {}}
	if o.Keep != nil {
		var err error
		if r.journal, err = o.Keep(ctx, p); err != nil {
			return nil, &JournalError{err}
		}
	}
	o.tell(Event{Begins: true})
	ctx, r.end = context.WithCancel(ctx)
	defer r.end()
	report, err := p.Job.Do(ctx, p.Job.Graph, r.next)
	r.stop()
	if r.unkept != nil {
		err = r.unkept
	}
	o.tell(Event{Ends: true})
	if closed := r.journal.Close(); closed != nil {
		err = errors.Join(err, &JournalError{closed})
	}
	if report == nil {
		return nil, err
	}
	return &Result{Job: r.job, Report: report}, err
}

// running is a job that is being done. Each wave is a deletion of its own: before it everything
// is read again.
type running struct {
	*Options
	job      *Job
	plan     *Plan
	approved *preview.Approval
	journal  *Journal
	// stop ends the watches of the last wave, and end the run.
	stop, end func()
	// unkept is the first write that could not be kept: it was not sent, and ends the run.
	unkept *JournalError
}

// wrote tells a write, unless it was not sent.
func (r *running) wrote(s gc.Step) {
	if err := new(JournalError); errors.As(s.Err, &err) {
		if r.end(); r.unkept == nil {
			r.unkept = err
		}
		if errors.As(s.Err, new(answer.UnsentError)) {
			return
		}
	}
	r.tell(Event{Wrote: &s})
}

// next returns the Collector for a wave. The error is why the wave must not begin.
func (r *running) next(ctx context.Context, wave int) (*gc.Collector, error) {
	if wave > 0 {
		if err := r.lookBefore(ctx, wave); err != nil {
			return nil, fmt.Errorf("not deleted, because %w", err)
		}
	}
	server, stop, err := r.job.server(ctx, r.patience(r.plan.Takes), r.journal)
	if err != nil {
		return nil, err
	}
	r.stop()
	r.stop = stop
	return gc.New(server, r.job.Graph, gc.Options{
		Workers: r.Concurrency, Observer: r.wrote, Guard: r.plan.Guard(), Patient: !r.NoWait && r.Timeout > 0,
	}), nil
}

// patience says how patient the run is. By the plan it takes that long.
func (o *Options) patience(takes time.Duration) cluster.ServerOptions {
	options := cluster.ServerOptions{Settle: cluster.DefaultSettle + takes}
	switch {
	case o.NoWait:
		options.Settle, options.IgnoreGrace = time.Second, true
	case o.Timeout > 0: // what waits until others have had their time is done in it, too
		options.Settle = min(options.Settle, o.Timeout/2)
	}
	return options
}

// lookBefore finds out what there is before a wave, and why it must not begin: because it would go
// beyond what was agreed to, something would have to go before it that nobody knew of, or it would be refused.
func (r *running) lookBefore(ctx context.Context, wave int) error {
	p, err := r.job.lookAgain(ctx, r.Options)
	if err != nil {
		return err
	}
	j := p.Job
	if j.over(r.job) {
		r.job = j
		return nil
	}
	harmless := func(n graph.Node) bool { return !foresight.Foreign(n.Finalizers()) }
	if object, beyond := r.approved.Beyond(p.Plan, harmless); beyond {
		return fmt.Errorf("it would also delete what was created or changed since the preview: %s", object)
	}
	if object, is := tooEarly(p.Forecast, r.job.Waves[wave:]); is {
		return fmt.Errorf("something must be deleted before it now: %s", object)
	}
	j.Waves = r.job.Waves
	r.job, r.plan = j, p
	return j.acceptable(ctx, wave)
}

// tooEarly returns an object that has to go before what serves it, and for which the waves that are left have
// no turn before the last.
func tooEarly(forecast *foresight.Forecast, left []preview.Wave) (graph.Identity, bool) {
	for _, id := range forecast.DeletedFirst() {
		before := slices.ContainsFunc(left[:len(left)-1], func(w preview.Wave) bool {
			return slices.ContainsFunc(w.Objects, func(o graph.Identity) bool { return o.UID == id.UID })
		})
		if !before {
			return id, true
		}
	}
	return graph.Identity{}, false
}

// watchesTake is how long a run waits at most for its watches: what was made
// since the lists is then known before the first write.
const watchesTake = 5 * time.Second

// awaited returns the objects whose end a run waits for, besides those that it
// writes to.
func awaited(j *Job) iter.Seq[types.UID] {
	return func(yield func(types.UID) bool) {
		for n := range j.Concerned(j.Graph) {
			if (len(j.Targets) > 0 || n.BeingDeleted()) && !yield(n.UID()) {
				return
			}
		}
	}
}

// watched returns the resources whose objects the job concerns, and those of their owners. When an owner may have
// to be finished, or a namespace goes, these are all that were listed: an object of any type may come to depend on
// the one, or be in the other, meanwhile. Otherwise what comes to depend on a deleted object, and is of another type, is
// left to the cluster's garbage collector, as it is after the run.
func watched(j *Job) []*graph.Resource {
	var resources []*graph.Resource
	concerned := slices.Collect(j.Concerned(j.Graph))
	needsAll := func(n graph.Node) bool { return meetsMarked(n) || n.Resource().IsNamespace() }
	if len(j.Targets) == 0 || j.Policy != metav1.DeletePropagationBackground || slices.ContainsFunc(concerned, needsAll) {
		for _, resource := range j.Cluster.Reader.Resources() {
			if len(j.Graph.Snapshot().Listed(resource.GroupResource())) > 0 {
				resources = append(resources, resource)
			}
		}
		return resources
	}
	seen := map[*graph.Resource]bool{}
	add := func(resource *graph.Resource) {
		if !seen[resource] {
			seen[resource] = true
			resources = append(resources, resource)
		}
	}
	for _, n := range concerned {
		add(n.Resource())
		for _, ref := range n.Owners() { // of one that keeps it is to be known when it goes
			if !ref.Owner.Virtual() && len(j.Graph.Snapshot().Listed(ref.Owner.Resource().GroupResource())) > 0 {
				add(ref.Owner.Resource())
			}
		}
	}
	return resources
}

// acceptable asks the API server, before a wave is deleted, whether it would accept the deletes of
// the targets that come later: what goes first goes for their sake. The error is why not; a refusal is one whatever its
// code, but for that of a webhook of the wave that nothing answers: it will be gone. Each is asked about by
// UID, since it may have changed; when it has gone, or another has its name, there is nothing to refuse.
func (j *Job) acceptable(ctx context.Context, wave int) error {
	if wave >= len(j.Waves)-1 {
		return nil
	}
	server, err := j.Cluster.DryRunner()
	if err != nil {
		return err
	}
	targets := j.named()
	for _, later := range j.Waves[wave+1:] {
		for _, id := range later.Objects {
			n, known := j.Graph.Node(id.UID)
			if !known || n.Virtual() || n.BeingDeleted() || !targets.Has(id.UID) {
				continue
			}
			err := server.AskDelete(ctx, id, j.Policy)
			var notAsked cluster.NotAskedError
			switch {
			case err == nil, ProveGone(ctx, j.Cluster.Reader, id) == nil, refusedBy(j.Waves[wave].Silent, err):
			case errors.As(err, &notAsked):
				return fmt.Errorf("unclear whether the API server would accept the delete of %s, and others are to be deleted before it: %w", id, err)
			default:
				return fmt.Errorf("deleting %s: the API server would not accept that: %w", id, err)
			}
		}
	}
	return nil
}

// refusedBy reports whether a write is refused because one of the webhooks could not be called,
// and for nothing else.
func refusedBy(webhooks []string, err error) bool {
	refusers := answer.Named(err.Error())
	return len(refusers) > 0 && !slices.ContainsFunc(refusers, func(r answer.Refusal) bool {
		return r.Kind != answer.WebhookFailed || !slices.Contains(webhooks, r.Name)
	})
}
