// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/process"
	"github.com/kubectl-gc/kubectl-gc/pkg/cluster"
	"github.com/kubectl-gc/kubectl-gc/pkg/draw"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/foresight"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/render"
)

// deletion is what delete and collect share: preview, question, run, report.
type deletion struct {
	*globals
	dryRun          string
	steps           bool
	yes             bool
	interactive     bool
	confirm         string
	wait            bool
	timeout         time.Duration
	concurrency     int
	allowIncomplete tolerance
	scope           string
	order           string
	flags           *pflag.FlagSet
	output          output[*deletionAnswer]
	// ran: there is a report, of which the user has been told.
	ran bool
}

func (d *deletion) addDeletionFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	d.flags = flags
	flags.StringVar(&d.dryRun, "dry-run", "none", `"client" shows what would happen, "server" also asks the server about the writes, "none" does it`)
	flags.Lookup("dry-run").NoOptDefVal = "client"
	flags.BoolVar(&d.steps, "steps", false, "With --dry-run: show each write, in order, as -o wide does")
	flags.BoolVarP(&d.yes, "yes", "y", false, "Do not ask")
	flags.BoolVarP(&d.interactive, "interactive", "i", false, "Ask, also when the answer comes from no terminal")
	flags.StringVar(&d.confirm, "confirm", "", "Go ahead only if the writes are those with this digest, which --dry-run printed")
	flags.BoolVar(&d.wait, "wait", true, "Wait for pods' grace periods and for controllers that remove finalizers")
	flags.DurationVar(&d.timeout, "timeout", 0, "How long to wait for what is on its way out; 0 gives up when nothing has changed for a while")
	flags.IntVar(&d.concurrency, "concurrency", 16, "Number of writes in flight")
	flags.Var(&d.allowIncomplete, "allow-incomplete", "Go ahead although something that could not be read might change the outcome; with API groups or types as its value, when nothing else is missing")
	flags.Lookup("allow-incomplete").NoOptDefVal = "true"
	flags.StringVar(&d.scope, "scope", "auto", `What to read: "cluster", "namespace", or "auto", which is what the answer needs, as far as you may read it`)
	d.output = newOutput(
		(*deletionAnswer).document,
		format[*deletionAnswer]{"", func(w io.Writer, style render.Style, a *deletionAnswer) error {
			return d.writeText(w, style, a, d.steps || d.dryRun == "server")
		}},
		format[*deletionAnswer]{"wide", func(w io.Writer, style render.Style, a *deletionAnswer) error { return d.writeText(w, style, a, true) }},
		format[*deletionAnswer]{"name", func(w io.Writer, _ render.Style, a *deletionAnswer) error {
			return render.DeletedNames(w, a.report.Outcomes)
		}},
		format[*deletionAnswer]{"dot", func(w io.Writer, _ render.Style, a *deletionAnswer) error { return draw.DOT(w, a.picture()) }},
		format[*deletionAnswer]{"html", func(w io.Writer, _ render.Style, a *deletionAnswer) error { return draw.HTML(w, a.picture()) }},
	)
	d.output.addFlags(d.globals, cmd)
	d.completeValues(cmd, map[string][]string{"dry-run": {"none", "client", "server"}, "scope": scopes})
}

// scopes are the values of --scope.
var scopes = []string{"auto", "namespace", "cluster"}

func (d *deletion) validateDeletion() error {
	switch {
	case !slices.Contains([]string{"none", "client", "server"}, d.dryRun):
		return usageError{fmt.Errorf(`invalid --dry-run %q: must be "none", "client" or "server"`, d.dryRun)}
	case !slices.Contains(scopes, d.scope):
		return usageError{fmt.Errorf(`invalid --scope %q: must be "auto", "namespace" or "cluster"`, d.scope)}
	case d.order != "" && !slices.Contains(orders, d.order):
		return usageError{fmt.Errorf(`invalid --order %q: must be "default" or "safe"`, d.order)}
	case d.concurrency < 1:
		return usageError{errors.New("--concurrency must be at least 1")}
	case d.confirm == "" && d.flags.Changed("confirm"): // an empty variable of a script
		return usageError{errors.New("--confirm needs the digest of a dry run")}
	case len(d.from) > 0 && d.dryRun != "client":
		return usageError{errors.New("--from goes together with --dry-run=client alone: a file cannot be changed, nor asked")}
	case d.timeout < 0:
		return usageError{errors.New("--timeout must not be negative")}
	case d.dryRun == "none" && (d.output.name == "dot" || d.output.name == "html"):
		return usageError{fmt.Errorf("-o %s draws a preview: it needs --dry-run", d.output.name)}
	}
	return cmp.Or(d.validateInteractive(), d.output.validate(d.globals))
}

