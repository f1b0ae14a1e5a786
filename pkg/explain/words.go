// SPDX-License-Identifier: Apache-2.0

package explain

import "github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"

// All that explain says is in words.go and words_*.go, a file for each subject. The rules choose values, and nothing
// reads a sentence.

// The kinds, with what each means.
var (
	finAbsent             = kind("fin-absent", Controllers, "no controller in the cluster removes its finalizer")
	finDead               = kind("fin-dead", Controllers, "the controller of its finalizer does not run")
	finFailing            = kind("fin-alive-failing", Controllers, "the controller of its finalizer works, but its cleanup fails")
	finWorking            = kind("fin-working", Controllers, "the controller of its finalizer works, and has not finished")
	finManual             = kind("fin-manual", Controllers, "a user set its finalizer, and no controller in the cluster removes it")
	finUnknown            = kind("fin-unknown", Controllers, "it is not known which controller removes its finalizer, or whether that controller works")
	finRBAC               = kind("fin-rbac", Controllers, "the controller of its finalizer is not allowed to change it")
	finInNamespace        = kind("fin-operator-in-ns", Controllers, "the controller of its finalizer was deleted with its namespace")
	finNeedsCreate        = kind("fin-needs-create", Controllers, "its controller has to create an object in a terminating namespace")
	finQuota              = kind("fin-quota", Controllers, "a quota or pod security blocks the cleanup by its controller")
	admWebhookDead        = kind("adm-webhook-dead", Refusal, "a webhook that must allow the write is unreachable")
	admWebhookDeny        = kind("adm-webhook-deny", Refusal, "a webhook rejects the write")
	admVapDeny            = kind("adm-vap-deny", Refusal, "a ValidatingAdmissionPolicy rejects the write")
	admMutatingReadd      = kind("adm-mutating-readd", Refusal, "a mutating webhook or policy adds the finalizer again")
	admMutatingInvalid    = kind("adm-mutating-invalid", Refusal, "a mutating webhook or policy makes every update invalid")
	admRefused            = kind("adm-refused", Refusal, "the API server rejects the write")
	valSchemaTightened    = kind("val-schema-tightened", Refusal, "the schema of its type no longer allows it as it is")
	valConversionDead     = kind("val-conversion-dead", Refusal, "a conversion webhook fails")
	valUnreadable         = kind("val-unreadable", Refusal, "its data in etcd cannot be decrypted or decoded")
	gcAbsent              = kind("gc-absent", Collector, "kube-controller-manager does not work")
	gcFgBlocking          = kind("gc-fg-blocking", Collector, "dependents block its foreground deletion")
	gcFgDenied            = kind("gc-fg-denied", Collector, "the garbage collector cannot delete or release a blocking dependent")
	gcFgCycle             = kind("gc-fg-cycle", Collector, "owners in foreground deletion block each other")
	gcFgOwnerUnresolvable = kind("gc-fg-owner-unresolvable", Collector, "a blocking dependent has an owner that cannot be resolved")
	gcFgOwnerrefScope     = kind("gc-fg-ownerref-scope", Collector, "a blocking dependent references an owner across namespaces or scopes")
	gcFgRecreated         = kind("gc-fg-recreated", Collector, "its blocking dependents are recreated")
	gcOrphanPending       = kind("gc-orphan-pending", Collector, "its dependents are not orphaned yet")
	gcBlind               = kind("gc-blind", Collector, "the garbage collector cannot list its type")
	halfDeleted           = kind("half-deleted", Waits, "it is marked as deleted, but nothing blocks it")
	clockSkew             = kind("clock-skew", Unclear, "clocks in the control plane differ")
	notRead               = kind("unread", Unclear, "something that decides its deletion could not be read")
	nsContent             = kind("ns-content", Waits, "its contents are not deleted yet")
	nsPodsFirst           = kind("ns-pods-first", Waits, "its pods must be deleted before the rest of its contents")
	nsDiscovery           = kind("ns-discovery", Waits, "an API does not respond, so its types are not known")
	nsGvParse             = kind("ns-gv-parse", Waits, "an API has a group version that cannot be parsed")
	nsContentFailure      = kind("ns-content-failure", Waits, "its contents cannot be deleted")
	nsSpecFinalizers      = kind("ns-spec-finalizers", Controllers, "a controller has to remove a finalizer from its spec")
	nsMetaFinalizers      = kind("ns-meta-finalizers", Controllers, "a controller has to remove a finalizer from its metadata")
	nsControllerAbsent    = kind("ns-controller-absent", Waits, "the namespace controller has not started")
	nsForcedLeftovers     = kind("ns-forced-leftovers", Waits, "its namespace was removed by force and left it behind")
	nsProtected           = kind("ns-protected", NotStuck, "the API server does not allow its deletion")
	crdInstances          = kind("crd-instances", Waits, "its instances are not deleted yet")
	crdConversion         = kind("crd-conversion", Waits, "its instances cannot be listed")
	crdFinalizer          = kind("crd-finalizer", Waits, "it has another finalizer than the API server's")
	podGrace              = kind("pod-grace", Waits, "its grace period is not over")
	podKubeletKill        = kind("pod-kubelet-kill", Waits, "its kubelet has not stopped its containers")
	podVolumes            = kind("pod-volumes", Waits, "its kubelet has not cleaned up after it")
	podNodeNotready       = kind("pod-node-notready", Waits, "its node does not report")
	podNodeGone           = kind("pod-node-gone", Waits, "its node does not exist")
	podVirtualNode        = kind("pod-virtual-node", Waits, "its node is virtual")
	podUnscheduled        = kind("pod-unscheduled", Waits, "it has no node")
	podMirror             = kind("pod-mirror", Waits, "it mirrors a static pod")
	podFinalizer          = kind("pod-finalizer", Waits, "a controller has to remove its finalizer")
	podJobTracking        = kind("pod-job-tracking", Waits, "its Job has to count it")
	pvcInUse              = kind("pvc-in-use", Waits, "a pod uses it")
	pvcSnapshotSource     = kind("pvc-snapshot-source", Waits, "a snapshot or a copy of it is being made")
	pvBound               = kind("pv-bound", Waits, "a claim is bound to it")
	pvProvisioner         = kind("pv-provisioner", Waits, "its driver has to delete the storage")
	vaDetach              = kind("va-detach", Waits, "its driver has to detach the volume")
	snapshotClone         = kind("snapshot-clone", Waits, "its content must be deleted, or a copy of it completed, first")
	vacInUse              = kind("vac-in-use", Waits, "volumes use it")
	svcLb                 = kind("svc-lb", Waits, "its load balancer has to be deleted")
	servicecidrInUse      = kind("servicecidr-in-use", Waits, "addresses in it are in use")
	draClaimReserved      = kind("dra-claim-reserved", Waits, "a pod uses it")
	podGroupInUse         = kind("podgroup", Waits, "its pods have not ended")
	nodeKarpenter         = kind("node-karpenter", Waits, "its pods have to be evicted")
	notTerminating        = kind("not-terminating", NotStuck, "it is not being deleted")
	recreated             = kind("recreated", NotStuck, "it might be a new object in the place of a deleted one")
)

