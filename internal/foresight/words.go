// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"fmt"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// All that foresight says. Nothing else in the package has a sentence, and nothing reads one.

// How sure a reason is, and what it depends on.
const (
	// StuckBy: it is certain.
	StuckBy say.Word = "stuck: %s"
	// MayStick: it depends on what could not be read.
	MayStick say.Word = "might get stuck: %s"
	// UnlessFirst: it depends on the order.
	UnlessFirst = "might get stuck " + unlessFirst
	// InAnyOrder is UnlessFirst for what cannot go first, because each needs the other.
	InAnyOrder = "might get stuck " + inAnyOrder

	unlessFirst say.Word = "unless this object is deleted first: %s"
	inAnyOrder  say.Word = "in any order: %s"
)

// certainties are the words of how sure a reason is, with what they add to "stuck" and "might get stuck".
var certainties = map[say.Word]say.Word{StuckBy: "%s", MayStick: "%s", UnlessFirst: unlessFirst, InAnyOrder: inAnyOrder}

// Bare returns the reason of an outcome for where it is said already that the object is, or might get, stuck.
func Bare(reason say.Text) say.Text {
	for w, short := range certainties {
		if at, args := reason.Find(w); at == 0 {
			return reason.Splice(0, 1, say.Of(short, args...))
		}
	}
	return reason
}

// Of a finalizer, with who removes it.
const (
	works             say.Word = "%s works and removes the finalizer %s"
	worksWhen         say.Word = "%s works and removes the finalizer %s, when %s"
	outsider          say.Word = "a controller outside the cluster, which renews a lease,"
	uncheckedUse      say.Word = "; whether that is so was not checked"
	unused            say.Word = "; nothing uses it"
	usedByKept        say.Word = "; %s (%s old) uses it, and is not deleted"
	usedByEnding      say.Word = "; %s uses it, and is being deleted already"
	usedBy            say.Word = "; %s uses it, and must be deleted before"
	oneWorks          say.Word = "one of %s removes the finalizer %s; all work"
	eachLoses         say.Word = "%s, one of which must remove the finalizer %s, are deleted, or lose what they need"
	createsWithin     say.Word = "%s, which must remove the finalizer %s, creates %s for it, which is not possible in namespace %s once that is being deleted"
	bySchedule        say.Word = ", but not before its next scheduled run"
	notWorking        say.Word = "%s, which must remove the finalizer %s, is down: %s"
	denied            say.Word = "%s, which must remove the finalizer %s, is not allowed to update or patch %s"
	wentWithNamespace say.Word = "%s, which must remove the finalizer %s, was deleted with its namespace"
	unclaimed         say.Word = "no controller in the cluster removes the finalizer %s"
	manual            say.Word = "a user set the finalizer %s (%s), and no controller in the cluster removes it"
	unknownService    say.Word = "unclear whether a controller removes the finalizer %s"
	because           say.Word = ": %s"
	mightTake         say.Word = "; this also deletes %s, which might, or what it needs"
	controllerLoses   say.Word = "%s, which must remove the finalizer %s, %s"
	andBefore         say.Word = ", and before this object"
	needsAbsent       say.Word = "the controller of the finalizer %s needs %s, which does not exist"
	oneNeedsAbsent    say.Word = "%s, which must remove the finalizer %s, needs %s for it, which does not exist"
	doubted           say.Word = "%s must remove the finalizer %s, and %s"
	pausedBy          say.Word = "%s, which must remove the finalizer %s, ignores this object: %s"
	ifPausedBy        say.Word = "gets stuck if %s, which must remove the finalizer %s, ignores this object: %s"
	maybeStuck        say.Word = "may be stuck: %s"
)

// does says of a controller that it works, and removes a finalizer under a condition, which may be empty.
func does(finalizer string, by graph.Identity, when string) say.Text {
	var who any = by
	if by.Name == "" {
		who = outsider
	}
	if when != "" {
		return say.Of(worksWhen, who, finalizer, when)
	}
	return say.Of(works, who, finalizer)
}

// losing says that a controller loses something; before the object, if that is known.
func losing(finalizer string, by graph.Identity, loss deprivation, before bool) say.Text {
	said := say.Of(controllerLoses, by, finalizer, loss.clause())
	if before {
		said = said.And(andBefore)
	}
	return said
}