// job is one deletion or one pass of collection.
type job struct {
	preview.Job
	session  *session
	snapshot *graph.Snapshot
	graph    *graph.Graph
	// whole is the graph of the cluster with all labels, nil if it was not read.
	whole *graph.Graph
	// sentence opens the preview.
	sentence string
	// dangers are said before the preview, and so before the question.
	dangers []string
	// workloads are those of the cluster, read ahead where they will be asked for.
	workloads *controllers.Workloads
	// demanding: it is an error when something that the command names is not there.
	demanding bool
	// managed: a kube-controller-manager works in the cluster, as far as can be seen.
	managed bool
	// again finds out what there is by now for the same job.
	again func(context.Context) (*job, error)
}

// over reports whether nothing is left of what was to be deleted. A collection is over when its
// preview has no steps.
func (j *job) over(before *job) bool { return len(j.Targets) == 0 && len(before.Targets) > 0 }

// dropped returns the targets of before that are none of the job's.
func (j *job) dropped(before *job) []graph.Identity {
	left := sets.New(uids(j.Targets)...)
	return slices.DeleteFunc(slices.Clone(before.Targets), func(id graph.Identity) bool { return left.Has(id.UID) })
}

// execute previews a job, and unless it is a dry run asks and does it.
func (d *deletion) execute(ctx context.Context, j *job) error {
	defer process.CollectOften()() // a plan of much is kept until the end, and as much again beside it would be too much
	p, sight, err := d.preview(ctx, j)
	if err != nil {
		return err
	}
	plan, report := render.NewDeletionPlan(p), p.Report
	plan.Foresee(sight, d.order == orderSafe)
	for _, danger := range j.dangers {
		fmt.Fprintln(d.ErrOut, "Warning: "+render.Line(danger))
	}
	if d.dryRun != "none" {
		return d.show(ctx, j, plan, report, sight)
	}
	if err := d.refuseIncomplete(j); err != nil {
		return err
	}
	if len(plan.Steps) == 0 {
		return d.withoutSteps(j, report)
	}
	if err := d.refuseBlind(sight); err != nil {
		return err
	}
	asked, err := d.consent(ctx, j, p, sight)
	if err != nil {
		return err
	}
	for approved := p.Approve(); asked; approved = p.Approve() {
		// Whoever was asked has agreed to what there was then.
		before, agreed := j, p.Report
		if j, p, sight, err = d.lookAgain(ctx, before); err != nil {
			return err
		}
		if j.over(before) {
			return d.withoutTargets(j, agreed)
		}
		if dropped := j.dropped(before); len(dropped) > 0 {
			fmt.Fprintf(d.ErrOut, "Left out, as gone by now, another object, or not chosen any more: %s.\n", describe(dropped))
		}
		if len(p.Report.Steps) == 0 {
			return d.withoutSteps(j, p.Report)
		}
		object, beyond := approved.Beyond(p, nil)
		if !beyond {
			return d.perform(ctx, j, p, approved)
		}
		fmt.Fprintf(d.ErrOut, "\nThis has changed since you were asked, first %s. What would happen now:\n", object)
		if asked, err = d.consent(ctx, j, p, sight); err != nil {
			return err
		}
	}
	return d.perform(ctx, j, p, p.Approve())
}

