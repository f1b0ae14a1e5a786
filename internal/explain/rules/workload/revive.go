// SPDX-License-Identifier: Apache-2.0

// Package workload has the ways to get a controller, or another workload, to run again.
package workload

import (
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// ReadLogs shows what a workload logs, of an object's name only what concerns it; of one that has not run, its events.
func ReadLogs(l *controllers.Workload, name string) finding.Way {
	if l.Speaker() == "" { // nothing of it need be wrong
		way := Describe(l, "")
		way.Effect = say.Of(ReadEventsOf, l.ID())
		return way
	}
	return finding.See(remedy.Logs(l.ID(), l.Speaker(), name), ReadLog, l.ID())
}

// Describe shows a workload, or one of its pods, with its events.
func Describe(l *controllers.Workload, pod string) finding.Way {
	what := l.Ref()
	if pod != "" {
		what = "pod/" + pod
	}
	return finding.See(remedy.Look{Words: "describe", Of: l.ID(), Args: []string{what}}, ReadEvents)
}

// Restart is the way to restart a workload, for a reason. Only those that roll out a changed template have one.
func Restart(l *controllers.Workload, why say.Text) []finding.Way {
	if !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, l.ID().Resource.Kind) {
		return nil
	}
	return []finding.Way{{Effect: why, Op: &remedy.Op{Verb: remedy.Restart, Object: l.ID()}}}
}

// succeed returns the ways to replace a workload that is being deleted, or its last pod that is.
func succeed(r *evidence.Reader, l *controllers.Workload, st controllers.State) []finding.Way {
	switch {
	case st.Next != nil:
		return Revive(r, l, *st.Next)
	case l.IsPod() || l.Leaves():
		return []finding.Way{{Effect: say.Of(ReplaceLeaving, l.ID())}}
	}
	return []finding.Way{finding.See(explained(l.ID().Namespace, "pod/"+st.Pod), SeePod)}
}

// explained shows what blocks an object.
func explained(namespace, object string) remedy.Look {
	return remedy.Look{Plugin: true, Words: "explain-stuck", Of: graph.Identity{Namespace: namespace}, Args: []string{object}}
}

// Revive returns the ways to get a controller to run again, by what is wrong
// with it. In a namespace that is being deleted, no pod and no account can be created.
func Revive(r *evidence.Reader, l *controllers.Workload, st controllers.State) []finding.Way {
	account := l.Account()
	if namespace := l.ID().Namespace; r.Ending(namespace) {
		return []finding.Way{{Effect: say.Of(RunOutside, l.ID(), namespace)}}
	}
	switch st.Trouble {
	case controllers.ScaledDown:
		return []finding.Way{ScaleUp(r, l.ID(), say.Of(ScaleUpAgain))}
	case controllers.Crashing:
		previous := remedy.Look{Words: "logs", Of: l.ID(), Args: []string{"pod/" + st.Pod}, Flags: " --all-containers --previous"}
		return []finding.Way{finding.See(previous, ReadCrash), Describe(l, st.Pod)}
	case controllers.Hung:
		return append([]finding.Way{ReadLogs(l, "")}, Restart(l, say.Of(RestartHung))...)
	case controllers.Leaving:
		if st.Next == nil && l.Replicas == 0 && !l.Leaves() { // its last pods go
			return []finding.Way{ScaleUp(r, l.ID(), say.Of(ScaleUpAgain))}
		}
		return succeed(r, l, st)
	case controllers.NoAccount:
		again := remedy.Op{Verb: remedy.Create, Object: account.ID()}
		return append([]finding.Way{finding.Does(again, RecreateAccount)}, Restart(l, say.Of(RestartForToken))...)
	case controllers.NewAccount:
		return Restart(l, say.Of(RestartForToken))
	case controllers.LeavingAccount:
		return append([]finding.Way{finding.See(explained(account.Namespace, "serviceaccount/"+account.Name), SeeAccount)},
			Restart(l, say.Of(RestartForToken))...)
	case controllers.NotStarted:
		return []finding.Way{Describe(l, st.Pod)}
	case controllers.Suspended:
		return []finding.Way{finding.Does(remedy.PatchOf(l.ID(), remedy.Test("/spec/suspend", true), remedy.Replace("/spec/suspend", false)),
			EndSuspension).At(finding.Safe)}
	case controllers.NoPods:
		ways := []finding.Way{Describe(l, "")}
		if controllers.OfQuota(st.Obstacle) {
			quotas := remedy.Look{Words: "get resourcequota", Of: graph.Identity{Namespace: l.ID().Namespace}}
			ways = append([]finding.Way{finding.See(quotas, RaiseQuota)}, ways...)
		}
		if l.Paused {
			ways = append(ways, finding.Does(remedy.Op{Verb: remedy.Resume, Object: l.ID()}, ResumeRollout))
		}
		return ways
	}
	return []finding.Way{Describe(l, st.Pod)}
}
