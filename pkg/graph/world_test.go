// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/testworld"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// world is everything in a cluster, read or not.
type world struct {
	types   []graph.Resource
	objects []graph.Object
}

// GoString writes the world as a scenario, which is how rapid shows it.
func (w world) GoString() string {
	var text strings.Builder
	for _, o := range w.objects {
		fmt.Fprintf(&text, "\n%s uid=%s", o.Identity(), o.UID)
		if o.BeingDeleted() {
			text.WriteString(" deleting")
		}
		if len(o.Finalizers) > 0 {
			text.WriteString(" finalizers=" + strings.Join(o.Finalizers, ","))
		}
		for _, ref := range o.OwnerReferences {
			fmt.Fprintf(&text, " owner=%s:%s:%s:%s", ref.APIVersion, ref.Kind, ref.Name, ref.UID)
		}
	}
	return text.String()
}

// reading is what was read of a world.
type reading struct {
	failed []schema.GroupVersion
	// listed holds the namespaces that a type was listed in, "" for all.
	listed map[schema.GroupResource][]string
	// gets says whether the GET of an owner that the lists leave undecided is
	// answered.
	gets func(graph.Undecided) bool
}

// worlds draws small worlds in which most references go wrong in some way.
var worlds = rapid.Custom(func(t *rapid.T) world {
	w := world{types: testworld.Types(servedTypes)}
	n := rapid.IntRange(1, 8).Draw(t, "objects")
	taken := map[string]bool{}
	for i := range n {
		r := rapid.SampledFrom(w.types).Draw(t, "type")
		o := graph.Object{Resource: &r, UID: types.UID(fmt.Sprintf("u%d", i)), Name: drawName(t)}
		if r.Namespaced {
			o.Namespace = rapid.SampledFrom([]string{"shop", "other"}).Draw(t, "namespace")
		}
		// One kind and name is one object, in whatever group or version.
		if taken[o.Identity().String()] {
			continue
		}
		taken[o.Identity().String()] = true
		drawDeletion(t, &o)
		w.objects = append(w.objects, o)
	}
	for i := range w.objects {
		for range rapid.IntRange(0, 3).Draw(t, "owners") {
			w.objects[i].OwnerReferences = append(w.objects[i].OwnerReferences, drawOwner(t, w))
		}
	}
	return w
})

