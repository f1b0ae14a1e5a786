// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/workload"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Finalizers of controllers outside Kubernetes: verdicts about what explain/controllers finds.

// ruling is what is found of one object's finalizer. Objects with the same
// identifier and key share the cause.
type ruling struct {
	id      Kind
	key     string
	verdict Verdict
	summary string
	// at is the object at fault, nil for the one with the finalizer.
	at *graph.Identity
	// shared is evidence for all, own for the object alone.
	shared, own []Evidence
	controller  *Controller
	remedies    []Remedy
	// ownRemedies are for the object alone.
	ownRemedies []Remedy
	// byHand: removing the finalizer by hand is a way out, the last one.
	byHand bool
	// about is another object that the cause is about.
	about string
	// kinds: the cause is one for all kinds of objects.
	kinds bool
	// next must be deleted first and is being deleted; there is no cause then.
	next *graph.Node
}

// judgement finds out who should remove one finalizer from one object, and why it does not.
type judgement struct {
	*walker
	n graph.Node
	s *controllers.Search
}

func (j *judgement) judge(a *controllers.Answer) ruling {
	switch a.Is {
	case controllers.Served:
		return j.working(a.By)
	case controllers.NotAllowed:
		return j.withoutRight(a.By)
	case controllers.Displaced:
		return j.inNamespace(a.By)
	case controllers.Unserved:
		if a.Helped { // it is not the controller itself
			return j.dead(a.By)
		}
		return j.withOthers(j.deadOrDenied(a.By), a)
	case controllers.Unclaimed, controllers.Manual:
		return j.absent(a)
	}
	return j.unclear(a)
}

// actor describes the controller for the report.
func (j *judgement) actor(c *controllers.Candidate, liveness string) *Controller {
	actor := &Controller{Name: j.s.Whose(), Liveness: liveness}
	if c != nil {
		actor.Name = c.ID().String()
		if len(j.s.Known) > 0 {
			actor.Name += " (" + j.s.Known[0].Product + ")"
		}
		actor.Evidence = append(actor.Evidence, c.Signs[:min(len(c.Signs), evidence.MaxShown)]...)
		if liveness != controllers.Dead { // those are of the cause itself
			actor.Evidence = append(actor.Evidence, j.finder.StateOf(c.Workload).Evidence...)
		}
		logs := remedy.Logs(c.ID(), c.Ref(), "")
		actor.Evidence = append(actor.Evidence, Evidence{Source: "logs", Value: logs.Command(j.programs)})
	}
	for _, m := range j.s.Known {
		actor.Evidence = append(actor.Evidence, entryEvidence(m)...)
	}
	return actor
}

// FromCatalogue is the source of evidence that is not about the cluster but about
// finalizers, by the catalogue.
const FromCatalogue = "the catalogue of finalizers"

// entryEvidence is what the catalogue says of a finalizer.
func entryEvidence(m finalizers.Match) []Evidence {
	var facts []Evidence
	add := func(what, value string) {
		if value != "" {
			facts = append(facts, Evidence{Source: FromCatalogue, Path: what, Value: value})
		}
	}
	add("waits for", m.WaitsFor)
	for _, workload := range m.Workloads {
		add("usually runs as", runsAs(workload))
	}
	add("runs outside the cluster", m.OffCluster)
	add("note", m.Note)
	return facts
}

