// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// All that the package says.

// ruledBy is of a definition of whose objects a role has a rule.
const ruledBy say.Word = "%s has a rule about its objects: unclear whether another operator uses them"

// hasNamesake is of what bears the name of a release that another one has, too.
const hasNamesake say.Word = "%s is of another release of the name: unclear to which of them it belongs"

// GoesFirst is why an object is deleted before the tool begins.
const GoesFirst say.Word = "it, or what it controls, would get stuck later"

// FirstNoMore is why an object is left alone that was to be deleted before the tool begins, and was changed meanwhile.
const FirstNoMore say.Word = "it has been changed since, and is not deleted first any more"

// Why something is not deleted before the tool begins.
const (
	notBeforeHook    say.Word = "nothing is deleted ahead of the pre-delete hook %s, which may free, keep or refuse what gets stuck: see first what it does"
	isUninstallation say.Word = "the deletion of %s is the uninstallation itself, so it is not deleted first; explain-stuck says how it is freed when it is stuck"
	deletesMore      say.Word = "the deletion of %s also deletes what that has deployed, so it is not deleted first: uninstall %s shows it; if all of that is to go, delete it first"
	isToStay         say.Word = "%s is to stay, but is deleted with something else that goes: keep that, too, or remove it first where it belongs"
	isTakenOver      say.Word = "%s is deleted, but %s by now"
	whoUnread        say.Word = "could not be read, so it might belong to another"
	notCertain       say.Word = "unclear whether the tool deletes %s, so it is not deleted first"
	refuserFirst     say.Word = "delete first %s, which rejects deletes as soon as nothing answers it"
	refuserStays     say.Word = "%s, which stays, rejects deletes as soon as nothing answers it: delete that first if no other release needs it"
	kubernetesOwn    say.Word = "%s is of a type of Kubernetes, and is not deleted first: its controller might wait for what uses it"
	notAllRead       say.Word = "ask a user who is allowed to read everything: by what could be read nothing is deleted first"
	notBeforeUnread  say.Word = "nothing is deleted ahead of hooks that were not read: put them into the file"
	convertedFirst   say.Word = "delete %s first, while the conversion webhook answers"
	noEarlier        say.Word = "nothing that is deleted earlier prevents this: repair first what these rows name"
)

// Why a hook fails, or might, and what of it is created then.
const (
	creationItself say.Word = "its creation"
	creationOfPods say.Word = "the creation of its pods"
	laterDeletion  say.Word = "its deletion after it has run"
	purge          say.Word = "the deletion of Helm's record"
	hookRefused    say.Word = "%s must allow %s, but nothing answers at %s"
	hookMayRefuse  say.Word = "%s might have to allow %s, and nothing answers at %s"
	hookDenied     say.Word = "%s denies %s"
	hookJudged     say.Word = "%s decides about %s, and its answer is unknown"
	hookOverQuota  say.Word = "%s is exhausted (%s)"
	mayFail        say.Word = "; if the hook fails, so does Helm"
	purgeMayFail   say.Word = "; if it is refused, Helm fails at the end, and keeps the release"
	purgeFails     say.Word = ", so Helm reports a failure at the end and keeps the release"
	maybeOfCRDs    say.Word = "if it is in the chart's directory crds/, Helm keeps it"
	hookConflicts  say.Word = "Helm 4 applies it as it is in the chart, and does not overwrite fields that %s has changed since"
	hookFinalizers say.Word = "it is created with finalizers (%s), and deleted later, which gets stuck unless a controller removes them"
)

// What Argo CD does, or does not, for a reason that is not read.
const (
	onlyIfHere    say.Word = "deleted only if Argo CD calls this cluster %s"
	notConfirmed  say.Word = "not deleted before a user confirms the deletion of the Application (argocd.argoproj.io/deletion-approved)"
	argoElsewhere say.Word = "might stay: Argo CD is in namespace %s, and reconciles Applications elsewhere only where application.namespaces allows it"
	notPermitted  say.Word = "AppProject %s does not permit it: Argo CD keeps it, unless a global project permits it"
	projectUnread say.Word = "Argo CD needs AppProject %s, which could not be read, and keeps what that does not permit"
	projectFirst  say.Word = "Argo CD removes the finalizer of %s only when no Application names it"
)

// unlessCached is of Helm, which stores for six hours what types the server has (k8s.io/cli-runtime/pkg/genericclioptions/config_flags.go).
const unlessCached say.Word = ", and deletes nothing; if its discovery cache still has the type, it deletes all else and reports success"

// madeBefore is why the second of two hooks of one name fails.
const madeBefore say.Word = "an earlier hook has created it, and its hook-delete-policy does not delete it first"