func drawName(t *rapid.T) string { return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name") }

func drawDeletion(t *rapid.T, o *graph.Object) {
	if rapid.Bool().Draw(t, "deleting") {
		o.DeletionTimestamp = &metav1.Time{}
	}
	o.Finalizers = rapid.SampledFrom([][]string{
		nil, {"foregroundDeletion"}, {"orphan"}, {"x", "foregroundDeletion"},
	}).Draw(t, "finalizers")
}

// drawOwner starts from a right reference to some object and spoils any part
// of it.
func drawOwner(t *rapid.T, w world) metav1.OwnerReference {
	o := rapid.SampledFrom(w.objects).Draw(t, "owner")
	ref := metav1.OwnerReference{APIVersion: o.Resource.GroupVersion().String(), Kind: o.Resource.Kind, Name: o.Name, UID: o.UID}
	spoil := func(part string) bool { return rapid.IntRange(0, 3).Draw(t, "spoil "+part) == 0 }
	if spoil("type") {
		r := rapid.SampledFrom(w.types).Draw(t, "stated type")
		ref.APIVersion, ref.Kind = r.GroupVersion().String(), r.Kind
	}
	if spoil("apiVersion") {
		ref.APIVersion = rapid.SampledFrom([]string{
			"v1", "core/v1", "apps/v1beta1", "autoscaling/v1", "autoscaling/v3", "extensions/v1beta1", "no.org/v1",
		}).Draw(t, "apiVersion")
	}
	if spoil("kind") {
		ref.Kind = rapid.SampledFrom([]string{
			strings.ToLower(ref.Kind), strings.ToUpper(ref.Kind), ref.Kind + "List", "List", "Nothing",
		}).Draw(t, "kind")
	}
	if spoil("name") {
		ref.Name = drawName(t)
	}
	if spoil("uid") {
		ref.UID = rapid.SampledFrom([]types.UID{"u0", "u1", "u2", "gone", "lost"}).Draw(t, "uid")
	}
	if rapid.Bool().Draw(t, "blocks") {
		yes := true
		ref.BlockOwnerDeletion = &yes
	}
	return ref
}

// servedAs returns the types under which the API server shows an object: all
// groups with its kind, each in the first version that discovery knows.
func servedAs(o graph.Object, types []graph.Resource) []*graph.Resource {
	var as []*graph.Resource
	seen := map[schema.GroupResource]bool{}
	for i := range types {
		if r := &types[i]; r.Kind == o.Resource.Kind && !seen[r.GroupResource()] {
			seen[r.GroupResource()] = true
			as = append(as, r)
		}
	}
	return as
}

// complete is the reading that misses nothing.
func (w world) complete() reading {
	r := reading{listed: map[schema.GroupResource][]string{}, gets: func(graph.Undecided) bool { return true }}
	for _, t := range w.types {
		r.listed[t.GroupResource()] = []string{""}
	}
	return r
}

// drawReading draws what goes wrong when the world is read.
func (w world) drawReading(t *rapid.T) reading {
	r := reading{listed: map[schema.GroupResource][]string{}}
	for _, served := range w.types {
		gv, gr := served.GroupVersion(), served.GroupResource()
		if !slices.Contains(r.failed, gv) && rapid.IntRange(0, 9).Draw(t, "discovery "+gv.String()) == 0 {
			r.failed = append(r.failed, gv)
		}
		where := [][]string{{""}, {}}
		if served.Namespaced {
			where = append(where, []string{"shop"}, []string{"other"})
		}
		r.listed[gr] = rapid.SampledFrom(where).Draw(t, "listed "+gr.String())
	}
	r.gets = func(graph.Undecided) bool { return rapid.Bool().Draw(t, "get") }
	return r
}

// known returns the types that the reading discovered.
func (w world) known(r reading) []graph.Resource {
	return slices.DeleteFunc(slices.Clone(w.types), func(t graph.Resource) bool {
		return slices.Contains(r.failed, t.GroupVersion())
	})
}

// read makes the snapshot of a reading.
func (w world) read(r reading) *graph.Snapshot {
	known := w.known(r)
	s := &graph.Snapshot{Mapper: testworld.Mapper(known)}
	for _, gv := range r.failed {
		s.MarkUnlisted(graph.Unlisted{GroupVersionResource: gv.WithResource(""), Reason: graph.DiscoveryFailed})
	}
	for _, o := range w.objects {
		for _, as := range servedAs(o, known) {
			namespaces := r.listed[as.GroupResource()]
			if slices.Contains(namespaces, "") || slices.Contains(namespaces, o.Namespace) {
				o.Resource = as
				s.Add(o)
			}
		}
	}
	for _, served := range known {
		for _, namespace := range r.listed[served.GroupResource()] {
			s.MarkListed(served.GroupResource(), namespace, "")
		}
	}
	for _, u := range s.Undecided() {
		if r.gets(u) {
			w.get(s, r, u)
		}
	}
	return s
}

// get answers the GET of an owner from the world.
func (w world) get(s *graph.Snapshot, r reading, u graph.Undecided) {
	for _, o := range w.objects {
		for _, as := range servedAs(o, w.known(r)) {
			if as.GroupResource() == u.Resource.GroupResource() && o.Namespace == u.Namespace && o.Name == u.Name {
				o.Resource = as
				s.Add(o)
				return
			}
		}
	}
	s.MarkAbsent(u.Resource.GroupResource(), u.Namespace, u.Name)
}

// classify restates the garbage collector's tests of one reference, in its
// order, for a world of which everything is known.
func (w world) classify(ref metav1.OwnerReference, item graph.Object) (graph.State, graph.Reason) {
	served, ok := w.stated(ref)
	if !ok {
		return graph.Unknown, graph.Unresolvable
	}
	namespace := ""
	if served.Namespaced {
		namespace = item.Namespace
		if !item.Resource.Namespaced {
			return graph.Unknown, graph.ClusterScopedDependent
		}
	}
	var live, sameUID *graph.Object
	for i := range w.objects {
		o := &w.objects[i]
		for _, as := range servedAs(*o, w.types) {
			if as.Group == served.Group && as.Resource == served.Resource && o.Namespace == namespace && o.Name == ref.Name {
				live = o
			}
		}
		if o.UID == ref.UID {
			sameUID = o
		}
	}
	switch {
	case live != nil && live.UID == ref.UID && live.DeletionTimestamp != nil && slices.Contains(live.Finalizers, "foregroundDeletion"):
		return graph.WaitingForDependentsDeletion, graph.Waiting
	case live != nil && live.UID == ref.UID:
		return graph.Solid, graph.NoReason
	case sameUID != nil && sameUID.Namespace != "" && sameUID.Namespace != item.Namespace:
		return graph.Dangling, graph.WrongNamespace
	case sameUID != nil:
		return graph.Dangling, graph.CoordinatesMismatch
	case live != nil:
		return graph.Dangling, graph.UIDMismatch
	}
	return graph.Dangling, graph.Absent
}

// stated finds the type that a reference states, as client-go's mapper does: a
// kind as it is or in lower case, or a list kind, for which it makes a plural up.
func (w world) stated(ref metav1.OwnerReference) (graph.Resource, bool) {
	for _, r := range w.types {
		if r.GroupVersion().String() != ref.APIVersion {
			continue
		}
		switch ref.Kind {
		case r.Kind, strings.ToLower(r.Kind):
			return r, true
		case r.Kind + "List":
			r.Resource = strings.ToLower(ref.Kind) + "s"
			return r, true
		case "List":
			r.Resource, r.Namespaced = "lists", false
			return r, true
		}
	}
	return graph.Resource{}, false
}