// show prints the preview of a job, with what the server says to it in a server dry run.
func (d *deletion) show(ctx context.Context, j *job, plan *render.DeletionPlan, report *gc.Report, sight *foresight.Sight) error {
	if d.dryRun == "server" {
		if err := d.askServer(ctx, j, plan, report); err != nil {
			return err
		}
	}
	if err := d.printPlan(j, plan, report, sight); err != nil {
		return err
	}
	d.recommend(sight)
	if err := d.finish(j.session, j.snapshot); err != nil {
		return err
	}
	return cmp.Or(d.refusals(plan), d.wouldStick(report, sight))
}

// lookAgain reads everything again that a job rests on, and makes its plan again.
func (d *deletion) lookAgain(ctx context.Context, before *job) (*job, *preview.Plan, *foresight.Sight, error) {
	j, err := before.again(ctx)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("reading again what there is: %w", err)
	}
	if j.over(before) {
		return j, nil, nil, nil
	}
	if err := d.tolerated(j); err != nil {
		return nil, nil, nil, errors.Join(render.Warnings(d.ErrOut, j.snapshot), err)
	}
	p, sight, err := d.preview(ctx, j)
	if err == nil {
		err = d.refuseBlind(sight)
	}
	return j, p, sight, err
}

// withoutTargets ends a deletion of which no target is left, by the report that somebody has agreed to: what
// would have gone with them need not be gone.
func (d *deletion) withoutTargets(j *job, agreed *gc.Report) error {
	var left []graph.Identity
	for i := range agreed.Outcomes {
		o := &agreed.Outcomes[i]
		if n, ok := j.graph.Node(o.Object.UID); ok && !n.Virtual() && o.Result == gc.Deleted {
			left = append(left, n.Identity())
		}
	}
	defer d.finishStats(j.session)
	if len(left) == 0 {
		fmt.Fprintln(d.ErrOut, "What you agreed to is gone by now: nothing is left to do.")
		return d.printNothing(j)
	}
	fmt.Fprintf(d.ErrOut, "Nothing was changed: what you chose is gone by now, or not chosen any more. Of what you agreed to is still there: %s.\n", describe(left))
	return cmp.Or(d.printNothing(j), errRemaining)
}

// refuseBlind refuses a safe order when what it rests on could not be read: then none is known.
func (d *deletion) refuseBlind(sight *foresight.Sight) error {
	if d.order != orderSafe || sight == nil || len(sight.Unread) == 0 || d.allowIncomplete.all {
		return nil
	}
	return hintedError{
		fmt.Errorf("%w: no safe order is known without %s", errRefusedIncomplete, sight.Unread[0]),
		"--order=default deletes in any order; --allow-incomplete takes the order that is known",
	}
}

// withoutSteps ends a job whose preview has no steps: all is done, or what remains
// waits for something that no write of the job would bring about.
func (d *deletion) withoutSteps(j *job, preview *gc.Report) error {
	fmt.Fprintln(d.ErrOut, render.NoSteps(preview))
	remaining := &gc.Report{Outcomes: preview.Remaining()}
	if d.output.own() == nil { // a document has what nobody can decide about, too
		remaining.Outcomes = slices.DeleteFunc(slices.Clone(preview.Outcomes), func(o gc.Outcome) bool {
			return o.Result != gc.Remaining && o.Result != gc.Unknown
		})
	}
	for i := range remaining.Outcomes {
		if o := &remaining.Outcomes[i]; o.Object.BeingDeleted() {
			o.Result = gc.Remaining // as yet, whatever the preview hopes for
		}
	}
	return cmp.Or(d.printReport(j, []render.Event{}, remaining), d.finishWarned(j.session, j.snapshot), remains(remaining))
}

// remains is the exit code of a run, errRemaining exactly when its report lists what
// remains.
func remains(report *gc.Report) error {
	if len(report.Remaining()) > 0 {
		return errRemaining
	}
	return nil
}

