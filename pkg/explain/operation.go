// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Action is what a remedy does. Without a command it is something that only a person
// can do.
type Action struct {
	// Command can be pasted into a shell.
	Command string
	// Operation is what the command changes in the cluster, nil when it changes
	// nothing or leaves that to a person.
	Operation *remedy.Op
	// Undo is a command that takes back what the other changed, empty where there is
	// nothing to take back or no such command.
	Undo string
}

// shows is a command that changes nothing, or that leaves it to a person what it
// changes.
func shows(format string, args ...any) Action { return Action{Command: fmt.Sprintf(format, args...)} }

// see is a remedy that begins with a command that changes nothing.
func see(effect, command string, args ...any) Remedy {
	return Remedy{Risk: Safe, Action: shows(command, args...), Effect: effect}
}

// commands makes actions of what remedies do.
type commands struct {
	programs remedy.Programs
	// reader has the objects as they were read.
	reader *evidence.Reader
}

// does is a change that a program could make.
func (d commands) does(op remedy.Op) Action {
	return Action{Command: op.Command(d.programs), Operation: &op, Undo: op.Undo(d.programs)}
}

// kubectl begins a command about an object.
func (d commands) kubectl(n graph.Node) string { return shell.In(d.programs.Kubectl, n.Namespace()) }

// deleteSaved is a DELETE by the object's own policy, with the object kept in a file before.
func (d commands) deleteSaved(id graph.Identity) Action {
	return d.does(remedy.DeleteOf(id, metav1.DeleteOptions{}).Saved(d.reader.Version(id)))
}

// change changes an object that was read whole by JSON patch, guarded by its UID, and keeps it in a file before.
func (d commands) change(id graph.Identity, whole *unstructured.Unstructured, steps ...remedy.Step) Action {
	return d.does(remedy.PatchOf(id, steps...).Saved(d.reader.Version(id)).TakenBack(whole.Object))
}

// yaml shows an object as it is.
func yaml(kubectl string, id graph.Identity) Action {
	look := remedy.YAML(id)
	return Action{Command: look.Command(remedy.Programs{Kubectl: kubectl})}
}
