// SPDX-License-Identifier: Apache-2.0

package finalizer

import (
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// Parts that several of them share.
const (
	retries         = "; the controller then retries by itself"
	resumes         = "; the controller then resumes"
	cleansUp        = ": it cleans up and removes the finalizer"
	cannotBindThere = "a RoleBinding that was deleted with its namespace cannot be recreated there: "
	askSetter       = "see when it was set, and with which program: ask the user who set it what it guards"
)

// A controller that works.
const (
	ProgressUnread    say.Word = "%s works, but its progress with the object could not be read"
	NotRemovedYet     say.Word = "%s works, but has not removed the finalizer %s yet"
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
	NeedsCreation     say.Word = "%s works, but must create an object in a namespace that is being deleted, which is impossible: %s"
	OverQuota         say.Word = "%s works, but cannot create what its cleanup needs: %s"
	IgnoresPaused     say.Word = "%s works, but ignores the object, because it is paused: %s"
	CleanupFails      say.Word = "%s works, but its cleanup fails: %s"
	HasFailedFor      say.Word = "%s works, but its cleanup has failed for %s: %s"
	SkipStep          say.Word = "make the controller skip that step, with the setting that its product has for it, or do the step by hand"
	RelaxQuota        say.Word = "raise the quota, or relax the pod security level, that the message names" + retries
	FixFailure        say.Word = "fix what the message names" + retries
	EndPause          say.Word = "end the pause, after asking who set it: the controller then resumes all work that the pause stopped, including this deletion"
	WaitsUntilDeleted say.Word = "%s waits until %s is deleted"
	WaitsForKept      say.Word = "%s works, but waits until %s is deleted, which nothing has requested: %s"
	DeleteAwaited     say.Word = "see what would be deleted with %s: delete it, if nothing needs it any more" + resumes
	Or                say.Word = " or "
)

// A controller that lacks rights.
const (
	NotAllowed        say.Word = "%s works, but its ServiceAccount is not allowed to update or patch %s, so it cannot remove the finalizer"
	NotAllowedAtLeast say.Word = "the ServiceAccount of %s is not allowed to update or patch %s, so it cannot remove the finalizer; it is not certain that the controller works otherwise: %s"
	ReapplyAggregated say.Word = "see the roles that %s aggregates: reapply the one with this label that allows update or patch"
	BindSomeRole      say.Word = cannotBindThere + "bind the rights to update or patch %s to %s with a ClusterRole and a ClusterRoleBinding, and remove both once the object is gone"
	BindEverywhere    say.Word = cannotBindThere + "bind ClusterRole/%s, which allows the change, in all namespaces; delete ClusterRoleBinding/%s once the object is gone"
	RightsUntilThen   say.Word = "until then the controller has the rights of that role in all namespaces"
	RestoreRights     say.Word = "check this with the API server, then reapply the RBAC objects of the product's chart or manifest" + resumes
	DeniedAsWell      say.Word = "RBAC does not allow the controller to update or patch it: it needs that as well"
)

// A controller that does not work or does not exist.
const (
	DoesNotWork          say.Word = "the controller does not work: %s"
	NoneWorks            say.Word = "it is not known which of these is the controller, but none of them works: %s"
	IfController         say.Word = "if %s is the controller: "
	RanInEnding          say.Word = "the controller ran in namespace %s, which is being deleted, so nothing can be started there"
	RanInGone            say.Word = "the controller ran in namespace %s, which no longer exists"
	BeingDeleted         say.Word = "is being deleted"
	NoLongerExists       say.Word = "no longer exists"
	RecreateNamespaceFor say.Word = "recreate the namespace, then install %s in it: it cleans up and removes its finalizers"
	RunElsewhere         say.Word = "run %s in another namespace, with rights in all namespaces, until it has removed its finalizers; nothing can be installed in %s"
	SetByUser            say.Word = "a user set the finalizer %s by hand or in a manifest, and no controller in the cluster removes it"
	UserWhoSetIt         say.Word = "the user who set it: %s"
	SetWith              say.Word = "set with %s"
	WrittenAt            say.Word = " at %s"
	NoController         say.Word = "no controller in the cluster removes the finalizer %s"
	NoControllers        say.Word = "no controller in the cluster removes the finalizers %s"
	AndMore              say.Word = " and %d more"
	SetterMissing        say.Word = "; %q set it, but no workload has that name"
	HandlesOthers        say.Word = "; %s handles it on %s only"
	NowhereElse          say.Word = "%s: not a platform that runs this controller outside the cluster"
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
	MetBy          say.Word = "%s tries to remove it, and is refused"
	MustRemove     say.Word = "%s must remove it"
	NotChecked     say.Word = "%s must remove it: kube-controller-manager works, but what the finalizer waits for was not checked: %s"
	UsersOf        say.Word = "the objects that use %s: %s"
	Outlived       say.Word = "%s, later than the object (%s): the definition was deleted and recreated"
	SetBy          say.Word = "the finalizer was set by %q (%s)"
	SetAt          say.Word = " at %s"
	RemoveFromSpec say.Word = "remove this entry of spec.finalizers alone, once you have done its cleanup yourself"
	NotExcluded    say.Word = "; make sure first that none of those that work and are allowed to change everything removes it: %s"
	LostCleanup    say.Word = "the resources that its controller would have cleaned up, possibly outside the cluster"
)

// A controller that is not known, or of which it is not known whether it works.
const (
	StillHas            say.Word = "the finalizer %s is not removed yet; %s"
	ReadReport          say.Word = "read all that it reports in the status, and do what that asks for"
	SeeStatusAndSetter  say.Word = "see the status that the controller has written, and who set the finalizer: make the controller work, or reinstall it, and it cleans up"
	SeeLeader           say.Word = "see who leads instead of %s: find out there why the finalizer is not removed, or stop the leader if it should not run"
	SeeLastLeader       say.Word = "see who led last. The lease is a leftover if leader election was switched off; otherwise the log of %s says why it does not lead"
	IfNotNamedReinstall say.Word = "if none of those named here is %s, reinstall it%s" + cleansUp
	ReinstallOrAllow    say.Word = "reinstall %s for namespace %s alone, as it had one, and it cleans up; if %s is to serve %s, allow %s to update %s there"
	IfServes            say.Word = "if %s is to serve namespace %s: "
	NoManagedFields     say.Word = "no entry, so it is not known who set its finalizers and who has written to it"
	MightRunOutside     say.Word = "no controller in this cluster removes the finalizer %s. Its controller might run where it cannot be seen from here (%s); if it does not, nothing will remove the finalizer"
	PlaceGone           say.Word = ". %s, which stands for that place, does not exist"
	PlaceLacks          say.Word = ". %s says: %s"
	ForLong             say.Word = ", for %s"
	DoesNotExist        say.Word = "does not exist"
	RepairPlace         say.Word = "see %s: get the controller there, or its connection to this cluster, to work again" + cleansUp
	FindOutWhether      say.Word = "find out whether it does: a working controller has written to the object, or to its status, since the deletion began; metadata.managedFields shows who wrote what and when"
	ReadLogOutside      say.Word = "if it does, read its log where it runs (%s): nothing here shows why it has not removed the finalizer"
	IfNoneInstall       say.Word = "if it does not, install %s%s" + cleansUp
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
	name := strings.TrimPrefix(l.Kind+"/"+l.Name, "/")
	switch l.Namespace {
	case "":
		return say.Plain(name)
	case finalizers.ObjectNamespace:
		return say.Of(InObjects, name)
	}
	return say.Of(InNamespace, name, l.Namespace)
}
