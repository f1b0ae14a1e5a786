// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// controllers is what a walk has found out about controllers.
type controllers struct {
	allowed  *rights
	running  *inventory
	states   map[graph.Identity]state
	searches map[string]*search
	managers map[string]managers
	authors  int // the objects that were read for who set a finalizer
}

func newControllers() controllers {
	return controllers{
		states: map[graph.Identity]state{}, searches: map[string]*search{}, managers: map[string]managers{},
	}
}

// The identifiers of the catalogue for finalizers of controllers.
const (
	finAbsent      = "fin-absent"
	finDead        = "fin-dead"
	finFailing     = "fin-alive-failing"
	finWorking     = "fin-working"
	finManual      = "fin-manual"
	finRBAC        = "fin-rbac"
	finInNamespace = "fin-operator-in-ns"
	finNeedsCreate = "fin-needs-create"
	finQuota       = "fin-quota"
	finUnknown     = "fin-unknown"
)

// ruling is what is found of one object's finalizer. Objects with the same
// identifier and key share the cause.
type ruling struct {
	id      string
	key     string
	verdict Verdict
	summary string
	// at is the object at fault, nil for the one with the finalizer.
	at *graph.Identity
	// shared is evidence for all, own for the object alone.
	shared, own []Evidence
	controller  *Controller
	remedies    []Remedy
	// byHand: removing the finalizer by hand is a way out, the last one.
	byHand bool
}

// judge says who should remove a finalizer from an object, and why it does not.
func (w *walker) judge(n graph.Node, s *search) ruling {
	ch := w.choose(n, s)
	how, c := ch.how, ch.controller()
	switch helper := w.helper(n, s); {
	case how == works && helper != nil:
		return w.dead(s, helper, w.stateOf(helper.workload))
	case how == works:
		return w.judgeWorking(n, s, c)
	case how == mayNot:
		return w.judgeDenied(n, s, c)
	case how == down && s.orphanLease != nil && !c.strong:
		return w.unsure(n, s, ch.undecided()+"; somebody who is no workload here renews a lease for it")
	case how == down && !c.named && !c.similar(s) && w.possible(n, s) != "":
		return w.unsure(n, s, fmt.Sprintf("its controller may be %s (%s), or another that runs and could remove it: %s", c.id, Dead, w.possible(n, s)))
	case how == down && w.evidence.Ending(c.id.Namespace):
		return w.judgeInNamespace(n, s, c)
	case how == down:
		return w.withOthers(n, w.judgeDead(n, s, c), ch)
	case how == nobody && s.orphanLease != nil:
		return w.judgeWorking(n, s, nil)
	case how == nobody:
		return w.judgeAbsent(n, s)
	}
	return w.judgeUnclear(n, s, ch)
}

// helper returns a workload without which the controller gets nowhere, by the
// catalogue, and that does not work; nil for none.
func (w *walker) helper(n graph.Node, s *search) *candidate {
	for _, m := range s.known {
		for _, usual := range m.Helpers {
			for _, l := range w.inventory().workloads {
				if usual.Is(l.id.Resource.Kind, l.id.Namespace, l.id.Name, n.Namespace()) && w.stateOf(l).liveness == Dead && len(w.inventory().unread) == 0 {
					return &candidate{workload: l, score: strongSign, named: true, identified: true, signs: []Evidence{{
						Source: l.id.String(), Path: "metadata.name", Value: "has to run beside the " + s.whose() + ", by the catalogue of finalizers",
					}}}
				}
			}
		}
	}
	return nil
}

// whose names the controller for a sentence.
func (s *search) whose() string {
	for _, m := range s.known {
		return cmp.Or(m.Controller, "controller") + " of " + m.Product
	}
	return "controller of " + s.finalizer
}

// actor describes the controller for the report.
func (w *walker) actor(s *search, c *candidate, liveness string) *Controller {
	actor := &Controller{Name: "the " + s.whose(), Liveness: liveness}
	if c != nil {
		actor.Name = c.id.String()
		if len(s.known) > 0 {
			actor.Name += " (" + s.known[0].Product + ")"
		}
		actor.Evidence = append(actor.Evidence, c.signs[:min(len(c.signs), evidence.MaxShown)]...)
		if liveness != Dead { // those are of the cause itself
			actor.Evidence = append(actor.Evidence, w.stateOf(c.workload).evidence...)
		}
		actor.Evidence = append(actor.Evidence, Evidence{Source: "logs", Value: w.logs(c.workload, "")})
	}
	for _, m := range s.known {
		actor.Evidence = append(actor.Evidence, entryEvidence(m)...)
	}
	return actor
}