// What a controller loses.
const (
	isDeleted   say.Word = "is deleted"
	losesObject say.Word = "loses its %s"
	losesRights say.Word = "loses its rights with %s"
	losesPod    say.Word = "loses its last pod with %s"
	needsIt     say.Word = "needs %s for it, which is deleted"
	inStep      say.Word = " (step %d)"
	withOther   say.Word = " with %s"
)

// clause says of a controller what it loses.
func (d deprivation) clause() say.Text {
	switch d.kind {
	case ofItself:
		return d.when(say.Of(isDeleted))
	case ofObject:
		return d.when(say.Of(losesObject, allOf(d.what)))
	case ofRights:
		return say.Of(losesRights, allOf(d.what))
	case ofNodes:
		return say.Of(losesPod, allOf(d.what))
	case ofNeed:
		return d.when(say.Of(needsIt, allOf(d.what)))
	}
	return say.Text{}
}

func (d deprivation) when(said say.Text) say.Text {
	switch {
	case d.step > 0:
		return said.And(inStep, d.step)
	case d.with.Name != "":
		return said.And(withOther, d.with)
	}
	return said
}

// Of webhooks and policies that have to allow a change or a deletion.
const (
	must            say.Word = "must"
	mightHaveTo     say.Word = "might have to"
	silentNow       say.Word = "%s must allow every change of it, but nothing answers at %s"
	silentUntilGone say.Word = "gets stuck unless %[1]s is deleted first: it %[2]s allow every change of this object, and nothing answers at %[3]s"
	silentIfAsked   say.Word = "gets stuck if %s has to allow every change of it, since nothing answers at %s"
	silentIfUnread  say.Word = "gets stuck if %s has to allow every change of it, and nothing answers at %s, which could not be read"
	silentByThePlan say.Word = "%[1]s %[2]s allow every change of it, and the backend of %[3]s is deleted"
	webhooksUnread  say.Word = "the webhooks that might have to allow the removal of the finalizer %s could not be read"

	parameterMissing say.Word = "%s judges every change of it by %s, %s, and refuses it without"
	parameterGoes    say.Word = "which is deleted"
	parameterUnread  say.Word = "which could not be read"
	parameterAbsent  say.Word = "which does not exist"

	deletionJudged  say.Word = "%s decides about its deletion, and its answer is unknown"
	deletionDenied  say.Word = "%s denies its deletion"
	removalJudged   say.Word = "%s decides about the end of its deletion, and its answer is unknown"
	removalDenied   say.Word = "%s denies the end of its deletion, an update by a controller of Kubernetes"
	deletionRefused say.Word = "%s must allow its deletion, but nothing answers at %s"
	refusedByPlan   say.Word = "%s must allow its deletion, but after this deletion nothing answers at %s"

	removalRefused       say.Word = "%s must allow the removal of its finalizer, but nothing answers at %s"
	removalRefusedByPlan say.Word = "%s must allow the removal of its finalizer, but after this deletion nothing answers at %s"
)

// What becomes of namespaces, and what must go first.
const (
	contentUnknown say.Word = "%s is served by %s, which is deleted; without it the contents of namespaces are unknown"
	contentFirst   say.Word = "its contents must be deleted first"
	instancesFirst say.Word = "its instances must be deleted first"
	onlyWith       say.Word = "is deleted only with %s"
)

// What breaks outside a plan.
const (
	asFarAsMatched     say.Word = ", as far as its selectors and conditions match"
	andRemovals        say.Word = ", and so the removal of finalizers"
	webhookUnanswered  say.Word = "its webhook %s (failurePolicy: Fail) loses its backend, %s. From then on the API server rejects %s"
	webhooksUnanswered say.Word = "%d of its webhooks (failurePolicy: Fail; %s) lose their backend, %s. From then on the API server rejects: %s"
	apiUnserved        say.Word = "loses its backend, %s: no deletion of a namespace can finish any more, and the garbage collector does not see its types"
	conversionUnserved say.Word = "loses its conversion webhook, %s: objects stored in another version can be neither read nor deleted, nor can their namespaces, and the garbage collector does not see them"
	parametersGo       say.Word = "the parameters of its policy, %s, are deleted: from then on the API server rejects all that %s is about"
	finalizerUnserved  say.Word = "%s the finalizer %s, and %s; without it the deletion of %s will get stuck (%s)"
	removes            say.Word = "removes"
	mightRemove        say.Word = "might remove"
	nodeGoes           say.Word = "is deleted, and so are its pods: %s"
	detaches           say.Word = "is deleted, and so %s is detached from node %s, where pods use it: %s"
	nodePodsUnread     say.Word = "is deleted, and so are its pods, which could not be read: %s"
	namedGoes          say.Word = "is deleted, but %s still %s it (%s): %s"
)

