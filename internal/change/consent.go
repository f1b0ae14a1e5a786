// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Question is what is asked before a job is done.
type Question struct {
	// Plan is what is to be done.
	Plan *Plan
	// Name has to be the answer; empty for "y" or "yes".
	Name string
	// System: Name belongs to the system, so that only a person on a terminal can agree.
	System bool
	// Destroyed is the data that Name stands for, empty when that is not why it has to be the answer.
	Destroyed []foresight.Loss
}

// Asker asks somebody.
type Asker interface {
	// Show shows what is to be agreed to, also if nobody is asked. After an error nothing is done.
	Show(p *Plan) error
	// Ask returns the answer as it was given. The error says why there is none; nothing is done then.
	Ask(ctx context.Context, q Question) (answer string, err error)
}

// Question returns what is asked of a plan: for a name where the system loses something, or data is destroyed.
func (p *Plan) Question() Question {
	q := Question{Plan: p}
	if q.Name = p.Guarded(); q.Name != "" {
		q.System = true
	} else if p.Forecast != nil && len(p.Job.Targets) > 0 {
		if q.Destroyed = p.Forecast.Destroyed(); len(q.Destroyed) > 0 {
			q.Name = p.Job.Targets[0].Name
		}
	}
	return q
}

// Agrees reports whether an answer is the name that was asked for, or without one "y" or "yes".
func Agrees(answer, name string) bool {
	answer = strings.TrimSpace(answer)
	if name != "" {
		return answer == name
	}
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")
}

// Consent is what somebody agreed to, as it would be done now. It is made by Plan.Consent alone.
type Consent struct {
	// Plan is the last that was made. Without steps there is nothing to run: all is done, or what remains
	// waits for something that no write of the job would bring about.
	Plan *Plan
	// Gone: no target is left, so that there is nothing to run; Left is what is still there of what was
	// to go with them, and need not go now.
	Gone bool
	Left []graph.Identity
	// approved is nil for nothing, and after a run.
	approved *preview.Approval
}

// Consent finds out whether the job may be done: not if too little could be read, or nobody agrees. Whoever
// is asked takes time, so everything is read again after that, and what goes beyond the consent by then is asked
// about. The error is an IncompleteError, a DigestError, ErrNotConfirmed, that of the Asker, or says what could
// not be read again. Nothing is changed.
func (p *Plan) Consent(ctx context.Context) (*Consent, error) {
	if err := p.Job.tolerable(p.options); err != nil {
		return nil, err
	}
	if len(p.Report.Steps) == 0 {
		return &Consent{Plan: p}, nil
	}
	if err := p.refuseBlind(); err != nil {
		return nil, err
	}
	asked, err := p.agree(ctx)
	if err != nil {
		return nil, err
	}
	approved := p.Approve()
	for ; asked; approved = p.Approve() {
		// Whoever was asked has agreed to what there was then.
		before := p
		if p, err = p.Job.lookAgain(ctx, p.options); err != nil {
			return nil, err
		}
		if p.Job.over(before.Job) {
			return &Consent{Plan: p, Gone: true, Left: before.left(p.Graph)}, nil
		}
		if dropped := p.Job.dropped(before.Job); len(dropped) > 0 {
			p.options.tell(Event{LeftOut: dropped})
		}
		if len(p.Report.Steps) == 0 {
			return &Consent{Plan: p}, nil
		}
		object, beyond := approved.Beyond(p.Plan, nil)
		if !beyond {
			break
		}
		p.options.tell(Event{Changed: &object})
		if asked, err = p.agree(ctx); err != nil {
			return nil, err
		}
	}
	return &Consent{Plan: p, approved: approved}, nil
}

// agree has the plan shown and asks, or finds out why the job must not be
// done. It returns whether somebody was asked, so that time has passed.
func (p *Plan) agree(ctx context.Context) (asked bool, _ error) {
	o := p.options
	if o.Asker != nil {
		if err := o.Asker.Show(p); err != nil {
			return false, err
		}
	}
	q := p.Question()
	return o.Agree(ctx, p.Digest, Ask{Name: q.Name, Plain: !q.System, Put: func(ctx context.Context) (string, error) {
		if o.Asker == nil {
			return "", ErrNotConfirmed
		}
		return o.Asker.Ask(ctx, q)
	}})
}

// Beforehand is how a plan may be agreed to before it is made: Yes agrees to what is plain, Digest to the plan that has it and to no other.
type Beforehand struct {
	Yes    bool
	Digest string
}

// Ask is a question about a plan.
type Ask struct {
	// Name has to be the answer; empty for "y" or "yes".
	Name string
	// Plain: Beforehand.Yes answers it.
	Plain bool
	// Put asks it, and returns the answer as it was given. The error says why there is none.
	Put func(context.Context) (string, error)
}

