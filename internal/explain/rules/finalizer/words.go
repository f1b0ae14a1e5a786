// SPDX-License-Identifier: Apache-2.0

package finalizer

import (
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// Parts that several of them share.
const (
	retries         = "; the controller then retries by itself"
	resumes         = "; the controller then resumes"
	cleansUp        = ": it cleans up and removes the finalizer"
	cannotBindThere = "its RoleBinding was deleted with the namespace and cannot be recreated there: "
	askSetter       = "ask the user who set it what it guards"
)

// A controller that works.
const (
	ProgressUnread    say.Word = "%s is running, but its progress with the object could not be read"
	NotRemovedYet     say.Word = "%s is running, but has not removed the finalizer %s yet"
	NothingUses       say.Word = "; nothing among %s uses it any more"
	NoProgress        say.Word = "; it has shown no progress for %s"
	MightFlip         say.Word = "; condition %s changed %s ago, which is progress only if it does not keep flipping"
	AskIfFlips        say.Word = "ask again in %s: if the condition has changed again by then, it flips, and nothing progresses"
	ButWritten        say.Word = ", but the object was written to %s ago"
	MightBePaused     say.Word = "; %s, which might be the reason"
	Reports           say.Word = "; it reports: %s"
	ChangedSince      say.Word = "; it does not say since when, and something changed %s ago"
	ExistsAgain       say.Word = "; %s exists by now: wait until the controller tries again"
	ItSays            say.Word = "; it says: %s"
	NamesMissing      say.Word = "; %s names %s, which does not exist"
	RecreateNeeded    say.Word = "recreate %s, if the controller needs it" + retries
	ReferToAnother    say.Word = "make the object refer to another object than %s, if it can still be changed: nothing can be created in a namespace that is being deleted" + retries
	NeedsCreation     say.Word = "%s is running, but must create an object in a namespace that is being deleted, which is impossible: %s"
	OverQuota         say.Word = "%s is running, but cannot create what its cleanup needs: %s"
	IgnoresPaused     say.Word = "%s is running, but ignores the object, because it is paused: %s"
	CleanupFails      say.Word = "%s is running, but its cleanup fails: %s"
	HasFailedFor      say.Word = "%s is running, but its cleanup has failed for %s: %s"
	SkipStep          say.Word = "turn that step off in the controller, or do it by hand"
	RelaxQuota        say.Word = "raise the quota, or relax the pod security level, that the message names" + retries
	FixFailure        say.Word = "fix what the message names" + retries
	EndPause          say.Word = "unpause it (ask who paused it first): the controller then resumes all that the pause stopped, this deletion included"
	WaitsUntilDeleted say.Word = "%s waits until %s is deleted"
	WaitsForKept      say.Word = "%s is running, but waits for %s, which is not being deleted: %s"
	DeleteAwaited     say.Word = "check what is deleted with %s, then delete it if nothing needs it any more" + resumes
	Or                say.Word = " or "
)

// A controller that lacks rights.
const (
	NotAllowed        say.Word = "%s is running, but its ServiceAccount is not allowed to update or patch %s, so it cannot remove the finalizer"
	NotAllowedAtLeast say.Word = "the ServiceAccount of %s is not allowed to update or patch %s, so it cannot remove the finalizer; unclear whether the controller works otherwise: %s"
	ReapplyAggregated say.Word = "reapply the role with this label that allows update or patch, for %s to aggregate"
	BindSomeRole      say.Word = cannotBindThere +
		"bind the rights to update or patch %s to %s with a ClusterRole and a ClusterRoleBinding, and remove both once the object is gone"
	BindEverywhere say.Word = cannotBindThere +
		"bind the ClusterRole %s, which allows the change, in all namespaces; delete the ClusterRoleBinding %s once the object is gone"
	RightsUntilThen say.Word = "until then the controller has the rights of that role in all namespaces"
	RestoreRights   say.Word = "check this right, then reapply the RBAC objects of the product's chart or manifest" + resumes
	DeniedAsWell    say.Word = "; and RBAC does not allow it to update or patch %s"
	ReapplyDown     say.Word = "check this right, then reapply the product's chart or manifest: the controller needs the right, and to run"
)

// A controller that does not work or does not exist.
const (
	DoesNotWork          say.Word = "the controller is down: %s"
	NoneWorks            say.Word = "one of these is the controller, and all are down: %s"
	IfController         say.Word = "if %s is the controller: "
	AgentDown            say.Word = "the controller is down where the object is: it runs on each node for that node's objects, and %s is NotReady"
	RepairAgentsNode     say.Word = "repair the machine or its kubelet; the controller then runs there again, cleans up, and removes the finalizer"
	RanInEnding          say.Word = "the controller ran in namespace %s, which is being deleted, so nothing can be started there"
	RanInGone            say.Word = "the controller ran in namespace %s, which no longer exists"
	BeingDeleted         say.Word = "is being deleted"
	NoLongerExists       say.Word = "no longer exists"
	RecreateNamespaceFor say.Word = "recreate the namespace, then install %s in it: it cleans up and removes its finalizers"
	RunElsewhere         say.Word = "reinstall %s temporarily in another namespace, with rights in all namespaces, until it has removed its finalizers; nothing can be installed in %s"
	SetByUser            say.Word = "a user set the finalizer %s by hand or in a manifest, and no controller in the cluster removes it"
	UserWhoSetIt         say.Word = "the user who set it: %s"
	SetWith              say.Word = "set with %s"
	WrittenAt            say.Word = " at %s"
	NoController         say.Word = "no controller in the cluster removes the finalizer %s"
	NoControllers        say.Word = "no controller in the cluster removes the finalizers %s"
	AndMore              say.Word = " and %d more"
	WithoutNamed         say.Word = "; %s does so for %s only, which does not exist"
	RecreateNamed        say.Word = "recreate %s: its controller then cleans up and removes the finalizer"
	SetterMissing        say.Word = "; set by %q, but no workload has that name"
	HandlesOthers        say.Word = "; %s handles it on %s only"
	NowhereElse          say.Word = "%s: does not run this controller outside the cluster"
	Reinstall            say.Word = "reinstall %s%s" + cleansUp
	UsuallyIn            say.Word = ", usually %s"
	InObjects            say.Word = "%s in the object's namespace"
	InNamespace          say.Word = "%s in namespace %s"
	AnotherThan          say.Word = ", in another namespace than %s, which is being deleted"
	AskUser              say.Word = askSetter
	AskUserOrReinstall   say.Word = askSetter + "; if a controller set it, reinstall that: it cleans up"
)

// What is said of the finalizer itself, and of how to remove it instead of its controller.
const (
	OfFinalizer    say.Word = "finalizer %s"
	OfSpec         say.Word = "spec finalizer %s"
	That           say.Word = ": "
	PodsNotMade    say.Word = "the pods of its controller cannot be created"
	MetBy          say.Word = "%s tries to remove it, but is refused"
	MustRemove     say.Word = "%s must remove it"
	NotChecked     say.Word = "%s must remove it; kube-controller-manager is running, but what the finalizer waits for was not checked: %s"
	UsersOf        say.Word = "the objects that use %s: %s"
	Outlived       say.Word = "%s, later than the object (%s): the definition was deleted and recreated"
	SetBy          say.Word = "the finalizer was set by %q (%s)"
	SetAt          say.Word = " at %s"
	RemoveFromSpec say.Word = "remove this entry of spec.finalizers alone, once you have done its cleanup yourself"
	NotExcluded    say.Word = "; first make sure that none of those that are running and allowed to change everything removes it: %s"
	LostCleanup    say.Word = "whatever its controller would have cleaned up, e.g. cloud resources"
)

// A controller that is not known, or of which it is unclear whether it is running.
const (
	StillHas            say.Word = "the finalizer %s is not removed yet; %s"
	ReadReport          say.Word = "read its status, and do what that asks for"
	SeeStatusAndSetter  say.Word = "check .status and managedFields for the controller, then fix or reinstall it"
	SeeLeader           say.Word = "check the log of the leader, which is not %s, for why the finalizer is not removed; stop the leader if it should not run"
	SeeLastLeader       say.Word = "check who led last. The lease is a leftover if leader election was switched off; otherwise the log of %s says why it does not lead"
	IfNotNamedReinstall say.Word = "if none of those named here is %s, reinstall it%s" + cleansUp
	ReinstallOrAllow    say.Word = "reinstall %s for namespace %s alone, as before, and it cleans up; if %s is to handle %s, allow %s to update %s there"
	IfServes            say.Word = "if %s is to handle namespace %s: "
	NoManagedFields     say.Word = "no entry: unclear who set its finalizers and who has written to it"
	MightRunOutside     say.Word = "no controller in this cluster removes the finalizer %s. Its controller might run outside the cluster (%s); if not, nothing removes the finalizer"
	PlaceGone           say.Word = ". %s, which stands for that place, does not exist"
	PlaceLacks          say.Word = ". %s says: %s"
	ForLong             say.Word = ", for %s"
	DoesNotExist        say.Word = "does not exist"
	RepairPlace         say.Word = "check %s, then repair the controller there, or its connection to this cluster" + cleansUp
	FindOutWhether      say.Word = "check in metadata.managedFields whether a controller has written to the object since the deletion began: then it is running"
	ReadLogOutside      say.Word = "if it is running, read its log there (%s) for why it has not removed the finalizer"
	IfNoneInstall       say.Word = "if it is not, install %s%s" + cleansUp
)

// unserved is said of one finalizer or several that no controller removes.
func unserved(finalizers ...string) say.Text {
	shown := finalizers[:min(len(finalizers), evidence.MaxShown)]
	said := say.Of(NoController, finalizers[0])
	if len(finalizers) > 1 {
		said = say.Of(NoControllers, strings.Join(shown, ", "))
	}
	if more := len(finalizers) - len(shown); more > 0 {
		said = said.And(AndMore, more)
	}
	return said
}

// RunsAs says where a workload usually runs, by the catalogue.
func RunsAs(l finalizers.Workload) say.Text {
	var name any = l.Name
	if l.Kind != "" {
		name = evidence.Named(l.Kind, "", l.Name)
	}
	switch l.Namespace {
	case "":
		return say.Plain(name)
	case finalizers.ObjectNamespace:
		return say.Of(InObjects, name)
	}
	return say.Of(InNamespace, name, l.Namespace)
}
