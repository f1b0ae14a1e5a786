// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// wanted is an object that is to stay, although it may go with something else.
type wanted struct {
	object graph.Identity
	why    say.Text
	cause  Cause // empty for Wanted
}

// onPurpose are the reasons for which a tool keeps what might be deleted with something else.
var onPurpose = []Reason{ResourcePolicy, UnknownPolicy, MarkedOff, NotLabelled, OutOfScope}

// spared finds what is to stay and may go with what the tool deletes: what it keeps on purpose, and what another has deployed; and what it
// deletes itself although another release has it now, as Helm 3 does (helm.sh/helm/v3/pkg/action/uninstall.go, deleteRelease).
func (f *following) spared() {
	for i := range f.plan.Kept {
		if k := &f.plan.Kept[i]; k.Object.UID != "" && slices.Contains(onPurpose, k.Reason) {
			f.plan.wanted = append(f.plan.wanted, wanted{object: k.Object, why: say.Of(keptByTool, k.Says())})
		}
	}
	var uids []types.UID
	for _, id := range f.plan.Targets() {
		uids = append(uids, id.UID)
	}
	concerned := gc.Concerned(f.Graph, uids)
	f.recorded(concerned)
	nodes, places := map[types.UID]graph.Node{}, map[schema.GroupVersionResource]sets.Set[string]{}
	for n := range concerned.All() {
		r := n.Resource()
		_, made := makerOf(n)
		if target := len(f.plan.in(n.UID())) > 0; n.Virtual() || n.UID() == f.plan.Own.UID || ofUsers(r.GroupResource()) ||
			target && f.plan.openOf(n.Identity()) != nil || !target && (made || derived.Has(r.GroupResource())) {
			continue // what a controller has made is that one's, and may bear its marks
		}
		if nodes[n.UID()] = n; places[r.GroupVersionResource] == nil {
			places[r.GroupVersionResource] = sets.New[string]()
		}
		places[r.GroupVersionResource].Insert(n.Namespace())
	}
	marked, unread := f.marked(nodes, places)
	known := len(f.plan.wanted)
	stays := func(n graph.Node, why say.Text, target bool) {
		stay := wanted{object: n.Identity(), why: why}
		if target {
			stay.cause = TakenOver
		}
		if !slices.ContainsFunc(f.plan.wanted[:known], func(w wanted) bool { return w.object.UID == n.UID() }) {
			f.plan.wanted = append(f.plan.wanted, stay)
		}
	}
	for _, n := range unread {
		delete(nodes, n.UID())
		stays(n, say.Of(whoUnread), len(f.plan.in(n.UID())) > 0)
	}
	for _, n := range nodes {
		o, target := marked[n.UID()], len(f.plan.in(n.UID())) > 0
		switch by := f.another(n, o, target); {
		case !by.IsZero():
			stays(n, say.Of(belongsTo, by), target)
		case o != nil && keepMark(o) != "" && !target:
			stays(n, say.Plain(keepMark(o)), false)
		}
	}
	graph.SortByIdentity(f.plan.wanted[known:], func(stays *wanted) graph.Identity { return stays.object })
}

// marked returns those of the nodes, which are of types in namespaces, that bear marks; in unread are those of which that is not known.
func (f *following) marked(nodes map[types.UID]graph.Node, places map[schema.GroupVersionResource]sets.Set[string]) (
	marked map[types.UID]*unstructured.Unstructured, unread []graph.Node) {
	marked = map[types.UID]*unstructured.Unstructured{}
	keys := f.keys()
	for resource, namespaces := range places {
		for _, namespace := range f.Evidence.Where(resource.GroupResource(), namespaces) {
			found := map[types.UID]*unstructured.Unstructured{}
			err := f.Evidence.EachNaming(resource, namespace, keys, func() { clear(found) }, func(o *unstructured.Unstructured) {
				found[o.GetUID()] = &unstructured.Unstructured{Object: o.Object}
			})
			if maps.Copy(marked, found); err == nil { // else it is noted as unread
				continue
			}
			for _, n := range nodes {
				if n.Resource().GroupVersionResource == resource && (namespace == "" || n.Namespace() == namespace) {
					unread = append(unread, n)
				}
			}
		}
	}
	return marked, unread
}

