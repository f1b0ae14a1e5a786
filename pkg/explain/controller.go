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
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Finalizers of controllers outside Kubernetes: what explain/controllers finds, in words.

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
	// about is an object that the cause is about besides.
	about string
	// kinds: the cause is one for all kinds of objects.
	kinds bool
	// next is what has to go first and is being deleted; there is no cause then.
	next *graph.Node
}

// judge says who should remove a finalizer from an object, and why it does not.
func (w *walker) judge(n graph.Node, a *controllers.Answer) ruling {
	switch a.Is {
	case controllers.Served:
		return w.judgeWorking(n, a.Search, a.By)
	case controllers.NotAllowed:
		return w.judgeDenied(n, a.Search, a.By)
	case controllers.Displaced:
		return w.judgeInNamespace(n, a.Search, a.By)
	case controllers.Unserved:
		if a.Helped { // it is not the controller itself
			return w.dead(a.Search, a.By, w.finder.StateOf(a.By.Workload))
		}
		return w.withOthers(n, w.judgeDead(n, a.Search, a.By), a)
	case controllers.Unclaimed, controllers.Manual:
		return w.judgeAbsent(n, a)
	}
	return w.judgeUnclear(n, a)
}

// actor describes the controller for the report.
func (w *walker) actor(s *controllers.Search, c *controllers.Candidate, liveness string) *Controller {
	actor := &Controller{Name: s.Whose(), Liveness: liveness}
	if c != nil {
		actor.Name = c.ID().String()
		if len(s.Known) > 0 {
			actor.Name += " (" + s.Known[0].Product + ")"
		}
		actor.Evidence = append(actor.Evidence, c.Signs[:min(len(c.Signs), evidence.MaxShown)]...)
		if liveness != controllers.Dead { // those are of the cause itself
			actor.Evidence = append(actor.Evidence, w.finder.StateOf(c.Workload).Evidence...)
		}
		actor.Evidence = append(actor.Evidence, Evidence{Source: "logs", Value: w.logs(c.Workload, "")})
	}
	for _, m := range s.Known {
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
		where := strings.TrimPrefix(workload.Kind+"/"+workload.Name, "/")
		if workload.Namespace == finalizers.ObjectNamespace {
			where += " in the object's namespace"
		} else if workload.Namespace != "" {
			where += " in namespace " + workload.Namespace
		}
		add("usually runs as", where)
	}
	add("runs outside the cluster", m.OffCluster)
	add("note", m.Note)
	return facts
}

// judgeWorking is an object whose controller works; nil stands for one that
// holds a lease from outside the cluster.
func (w *walker) judgeWorking(n graph.Node, s *controllers.Search, c *controllers.Candidate) ruling {
	name := s.Whose()
	r := ruling{controller: w.actor(s, c, controllers.Alive)}
	if c != nil {
		name = c.ID().String()
		r.remedies = []Remedy{w.readLogs(c.Workload, n.Object().Name)}
	} else {
		r.shared = []Evidence{*s.OrphanLease}
	}
	full, err := w.evidence.Whole(n)
	if err != nil {
		r.id, r.key, r.verdict = finUnknown, "unread "+name, Unknown
		r.summary = name + " works; how far it is with the object could not be read"
		r.own = []Evidence{evidence.Field(n, "", err.Error())}
		return r
	}
	p := w.finder.ProgressOf(n, full, workloadOf(c))
	if p.Failure != nil {
		return w.judgeFailing(n, r, &p, name)
	}
	r.id, r.verdict = finWorking, Progressing
	r.summary = fmt.Sprintf("%s works and has still to remove the finalizer %s", name, s.Finalizer)
	w.told(&r, &p)
	w.lacks(n, full, &r, "")
	if idle := w.evidence.Now.Sub(evidence.Latest(evidence.Latest(evidence.Requested(n.Object()), p.Started), p.Moved)); idle > controllers.Quiet {
		r.verdict = Unknown
		r.summary += fmt.Sprintf("; it has shown no progress for %s", roughly(idle))
		ago := w.evidence.Now.Sub(p.Written)
		writes := !p.Written.IsZero() && ago <= controllers.Quiet
		if writes {
			r.about += "writes"
			r.summary += fmt.Sprintf(", though the object was written to %s ago", duration.HumanDuration(ago))
		}
		switch {
		case p.Pause != nil:
			r.summary += "; " + p.Pause.String() + ", which may keep it from that"
			r.own = append(r.own, p.Pause.Fact())
			r.remedies = append(r.remedies, w.resume(p.Pause))
		case p.Says == nil && r.about == "" && c != nil && !c.IsPod() && !writes:
			r.remedies = append(r.remedies, w.restart(c.Workload))
		}
	}
	if p.Says != nil {
		r.summary += "; it says: " + p.Says.Message
	}
	r.key = strings.Join([]string{string(r.verdict), name, s.Finalizer, r.about}, " ")
	if p.Says != nil {
		r.key += " " + p.Says.Gist(n.Object().Name)
	}
	if r.verdict == Unknown && p.Pause != nil {
		r.key += " " + p.Pause.String()
	}
	return r
}

