// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// All that explain says is in words.go and words_*.go, a file for each subject. The rules choose values, and nothing
// reads a sentence.

// meanings says what each kind is.
var meanings = map[Kind]string{
	finAbsent:             "no controller in the cluster removes its finalizer",
	finDead:               "the controller of its finalizer does not run",
	finFailing:            "the controller of its finalizer works, but its cleanup fails",
	finWorking:            "the controller of its finalizer works, and has not finished",
	finManual:             "a user set its finalizer, and no controller in the cluster removes it",
	finUnknown:            "it is not known which controller removes its finalizer, or whether that controller works",
	finRBAC:               "the controller of its finalizer is not allowed to change it",
	finInNamespace:        "the controller of its finalizer was deleted with its namespace",
	finNeedsCreate:        "its controller has to create an object in a terminating namespace",
	finQuota:              "a quota or pod security blocks the cleanup by its controller",
	admWebhookDead:        "a webhook that must allow the write is unreachable",
	admWebhookDeny:        "a webhook rejects the write",
	admVapDeny:            "a ValidatingAdmissionPolicy rejects the write",
	admMutatingReadd:      "a mutating webhook or policy adds the finalizer again",
	admMutatingInvalid:    "a mutating webhook or policy makes every update invalid",
	admRefused:            "the API server rejects the write",
	valSchemaTightened:    "the schema of its type no longer allows it as it is",
	valConversionDead:     "a conversion webhook fails",
	valUnreadable:         "its data in etcd cannot be decrypted or decoded",
	gcAbsent:              "kube-controller-manager does not work",
	gcFgBlocking:          "dependents block its foreground deletion",
	gcFgDenied:            "the garbage collector cannot delete or release a blocking dependent",
	gcFgCycle:             "owners in foreground deletion block each other",
	gcFgOwnerUnresolvable: "a blocking dependent has an owner that cannot be resolved",
	gcFgOwnerrefScope:     "a blocking dependent has an owner that its own scope does not allow",
	gcFgRecreated:         "its blocking dependents are recreated",
	gcOrphanPending:       "its dependents are not orphaned yet",
	gcBlind:               "the garbage collector cannot list its type",
	halfDeleted:           "it is marked as deleted, but nothing blocks it",
	clockSkew:             "clocks in the control plane differ",
	notRead:               "something that decides its deletion could not be read",
	nsContent:             "its contents are not deleted yet",
	nsPodsFirst:           "its pods must be deleted before the rest of its contents",
	nsDiscovery:           "an API does not respond, so its types are not known",
	nsGvParse:             "an API has a group version that cannot be parsed",
	nsContentFailure:      "its contents cannot be deleted",
	nsSpecFinalizers:      "a controller has to remove a finalizer from its spec",
	nsMetaFinalizers:      "a controller has to remove a finalizer from its metadata",
	nsControllerAbsent:    "the namespace controller has not started",
	nsForcedLeftovers:     "its namespace was removed by force and left it behind",
	nsProtected:           "the API server does not allow its deletion",
	crdInstances:          "its instances are not deleted yet",
	crdConversion:         "its instances cannot be listed",
	crdFinalizer:          "it has another finalizer than the API server's",
	podGrace:              "its grace period is not over",
	podKubeletKill:        "its kubelet has not stopped its containers",
	podVolumes:            "its kubelet has not cleaned up after it",
	podNodeNotready:       "its node does not report",
	podNodeGone:           "its node does not exist",
	podVirtualNode:        "its node is virtual",
	podUnscheduled:        "it has no node",
	podMirror:             "it mirrors a static pod",
	podFinalizer:          "a controller has to remove its finalizer",
	podJobTracking:        "its Job has to count it",
	pvcInUse:              "a pod uses it",
	pvcSnapshotSource:     "a snapshot or a copy of it is being made",
	pvBound:               "a claim is bound to it",
	pvProvisioner:         "its driver has to delete the storage",
	vaDetach:              "its driver has to detach the volume",
	snapshotClone:         "its content must be deleted, or a copy of it completed, first",
	vacInUse:              "volumes use it",
	svcLb:                 "its load balancer has to be deleted",
	servicecidrInUse:      "addresses in it are in use",
	draClaimReserved:      "a pod uses it",
	podGroupInUse:         "its pods have not ended",
	nodeKarpenter:         "its pods have to be evicted",
	notTerminating:        "it is not being deleted",
	recreated:             "it might be a new object in the place of a deleted one",
}

// Common facts and reasons.
const (
	doesNotExist   = "does not exist"
	notSet         = "not set"
	notTerminated  = "it is not being deleted"
	deletedByNow   = "it was deleted during this analysis"
	inTheFuture    = "its deletion timestamp is in the future"
	nothingBlocks  = "nothing blocks it"
	deletionBroken = "it is marked as deleted, but nothing blocks it: its deletion was interrupted"
	finishDeletion = "complete the deletion"

	removesFinalizer     = "remove this finalizer alone, once you have done its cleanup yourself"
	removesSpecFinalizer = "remove this entry of spec.finalizers alone, once you have done its cleanup yourself"
)

// unreadBlocker says that something of an object could not be read.
func unreadBlocker(what string) string {
	return what + " could not be read, so its blocker is not known"
}

// unexamined says of which finalizers of an object it was not examined who removes them.
func unexamined(n graph.Node, examined, all int) string {
	return fmt.Sprintf("who removes the finalizers of %s beyond the first %d: it has %d", n.Identity(), examined, all)
}

func typesOf(group schema.GroupVersion) string { return "the types of " + group.String() }

// notListed says what could not be listed: name, and more beside it, at a place.
func notListed(name string, more int, where string) string {
	if more > 0 {
		name = fmt.Sprintf("%s and %d more", name, more)
	}
	return name + " could not be listed" + where
}

// andMore ends the evidence of a cause that many objects share.
func andMore(n int) string { return fmt.Sprintf("and %d more like it", n) }

// count says how many there are of something, of which there is at least one.
func count(n int, one string) string {
	if n == 1 {
		return one
	}
	return evidence.Number(n, one)
}

// Losses.
const (
	lostCleanup   = "the resources that its controller would have cleaned up, possibly outside the cluster"
	lostUnknown   = "the data of the claim, unless its volume is retained"
	lostJobResult = "the result of the Job"
)

func lostData(volume graph.Identity, size string) string {
	return fmt.Sprintf("the data: %s on %s, which is deleted with the claim", cmp.Or(size, "all"), volume)
}

// lostGuard says of webhooks or a policy that they check nothing; when is "any more", or while something is so.
func lostGuard(what, when string) string {
	return fmt.Sprintf("nothing is checked by the %s %s", what, when)
}

// irreparable ends the summary of a cause at a service whose namespace is being deleted.
func irreparable(s *admission.Serving) string {
	return fmt.Sprintf("; it cannot be repaired in place: its namespace %s is being deleted, and nothing can be created there", s.Namespace)
}

// repairing says how to make a service answer, and the effect of that.
func repairing(s *admission.Serving, effect string) string {
	switch {
	case s.Homeless:
		return fmt.Sprintf("recreate the namespace first; then install the service %s and its pods in it, and %s", s.Name, effect)
	case s.Uninstalled:
		return fmt.Sprintf("look at the rest of its installation: install the service %s and its pods again, and %s", s.Name, effect)
	case s.Idle != nil:
		return fmt.Sprintf("scale up its backend %s, which is scaled to 0; %s", s.Idle.ID(), effect)
	}
	return fmt.Sprintf("look at its backend: repair the service %s and its pods, and %s", s.Name, effect)
}
