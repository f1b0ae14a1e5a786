// SPDX-License-Identifier: Apache-2.0

package finalizer

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/workload"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Verdicts about what explain/controllers finds.

func (j *judgement) judge(a *controllers.Answer) *finding.Cause {
	switch a.Is {
	case controllers.Served:
		return j.working(a.By)
	case controllers.NotAllowed:
		return j.withoutRight(a.By)
	case controllers.NamespaceGone:
		return j.inNamespace(a.By)
	case controllers.Unserved:
		if a.Helped { // it is not the controller itself
			return j.dead(a.By)
		}
		return j.withOthers(j.deadOrDenied(a.By), a)
	case controllers.NoController, controllers.Manual:
		return j.absent(a)
	}
	return j.unclear(a)
}

// actor describes the controller for the report.
func (j *judgement) actor(c *controllers.Candidate, liveness string) *finding.Controller {
	actor := &finding.Controller{Name: j.s.Whose(), Liveness: liveness, Known: j.s.Known}
	if c == nil {
		return actor
	}
	actor.Name = say.Plain(c.ID())
	if len(j.s.Known) > 0 {
		actor.Name = actor.Name.Then(say.Plain(" (" + j.s.Known[0].Product + ")"))
	}
	actor.Evidence = finding.Facts(c.Signs[:min(len(c.Signs), evidence.MaxShown)]...)
	if liveness != controllers.Dead { // those are of the cause itself
		actor.Evidence = append(actor.Evidence, finding.Facts(j.Finder.StateOf(c.Workload).Evidence...)...)
	}
	if speaker := c.Speaker(); speaker != "" {
		logs := remedy.Logs(c.ID(), speaker, "")
		actor.Logs = &logs
	}
	return actor
}

// working is an object whose controller works; nil stands for one that
// holds a lease from outside the cluster.
func (j *judgement) working(by *controllers.Candidate) *finding.Cause {
	c, name := &finding.Cause{Controller: j.actor(by, controllers.Alive)}, j.s.Whose()
	var l *controllers.Workload
	if by != nil {
		l, name = by.Workload, say.Plain(by.ID())
		c.Ways = []finding.Way{workload.ReadLogs(l, j.n.Name())}
	} else {
		c.Evidence = finding.Facts(*j.s.OrphanLease)
	}
	full, err := j.Whole(j.n.Node)
	if err != nil {
		c.Kind, c.Key, c.Verdict, c.Summary = finding.FinUnknown, "unread "+name.String(), finding.Unknown, say.Of(ProgressUnread, name)
		c.Own = []finding.Fact{finding.Field(j.n.Node, "", err.Error())}
		return c
	}
	p := j.Finder.ProgressOf(j.n.Node, full, l)
	if p.Failure != nil {
		return j.failing(c, &p, name)
	}
	c.Kind, c.Verdict, c.Summary = finding.FinWorking, finding.Progressing, say.Of(NotRemovedYet, name, j.s.Finalizer)
	if len(j.unused) > 0 {
		c.Summary = c.Summary.And(NothingUses, strings.Join(j.unused, ", "))
	}
	told(c, &p)
	if p.Says != nil {
		said := brief(p.Says.Message)
		c.Decides = say.Plain(said)
		if c.Summary = c.Summary.And(Reports, c.Decides); strings.HasSuffix(said, "...") {
			first(c, finding.See(remedy.YAML(j.n.Identity()), ReadReport))
		}
	}
	if !j.lacks(full, c, "") && p.Says != nil {
		j.lacks(nil, c, p.Says.Message)
	}
	moved := evidence.Latest(evidence.Latest(evidence.Requested(j.n.Object()), p.Started), p.Moved)
	if c.Until = moved.Add(controllers.Quiet); c.Until.Before(j.Now) {
		idle := j.since(moved)
		c.Verdict, c.Until = finding.Unknown, time.Time{}
		j.idles(c, &p, l, idle)
	}
	c.Key = strings.Join([]string{string(c.Verdict), name.String(), j.s.Finalizer, j.about}, " ")
	if p.Says != nil {
		c.Key += " " + p.Says.Gist(j.n.Name())
	}
	if said := (controllers.Failure{Message: p.Only}); c.Verdict == finding.Unknown {
		c.Key += " " + said.Gist(j.n.Name())
	}
	if c.Verdict == finding.Unknown && p.Pause != nil {
		c.Key += " " + p.Pause.Text().String()
	}
	return c
}

