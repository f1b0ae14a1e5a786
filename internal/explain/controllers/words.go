// SPDX-License-Identifier: Apache-2.0

package controllers

import "github.com/kubectl-gc/kubectl-gc/internal/say"

// All that is said of controllers, of how they stand and of what points at them. The reader of a State knows the
// controller: "it" is the workload.

// Which one is the controller.

const (
	// ControllerOf is of a controller that has no other name than that of what it serves.
	ControllerOf  say.Word = "the controller of %s"
	theController say.Word = "the %s"

	misplacedCandidate    = "expected controller not found; maybe %s, which is allowed to change the object"
	unnamedCandidate      = "the object names the implementation that must remove it; unclear whether that is %s, which is allowed to change the object"
	overlookingCandidate  = "%s %s"
	otherLabels           = "reconciles only objects with labels that match %s"
	otherNamespaces       = "watches other namespaces only: %s"
	anotherNamespace      = "runs with --namespace=%s, and might watch nothing else"
	notOnNode             = "has no working pod on the node %s, which the object names"
	besidesCandidate      = "a user set it; unclear whether %s, which sets its finalizers itself, removes it"
	standsSo              = "%s (%s)"
	isRunning             = "running"
	isNotRunning          = "not running"
	mightNotRun           = "might not run"
	rightsAlone           = "its controller might be %s: %s"
	nothingButRights      = "only its RBAC rights hint at it"
	setByOther            = `the finalizer was set by "%s"`
	changedByOther        = "%q has worked on %s since its deletion"
	changedLiving         = "%q has changed %s, which has the same finalizer, since this deletion"
	doubtfulCandidate     = "%s, probably its controller, might be down: %s"
	oneCandidate          = "its controller might be %s"
	deniedCandidate       = "its controller might be %s, which is not allowed to change the object"
	probableCandidate     = "its controller is probably %s, but it might be another one: %s"
	undecidedAmong        = "unclear which of these is its controller: %s"
	andStrangersLease     = "; a controller that is no workload here renews a lease for it"
	deadOrPossible        = "its controller might be %s, or another one that could remove it: %s"
	noKnownWorkload       = "no workload is known to be %s; workloads that could remove it: %s"
	calledSoWithoutRights = "%s has the name of its controller, but RBAC gives it no right to %s"
	justDeleted           = "no controller found yet; the deletion was requested less than a minute ago"
	ownerUnknown          = "unclear whose finalizer it is; workloads that could remove it: %s"
	outsideCluster        = "its controller might run outside the cluster: %s"
	existenceUnread       = "unclear whether its controller exists: %s could not be read"
	strangerWrites        = "%s, but unclear where that runs"
	strangersLease        = "a controller that is no workload here renews %s, and it might be its controller"
	strangersRule         = "%s is allowed to change such objects by a rule for them (%s), but unclear where it runs"
	ofOtherNamespaces     = "its controller might have run as %s, which has the right to change the object, but no workload runs as that; %s has rights to such objects in other namespaces only"
	withoutRightThere     = "%s has no right to such objects in %s; unclear whether it lost that right, or another controller of its name existed there"
)

// What points at a candidate, or against it.

const (
	notAllowedToChange = "RBAC does not allow it to change the object"
	inObjectsNamespace = "it is in the object's namespace"
	sharesWordWith     = "its name has a word of the finalizer or the type"
	inItsNamespace     = " in its namespace"
	mustRunBeside      = "must run beside %s, by the catalogue of finalizers"
	although           = ", although %s"
	saying             = ": %s"
	inParentheses      = " (%s)"
	hasAnnotation      = "%s has the annotation %s"
	hasField           = "%s has %s %s"
	livesBecause       = "%s: %s"
	sameOrigin         = "%s has the same %s"
	serviceLeaving     = "%s" + inLeavingNamespace
	forSoLong          = " (for %s)"
	andThat            = "; %s"
	givesRight         = "; %s gives it %s, which allows it to change the object"
	podCalledAfter     = "is called after the controller of %s"
	whereCatalogueSays = "is where the catalogue of finalizers has the controller of %s"
	calledAsInTable    = "has a name that the catalogue of finalizers has for controllers of %s, of which there might be several"
	nameInCatalogue    = "has the name that the catalogue of finalizers has for the controller of %s"
	programInCatalogue = "runs %s, which is the name that the catalogue of finalizers has for the controller of %s"
	setByName          = "the finalizer was set on %s by %q, which is a name of it"
	setByPodName       = "the finalizer was set on %s by %q, after which the pod is called"
	changedByName      = "%q, which is a name of it, has changed %s since its deletion"
	changedLately      = "%q has changed %s %s ago"
	changedAt          = "%q changed it at %s"
	inLeavingNamespace = ", in a namespace that is being deleted or gone"
	noAPIGroup         = "no API group of its domain"
)