// stillNamed says that objects which stay name one that is deleted, and what becomes of them.
func stillNamed(users []graph.Identity, without say.Word) say.Text {
	verb := "name"
	if len(users) == 1 {
		verb = "names"
	}
	return say.Of(namedGoes, evidence.Number(len(users), users[0].Resource.Kind), verb, some(users), without)
}

// What becomes of those that name an object which goes.
const (
	managerPowerless say.Word = "%s of kube-controller-manager loses its rights until a kube-apiserver starts: what waits for it hangs"
	ignoresIngress   say.Word = "controllers ignore an Ingress whose class does not exist"
	ignoresGateway   say.Word = "controllers ignore a Gateway whose class does not exist"
	attachesNone     say.Word = "its volumes would have to be attached then, and pods that start wait for that (attachRequired: false)"
	allocatesNone    say.Word = "a claim without devices gets none"
	ignoresSchema    say.Word = "the API server ignores a FlowSchema whose level does not exist"
	grantsNone       say.Word = "they give no rights any more"
	startsNone       say.Word = "their new pods do not start"
	provisionsNone   say.Word = "a claim without a volume gets none, and no claim can be expanded"
	refreshesNone    say.Word = "no Secret is refreshed from it any more"
	pushesNone       say.Word = "nothing is pushed to it any more, and a PushSecret that must delete there what it pushed gets stuck"
	renewsNone       say.Word = "it renews no certificate any more"
)

// What is lost with an object, or stays of it.
const (
	volumeUnread    say.Word = "unclear what happens to its volume: %s could not be read: %v"
	volumeKept      say.Word = "%s (%s) is kept with its data (reclaim policy %s)"
	storageKept     say.Word = "%s (%s) is deleted, but its backing storage is kept with its data (reclaim policy %s)"
	volumeShared    say.Word = "%s (%s) loses its data with %s, which has the same volume handle, %s"
	volumeGoes      say.Word = "%s (%s) is deleted with its data (reclaim policy %s)"
	volumeRecycled  say.Word = "%s (%s) is kept, and its data is deleted (reclaim policy %s)"
	unknownSize     say.Word = "of unknown size"
	copiesUnread    say.Word = "unclear whether the data of the snapshot is deleted: the contents of snapshots could not be read: %v"
	copyKept        say.Word = "%s/%s is kept with the data of the snapshot (deletion policy %s)"
	copyGoes        say.Word = "%s/%s (%s) is deleted with the data of the snapshot (deletion policy Delete)"
	goesToo         say.Word = "it goes, too"
	withFall        say.Word = "it is deleted after its owners, which are deleted or end with this: %s"
	withGuard       say.Word = "%s might be all that keeps it from being deleted, and ends with this: %s"
	withNode        say.Word = "its node %s is deleted: %s"
	withNodeOnly    say.Word = "it has ended or is of a DaemonSet, and its node %s is deleted: %s"
	withSet         say.Word = "its StatefulSet was made smaller, and continues after %s: %s"
	withLastPod     say.Word = "its namespace is being deleted, the pods first, and %s might be all that keeps it: %s"
	withAttachment  say.Word = "it is released, and %s might be all that keeps its driver from deleting it: %s"
	withJob         say.Word = "it is of the Job that may fail with %s, and ends its pods then: %s"
	withTTL         say.Word = "it might finish without %s, and is deleted some time after that (ttlSecondsAfterFinished): %s"
	withDependent   say.Word = "it waits for its dependent %s: %s"
	withAccount     say.Word = "it has a token of %s: %s"
	withTool        say.Word = "it was deployed by %s, whose controller deletes it: %s"
	coversLive      say.Word = "it rejects all writes to %s, or to what is above: a controller that waits to delete that does so once it is gone"
	heldUnread      say.Word = "unclear which claims and volumes it keeps from being deleted: they could not be read"
	withUser        say.Word = "it is being deleted and ends with %s: %s"
	claimsUnread    say.Word = "unclear whether its claims are kept: it could not be read: %v"
	claimsUnlisted  say.Word = "its claims could not be read; its persistentVolumeClaimRetentionPolicy.whenDeleted is %s"
	claimsKept      say.Word = "its claims are kept with their data: %s (persistentVolumeClaimRetentionPolicy)"
	cleansUpOutside say.Word = "before it is deleted, %s%s (finalizer %s of %s)"
	byItsStatus     say.Word = ", by its status %s"
	tokensGo        say.Word = "Secrets with its tokens, if there are any, are deleted, too"
)

