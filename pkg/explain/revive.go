// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"regexp"

	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// logs is a command that shows the log of a workload, of an object's name only
// what concerns it.
func (w *walker) logs(l *workload, name string) string {
	command := fmt.Sprintf("%s logs %s --all-containers --since=1h", shell.In(w.Kubectl, l.id.Namespace), shell.Quote(l.ref()))
	if name != "" {
		command += " | grep -iwE " + shell.Quote(regexp.QuoteMeta(name)+"|finaliz[a-z]*")
	}
	return command
}

func (w *walker) readLogs(l *workload, name string) Remedy {
	return Remedy{Risk: Safe, Command: w.logs(l, name), Effect: "shows what " + l.id.String() + " says about it"}
}

func (w *walker) describe(l *workload, pod string) Remedy {
	what := l.ref()
	if pod != "" {
		what = "pod/" + pod
	}
	return Remedy{
		Risk: Safe, Command: fmt.Sprintf("%s describe %s", shell.In(w.Kubectl, l.id.Namespace), shell.Quote(what)),
		Effect: "shows the events that say what is wrong: repair that, and the controller starts, cleans up and removes the finalizer",
	}
}

func (w *walker) restart(l *workload) Remedy {
	return Remedy{
		Risk: Disruptive, Command: fmt.Sprintf("%s rollout restart %s", shell.In(w.Kubectl, l.id.Namespace), shell.Quote(l.ref())),
		Effect: "starts the controller anew, when its log shows that it hangs; what else it does is interrupted",
	}
}

// newToken starts a workload anew whose account was made again. A pod by itself
// cannot be.
func (w *walker) newToken(l *workload) []Remedy {
	if l.selector == nil {
		return nil
	}
	r := w.restart(l)
	r.Effect = "gives the controller a token of the new account, since that of the old one is never accepted again: it cleans up and removes the finalizer"
	return []Remedy{r}
}

// revive returns the ways to get a controller to run again, by what is wrong
// with it.
func (w *walker) revive(l *workload, st state) []Remedy {
	scaled := Remedy{
		Risk: Safe, Command: fmt.Sprintf("%s scale %s --current-replicas=0 --replicas=1", shell.In(w.Kubectl, l.id.Namespace), shell.Quote(l.ref())),
		Effect: "starts the controller again: it cleans up and removes the finalizer. It does nothing if somebody has scaled it up meanwhile",
	}
	previous := Remedy{
		Risk: Safe, Command: fmt.Sprintf("%s logs %s --all-containers --previous", shell.In(w.Kubectl, l.id.Namespace), shell.Quote("pod/"+st.pod)),
		Effect: "shows what the controller said before it crashed: repair that, and it cleans up and removes the finalizer",
	}
	switch st.trouble {
	case scaledDown:
		return []Remedy{scaled}
	case crashing:
		return []Remedy{previous, w.describe(l, st.pod)}
	case hung:
		return []Remedy{w.readLogs(l, ""), w.restart(l)}
	case leaving:
		return []Remedy{{
			Risk: Safe, Effect: "find out who deletes " + l.id.String() + " and why, and when it is gone, install it again from its chart or manifest: it cleans up and removes the finalizer",
		}}
	case noAccount:
		return append([]Remedy{{
			Risk: Safe, Command: fmt.Sprintf("%s create serviceaccount %s", shell.In(w.Kubectl, l.account.namespace), shell.Quote(l.account.name)),
			Effect: "makes the account again, to which its rights are still bound; or apply it from the product's chart or manifest",
		}}, w.newToken(l)...)
	case newAccount:
		return w.newToken(l)
	case noPods:
		remedies := []Remedy{w.describe(l, "")}
		if l.paused {
			remedies = append(remedies, Remedy{
				Risk: Safe, Command: fmt.Sprintf("%s rollout resume %s", shell.In(w.Kubectl, l.id.Namespace), shell.Quote(l.ref())),
				Effect: "ends the pause, if that is what keeps its pods from being made",
			})
		}
		return remedies
	}
	return []Remedy{w.describe(l, st.pod)}
}
