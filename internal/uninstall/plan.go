// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Plan is what a tool does about the objects that it has deployed.
type Plan struct {
	// Tool is who does it, and Order by which rules: "helm" and "Helm 3".
	Tool, Order string
	// Namespace and Name are those of the release, or of the tool's own object.
	Namespace, Name string
	// Of are those that delivered the objects, the tool's own object or the release first: what goes with these does not come back.
	Of Deliverers
	// By is who prunes, and goes on to have what stays; empty for all else, and for who leaves no marks.
	By Deliverers
	// Command is the tool's own, empty where there is none.
	Command []string
	// Marks are labels that the tool gives to what it deploys: what has one of them belongs to it. Items are what it has deployed.
	Marks map[string]string
	Items []Item
	// Manifests is the digest of which objects the files have by which the tool was told what to delete, empty when there are none.
	Manifests string
	// Policy is with which the tool deletes.
	Policy metav1.DeletionPropagation
	// Barriers are the objects that it deletes, in its order: the answers to all deletes of one are awaited before the next begins, but
	// nobody waits for an object to be gone.
	Barriers []Barrier
	// Awaits: a barrier begins only when all of the one before is gone.
	Awaits bool
	// Own is the tool's own object, among the barriers, when the tool is a controller that acts on its deletion.
	Own graph.Identity
	// Kept are objects that the tool has deployed and does not delete.
	Kept []Kept
	// Absent are objects that are gone already.
	Absent []Item
	// Open is what cannot be known beforehand.
	Open []Open
	// Halt is why the tool deletes nothing at all, nil when it does.
	Halt *Open

	// delegates are what Follow found, and needs what their controllers need. doubts say why it is not known of what they delete whether they
	// do.
	delegates []*delegate
	graph     *graph.Graph // set by Follow
	wanted    []wanted     // what is to stay
	changes   []found      // what is new in the new manifests of a prune, or another than in the old ones
	needs     map[types.UID][]preview.Need
	doubts    map[types.UID]say.Text
	versions  map[types.UID]string // in which the targets are deleted
	early     []graph.Identity     // what can be deleted only while something answers that goes before it
}

// Barrier are objects that are deleted at the same time.
type Barrier struct {
	// Kind is that of all of them, empty where the tool has no order.
	Kind string
	// Follow says all of it but the objects.
	preview.Barrier
	// By is the tool's object whose controller deletes them in turn, without a name for what the tool itself deletes.
	By graph.Identity
}

// barrierOf is that of one object.
func barrierOf(id graph.Identity) Barrier {
	return Barrier{Kind: id.Resource.Kind, Barrier: preview.Barrier{Objects: []graph.Identity{id}}}
}

// Reason says why a tool keeps an object.
type Reason string

// The reasons.
const (
	// ResourcePolicy: helm.sh/resource-policy is keep, and Helm says that it keeps the object. UnknownPolicy: it has another value, and
	// Helm neither deletes the object nor says so.
	ResourcePolicy Reason = "ResourcePolicy"
	UnknownPolicy  Reason = "UnknownPolicy"
	// ChartCRD: it is in the chart's directory crds/, of which Helm deletes nothing.
	ChartCRD Reason = "ChartCRD"
	// Hook: hooks are no part of the release. HookMade: one that runs creates it, and it is not deleted.
	Hook     Reason = "Hook"
	HookMade Reason = "HookMade"
	// NotOwned: the live object is not marked as the release's. Detail says as whose it is, if it is anyone's.
	NotOwned Reason = "NotOwned"
	// OutOfScope: the parent of the apply set does not name its type or its namespace.
	OutOfScope Reason = "OutOfScope"
	// NotLabelled: it does not bear the labels of the Kustomization. MarkedOff: it bears a mark, which is Detail, by which the tool leaves it
	// alone.
	NotLabelled Reason = "NotLabelled"
	MarkedOff   Reason = "MarkedOff"
	// Suspended, NoPrune, NoFinalizer, DeletionPolicy: the tool's own object is suspended, does not prune, has no finalizer by which it would,
	// or has a policy, which is Detail, to keep all.
	Suspended      Reason = "Suspended"
	NoPrune        Reason = "NoPrune"
	NoFinalizer    Reason = "NoFinalizer"
	DeletionPolicy Reason = "DeletionPolicy"
	// Definition: Argo CD deletes no CustomResourceDefinition. NoDestination: nor anything of an Application whose destination is no cluster,
	// or two. OwnedByOther: nor what has owners, which goes with these.
	Definition Reason = "Definition"
	// KeptDefinition: OLM deletes none. OfNamespace: it is for all operators of its namespace.
	KeptDefinition Reason = "KeptDefinition"
	OfNamespace    Reason = "OfNamespace"
	NoDestination  Reason = "NoDestination"
	OwnedByOther   Reason = "OwnedByOther"
	// NoAccount: the ServiceAccount as which it would be deleted, which is Detail, has gone. Undone: the tool's object by which it would be is
	// not deleted, or stuck before.
	NoAccount Reason = "NoAccount"
	Undone    Reason = "Undone"
)

