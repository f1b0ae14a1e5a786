// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/preview"
)

// waves puts what a plan deletes into an order in which nothing goes before what needs
// it: what waits for a controller of the plan, then what would refuse or break requests
// without its backend, then definitions, then the rest. There are none when nothing
// needs anything that goes.
func (l *looker) waves(s *Sight) []preview.Wave {
	if len(l.Plan.Job.Targets) == 0 {
		return nil
	}
	first, callers := l.early(s), l.callers()
	if len(first) == 0 && (s.blind == "" || len(callers) == 0) {
		return nil
	}
	var waves []preview.Wave
	if len(first) > 0 {
		waves = []preview.Wave{{Objects: first, Why: "their controllers go by this plan, too, and have to be there to remove their finalizers"}}
	}
	in := map[types.UID]bool{}
	for _, id := range first {
		in[id.UID] = true
	}
	take := func(why string, ids []graph.Identity, is func(graph.Identity) bool) {
		var taken []graph.Identity
		for _, id := range ids {
			if is(id) && !in[id.UID] {
				taken, in[id.UID] = append(taken, id), true
			}
		}
		if len(taken) > 0 {
			waves = append(waves, preview.Wave{Objects: taken, Why: why})
		}
	}
	take("what answers their requests goes by this plan, and without it they refuse", callers, func(graph.Identity) bool { return true })
	take("their instances have to be gone before what serves them is", l.Plan.Job.Targets, func(id graph.Identity) bool { return id.Resource.IsCRD() })
	take("nothing that is left needs them", l.Plan.Job.Targets, func(graph.Identity) bool { return true })
	return waves
}

// early returns what has to be deleted first, in the order of its identities. Some of it
// may stay in any order: then nothing is destroyed that could still free it.
func (l *looker) early(s *Sight) []graph.Identity {
	var first []graph.Identity
	for i := range s.Services {
		service := &s.Services[i]
		n, known := l.node(service.Object.UID)
		if !service.Early || !known || n.BeingDeleted() || slices.ContainsFunc(first, func(id graph.Identity) bool { return id.UID == service.Object.UID }) {
			continue
		}
		first = append(first, service.Object)
	}
	return first
}

// callers returns the webhook configurations and APIServices among the targets whose
// backend goes.
func (l *looker) callers() []graph.Identity {
	var callers []graph.Identity
	for _, id := range l.Plan.Job.Targets {
		switch id.Resource.Group {
		case "admissionregistration.k8s.io", "apiregistration.k8s.io":
			callers = append(callers, id)
		}
	}
	return callers
}