// working is an object whose controller works; nil stands for one that
// holds a lease from outside the cluster.
func (j *judgement) working(c *controllers.Candidate) ruling {
	n, name := j.n, j.s.Whose()
	r := ruling{controller: j.actor(c, controllers.Alive)}
	if c != nil {
		name = c.ID().String()
		r.remedies = []Remedy{j.readLogs(c.Workload, n.Name())}
	} else {
		r.shared = []Evidence{*j.s.OrphanLease}
	}
	full, err := j.evidence.Whole(n)
	if err != nil {
		r.id, r.key, r.verdict, r.summary = finding.FinUnknown, "unread "+name, Unknown, fmt.Sprintf(progressUnread, name)
		r.own = []Evidence{evidence.Field(n, "", err.Error())}
		return r
	}
	p := j.finder.ProgressOf(n, full, workloadOf(c))
	if p.Failure != nil {
		return j.failing(r, &p, name)
	}
	r.id, r.verdict, r.summary = finding.FinWorking, Progressing, fmt.Sprintf(notRemovedYet, name, j.s.Finalizer)
	r.told(&p)
	j.lacks(full, &r, "")
	if idle := j.since(evidence.Latest(evidence.Latest(evidence.Requested(n.Object()), p.Started), p.Moved)); idle > controllers.Quiet {
		r.verdict = Unknown
		r.summary += fmt.Sprintf(noProgress, strings.TrimSuffix(idle.Truncate(time.Minute).String(), "0s"))
		ago := j.since(p.Written)
		writes := !p.Written.IsZero() && ago <= controllers.Quiet
		if writes {
			r.about += "writes"
			r.summary += fmt.Sprintf(butWritten, duration.HumanDuration(ago))
		}
		switch {
		case p.Pause != nil:
			r.summary += fmt.Sprintf(mightBePaused, p.Pause)
			r.own = append(r.own, p.Pause.Fact())
			r.remedies = append(r.remedies, j.resume(p.Pause))
		case p.Says == nil && r.about == "" && c != nil && !c.IsPod() && !writes:
			r.remedies = append(r.remedies, j.remedies([]finding.Way{workload.Restart(c.Workload)})...)
		}
	}
	if p.Says != nil {
		r.summary += fmt.Sprintf(reports, p.Says.Message)
	}
	r.key = strings.Join([]string{string(r.verdict), name, j.s.Finalizer, r.about}, " ")
	if p.Says != nil {
		r.key += " " + p.Says.Gist(n.Object().Name)
	}
	if r.verdict == Unknown && p.Pause != nil {
		r.key += " " + p.Pause.String()
	}
	return r
}

func (j *judgement) since(t time.Time) time.Duration { return j.evidence.Now.Sub(t) }

// told adds what an object shows of the work on its deletion to the evidence. What its
// controller says, and does not pass by itself, leaves open whether that ends.
func (r *ruling) told(p *controllers.Progress) {
	if !p.Written.IsZero() {
		r.own = append(r.own, p.Evidence)
	}
	if p.Says != nil {
		r.own = append(r.own, p.Says.Evidence)
		if p.Says.Lasting {
			r.verdict = Unknown
		}
	}
	for _, fact := range p.Words {
		known := func(e Evidence) bool { return e.Source == fact.Source && e.Path == fact.Path && e.Path != "message" }
		if len(r.own) <= evidence.MaxShown && !slices.ContainsFunc(r.own, known) {
			r.own = append(r.own, fact)
		}
	}
}

// lacks adds an object that a controller needs and that does not exist: what its message names,
// or else what the object's spec refers to. To recreate it comes first, where that is possible. It
// reports whether there is one.
func (j *judgement) lacks(full *unstructured.Unstructured, r *ruling, message string) bool {
	var lack *controllers.Lack
	if full == nil {
		lack = j.finder.MissingIn(j.n, message)
	} else if lacks := j.finder.Lacks(j.n, full); len(lacks) > 0 {
		lack = &lacks[0]
	}
	if lack == nil {
		return false
	}
	id := lack.Object
	r.own, r.about = append(r.own, lack.Evidence), id.String()
	if full != nil {
		r.summary += fmt.Sprintf(namesMissing, lack.Evidence.Path, id)
	}
	way := Remedy{Risk: Safe, Effect: fmt.Sprintf(recreate, id)}
	if id.Namespace != "" && j.evidence.Ending(id.Namespace) {
		way.Effect = fmt.Sprintf(referToAnother, id)
	}
	r.remedies = append([]Remedy{way}, r.remedies...)
	return true
}

// workloadOf returns the workload of a candidate, nil for none.
func workloadOf(c *controllers.Candidate) *controllers.Workload {
	if c == nil {
		return nil
	}
	return c.Workload
}