// preview reads what there is to know of the concerned objects beyond metadata, and
// makes the plan.
func (d *deletion) preview(ctx context.Context, j *job) (*preview.Plan, *foresight.Sight, error) {
	if j.workloads == nil {
		j.workloads = controllers.NewWorkloads(ctx, j.session.reader)
	}
	decisive := slices.Collect(j.Decisive(j.graph))
	for _, n := range decisive {
		readAhead(j.workloads, n.Finalizers())
	}
	world := preview.World{Graph: j.graph}
	var reads sync.WaitGroup
	reads.Go(func() { j.snapshot.Facts = j.session.reader.Facts(ctx, withFacts(j.graph, decisive)) })
	reads.Go(func() { world.Server = j.session.reader.Server(ctx) })
	world.Now = j.session.reader.Now(ctx)
	world.ControllerManager = j.session.reader.ControllerManagerAlive(ctx, world.Now)
	reads.Wait()
	j.managed = world.ControllerManager
	p, err := preview.Make(ctx, &j.Job, world)
	if err != nil {
		return nil, nil, err
	}
	return d.foresee(ctx, j, p, world)
}

// wouldStick is the exit code of a dry run with --strict: something would remain, or may
// because its controller goes as well, something else would break, or not all could be read that tells.
func (d *deletion) wouldStick(report *gc.Report, sight *foresight.Sight) error {
	if !d.strict {
		return nil
	}
	remains := slices.ContainsFunc(report.Outcomes, func(o gc.Outcome) bool { return o.Result == gc.Remaining })
	switch {
	case remains, sight != nil && (sight.Sticks(d.order == orderSafe) || sight.CertainlyBreaks()):
		return errRemaining
	case sight != nil && len(sight.Unread) > 0:
		return errIncomplete
	}
	return nil
}

// withFacts returns those of the decisive objects of which the preview needs to know more
// than metadata, and the pods that may use a PersistentVolumeClaim among them.
func withFacts(g *graph.Graph, decisive []graph.Node) []graph.Object {
	var objects []graph.Object
	claims, known := map[string]bool{}, map[types.UID]bool{}
	for _, n := range decisive {
		if n.HasFinalizer(finalizers.ClaimProtection) {
			claims[n.Namespace()] = true
		}
		if cluster.HasFacts(n.Resource()) {
			objects, known[n.UID()] = append(objects, n.Unlabelled()), true
		}
	}
	if len(claims) == 0 {
		return objects
	}
	for n := range g.Nodes() {
		if !n.Virtual() && n.Resource().IsPod() && claims[n.Namespace()] && !known[n.UID()] {
			objects = append(objects, n.Unlabelled())
		}
	}
	return objects
}

// askServer sends every step with dryRun=All and notes the answers, or why it was
// not sent.
func (d *deletion) askServer(ctx context.Context, j *job, plan *render.DeletionPlan, report *gc.Report) error {
	server, err := j.session.dryRunner()
	if err != nil {
		return err
	}
	for i, step := range report.Steps {
		err := server.Ask(ctx, step, j.snapshot)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		answer := render.NewServerAnswer(err)
		if errors.As(err, new(cluster.NotAskedError)) {
			answer = render.NewNotAsked(err)
		}
		plan.Steps[i].Server = answer
	}
	others := byOthers(report, j.snapshot)
	others = graph.FirstOfEach(others, func(o graph.Object) typeWithin { return typeWithin{o.Resource.GroupVersionResource, o.Namespace} })
	asked := others[:min(len(others), maxOthers)]
	plan.Afterwards = render.NewAfterwards(len(others), asked, server.AskDeletions(ctx, asked, othersTime))
	return ctx.Err()
}

const (
	// maxOthers is about how many deletions that others carry out the server is asked, and
	// othersTime how long: namespaces are large, and webhooks slow.
	maxOthers  = 1000
	othersTime = 30 * time.Second
)

// byOthers returns the objects that are deleted by the namespace controller after the steps of
// the plan. The API server deletes the instances of a CustomResourceDefinition by itself, and
// asks no admission about them.
func byOthers(report *gc.Report, snapshot *graph.Snapshot) []graph.Object {
	stepped, emptied := map[types.UID]bool{}, map[string]bool{}
	for i := range report.Steps {
		if step := &report.Steps[i]; step.Action == gc.ActionDelete {
			stepped[step.Object.UID] = true
			if step.Object.Resource.IsNamespace() {
				emptied[step.Object.Name] = true
			}
		}
	}
	var others []graph.Object
	for i := range report.Outcomes {
		o := &report.Outcomes[i]
		if o.Object.Namespace == "" || !emptied[o.Object.Namespace] || o.Result == gc.Untouched || stepped[o.Object.UID] {
			continue
		}
		// An outcome has the object as the plan leaves it.
		if now, known := snapshot.Object(o.Object.UID); known && !now.BeingDeleted() {
			others = append(others, now)
		}
	}
	return others
}