// Kept is an object that a tool keeps.
type Kept struct {
	// Object has no UID when nothing shows that it exists.
	Object graph.Identity
	Reason Reason
	Detail say.Text
	// By is the tool's object that has deployed it, when it is another than that of the plan.
	By graph.Identity
	// Instances are those of a definition, and Owned what stays with it because it owns that.
	Instances, Owned []graph.Identity
	Version          Version
}

func (p *Plan) keep(f *found, why Reason, detail string) {
	p.Kept = append(p.Kept, Kept{Object: f.id(), Reason: why, Detail: say.Plain(detail)})
}

// byKind adds the objects that the tool reaches, one barrier for all of a kind that follow each other.
func (p *Plan) byKind(all []found) {
	first := len(p.Barriers)
	for i := range all {
		if f := &all[i]; p.reaches(f) {
			if last := len(p.Barriers) - 1; last < first || p.Barriers[last].Kind != f.Kind {
				p.Barriers = append(p.Barriers, Barrier{Kind: f.Kind})
			}
			b := &p.Barriers[len(p.Barriers)-1]
			b.Objects = append(b.Objects, f.id())
		}
	}
}

// reaches reports whether the tool deletes an object that it wants to delete, and notes what is gone already or could not be read.
func (p *Plan) reaches(f *found) bool {
	switch f.state {
	case present:
		return true
	case absent:
		p.Absent = append(p.Absent, f.Item)
	case unserved:
		p.Open = append(p.Open, Open{Cause: NoSuchKind, Item: f.Item})
	case unread:
		p.Open = append(p.Open, Open{Cause: Unread, Item: f.Item})
	case unnamed:
		p.Open = append(p.Open, Open{Cause: Generated, Item: f.Item})
	}
	return false
}

// Cause says why something cannot be known.
type Cause string

// The causes.
const (
	// HookRuns: a program runs before the deletion, HookRunsAfter after it.
	HookRuns      Cause = "HookRuns"
	HookRunsAfter Cause = "HookRunsAfter"
	// HookRunsNested: it is a hook of a release that is uninstalled in turn.
	HookRunsNested Cause = "HookRunsNested"
	// HooksUnread: whether the release has hooks is not known.
	HooksUnread Cause = "HooksUnread"
	// HookExists: an object of a hook exists, and is not deleted before it is created, so that the hook fails.
	HookExists Cause = "HookExists"
	// HookLacks: what a hook needs, which is Detail, does not exist by then, so that it or its pods cannot be created.
	HookLacks Cause = "HookLacks"
	// HookDenied: a hook, or the pods of its Job, cannot be created, as Detail says. HookUnsure: before the deletion that is so, or it gets
	// stuck, if what is not known is so; HookUnsureAfter: after it.
	HookDenied      Cause = "HookDenied"
	HookUnsure      Cause = "HookUnsure"
	HookUnsureAfter Cause = "HookUnsureAfter"
	// Unread: whether the object exists, or what it says of itself, could not be read.
	Unread Cause = "Unread"
	// NoSuchKind: the server has no such type, so that the tool cannot tell where the object is.
	NoSuchKind Cause = "NoSuchKind"
	// Refused: the API server refuses deletes, so that the tool fails at last. MayRefuse: it might refuse that of the release's record.
	Refused   Cause = "Refused"
	MayRefuse Cause = "MayRefuse"
	// Generated: the object has no name, but a generateName, so that which objects were made of it is not known.
	Generated Cause = "Generated"
	// Wanted: the object is to stay, as Detail says, and goes with something else. TakenOver: another release has it by now, and the tool
	// deletes it itself.
	Wanted    Cause = "Wanted"
	TakenOver Cause = "TakenOver"
	// NoParent: the object is not the parent of an apply set.
	NoParent Cause = "NoParent"
	// Elsewhere: the objects are in another cluster.
	Elsewhere Cause = "Elsewhere"
	// Nested: a controller deletes what the object has deployed in turn, and what that is could not be read.
	Nested Cause = "Nested"
	// NoController: the tool is a controller, and does not work.
	NoController Cause = "NoController"
	// Untracked: the live object does not bear the Application's name in the usual annotation, nor in the label without that. Unconfirmed:
	// Argo CD deletes nothing until somebody confirms it. MayKeep: by the Application's options recent versions of Argo CD keep the object.
	Untracked   Cause = "Untracked"
	MayKeep     Cause = "MayKeep"
	Unconfirmed Cause = "Unconfirmed"
	// ReleaseStays: the HelmRelease is suspended, so that its release stays installed.
	ReleaseStays Cause = "ReleaseStays"
	// Unfinalized: the HelmRelease has no finalizer, so that its release stays installed.
	Unfinalized Cause = "Unfinalized"
	// NotInstalled: the HelmRelease has no release by its status, so that none is uninstalled.
	NotInstalled Cause = "NotInstalled"
	// Unrecorded: the release of the HelmRelease has no record any more.
	Unrecorded Cause = "Unrecorded"
	// Subscribed: a Subscription stays, and OLM may install the operator again. CleansUp: OLM deletes the operator's custom resources before.
	Subscribed Cause = "Subscribed"
	CleansUp   Cause = "CleansUp"
	// Upgrading: OLM replaces the ClusterServiceVersion by another one, which is Detail, and does not go.
	Upgrading Cause = "Upgrading"
	// Uninstalled: it has been done before.
	Uninstalled Cause = "Uninstalled"
)