// idles says of an object on which nothing has ended for long what else shows, and what to do about it.
func (j *judgement) idles(c *finding.Cause, p *controllers.Progress, l *controllers.Workload, idle time.Duration) {
	switch fresh := p.Fresh; {
	case fresh.Type != "":
		j.about += "flips"
		c.Summary = c.Summary.And(MightFlip, fresh.Type, duration.HumanDuration(j.since(fresh.Since)))
		at := 0
		if p.Says != nil { // to look at that comes first
			at = len(c.Ways)
		}
		c.Ways = slices.Insert(c.Ways, at, finding.Way{Effect: say.Of(AskIfFlips, minutes(j.since(fresh.Since)+time.Minute))})
	case p.Only != "" && p.Says == nil:
		c.Summary = c.Summary.And(ItSays, brief(p.Only))
	default:
		c.Summary = c.Summary.And(NoProgress, minutes(idle))
	}
	ago := j.since(p.Written)
	writes := !p.Written.IsZero() && ago <= controllers.Quiet
	if writes && p.Fresh.Type == "" {
		j.about += "writes"
		c.Summary = c.Summary.And(ButWritten, duration.HumanDuration(ago))
	}
	switch {
	case p.Pause != nil:
		c.Decides = say.Of(MightBePaused, p.Pause.Text())
		c.Summary = c.Summary.Then(c.Decides)
		c.Own, c.Ways = append(c.Own, finding.Facts(p.Pause.Fact())...), append(c.Ways, resume(p.Pause))
	case p.Says == nil && j.about == "" && l != nil && !writes:
		c.Ways = append(c.Ways, workload.Restart(l, say.Of(workload.RestartHung))...)
	}
}

// brief is the beginning of what a controller says: of a list, the first of it. The evidence has all.
func brief(message string) string {
	lines := strings.Split(message, "\n")
	if len(lines) > 2 &&
		slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "- ") }) {
		lines = append(lines[:2], "...")
	}
	return admission.Shortened(strings.Join(lines, " "))
}

func minutes(d time.Duration) string {
	return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
}

func (j *judgement) since(t time.Time) time.Duration { return j.Now.Sub(t) }

// told adds what an object shows of the work on its deletion to the evidence. What its
// controller says, and does not pass by itself, leaves open whether that ends.
func told(c *finding.Cause, p *controllers.Progress) {
	if !p.Written.IsZero() {
		c.Own = append(c.Own, finding.Facts(p.Evidence)...)
	}
	if p.Says != nil {
		c.Own = append(c.Own, finding.Facts(p.Says.Evidence)...)
		if p.Says.Lasting {
			c.Verdict = finding.Unknown
		}
	}
	for _, fact := range p.Words {
		known := func(f finding.Fact) bool {
			return f.Source.Equal(fact.Source) && f.Path == fact.Path && f.Path != "message"
		}
		if len(c.Own) <= evidence.MaxShown && !slices.ContainsFunc(c.Own, known) {
			c.Own = append(c.Own, fact)
		}
	}
}