// typeWithin is a type in a namespace: what refuses one object mostly refuses those like it.
type typeWithin struct {
	resource  schema.GroupVersionResource
	namespace string
}

// deletionAnswer is the preview of a job, or what a run of it did.
type deletionAnswer struct {
	job    *job
	report *gc.Report
	// plan is that of a preview, nil for a run. events are the writes of a run.
	plan   *render.DeletionPlan
	events []render.Event
	// sight is what is foreseen of a preview, nil when there is nothing to foresee.
	sight *foresight.Sight
}

func (a *deletionAnswer) document() runtime.Object {
	if a.plan != nil {
		return a.plan.WithOutcome()
	}
	return render.NewDeletionReport(a.job.snapshot, a.events, a.report)
}

// picture draws a preview.
func (a *deletionAnswer) picture() *draw.Picture {
	p := render.OutcomePicture(a.job.graph, a.report.Outcomes)
	p.Title = cmp.Or(a.job.sentence, "Nothing to delete") + " (dry run)"
	if steps := len(a.plan.Steps); steps > 0 {
		p.Subtitle = counted(len(p.Nodes), "object") + ", " + counted(steps, "write") + ", " + a.plan.Digest
	}
	var foreseen strings.Builder // which cannot fail
	_ = render.Foresight(&foreseen, render.Style{}, a.sight, len(a.plan.Waves) > 0)
	p.Notes = slices.Concat(incomplete(a.job.snapshot), strings.FieldsFunc(foreseen.String(), func(r rune) bool { return r == '\n' }))
	return p
}

// writeText writes an answer for a person, that of a preview with its steps or their number.
func (d *deletion) writeText(w io.Writer, style render.Style, a *deletionAnswer, steps bool) error {
	if a.plan == nil {
		return render.Summary(w, style, render.Past, a.report.Outcomes)
	}
	fmt.Fprintf(w, "%s (%s):\n", render.Line(a.job.sentence), d.dryRunWords())
	return render.Plan(w, style, a.plan, a.report, steps, func(w io.Writer) error {
		return render.Foresight(w, style, a.sight, d.order == orderSafe)
	})
}

func (d *deletion) printPlan(j *job, plan *render.DeletionPlan, report *gc.Report, sight *foresight.Sight) error {
	return d.output.print(d.globals, &deletionAnswer{job: j, report: report, plan: plan, sight: sight})
}

func (d *deletion) dryRunWords() string {
	if d.dryRun == "server" {
		return "server dry run"
	}
	return "dry run"
}

// refusals reports what the server said no to in a dry run, and to what it said
// nothing. What it was not asked about is neither: the exit code is that of the
// rest.
func (d *deletion) refusals(plan *render.DeletionPlan) error {
	refused, unanswered, notAsked := 0, 0, 0
	var why []string
	for _, step := range plan.Steps {
		switch {
		case step.Server == nil || step.Server.Accepted:
		case step.Server.NotAsked:
			notAsked++
			why = append(why, step.Server.Message)
		case step.Server.Unanswered:
			unanswered++
		default:
			refused++
		}
	}
	if refused > 0 {
		fmt.Fprintf(d.ErrOut, "The server would refuse %d of %d writes.\n", refused, len(plan.Steps))
	}
	if unanswered > 0 {
		fmt.Fprintf(d.ErrOut, "The server did not answer %d of %d writes.\n", unanswered, len(plan.Steps))
	}
	if notAsked > 0 {
		slices.Sort(why)
		fmt.Fprintf(d.ErrOut, "The server was not asked about %d of %d writes: %s.\n", notAsked, len(plan.Steps), render.Line(strings.Join(slices.Compact(why), "; ")))
	}
	if refused+unanswered > 0 || plan.Afterwards != nil && len(plan.Afterwards.Refused) > 0 {
		return errRemaining
	}
	return nil
}

