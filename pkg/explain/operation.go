// SPDX-License-Identifier: Apache-2.0

package explain

import (
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

// commands makes actions of what remedies do.
type commands struct{ programs remedy.Programs }

// does is a change that a program could make.
func (d commands) does(op remedy.Op) Action {
	return Action{Command: op.Command(d.programs), Operation: &op, Undo: op.Undo(d.programs)}
}