// told adds what an object shows of the work on its deletion to the evidence. What its
// controller says, and does not pass by itself, leaves open whether that ends.
func (w *walker) told(r *ruling, p *controllers.Progress) {
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
// or else what the object's spec refers to. Making it again comes first, where that is possible. It
// reports whether there is one.
func (w *walker) lacks(n graph.Node, full *unstructured.Unstructured, r *ruling, message string) bool {
	var lack *controllers.Lack
	if full == nil {
		lack = w.finder.MissingIn(n, message)
	} else if lacks := w.finder.Lacks(n, full); len(lacks) > 0 {
		lack = &lacks[0]
	}
	if lack == nil {
		return false
	}
	id := lack.Object
	r.own, r.about = append(r.own, lack.Evidence), id.String()
	if full != nil {
		r.summary += fmt.Sprintf("; %s names %s, which does not exist", lack.Evidence.Path, id)
	}
	way := Remedy{Risk: Safe, Effect: fmt.Sprintf("make %s again, if it is what the controller needs; the controller tries again by itself", id)}
	if id.Namespace != "" && w.evidence.Ending(id.Namespace) {
		way.Effect = fmt.Sprintf("%s does not exist, and cannot be made again in a namespace that is being deleted: let the object name another, if it may still be changed; the controller tries again by itself", id)
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

// roughly says a duration without its seconds.
func roughly(d time.Duration) string {
	return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
}

// judgeFailing is an object at which a working controller fails. That counts as stuck when
// nothing else has moved for long; until then it is not known whether it passes.
func (w *walker) judgeFailing(n graph.Node, r ruling, p *controllers.Progress, name string) ruling {
	f := p.Failure
	r.own = []Evidence{f.Evidence}
	r.verdict = Unknown
	unsure := ""
	if stood := w.evidence.Now.Sub(evidence.Latest(f.Since, p.Worked)); stood > f.Patience() {
		r.verdict = Stuck
		if ago := w.evidence.Now.Sub(p.Changed()); !f.Dated && f.Kind != controllers.Paused && ago <= controllers.Quiet {
			r.verdict = Unknown
			unsure = fmt.Sprintf("; it does not say since when, and something has changed %s ago", duration.HumanDuration(ago))
			r.own = append(r.own, p.Evidence)
		}
	}
	first := func(remedies ...Remedy) { r.remedies = append(remedies, r.remedies...) }
	switch f.Kind {
	case controllers.NeedsCreate:
		r.id, r.verdict = finNeedsCreate, Stuck
		r.summary = name + " works, and has to create something in a namespace that is being deleted, which is impossible: " + f.Message
		r.remedies = append(r.remedies, Remedy{Risk: Safe, Effect: "let the controller skip that step, by the switch that its product has for it, or do the step by hand"})
		r.byHand = true
	case controllers.OverQuota:
		r.id = finQuota
		r.summary = name + " works, and cannot create what its clean-up needs: " + f.Message
		first(Remedy{Risk: Safe, Effect: "raise the quota, or relax the level, that the message names; the controller tries again by itself"})
	case controllers.Paused:
		r.id = finFailing
		r.summary = name + " works, and leaves the object alone while it is told to: " + f.Message
		r.remedies = []Remedy{w.resume(p.Pause)}
	case controllers.Failing:
		r.id = finFailing
		r.summary = name + " works, and its clean-up " + w.fails(f) + ": " + f.Message + unsure
		if w.waitsFor(n, &r, f, name) {
			break
		}
		if !w.lacks(n, nil, &r, f.Message) {
			first(Remedy{Risk: Safe, Effect: "repair what the message names; the controller tries again by itself"})
		}
	}
	r.key = strings.Join([]string{string(r.verdict), name, r.about, f.Gist(n.Object().Name)}, " ")
	return r
}

// resume ends a pause.
func (w *walker) resume(p *controllers.Pause) Remedy {
	change := remedy.Replace("/"+strings.ReplaceAll(p.Field, ".", "/"), false)
	if key := p.Annotation; key != "" {
		change = remedy.Remove("/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
	}
	return Remedy{
		Risk: Disruptive, Action: w.patch(p.Object, change),
		Effect: "end the pause, if whoever ordered it agrees: the controller goes on with all that it was kept from, this deletion among it",
	}
}

// waitsFor is a controller that says that other objects have to go first: those of
// its own API that its words name. It reports whether there are any. As long as one of
// them stays, somebody has to delete that.
func (w *walker) waitsFor(n graph.Node, r *ruling, f *controllers.Failure, name string) bool {
	awaited := w.finder.Awaited(n, f.Message)
	if len(awaited) == 0 {
		return false
	}
	stays := slices.IndexFunc(awaited, func(m graph.Node) bool { return !m.BeingDeleted() })
	if stays < 0 {
		r.summary, r.next = name+" waits until "+awaited[0].Identity().String()+" is gone", &awaited[0]
		return true
	}
	id := awaited[stays].Identity()
	r.about = id.String()
	r.summary = fmt.Sprintf("%s works, and waits until %s is gone, which nobody is deleting: %s", name, id, f.Message)
	for _, m := range awaited[:min(len(awaited), evidence.MaxShown)] {
		if !m.BeingDeleted() {
			r.own = append(r.own, evidence.Field(m, "metadata.deletionTimestamp", "not set"))
		}
	}
	r.remedies = append([]Remedy{{
		Risk: Safe, Action: shows("%s delete %s --dry-run", shell.In(w.Plugin, id.Namespace), shell.Target(id)),
		Effect: "see what would go with " + id.String() + ": delete it, if nothing needs it any more, and the controller goes on",
	}}, r.remedies...)
	return true
}

// fails says that something fails, and for how long when that is known and more than a
// moment.
func (w *walker) fails(f *controllers.Failure) string {
	stood := w.evidence.Now.Sub(f.Since)
	if !f.Dated || stood < time.Minute {
		return "fails"
	}
	return "has failed for " + duration.HumanDuration(stood)
}

// judgeDenied is an object that its controller may not change.
func (w *walker) judgeDenied(n graph.Node, s *controllers.Search, c *controllers.Candidate) ruling {
	id := n.Identity()
	at := evidence.Identity(serviceAccounts, c.Account().Namespace, c.Account().Name)
	for _, m := range w.evidence.Named(serviceAccounts.GroupResource(), at.Namespace, at.Name) {
		at = m.Identity()
	}
	summary := fmt.Sprintf("%s works, but its account may neither update nor patch %s, so it cannot remove the finalizer", c.ID(), id.Resource.GroupResource())
	if st := w.finder.StateOf(c.Workload); st.Liveness != controllers.Alive {
		summary = fmt.Sprintf("the account of %s may neither update nor patch %s, so it cannot remove the finalizer; whether it works besides is not certain: %s", c.ID(), id.Resource.GroupResource(), st.Because)
	}
	r := ruling{
		id: finRBAC, key: c.Account().User() + " " + id.Resource.GroupResource().String(), verdict: Stuck, at: &at, summary: summary,
		shared: []Evidence{{
			Source: at.String(), Path: id.Resource.GroupResource().String(),
			Value: w.finder.Says(c.Workload, n),
		}},
		controller: w.actor(s, c, controllers.Denied),
		remedies:   []Remedy{w.askRights(n, c)},
	}
	for _, role := range w.finder.Emptied(c.Workload, n) {
		r.shared = append(r.shared, role.Evidence)
		r.remedies = append(r.remedies, Remedy{
			Risk: Safe, Action: shows("%s get clusterroles -l %s", w.Kubectl, shell.Quote(role.Selector)),
			Effect: "see the roles that " + role.Name + " is put together from: apply the one again, with this label, that allows update or patch",
		})
	}
	if id.Namespace != "" && w.evidence.Ending(id.Namespace) {
		r.key += " ending" // no RoleBinding can be made there
		r.remedies = append([]Remedy{w.grantEverywhere(n, c)}, r.remedies...)
	}
	r.remedies = append(r.remedies, w.readLogs(c.Workload, id.Name))
	return r
}

// grantEverywhere gives a controller the right to change objects of a type by a
// ClusterRoleBinding, since a RoleBinding cannot be made in a namespace that is being
// deleted.
func (w *walker) grantEverywhere(n graph.Node, c *controllers.Candidate) Remedy {
	way := Remedy{Risk: Disruptive, Effect: "a RoleBinding that went with its namespace cannot be made again there: "}
	role := w.finder.RoleFor(n)
	if role == "" {
		way.Effect += "bind the rights to update or patch " + n.Resource().GroupResource().String() + " to " + c.Account().User() + " by a ClusterRole and a ClusterRoleBinding, and take that away when the object is gone"
		return way
	}
	name := "kubectl-gc-" + c.Account().Name
	way.Action = w.does(remedy.GrantOf(evidence.Identity(evidence.ClusterRoleBindings, "", name), remedy.Grant{ClusterRole: role, Namespace: c.Account().Namespace, ServiceAccount: c.Account().Name}))
	way.Effect += "bind ClusterRole/" + role + ", which allows the change, everywhere; delete the ClusterRoleBinding " + name + " when the object is gone"
	way.Loss = loses(remedy.GrantsMore, "until then the controller has the rights of that role in all namespaces")
	return way
}

// askRights asks the API server whether the controller may remove the finalizer.
func (w *walker) askRights(n graph.Node, c *controllers.Candidate) Remedy {
	id := n.Identity()
	command := fmt.Sprintf("%s auth can-i patch %s --as=%s", w.Kubectl, shell.Quote(id.Resource.GroupResource().String()+"/"+id.Name), c.Account().User())
	if id.Namespace != "" {
		command += " -n " + shell.Quote(id.Namespace)
	}
	return Remedy{Risk: Safe, Action: shows("%s", command), Effect: "ask the API server for the same; then apply the RBAC objects of the product's chart or manifest again, and the controller goes on"}
}

// judgeDead is a finalizer whose controller does not run. When it could not
// remove the finalizer either if it did, that is said, too.
func (w *walker) judgeDead(n graph.Node, s *controllers.Search, c *controllers.Candidate) ruling {
	st := w.finder.StateOf(c.Workload)
	r := w.dead(s, c, st)
	if c.Named && w.finder.MayNotChange(c.Workload, n) {
		resource := n.Resource().GroupResource().String()
		r.own = []Evidence{{Source: c.Account().String(), Path: resource, Value: "RBAC lets the controller neither update nor patch it, so it will need that as well"}}
		r.ownRemedies = append(r.ownRemedies, w.askRights(n, c))
	}
	return r
}

// withOthers adds the dead candidates that may be the controller as well.
func (w *walker) withOthers(n graph.Node, r ruling, a *controllers.Answer) ruling {
	others := a.Others()
	if len(others) == 0 {
		return r
	}
	names := []string{a.By.ID().String()}
	for i := range r.remedies {
		r.remedies[i].Effect, r.remedies[i].Partial = "if "+names[0]+" is the controller: "+r.remedies[i].Effect, true
	}
	for _, k := range others {
		names = append(names, k.ID().String())
	}
	r.key, r.summary = strings.Join(names, " "), "nothing decides which of these is the controller, and none of them works: "+strings.Join(names, ", ")
	for _, k := range others {
		r.shared = append(r.shared, k.Describe())
		r.remedies = append(r.remedies, w.tryCandidate(n, k)...)
	}
	return r
}

func (w *walker) dead(s *controllers.Search, c *controllers.Candidate, st controllers.State) ruling {
	at := c.ID()
	return ruling{
		id: finDead, key: c.ID().String(), verdict: Stuck, at: &at, byHand: true,
		summary: "the controller does not work: " + st.Because,
		shared:  st.Evidence, controller: w.actor(s, c, controllers.Dead), remedies: w.revive(c.Workload, st),
	}
}

// judgeInNamespace is a finalizer whose controller goes, or went, down with a
// namespace. c is nil when nothing of it is left.
func (w *walker) judgeInNamespace(n graph.Node, s *controllers.Search, c *controllers.Candidate) ruling {
	r := ruling{id: finInNamespace, verdict: Stuck, byHand: true, controller: w.actor(s, c, controllers.Absent)}
	namespace, shown := s.Went()
	switch {
	case c != nil:
		namespace = c.ID().Namespace
		r.controller.Liveness = controllers.Dead
		r.shared = w.finder.StateOf(c.Workload).Evidence
	case namespace != "":
		r.shared = shown
	default:
		namespace = n.Namespace()
	}
	r.key = namespace + " " + s.Finalizer
	where := Evidence{Source: "Namespace/" + namespace, Value: "is being deleted"}
	r.summary = fmt.Sprintf("the controller ran in the namespace %s, which is being deleted: nothing can be started there", namespace)
	r.remedies = []Remedy{w.runElsewhere(s, namespace)}
	if w.evidence.NamespaceGone(namespace) {
		where.Value = "does not exist any more"
		r.summary = fmt.Sprintf("the controller ran in the namespace %s, which does not exist any more", namespace)
		r.remedies = []Remedy{{
			Risk: Safe, Action: w.create(evidence.Identity(namespaces, "", namespace)), Partial: true,
			Effect: fmt.Sprintf("make the namespace again: then install %s in it, which cleans up and removes its finalizers", s.Whose()),
		}}
	}
	r.shared = append(r.shared, where, s.Looked)
	return r
}

// judgeAbsent is a finalizer that nothing in the cluster serves.
func (w *walker) judgeAbsent(n graph.Node, a *controllers.Answer) ruling {
	s := a.Search
	r := ruling{key: s.Finalizer, verdict: Stuck, byHand: true, shared: []Evidence{s.Looked}, controller: w.actor(s, nil, controllers.Absent)}
	if slices.ContainsFunc(s.Known, func(m finalizers.Match) bool { return m.OffCluster != "" }) { // it was ruled out
		r.shared = append(r.shared, Evidence{Source: "the API server", Path: "version", Value: w.evidence.Server().Version() + ": not where the controller would run out of sight"})
	}
	if a.Is == controllers.Manual {
		r.id = finManual
		r.summary = fmt.Sprintf("somebody set the finalizer %s by hand or in a manifest, and nothing in the cluster serves it", s.Finalizer)
		r.controller.Name = "whoever set it: " + strings.Join(s.Setters, ", ")
		r.remedies = []Remedy{{
			Risk: Safe, Action: shows("%s get %s -o yaml --show-managed-fields", w.kubectl(n), shell.Target(n.Identity())),
			Effect: "see when and with what it was set: ask who set it what it guards",
		}}
		return r
	}
	r.id = finAbsent
	if operator := s.Operator(); operator != "" { // one that is gone leaves all its kinds behind
		r.key, r.kinds = operator, true
	}
	r.summary = fmt.Sprintf("no controller in the cluster removes the finalizer %s", s.Finalizer)
	if name := w.finder.Missing(s); name != "" {
		r.summary += fmt.Sprintf("; %q set it, and no workload is called so", name)
	}
	r.remedies = []Remedy{{Risk: Safe, Effect: "install " + s.Whose() + " again" + w.usually(s.Known) + ": it cleans up and removes the finalizer"}}
	if len(s.Known) == 0 && finalizers.Domain(s.Finalizer) == "" { // it need not be a program's
		r.remedies[0] = Remedy{
			Risk: Safe, Action: shows("%s get %s -o yaml --show-managed-fields", w.kubectl(n), shell.Target(n.Identity())),
			Effect: "see when and with what it was set: ask who set it what it guards; if that was a controller, install it again, and it cleans up",
		}
	}
	return r
}

// judgeUnclear is a finalizer of which it is not known who serves it, or whether
// that works.
func (w *walker) judgeUnclear(n graph.Node, a *controllers.Answer) ruling {
	r := w.unsure(n, a)
	if elsewhere := w.finder.Elsewhere(a.Search); elsewhere != "" && !strings.HasSuffix(elsewhere, finalizers.Always) && len(a.Among) == 0 {
		return w.judgeOutOfSight(n, a.Search, r, elsewhere)
	}
	tied := a.Equals()
	if len(tied) == 0 {
		return r
	}
	full, err := w.evidence.Whole(n)
	if err != nil {
		return r
	}
	// All of them work, so whichever it is, it is the one that fails.
	if p := w.finder.ProgressOf(n, full, nil); p.Failure != nil {
		var names []string
		for _, k := range tied[:min(len(tied), evidence.MaxShown)] {
			names = append(names, k.ID().String())
		}
		r.controller.Name, r.controller.Liveness = strings.Join(names, " or "), controllers.Alive
		return w.judgeFailing(n, r, &p, r.controller.Name)
	}
	return r
}

// judgeOutOfSight is a finalizer that nothing in the cluster serves, and whose controller
// may run where it cannot be seen: it is one or the other, and what the object shows
// tells which.
func (w *walker) judgeOutOfSight(n graph.Node, s *controllers.Search, r ruling, elsewhere string) ruling {
	r.summary = fmt.Sprintf("nothing in this cluster serves the finalizer %s. Its controller may run where it cannot be seen from here (%s); if it does not, nothing will remove the finalizer", s.Finalizer, elsewhere)
	if version := w.evidence.Server().Version(); version != "" {
		r.own = append(r.own, Evidence{Source: "the API server", Path: "version", Value: version})
	}
	r.remedies = []Remedy{
		{
			Risk: Safe, Action: shows("%s get %s -o yaml --show-managed-fields", w.kubectl(n), shell.Target(n.Identity())),
			Effect: "see which: a controller that works has written to the object, or its status, since the deletion began; " +
				"metadata.managedFields has who wrote what and when",
		},
		{Risk: Safe, Effect: "if one does, look for its words where it runs (" + elsewhere + "): nothing here shows why it has not removed the finalizer"},
		{Risk: Safe, Effect: "if none does, install " + s.Whose() + w.usually(s.Known) + ": it cleans up and removes the finalizer"},
	}
	return r
}

// tryCandidate is what to do about one of several candidates.
func (w *walker) tryCandidate(n graph.Node, k *controllers.Contender) []Remedy {
	var remedies []Remedy
	lease := func(effect string) Remedy {
		return Remedy{Risk: Safe, Action: shows("%s get %s -o yaml", shell.In(w.Kubectl, k.State.Lease.Namespace), shell.Target(k.State.Lease)), Effect: effect}
	}
	switch {
	case k.State.Trouble == controllers.NotLeading:
		remedies = []Remedy{lease("see who leads in the place of " + k.ID().String() + ": look there why the finalizer is not removed, or end what should not run there")}
	case k.State.Trouble == controllers.Leaderless:
		remedies = []Remedy{
			lease("see who led last. It is left over if leader election was switched off; otherwise the log of " + k.ID().String() + " says why it does not lead"),
			w.readLogs(k.Workload, ""),
		}
	case k.State.Liveness == controllers.Dead, k.State.Trouble == controllers.Leaving, k.State.Trouble == controllers.NewAccount:
		for _, r := range w.revive(k.Workload, k.State) {
			r.Effect, r.Partial = "if "+k.ID().String()+" is the controller: "+r.Effect, true
			remedies = append(remedies, r)
		}
	case k.State.Unstarted && k.State.Liveness == controllers.Unsure:
		remedies = []Remedy{w.describe(k.Workload, k.State.Pod)}
	default:
		remedies = []Remedy{w.readLogs(k.Workload, n.Object().Name)}
	}
	return remedies
}

// unsure is a finalizer whose controller is not known for certain.
func (w *walker) unsure(n graph.Node, a *controllers.Answer) ruling {
	s, why := a.Search, a.Why
	r := ruling{
		id: finUnknown, key: s.Finalizer + " " + why, verdict: Unknown, controller: w.actor(s, nil, controllers.Unsure), shared: []Evidence{s.Looked},
		summary: fmt.Sprintf("the finalizer %s is there; %s", s.Finalizer, why),
	}
	for i := range a.Among[:min(len(a.Among), evidence.MaxShown)] {
		k := &a.Among[i]
		r.controller.Evidence = append(r.controller.Evidence, k.Describe())
		if k.State.Liveness != controllers.Alive {
			r.controller.Evidence = append(r.controller.Evidence, k.State.Evidence...)
		}
		if !k.Apart() {
			r.remedies = append(r.remedies, w.tryCandidate(n, k)...)
		}
	}
	r.controller.Evidence = append(r.controller.Evidence, w.finder.Possible(n, a)...)
	if s.Vacant() {
		r.remedies = append([]Remedy{{
			Risk: Safe, Effect: "if none that is named here is " + s.Whose() + ", install it again" + w.usually(s.Known) + ": it cleans up and removes the finalizer",
		}}, r.remedies...)
	}
	if i := slices.IndexFunc(a.Among, func(k controllers.Contender) bool { return k.Apart() }); i >= 0 && len(r.remedies) == 0 {
		r.remedies = w.ofItsOwn(n, s, a.Among[i].Candidate)
	}
	r.remedies = append(r.remedies, Remedy{
		Risk: Safe, Action: shows("%s get %s -o yaml --show-managed-fields", w.kubectl(n), shell.Target(n.Identity())),
		Effect: "see the status that the controller of the finalizer has written, and who set it: make the controller work, or install it again, and it cleans up",
	})
	return r
}

// ofItsOwn is what to do where the controller may be one that a namespace had of its own, or
// another, which serves other namespaces.
func (w *walker) ofItsOwn(n graph.Node, s *controllers.Search, other *controllers.Candidate) []Remedy {
	namespace, resource := n.Namespace(), n.Resource().GroupResource().String()
	if !w.evidence.Ending(namespace) {
		return []Remedy{{Risk: Safe, Effect: fmt.Sprintf("install %s that %s had of its own again, and it cleans up; if it is %s that is to serve %s, give %s the right to update %s there",
			s.Whose(), namespace, other.ID(), namespace, other.Account(), resource)}}
	}
	everywhere := w.grantEverywhere(n, other)
	everywhere.Effect = "if it is " + other.ID().String() + " that is to serve " + namespace + ": " + everywhere.Effect
	return []Remedy{w.runElsewhere(s, namespace), everywhere}
}

// runElsewhere has a controller run outside a namespace that is being deleted.
func (w *walker) runElsewhere(s *controllers.Search, namespace string) Remedy {
	return Remedy{
		Risk: Safe, Effect: fmt.Sprintf("run %s in another namespace, with rights in all of them, until it has removed its finalizers; nothing can be installed into %s", s.Whose(), namespace),
	}
}

// usually says where the controller usually runs, and not where nothing can be started.
func (w *walker) usually(known []finalizers.Match) string {
	for _, m := range known {
		for _, l := range m.Workloads {
			switch {
			case l.Namespace == "" || l.Namespace == finalizers.ObjectNamespace:
			case w.evidence.Ending(l.Namespace) && !w.evidence.NamespaceGone(l.Namespace):
				return ", in another namespace than " + l.Namespace + ", which is being deleted"
			default:
				return ", usually " + strings.TrimPrefix(l.Kind+"/"+l.Name, "/") + " in namespace " + l.Namespace
			}
		}
	}
	return ""
}
