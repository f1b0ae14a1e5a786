// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Change is one change of one object, with what it is for.
type Change struct {
	Op remedy.Op
	// Cause and Why say what for, Risk what it costs.
	Cause, Why string
	Risk       explain.Risk
	// Temporary: it is taken back when what it frees is gone.
	Temporary bool
	// Lets are other objects that it lets go, whose manifests are kept before.
	Lets []graph.Identity
}

// Status says what became of a change.
type Status string

// The statuses.
const (
	Done Status = "Done"
	// Skipped: the object, or what was found out about it, has changed meanwhile, so that nothing was sent or the server refused it.
	Skipped Status = "Skipped"
	// Refused: the server said no.
	Refused Status = "Refused"
	// Reverted: the server accepted it, and the object is as it was before.
	Reverted Status = "Reverted"
	// Unanswered: no answer came, or none that proves that nothing was changed; the next look shows what became of it.
	Unanswered Status = "Unanswered"
	// TakenBack: a temporary change was ended.
	TakenBack Status = "TakenBack"
	// NotTakenBack: a temporary change could not be ended.
	NotTakenBack Status = "NotTakenBack"
)

// stands reports whether a change was made, or may have been, and was not taken back.
func (s Status) stands() bool { return s == Done || s == Unanswered || s == "" }

// StatusOf is what the answer to a change says.
func StatusOf(err error) Status {
	switch {
	case err == nil:
		return Done
	case errors.Is(err, remedy.ErrChanged), failedCall(err):
		return Skipped
	case answer.Open(err):
		return Unanswered
	}
	return Refused
}

// failedCall reports whether a change was not made because a webhook could not be called: a changed configuration takes a moment.
func failedCall(err error) bool {
	return slices.ContainsFunc(answer.Named(err.Error()), func(r answer.Refusal) bool { return r.Kind == answer.WebhookFailed })
}