// keys are marks, and where there are Applications the label by which they may track.
func (f *following) keys() []string {
	for range f.Evidence.Instances(delivery.Applications) {
		return slices.Concat(marks, []string{delivery.Instance})
	}
	return marks
}

// recorded finds the records of other releases that are installed, and the parents of other apply sets that have members: without these,
// nobody knows any more what was deployed.
func (f *following) recorded(concerned graph.Set) {
	members := f.idsIn("part-of")
	for n := range concerned.All() {
		id, by := n.Identity(), graph.Identity{}
		if release, _, is := evidence.RecordOf(id.Name); is {
			mine := slices.ContainsFunc(f.plan.Of, func(d Deliverer) bool { return d.Records == id.Namespace && d.Name == release })
			installed := f.Evidence.Installed(id.Namespace, release)
			if !mine && slices.ContainsFunc(installed, func(m graph.Node) bool { return m.UID() == n.UID() }) {
				by = evidence.Named("Release", id.Namespace, release)
			}
		}
		set := n.Object().Labels["applyset.kubernetes.io/id"]
		if mine := f.plan.Of.have(delivery.Mark{Kind: "ApplySet", Name: set}); set != "" && !mine && members().Has(set) {
			by = evidence.Named("ApplySet", "", set)
		}
		if by.Name != "" && !n.Virtual() && len(f.plan.in(n.UID())) == 0 {
			f.plan.wanted = append(f.plan.wanted, wanted{object: id, why: say.Of(belongsTo, by)})
		}
	}
}

// marks are in all labels and annotations that say who has deployed an object, or that it is to be kept.
var marks = slices.Concat(delivery.Keys(), delivery.Others, []string{policyAnnotation, syncOptions, fluxMarks})

// managedBy is the usual label of the tool that has made an object.
const managedBy = "app.kubernetes.io/managed-by"

// byHelm reports whether labels say that an object is of a release.
func byHelm(labels map[string]string) bool { return labels[managedBy] == "Helm" }

// another is who has an object, zero when that is what is removed or goes, when it does not exist any more, or when nobody is known to
// have; nil is one without marks. Whose own object is there has what that lists. Marks may have been left: of a release that has made the
// object, and of a target if nobody of the name is in this cluster.
func (f *following) another(n graph.Node, o *unstructured.Unstructured, target bool) say.Text {
	for _, by := range f.lists()[evidence.EntryOf(n.Identity())] {
		if id := by.Identity(); !f.plan.own(delivery.Mark{Kind: id.Resource.Kind, Namespace: id.Namespace, Name: id.Name}) {
			return say.Plain(id)
		}
	}
	if o == nil {
		return say.Text{}
	}
	if key, value, also := delivery.Other(o, evidence.EntryOf(n.Identity())); key != "" && (also || !target) {
		return say.Plain(key + ": " + value)
	}
	marks, own, old := heeded(o, f.plan.Of.apart(delivery.Marks(o))), time.Time{}, false
	for _, m := range marks {
		if at := delivery.Written(o, m.Key); f.plan.own(m) && at.After(own) {
			own = at
		}
	}
	for _, m := range marks {
		old = old || m.Kind == "Release" && f.leftOver(n, &m, own)
	}
	for _, m := range marks {
		switch there := f.called(&m); {
		case f.plan.own(m):
		case len(there) > 0 && delivery.Deploys(m.Resource):
			if by, claims := f.Evidence.Claimant(there, n, o, m); claims {
				return say.Plain(by.Identity())
			}
		case m.Usual, old && (m.Kind == "Release" || m.Resource == delivery.HelmReleases):
		case f.exists(&m, f.parents) && !(target && f.elsewhere(&m)):
			return say.Plain(evidence.Named(m.Kind, m.Namespace, m.Name))
		}
	}
	return say.Text{}
}

// destination is where an Application deploys to.
func destination(o *unstructured.Unstructured) any {
	at, _ := remedy.At(o.Object, "/spec/destination")
	return at
}

// listed returns the tools' own objects, by what they list in this cluster, or in that of what is removed.
func (f *following) listed() map[delivery.Entry][]graph.Node {
	for _, n := range f.Evidence.Called(delivery.Applications, f.plan.Own.Namespace, f.plan.Own.Name) {
		if o, err := f.Evidence.Whole(n); err == nil && n.UID() == f.plan.Own.UID {
			return f.World.listed(destination(o), delivery.Listed)
		}
	}
	return f.World.listed(nil, delivery.Listed)
}

