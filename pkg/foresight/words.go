// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"fmt"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// All that foresight says. Nothing else in the package has a sentence, and nothing reads one.

func (w stuckBy) words() string  { return "stuck: " + w.Why.words() }
func (w mayStick) words() string { return "might get stuck: " + w.Why.words() }
func (w unlessFirst) words() string {
	return "might get stuck unless this object is deleted first: " + w.Why.words()
}
func (w inAnyOrder) words() string { return "might get stuck in any order: " + w.Why.words() }

func (w works) words() string {
	by := w.by.String()
	if w.by.Name == "" {
		by = "a controller outside the cluster, which renews a lease,"
	}
	said := fmt.Sprintf("%s works and removes the finalizer %s", by, w.finalizer)
	if w.when != "" {
		said += ", when " + w.when
	}
	return said
}

func (w unused) words() string { return w.works.words() + "; nothing uses it" }

func (w usedBy) words() string {
	return fmt.Sprintf("%s; %s uses it, and must be deleted before", w.works.words(), w.user)
}

func (w oneWorks) words() string {
	return fmt.Sprintf("one of %s removes the finalizer %s; all work", strings.Join(w.among, ", "), w.finalizer)
}

func (w eachLoses) words() string {
	return fmt.Sprintf("%s, one of which must remove the finalizer %s, are deleted, or lose what they need", strings.Join(w.among, ", "), w.finalizer)
}

func (w uncheckedUse) words() string {
	return w.works.words() + "; whether that is so was not checked"
}

func (w bySchedule) words() string {
	return w.works.words() + ", but not before its next scheduled run"
}

func (w notWorking) words() string {
	return fmt.Sprintf("%s, which must remove the finalizer %s, does not work: %s", w.by, w.finalizer, w.state)
}

func (w denied) words() string {
	return fmt.Sprintf("%s, which must remove the finalizer %s, is not allowed to update or patch %s", w.by, w.finalizer, w.resource)
}

func (w wentWithNamespace) words() string {
	return fmt.Sprintf("%s, which must remove the finalizer %s, was deleted with its namespace", w.whose, w.finalizer)
}

func (w unclaimed) words() string {
	return "no controller in the cluster removes the finalizer " + w.finalizer
}

func (w manual) words() string {
	return fmt.Sprintf("a user set the finalizer %s (%s), and no controller in the cluster removes it", w.finalizer, strings.Join(w.setters, ", "))
}

func (w unknownService) words() string {
	said := fmt.Sprintf("it is not known whether a controller removes the finalizer %s", w.finalizer)
	if w.why != "" {
		said += ": " + w.why
	}
	return said
}

func (w mightTake) words() string {
	return w.Why.words() + "; this also deletes " + strings.Join(w.going, ", ") + ", which might, or what it needs"
}

func (w controllerLoses) words() string {
	said := fmt.Sprintf("%s, which must remove the finalizer %s, %s", w.by, w.finalizer, w.loss.clause())
	if w.before {
		said += ", and before this object"
	}
	return said
}

func (w createsWithin) words() string {
	return fmt.Sprintf("%s, which must remove the finalizer %s, creates %s for it, which is not possible in namespace %s once that is being deleted", w.by, w.finalizer, w.what, w.namespace)
}

func (w needsAbsent) words() string {
	if w.by.Name == "" {
		return fmt.Sprintf("the controller of the finalizer %s needs %s, which does not exist", w.finalizer, w.what)
	}
	return fmt.Sprintf("%s, which must remove the finalizer %s, needs %s for it, which does not exist", w.by, w.finalizer, w.what)
}

// clause says of a controller what it loses.
func (d deprivation) clause() string {
	switch d.kind {
	case ofItself:
		return "is deleted" + d.when()
	case ofObject:
		return "loses its " + d.what + d.when()
	case ofRights:
		return "loses its rights with " + d.what
	case ofNodes:
		return "loses its last pod with " + d.what
	case ofNeed:
		return "needs " + d.what + " for it, which is deleted" + d.when()
	}
	return ""
}

func (d deprivation) when() string {
	switch {
	case d.step > 0:
		return fmt.Sprintf(" (step %d)", d.step)
	case d.with != "":
		return " with " + d.with
	}
	return ""
}

func (w doubted) words() string {
	return fmt.Sprintf("%s must remove the finalizer %s, and %s", w.by, w.finalizer, w.doubt)
}