// lacks adds the objects that a controller needs and that do not exist: what its message names,
// or else what the object's spec refers to. To recreate them comes first, where that is possible. It
// reports whether there are any.
func (j *judgement) lacks(full *unstructured.Unstructured, c *finding.Cause, message string) bool {
	var missing say.Text
	var lacks []controllers.Lack
	if full != nil {
		lacks = j.Finder.Lacks(j.n.Node, full)
	} else if lack, again := j.Finder.MissingIn(j.n.Node, message); lack != nil && (c.Kind == finding.FinFailing || lack.Needed()) {
		lacks = []controllers.Lack{*lack}
	} else if again != nil && c.Verdict == finding.Stuck {
		c.Verdict, c.Summary = finding.Unknown, c.Summary.And(ExistsAgain, again.Identity())
	}
	for i, lack := range lacks[:min(len(lacks), maxLacks)] {
		id, way := lack.Object, RecreateNeeded
		c.Own, j.about = append(c.Own, finding.Facts(lack.Evidence)...), strings.TrimSpace(j.about+" "+id.String())
		if full != nil {
			missing = missing.And(NamesMissing, lack.Evidence.Path, id)
		}
		if id.Namespace != "" && j.Ending(id.Namespace) {
			way = ReferToAnother
		}
		c.Ways = slices.Insert(c.Ways, i, finding.Way{Effect: say.Of(way, id)})
	}
	if !missing.IsZero() {
		c.Summary, c.Decides = c.Summary.Then(missing), missing
	}
	return len(lacks) > 0
}

// maxLacks is the number of missing objects that a cause names.
const maxLacks = 2

// first puts a way out before the others of a cause.
func first(c *finding.Cause, way finding.Way) { c.Ways = append([]finding.Way{way}, c.Ways...) }

// failing is an object at which a working controller, one of those named, fails. That counts as stuck when
// nothing else has moved for long; until then it is not known whether it passes.
func (j *judgement) failing(c *finding.Cause, p *controllers.Progress, names ...say.Text) *finding.Cause {
	f, name := p.Failure, say.Join(Or, names...)
	var undated say.Text
	c.Kind, c.Verdict, c.Own = finding.FinFailing, finding.Unknown, finding.Facts(f.Evidence)
	if j.since(evidence.Latest(f.Since, p.Worked)) > f.Patience() {
		c.Verdict = finding.Stuck
		if ago := j.since(p.Changed()); !f.Dated && f.Kind != controllers.Paused && ago <= controllers.Quiet {
			c.Verdict, undated = finding.Unknown, say.Of(ChangedSince, duration.HumanDuration(ago))
			c.Own = append(c.Own, finding.Facts(p.Evidence)...)
		}
	}
	switch f.Kind {
	case controllers.NeedsCreate:
		c.Kind, c.Verdict, j.byHand = finding.FinNeedsCreate, finding.Stuck, true
		c.Summary, c.Ways = say.Of(NeedsCreation, name, f.Message), append(c.Ways, finding.Way{Effect: say.Of(SkipStep)})
	case controllers.OverQuota:
		c.Kind, c.Summary = finding.FinQuota, say.Of(OverQuota, name, f.Message)
		first(c, finding.Way{Effect: say.Of(RelaxQuota)})
	case controllers.Paused:
		c.Summary, c.Ways = say.Of(IgnoresPaused, name, p.Pause.Text()), []finding.Way{resume(p.Pause)}
	case controllers.Failing:
		c.Summary = say.Of(CleanupFails, name, f.Text(brief)).Then(undated)
		if stood := j.since(f.Since); f.Dated && stood >= time.Minute {
			c.Summary = say.Of(HasFailedFor, name, duration.HumanDuration(stood), f.Text(brief))
		}
		if !j.waitsFor(c, f, name) && !j.lacks(nil, c, f.Message) {
			first(c, finding.Way{Effect: say.Of(FixFailure)})
		}
	}
	c.Key = strings.Join([]string{string(c.Verdict), name.String(), j.about, f.Gist(j.n.Name())}, " ")
	return c
}

