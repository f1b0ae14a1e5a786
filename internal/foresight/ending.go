// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// explained reports whether explain-stuck knows more about the deletion of an object, which
// has begun, than a plan does. Of pods kubelets decide, as long as nothing else holds them.
func explained(n graph.Node) bool {
	return n.BeingDeleted() && (held(n) || !n.Resource().IsPod())
}

// held reports whether an object has a finalizer that is not the garbage collector's.
func held(n graph.Node) bool {
	return slices.ContainsFunc(n.Finalizers(), func(finalizer string) bool { return !graph.IsCollectorFinalizer(finalizer) })
}

// ending finds out how the deletions stand that have begun. The explanation says it, so a
// preview does not promise an end of what explain-stuck calls stuck.
func (l *forecaster) ending(s *Forecast) {
	var objects []types.UID
	for uid := range l.going {
		if n, ok := l.graph.Node(uid); ok && explained(n) {
			objects = append(objects, uid)
		}
	}
	if len(objects) == 0 {
		return
	}
	report := l.explain(objects)
	for i := range report.Objects {
		e := &report.Objects[i]
		for _, f := range e.Findings {
			if l.lifts(e.Object, f) {
				continue
			}
			for _, service := range s.of[e.Object.UID] {
				service.stands(f)
			}
			if f.Cause.Verdict == explain.Stuck && s.stuck[e.Object.UID].IsZero() {
				s.stuck[e.Object.UID] = say.Of(StuckBy, f.Cause.Summary)
			}
		}
	}
}

// explain says of objects how their deletions stand.
func (l *scene) explain(objects []types.UID) *explain.Report {
	return explain.Explain(l.ctx, explain.Input{
		Graph: l.graph, Cluster: l.Source.Cluster, Workloads: l.Workloads, Read: l.now.evidence, Events: l.Source.Events, Catalogue: l.Catalogue,
		Now: l.Source.Now, Server: l.Server, Wait: l.Source.Wait, Passed: l.Source.Passed,
	}, objects)
}

// lifts reports whether the plan itself ends what a finding says of an object: it does the
// garbage collector's work, ends pods, removes what nothing holds, and takes away what is
// there and not being deleted yet.
func (l *forecaster) lifts(id graph.Identity, f explain.Finding) bool {
	if f.Cause.Class == finding.Collector || slices.ContainsFunc(f.Chain, ofCollector) {
		return true
	}
	n, ok := l.graph.Node(f.Cause.Object.UID)
	switch {
	case !ok:
		return false
	case !n.BeingDeleted():
		return l.going[n.UID()]
	case n.Resource().IsPod():
		return !held(n)
	}
	return n.UID() == id.UID && f.Cause.Class == finding.Waits && !held(n) && !n.Resource().IsNamespace()
}

// ofCollector reports whether a step of a chain is the garbage collector's to go.
func ofCollector(link explain.Link) bool {
	return slices.ContainsFunc(finding.Kinds(), func(k explain.Kind) bool { return k.ID == link.Symptom && k.Class == finding.Collector })
}

// stands takes what a finding says of the finalizer, if it is about it.
func (s *FinalizerForecast) stands(f explain.Finding) {
	if len(f.Chain) == 0 || f.Chain[0].Object.UID != s.Object.UID || f.Chain[0].Finalizer != s.Finalizer {
		return
	}
	switch f.Cause.Verdict {
	case explain.Stuck:
		s.whenever(Stuck, say.Of(StuckBy, f.Cause.Summary))
	case explain.Unknown:
		s.whenever(Unclear, say.Of(maybeStuck, f.Cause.Summary))
	}
}

// tellStuck takes what is stuck already, and what cannot go before it, out of what would be
// deleted.
func (s *Forecast) tellStuck(p *preview.Plan) {
	if len(s.stuck) == 0 {
		return
	}
	in, of := map[string]bool{}, map[string]bool{}
	stays := func(o *gc.Outcome, why say.Text) {
		o.Result, o.Reason = gc.Remaining, why
		delete(p.Expected, o.Object.UID)
	}
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		why := s.stuck[o.Object.UID]
		if why.IsZero() || o.Result == gc.Untouched {
			continue
		}
		in[o.Object.Namespace], of[o.Object.Resource.GroupResource().String()] = true, true
		if o.Result != gc.Remaining {
			stays(o, why)
		}
	}
	for i := range p.Report.Outcomes {
		switch o := &p.Report.Outcomes[i]; {
		case o.Result != gc.Deleted && o.Result != gc.Unknown:
		case o.Object.Resource.IsNamespace() && in[o.Object.Name]:
			stays(o, say.Of(contentFirst))
		case o.Object.Resource.IsCRD() && of[o.Object.Name]:
			stays(o, say.Of(instancesFirst))
		}
	}
}