// refuseIncomplete refuses a job whose outcome might be another if more could
// be read. When the user allows it, what could not be read is said before the
// question.
func (d *deletion) refuseIncomplete(j *job) error {
	if err := render.Warnings(d.ErrOut, j.snapshot); err != nil {
		return err
	}
	return d.tolerated(j)
}

// tolerated returns an error when something could not be read that the user has not agreed to go without.
func (d *deletion) tolerated(j *job) error {
	if missing := d.allowIncomplete.intolerable(j.snapshot.Unlisted()); len(missing) > 0 {
		return hintedError{errRefusedIncomplete, hintToTolerate(missing)}
	}
	return nil
}

// consent shows the summary and asks, or finds out why the job must not be
// done. It returns whether somebody was asked, so that time has passed.
func (d *deletion) consent(ctx context.Context, j *job, p *preview.Plan, sight *foresight.Sight) (asked bool, _ error) {
	style, err := d.style(d.ErrOut)
	if err != nil {
		return false, err
	}
	fmt.Fprintln(d.ErrOut, render.Line(j.sentence)+":")
	if err := render.Summary(d.ErrOut, style, render.Future, p.Report.Outcomes); err != nil {
		return false, err
	}
	if err := render.Foresight(d.ErrOut, style, sight, d.order == orderSafe); err != nil {
		return false, err
	}
	d.recommend(sight)
	if p.Takes >= time.Second && d.wait {
		fmt.Fprintf(d.ErrOut, "It may take %s, for grace periods and controllers.\n", duration.HumanDuration(p.Takes))
	}
	guarded := p.Guarded()
	switch {
	case d.confirm != "" && d.confirm != p.Digest:
		return false, hintedError{
			fmt.Errorf("confirming the preview: it is not that of %s any more", d.confirm),
			"run with --dry-run=client again and look at what changed; the digest is now " + p.Digest,
		}
	case d.confirm != "":
		return false, nil
	case d.yes && guarded == "":
		return false, nil
	}
	return true, d.ask(ctx, questionOf(p, sight), p.Digest)
}

// question is what is asked before a deletion.
type question struct {
	text string
	// name has to be typed; empty for yes.
	name string
	// system: what goes belongs to the system, so that only a person on a terminal can agree.
	system bool
}

// questionOf asks for a name where the system loses something, or data is destroyed.
func questionOf(p *preview.Plan, sight *foresight.Sight) question {
	if guarded := p.Guarded(); guarded != "" {
		return question{fmt.Sprintf("This belongs to the system. Type %q to continue: ", guarded), guarded, true}
	}
	var destroyed []foresight.Loss
	if sight != nil {
		destroyed = sight.Destroyed()
	}
	if len(destroyed) == 0 || len(p.Job.Targets) == 0 {
		return question{text: "Do you want to continue? (y/N): "}
	}
	const named = 3
	var lost []string
	for i, l := range destroyed {
		if i == named {
			lost = append(lost, fmt.Sprintf("and %d more", len(destroyed)-named))
			break
		}
		lost = append(lost, l.Size+" on pv/"+l.Volume)
	}
	name := p.Job.Targets[0].Name
	return question{text: fmt.Sprintf("This DESTROYS DATA: %s. Type %q to continue: ", render.Line(strings.Join(lost, ", ")), name), name: name}
}

// ask puts the question on the terminal. Without one the answer is no.
func (d *deletion) ask(ctx context.Context, q question, digest string) error {
	if !d.mayAsk(q) {
		if q.system {
			return hintedError{
				fmt.Errorf("asking for consent: %s belongs to the system, and there is no terminal to type its name on", q.name),
				"--confirm=" + digest + " goes ahead with exactly these writes",
			}
		}
		return hintedError{errors.New("asking for consent: there is no terminal"),
			"--yes goes ahead; --confirm=" + digest + " goes ahead with exactly these writes"}
	}
	answer, err := d.answer(ctx, q.text)
	if err != nil {
		return err
	}
	if !q.agreed(strings.TrimSpace(answer)) {
		return errors.New("not confirmed: nothing was changed")
	}
	return nil
}