func (w pausedBy) words() string {
	if w.certain {
		return fmt.Sprintf("%s, which must remove the finalizer %s, ignores this object: %s", w.by, w.finalizer, w.mark)
	}
	return fmt.Sprintf("gets stuck if %s, which must remove the finalizer %s, ignores this object: %s", w.by, w.finalizer, w.mark)
}

func (w byCause) words() string { return w.summary }
func (w still) words() string   { return "may be stuck: " + w.summary }

func (w webhookSilent) words() string {
	must := "must"
	if !w.certain {
		must = "might have to"
	}
	switch w.silence {
	case silentUntilGone:
		return fmt.Sprintf("gets stuck unless %s is deleted first: it %s allow every change of this object, and nothing answers at %s", w.config, must, w.at)
	case silentIfAsked:
		return fmt.Sprintf("gets stuck if %s has to allow every change of it, since nothing answers at %s", w.config, w.at)
	case silentIfUnread:
		return fmt.Sprintf("gets stuck if %s has to allow every change of it, and nothing answers at %s, which could not be read", w.config, w.at)
	case silentByThePlan:
		return fmt.Sprintf("%s %s allow every change of it, and the backend of %s is deleted", w.config, must, w.at)
	}
	return fmt.Sprintf("%s must allow every change of it, but nothing answers at %s", w.config, w.at)
}

func (w webhooksUnread) words() string {
	return fmt.Sprintf("the webhooks that might have to allow the removal of the finalizer %s could not be read", w.finalizer)
}

// What is wrong with the parameter of a policy.
const (
	parameterGoes   = "which is deleted"
	parameterUnread = "which could not be read"
	parameterAbsent = "which does not exist"
)

func (w parameterMissing) words() string {
	return fmt.Sprintf("ValidatingAdmissionPolicy/%s judges every change of it by %s, %s, and refuses it without", w.policy, w.parameter, w.is)
}

func (w deletionJudged) words() string {
	return fmt.Sprintf("ValidatingAdmissionPolicy/%s decides about its deletion, and what it says is not known", w.policy)
}

func (w deletionRefused) words() string {
	silence := "nothing answers at "
	if w.byPlan {
		silence = "after this deletion nothing answers at "
	}
	return fmt.Sprintf("%s must allow its deletion, but %s%s", w.config, silence, w.at)
}

func (w contentUnknown) words() string {
	return fmt.Sprintf("%s is served by %s, which is deleted; without it the contents of namespaces are unknown", w.api, w.backend)
}

func (w contentFirst) words() string {
	if w.which.Name == "" {
		return "its contents must be deleted first"
	}
	return "its contents must be deleted first: " + w.which.String()
}

func (instancesFirst) words() string { return "its instances must be deleted first" }

func (w onlyWith) words() string { return "is deleted only with " + w.which.String() }

func (w webhooksUnanswered) words() string {
	limits := ""
	if w.limited {
		limits = ", as far as its selectors and conditions match"
	}
	if w.updates {
		limits += ", and so the removal of finalizers"
	}
	if len(w.names) == 1 {
		return fmt.Sprintf("its webhook %s (failurePolicy: Fail) loses its backend, %s. From then on the API server rejects %s%s", w.names[0], w.service, w.about[0], limits)
	}
	return fmt.Sprintf("%d of its webhooks (failurePolicy: Fail; %s) lose their backend, %s. From then on the API server rejects: %s%s",
		len(w.names), firstOf(w.names, ", "), w.service, firstOf(w.about, "; "), limits)
}

func (w apiUnserved) words() string {
	return fmt.Sprintf("loses its backend, %s: no deletion of a namespace can finish any more, and the garbage collector does not see its types", w.backend)
}

func (w conversionUnserved) words() string {
	return fmt.Sprintf("loses its conversion webhook, %s: objects stored in another version can be neither read nor deleted, nor can their namespaces, and the garbage collector does not see them", w.service)
}

func (w parametersGo) words() string {
	return fmt.Sprintf("the parameters of its policy, %s, are deleted: from then on the API server rejects all that ValidatingAdmissionPolicy/%s is about", w.parameters, w.policy)
}

func (w finalizerUnserved) words() string {
	removes, names := "removes", w.names
	if !w.certain {
		removes = "might remove"
	}
	if w.count > len(names) {
		names = append(names[:len(names):len(names)], "...")
	}
	return fmt.Sprintf("%s the finalizer %s, and %s; without it the deletion of %s will get stuck (%s)",
		removes, w.finalizer, w.loss.clause(), evidence.Number(w.count, w.kind), strings.Join(names, ", "))
}

func (w driverGoes) words() string {
	return fmt.Sprintf("is deleted, and leaves %s that cannot be attached, detached or deleted without it", evidence.Number(w.volumes, "PersistentVolume"))
}