// Common facts and reasons.
const (
	doesNotExist   = "does not exist"
	notSet         = "not set"
	notTerminated  = "it is not being deleted"
	deletedByNow   = "it was deleted during this analysis"
	nothingBlocks  = "nothing blocks it"
	deletionBroken = "it is marked as deleted, but nothing blocks it: its deletion was interrupted"
	finishDeletion = "complete the deletion"
	andMore        = "and %d more like it"
	unreadBlocker  = "%s could not be read, so its blocker is not known"
	unexamined     = "who removes the finalizers of %s beyond the first %d: it has %d"
	notListed      = "%s could not be listed%s"
	moreUnlisted   = "%s and %d more could not be listed%s"
	typesOf        = "the types of %s"

	removesFinalizer     = "remove this finalizer alone, once you have done its cleanup yourself"
	removesSpecFinalizer = "remove this entry of spec.finalizers alone, once you have done its cleanup yourself"
	lostCleanup          = "the resources that its controller would have cleaned up, possibly outside the cluster"
)

// lostGuard says of webhooks or a policy that they check nothing "any more", or while something is so.
const lostGuard = "nothing is checked by the %s %s"

// A service that does not answer.
const (
	irreparable    = "; it cannot be repaired in place: its namespace %s is being deleted, and nothing can be created there"
	recreateFirst  = "recreate the namespace first; then install the service %s and its pods in it, and %s"
	installAgain   = "see the rest of its installation: install the service %s and its pods again, and %s"
	scaleUpBackend = "scale up its backend %s, which is scaled to 0; %s"
	repairBackend  = "see its backend: repair the service %s and its pods, and %s"
)

// count says how many there are of something, of which there is at least one.
func count(n int, one string) string {
	if n == 1 {
		return one
	}
	return evidence.Number(n, one)
}
