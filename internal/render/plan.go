// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// DeletionPlan is the document of a preview.
type DeletionPlan struct {
	head              `json:",inline"`
	Complete          bool                       `json:"complete"`
	Unlisted          []Unlisted                 `json:"unlisted"`
	PropagationPolicy metav1.DeletionPropagation `json:"propagationPolicy,omitempty"`
	Targets           []ObjectReference          `json:"targets"`
	Steps             []PlanStep                 `json:"steps"`
	Outcome           []Outcome                  `json:"outcome"`
	// WouldBreak is what stops working outside the plan, Lost what is lost with it or
	// stays of it, Returns what comes back.
	WouldBreak []Broken    `json:"wouldBreak,omitempty"`
	Lost       []Lost      `json:"lost,omitempty"`
	Returns    []Returning `json:"returns,omitempty"`
	// Waves are in which order the targets, and what has to go before them, are deleted.
	Waves []Wave `json:"waves,omitempty"`
	// Unread is what could not be read to find that out.
	Unread []string `json:"unread,omitempty"`
	// Afterwards is what the server said to the deletions that follow, nil when it was not
	// asked.
	Afterwards *Afterwards `json:"afterwards,omitempty"`
	// Digest is the same as long as the same writes would be made to the same
	// versions of the same objects, and the same objects would go with them.
	Digest string `json:"digest"`

	plan *preview.Plan
}

// PlanStep is one write of a plan.
type PlanStep struct {
	Step              int                         `json:"step"`
	Action            gc.Action                   `json:"action"`
	Object            ObjectReference             `json:"object"`
	Reason            string                      `json:"reason"`
	PropagationPolicy *metav1.DeletionPropagation `json:"propagationPolicy,omitempty"`
	// GracePeriodSeconds is what --grace-period, --now or --force says, if anything.
	GracePeriodSeconds *int64        `json:"gracePeriodSeconds,omitempty"`
	Preconditions      Preconditions `json:"preconditions"`
	Patch              *PatchSummary `json:"patch,omitempty"`
	Server             *ServerAnswer `json:"server,omitempty"`
}

