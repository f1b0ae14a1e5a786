// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"fmt"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// All that foresight says. Nothing else in the package has a sentence, and nothing reads one.

func (w stuckBy) words() string     { return "stuck: " + w.Why.words() }
func (w mayStick) words() string    { return "may get stuck: " + w.Why.words() }
func (w unlessFirst) words() string { return "gets stuck unless it is gone first: " + w.Why.words() }
func (w inAnyOrder) words() string  { return "may get stuck in any order: " + w.Why.words() }

func (w works) words() string {
	by := w.by.String()
	if w.by.Name == "" {
		by = "somebody outside the cluster, who renews a lease"
	}
	said := fmt.Sprintf("its finalizer %s is removed by %s, which works", w.finalizer, by)
	if w.when != "" {
		said += ", when " + w.when
	}
	return said
}

func (w uncheckedUse) words() string {
	return w.works.words() + "; whether that is so was not looked at"
}

func (w bySchedule) words() string {
	return w.works.words() + "; but only when it runs next, by its schedule"
}

func (w notWorking) words() string {
	return fmt.Sprintf("%s, which has to remove its finalizer %s, does not work: %s", w.by, w.finalizer, w.state)
}

func (w denied) words() string {
	return fmt.Sprintf("%s, which has to remove its finalizer %s, may neither update nor patch %s", w.by, w.finalizer, w.resource)
}

func (w wentWithNamespace) words() string {
	return fmt.Sprintf("%s, which has to remove its finalizer %s, went with its namespace", w.whose, w.finalizer)
}

func (w unclaimed) words() string {
	return "nothing in the cluster removes its finalizer " + w.finalizer
}

func (w manual) words() string {
	return fmt.Sprintf("a person set its finalizer %s (%s), and nothing in the cluster removes it", w.finalizer, strings.Join(w.setters, ", "))
}

func (w unknownService) words() string {
	said := fmt.Sprintf("whether a controller removes its finalizer %s is not known", w.finalizer)
	if w.why != "" {
		said += ": " + w.why
	}
	return said
}

func (w mightTake) words() string {
	return w.Why.words() + "; and the plan takes away " + strings.Join(w.going, ", ") + ", or what it needs"
}

func (w controllerLoses) words() string {
	said := fmt.Sprintf("its finalizer %s is served by %s, %s", w.finalizer, w.by, w.loss.clause())
	if w.before {
		said += " before it"
	}
	return said
}

// clause says of a controller what it loses.
func (d deprivation) clause() string {
	switch d.kind {
	case ofItself:
		return "which goes" + d.when()
	case ofObject:
		return "whose " + d.what + " goes" + d.when()
	case ofRights:
		return "whose rights go with " + d.what
	case ofNodes:
		return "whose last pod is on " + d.what + ", which goes"
	}
	return ""
}