// unnamedHook is why a hook of an event fails.
const unnamedHook say.Word = "%s hook: has a generateName, and Helm needs its name, so Helm fails"

// Why an object is to stay.
const inNewManifests say.Word = "the new manifests have it"

const (
	keptByTool say.Word = "the tool keeps it (%s)"
	belongsTo  say.Word = "it belongs to %s"
	keptFor    say.Word = " (%s)"
	keepsOwned say.Word = "; what it owns stays with it: %s"
)

// filled returns a word with its detail, if it has a place for one.
func filled(word say.Word, detail say.Text) say.Text {
	if !strings.Contains(word, "%s") {
		return say.Plain(word)
	}
	return say.Of(word, detail)
}

// Says says why the object is kept.
func (k *Kept) Says() say.Text {
	says := k.says()
	if k.By.Name != "" {
		says = says.And(keptFor, k.By)
	}
	if len(k.Owned) > 0 {
		says = says.And(keepsOwned, someOf(k.Owned))
	}
	return says
}

// keptBecause says why an object is kept, %s the detail.
var keptBecause = map[Reason]say.Word{
	ResourcePolicy: "helm.sh/resource-policy: keep",
	ChartCRD:       "in the chart's crds/, which Helm never deletes",
	Hook:           "a hook, which is not part of the release",
	HookMade:       "a hook, which the uninstallation creates and does not delete",
	OutOfScope:     "labelled as a member, but the parent does not name its type or its namespace",
	NotOwned:       "its annotations name the Helm release %s, so Helm 4 skips it",
	MarkedOff:      "%s",
	NotLabelled:    "does not have the labels of the Kustomization",
	Suspended:      "the Kustomization is suspended",
	NoPrune:        "the Kustomization does not prune",
	NoFinalizer:    "the tool's own object has no finalizer for it, so its deletion deletes nothing else",
	Definition:     "Argo CD deletes no definitions",
	KeptDefinition: "OLM deletes no definitions",
	OfNamespace:    "it is for all operators of the namespace",
	NoDestination:  "spec.destination must have a name or a server: otherwise Argo CD deletes nothing",
	OwnedByOther:   "it has an owner, so Argo CD leaves it to that",
	DeletionPolicy: "deletionPolicy: %s",
	NoAccount:      "Flux would delete it as %s, which does not exist by then, and so deletes nothing",
	Undone:         "the tool's object that would delete it gets stuck before, or is not deleted",
}

const (
	unknownPolicy say.Word = "helm.sh/resource-policy: %q; Helm does not delete it, and does not list it as kept"
	noRelease     say.Word = "its labels and annotations name no Helm release, so Helm 4 skips it"
)

func (k *Kept) says() say.Text {
	switch k.Reason {
	case UnknownPolicy:
		return say.Of(unknownPolicy, k.Detail)
	case NotOwned:
		if k.Detail.IsZero() {
			return say.Of(noRelease)
		}
	}
	return filled(keptBecause[k.Reason], k.Detail)
}

// openBecause says what cannot be known, or why nothing is deleted.
var openBecause = map[Cause]say.Word{
	HookRuns:        "pre-delete hook: its effect is unknown; if it fails, nothing is deleted",
	HookRunsAfter:   "post-delete hook: its effect is unknown",
	HookRunsNested:  "pre-delete hook of a release that is uninstalled in turn: its effect is unknown; if it fails, nothing of the release is deleted",
	HooksUnread:     "the file has no hooks, and the record of the release was not read; unclear whether hooks run (helm get hooks prints them)",
	HookExists:      "%s",
	HookLacks:       "hook that needs %s, which does not exist or is terminating by then: Helm fails, at the latest when its timeout is over",
	HookDenied:      "hook: %s, so Helm fails, at the latest when its timeout is over",
	HookUnsure:      "hook: %s",
	HookUnsureAfter: "hook: %s",
	Unread:          "could not be read, so its existence and its outcome are unknown",
	NoParent:        "by its label applyset.kubernetes.io/id or its annotations it is not the parent of an apply set of kubectl",
	Elsewhere:       "what it has deployed is in the cluster of its %s, of which nothing is said here",
	Nested:          "its controller deletes what it has deployed in turn, which could not be read: %s",
	NoController:    "the controller that deletes what it deployed is down, or lacks what it needs: all of that is kept",
	Untracked:       "does not have the usual annotation or label of the Application, so whether Argo CD deletes it depends on its settings",
	Unconfirmed:     "its deletion must be confirmed: Argo CD deletes nothing of the Application before",
	ReleaseStays:    "the HelmRelease is suspended, so its release stays installed",
	Subscribed:      "this Subscription stays, so OLM may install the operator again",
	Upgrading:       "OLM upgrades the operator to %s, which stays: ask again when that is installed",
	CleansUp:        "spec.cleanup: OLM deletes the operator's custom resources first, and waits for them",
	Unfinalized:     "the HelmRelease has no finalizer, so its release stays installed",
	NotInstalled:    "the HelmRelease has no release by its status, so nothing is uninstalled",
	Unrecorded:      "the release of the HelmRelease has no record any more, so nothing is uninstalled",
	Refused:         "the API server rejects some of the deletes, so Helm reports a failure at the end and keeps the release with the status uninstalling",
	MayRefuse:       "%s",
	Generated:       "has a generateName, so which objects were made of it is not known",
	MayKeep:         "syncOptions of the Application: Argo CD 3.4 and later keeps it",
	TakenOver:       "%s by now, but it is deleted all the same",
	Wanted:          "%s, but it is deleted with something else that goes",
	Uninstalled:     "it is uninstalled already, and only its history is kept",
}