// resume ends a pause.
func resume(p *controllers.Pause) finding.Way {
	change := remedy.Replace("/"+strings.ReplaceAll(p.Field, ".", "/"), false)
	if key := p.Annotation; key != "" {
		change = remedy.Remove("/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
	}
	return finding.Does(remedy.PatchOf(p.Object, change), EndPause).At(finding.Disruptive)
}

// waitsFor is a controller that says that other objects must be deleted first: those of
// its own API that its message names. It reports whether there are any. One of them that is
// not being deleted is what has to be deleted.
func (j *judgement) waitsFor(c *finding.Cause, f *controllers.Failure, name say.Text) bool {
	awaited := j.Finder.Awaited(j.n.Node, f.Message)
	if len(awaited) == 0 {
		return false
	}
	stays := slices.IndexFunc(awaited, func(m graph.Node) bool { return !m.BeingDeleted() })
	if stays < 0 {
		c.Summary, j.next = say.Of(WaitsUntilDeleted, name, awaited[0].Identity()), &awaited[0]
		return true
	}
	id := awaited[stays].Identity()
	j.about, c.Summary = id.String(), say.Of(WaitsForKept, name, id, f.Message)
	for _, m := range awaited[:min(len(awaited), evidence.MaxShown)] {
		if !m.BeingDeleted() {
			c.Own = append(c.Own, finding.Field(m, "metadata.deletionTimestamp", evidence.NotSet))
		}
	}
	first(c, finding.See(remedy.Preview(id), DeleteAwaited, id))
	return true
}

// withoutRight is an object that its controller is not allowed to change.
func (j *judgement) withoutRight(by *controllers.Candidate) *finding.Cause {
	id, account := j.n.Identity(), by.Account()
	resource := id.Resource.GroupResource()
	at := account.ID()
	for _, m := range j.Named(evidence.ServiceAccounts.GroupResource(), at.Namespace, at.Name) {
		at = m.Identity()
	}
	c := &finding.Cause{
		Kind: finding.FinRBAC, At: at, Key: account.User() + " " + resource.String(), Verdict: finding.Stuck,
		Summary:    say.Of(NotAllowed, by.ID(), resource),
		Evidence:   []finding.Fact{finding.At(at, resource.String(), j.Finder.Says(by.Workload, j.n.Node))},
		Controller: j.actor(by, controllers.Denied),
		Ways:       []finding.Way{finding.See(j.askRights(by), RestoreRights)},
	}
	if st := j.Finder.StateOf(by.Workload); st.Liveness != controllers.Alive {
		c.Summary = say.Of(NotAllowedAtLeast, by.ID(), resource, st.Because)
	}
	for _, role := range j.Finder.Emptied(by.Workload, j.n.Node) {
		c.Evidence = append(c.Evidence, finding.Facts(role.Evidence)...)
		c.Ways = append(c.Ways, finding.See(remedy.Look{Words: "get clusterroles -l", Args: []string{role.Selector}},
			ReapplyAggregated, role.Role))
	}
	if id.Namespace != "" && j.Ending(id.Namespace) {
		c.Key += " ending" // no RoleBinding can be created there
		first(c, j.grantEverywhere(by))
	}
	c.Ways = append(c.Ways, workload.ReadLogs(by.Workload, id.Name))
	return c
}

// grantEverywhere gives a controller the right to change objects of a type by a
// ClusterRoleBinding, since a RoleBinding cannot be created in a namespace that is being
// deleted.
func (j *judgement) grantEverywhere(by *controllers.Candidate) finding.Way {
	role, account := j.Finder.RoleFor(j.n.Node), by.Account()
	if role == "" {
		return finding.Way{Effect: say.Of(BindSomeRole, j.n.Resource().GroupResource(), account.User()), Risk: finding.Disruptive}
	}
	name := "kubectl-gc-" + account.Name
	grant := remedy.Grant{ClusterRole: role, Namespace: account.Namespace, ServiceAccount: account.Name}
	way := finding.Does(remedy.GrantOf(evidence.Identity(evidence.ClusterRoleBindings, "", name), grant), BindEverywhere, role, name)
	way.Loss, way.Temporary = finding.Lost(remedy.GrantsMore, graph.Identity{}, RightsUntilThen), true
	return way
}

// askRights asks the API server whether the controller is allowed to remove the finalizer.
func (j *judgement) askRights(by *controllers.Candidate) remedy.Look {
	return remedy.CanI("patch", j.n.Resource().GroupResource().String()+"/"+j.n.Name(), by.Account().User(), j.n.Namespace())
}

// deadOrDenied is a finalizer whose controller does not run. To start one is no use, and might start another's, while it is not allowed to
// remove the finalizer either.
func (j *judgement) deadOrDenied(by *controllers.Candidate) *finding.Cause {
	c := j.dead(by)
	if j.Finder.MayNotChange(by.Workload, j.n.Node) {
		resource := j.n.Resource().GroupResource()
		c.Key, c.Summary = c.Key+" denied "+resource.String(), c.Summary.And(DeniedAsWell, resource)
		c.Evidence = append(c.Evidence, finding.At(by.Account().ID(), resource.String(), j.Finder.Says(by.Workload, j.n.Node)))
		c.Ways = []finding.Way{finding.See(j.askRights(by), ReapplyDown)}
	}
	return c
}

// withOthers adds the dead candidates that may be the controller as well.
func (j *judgement) withOthers(c *finding.Cause, a *controllers.Answer) *finding.Cause {
	others := a.Others()
	if len(others) == 0 {
		return c
	}
	names := []say.Text{say.Plain(a.By.ID())}
	c.Ways = ifController(a.By, c.Ways)
	for _, k := range others {
		names = append(names, say.Plain(k.ID()))
	}
	c.Key, c.Summary = say.Join(" ", names...).String(), say.Of(NoneWorks, say.Join(", ", names...))
	for _, k := range others {
		c.Evidence, c.Ways = append(c.Evidence, finding.Facts(k.Describe())...), append(c.Ways, j.tryCandidate(k)...)
	}
	return c
}

// ifController are ways out that help if a candidate is the controller.
func ifController(c *controllers.Candidate, ways []finding.Way) []finding.Way {
	for i := range ways {
		ways[i].Effect, ways[i].Partial = say.Of(IfController, c.ID()).Then(ways[i].Effect), true
	}
	return ways
}

func (j *judgement) dead(by *controllers.Candidate) *finding.Cause {
	st := j.Finder.StateOf(by.Workload)
	j.byHand = true
	return &finding.Cause{
		Kind: finding.FinDead, At: by.ID(), Key: by.ID().String(), Verdict: finding.Stuck,
		Summary: say.Of(DoesNotWork, st.Because), Evidence: finding.Facts(st.Evidence...), Controller: j.actor(by, controllers.Dead),
		Ways: workload.Revive(j.Reader, by.Workload, st),
	}
}

// inNamespace is a finalizer whose controller is, or was, deleted with a
// namespace. by is nil when nothing of it is left.
func (j *judgement) inNamespace(by *controllers.Candidate) *finding.Cause {
	c := &finding.Cause{Kind: finding.FinInNamespace, Verdict: finding.Stuck, Controller: j.actor(by, controllers.Absent)}
	j.byHand = true
	namespace, shown := j.s.Went()
	switch {
	case by != nil:
		namespace = by.ID().Namespace
		c.Controller.Liveness = controllers.Dead
		c.Evidence = finding.Facts(j.Finder.StateOf(by.Workload).Evidence...)
	case namespace != "":
		c.Evidence = finding.Facts(shown...)
	default:
		namespace = j.n.Namespace()
	}
	c.Key, c.Summary = namespace+" "+j.s.Finalizer, say.Of(RanInEnding, namespace)
	way, where := finding.Way{Effect: say.Of(RunElsewhere, j.s.Whose(), namespace)}, say.Of(BeingDeleted)
	if j.NamespaceGone(namespace) {
		where, c.Summary = say.Of(NoLongerExists), say.Of(RanInGone, namespace)
		way = finding.Does(remedy.Op{Verb: remedy.Create, Object: evidence.Identity(evidence.Namespaces, "", namespace)},
			RecreateNamespaceFor, j.s.Whose())
		way.Partial = true
	}
	c.Ways, c.Evidence = []finding.Way{way}, append(c.Evidence, finding.At(evidence.Identity(evidence.Namespaces, "", namespace), "", where),
		j.s.Looked)
	return c
}

// absent is a finalizer that no controller in the cluster removes.
func (j *judgement) absent(a *controllers.Answer) *finding.Cause {
	s := j.s
	c := &finding.Cause{Kind: finding.FinAbsent, Key: s.Finalizer, Verdict: finding.Stuck, Evidence: finding.Facts(s.Looked),
		Own: j.writersUnknown(), Controller: j.actor(nil, controllers.Absent)}
	j.byHand = true
	if a.Gone != nil {
		return j.withoutNamed(c, a)
	}
	if slices.ContainsFunc(s.Known, func(m finalizers.Match) bool { return m.OffCluster != "" }) { // it was ruled out
		c.Evidence = append(c.Evidence, finding.AtSays("the API server", "version", NowhereElse, j.Server().Version()))
	}
	j.mighty = finding.Facts(j.Finder.Mighty(j.n.Node)...)
	c.Controller.Among = j.mighty
	setter := remedy.ManagedFields(j.n.Identity())
	var handles say.Text
	of := j.Finder.OfOthers(s)
	if of != nil {
		handles = say.Of(HandlesOthers, controllers.Whose(s.Finalizer, []finalizers.Match{*of}), strings.Join(of.Kinds, ", "))
	}
	if a.Is == controllers.Manual {
		c.Kind, c.Summary, c.Controller.Name = finding.FinManual, say.Of(SetByUser, s.Finalizer).Then(handles),
			say.Of(UserWhoSetIt, strings.Join(s.Setters, ", "))
		c.Ways = []finding.Way{finding.See(setter, AskUser)}
		if c.Decides = say.Of(SetWith, strings.Join(s.Setters, ", ")); !s.SetAt.IsZero() {
			c.Decides = c.Decides.And(WrittenAt, s.SetAt.UTC().Format(time.RFC3339)) // an age would be news at each look
		}
		return c
	}
	if operator := s.Operator(); operator != "" { // one that is gone leaves all its kinds behind
		c.Key, j.kinds = operator, true
	}
	c.Summary = unserved(s.Finalizer).Then(handles)
	if name := j.Finder.Missing(s); name != "" {
		c.Summary = c.Summary.And(SetterMissing, name)
	}
	c.Ways = []finding.Way{{Effect: say.Of(Reinstall, s.Whose(), j.usually())}}
	switch {
	case of != nil: // a user or a program has taken the name
		c.Ways = []finding.Way{finding.See(setter, AskUser)}
	case len(s.Known) == 0 && finalizers.Domain(s.Finalizer) == "", s.SetByPeople(): // it need not be a program's
		c.Ways = []finding.Way{finding.See(setter, AskUserOrReinstall)}
	}
	return c
}

// withoutNamed is a finalizer that names an object without which its controller leaves it alone, and that does not exist.
func (j *judgement) withoutNamed(c *finding.Cause, a *controllers.Answer) *finding.Cause {
	c.Key, c.Summary = c.Key+" "+a.Gone.String(), unserved(a.Finalizer).And(WithoutNamed, a.Whose(), *a.Gone)
	c.Evidence, c.Ways = []finding.Fact{finding.AtSays(*a.Gone, "", DoesNotExist)}, []finding.Way{{Effect: say.Of(RecreateNamed, *a.Gone)}}
	switch by := a.By; {
	case by == nil:
		c.Ways = append(c.Ways, finding.Way{Effect: say.Of(Reinstall, a.Whose(), j.usually())})
	case j.Finder.StateOf(by.Workload).Liveness == controllers.Dead:
		c.Ways = append(c.Ways, j.dead(by).Ways...)
	}
	return c
}

// usually says where the controller usually runs, or that it cannot be started there.
func (j *judgement) usually() say.Text {
	for _, m := range j.s.Known {
		for _, l := range m.Workloads {
			switch {
			case l.Namespace == "" || l.Namespace == finalizers.ObjectNamespace:
			case j.Ending(l.Namespace) && !j.NamespaceGone(l.Namespace):
				return say.Of(AnotherThan, l.Namespace)
			default:
				return say.Of(UsuallyIn, RunsAs(l))
			}
		}
	}
	return say.Text{}
}