// agreed reports whether an answer is the one that was asked for.
func (q question) agreed(answer string) bool {
	if q.name != "" {
		return answer == q.name
	}
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")
}

// answer asks a question and returns the line that is the answer. What is written
// after it begins a line, also when the user gave none.
func (d *deletion) answer(ctx context.Context, question string) (string, error) {
	fmt.Fprint(d.ErrOut, question)
	answer, err := readLine(ctx, d.In)
	if !strings.HasSuffix(answer, "\n") || d.interactive && !isTerminal(d.In) { // which shows no answer
		fmt.Fprintln(d.ErrOut)
	}
	return answer, err
}

// unlessInterrupted returns the error with which a command has ended. What was interrupted before anything was
// written says so.
func (d *deletion) unlessInterrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !d.ran {
		fmt.Fprintln(d.ErrOut, interrupted(&gc.Report{}, false, ""))
	}
	return err
}

// serverOptions say how patient the run is. By the preview it takes that long.
func (d *deletion) serverOptions(takes time.Duration) cluster.ServerOptions {
	options := cluster.ServerOptions{FieldManager: fieldManager, Settle: cluster.DefaultSettle + takes}
	switch {
	case !d.wait:
		options.Settle, options.IgnoreGrace = time.Second, true
	case d.timeout > 0: // what waits until others have had their time is done in it, too
		options.Settle = min(options.Settle, d.timeout/2)
	}
	return options
}

// perform does the job on the cluster and reports. The user has agreed to what approved has.
func (d *deletion) perform(ctx context.Context, j *job, p *preview.Plan, approved *preview.Approval) error {
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	if err := d.acceptable(ctx, j, 0); err != nil {
		return hintedError{err, "nothing was changed: what has to go before it is deleted only when it can go itself"}
	}
	r := &running{deletion: d, job: j, plan: p, approved: approved, progress: newProgress(d), stop: func() {}}
	report, err := j.Do(ctx, j.graph, r.next)
	r.stop()
	r.progress.end(d.ErrOut)
	if report == nil {
		return err
	}
	d.ran = true
	if printErr := d.printReport(r.job, r.progress.events, report); printErr != nil {
		return unreported(printErr, report, d.again(j, report))
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		if remains(report) != nil {
			fmt.Fprintf(d.ErrOut, "The timeout of %s is over. %s\n", d.timeout, d.again(j, report))
		}
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(d.ErrOut, interrupted(report, j.managed, d.again(j, report)))
		return err
	case err != nil:
		return err
	}
	d.finishStats(r.job.session) // what was not read was accepted before the first write: --strict is about answers
	return remains(report)
}

// running is a job that is being done. Each wave is a deletion of its own: before it everything
// is read again.
type running struct {
	*deletion
	job      *job
	plan     *preview.Plan
	approved *preview.Approval
	progress *progress
	// stop ends the watches of the last wave.
	stop func()
}

// next returns the Collector for a wave. The error is why the wave must not begin.
func (r *running) next(ctx context.Context, wave int) (*gc.Collector, error) {
	if wave > 0 {
		if err := r.lookBefore(ctx, wave); err != nil {
			return nil, fmt.Errorf("not deleted, because %w", err)
		}
	}
	server, err := r.job.session.server(r.serverOptions(r.plan.Takes))
	if err != nil {
		return nil, err
	}
	r.stop()
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	server.Concern(awaited(r.job))
	server.Watch(watching, r.job.snapshot, watched(r.job))
	server.AwaitWatches(ctx, watchesTake)
	return gc.New(server, r.job.graph, gc.Options{Workers: r.concurrency, Observer: r.progress.observe, Guard: r.plan.Guard(), Patient: r.wait && r.timeout > 0}), nil
}