// Open is something that cannot be known beforehand, or keeps the tool from its work.
type Open struct {
	Cause  Cause
	Item   Item
	Detail say.Text
}

// Targets returns what the tool deletes, each once, in its order.
func (p *Plan) Targets() (all []graph.Identity) {
	known := map[graph.Identity]bool{}
	for _, b := range p.Barriers {
		for _, id := range b.Objects {
			if !known[id] {
				known[id], all = true, append(all, id)
			}
		}
	}
	return all
}

// Follows reports whether the plan has what a tool's object has deployed: its own, or one that goes by it.
func (p *Plan) Follows(uid types.UID) bool {
	return uid == p.Own.UID || slices.ContainsFunc(p.delegates, func(d *delegate) bool { return d.node.UID() == uid })
}

// Job is the deletion by which the plan is played.
func (p *Plan) Job() preview.Job {
	j := preview.Job{Policy: p.Policy, Targets: p.Targets(), Needs: p.needs, Versions: p.versions}
	for _, b := range p.Barriers {
		b.Retried = cmp.Or(b.By.UID, p.Own.UID) != "" && !slices.Contains(b.Objects, p.Own)
		j.Barriers = append(j.Barriers, b.Barrier)
	}
	return j
}

// Doubt has what the tool may or may not delete, by what is open and by what is foreseen, be Unknown among the outcomes that say that it is
// deleted.
func (p *Plan) Doubt(outcomes []gc.Outcome, s *foresight.Forecast) {
	for i := range outcomes {
		o := &outcomes[i]
		if open := p.openOf(o.Object.Identity()); open != nil && o.Result == gc.Deleted {
			o.Result, o.Reason = gc.Unknown, open.Says()
		}
	}
	p.doubtNested(outcomes, s)
}

// openOf is why it is not known of an object whether the tool deletes it, nil when it is.
func (p *Plan) openOf(id graph.Identity) *Open {
	for i := range p.Open {
		switch open := &p.Open[i]; open.Cause {
		case Unread, Untracked, Unconfirmed, MayKeep:
			if alike(open.Item.Identity(), id) && id.UID != p.Own.UID {
				return open
			}
		}
	}
	return nil
}

// Stop has nothing be deleted but the tool's own object and what users delete with it, because the tool does not work.
func (p *Plan) Stop() {
	users := func(b Barrier) bool { return ofUsers(b.Objects[0].Resource.GroupResource()) }
	p.Barriers = slices.DeleteFunc(slices.Clone(p.Barriers), func(b Barrier) bool { return !users(b) })
	p.Barriers, p.Absent = append(p.Barriers, barrierOf(p.Own)), nil
	p.Open, p.delegates, p.doubts = []Open{{Cause: NoController}}, nil, nil
	maps.DeleteFunc(p.needs, func(uid types.UID, _ []preview.Need) bool { return uid != p.Own.UID })
}

// Stopped reports whether the tool's controller does not work.
func (p *Plan) Stopped() bool { return p.first(NoController) != nil }

// Spoils is the first object that is to stay and goes, nil if there is none.
func (p *Plan) Spoils() *Open { return p.first(Wanted, TakenOver) }

// Hook is the first that runs a program before the deletion, nil if there is none: it may bring about what else would not happen.
func (p *Plan) Hook() *Open { return p.first(HookRuns, HookRunsNested, HookUnsure) }

// HooksToRead reports whether hooks of a release decide what its uninstallation does, which "helm get hooks" prints.
func (p *Plan) HooksToRead() bool {
	hook := cmp.Or(p.Hook(), p.first(HooksUnread))
	return p.Tool == "helm" && hook != nil && (hook.Cause == HookRuns || hook.Cause == HooksUnread)
}

// first is the first that is open for one of some causes, nil for none.
func (p *Plan) first(causes ...Cause) *Open {
	if i := slices.IndexFunc(p.Open, func(o Open) bool { return slices.Contains(causes, o.Cause) }); i >= 0 {
		return &p.Open[i]
	}
	return nil
}
