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
}

func (d *deletion) addDeletionFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	d.flags = flags
	flags.StringVar(&d.dryRun, "dry-run", "none", `"client" shows what would happen, "server" also asks the server about the writes, "none" does it`)
	flags.Lookup("dry-run").NoOptDefVal = "client"
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
		format[*deletionAnswer]{"", d.writeText},
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
	if d.dryRun == "server" {
		if err := d.askServer(ctx, j, plan, report); err != nil {
			return err
		}
	}
	if d.dryRun != "none" {
		if err := d.printPlan(j, plan, report, sight); err != nil {
			return err
		}
		d.recommend(sight)
		if err := d.finish(j.session, j.snapshot); err != nil {
			return err
		}
		return cmp.Or(d.refusals(plan), d.wouldStick(report, sight))
	}
	if err := d.refuseIncomplete(j); err != nil {
		return err
	}
	if len(plan.Steps) == 0 {
		return d.withoutSteps(j, report)
	}
	if err := d.consent(ctx, j, p, sight); err != nil {
		return err
	}
	return d.perform(ctx, j, p)
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
// because its controller goes as well, or not all could be read that tells.
func (d *deletion) wouldStick(report *gc.Report, sight *foresight.Sight) error {
	if !d.strict {
		return nil
	}
	remains := slices.ContainsFunc(report.Outcomes, func(o gc.Outcome) bool { return o.Result == gc.Remaining })
	if remains || sight != nil && sight.Sticks(d.order == orderSafe) {
		return errRemaining
	}
	if sight != nil && len(sight.Unread) > 0 {
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

func (d *deletion) writeText(w io.Writer, style render.Style, a *deletionAnswer) error {
	if a.plan == nil {
		return render.Summary(w, style, render.Past, a.report.Outcomes)
	}
	fmt.Fprintf(w, "%s (%s):\n", render.Line(a.job.sentence), d.dryRunWords())
	return render.Plan(w, style, a.plan, a.report, func(w io.Writer) error {
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
	if missing := d.allowIncomplete.intolerable(j.snapshot.Unlisted()); len(missing) > 0 {
		return hintedError{errRefusedIncomplete, hintToTolerate(missing)}
	}
	return nil
}

// consent shows the summary and asks, or finds out why the job must not be
// done.
func (d *deletion) consent(ctx context.Context, j *job, p *preview.Plan, sight *foresight.Sight) error {
	style, err := d.style(d.ErrOut)
	if err != nil {
		return err
	}
	fmt.Fprintln(d.ErrOut, render.Line(j.sentence)+":")
	if err := render.Summary(d.ErrOut, style, render.Future, p.Report.Outcomes); err != nil {
		return err
	}
	if err := render.Foresight(d.ErrOut, style, sight, d.order == orderSafe); err != nil {
		return err
	}
	d.recommend(sight)
	if p.Takes >= time.Second && d.wait {
		fmt.Fprintf(d.ErrOut, "It may take %s, for grace periods and controllers.\n", duration.HumanDuration(p.Takes))
	}
	guarded := p.Guarded()
	switch {
	case d.confirm != "" && d.confirm != p.Digest:
		return hintedError{
			fmt.Errorf("confirming the preview: it is not that of %s any more", d.confirm),
			"run with --dry-run=client again and look at what changed; the digest is now " + p.Digest,
		}
	case d.confirm != "":
		return nil
	case d.yes && guarded == "":
		return nil
	}
	return d.ask(ctx, guarded, p.Digest)
}

// ask puts the question on the terminal. Without one the answer is no.
func (d *deletion) ask(ctx context.Context, guarded, digest string) error {
	if !d.mayAsk(guarded) {
		if guarded != "" {
			return hintedError{
				fmt.Errorf("asking for consent: %s belongs to the system, and there is no terminal to type its name on", guarded),
				"--confirm=" + digest + " goes ahead with exactly these writes",
			}
		}
		return hintedError{errors.New("asking for consent: there is no terminal"),
			"--yes goes ahead; --confirm=" + digest + " goes ahead with exactly these writes"}
	}
	question, want := "Do you want to continue? (y/N): ", []string{"y", "yes"}
	if guarded != "" {
		question, want = fmt.Sprintf("This belongs to the system. Type %q to continue: ", guarded), []string{guarded}
	}
	answer, err := d.answer(ctx, question)
	if err != nil {
		return err
	}
	if !slices.Contains(want, strings.TrimSpace(answer)) && (guarded != "" || !slices.Contains(want, strings.ToLower(strings.TrimSpace(answer)))) {
		return errors.New("not confirmed: nothing was changed")
	}
	return nil
}

// answer asks a question and returns the line that is the answer. What is written
// after it begins a line, also when the user gave none.
func (d *deletion) answer(ctx context.Context, question string) (string, error) {
	fmt.Fprint(d.ErrOut, question)
	answer, err := readLine(ctx, d.In)
	if !strings.HasSuffix(answer, "\n") || d.interactive && !isTerminal(d.In) { // which shows no answer
		fmt.Fprintln(d.ErrOut)
	}
	if err != nil && ctx.Err() != nil {
		fmt.Fprintln(d.ErrOut, "Interrupted: nothing was changed.")
	}
	return answer, err
}

// serverOptions say how patient the run is. By the preview it takes that long.
func (d *deletion) serverOptions(takes time.Duration) cluster.ServerOptions {
	options := cluster.ServerOptions{FieldManager: fieldManager, Settle: cluster.DefaultSettle + takes}
	switch {
	case !d.wait:
		options.Settle, options.IgnoreGrace = time.Second, true
	case d.timeout > 0:
		options.Settle = d.timeout
	}
	return options
}

// perform does the job on the cluster and reports. The user has agreed to the
// preview.
func (d *deletion) perform(ctx context.Context, j *job, p *preview.Plan) error {
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	server, err := j.session.server(d.serverOptions(p.Takes))
	if err != nil {
		return err
	}
	if err := d.acceptable(ctx, j, p); err != nil {
		return err
	}
	watchContext, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	server.Concern(awaited(j))
	server.Watch(watchContext, j.snapshot, watched(j))
	server.AwaitWatches(ctx, watchesTake)
	progress := newProgress(d)
	report, err := j.Run(ctx, gc.New(server, j.graph, gc.Options{
		Workers: d.concurrency, Observer: progress.observe, Guard: p.Guard(), Unforeseen: foresight.Unforeseen(j.graph),
	}))
	progress.end(d.ErrOut)
	if printErr := d.printReport(j, progress.events, report); printErr != nil {
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
	d.finishStats(j.session) // what was not read was accepted before the first write: --strict is about answers
	return remains(report)
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

// watched returns the resources whose objects the job concerns. When dependents
// are to stay these are all that were listed: one that is made meanwhile would
// be lost with the reference to its owner.
func watched(j *job) []*graph.Resource {
	var resources []*graph.Resource
	if j.Policy == metav1.DeletePropagationOrphan {
		for _, resource := range j.session.reader.Resources() {
			if len(j.snapshot.Listed(resource.GroupResource())) > 0 {
				resources = append(resources, resource)
			}
		}
		return resources
	}
	seen := map[*graph.Resource]bool{}
	for n := range j.Concerned(j.graph) {
		if resource := n.Resource(); !seen[resource] {
			seen[resource] = true
			resources = append(resources, resource)
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
	case d.output.name == "":
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
