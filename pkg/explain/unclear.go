// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/workload"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// unclear is a finalizer of which it is not known which controller removes it, or whether
// that works.
func (j *judgement) unclear(a *controllers.Answer) ruling {
	r := j.unsure(a)
	if elsewhere := j.finder.Elsewhere(j.s); elsewhere != "" && !strings.HasSuffix(elsewhere, finalizers.Always) && len(a.Among) == 0 {
		return j.outOfSight(r, elsewhere)
	}
	tied := a.Equals()
	if len(tied) == 0 {
		return r
	}
	full, err := j.evidence.Whole(j.n)
	if err != nil {
		return r
	}
	// All of them work, so the controller, whichever it is, is the one that fails.
	if p := j.finder.ProgressOf(j.n, full, nil); p.Failure != nil {
		var names []string
		for _, k := range tied[:min(len(tied), evidence.MaxShown)] {
			names = append(names, k.ID().String())
		}
		r.controller.Name, r.controller.Liveness = strings.Join(names, " or "), controllers.Alive
		return j.failing(r, &p, r.controller.Name)
	}
	return r
}

// outOfSight is a finalizer that no controller in the cluster removes, and whose controller
// may run where it cannot be seen: what the object shows tells whether it does.
func (j *judgement) outOfSight(r ruling, elsewhere string) ruling {
	r.summary = fmt.Sprintf(mightRunOutside, j.s.Finalizer, elsewhere)
	if version := j.evidence.Server().Version(); version != "" {
		r.own = append(r.own, Evidence{Source: "the API server", Path: "version", Value: version})
	}
	r.remedies = []Remedy{
		{Risk: Safe, Action: managedFields(j.Kubectl, j.n.Identity()), Effect: findOutWhether},
		{Risk: Safe, Effect: fmt.Sprintf(readLogOutside, elsewhere)},
		{Risk: Safe, Effect: fmt.Sprintf(ifNoneInstall, j.s.Whose(), j.usually())},
	}
	return r
}

// tryCandidate is what to do about one of several candidates.
func (j *judgement) tryCandidate(k *controllers.Contender) []Remedy {
	id, st := k.ID(), k.State
	lease := func(effect string) Remedy {
		return Remedy{Risk: Safe, Action: shows("%s get %s -o yaml", shell.In(j.Kubectl, st.Lease.Namespace), shell.Target(st.Lease)), Effect: effect}
	}
	switch {
	case st.Trouble == controllers.NotLeading:
		return []Remedy{lease(fmt.Sprintf(seeLeader, id))}
	case st.Trouble == controllers.Leaderless:
		return []Remedy{lease(fmt.Sprintf(seeLastLeader, id)), j.readLogs(k.Workload, "")}
	case st.Liveness == controllers.Dead, st.Trouble == controllers.Leaving, st.Trouble == controllers.NewAccount:
		remedies := j.remedies(workload.Revive(j.evidence, k.Workload, st))
		for i := range remedies {
			remedies[i].Effect, remedies[i].Partial = fmt.Sprintf(ifController, id, remedies[i].Effect), true
		}
		return remedies
	case st.Unstarted && st.Liveness == controllers.Unsure:
		return j.remedies([]finding.Way{workload.Describe(k.Workload, st.Pod)})
	}
	return []Remedy{j.readLogs(k.Workload, j.n.Name())}
}

// unsure is a finalizer whose controller is not known for certain.
func (j *judgement) unsure(a *controllers.Answer) ruling {
	s := j.s
	r := ruling{
		id: finding.FinUnknown, key: s.Finalizer + " " + a.Why, verdict: Unknown, controller: j.actor(nil, controllers.Unsure), shared: []Evidence{s.Looked},
		summary: fmt.Sprintf(stillHas, s.Finalizer, a.Why),
	}
	for i := range a.Among[:min(len(a.Among), evidence.MaxShown)] {
		k := &a.Among[i]
		r.controller.Evidence = append(r.controller.Evidence, k.Describe())
		if k.State.Liveness != controllers.Alive {
			r.controller.Evidence = append(r.controller.Evidence, k.State.Evidence...)
		}
		if !k.Apart() {
			r.remedies = append(r.remedies, j.tryCandidate(k)...)
		}
	}
	r.controller.Evidence = append(r.controller.Evidence, j.finder.Possible(j.n, a)...)
	r.own = j.writersUnknown()
	if s.Vacant() {
		r.remedies = append([]Remedy{{Risk: Safe, Effect: fmt.Sprintf(ifNotNamedReinstall, s.Whose(), j.usually())}}, r.remedies...)
	}
	if i := slices.IndexFunc(a.Among, func(k controllers.Contender) bool { return k.Apart() }); i >= 0 && len(r.remedies) == 0 {
		r.remedies = j.separate(a.Among[i].Candidate)
	}
	r.remedies = append(r.remedies, Remedy{Risk: Safe, Action: managedFields(j.Kubectl, j.n.Identity()), Effect: seeStatusAndSetter})
	return r
}

// writersUnknown says of an object without managed fields that these do not tell who writes it.
func (j *judgement) writersUnknown() []Evidence {
	if full, err := j.evidence.Whole(j.n); err != nil || len(full.GetManagedFields()) > 0 {
		return nil
	}
	return []Evidence{evidence.Field(j.n, "metadata.managedFields", noManagedFields)}
}

// separate is what to do where the controller may be one that a namespace had for itself, or
// another, which serves other namespaces.
func (j *judgement) separate(other *controllers.Candidate) []Remedy {
	namespace, resource := j.n.Namespace(), j.n.Resource().GroupResource()
	if !j.evidence.Ending(namespace) {
		return []Remedy{{Risk: Safe, Effect: fmt.Sprintf(reinstallOrAllow, j.s.Whose(), namespace, other.ID(), namespace, other.Account(), resource)}}
	}
	everywhere := j.grantEverywhere(other)
	everywhere.Effect = fmt.Sprintf(ifServes, other.ID(), namespace, everywhere.Effect)
	return []Remedy{{Risk: Safe, Effect: fmt.Sprintf(runElsewhere, j.s.Whose(), namespace)}, everywhere}
}

// readLogs shows what a workload logs of an object, or with no name all.
func (d commands) readLogs(l *controllers.Workload, name string) Remedy {
	return d.remedies([]finding.Way{workload.ReadLogs(l, name)})[0]
}