// Rights.

const (
	rightsUnread             = "whether it is allowed to change the object could not be read"
	accountUnread            = "whether its account %s exists could not be read"
	accountUnlisted say.Word = "%s: the type could not be listed"
	noLabelledRole           = "%s: no ClusterRole that allows it has these labels"
	onlyNamed                = "%s allows %s only for those named %s"
	allowsNothing            = "RBAC allows it nothing"
	allowsOther              = "RBAC allows it %s (%s), and neither update nor patch"
	moreRules                = "and %d more such rules"
	roleGives                = "%s gives %s %s of %s"
	ownKubeconfig            = "it uses a kubeconfig, so its rights are unknown"
	accountUnknown           = "it has no pods, so its rights are unknown"
	impersonates             = "its account is allowed to impersonate others, so its rights are unknown"
)

// How a workload stands.

const (
	podsUnread       = "its pods could not be read"
	scaledToZero     = "it is scaled to 0"
	madeForCleanup   = "%s, which was created for the cleanup, fails: %s"
	suspended        = "it is suspended"
	runsBySchedule   = "it runs by the schedule %s"
	notReplaced      = ", and is not replaced"
	leavingBecause   = "it is being deleted: %s"
	leavingForGood   = "it is being deleted, %s, and is not replaced"
	leavingWhile     = "it is being deleted, while %s"
	nextPodFails     = ", and the next, %s, fails: %s"
	somePodsFail     = "%d of its %d pods are down"
	renewsLease      = "it renews its lease"
	leaseHung        = "a pod of it is ready, but does not renew its lease"
	leaseOfStranger  = "its lease is renewed by %s, which is no pod of it"
	leaseOfAnybody   = "its lease is renewed by %s"
	leaseNotRenewed  = "a pod of it is ready, but its lease is not renewed"
	noPods           = "it has no pods"
	leavingNoPods    = "it is being deleted, and has no pods any more"
	podsNotCreated   = "its pods cannot be created: %s"
	namespaceLeaving = "its namespace is being deleted, so no pods can be created in it"
	noPodsNoManager  = "it has no pods, and kube-controller-manager, which creates them, is down"
	newWithoutPods   = "it is new and has no pods yet"
	noNode           = "no node matches it"
	pausedNoPods     = "it is paused and has no pods"
)

// How its ServiceAccount stands.

const (
	accountLeaving      = "its account %s is being deleted, so the API server rejects its requests"
	accountLeavingLeads = "it has renewed its lease, but its account %s is being deleted"
	accountRecreated    = "its account %s was recreated after its pod, whose token the API server rejects until the kubelet gets a new one"
	accountGone         = "its account %s does not exist, so the API server rejects its requests"
	accountGoneLeads    = "it has renewed its lease, but its account %s no longer exists"
	tokensOfLeaving     = "more than a minute ago: the API server rejects the tokens of a ServiceAccount that is being deleted"
	tokensOfGone        = "does not exist; the API server rejects the tokens of a ServiceAccount that is gone"
	laterThanPod        = "later than that of pod %s"
)

// How a pod stands.

const (
	podUnknownForm   = "its pod has an unknown form"
	podOnNoNode      = "its pod is unschedulable"
	podWaitsForNode  = "its pod has just begun to wait for a node"
	podNotReady      = "its pod is not ready"
	podNotStarting   = "its pod does not start: %s"
	podDeleted       = "its pod %s is being deleted"
	podOverdue       = "its pod %s should have ended"
	podReady         = "its pod %s is ready"
	podReadyNoNode   = "its pod is Ready, but on no node"
	podReadyUnsure   = "its pod is Ready, but unclear whether its node is"
	podReadyNodeDown = "its pod is Ready, but its node is NotReady"
	podEnded         = "its pod has ended"
	containerFailed  = "its container %s has ended with code %d: %s"
	podGated         = "its pod is held by scheduling gates"
	containerWaits   = "its container %s is in %s"
	justRestarted    = "its container %s has just been restarted after crashes"
	endedWithCode    = "; ended with code %d (%s) %s"
)
