// SPDX-License-Identifier: Apache-2.0

package explain

import "slices"

// Class groups causes. Order and behaviour depend on it, never on identifiers, which are for people.
type Class int

// The classes.
const (
	// Waits: something else has to happen first.
	Waits Class = iota
	// Collector: the garbage collector and its own finalizers.
	Collector
	// Refusal: something rejects the write that is needed.
	Refusal
	// Controllers: a controller has to remove a finalizer.
	Controllers
	// NotStuck: the object is not being deleted.
	NotStuck
	// Unclear: what could be read does not decide it.
	Unclear
)

// Kind is a kind of cause, or of a step on the way to one.
type Kind struct {
	// ID is stable.
	ID    string
	Class Class
}

// Meaning says in a few words what the kind is.
func (k Kind) Meaning() string { return meanings[k] }

var kinds []Kind

// Kinds returns all kinds, by their identifiers.
func Kinds() []Kind { return slices.Clone(kinds) }

// kind declares a Kind.
func kind(id string, class Class) Kind {
	k := Kind{id, class}
	kinds = append(kinds, k)
	return k
}

var (
	finAbsent             = kind("fin-absent", Controllers)
	finDead               = kind("fin-dead", Controllers)
	finFailing            = kind("fin-alive-failing", Controllers)
	finWorking            = kind("fin-working", Controllers)
	finManual             = kind("fin-manual", Controllers)
	finUnknown            = kind("fin-unknown", Controllers)
	finRBAC               = kind("fin-rbac", Controllers)
	finInNamespace        = kind("fin-operator-in-ns", Controllers)
	finNeedsCreate        = kind("fin-needs-create", Controllers)
	finQuota              = kind("fin-quota", Controllers)
	admWebhookDead        = kind("adm-webhook-dead", Refusal)
	admWebhookDeny        = kind("adm-webhook-deny", Refusal)
	admVapDeny            = kind("adm-vap-deny", Refusal)
	admMutatingReadd      = kind("adm-mutating-readd", Refusal)
	admMutatingInvalid    = kind("adm-mutating-invalid", Refusal)
	admRefused            = kind("adm-refused", Refusal)
	valSchemaTightened    = kind("val-schema-tightened", Refusal)
	valConversionDead     = kind("val-conversion-dead", Refusal)
	valUnreadable         = kind("val-unreadable", Refusal)
	gcAbsent              = kind("gc-absent", Collector)
	gcFgBlocking          = kind("gc-fg-blocking", Collector)
	gcFgDenied            = kind("gc-fg-denied", Collector)
	gcFgCycle             = kind("gc-fg-cycle", Collector)
	gcFgOwnerUnresolvable = kind("gc-fg-owner-unresolvable", Collector)
	gcFgOwnerrefScope     = kind("gc-fg-ownerref-scope", Collector)
	gcFgRecreated         = kind("gc-fg-recreated", Collector)
	gcOrphanPending       = kind("gc-orphan-pending", Collector)
	gcBlind               = kind("gc-blind", Collector)
	halfDeleted           = kind("half-deleted", Waits)
	clockSkew             = kind("clock-skew", Unclear)
	notRead               = kind("unread", Unclear)
	nsContent             = kind("ns-content", Waits)
	nsPodsFirst           = kind("ns-pods-first", Waits)
	nsDiscovery           = kind("ns-discovery", Waits)
	nsGvParse             = kind("ns-gv-parse", Waits)
	nsContentFailure      = kind("ns-content-failure", Waits)
	nsSpecFinalizers      = kind("ns-spec-finalizers", Controllers)
	nsMetaFinalizers      = kind("ns-meta-finalizers", Controllers)
	nsControllerAbsent    = kind("ns-controller-absent", Waits)
	nsForcedLeftovers     = kind("ns-forced-leftovers", Waits)
	nsProtected           = kind("ns-protected", NotStuck)
	crdInstances          = kind("crd-instances", Waits)
	crdConversion         = kind("crd-conversion", Waits)
	crdFinalizer          = kind("crd-finalizer", Waits)
	podGrace              = kind("pod-grace", Waits)
	podKubeletKill        = kind("pod-kubelet-kill", Waits)
	podVolumes            = kind("pod-volumes", Waits)
	podNodeNotready       = kind("pod-node-notready", Waits)
	podNodeGone           = kind("pod-node-gone", Waits)
	podVirtualNode        = kind("pod-virtual-node", Waits)
	podUnscheduled        = kind("pod-unscheduled", Waits)
	podMirror             = kind("pod-mirror", Waits)
	podFinalizer          = kind("pod-finalizer", Waits)
	podJobTracking        = kind("pod-job-tracking", Waits)
	pvcInUse              = kind("pvc-in-use", Waits)
	pvcSnapshotSource     = kind("pvc-snapshot-source", Waits)
	pvBound               = kind("pv-bound", Waits)
	pvProvisioner         = kind("pv-provisioner", Waits)
	vaDetach              = kind("va-detach", Waits)
	snapshotClone         = kind("snapshot-clone", Waits)
	vacInUse              = kind("vac-in-use", Waits)
	svcLb                 = kind("svc-lb", Waits)
	servicecidrInUse      = kind("servicecidr-in-use", Waits)
	draClaimReserved      = kind("dra-claim-reserved", Waits)
	podGroupInUse         = kind("podgroup", Waits)
	nodeKarpenter         = kind("node-karpenter", Waits)
	notTerminating        = kind("not-terminating", NotStuck)
	recreated             = kind("recreated", NotStuck)
)
