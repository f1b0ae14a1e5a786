// SPDX-License-Identifier: Apache-2.0

package finalizer

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/pod"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/workload"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// unclear is a finalizer of which it is not known which controller removes it, or whether
// that works.
func (j *judgement) unclear(a *controllers.Answer) *finding.Cause {
	c := j.unsure(a)
	if agent, node := a.AgentOf(); agent != nil {
		return j.offNode(c, agent, node)
	}
	if elsewhere := j.Finder.Elsewhere(j.s); elsewhere != "" && !strings.HasSuffix(elsewhere, finalizers.Always) && len(a.Among) == 0 {
		return j.outOfSight(c, elsewhere)
	}
	tied := a.Equals()
	if len(tied) == 0 {
		return c
	}
	full, err := j.Whole(j.n.Node)
	if err != nil {
		return c
	}
	// All of them work, so the controller, whichever it is, is the one that fails.
	if p := j.Finder.ProgressOf(j.n.Node, full, nil); p.Failure != nil {
		var names []say.Text
		for _, k := range tied[:min(len(tied), evidence.MaxShown)] {
			names = append(names, say.Plain(k.ID()))
		}
		c.Controller.Name, c.Controller.Liveness = say.Join(Or, names...), controllers.Alive
		return j.failing(c, &p, names...)
	}
	return c
}

// offNode is a finalizer that the agent of a node removes, which does not work there: where the node does not report, that is why.
func (j *judgement) offNode(c *finding.Cause, agent *controllers.Candidate, node string) *finding.Cause {
	machine, err := j.Get(evidence.Nodes, "", node)
	if err != nil {
		return c
	}
	if silence := pod.SilenceOf(j.Reader, machine); silence != nil && silence.Certain {
		j.byHand = true
		c.Kind, c.At, c.Key, c.Verdict = finding.FinDead, agent.ID(), agent.ID().String()+" "+silence.Node.String(), finding.Stuck
		c.Summary, c.Decides = say.Of(AgentDown, silence.Node), say.Text{}
		c.Evidence, c.Controller = finding.Facts(silence.Ready.Fact(silence.Node), silence.Lease), j.actor(agent, controllers.Dead)
		c.Ways = []finding.Way{finding.See(remedy.Look{Words: "describe node", Args: []string{node}}, RepairAgentsNode)}
	}
	return c
}

// outOfSight is a finalizer that no controller in the cluster removes, and whose controller
// may run where it cannot be seen: what the object shows tells whether it does.
func (j *judgement) outOfSight(c *finding.Cause, elsewhere string) *finding.Cause {
	c.Summary, c.Decides = say.Of(MightRunOutside, j.s.Finalizer, elsewhere), say.Plain(elsewhere)
	if version := j.Server().Version(); version != "" {
		c.Own = append(c.Own, finding.At("the API server", "version", version))
	}
	c.Ways = append(j.place(c),
		finding.See(remedy.ManagedFields(j.n.Identity()), FindOutWhether),
		finding.Way{Effect: say.Of(ReadLogOutside, elsewhere)},
		finding.Way{Effect: say.Of(IfNoneInstall, j.s.Whose(), j.usually())},
	)
	return c
}

// place adds what the cluster knows of where the controller runs out of sight, and returns what to do about it.
func (j *judgement) place(c *finding.Cause) []finding.Way {
	full, err := j.Whole(j.n.Node)
	if err != nil {
		return nil
	}
	p := j.Finder.PlaceOf(j.n.Node, full, j.s)
	switch {
	case p == nil:
	case p.Gone:
		c.Key += " " + p.Object.String()
		c.Summary = c.Summary.And(PlaceGone, p.Object)
		c.Evidence = append(c.Evidence, finding.AtSays(p.Object, "", DoesNotExist))
	case p.Lacks.Type != "":
		c.Key += " " + p.Object.String()
		c.Summary = c.Summary.And(PlaceLacks, p.Object, strings.TrimSuffix(p.Lacks.Message, "."))
		if !p.Lacks.Since.IsZero() {
			c.Summary = c.Summary.And(ForLong, duration.HumanDuration(j.since(p.Lacks.Since)))
		}
		c.Evidence = append(c.Evidence, p.Lacks.Fact(p.Object))
		return []finding.Way{finding.See(remedy.YAML(p.Object), RepairPlace, p.Object)}
	}
	return nil
}