// Agree finds out whether a plan with the digest may be carried out. It returns whether somebody was asked, so that time has passed. The
// error is a DigestError, ErrNotConfirmed, or that of a question.
func (b Beforehand) Agree(ctx context.Context, digest string, asks ...Ask) (asked bool, _ error) {
	if b.Digest != "" && !answer.Agrees(b.Digest, digest) {
		return false, &DigestError{b.Digest, digest}
	}
	for _, a := range asks {
		if b.Digest != "" || b.Yes && a.Plain {
			continue
		}
		answer, err := a.Put(ctx)
		if err != nil {
			return false, err
		}
		if !Agrees(answer, a.Name) {
			return false, ErrNotConfirmed
		}
		asked = true
	}
	return asked, nil
}

// lookAgain reads everything again that a job rests on, and makes its plan again, of nothing if the job is over.
func (j *Job) lookAgain(ctx context.Context, o *Options) (*Plan, error) {
	now, err := j.Again(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading again what there is: %w", err)
	}
	if now.over(j) {
		return &Plan{Plan: preview.Nothing(now.Graph), Job: now, options: o}, nil
	}
	if err := now.tolerable(o); err != nil {
		o.tell(Event{Unread: now.Graph.Snapshot()})
		return nil, err
	}
	p, err := now.plan(ctx, o)
	if err == nil {
		err = p.refuseBlind()
	}
	return p, err
}

// left returns what is still there of what the plan takes away: without its targets it need not go.
func (p *Plan) left(now *graph.Graph) []graph.Identity {
	var left []graph.Identity
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		if n, ok := now.Node(o.Object.UID); ok && !n.Virtual() && o.Result == gc.Deleted {
			left = append(left, n.Identity())
		}
	}
	return left
}

// tolerable returns an error when something could not be read that the user has not agreed to go without.
func (j *Job) tolerable(o *Options) error {
	if missing := o.Tolerance.Intolerable(j.Graph.Snapshot().Unlisted()); len(missing) > 0 {
		return &IncompleteError{Missing: missing}
	}
	return nil
}

// refuseBlind refuses a safe order when what it rests on could not be read: then none is known.
func (p *Plan) refuseBlind() error {
	if !p.options.Safe || p.Forecast == nil || len(p.Forecast.Unread) == 0 || p.options.Tolerance.All {
		return nil
	}
	return &IncompleteError{NoOrder: p.Forecast.Unread[0].String()}
}

// Tolerance is what may be unreadable when something is to be changed. Its zero value tolerates nothing.
type Tolerance struct {
	// All tolerates everything, also that no safe order is known for it.
	All bool
	// Names are API groups, "core" for that without a name, and types as kubectl
	// writes them, RESOURCE or RESOURCE.GROUP.
	Names []string
}

// Intolerable returns the names of what could not be read and is not tolerated, in
// order: a group that could not even be asked for its types, otherwise the type.
func (t *Tolerance) Intolerable(unlisted []graph.Unlisted) []string {
	var names []string
	for _, u := range unlisted {
		group := cmp.Or(u.Group, "core")
		name := group
		if u.Resource != "" {
			name = u.GroupResource().String()
		}
		if !t.All && !slices.Contains(t.Names, group) && !slices.Contains(t.Names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ErrNotConfirmed says that whoever was asked did not agree, or that there is nobody to ask.
var ErrNotConfirmed = errors.New("not confirmed: nothing was changed")

// errNoConsent is the error of a run that nobody agreed to.
var errNoConsent = errors.New("this run has no consent: a consent is for one run, and there may be nothing to do")

// IncompleteError refuses a job: something that could not be read might change its outcome.
type IncompleteError struct {
	// Missing are the names that a Tolerance would have to have.
	Missing []string
	// NoOrder is what could not be read without which no safe order is known, empty if that is not why.
	NoOrder string
}

// Error implements error.
func (e *IncompleteError) Error() string {
	const refused = "refusing to change anything: what could not be read might change the outcome"
	if e.NoOrder != "" {
		return refused + ": no safe order is known without " + e.NoOrder
	}
	return refused
}

// DigestError refuses a plan: it is not the one that was agreed to.
type DigestError struct{ Agreed, Now string }

// Error implements error.
func (e *DigestError) Error() string {
	return fmt.Sprintf("confirming the preview: it is not that of %s any more", e.Agreed)
}

// UnacceptableError refuses a run before its first write: the API server would not accept the delete of a target for
// whose sake others go first, or it is not known whether it would.
type UnacceptableError struct{ error }

// Unwrap returns why.
func (e UnacceptableError) Unwrap() error { return e.error }
