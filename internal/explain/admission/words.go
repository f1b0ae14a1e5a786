// SPDX-License-Identifier: Apache-2.0

package admission

import "github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"

// What is said of writes that were not asked about, and of what answers a webhook.
const (
	slowWrites        = "whether more writes would be accepted: the webhook %s takes %s each time"
	tooManyWrites     = "whether more writes would be accepted: too many were asked about"
	tooManyOfAKind    = "whether a %s of more %s would be accepted: %d were asked about"
	unansweredWrite   = "whether a %s of %s would be accepted: %s"
	webhookCovers     = "%s covers its updates"
	policyCovers      = "it covers its updates"
	writesField       = "it writes %s"
	endpointsUnread   = "exists; its EndpointSlices could not be read: %s"
	namespaceDeleted  = "is being deleted, so nothing can be created in it"
	noneMatchSelector = "none matches the selector %s"
	dryRunOf          = "a dry-run %s of %s"
	selected          = "%s with %s"
	selectedIn        = selected + " in namespace %s"
	failedEachTime    = "failed each of %d times"
)

// AcceptedEach says that the API server accepts the deletion of all contents of a namespace.
var AcceptedEach = evidence.At("a dry-run DELETE of each", "", "accepted")