// Preconditions are what must still hold of the object. ResourceVersion is
// missing when an earlier step of the plan changes it.
type Preconditions struct {
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

// PatchSummary is what a patch changes.
type PatchSummary struct {
	RemoveOwnerReferences  []types.UID `json:"removeOwnerReferences,omitempty"`
	UnblockOwnerReferences bool        `json:"unblockOwnerReferences,omitempty"`
	RemoveFinalizer        string      `json:"removeFinalizer,omitempty"`
}

// ServerAnswer is what the API server said to a step that was sent with
// dryRun=All. It is not Accepted when no answer came, either, nor when it was not
// sent.
type ServerAnswer struct {
	Accepted   bool   `json:"accepted"`
	Unanswered bool   `json:"unanswered,omitempty"`
	NotAsked   bool   `json:"notAsked,omitempty"`
	Message    string `json:"message,omitempty"`
}

// Afterwards is what the API server said to dry runs of DELETEs that are no steps of the
// plan: the namespace controller carries them out when its steps are done. It may be answered
// otherwise.
type Afterwards struct {
	// Deletions is how many there are, Asked about how many the server said anything, for or
	// against.
	Deletions int               `json:"deletions"`
	Asked     int               `json:"asked"`
	Refused   []RefusedDeletion `json:"refused"`
}

// RefusedDeletion is an object of which the API server refuses the deletion.
type RefusedDeletion struct {
	Object  ObjectReference `json:"object"`
	Message string          `json:"message"`
}

// Outcome is what becomes of one object.
type Outcome struct {
	Object     ObjectReference   `json:"object"`
	Result     gc.Result         `json:"result"`
	Reason     string            `json:"reason"`
	WaitingFor []ObjectReference `json:"waitingFor,omitempty"`
	Finalizers []string          `json:"finalizers,omitempty"`
	// Expected: a controller that works has to do its part for it.
	Expected bool `json:"expected,omitempty"`
	// Appeared: it is none of the objects that the preview was about.
	Appeared bool `json:"appeared,omitempty"`
}

// DeletionReport is the document of a run.
type DeletionReport struct {
	head      `json:",inline"`
	Complete  bool        `json:"complete"`
	Unlisted  []Unlisted  `json:"unlisted"`
	Outcome   []Outcome   `json:"outcome"`
	Events    []Event     `json:"events"`
	Remaining []Remaining `json:"remaining"`
}

// Event is one write of a run with the server's answer.
type Event struct {
	Time    metav1.Time     `json:"time"`
	Action  gc.Action       `json:"action"`
	Object  ObjectReference `json:"object"`
	Result  string          `json:"result"`
	Message string          `json:"message,omitempty"`
}

// Moment is the event for a ticket.
func (e *Event) Moment() Moment {
	return Moment{e.Time.Time, e.Object.identity(), strings.TrimSuffix(string(e.Action)+": "+e.Result+": "+e.Message, ": ")}
}

// Remaining is an object that should be gone and is not.
type Remaining struct {
	Object     ObjectReference   `json:"object"`
	WaitingFor []ObjectReference `json:"waitingFor"`
	Causes     []string          `json:"causes"`
}

// NewDeletionPlan describes a plan but for the outcome, which WithOutcome adds: text has it from the plan itself.
func NewDeletionPlan(p *preview.Plan) *DeletionPlan {
	s := p.Graph.Snapshot()
	plan := &DeletionPlan{
		head:     headOf("DeletionPlan"),
		Complete: s.Complete(), Unlisted: NewUnlisted(s),
		PropagationPolicy: p.Job.Policy, Targets: references(p.Job.Targets),
		Steps: make([]PlanStep, 0, len(p.Report.Steps)), Digest: p.Digest, plan: p,
	}
	if plan.Targets == nil {
		plan.Targets = []ObjectReference{}
	}
	deleted := map[types.UID]int{} // by which step
	for _, id := range p.Job.Targets {
		deleted[id.UID] = 0 // whatever becomes of its owners
	}
	for i := range p.Report.Steps {
		step := newPlanStep(p, i)
		if _, target := deleted[step.Object.UID]; step.Action == gc.ActionDelete && !target {
			step.Reason = cmp.Or(ownedBy(&p.Report.Steps[i], deleted), step.Reason)
		}
		if policy := step.PropagationPolicy; step.Action == gc.ActionDelete && (policy == nil || *policy != metav1.DeletePropagationForeground) {
			deleted[step.Object.UID] = step.Step
		}
		plan.Steps = append(plan.Steps, step)
	}
	return plan
}

// ownedBy names the owner of an object that a step before deletes, empty when there is none: the object is deleted because of that.
func ownedBy(step *gc.Step, deleted map[types.UID]int) string {
	for _, ref := range step.Object.OwnerReferences {
		if number := deleted[ref.UID]; number > 0 {
			return fmt.Sprintf("owned by %s/%s (deleted in step %d)", strings.ToLower(ref.Kind), ref.Name, number)
		}
	}
	return ""
}

// WithOutcome completes the document.
func (p *DeletionPlan) WithOutcome() *DeletionPlan {
	p.Outcome = outcomes(p.plan.Report)
	for i := range p.Outcome {
		p.Outcome[i].Expected = p.plan.Expected[p.plan.Report.Outcomes[i].Object.UID]
	}
	return p
}

func newPlanStep(p *preview.Plan, i int) PlanStep {
	step := &p.Report.Steps[i]
	s := PlanStep{
		Step: i + 1, Action: step.Action, Object: NewObjectReference(step.Object.Identity()), Reason: step.Reason,
		PropagationPolicy: step.Options.PropagationPolicy, GracePeriodSeconds: step.Options.GracePeriodSeconds,
		Preconditions: Preconditions{UID: step.Object.UID, ResourceVersion: p.Version(step)},
	}
	if step.Action != gc.ActionDelete {
		s.Patch = &PatchSummary{
			RemoveOwnerReferences: step.Patch.RemoveOwners, UnblockOwnerReferences: step.Patch.Unblock,
			RemoveFinalizer: step.Patch.RemoveFinalizer,
		}
	}
	return s
}

// NewDeletionReport describes what a run did.
func NewDeletionReport(s *graph.Snapshot, events []Event, report *gc.Report) *DeletionReport {
	document := &DeletionReport{
		head:     headOf("DeletionReport"),
		Complete: s.Complete(), Unlisted: NewUnlisted(s),
		Outcome: outcomes(report), Events: events, Remaining: []Remaining{},
	}
	for _, o := range report.Remaining() {
		document.Remaining = append(document.Remaining, Remaining{
			Object: NewObjectReference(o.Object.Identity()), WaitingFor: append([]ObjectReference{}, references(o.WaitingFor)...), Causes: causes(o),
		})
	}
	return document
}

// causes returns the identifiers of what visibly holds an object, as
// explain-stuck names them. Who removes a finalizer was not looked for here.
func causes(o gc.Outcome) []string {
	ids := []string{}
	switch {
	case len(o.WaitingFor) == 0:
	case o.Object.Resource.IsNamespace():
		ids = append(ids, "ns-content")
	default:
		ids = append(ids, "gc-fg-blocking")
	}
	if o.Object.OrphaningDependents() {
		ids = append(ids, "gc-orphan-pending")
	}
	if len(o.Finalizers) > 0 {
		ids = append(ids, "fin-unknown")
	}
	if grace := o.Object.DeletionGracePeriodSeconds; grace != nil && *grace > 0 {
		ids = append(ids, "pod-grace")
	}
	return ids
}

// NewEvent describes a write at the time of its answer, or when none is expected
// any more.
func NewEvent(now metav1.Time, step gc.Step) Event {
	e := Event{Time: now, Action: step.Action, Object: NewObjectReference(step.Object.Identity())}
	switch {
	case step.Err == nil:
		e.Result = "Accepted"
	case answer.Indeterminate(step.Err):
		e.Result, e.Message = "Unanswered", unanswered(step.Err)
	default:
		e.Result, e.Message = "Refused", step.Err.Error()
	}
	return e
}

// NewServerAnswer describes the answer to a dry run, which is nil when the
// server would accept the write.
func NewServerAnswer(err error) *ServerAnswer {
	if err == nil {
		return &ServerAnswer{Accepted: true}
	}
	return &ServerAnswer{Unanswered: answer.Indeterminate(err), Message: err.Error()}
}

// NewNotAsked describes a step that was not sent as a dry run, for the reason.
func NewNotAsked(why error) *ServerAnswer {
	return &ServerAnswer{NotAsked: true, Message: why.Error()}
}

// unanswered is the error of a write that was not answered, with what is known
// of the write: a gc.Collector has looked for its effect, as far as it could.
func unanswered(err error) string {
	return err.Error() + "; no effect was seen yet, but there might be one"
}

func references(ids []graph.Identity) []ObjectReference {
	var refs []ObjectReference
	for _, id := range ids {
		refs = append(refs, NewObjectReference(id))
	}
	return refs
}

func outcomes(report *gc.Report) []Outcome {
	result := make([]Outcome, 0, len(report.Outcomes))
	for i := range report.Outcomes {
		o := &report.Outcomes[i]
		result = append(result, Outcome{
			Object: NewObjectReference(o.Object.Identity()), Result: o.Result, Reason: o.Reason.String(),
			WaitingFor: references(o.WaitingFor), Finalizers: o.Finalizers, Appeared: o.Appeared,
		})
	}
	return result
}

// DeepCopyObject implements runtime.Object; the copy is shallow.
func (p *DeletionPlan) DeepCopyObject() runtime.Object {
	document := *p
	return &document
}

// DeepCopyObject implements runtime.Object; the copy is shallow.
func (r *DeletionReport) DeepCopyObject() runtime.Object {
	document := *r
	return &document
}

// NewAfterwards describes the answers to dry runs of the deletions of objects, of which there
// are so many. What says nothing of the deletion itself, such as that whoever asks has not
// the right, is no answer.
func NewAfterwards(deletions int, objects []graph.Object, answers []error) *Afterwards {
	a := &Afterwards{Deletions: deletions, Refused: []RefusedDeletion{}}
	for i := range objects {
		r := answer.ToWrite(answers[i])
		if r.Kind != answer.NoAnswer {
			a.Asked++
		}
		if r.Kind != answer.NoAnswer && r.Kind != answer.Accepted {
			a.Refused = append(a.Refused, RefusedDeletion{NewObjectReference(objects[i].Identity()), r.Message})
		}
	}
	return a
}

// maxRefused is the number of refused deletions of others that text has.
const maxRefused = 10

// write says it in text.
func (a *Afterwards) write(w io.Writer, style Style) {
	if a == nil || a.Deletions == 0 {
		return
	}
	said := fmt.Sprintf("The namespace controller then deletes %d objects; ", a.Deletions)
	if a.Deletions == 1 {
		said = "The namespace controller then deletes one object; "
	}
	if 0 < a.Asked && a.Asked < a.Deletions {
		said += fmt.Sprintf("of the %d about which it was asked, ", a.Asked)
	}
	switch {
	case a.Asked == 0:
		said += "the server does not say whether it would accept them"
	case len(a.Refused) > 0:
		said += fmt.Sprintf("the server would refuse %d to you", len(a.Refused))
	default:
		said += "the server would accept all of these deletes from you"
	}
	fmt.Fprintf(w, "\n%s\n", said)
	for i, r := range a.Refused {
		if i == maxRefused {
			fmt.Fprintf(w, "  and %d more\n", len(a.Refused)-i)
			break
		}
		fmt.Fprintf(w, "  %s: %s\n", Line(objectName(r.Object.identity())), style.paint("refused: "+Line(r.Message), red))
	}
}

// writeSteps writes the steps of a plan, one a line, with the server's answers where
// there are any.
func (p *DeletionPlan) writeSteps(w io.Writer, style Style) error {
	steps := table{style: style, header: plain("STEP", "ACTION", "NAMESPACE", "OBJECT", "POLICY", "REASON", "SERVER"), rows: p.rows}
	return steps.write(w)
}

// rows makes the steps' rows, each when its turn comes: there may be a hundred thousand.
func (p *DeletionPlan) rows(yield func([]cell) bool) {
	for i := range p.Steps {
		s, policy := &p.Steps[i], ""
		if s.PropagationPolicy != nil {
			policy = string(*s.PropagationPolicy)
		}
		row := []cell{
			{text: strconv.Itoa(s.Step)}, {text: string(s.Action)}, {text: s.Object.Namespace}, {text: s.Object.Kind + "/" + s.Object.Name},
			{text: policy}, {text: s.Reason}, serverCell(s.Server),
		}
		if !yield(row) {
			return
		}
	}
}

func serverCell(answer *ServerAnswer) cell {
	switch {
	case answer == nil:
		return cell{}
	case answer.Accepted:
		return cell{text: "accepted", color: green}
	case answer.NotAsked:
		return cell{text: "not asked: " + answer.Message, color: yellow}
	case answer.Unanswered:
		return cell{text: "not answered: " + answer.Message, color: red}
	}
	return cell{text: "refused: " + answer.Message, color: red}
}