// Who makes an object again.
const (
	aggregatedAgain say.Word = "recreated by kube-controller-manager if ClusterRoles that it aggregates are deleted a moment later"
	argoTracks      say.Word = "recreated by Application %s of Argo CD, at once with selfHeal, otherwise with its next sync"
	argoElsewhere   say.Word = "recreated by Application %s of Argo CD, if that is in another cluster: it was not found here"
	argoByLabel     say.Word = "recreated by Application %s of Argo CD, if its label app.kubernetes.io/instance means that one and it syncs automatically"
	byController    say.Word = "recreated by its controller %s"
	claimAgain      say.Word = "recreated empty by %s, with its pod"
	copyOf          say.Word = "recreated by OLM, as a copy of %s: uninstall that"
	byRelease       say.Word = "recreated by the next helm upgrade of release %s/%s"
	byToolsObject   say.Word = "recreated by %s, at its next reconciliation"
	byItsUpgrade    say.Word = "recreated by %s, with the next upgrade of its release: spec.driftDetection.mode is not enabled"
	onceResumed     say.Word = ", once that is not suspended any more"
	ifItExists      say.Word = ", if that still exists"
)

// Why a wave is where it is in a safe order.
const (
	waveOfSilent     = "nothing answers their requests, and as long as they exist, they reject"
	waveOfServed     = "the controllers that remove their finalizers, or webhooks that must allow it, are deleted, too"
	waveOfCompanions = waveOfServed + "; these might wait for objects of types that they handle, which are deleted with them"
	waveOfCallers    = "their backends are deleted, too, and without them they reject"
	waveOfTypes      = "their instances must be deleted before their controllers"
	waveOfRest       = "no object that is left needs them"
	waveOfAggregated = "they aggregate ClusterRoles that are deleted, and are recreated while those are"
)

// What was not looked at.
const (
	claimsIn      say.Word = "persistentvolumeclaims in namespace %s"
	returnsUnread say.Word = "what would be recreated from Git or by a release: of %d objects only the first %d were checked"
	placesUnread  say.Word = "the controllers of finalizers on objects that are kept: of %d types and namespaces only the first %d were checked"
	urlUnread     say.Word = "whether %s answers, which is called at a URL: the API server rejects these deletes if it does not"
	kindsUnread   say.Word = "the controllers of finalizers on objects that are kept: only the first %d kinds were checked"
)

// firstOf joins the first of many texts.
func firstOf(texts []string, separator string) string {
	if more := len(texts) - evidence.MaxShown; more > 0 {
		return strings.Join(texts[:evidence.MaxShown], separator) + fmt.Sprintf("%sand %d more", separator, more)
	}
	return strings.Join(texts, separator)
}

const andMore say.Word = " and %d more"

// some names the first of several objects.
func some(ids []graph.Identity) say.Text {
	if more := len(ids) - evidence.MaxShown; more > 0 {
		return allOf(ids[:evidence.MaxShown]).And(andMore, more)
	}
	return allOf(ids)
}

// allOf names objects.
func allOf(ids []graph.Identity) say.Text {
	texts := make([]say.Text, len(ids))
	for i, id := range ids {
		texts[i] = say.Plain(id)
	}
	return say.Join(", ", texts...)
}
