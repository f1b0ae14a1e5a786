// SPDX-License-Identifier: Apache-2.0

package explain

import "slices"

// Class says what kind of thing holds an object up. Order and behaviour go by it,
// never by identifiers, which are for people.
type Class int

// The classes.
const (
	// Waits: for something that has to happen first.
	Waits Class = iota
	// Collector: it is about the garbage collector and its own finalizers.
	Collector
	// Refusal: something refuses the write that is needed.
	Refusal
	// Controllers: somebody else has to take a finalizer off.
	Controllers
	// NotStuck: it is said of an object that nobody is deleting.
	NotStuck
	// Unclear: what could be read does not tell.
	Unclear
)

// Kind is one of the causes that there are, or of the steps on the way to one.
type Kind struct {
	// ID is stable.
	ID    string
	Class Class
	// Meaning says it in a few words.
	Meaning string
}

var kinds []Kind

// Kinds returns all kinds, by their identifiers.
func Kinds() []Kind { return slices.Clone(kinds) }

// kind declares a Kind.
func kind(id string, class Class, meaning string) Kind {
	k := Kind{id, class, meaning}
	kinds = append(kinds, k)
	return k
}

var (
	finAbsent             = kind("fin-absent", Controllers, "nothing in the cluster serves its finalizer")
	finDead               = kind("fin-dead", Controllers, "the controller of its finalizer does not run")
	finFailing            = kind("fin-alive-failing", Controllers, "the controller of its finalizer works, and its clean-up fails")
	finWorking            = kind("fin-working", Controllers, "the controller of its finalizer works, and is not done")
	finManual             = kind("fin-manual", Controllers, "a person set its finalizer, and nothing in the cluster serves it")
	finUnknown            = kind("fin-unknown", Controllers, "who serves its finalizer, or whether that works, cannot be told")
	finRBAC               = kind("fin-rbac", Controllers, "the controller of its finalizer may not change it")
	finInNamespace        = kind("fin-operator-in-ns", Controllers, "the controller of its finalizer went with its namespace")
	finNeedsCreate        = kind("fin-needs-create", Controllers, "its controller has to create something in a namespace that is being deleted")
	finQuota              = kind("fin-quota", Controllers, "a quota or pod security keeps its controller from what the clean-up needs")
	admWebhookDead        = kind("adm-webhook-dead", Refusal, "a webhook that must allow the write cannot be reached")
	admWebhookDeny        = kind("adm-webhook-deny", Refusal, "a webhook refuses the write")
	admVapDeny            = kind("adm-vap-deny", Refusal, "a ValidatingAdmissionPolicy refuses the write")
	admMutatingReadd      = kind("adm-mutating-readd", Refusal, "a mutating webhook or policy puts the finalizer back")
	admMutatingInvalid    = kind("adm-mutating-invalid", Refusal, "a mutating webhook or policy makes every update invalid")
	admRefused            = kind("adm-refused", Refusal, "the API server refuses the write")
	valSchemaTightened    = kind("val-schema-tightened", Refusal, "its own type does not allow it any more as it is")
	valConversionDead     = kind("val-conversion-dead", Refusal, "a conversion webhook does not convert")
	valUnreadable         = kind("val-unreadable", Refusal, "what etcd has of it cannot be decrypted or decoded")
	gcAbsent              = kind("gc-absent", Collector, "kube-controller-manager does not work")
	gcFgBlocking          = kind("gc-fg-blocking", Collector, "dependents block its foreground deletion")
	gcFgDenied            = kind("gc-fg-denied", Collector, "what would free it of a blocking dependent is refused")
	gcFgCycle             = kind("gc-fg-cycle", Collector, "owners in foreground deletion wait for each other")
	gcFgOwnerUnresolvable = kind("gc-fg-owner-unresolvable", Collector, "a blocking dependent has an owner that cannot be judged")
	gcFgOwnerrefScope     = kind("gc-fg-ownerref-scope", Collector, "a cluster-scoped blocking dependent has a namespaced owner")
	gcFgRecreated         = kind("gc-fg-recreated", Collector, "its blocking dependents are made again")
	gcOrphanPending       = kind("gc-orphan-pending", Collector, "its dependents are not orphaned yet")
	gcBlind               = kind("gc-blind", Collector, "the garbage collector cannot see objects of its type")
	halfDeleted           = kind("half-deleted", Waits, "it is marked as deleted, and nothing holds it")
	clockSkew             = kind("clock-skew", Unclear, "clocks in the control plane differ")
	notRead               = kind("unread", Unclear, "something that decides could not be read")
	nsContent             = kind("ns-content", Waits, "its content is not gone")
	nsPodsFirst           = kind("ns-pods-first", Waits, "its pods have to go before all else")
	nsDiscovery           = kind("ns-discovery", Waits, "an API does not answer, so its types cannot be found out")
	nsGvParse             = kind("ns-gv-parse", Waits, "an API group has a version that cannot be read")
	nsContentFailure      = kind("ns-content-failure", Waits, "its content cannot be deleted")
	nsSpecFinalizers      = kind("ns-spec-finalizers", Controllers, "somebody has to take a finalizer off its spec")
	nsMetaFinalizers      = kind("ns-meta-finalizers", Controllers, "somebody has to take a finalizer off its metadata")
	nsControllerAbsent    = kind("ns-controller-absent", Waits, "the namespace controller has not begun")
	nsForcedLeftovers     = kind("ns-forced-leftovers", Waits, "its namespace was removed by force, and left it behind")
	nsProtected           = kind("ns-protected", NotStuck, "the API server does not let it be deleted")
	crdInstances          = kind("crd-instances", Waits, "its instances are not gone")
	crdConversion         = kind("crd-conversion", Waits, "its instances cannot be listed")
	crdFinalizer          = kind("crd-finalizer", Waits, "another finalizer than the API server's is on it")
	podGrace              = kind("pod-grace", Waits, "its grace period is not over")
	podKubeletKill        = kind("pod-kubelet-kill", Waits, "its kubelet has not ended its containers")
	podVolumes            = kind("pod-volumes", Waits, "its kubelet has not cleaned up after it")
	podNodeNotready       = kind("pod-node-notready", Waits, "its node does not report")
	podNodeGone           = kind("pod-node-gone", Waits, "its node does not exist")
	podVirtualNode        = kind("pod-virtual-node", Waits, "its node is no machine")
	podUnscheduled        = kind("pod-unscheduled", Waits, "it is on no node")
	podMirror             = kind("pod-mirror", Waits, "it is the image of a static pod")
	podFinalizer          = kind("pod-finalizer", Waits, "somebody has to take a finalizer off it")
	podJobTracking        = kind("pod-job-tracking", Waits, "its Job has to count it")
	pvcInUse              = kind("pvc-in-use", Waits, "a pod uses it")
	pvcSnapshotSource     = kind("pvc-snapshot-source", Waits, "a snapshot or a copy is being made of it")
	pvBound               = kind("pv-bound", Waits, "a claim is bound to it")
	pvProvisioner         = kind("pv-provisioner", Waits, "its driver has to delete the storage")
	vaDetach              = kind("va-detach", Waits, "its driver has to detach it")
	snapshotClone         = kind("snapshot-clone", Waits, "its content, or a copy of it, comes first")
	vacInUse              = kind("vac-in-use", Waits, "volumes use the class")
	svcLb                 = kind("svc-lb", Waits, "its load balancer has to be taken down")
	servicecidrInUse      = kind("servicecidr-in-use", Waits, "addresses out of it are in use")
	draClaimReserved      = kind("dra-claim-reserved", Waits, "a pod uses it")
	podGroupInUse         = kind("podgroup", Waits, "pods of it have not ended")
	nodeKarpenter         = kind("node-karpenter", Waits, "its pods have to be evicted")
	notTerminating        = kind("not-terminating", NotStuck, "nobody is deleting it")
	recreated             = kind("recreated", NotStuck, "it has taken the place of one that was deleted")
)