func (w namedGoes) words() string {
	verb := "name"
	if len(w.users) == 1 {
		verb = "names"
	}
	return fmt.Sprintf("is deleted, but %s still %s it (%s): %s", evidence.Number(len(w.users), w.kind), verb, some(w.users), w.without)
}

// What becomes of those that name an object which goes.
const (
	ignoresIngress = "controllers ignore an Ingress whose class does not exist"
	ignoresGateway = "controllers ignore a Gateway whose class does not exist"
	provisionsNone = "a claim without a volume gets none, and no claim can be expanded"
	refreshesNone  = "no Secret is refreshed from it any more"
	pushesNone     = "nothing is pushed to it any more, and a PushSecret that must delete there what it pushed gets stuck"
	renewsNone     = "it renews no certificate any more"
)

func (w volumeUnread) words() string {
	return fmt.Sprintf("it is not known what happens to its volume: %s could not be read: %v", w.what, w.err)
}

func (w volumeKept) words() string {
	return fmt.Sprintf("PersistentVolume/%s (%s) is kept with its data (reclaim policy %s)", w.name, sized(w.size), w.policy)
}

func (w volumeGoes) words() string {
	what := "is deleted with its data"
	if w.policy == "Recycle" {
		what = "is kept, and its data is deleted"
	}
	return fmt.Sprintf("PersistentVolume/%s (%s) %s (reclaim policy %s)", w.name, sized(w.size), what, w.policy)
}

func sized(size string) string {
	if size == "" {
		return "of unknown size"
	}
	return size
}

func (w withPods) words() string {
	return "it is being deleted and ends with the pods that use it: " + w.Why.words()
}

func (w claimsUnread) words() string {
	return fmt.Sprintf("it is not known whether its claims are kept: it could not be read: %v", w.err)
}

func (w claimsUnlisted) words() string {
	return "its claims could not be read; its persistentVolumeClaimRetentionPolicy.whenDeleted is " + w.whenDeleted
}

func (w claimsKept) words() string {
	return fmt.Sprintf("its claims are kept with their data: %s (persistentVolumeClaimRetentionPolicy)", some(w.claims))
}

func (w cleansUpOutside) words() string {
	deployed := ""
	if w.deployed > 0 {
		deployed = ", by its status " + evidence.Number(w.deployed, "object")
	}
	return fmt.Sprintf("before it is deleted, %s%s (finalizer %s of %s)", w.waitsFor, deployed, w.finalizer, w.product)
}

func (tokensGo) words() string { return "Secrets with its tokens, if there are any, are deleted, too" }

func (w recreated) words() string { return w.says }

func (aggregatedAgain) words() string {
	return "recreated by kube-controller-manager if ClusterRoles that it aggregates are deleted a moment later"
}

func (w byApplication) words() string {
	said := "recreated by Application " + w.name + " of Argo CD, "
	switch w.how {
	case argoByLabel:
		return said + "if its label app.kubernetes.io/instance means that one and it syncs automatically"
	case argoElsewhere:
		return said + "if that is in another cluster: it was not found here"
	}
	return said + "at once with selfHeal, otherwise with its next sync"
}

func (w byRelease) words() string {
	return "recreated by the next helm upgrade of release " + w.namespace + "/" + w.name
}

func (w byToolsObject) words() string {
	said := "recreated by " + w.kind + "/" + w.namespace + "/" + w.name + ", at its next reconciliation"
	if w.unread {
		said += ", if that still exists"
	}
	return said
}

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
func placesUnread(there, looked int) string {
	return fmt.Sprintf("the controllers of finalizers on objects that are kept: of %d types and namespaces only the first %d were checked", there, looked)
}

func kindsUnread(looked int) string {
	return fmt.Sprintf("the controllers of finalizers on objects that are kept: only the first %d kinds were checked", looked)
}

// firstOf joins the first of many texts.
func firstOf(texts []string, separator string) string {
	if more := len(texts) - evidence.MaxShown; more > 0 {
		return strings.Join(texts[:evidence.MaxShown], separator) + fmt.Sprintf("%sand %d more", separator, more)
	}
	return strings.Join(texts, separator)
}

// some names the first of several objects.
func some(ids []graph.Identity) string {
	said := ""
	for i, id := range ids[:min(len(ids), evidence.MaxShown)] {
		if i > 0 {
			said += ", "
		}
		said += id.String()
	}
	if more := len(ids) - evidence.MaxShown; more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return said
}