// failing is an object at which a working controller fails. That counts as stuck when
// nothing else has moved for long; until then it is not known whether it passes.
func (j *judgement) failing(r ruling, p *controllers.Progress, name string) ruling {
	f := p.Failure
	undated := ""
	r.id, r.verdict, r.own = finding.FinFailing, Unknown, []Evidence{f.Evidence}
	if j.since(evidence.Latest(f.Since, p.Worked)) > f.Patience() {
		r.verdict = Stuck
		if ago := j.since(p.Changed()); !f.Dated && f.Kind != controllers.Paused && ago <= controllers.Quiet {
			r.verdict = Unknown
			undated = fmt.Sprintf(changedSince, duration.HumanDuration(ago))
			r.own = append(r.own, p.Evidence)
		}
	}
	switch f.Kind {
	case controllers.NeedsCreate:
		r.id, r.verdict, r.byHand = finding.FinNeedsCreate, Stuck, true
		r.summary = fmt.Sprintf(needsCreation, name, f.Message)
		r.remedies = append(r.remedies, Remedy{Risk: Safe, Effect: skipStep})
	case controllers.OverQuota:
		r.id, r.summary = finding.FinQuota, fmt.Sprintf(overQuota, name, f.Message)
		r.remedies = append([]Remedy{{Risk: Safe, Effect: relaxQuota}}, r.remedies...)
	case controllers.Paused:
		r.summary, r.remedies = fmt.Sprintf(ignoresPaused, name, f.Message), []Remedy{j.resume(p.Pause)}
	case controllers.Failing:
		r.summary = fmt.Sprintf(cleanupFails, name, f.Message) + undated
		if stood := j.since(f.Since); f.Dated && stood >= time.Minute {
			r.summary = fmt.Sprintf(hasFailedFor, name, duration.HumanDuration(stood), f.Message)
		}
		if !j.waitsFor(&r, f, name) && !j.lacks(nil, &r, f.Message) {
			r.remedies = append([]Remedy{{Risk: Safe, Effect: fixFailure}}, r.remedies...)
		}
	}
	r.key = strings.Join([]string{string(r.verdict), name, r.about, f.Gist(j.n.Object().Name)}, " ")
	return r
}

