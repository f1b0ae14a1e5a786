// SPDX-License-Identifier: Apache-2.0

package untouched

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// What is said of an object of which no deletion was requested.
const (
	NamespaceProtected say.Word = "the API server does not allow the deletion of this namespace"
	WouldBeRefused     say.Word = "a DELETE of it would be refused"
	RefusedBy          say.Word = ", by %s [%s]"
	ThenDeleteAgain    say.Word = "; then send the DELETE again"
	OneTerminating     say.Word = "%s in it is being deleted"
	SomeTerminating    say.Word = "%s in it are being deleted"
	ExplainContents    say.Word = "explain the terminating objects in it"
	WasCreated         say.Word = "new object, created %s ago: if you deleted one of this name, that one is gone"
	CreatedBy          say.Word = "new object, created by %s %s ago: if you deleted one of this name, that one is gone"
	LeaveIt            say.Word = "leave it: %s creates it, and recreates it as long as it is needed"
	DeleteCreator      say.Word = "to get rid of objects of this name, delete %s or scale it down; until then it recreates them"
	StopCreator        say.Word = "to get rid of objects of this name, stop their creator, %s"
)