// Of a hook that exists, and is not deleted before it is created.
const (
	existsBefore say.Word = "pre-delete hook: it exists, and its hook-delete-policy does not delete it first, so Helm cannot create it and deletes nothing; delete it first, or use --no-hooks"
	existsAfter  say.Word = "post-delete hook: it exists, and its hook-delete-policy does not delete it first, so Helm cannot create it and reports a failure at the end"
)

func existing(event string) say.Text {
	if event == postDelete {
		return say.Of(existsAfter)
	}
	return say.Of(existsBefore)
}

// Of a type that the server does not have.
const (
	noKind   say.Word = "the API server has no %q, so the tool cannot delete it"
	noKindIn say.Word = "the API server has no %s in %s, so the tool cannot delete it"
	ofHook   say.Word = " (%s hook)"
)

// Says says what cannot be known, or why nothing is deleted.
func (o *Open) Says() say.Text {
	word := openBecause[o.Cause]
	switch {
	case o.Cause == NoSuchKind && o.Item.Version == "" && o.Item.Group == "":
		return say.Of(noKind, o.Item.Kind).Then(o.Detail)
	case o.Cause == NoSuchKind:
		return say.Of(noKindIn, o.Item.Kind, strings.TrimSuffix(o.Item.GroupVersion().String(), "/")).Then(o.Detail)
	case !o.Detail.IsZero() && !strings.Contains(word, "%s"):
		return o.Detail
	}
	return filled(word, o.Detail)
}

// belongsBecause says how it is known that an object belongs to what is removed.
var belongsBecause = map[Belonging]say.Word{
	ByLabel:         "label %s",
	ByRelease:       "its annotations name the Helm release %s",
	ByService:       "calls %s, which is deleted",
	ByGroup:         "the release has definitions of its API group %s",
	ByClaimTemplate: "claim of %s",
	ByHolder:        "held by %s",
	ByManager:       "written by %s",
	ByNamespace:     "contains %s",
}

const nothingElse say.Word = "nothing else is left in it"

// Says says how it is known that the object belongs to what is removed.
func (l *Left) Says() say.Text {
	switch l.By {
	case ByService, ByClaimTemplate, ByHolder, ByManager:
		return filled(belongsBecause[l.By], say.Plain(l.of()))
	case ByNamespace:
		if l.Detail == "" {
			return say.Of(nothingElse)
		}
		if l.contents != nil {
			return filled(belongsBecause[l.By], someOf(l.contents))
		}
	}
	return filled(belongsBecause[l.By], say.Plain(l.Detail))
}

// mostNamed is how many objects a sentence names.
const mostNamed = 3

const andMore say.Word = "and %d more"

// someOf names objects, in the order of their identities.
func someOf(ids []graph.Identity) say.Text {
	slices.SortFunc(ids, graph.Identity.Compare)
	var names []say.Text
	for _, id := range ids[:min(len(ids), mostNamed)] {
		names = append(names, say.Plain(id))
	}
	if more := len(ids) - mostNamed; more > 0 {
		names = append(names, say.Of(andMore, more))
	}
	return say.Join(", ", names...)
}