// and is the clause as the last of several.
func (d deprivation) and() string {
	switch d.kind {
	case ofItself:
		return "and goes" + d.when()
	case ofObject:
		return "and its " + d.what + " goes" + d.when()
	case ofRights:
		return "and its rights go with " + d.what
	case ofNodes:
		return "and its last pod is on " + d.what + ", and goes"
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
	return fmt.Sprintf("its finalizer %s is served by %s, and %s", w.finalizer, w.by, w.doubt)
}

func (w pausedBy) words() string {
	if w.certain {
		return fmt.Sprintf("%s, which has to remove its finalizer %s, leaves it alone while it is told to: %s", w.by, w.finalizer, w.mark)
	}
	return fmt.Sprintf("gets stuck if %s, which has to remove its finalizer %s, leaves it alone: %s", w.by, w.finalizer, w.mark)
}

func (w byCause) words() string { return w.summary }
func (w still) words() string   { return "may be stuck: " + w.summary }

func (w webhookSilent) words() string {
	must := "must"
	if !w.certain {
		must = "may have to"
	}
	switch w.silence {
	case silentUntilGone:
		return fmt.Sprintf("gets stuck unless that goes first: %s %s allow every change of it, and nothing answers at %s", w.config, must, w.at)
	case silentIfAsked:
		return fmt.Sprintf("gets stuck if %s has to allow every change of it: nothing answers at %s", w.config, w.at)
	case silentIfUnread:
		return fmt.Sprintf("gets stuck if %s has to allow every change of it, and nothing answers at %s, which could not be read", w.config, w.at)
	case silentByThePlan:
		return fmt.Sprintf("%s %s allow every change of it, and what answers at %s goes", w.config, must, w.at)
	}
	return fmt.Sprintf("%s must allow every change of it, and nothing answers at %s", w.config, w.at)
}

func (w webhooksUnread) words() string {
	return fmt.Sprintf("whether a webhook has to allow that its finalizer %s is removed could not be read", w.finalizer)
}

// What is wrong with the parameter of a policy.
const (
	parameterGoes   = "which goes"
	parameterUnread = "which could not be read"
	parameterAbsent = "which does not exist"
)

func (w parameterMissing) words() string {
	return fmt.Sprintf("ValidatingAdmissionPolicy/%s judges every change of it by %s, %s, and refuses it without", w.policy, w.parameter, w.is)
}

func (w deletionRefused) words() string {
	silence := "nothing answers at "
	if w.byPlan {
		silence = "by the plan nothing answers any more at "
	}
	return fmt.Sprintf("%s must allow its deletion, and %s%s", w.config, silence, w.at)
}

func (w contentUnknown) words() string {
	return fmt.Sprintf("%s is served by %s, which goes, and without it nobody knows what is in a namespace", w.api, w.backend)
}

func (w contentFirst) words() string {
	if w.which.Name == "" {
		return "what is in it must go first"
	}
	return "what is in it must go first: " + w.which.String()
}

func (instancesFirst) words() string { return "its instances must go first" }

func (w onlyWith) words() string { return "goes only with " + w.which.String() }

func (w webhooksUnanswered) words() string {
	limits := ""
	if w.limited {
		limits = ", as far as its selectors and conditions match"
	}
	if w.updates {
		limits += ", and with it the removal of finalizers"
	}
	if len(w.names) == 1 {
		return fmt.Sprintf("stays, and its webhook %s fails closed: what answers it, %s, goes. From then on %s is refused%s", w.names[0], w.service, w.about[0], limits)
	}
	return fmt.Sprintf("stays, and %d of its webhooks fail closed (%s): what answers them, %s, goes. From then on this is refused: %s%s",
		len(w.names), firstOf(w.names, ", "), w.service, firstOf(w.about, "; "), limits)
}

func (w apiUnserved) words() string {
	return fmt.Sprintf("stays, and what serves it, %s, goes: no namespace can be deleted to its end any more, and the garbage collector does not see its types", w.backend)
}

func (w conversionUnserved) words() string {
	return fmt.Sprintf("stays, and what converts its objects between versions, %s, goes: those that are stored in another version can neither be read nor deleted, nor can their namespaces, and the garbage collector does not see them", w.service)
}

func (w parametersGo) words() string {
	return fmt.Sprintf("stays, and the parameters of its policy, %s, go: from then on all that ValidatingAdmissionPolicy/%s is about is refused", w.parameters, w.policy)
}

func (w finalizerUnserved) words() string {
	serves, names := "serves", w.names
	if !w.certain {
		serves = "may serve"
	}
	if w.count > len(names) {
		names = append(names[:len(names):len(names)], "...")
	}
	return fmt.Sprintf("%s the finalizer %s, %s; what stays with it, %s (%s), gets stuck in its deletion",
		serves, w.finalizer, w.loss.and(), evidence.Number(w.count, w.kind), strings.Join(names, ", "))
}

func (w driverGoes) words() string {
	return fmt.Sprintf("goes, and leaves %s that can be neither attached, detached nor deleted without it", evidence.Number(w.volumes, "PersistentVolume"))
}

func (w namedGoes) words() string {
	verb := "name"
	if len(w.users) == 1 {
		verb = "names"
	}
	return fmt.Sprintf("goes, and leaves %s that %s it: %s; %s", evidence.Number(len(w.users), w.kind), verb, some(w.users), w.without)
}

// What becomes of those that name an object which goes.
const (
	ignoresIngress = "controllers ignore an Ingress whose class does not exist"
	ignoresGateway = "controllers ignore a Gateway whose class does not exist"
	provisionsNone = "a claim without a volume gets none, and no claim can be expanded"
	refreshesNone  = "no Secret is refreshed from it any more"
	pushesNone     = "nothing is pushed to it any more, and a PushSecret that has to delete there what it pushed gets stuck"
	renewsNone     = "it renews no certificate any more"
)

func (w volumeUnread) words() string {
	return fmt.Sprintf("what becomes of its volume is not known: %s could not be read: %v", w.what, w.err)
}

func (w volumeKept) words() string {
	return fmt.Sprintf("PersistentVolume/%s (%s) and its data stay: its reclaim policy is %s", w.name, sized(w.size), w.policy)
}

func (w volumeGoes) words() string {
	return fmt.Sprintf("PersistentVolume/%s (%s) goes with its data: its reclaim policy is Delete", w.name, sized(w.size))
}

func sized(size string) string {
	if size == "" {
		return "of unknown size"
	}
	return size
}

func (w withPods) words() string {
	return "it is being deleted, and goes with the pods that use it: " + w.Why.words()
}

func (w claimsUnread) words() string {
	return fmt.Sprintf("whether its claims stay is not known: it could not be read: %v", w.err)
}

func (w claimsUnlisted) words() string {
	return "what claims it has could not be read; its persistentVolumeClaimRetentionPolicy for when it is deleted is " + w.whenDeleted
}

func (w claimsKept) words() string {
	return fmt.Sprintf("its claims stay, with what data they have: %s (persistentVolumeClaimRetentionPolicy)", some(w.claims))
}

func (w cleansUpOutside) words() string {
	deployed := ""
	if w.deployed > 0 {
		deployed = ", by its status " + evidence.Number(w.deployed, "object")
	}
	return fmt.Sprintf("before it goes, %s%s (finalizer %s of %s)", w.waitsFor, deployed, w.finalizer, w.product)
}

func (tokensGo) words() string { return "Secrets with tokens for it, if there are any, go as well" }

func (w recreated) words() string { return w.says }

func (aggregatedAgain) words() string {
	return "recreated by kube-controller-manager, if ClusterRoles that it aggregates are deleted a moment later"
}

func (w byApplication) words() string {
	said := "recreated by Application " + w.name + " of Argo CD, "
	switch w.how {
	case argoByLabel:
		return said + "if its label app.kubernetes.io/instance means that one, and it syncs by itself"
	case argoElsewhere:
		return said + "which was not found here, if it is in another cluster"
	}
	return said + "at once if it heals itself, and otherwise with its next sync"
}

func (w byRelease) words() string {
	return "recreated by the next helm upgrade of release " + w.namespace + "/" + w.name
}

func (w byFluxObject) words() string {
	said := "recreated by " + w.kind + "/" + w.namespace + "/" + w.name + " of Flux, at its next reconciliation"
	if w.unread {
		said += ", if that is still there"
	}
	return said
}

// Why a wave is where it is in a safe order.
const (
	waveOfSilent     = "nothing answers their requests, and as long as they are there they refuse"
	waveOfServed     = "what removes their finalizers, or has to allow that, goes by this plan, too"
	waveOfCompanions = waveOfServed + "; it may wait for objects of its own types, which go with them"
	waveOfCallers    = "what answers their requests goes by this plan, and without it they refuse"
	waveOfTypes      = "their instances have to be gone before what serves them is"
	waveOfRest       = "nothing that is left needs them"
	waveOfAggregated = "they aggregate ClusterRoles that go, and are recreated while those go"
)

// What was not looked at.
func placesUnread(there, looked int) string {
	return fmt.Sprintf("what serves the finalizers on objects that stay: of %d types and namespaces the first %d were looked at", there, looked)
}

func kindsUnread(looked int) string {
	return fmt.Sprintf("what serves the finalizers on objects that stay: the first %d kinds of them were looked at", looked)
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
