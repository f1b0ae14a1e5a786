// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"regexp"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// logs is a command that shows the log of a workload, of an object's name only
// what concerns it.
func (w *walker) logs(l *controllers.Workload, name string) string {
	command := fmt.Sprintf("%s logs %s --all-containers --since=1h", shell.In(w.Kubectl, l.ID().Namespace), shell.Quote(l.Ref()))
	if name != "" {
		command += " | grep -iwE " + shell.Quote(regexp.QuoteMeta(name)+"|finaliz[a-z]*")
	}
	return command
}

func (w *walker) readLogs(l *controllers.Workload, name string) Remedy {
	return Remedy{Risk: Safe, Action: shows("%s", w.logs(l, name)), Effect: "see what " + l.ID().String() + " says about it"}
}

func (w *walker) describe(l *controllers.Workload, pod string) Remedy {
	what := l.Ref()
	if pod != "" {
		what = "pod/" + pod
	}
	return Remedy{
		Risk: Safe, Action: shows("%s describe %s", shell.In(w.Kubectl, l.ID().Namespace), shell.Quote(what)),
		Effect: "see the events that say what is wrong: repair that, and the controller starts, cleans up and removes the finalizer",
	}
}

func (w *walker) restart(l *controllers.Workload) Remedy {
	return Remedy{
		Risk: Disruptive, Action: w.does(remedy.Op{Verb: remedy.Restart, Object: l.ID()}),
		Effect: "start the controller anew, when its log shows that it hangs; what else it does is interrupted",
	}
}

// newToken starts a workload anew whose account was made again. A pod by itself
// cannot be.
func (w *walker) newToken(l *controllers.Workload) []Remedy {
	if l.IsPod() {
		return nil
	}
	r := w.restart(l)
	r.Effect = "give the controller a token of the new account, since that of the old one is never accepted again: it cleans up and removes the finalizer"
	return []Remedy{r}
}

// succeed returns the ways to get something in the place of a workload that is being deleted,
// or of its last pod that is.
func (w *walker) succeed(l *controllers.Workload, st controllers.State) []Remedy {
	switch {
	case st.Next != nil:
		return w.revive(l, *st.Next)
	case l.IsPod() || l.Leaves():
		return []Remedy{{
			Risk: Safe, Effect: "find out who deletes " + l.ID().String() + " and why, and when it is gone, install it again from its chart or manifest: it cleans up and removes the finalizer",
		}}
	}
	return []Remedy{{
		Risk: Safe, Action: shows("%s explain-stuck %s", shell.In(w.Plugin, l.ID().Namespace), shell.Quote("pod/"+st.Pod)),
		Effect: "see what keeps that pod from its end: when it has ended, another takes its place, cleans up and removes the finalizer",
	}}
}

// revive returns the ways to get a controller to run again, by what is wrong
// with it.
func (w *walker) revive(l *controllers.Workload, st controllers.State) []Remedy {
	scaled := Remedy{
		Risk: Safe, Action: w.scaleUp(l.ID()),
		Effect: "scale the controller up: it cleans up and removes the finalizer. Nothing happens if it was scaled up meanwhile",
	}
	previous := Remedy{
		Risk: Safe, Action: shows("%s logs %s --all-containers --previous", shell.In(w.Kubectl, l.ID().Namespace), shell.Quote("pod/"+st.Pod)),
		Effect: "see what the controller said before it crashed: repair that, and it cleans up and removes the finalizer",
	}
	switch st.Trouble {
	case controllers.ScaledDown:
		return []Remedy{scaled}
	case controllers.Crashing:
		return []Remedy{previous, w.describe(l, st.Pod)}
	case controllers.Hung:
		return []Remedy{w.readLogs(l, ""), w.restart(l)}
	case controllers.Leaving:
		if st.Next == nil && l.Replicas == 0 && !l.Leaves() { // its last pods go
			return []Remedy{scaled}
		}
		return w.succeed(l, st)
	case controllers.NoAccount:
		return append([]Remedy{{
			Risk: Safe, Action: w.create(evidence.Identity(serviceAccounts, l.Account().Namespace, l.Account().Name)),
			Effect: "make the account again, to which its rights are still bound; or apply it from the product's chart or manifest",
		}}, w.newToken(l)...)
	case controllers.NewAccount:
		return w.newToken(l)
	case controllers.LeavingAccount:
		return append([]Remedy{{
			Risk: Safe, Action: shows("%s explain-stuck serviceaccount/%s", shell.In(w.Plugin, l.Account().Namespace), shell.Quote(l.Account().Name)),
			Effect: "see what keeps the account from its end: when it is gone, make it again, from the product's chart or manifest, and then:",
		}}, w.newToken(l)...)
	case controllers.NotStarted:
		return []Remedy{w.describe(l, st.Pod)}
	case controllers.Suspended:
		return []Remedy{{
			Risk: Safe, Action: w.patch(l.ID(), remedy.Test("/spec/suspend", true), remedy.Replace("/spec/suspend", false)),
			Effect: "end the suspension: it runs, a CronJob at its next time, cleans up and removes the finalizer",
		}}
	case controllers.NoPods:
		remedies := []Remedy{w.describe(l, "")}
		if controllers.OfQuota(st.Obstacle) {
			remedies = append([]Remedy{{
				Risk: Safe, Action: shows("%s get resourcequota", shell.In(w.Kubectl, l.ID().Namespace)),
				Effect: "see the quotas: raise the one that the message names, or make room in it, and the pods are made, some minutes later at most",
			}}, remedies...)
		}
		if l.Paused {
			remedies = append(remedies, Remedy{
				Risk: Safe, Action: w.does(remedy.Op{Verb: remedy.Resume, Object: l.ID()}),
				Effect: "end the pause, if that is what keeps its pods from being made",
			})
		}
		return remedies
	}
	return []Remedy{w.describe(l, st.Pod)}
}