// entryEvidence is what the catalogue says of a finalizer.
func entryEvidence(m finalizers.Match) []Evidence {
	var facts []Evidence
	add := func(what, value string) {
		if value != "" {
			facts = append(facts, Evidence{Source: "the catalogue of finalizers", Path: what, Value: value})
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
func (w *walker) judgeWorking(n graph.Node, s *search, c *candidate) ruling {
	name := "the " + s.whose()
	r := ruling{controller: w.actor(s, c, Alive)}
	if c != nil {
		name = c.id.String()
		r.remedies = []Remedy{w.readLogs(c.workload, n.Object().Name)}
	} else {
		r.shared = []Evidence{*s.orphanLease}
	}
	full, err := w.evidence.Whole(n)
	if err != nil {
		r.id, r.key, r.verdict = finUnknown, "unread "+name, Unknown
		r.summary = name + " works; how far it is with the object could not be read"
		r.own = []Evidence{evidence.Field(n, "", err.Error())}
		return r
	}
	p := w.progressOf(n, full)
	if p.failure != nil {
		return w.judgeFailing(r, &p, name)
	}
	idle := w.evidence.Now.Sub(evidence.Latest(evidence.Requested(n.Object()), p.moved))
	r.id, r.verdict = finWorking, Progressing
	r.summary = fmt.Sprintf("%s works and has still to remove the finalizer %s", name, s.finalizer)
	if !p.moved.IsZero() {
		r.own = []Evidence{p.evidence}
	}
	if idle > quiet {
		r.verdict = Unknown
		r.summary += fmt.Sprintf("; it has shown no progress for %s", roughly(idle))
		if c != nil && c.selector != nil {
			r.remedies = append(r.remedies, w.restart(c.workload))
		}
	}
	r.key = string(r.verdict) + " " + name + " " + s.finalizer
	return r
}

// roughly says a duration without its seconds.
func roughly(d time.Duration) string {
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// judgeFailing is an object at which a working controller fails.
// That counts as stuck when nothing else has moved for long.
func (w *walker) judgeFailing(r ruling, p *progress, name string) ruling {
	f := p.failure
	r.own = []Evidence{f.evidence}
	stood := w.evidence.Now.Sub(evidence.Latest(f.since, p.worked))
	switch f.kind {
	case needsCreate:
		r.id, r.verdict = finNeedsCreate, Stuck
		r.summary = name + " works, and has to create something in a namespace that is being deleted, which is impossible: " + f.message
		r.remedies = append(r.remedies, Remedy{Risk: Safe, Effect: "let the controller skip that step, by the switch that its product has for it, or do the step by hand"})
		r.byHand = true
	case overQuota:
		r.id, r.verdict = finQuota, Progressing
		r.summary = name + " works, and cannot create what its clean-up needs: " + f.message
		r.remedies = append([]Remedy{{Risk: Safe, Effect: "raise the quota, or relax the level, that the message names; the controller tries again by itself"}}, r.remedies...)
	case failing:
		r.id, r.verdict = finFailing, Progressing
		r.summary = name + " works, and its clean-up fails: " + f.message
		r.remedies = append([]Remedy{{Risk: Safe, Effect: "repair what the message names; the controller tries again by itself"}}, r.remedies...)
	}
	if f.kind != needsCreate && stood > sameFailure {
		r.verdict = Stuck
	}
	r.key = string(r.verdict) + " " + name
	return r
}

// judgeDenied is an object that its controller may not change.
func (w *walker) judgeDenied(n graph.Node, s *search, c *candidate) ruling {
	id := n.Identity()
	at := evidence.Identity(serviceAccounts, c.account.namespace, c.account.name)
	for _, m := range w.evidence.Instances(serviceAccounts.GroupResource()) {
		if m.Namespace() == at.Namespace && m.Object().Name == at.Name {
			at = m.Identity()
		}
	}
	return ruling{
		id: finRBAC, key: c.account.user() + " " + id.Resource.GroupResource().String(), verdict: Stuck, at: &at,
		summary: fmt.Sprintf("%s works, but its account may neither update nor patch %s, so it cannot remove the finalizer", c.id, id.Resource.GroupResource()),
		shared: []Evidence{{
			Source: at.String(), Path: id.Resource.GroupResource().String(),
			Value: w.rights().said(c.account, id.Resource.GroupResource(), id.Namespace, id.Name),
		}},
		controller: w.actor(s, c, Denied),
		remedies: []Remedy{
			w.askRights(n, c),
			w.readLogs(c.workload, id.Name),
		},
	}
}

// askRights asks the API server whether the controller may remove the finalizer.
func (w *walker) askRights(n graph.Node, c *candidate) Remedy {
	id := n.Identity()
	command := fmt.Sprintf("%s auth can-i patch %s --as=%s", w.Kubectl, shell.Quote(id.Resource.GroupResource().String()+"/"+id.Name), c.account.user())
	if id.Namespace != "" {
		command += " -n " + shell.Quote(id.Namespace)
	}
	return Remedy{Risk: Safe, Command: command, Effect: "asks the API server for the same; then apply the RBAC objects of the product's chart or manifest again, and the controller goes on"}
}

// judgeDead is a finalizer whose controller does not run. When it could not
// remove the finalizer either if it did, that is said, too.
func (w *walker) judgeDead(n graph.Node, s *search, c *candidate) ruling {
	st := w.stateOf(c.workload)
	r := w.dead(s, c, st)
	id := n.Identity()
	if rights := w.rights(); c.named && !c.elsewhere && len(rights.unread) == 0 && !rights.mayChange(c.account, id.Resource.GroupResource(), id.Namespace, id.Name) {
		resource := id.Resource.GroupResource().String()
		r.own = []Evidence{{Source: "ServiceAccount/" + c.account.namespace + "/" + c.account.name, Path: resource, Value: "RBAC lets the controller neither update nor patch it, so it will need that as well"}}
		r.remedies = append(r.remedies, w.askRights(n, c))
	}
	return r
}

// withOthers adds the dead candidates that may be the controller as well.
func (w *walker) withOthers(n graph.Node, r ruling, ch choice) ruling {
	for i := range ch.among[:min(len(ch.among), evidence.MaxShown)] {
		k := &ch.among[i]
		if k.candidate == ch.best.candidate || k.how != down || !k.rivals() || ch.best.beats(k) {
			continue
		}
		r.shared = append(r.shared, k.describe())
		r.remedies = append(r.remedies, w.tryCandidate(n, k)...)
	}
	return r
}

func (w *walker) dead(s *search, c *candidate, st state) ruling {
	at := c.id
	return ruling{
		id: finDead, key: c.id.String(), verdict: Stuck, at: &at, byHand: true,
		summary: "the controller does not work: " + st.because,
		shared:  st.evidence, controller: w.actor(s, c, Dead), remedies: w.revive(c.workload, st),
	}
}

// judgeInNamespace is a finalizer whose controller goes, or went, down with a
// namespace. c is nil when nothing of it is left.
func (w *walker) judgeInNamespace(n graph.Node, s *search, c *candidate) ruling {
	r := ruling{id: finInNamespace, verdict: Stuck, byHand: true, controller: w.actor(s, c, Absent)}
	namespace := n.Namespace()
	switch {
	case c != nil:
		namespace = c.id.Namespace
		r.controller.Liveness = Dead
		r.shared = w.stateOf(c.workload).evidence
	case len(s.lost) > 0:
		namespace = s.lost[0].subject.Namespace
		for _, g := range s.lost[:min(len(s.lost), evidence.MaxShown)] {
			r.shared = append(r.shared, g.evidence())
		}
	case len(s.lostServices) > 0:
		r.shared = s.lostServices[:min(len(s.lostServices), evidence.MaxShown)]
		namespace, _, _ = strings.Cut(strings.TrimPrefix(s.lostServices[0].Value, "Service/"), "/")
	}
	r.key = namespace + " " + s.finalizer
	condition := "does not exist any more"
	if !w.evidence.NamespaceGone(namespace) {
		condition = "is being deleted"
	}
	r.shared = append(r.shared, Evidence{Source: "Namespace/" + namespace, Value: condition}, s.looked)
	r.summary = fmt.Sprintf("the controller ran in the namespace %s, which %s: nothing can be started there", namespace, condition)
	r.remedies = []Remedy{{
		Risk: Safe, Effect: fmt.Sprintf("run the %s in another namespace, with rights in all of them, until it has removed its finalizers; nothing can be installed into %s", s.whose(), namespace),
	}}
	return r
}

// judgeAbsent is a finalizer for which no workload was found.
func (w *walker) judgeAbsent(n graph.Node, s *search) ruling {
	switch why := s.doubt(); {
	case why != "":
		return w.unsure(n, s, why)
	case w.inEnding(n, s):
		return w.judgeInNamespace(n, s, nil)
	}
	if names := w.possible(n, s); names != "" {
		return w.unsure(n, s, "nothing says whose it is; what runs and could remove it: "+names)
	}
	r := ruling{key: s.finalizer, verdict: Stuck, byHand: true, shared: []Evidence{s.looked}, controller: w.actor(s, nil, Absent)}
	if s.byPerson() {
		r.id = finManual
		r.summary = fmt.Sprintf("somebody set the finalizer %s by hand or in a manifest, and nothing in the cluster serves it", s.finalizer)
		r.controller.Name = "whoever set it: " + strings.Join(s.setters, ", ")
		r.remedies = []Remedy{{
			Risk: Safe, Command: fmt.Sprintf("%s get %s -o yaml --show-managed-fields", w.kubectl(n), shell.Target(n.Identity())),
			Effect: "shows when and with what it was set: ask who set it what it guards",
		}}
		return r
	}
	r.id = finAbsent
	r.summary = fmt.Sprintf("nothing in the cluster serves the finalizer %s", s.finalizer)
	r.remedies = []Remedy{{Risk: Safe, Effect: "install the " + s.whose() + " again" + s.usually() + ": it cleans up and removes the finalizer"}}
	return r
}

// usually says where the controller usually runs.
func (s *search) usually() string {
	for _, m := range s.known {
		for _, l := range m.Workloads {
			if l.Namespace != "" && l.Namespace != finalizers.ObjectNamespace {
				return ", usually " + strings.TrimPrefix(l.Kind+"/"+l.Name, "/") + " in namespace " + l.Namespace
			}
		}
	}
	return ""
}

// byPerson reports whether only people set the finalizer, and nothing of a
// product is there for it.
func (s *search) byPerson() bool {
	return len(s.known) == 0 && !s.domainServed && len(s.setters) > 0 && !slices.ContainsFunc(s.setters, func(m string) bool { return !isPerson(m) })
}

// inEnding reports whether the controller was in a namespace that is going or
// gone.
func (w *walker) inEnding(n graph.Node, s *search) bool {
	if slices.ContainsFunc(s.lost, func(g grant) bool { return w.evidence.Ending(g.subject.Namespace) }) || len(s.lostServices) > 0 {
		return true
	}
	return local(s.known) && n.Namespace() != "" && w.evidence.Ending(n.Namespace())
}

// doubt says why finding nothing does not show that nothing is there, empty if
// it does.
func (s *search) doubt() string {
	for _, m := range s.known {
		if m.OffCluster != "" {
			return "its controller may run where it cannot be seen from here: " + m.OffCluster
		}
	}
	working := slices.DeleteFunc(slices.Clone(s.workers), func(m string) bool { return m == "kube-apiserver" || m == "kube-controller-manager" })
	switch {
	case len(s.unread) > 0:
		return "whether its controller is there is not known: " + strings.Join(s.unread, ", ") + " could not be read"
	case len(working) > 0:
		return fmt.Sprintf("%q has changed the object since its deletion, and where that runs is not known", working[0])
	case len(s.outside) > 0:
		return fmt.Sprintf("%s may change such objects by a rule of its own (%s), and where it runs is not known", s.outside[0].subject, s.outside[0].role)
	}
	return ""
}

// possible names the workloads that work, could change the object, and may
// therefore serve a finalizer that nothing else tells anything about.
func (w *walker) possible(n graph.Node, s *search) string {
	id := n.Identity()
	if len(s.known) > 0 {
		return ""
	}
	if said, known := s.possible[id.Namespace]; known {
		return said
	}
	var names []string
	for _, l := range w.inventory().workloads {
		may := !isPerson(l.id.Name) && w.rights().mayChange(l.account, id.Resource.GroupResource(), id.Namespace, id.Name)
		c := candidate{workload: l}
		// What a person set is nobody's by its name: whoever may change anything is
		// asked, and not those who have a rule for the type, as many have.
		stranger := s.byPerson() && !c.similar(s) && !w.rights().mayAll(l.account, id.Namespace)
		if !may || stranger || w.stateOf(l).liveness == Dead {
			continue
		}
		if names = append(names, l.id.String()); len(names) == evidence.MaxShown {
			break
		}
	}
	s.possible[id.Namespace] = strings.Join(names, ", ")
	return s.possible[id.Namespace]
}

// judgeUnclear is a finalizer that has candidates, between which nothing
// decides, or of which the best may not work.
func (w *walker) judgeUnclear(n graph.Node, s *search, ch choice) ruling {
	r := w.unsure(n, s, ch.undecided())
	if len(ch.tied) < 2 || slices.ContainsFunc(ch.among, func(k contender) bool { return k.rivals() }) {
		return r
	}
	full, err := w.evidence.Whole(n)
	if err != nil {
		return r
	}
	// All of them work, so whichever it is, it is the one that fails.
	if p := w.progressOf(n, full); p.failure != nil {
		var names []string
		for _, k := range ch.tied[:min(len(ch.tied), evidence.MaxShown)] {
			names = append(names, k.id.String())
		}
		r.controller.Name, r.controller.Liveness = strings.Join(names, " or "), Alive
		return w.judgeFailing(r, &p, r.controller.Name)
	}
	return r
}

// tryCandidate is what to do about one of several candidates.
func (w *walker) tryCandidate(n graph.Node, k *contender) []Remedy {
	var remedies []Remedy
	lease := func(effect string) Remedy {
		return Remedy{Risk: Safe, Command: fmt.Sprintf("%s get %s -o yaml", shell.In(w.Kubectl, k.state.lease.Namespace), shell.Target(k.state.lease)), Effect: effect}
	}
	switch {
	case k.state.trouble == notLeading:
		remedies = []Remedy{lease("shows who leads in the place of " + k.id.String() + ": look there why the finalizer is not removed, or end what should not run there")}
	case k.state.trouble == leaderless:
		remedies = []Remedy{
			lease("shows who led last. It is left over if leader election was switched off; otherwise the log of " + k.id.String() + " says why it does not lead"),
			w.readLogs(k.workload, ""),
		}
	case k.state.liveness == Dead, k.state.trouble == leaving, k.state.trouble == newAccount:
		for _, r := range w.revive(k.workload, k.state) {
			r.Effect = "if " + k.id.String() + " is the controller: " + r.Effect
			remedies = append(remedies, r)
		}
	default:
		remedies = []Remedy{w.readLogs(k.workload, n.Object().Name)}
	}
	return remedies
}

// unsure is a finalizer whose controller is not known for certain.
func (w *walker) unsure(n graph.Node, s *search, why string) ruling {
	r := ruling{
		id: finUnknown, key: s.finalizer + " " + why, verdict: Unknown, controller: w.actor(s, nil, Unsure), shared: []Evidence{s.looked},
		summary: fmt.Sprintf("the finalizer %s is there; %s", s.finalizer, why),
	}
	among := w.contenders(n, s)
	for i := range among[:min(len(among), evidence.MaxShown)] {
		k := &among[i]
		r.controller.Evidence = append(r.controller.Evidence, k.describe())
		if k.state.liveness != Alive {
			r.controller.Evidence = append(r.controller.Evidence, k.state.evidence...)
		}
		r.remedies = append(r.remedies, w.tryCandidate(n, k)...)
	}
	r.remedies = append(r.remedies, Remedy{
		Risk: Safe, Command: fmt.Sprintf("%s get %s -o yaml --show-managed-fields", w.kubectl(n), shell.Target(n.Identity())),
		Effect: "shows the status that the controller of the finalizer has written, and who set it: make the controller work, or install it again, and it cleans up",
	})
	return r
}