// resume ends a pause.
func (j *judgement) resume(p *controllers.Pause) Remedy {
	change := remedy.Replace("/"+strings.ReplaceAll(p.Field, ".", "/"), false)
	if key := p.Annotation; key != "" {
		change = remedy.Remove("/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
	}
	return Remedy{Risk: Disruptive, Action: j.patch(p.Object, change), Effect: endPause}
}

// waitsFor is a controller that says that other objects must be deleted first: those of
// its own API that its message names. It reports whether there are any. One of them that is
// not being deleted is what has to be deleted.
func (j *judgement) waitsFor(r *ruling, f *controllers.Failure, name string) bool {
	awaited := j.finder.Awaited(j.n, f.Message)
	if len(awaited) == 0 {
		return false
	}
	stays := slices.IndexFunc(awaited, func(m graph.Node) bool { return !m.BeingDeleted() })
	if stays < 0 {
		r.summary, r.next = fmt.Sprintf(waitsUntilDeleted, name, awaited[0].Identity()), &awaited[0]
		return true
	}
	id := awaited[stays].Identity()
	r.about, r.summary = id.String(), fmt.Sprintf(waitsForKept, name, id, f.Message)
	for _, m := range awaited[:min(len(awaited), evidence.MaxShown)] {
		if !m.BeingDeleted() {
			r.own = append(r.own, evidence.Field(m, "metadata.deletionTimestamp", "not set"))
		}
	}
	r.remedies = append([]Remedy{previewDelete(j.Plugin, id, fmt.Sprintf(deleteAwaited, id))}, r.remedies...)
	return true
}

// previewDelete shows what a deletion of an object would delete with it.
func previewDelete(plugin string, id graph.Identity, effect string) Remedy {
	return Remedy{Risk: Safe, Action: shows("%s delete %s --dry-run", shell.In(plugin, id.Namespace), shell.Target(id)), Effect: effect}
}

// withoutRight is an object that its controller is not allowed to change.
func (j *judgement) withoutRight(c *controllers.Candidate) ruling {
	id := j.n.Identity()
	resource := id.Resource.GroupResource()
	at := evidence.Identity(evidence.ServiceAccounts, c.Account().Namespace, c.Account().Name)
	for _, m := range j.evidence.Named(evidence.ServiceAccounts.GroupResource(), at.Namespace, at.Name) {
		at = m.Identity()
	}
	r := ruling{
		id: finding.FinRBAC, key: c.Account().User() + " " + resource.String(), verdict: Stuck, at: &at,
		summary:    fmt.Sprintf(notAllowed, c.ID(), resource),
		shared:     []Evidence{{Source: at.String(), Path: resource.String(), Value: j.finder.Says(c.Workload, j.n)}},
		controller: j.actor(c, controllers.Denied),
		remedies:   []Remedy{j.askRights(c)},
	}
	if st := j.finder.StateOf(c.Workload); st.Liveness != controllers.Alive {
		r.summary = fmt.Sprintf(notAllowedAtLeast, c.ID(), resource, st.Because)
	}
	for _, role := range j.finder.Emptied(c.Workload, j.n) {
		r.shared = append(r.shared, role.Evidence)
		r.remedies = append(r.remedies, Remedy{
			Risk: Safe, Action: shows("%s get clusterroles -l %s", j.Kubectl, shell.Quote(role.Selector)), Effect: fmt.Sprintf(reapplyAggregated, role.Name),
		})
	}
	if id.Namespace != "" && j.evidence.Ending(id.Namespace) {
		r.key += " ending" // no RoleBinding can be created there
		r.remedies = append([]Remedy{j.grantEverywhere(c)}, r.remedies...)
	}
	r.remedies = append(r.remedies, j.readLogs(c.Workload, id.Name))
	return r
}

// grantEverywhere gives a controller the right to change objects of a type by a
// ClusterRoleBinding, since a RoleBinding cannot be created in a namespace that is being
// deleted.
func (j *judgement) grantEverywhere(c *controllers.Candidate) Remedy {
	role := j.finder.RoleFor(j.n)
	if role == "" {
		return Remedy{Risk: Disruptive, Effect: fmt.Sprintf(bindSomeRole, j.n.Resource().GroupResource(), c.Account().User())}
	}
	name := "kubectl-gc-" + c.Account().Name
	return Remedy{
		Risk:   Disruptive,
		Action: j.does(remedy.GrantOf(evidence.Identity(evidence.ClusterRoleBindings, "", name), remedy.Grant{ClusterRole: role, Namespace: c.Account().Namespace, ServiceAccount: c.Account().Name})),
		Effect: fmt.Sprintf(bindEverywhere, role, name), Loss: loses(remedy.GrantsMore, rightsUntilThen),
	}
}

// askRights asks the API server whether the controller is allowed to remove the finalizer.
func (j *judgement) askRights(c *controllers.Candidate) Remedy {
	id := j.n.Identity()
	command := fmt.Sprintf("%s auth can-i patch %s --as=%s", j.Kubectl, shell.Quote(id.Resource.GroupResource().String()+"/"+id.Name), c.Account().User())
	if id.Namespace != "" {
		command += " -n " + shell.Quote(id.Namespace)
	}
	return Remedy{Risk: Safe, Action: shows("%s", command), Effect: restoreRights}
}

// deadOrDenied is a finalizer whose controller does not run. When it would not be
// allowed to remove the finalizer either, that is said, too.
func (j *judgement) deadOrDenied(c *controllers.Candidate) ruling {
	r := j.dead(c)
	if c.Named && j.finder.MayNotChange(c.Workload, j.n) {
		r.own = []Evidence{{Source: c.Account().String(), Path: j.n.Resource().GroupResource().String(), Value: deniedAsWell}}
		r.ownRemedies = append(r.ownRemedies, j.askRights(c))
	}
	return r
}

// withOthers adds the dead candidates that may be the controller as well.
func (j *judgement) withOthers(r ruling, a *controllers.Answer) ruling {
	others := a.Others()
	if len(others) == 0 {
		return r
	}
	names := []string{a.By.ID().String()}
	for i := range r.remedies {
		r.remedies[i].Effect, r.remedies[i].Partial = fmt.Sprintf(ifController, a.By.ID(), r.remedies[i].Effect), true
	}
	for _, k := range others {
		names = append(names, k.ID().String())
	}
	r.key, r.summary = strings.Join(names, " "), fmt.Sprintf(noneWorks, strings.Join(names, ", "))
	for _, k := range others {
		r.shared = append(r.shared, k.Describe())
		r.remedies = append(r.remedies, j.tryCandidate(k)...)
	}
	return r
}

func (j *judgement) dead(c *controllers.Candidate) ruling {
	at, st := c.ID(), j.finder.StateOf(c.Workload)
	return ruling{
		id: finding.FinDead, key: c.ID().String(), verdict: Stuck, at: &at, byHand: true,
		summary: fmt.Sprintf(doesNotWork, st.Because), shared: st.Evidence, controller: j.actor(c, controllers.Dead), remedies: j.remedies(workload.Revive(j.evidence, c.Workload, st)),
	}
}

// inNamespace is a finalizer whose controller is, or was, deleted with a
// namespace. c is nil when nothing of it is left.
func (j *judgement) inNamespace(c *controllers.Candidate) ruling {
	r := ruling{id: finding.FinInNamespace, verdict: Stuck, byHand: true, controller: j.actor(c, controllers.Absent)}
	namespace, shown := j.s.Went()
	switch {
	case c != nil:
		namespace = c.ID().Namespace
		r.controller.Liveness = controllers.Dead
		r.shared = j.finder.StateOf(c.Workload).Evidence
	case namespace != "":
		r.shared = shown
	default:
		namespace = j.n.Namespace()
	}
	r.key, r.summary = namespace+" "+j.s.Finalizer, fmt.Sprintf(ranInEnding, namespace)
	r.remedies = []Remedy{{Risk: Safe, Effect: fmt.Sprintf(runElsewhere, j.s.Whose(), namespace)}}
	where := Evidence{Source: "Namespace/" + namespace, Value: beingDeleted}
	if j.evidence.NamespaceGone(namespace) {
		where.Value, r.summary = noLongerExists, fmt.Sprintf(ranInGone, namespace)
		r.remedies = []Remedy{{Risk: Safe, Action: j.create(evidence.Identity(evidence.Namespaces, "", namespace)), Partial: true, Effect: fmt.Sprintf(recreateNamespaceFor, j.s.Whose())}}
	}
	r.shared = append(r.shared, where, j.s.Looked)
	return r
}

// absent is a finalizer that no controller in the cluster removes.
func (j *judgement) absent(a *controllers.Answer) ruling {
	s := j.s
	r := ruling{id: finding.FinAbsent, key: s.Finalizer, verdict: Stuck, byHand: true, shared: []Evidence{s.Looked}, own: j.writersUnknown(), controller: j.actor(nil, controllers.Absent)}
	if slices.ContainsFunc(s.Known, func(m finalizers.Match) bool { return m.OffCluster != "" }) { // it was ruled out
		r.shared = append(r.shared, Evidence{Source: "the API server", Path: "version", Value: fmt.Sprintf(nowhereElse, j.evidence.Server().Version())})
	}
	if a.Is == controllers.Manual {
		r.id, r.summary, r.controller.Name = finding.FinManual, fmt.Sprintf(setByUser, s.Finalizer), fmt.Sprintf(userWhoSetIt, strings.Join(s.Setters, ", "))
		r.remedies = []Remedy{{Risk: Safe, Action: managedFields(j.Kubectl, j.n.Identity()), Effect: askUser}}
		return r
	}
	if operator := s.Operator(); operator != "" { // one that is gone leaves all its kinds behind
		r.key, r.kinds = operator, true
	}
	r.summary = noController(s.Finalizer)
	if name := j.finder.Missing(s); name != "" {
		r.summary += fmt.Sprintf(setterMissing, name)
	}
	r.remedies = []Remedy{{Risk: Safe, Effect: fmt.Sprintf(reinstall, s.Whose(), j.usually())}}
	if len(s.Known) == 0 && finalizers.Domain(s.Finalizer) == "" || s.SetByPeople() { // it need not be a program's
		r.remedies = []Remedy{{Risk: Safe, Action: managedFields(j.Kubectl, j.n.Identity()), Effect: askUserOrReinstall}}
	}
	return r
}

// usually says where the controller usually runs, or that it cannot be started there.
func (j *judgement) usually() string {
	for _, m := range j.s.Known {
		for _, l := range m.Workloads {
			switch {
			case l.Namespace == "" || l.Namespace == finalizers.ObjectNamespace:
			case j.evidence.Ending(l.Namespace) && !j.evidence.NamespaceGone(l.Namespace):
				return fmt.Sprintf(anotherThan, l.Namespace)
			default:
				return fmt.Sprintf(usuallyIn, runsAs(l))
			}
		}
	}
	return ""
}
