// SPDX-License-Identifier: Apache-2.0

package workload

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// What makes a controller run again.
const (
	ReadLog         say.Word = "check what %s logs about it"
	ReadEvents      say.Word = "read the events and fix what they report; the controller then starts, cleans up and removes the finalizer"
	ReadEventsOf    say.Word = "check in the events of %s what it does about it"
	ReadCrash       say.Word = "check what the controller logged before it crashed, then fix that: it cleans up and removes the finalizer"
	RestartHung     say.Word = "restart the controller, if its log shows that it hangs; this interrupts its other work"
	RestartForToken say.Word = "restart the controller, so that it gets a token of the new ServiceAccount: the old one is rejected. It then cleans up and removes the finalizer"
	ReplaceLeaving  say.Word = "find out who deletes %s, and why; once it is gone, reinstall it from its chart or manifest: it cleans up and removes the finalizer"
	RunOutside      say.Word = "run a copy of %s temporarily in another namespace, with rights in all namespaces, until it has removed its finalizers; nothing can be created in %s"
	SeePod          say.Word = "check what blocks that pod; once it has ended, another one replaces it, cleans up and removes the finalizer"
	ScaleUpAgain    say.Word = "scale the controller up: it cleans up and removes the finalizer"
	RecreateAccount say.Word = "recreate the ServiceAccount, to which its rights are still bound, or apply it from the product's chart or manifest"
	SeeAccount      say.Word = "check what blocks the ServiceAccount; once it is gone, recreate it from the product's chart or manifest and restart the controller"
	EndSuspension   say.Word = "end the suspension: it runs (a CronJob at its next scheduled time), cleans up and removes the finalizer"
	RaiseQuota      say.Word = "raise the quota that the message names, or free some of it; the pods are then created within a few minutes"
	ResumeRollout   say.Word = "resume the rollout, if the pause is why its pods are not created"
)

// How many replicas a workload had.
const (
	ReplicasUnknown say.Word = "1 is assumed: nothing that could be read says how many replicas it had"
	ScalesDownAgain say.Word = ". But %s might scale it to 0 again"
	MinimumOf       say.Word = "%d; it scales %s"
	SavedBy         say.Word = "%d, kept by %s, which scaled it to 0"
	LastApplied     say.Word = "%d replicas were applied last"
)

// A service that does not answer.
const (
	Irreparable    say.Word = "; it cannot be repaired in place: its namespace %s is being deleted, and nothing can be created there"
	InstallAgain   say.Word = "reinstall its product, with %s; %s"
	ScaleUpBackend say.Word = "scale up its backend %s, which is scaled to 0; %s"
	RepairBackend  say.Word = "repair its backend, the service %s and its pods; %s"
)
