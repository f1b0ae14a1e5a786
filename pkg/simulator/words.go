// SPDX-License-Identifier: Apache-2.0

package simulator

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// Why the real object may go although the simulated one does not.
const (
	unsureOf                   say.Word = "unclear whether a controller removes the finalizer %s"
	specUnsure                 say.Word = "unclear whether a controller removes the finalizer %s in its spec"
	specUnread                 say.Word = "the finalizers in its spec could not be read"
	namespaceControllerUnknown say.Word = "the namespace controller is not known to run"
	podUnread                  say.Word = "the pod could not be read"
	onNoNode                   say.Word = "the pod is not scheduled and pod garbage collection is not known to run"
	nodeGone                   say.Word = "node %s does not exist and pod garbage collection is not known to run"
	nodeUnread                 say.Word = "node %s could not be read"
	nodeSilent                 say.Word = "node %s does not report"
	thatOf                     say.Word = "%s: %s"
)

// What else there is to say of an object.
const (
	namespaceAbsent say.Word = "its namespace does not exist, so nothing can change it"
	deleteAgain     say.Word = "it waits for nothing, and another DELETE removes it"
	// OutOfReach is of an instance of a definition that is gone.
	OutOfReach say.Word = "its CustomResourceDefinition is gone: it is left in storage and out of reach"
)