// tryCandidate is what to do about one of several candidates.
func (j *judgement) tryCandidate(k *controllers.Contender) []finding.Way {
	switch id, st := k.ID(), k.State; {
	case st.Trouble == controllers.NotLeading:
		return []finding.Way{finding.See(remedy.YAML(st.Lease), SeeLeader, id)}
	case st.Trouble == controllers.Leaderless:
		return []finding.Way{finding.See(remedy.YAML(st.Lease), SeeLastLeader, id), workload.ReadLogs(k.Workload, "")}
	case st.Liveness == controllers.Dead, st.Trouble == controllers.Leaving, st.Trouble == controllers.NewAccount:
		return ifController(k.Candidate, workload.Revive(j.Reader, k.Workload, st))
	case st.Unstarted && st.Liveness == controllers.Unsure:
		return []finding.Way{workload.Describe(k.Workload, st.Pod)}
	case k.Lacks():
		return ifController(k.Candidate, []finding.Way{finding.See(j.askRights(k.Candidate), RestoreRights)})
	}
	return []finding.Way{workload.ReadLogs(k.Workload, j.n.Name())}
}

// unsure is a finalizer whose controller is not known for certain.
func (j *judgement) unsure(a *controllers.Answer) *finding.Cause {
	s := j.s
	c := &finding.Cause{
		Kind: finding.FinUnknown, Key: s.Finalizer + " " + a.Why.String(), Verdict: finding.Unknown,
		Summary: say.Of(StillHas, s.Finalizer, a.Why), Decides: a.Why,
		Evidence: finding.Facts(s.Looked), Own: j.writersUnknown(), Controller: j.actor(nil, controllers.Unsure),
	}
	for i := range a.Among[:min(len(a.Among), evidence.MaxShown)] {
		k := &a.Among[i]
		c.Controller.Among = append(c.Controller.Among, finding.Facts(k.Describe())...)
		if k.State.Liveness != controllers.Alive {
			c.Controller.Among = append(c.Controller.Among, finding.Facts(k.State.Evidence...)...)
		}
		if !k.Apart() && !k.Overlooks() {
			c.Ways = append(c.Ways, j.tryCandidate(k)...)
		}
	}
	c.Controller.Among = append(c.Controller.Among, finding.Facts(j.Finder.Possible(j.n.Node, a)...)...)
	for _, l := range a.Might() {
		if st := j.Finder.StateOf(l); st.Liveness == controllers.Dead {
			c.Ways = append(c.Ways, ifController(&controllers.Candidate{Workload: l}, workload.Revive(j.Reader, l, st))...)
		} else {
			c.Ways = append(c.Ways, workload.ReadLogs(l, j.n.Name()))
		}
	}
	if by := a.Called; by != nil {
		c.Controller.Among = append(c.Controller.Among, finding.Facts(j.Finder.StateOf(by.Workload).Evidence...)...)
		c.Ways = append(c.Ways, ifController(by, []finding.Way{finding.See(j.askRights(by), RestoreRights)})...)
	}
	see := finding.See(remedy.ManagedFields(j.n.Identity()), SeeStatusAndSetter)
	if a.Guessed() {
		first(c, see)
	}
	if s.Vacant() {
		first(c, finding.Way{Effect: say.Of(IfNotNamedReinstall, s.Whose(), j.usually())})
	}
	if i := slices.IndexFunc(a.Among, func(k controllers.Contender) bool { return k.Apart() }); i >= 0 && len(c.Ways) == 0 {
		c.Ways = j.separate(a.Among[i].Candidate)
	}
	if !a.Guessed() {
		c.Ways = append(c.Ways, see)
	}
	return c
}

// writersUnknown says of an object without managed fields that these do not tell who writes it.
func (j *judgement) writersUnknown() []finding.Fact {
	if full, err := j.Whole(j.n.Node); err != nil || len(full.GetManagedFields()) > 0 {
		return nil
	}
	return []finding.Fact{finding.FieldSays(j.n.Node, "metadata.managedFields", NoManagedFields)}
}

// separate is what to do where the controller may be one that a namespace had for itself, or
// another, which serves other namespaces.
func (j *judgement) separate(other *controllers.Candidate) []finding.Way {
	namespace, resource := j.n.Namespace(), j.n.Resource().GroupResource()
	if !j.Ending(namespace) {
		return []finding.Way{{Effect: say.Of(ReinstallOrAllow, j.s.Whose(), namespace, other.ID(), namespace, other.Account().ID(), resource)}}
	}
	everywhere := j.grantEverywhere(other)
	everywhere.Effect = say.Of(IfServes, other.ID(), namespace).Then(everywhere.Effect)
	return []finding.Way{{Effect: say.Of(RunElsewhere, j.s.Whose(), namespace)}, everywhere}
}
