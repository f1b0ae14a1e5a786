// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
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

// commands makes actions of what remedies do.
type commands struct{ programs remedy.Programs }

// does is a change that a program could make.
func (d commands) does(op remedy.Op) Action {
	return Action{Command: op.Command(d.programs), Operation: &op, Undo: op.Undo(d.programs)}
}

// patch changes an object by JSON patch, guarded by its UID.
func (d commands) patch(id graph.Identity, steps ...remedy.Step) Action {
	return d.does(remedy.PatchOf(id, steps...))
}

// create makes an object that has nothing but a name.
func (d commands) create(id graph.Identity) Action {
	return d.does(remedy.Op{Verb: remedy.Create, Object: id})
}

// yaml shows an object as it is, and managedFields also who wrote what of it.
func yaml(kubectl string, id graph.Identity) Action {
	look := remedy.YAML(id)
	return Action{Command: look.Command(remedy.Programs{Kubectl: kubectl})}
}

func managedFields(kubectl string, id graph.Identity) Action {
	return shows("%s --show-managed-fields", yaml(kubectl, id).Command)
}
