// SPDX-License-Identifier: Apache-2.0

package rules

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// Drivers of storage and of load balancers, which are known by their leases.
const (
	DriverDown say.Word = "; the controller is down"
	Saying     say.Word = ": %s"
	Retries    say.Word = "; it might succeed when it tries again"
	RunsSilent say.Word = "; it is running, and reports no failure"
	NoLease    say.Word = "; unclear whether it is running: it has no lease here, and might run outside the cluster"
	LeaseOpen  say.Word = "; unclear whether it is running: its lease does not tell"
	HolderGone say.Word = "does not exist; unclear whether a driver runs without a lease"
)

// The words of all rules.
const (
	Deleted        say.Word = "it was deleted during this analysis"
	Unreadable     say.Word = "%s could not be read, so its blocker is not known"
	NotListed      say.Word = "%s could not be listed%s"
	MoreUnlisted   say.Word = "%s and %d more could not be listed%s"
	TypesOf        say.Word = "the types of %s"
	ByHand         say.Word = "remove this finalizer alone, once you have done its cleanup yourself"
	InTheFuture    say.Word = "its deletion lies in the future"
	RequestedAhead say.Word = "its deletion was requested %s from now: clocks in the control plane differ, so nothing can be concluded from ages"
	SyncClocks     say.Word = "synchronise the clocks of the control plane machines"
)

// What shows whether it works.
const (
	MadeAgo             say.Word = "%s ago, created by a controller in kube-controller-manager"
	NotDoneFor          say.Word = "%s ago: %s"
	NoCondition         say.Word = "the namespace controller has not set any condition"
	DependentNotDeleted say.Word = "its dependent %s can be deleted, but is not"
	ForegroundNotEnded  say.Word = "it has the finalizer foregroundDeletion, but no blocking dependents"
	NotOrphaned         say.Word = "its dependents are not orphaned"
)

// What is said of kube-controller-manager where it has not acted.
const (
	LeaseIs           say.Word = "lease: %s"
	ManagerDead       say.Word = "kube-controller-manager is down"
	ManagerUnproven   say.Word = "kube-controller-manager does not renew its lease; unclear whether it works without one: %s"
	ManagerLate       say.Word = "kube-controller-manager has not acted for a while: one of its controllers might be disabled, might have missed the object, or might be backing off after an error, for up to 17 minutes"
	ManagerLateUnread say.Word = "kube-controller-manager has not acted for a while, and its lease could not be read"
	FindManager       say.Word = "check why kube-controller-manager is down, in its pod or on the control plane machines, then start it"
	FindHolder        say.Word = "check who held the lease last, and there why kube-controller-manager is down, then start it"
	CollectThere      say.Word = "do the garbage collector's work there once; the command shows what it will do, and asks first"
)

// Why nothing shows that a controller manager that renews no lease does not act.
const (
	WaitedShortly     say.Word = "this object has not waited for it for long"
	WorkUnaccepted    say.Word = "unclear whether the API server accepts its writes"
	ContentUnaccepted say.Word = "unclear whether the API server accepts the deletion of the contents"
	ChangedMeanwhile  say.Word = "%s has just changed"
)
