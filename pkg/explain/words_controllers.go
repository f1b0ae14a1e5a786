// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// All that explain says of controllers: those that remove finalizers, and what they need.

// A controller that works.

const (
	progressUnread = "%s works, but its progress with the object could not be read"
	notRemovedYet  = "%s works, but has not removed the finalizer %s yet"
	noProgress     = "; it has shown no progress for %s"
	butWritten     = ", but the object was written to %s ago"
	mightBePaused  = "; %s, which might be the reason"
	reports        = "; it reports: %s"
	changedSince   = "; it does not say since when, and something changed %s ago"
	namesMissing   = "; %s names %s, which does not exist"
	recreate       = "recreate %s, if the controller needs it; the controller then retries by itself"
	referToAnother = "make the object refer to another object than %s, if it can still be changed: nothing can be created in a namespace that is being deleted; the controller then retries by itself"

	needsCreation = "%s works, but must create an object in a namespace that is being deleted, which is impossible: %s"
	overQuota     = "%s works, but cannot create what its cleanup needs: %s"
	ignoresPaused = "%s works, but ignores the object, because it is paused: %s"
	cleanupFails  = "%s works, but its cleanup fails: %s"
	hasFailedFor  = "%s works, but its cleanup has failed for %s: %s"
	skipStep      = "make the controller skip that step, with the setting that its product has for it, or do the step by hand"
	relaxQuota    = "raise the quota, or relax the pod security level, that the message names; the controller then retries by itself"
	fixFailure    = "fix what the message names; the controller then retries by itself"
	endPause      = "end the pause, after asking who set it: the controller then resumes all work that the pause stopped, including this deletion"

	waitsUntilDeleted = "%s waits until %s is deleted"
	waitsForKept      = "%s works, but waits until %s is deleted, which nothing has requested: %s"
	deleteAwaited     = "see what would be deleted with %s: delete it, if nothing needs it any more; the controller then resumes"
	usersOf           = "the objects that use %s: %s"
)

// A controller that lacks rights.

const (
	notAllowed        = "%s works, but its ServiceAccount is not allowed to update or patch %s, so it cannot remove the finalizer"
	notAllowedAtLeast = "the ServiceAccount of %s is not allowed to update or patch %s, so it cannot remove the finalizer; it is not certain that the controller works otherwise: %s"
	reapplyAggregated = "see the roles that %s aggregates: reapply the one with this label that allows update or patch"
	cannotBindThere   = "a RoleBinding that was deleted with its namespace cannot be recreated there: "
	bindSomeRole      = cannotBindThere + "bind the rights to update or patch %s to %s with a ClusterRole and a ClusterRoleBinding, and remove both once the object is gone"
	bindEverywhere    = cannotBindThere + "bind ClusterRole/%s, which allows the change, in all namespaces; delete ClusterRoleBinding/%s once the object is gone"
	rightsUntilThen   = "until then the controller has the rights of that role in all namespaces"
	restoreRights     = "check this with the API server, then reapply the RBAC objects of the product's chart or manifest; the controller then resumes"
	deniedAsWell      = "RBAC does not allow the controller to update or patch it: it needs that as well"
)

// A controller that does not work or does not exist, or of which that is not known.

const (
	doesNotWork          = "the controller does not work: %s"
	noneWorks            = "it is not known which of these is the controller, but none of them works: %s"
	ifController         = "if %s is the controller: %s"
	ranInEnding          = "the controller ran in namespace %s, which is being deleted, so nothing can be started there"
	ranInGone            = "the controller ran in namespace %s, which no longer exists"
	beingDeleted         = "is being deleted"
	noLongerExists       = "no longer exists"
	recreateNamespaceFor = "recreate the namespace, then install %s in it: it cleans up and removes its finalizers"
	runElsewhere         = "run %s in another namespace, with rights in all namespaces, until it has removed its finalizers; nothing can be installed in %s"
	setByUser            = "a user set the finalizer %s by hand or in a manifest, and no controller in the cluster removes it"
	userWhoSetIt         = "the user who set it: %s"
	setterMissing        = "; %q set it, but no workload has that name"
	reinstall            = "reinstall %s%s: it cleans up and removes the finalizer"
	ifNotNamedReinstall  = "if none of those named here is %s, reinstall it%s: it cleans up and removes the finalizer"
	reinstallOrAllow     = "reinstall %s for namespace %s alone, as it had one, and it cleans up; if %s is to serve %s, allow %s to update %s there"
	noManagedFields      = "no entry, so it is not known who set its finalizers and who has written to it"
	ifServes             = "if %s is to serve namespace %s: %s"
	usuallyIn            = ", usually %s"
	anotherThan          = ", in another namespace than %s, which is being deleted"
	askUser              = "see when it was set, and with which program: ask the user who set it what it guards"
	askUserOrReinstall   = askUser + "; if a controller set it, reinstall that: it cleans up"
	nowhereElse          = "%s: not a platform that runs this controller outside the cluster"
	mightRunOutside      = "no controller in this cluster removes the finalizer %s. Its controller might run where it cannot be seen from here (%s); if it does not, nothing will remove the finalizer"
	findOutWhether       = "find out whether it does: a working controller has written to the object, or to its status, since the deletion began; metadata.managedFields shows who wrote what and when"
	readLogOutside       = "if it does, read its log where it runs (%s): nothing here shows why it has not removed the finalizer"
	ifNoneInstall        = "if it does not, install %s%s: it cleans up and removes the finalizer"
	stillHas             = "the finalizer %s is not removed yet; %s"
	seeStatusAndSetter   = "see the status that the controller has written, and who set the finalizer: make the controller work, or reinstall it, and it cleans up"
	seeLeader            = "see who leads instead of %s: find out there why the finalizer is not removed, or stop the leader if it should not run"
	seeLastLeader        = "see who led last. The lease is a leftover if leader election was switched off; otherwise the log of %s says why it does not lead"

	// The link from an object to what its finalizer waits for.
	ofFinalizer      = "finalizer %s"
	ofSpecFinalizer  = "spec finalizer %s"
	podsCannotBeMade = ": the pods of its controller cannot be created"

	outlived     = "%s, later than the object (%s): the definition was deleted and recreated"
	setFinalizer = "the finalizer was set by %q (%s)%s"
)

// noController is of one finalizer or several.
func noController(finalizers ...string) string {
	shown := finalizers[:min(len(finalizers), evidence.MaxShown)]
	said := "no controller in the cluster removes the finalizer " + finalizers[0]
	if len(finalizers) > 1 {
		said = "no controller in the cluster removes the finalizers " + strings.Join(shown, ", ")
	}
	if more := len(finalizers) - len(shown); more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return said
}

// runsAs says where a workload usually runs, by the catalogue.
func runsAs(l finalizers.Workload) string {
	name := strings.TrimPrefix(l.Kind+"/"+l.Name, "/")
	switch l.Namespace {
	case "":
		return name
	case finalizers.ObjectNamespace:
		return name + " in the object's namespace"
	}
	return name + " in namespace " + l.Namespace
}

// A part of kube-controller-manager.

const (
	mustRemove = "%s must remove it"
	notChecked = "%s: kube-controller-manager works, but what the finalizer waits for was not checked: %s"
)

// controllerSayings are those of the rules about the controllers of finalizers.
var controllerSayings = map[finding.Word]saying{}