// lookBefore finds out what there is before a wave, and why it must not begin: because it would go
// beyond what was agreed to, something would have to go before it that nobody knew of, or it would be refused.
func (r *running) lookBefore(ctx context.Context, wave int) error {
	j, p, sight, err := r.lookAgain(ctx, r.job)
	if err != nil {
		return err
	}
	if j.over(r.job) {
		r.job = j
		return nil
	}
	harmless := func(n graph.Node) bool { return !foresight.Foreign(n.Finalizers()) }
	if object, beyond := r.approved.Beyond(p, harmless); beyond {
		return fmt.Errorf("it would take along what was made or changed meanwhile: %s", object)
	}
	if object, is := tooEarly(sight, r.job.Waves[wave:]); is {
		return fmt.Errorf("something has to go before it by now: %s", object)
	}
	j.Waves = r.job.Waves
	r.job, r.plan = j, p
	return r.acceptable(ctx, j, wave)
}

// tooEarly returns an object that has to go before what serves it, and for which the waves that are left have
// no turn before the last.
func tooEarly(sight *foresight.Sight, left []preview.Wave) (graph.Identity, bool) {
	for _, id := range sight.Early() {
		before := slices.ContainsFunc(left[:len(left)-1], func(w preview.Wave) bool {
			return slices.ContainsFunc(w.Objects, func(o graph.Identity) bool { return o.UID == id.UID })
		})
		if !before {
			return id, true
		}
	}
	return graph.Identity{}, false
}

// unreported is the error of a run of which the report could not be written. That is all that
// anybody learns of what it has changed.
func unreported(err error, report *gc.Report, again string) error {
	deleted, remaining := 0, len(report.Remaining())
	for _, o := range report.Outcomes {
		if o.Result == gc.Deleted {
			deleted++
		}
	}
	err = fmt.Errorf("writing the report of a run that is over (gone: %d, remaining: %d): %w", deleted, remaining, err)
	if remaining > 0 {
		return hintedError{err, strings.ToLower(again[:1]) + strings.TrimSuffix(again[1:], ".")}
	}
	return err
}

// watchesTake is how long a run waits at most for its watches: what was made
// since the lists is then known before the first write.
const watchesTake = 5 * time.Second

// awaited returns the objects whose end a run waits for, besides those that it
// writes to.
func awaited(j *job) iter.Seq[types.UID] {
	return func(yield func(types.UID) bool) {
		for n := range j.Concerned(j.graph) {
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
func watched(j *job) []*graph.Resource {
	var resources []*graph.Resource
	concerned := slices.Collect(j.Concerned(j.graph))
	needsAll := func(n graph.Node) bool { return meetsMarked(n) || n.Resource().IsNamespace() }
	if len(j.Targets) == 0 || j.Policy != metav1.DeletePropagationBackground || slices.ContainsFunc(concerned, needsAll) {
		for _, resource := range j.session.reader.Resources() {
			if len(j.snapshot.Listed(resource.GroupResource())) > 0 {
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
			if !ref.Owner.Virtual() && len(j.snapshot.Listed(ref.Owner.Resource().GroupResource())) > 0 {
				add(ref.Owner.Resource())
			}
		}
	}
	return resources
}

func (d *deletion) printReport(j *job, events []render.Event, report *gc.Report) error {
	return d.output.print(d.globals, &deletionAnswer{job: j, report: report, events: events})
}

// printNothing writes the document of a run without writes, for programs; people
// have been told.
func (d *deletion) printNothing(j *job) error {
	report := &gc.Report{}
	switch {
	case d.output.isText():
		return nil
	case d.dryRun != "none":
		return d.printPlan(j, render.NewDeletionPlan(preview.Nothing(j.graph)), report, nil)
	}
	return d.printReport(j, []render.Event{}, report)
}

// identities returns the identities of objects.
func identities(objects []graph.Object) []graph.Identity {
	var ids []graph.Identity
	for i := range objects {
		ids = append(ids, objects[i].Identity())
	}
	return ids
}

func uids(ids []graph.Identity) []types.UID {
	var result []types.UID
	for _, id := range ids {
		result = append(result, id.UID)
	}
	return result
}