// listed returns the tools' own objects, by what they list in this cluster, or at a destination, but for those that end. One that could not
// be read is noted as unread.
func (w *World) listed(there any, lists func(schema.GroupResource, *unstructured.Unstructured) []delivery.Entry,
) map[delivery.Entry][]graph.Node {
	by := map[delivery.Entry][]graph.Node{}
	for _, resource := range delivery.Deployers() {
		all := slices.Collect(w.Evidence.Instances(resource))
		w.Evidence.Together(all)
		for _, n := range all {
			o, err := w.Evidence.Whole(n)
			if err != nil || w.Evidence.Ends(n, o) ||
				!delivery.Here(resource, o) && (there == nil || !reflect.DeepEqual(there, destination(o))) {
				continue
			}
			for _, entry := range lists(resource, o) {
				entry.Version = ""
				by[entry] = append(by[entry], n)
			}
		}
	}
	return by
}

// leftOver reports whether a release was there before the object, and has done nothing since somebody else wrote to that as its own: then
// that one has taken it over. A release that is younger than the object has taken it over itself, even if others go on writing.
func (w *World) leftOver(n graph.Node, release *delivery.Mark, since time.Time) bool {
	first := false
	for _, record := range w.Evidence.Records(release.Namespace, release.Name) {
		at := record.Object().CreationTimestamp.Time
		if !at.Before(since) {
			return false
		}
		first = first || !at.After(n.Object().CreationTimestamp.Time)
	}
	return first
}

// called are the tool's own objects that a mark may name.
func (w *World) called(m *delivery.Mark) []graph.Node {
	if m.Resource.Empty() {
		return nil
	}
	return w.Evidence.Called(m.Resource, m.Namespace, m.Name)
}

// heeded are the marks of an object without those of releases of which Helm takes no notice.
func heeded(o *unstructured.Unstructured, marks []delivery.Mark) []delivery.Mark {
	return slices.DeleteFunc(marks, func(m delivery.Mark) bool { return m.Kind == "Release" && !byHelm(o.GetLabels()) })
}

// own reports whether a mark names who deployed what is removed.
func (p *Plan) own(m delivery.Mark) bool { return p.Of.have(m) || p.By.have(m) }

// exists reports whether who has deployed an object is there, or may be. parents are the IDs of apply sets that are.
func (w *World) exists(m *delivery.Mark, parents func() sets.Set[string]) bool {
	if m.Kind == "ApplySet" {
		return parents().Has(m.Name) || !w.Graph.Snapshot().Complete() // they may be of any type
	}
	if m.Kind != "Release" {
		return m.Namespace == "" || len(w.called(m)) > 0 ||
			!w.Graph.Snapshot().Covers(m.Resource, m.Namespace, m.Name)
	}
	return !w.Evidence.RecordsListed(m.Namespace) || len(w.Evidence.Installed(m.Namespace, m.Name)) > 0
}

// elsewhere reports whether nobody of the name of a mark without a namespace is in this cluster.
func (f *following) elsewhere(m *delivery.Mark) bool {
	return m.Namespace == "" && len(f.called(m)) == 0 && !slices.ContainsFunc(f.Graph.Snapshot().Unlisted(), func(u graph.Unlisted) bool {
		return u.Group == m.Resource.Group && (u.Resource == "" || u.Resource == m.Resource.Resource)
	})
}

// idsIn are the IDs of apply sets that objects have in a label.
func (w *World) idsIn(label string) func() sets.Set[string] {
	return sync.OnceValue(func() sets.Set[string] {
		ids := sets.New[string]()
		for n := range w.Graph.Nodes() {
			if id := n.Object().Labels["applyset.kubernetes.io/"+label]; id != "" && !n.Virtual() {
				ids.Insert(id)
			}
		}
		return ids
	})
}

// keepMark is a mark by which tools are told to keep an object, empty without one. One that the latest manifests do not have any more is
// kept by it, too.
func keepMark(o *unstructured.Unstructured) string {
	if hasOption(o, policyAnnotation, "keep") {
		return policyAnnotation + ": keep"
	}
	if hasOption(o, syncOptions, "Delete=false") {
		return syncOptions + ": Delete=false"
	}
	return markedOff(o)
}
