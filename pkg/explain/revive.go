// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"regexp"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// logs is a command that shows the log of a workload, of an object's name only
// what concerns it.
func logs(kubectl string, l *controllers.Workload, name string) string {
	command := fmt.Sprintf("%s logs %s --all-containers --since=1h", shell.In(kubectl, l.ID().Namespace), shell.Quote(l.Ref()))
	if name != "" {
		command += " | grep -iwE " + shell.Quote(regexp.QuoteMeta(name)+"|finaliz[a-z]*")
	}
	return command
}

func readLogs(kubectl string, l *controllers.Workload, name string) Remedy {
	return Remedy{Risk: Safe, Action: shows("%s", logs(kubectl, l, name)), Effect: fmt.Sprintf(readLog, l.ID())}
}

// yaml shows an object as it is.
func yaml(kubectl string, id graph.Identity) Action {
	return shows("%s get %s -o yaml", shell.In(kubectl, id.Namespace), shell.Target(id))
}

// managedFields shows an object with who wrote what of it.
func managedFields(kubectl string, id graph.Identity) Action {
	return shows("%s get %s -o yaml --show-managed-fields", shell.In(kubectl, id.Namespace), shell.Target(id))
}

func describe(kubectl string, l *controllers.Workload, pod string) Remedy {
	what := l.Ref()
	if pod != "" {
		what = "pod/" + pod
	}
	return Remedy{Risk: Safe, Action: shows("%s describe %s", shell.In(kubectl, l.ID().Namespace), shell.Quote(what)), Effect: readEvents}
}

func (w *walker) restart(l *controllers.Workload, effect string) Remedy {
	return Remedy{Risk: Disruptive, Action: w.does(remedy.Op{Verb: remedy.Restart, Object: l.ID()}), Effect: effect}
}

// newToken restarts a workload whose account was recreated. A bare pod cannot be
// restarted.
func (w *walker) newToken(l *controllers.Workload) []Remedy {
	if l.IsPod() {
		return nil
	}
	return []Remedy{w.restart(l, restartForToken)}
}

// succeed returns the ways to replace a workload that is being deleted, or its last pod that is.
func (w *walker) succeed(l *controllers.Workload, st controllers.State) []Remedy {
	switch {
	case st.Next != nil:
		return w.revive(l, *st.Next)
	case l.IsPod() || l.Leaves():
		return []Remedy{{Risk: Safe, Effect: fmt.Sprintf(replaceLeaving, l.ID())}}
	}
	return []Remedy{{Risk: Safe, Action: shows("%s explain-stuck %s", shell.In(w.Plugin, l.ID().Namespace), shell.Quote("pod/"+st.Pod)), Effect: seePod}}
}

// revive returns the ways to get a controller to run again, by what is wrong
// with it.
func (w *walker) revive(l *controllers.Workload, st controllers.State) []Remedy {
	account := l.Account()
	switch st.Trouble {
	case controllers.ScaledDown:
		return []Remedy{w.scaleUp(l.ID(), scaleUp)}
	case controllers.Crashing:
		previous := shows("%s logs %s --all-containers --previous", shell.In(w.Kubectl, l.ID().Namespace), shell.Quote("pod/"+st.Pod))
		return []Remedy{{Risk: Safe, Action: previous, Effect: readCrash}, describe(w.Kubectl, l, st.Pod)}
	case controllers.Hung:
		return []Remedy{readLogs(w.Kubectl, l, ""), w.restart(l, restartHung)}
	case controllers.Leaving:
		if st.Next == nil && l.Replicas == 0 && !l.Leaves() { // its last pods go
			return []Remedy{w.scaleUp(l.ID(), scaleUp)}
		}
		return w.succeed(l, st)
	case controllers.NoAccount:
		again := w.create(evidence.Identity(serviceAccounts, account.Namespace, account.Name))
		return append([]Remedy{{Risk: Safe, Action: again, Effect: recreateAccount}}, w.newToken(l)...)
	case controllers.NewAccount:
		return w.newToken(l)
	case controllers.LeavingAccount:
		stuck := shows("%s explain-stuck serviceaccount/%s", shell.In(w.Plugin, account.Namespace), shell.Quote(account.Name))
		return append([]Remedy{{Risk: Safe, Action: stuck, Effect: seeAccount}}, w.newToken(l)...)
	case controllers.NotStarted:
		return []Remedy{describe(w.Kubectl, l, st.Pod)}
	case controllers.Suspended:
		return []Remedy{{
			Risk: Safe, Action: w.patch(l.ID(), remedy.Test("/spec/suspend", true), remedy.Replace("/spec/suspend", false)), Effect: endSuspension,
		}}
	case controllers.NoPods:
		remedies := []Remedy{describe(w.Kubectl, l, "")}
		if controllers.OfQuota(st.Obstacle) {
			quotas := shows("%s get resourcequota", shell.In(w.Kubectl, l.ID().Namespace))
			remedies = append([]Remedy{{Risk: Safe, Action: quotas, Effect: raiseQuota}}, remedies...)
		}
		if l.Paused {
			remedies = append(remedies, Remedy{Risk: Safe, Action: w.does(remedy.Op{Verb: remedy.Resume, Object: l.ID()}), Effect: resumeRollout})
		}
		return remedies
	}
	return []Remedy{describe(w.Kubectl, l, st.Pod)}
}