// heldBecause says why a leftover is kept.
var heldBecause = map[Holding]say.Word{
	Replaced:     "created again since the plan: it is another object",
	ByTool:       "kept by the tool",
	Changed:      "changed since the plan",
	Data:         "might hold data that its deletion destroys",
	HasInstances: "has instances",
	Runs:         "runs pods, which users may need",
	Finalizers:   "has finalizers that a controller must remove (%s)",
	OwnedBy:      "owned by %s",
	OwnerOf:      "owns %s",
	DeliveredBy:  "belongs to %s",
	Unlabelled:   "does not have the label %s any more",
	Repointed:    "does not call %s any more",
	UsedBy:       "used by %s",
	ClaimedBy:    "a claim of %s",
	Leased:       "held by %s",
	Holds:        "contains %s",
	Calls:        "calls %s, which exists",
	NamedBy:      "%s",
	NotRead:      "%s could not be read: unclear whether it is in use",
	Back:         "%s, to which it belongs, exists again",
}

const (
	callsOutside say.Word = "calls a server that is not a Service of the cluster"
	// namedIn is of an object whose name another has, maybe for something else.
	namedIn say.Word = "%s has its name in %s: unclear whether that is a use"
)

// Says says why the object is kept.
func (h *Hold) Says() say.Text {
	if h.Why == Calls && h.Detail.IsZero() {
		return say.Of(callsOutside)
	}
	return filled(heldBecause[h.Why], h.Detail)
}

// Says says why the object is kept. It is zero when it is not.
func (l *Leftover) Says() say.Text {
	switch {
	case l.Held == nil:
		return say.Text{}
	case l.Changed && l.Held.Why != Changed:
		return say.Join("; ", say.Plain(heldBecause[Changed]), l.Held.Says())
	}
	return l.Held.Says()
}

// Why nothing is left behind yet, each with what to do.
var (
	anotherCluster = NotOverError{"the plan is of another cluster", "--context and --kubeconfig choose the cluster"}
	unproven       = NotOverError{"by the plan nothing was to be deleted for certain, so nothing shows that the tool has run",
		"see what is left, and delete by name what is not needed any more"}
	uninstalling = NotOverError{"a release of the name has the status %s in %s",
		"the uninstallation failed or is not finished: repeat it: %s"}
	stillInstalled = NotOverError{"a release of the name has the status %s in %s",
		"nothing is left behind of a release that is installed; save a plan of it, and uninstall it first"}
	notListed = NotOverError{"%s was to be deleted, and whether it exists could not be read",
		"ask a user who is allowed to list objects of this type"}
	ending      = NotOverError{"%s is still being deleted", "wait until it is deleted; explain-stuck says what keeps it"}
	existsAgain = NotOverError{"%s exists again: it was installed again, or something recreates it",
		"save a plan of what is installed now, and uninstall it first"}
	stillExists = NotOverError{"%s still exists", "uninstall first, then list the leftovers: %s"}
)

// NoReleaseError says that a namespace has no record of a release.
type NoReleaseError struct{ Namespace, Name string }

// Error implements error.
func (e NoReleaseError) Error() string {
	return fmt.Sprintf("no Secret of namespace %s has a release %q", e.Namespace, e.Name)
}

// Why it is not known of something whether it is deleted.
const (
	keptWithout      say.Word = "kept if %s is gone (step %d) before the controller of %s deletes this"
	keptBySet        say.Word = "kept with all that it has deployed if the controller of %s obeys its policy %s"
	deprivedItself   say.Word = "Flux deletes as %s, and deletes %s itself before the end (step %d)"
	withoutRights    say.Word = "Flux deletes as %s, to which no binding gives rights"
	unconverted      say.Word = "%s deletes it as %s, for which the API server needs %s, which does not answer then"
	onlyWithDelegate say.Word = "deleted only if %s does not get stuck before"
	waitsFor         say.Word = "not deleted before %s is gone"
)

const conversionUnread say.Word = "whether what converts the objects of %s answers, which is called at a URL: the API server cannot delete them if it does not"

const madeUnread say.Word = "who made %d objects: only the first %d were looked at"

func errNoObject(document int) error {
	return fmt.Errorf("document %d is not an object in YAML or JSON", document)
}

func errNoKind(document int) error {
	return fmt.Errorf("document %d has no apiVersion or no kind", document)
}

func errKustomize(document int) error {
	return fmt.Errorf("document %d is for kustomize: build what it stands for, with kubectl kustomize DIRECTORY > FILE", document)
}

func errInChart(file string, err error) error { return fmt.Errorf("%s of its chart: %w", file, err) }

var errNoRecord = errors.New("it is not the record of a Helm release")

func (e *WhoPrunesError) Error() string {
	text := "who prunes is not known"
	if e.Named != "" {
		text = e.Named + " has nothing of it"
	}
	text += fmt.Sprintf(": old objects that exist: %d", e.Existing)
	for _, share := range e.Has {
		text += fmt.Sprintf(", %s has %d", share.By, share.Objects)
	}
	return text
}
