// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/testworld"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// anyUIDs are UIDs as an API server makes them, and such as look like them.
var anyUIDs = rapid.OneOf(
	rapid.Map(rapid.SliceOfN(rapid.Byte(), 16, 16), uuid),
	rapid.SampledFrom([]types.UID{
		"", "a", "00000000-0000-0000-0000-000000000000", "C1B7C9A0-3A52-4A3C-8F8E-2F3F4D5E6A7B",
		"c1b7c9a03a524a3c8f8e2f3f4d5e6a7b", "{1b7c9a0-3a52-4a3c-8f8e-2f3f4d5e6a7b", "c1b7c9a0-3a52-4a3c-8f8e-2f3f4d5e6a7g",
		"c1b7c9a0-3a52-4a3c-8f8e-2f3f4d5e6a7b ", "c1b7c9a0_3a52-4a3c-8f8e-2f3f4d5e6a7b",
	}),
	rapid.Map(rapid.String(), func(s string) types.UID { return types.UID(s) }),
)

func uuid(b []byte) types.UID {
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

var anyTimes = rapid.Custom(func(t *rapid.T) metav1.Time {
	seconds := rapid.Int64Range(-1e11, 1e11).Draw(t, "seconds")
	return rapid.SampledFrom([]metav1.Time{
		{}, metav1.Unix(seconds, 0), {Time: time.Unix(seconds, 0).UTC()}, metav1.Unix(seconds, 1),
		{Time: time.Unix(seconds, 0).In(time.FixedZone("somewhere", 3600))}, {Time: time.Time{}.Local()},
	}).Draw(t, "time")
})

// anyObjects draws objects of which no part need make sense.
var anyObjects = rapid.Custom(func(t *rapid.T) graph.Object {
	kinds := testworld.Types(servedTypes)
	o := graph.Object{
		Resource: &kinds[rapid.IntRange(0, 3).Draw(t, "type")], UID: anyUIDs.Draw(t, "uid"),
		Namespace: rapid.SampledFrom([]string{"", "shop", "other"}).Draw(t, "namespace"),
		Name:      rapid.StringN(0, 20, -1).Draw(t, "name"), ResourceVersion: rapid.SampledFrom([]string{"", "0", "007", "42", "rv"}).Draw(t, "version"),
		CreationTimestamp: anyTimes.Draw(t, "created"),
	}
	if rapid.IntRange(0, 999).Draw(t, "long version") == 0 {
		o.ResourceVersion = strings.Repeat("9", 70_000)
	}
	if rapid.Bool().Draw(t, "deleting") {
		deleted, grace := anyTimes.Draw(t, "deleted"), rapid.Int64().Draw(t, "grace")
		o.DeletionTimestamp, o.DeletionGracePeriodSeconds = &deleted, &grace
	}
	finalizers := rapid.SampledFrom([]string{"foregroundDeletion", "orphan", "x"})
	o.Finalizers = rapid.OneOf(rapid.Just([]string(nil)), rapid.SliceOfN(finalizers, 0, 3)).Draw(t, "finalizers")
	o.OwnerReferences = rapid.OneOf(rapid.Just([]metav1.OwnerReference(nil)), rapid.SliceOfN(anyReferences(o.Name), 0, 3)).Draw(t, "owners")
	if words := rapid.SampledFrom([]string{"", "app", "web", "tier", "front"}); rapid.Bool().Draw(t, "labelled") {
		o.Labels = rapid.MapOfN(words, words, 1, 3).Draw(t, "labels")
	}
	return o
})

// anyReferences draws few different references, so that runs of objects have
// the same, and some to a name that begins the dependent's.
func anyReferences(dependent string) *rapid.Generator[metav1.OwnerReference] {
	return rapid.Custom(func(t *rapid.T) metav1.OwnerReference {
		return metav1.OwnerReference{
			APIVersion: rapid.SampledFrom([]string{"v1", "apps/v1"}).Draw(t, "apiVersion"), Kind: "Secret",
			Name:       rapid.SampledFrom([]string{"", "web", dependent, dependent[:len(dependent)/2]}).Draw(t, "name"),
			UID:        rapid.OneOf(rapid.Just(types.UID("11111111-2222-3333-4444-555555555555")), rapid.Just(types.UID("a")), anyUIDs).Draw(t, "uid"),
			Controller: rapid.Ptr(rapid.Bool(), true).Draw(t, "controller"), BlockOwnerDeletion: rapid.Ptr(rapid.Bool(), true).Draw(t, "blocks"),
		}
	})
}

// exactly compares objects in full: also nil and empty lists, and the location
// of times.
var exactly = cmp.Options{
	cmp.Comparer(func(a, b metav1.Time) bool { return a == b }),
	cmp.Comparer(func(a, b *graph.Resource) bool { return a == b }),
	cmpopts.EquateComparable(),
}

// What is put into a snapshot, one by one or in a batch, comes out as it was.
func TestObjectsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := rapid.SliceOfNDistinct(anyObjects, 0, 30, func(o graph.Object) types.UID { return o.UID }).Draw(t, "objects")
		var one, many graph.Snapshot
		var packer graph.Packer
		for _, o := range objects {
			one.Add(o)
			packer.Add(&o)
		}
		batch := packer.Batch()
		if diff := cmp.Diff(objects, slices.Collect(batch.Objects()), exactly, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("batch (-want +got):\n%s", diff)
		}
		many.AddBatch(batch)
		for name, s := range map[string]*graph.Snapshot{"one by one": &one, "batch": &many} {
			i := 0
			for o := range s.Objects() {
				if diff := cmp.Diff(objects[i], o, exactly); diff != "" {
					t.Fatalf("%s: object %d (-want +got):\n%s", name, i, diff)
				}
				found, ok := s.Object(o.UID)
				if diff := cmp.Diff(o, found, exactly); !ok || diff != "" {
					t.Fatalf("%s: found %t (-want +got):\n%s", name, ok, diff)
				}
				i++
			}
			if i != len(objects) || s.Len() != i {
				t.Fatalf("%s: %d objects, Len %d, want %d", name, i, s.Len(), len(objects))
			}
		}
	})
}

// A snapshot does not depend on how objects were put into it, whatever of them
// is the same object twice.
func TestBatchesAreAdds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.SampledFrom([]types.UID{"a", "b", "", "11111111-2222-3333-4444-555555555555", "11111111-2222-3333-4444-555555555556"})
		objects := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) graph.Object {
			o := anyObjects.Draw(t, "object")
			o.UID, o.Name = few.Draw(t, "uid"), drawName(t)
			return o
		}), 0, 20).Draw(t, "objects")
		one := graph.Snapshot{Mapper: testworld.Mapper(testworld.Types(servedTypes))}
		many := graph.Snapshot{Mapper: one.Mapper}
		var packer graph.Packer
		for _, o := range objects {
			one.Add(o)
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				many.AddBatch(packer.Batch())
				many.Add(o)
			case 1:
				packer.Add(&o)
				many.AddBatch(packer.Batch())
			default:
				packer.Add(&o)
			}
		}
		many.AddBatch(packer.Batch())
		if diff := cmp.Diff(slices.Collect(one.Objects()), slices.Collect(many.Objects()), exactly); diff != "" || one.Len() != many.Len() {
			t.Fatalf("%d and %d objects (-one +many):\n%s", one.Len(), many.Len(), diff)
		}
		if diff := cmp.Diff(answers(graph.New(&one)), answers(graph.New(&many))); diff != "" {
			t.Fatalf("graph (-one +many):\n%s", diff)
		}
	})
}

// What another list has already counts once, also where it stands among objects that no other has, and
// owners are looked for there.
func TestServedTwiceInARun(t *testing.T) {
	kinds := testworld.Types(servedTypes)
	secret, ingress, old := &kinds[2], &kinds[10], &kinds[11]
	uid := func(i int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)) }
	var objects []graph.Object
	for i, r := range []*graph.Resource{ingress, ingress, ingress, old, old, old, old, old} {
		n := []int{2, 3, 5, 1, 2, 3, 4, 5}[i]
		objects = append(objects, graph.Object{Resource: r, Namespace: "shop", Name: fmt.Sprint("web-", n), UID: uid(n)})
	}
	for n := range 7 {
		objects = append(objects, graph.Object{
			Resource: secret, Namespace: "shop", Name: fmt.Sprint("of-", n), UID: uid(100 + n),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "extensions/v1beta1", Kind: "Ingress", Name: fmt.Sprint("web-", n), UID: uid(n)}},
		})
	}
	one := graph.Snapshot{Mapper: testworld.Mapper(kinds)}
	many := graph.Snapshot{Mapper: one.Mapper}
	var packer graph.Packer
	for _, o := range objects {
		one.Add(o)
		packer.Add(&o)
	}
	many.AddBatch(packer.Batch())
	g := graph.New(&many)
	for n := range g.Nodes() {
		for _, ref := range n.Owners() {
			if ref.Owner.UID() != ref.UID {
				t.Errorf("%s leads to %s, and says %s", n.Identity(), ref.Owner.Identity(), ref.UID)
			}
		}
	}
	if diff := cmp.Diff(answers(graph.New(&one)), answers(g)); diff != "" || g.Snapshot().Len() != 5+7 {
		t.Errorf("%d objects, graph (-one +many):\n%s", g.Snapshot().Len(), diff)
	}
}

// answers says everything that a graph tells of its nodes.
func answers(g *graph.Graph) []string {
	var lines []string
	for n := range g.Nodes() {
		line := fmt.Sprint(n.Identity(), n.UID(), n.Virtual(), n.BeingDeleted(), n.DeletingDependents(), n.HasOwners(), n.HasDependents())
		for _, ref := range n.Owners() {
			line += fmt.Sprint(" ", ref.Index, ref.UID, ref.Owner.Identity(), ref.State, ref.Reason)
		}
		for _, d := range n.Dependents() {
			line += fmt.Sprint(" ", d.Identity())
		}
		lines = append(lines, line)
	}
	return lines
}

// The parts of a node are those of its object.
func TestPartsOfNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := knots.Draw(t, "knot")
		for n := range k.graph.Nodes() {
			o := n.Object()
			if n.UID() != o.UID || n.Namespace() != o.Namespace || n.Resource() != o.Resource && !n.Virtual() ||
				n.Identity() != o.Identity() || n.BeingDeleted() != o.BeingDeleted() || n.DeletingDependents() != o.DeletingDependents() ||
				n.HasOwners() != (len(o.OwnerReferences) > 0) || n.HasOwners() != (len(n.Owners()) > 0) {
				t.Errorf("%s is not %s", n.Identity(), o.Identity())
			}
		}
	})
}

// An object that is replaced again and again stays one, whatever tables
// overflow on the way.
func TestReplacedOften(t *testing.T) {
	kinds := testworld.Types(servedTypes)
	var s graph.Snapshot
	s.Add(graph.Object{Resource: &kinds[0], Name: "before", UID: "before"})
	for i := range 140_000 {
		now := metav1.Unix(int64(i), 0)
		s.Add(graph.Object{Resource: &kinds[0], Name: "a", UID: "a", Finalizers: []string{fmt.Sprint(i % 50)}, ResourceVersion: fmt.Sprint(i), DeletionTimestamp: &now})
	}
	s.Add(graph.Object{Resource: &kinds[0], Name: "after", UID: "after"})
	o, _ := s.Object("a")
	before, _ := s.Object("before")
	if after, ok := s.Object("after"); !ok || after.Name != "after" {
		t.Errorf("the object that was added after: %v", after)
	}
	if s.Len() != 3 || o.ResourceVersion != "139999" || o.Finalizers[0] != "49" || o.DeletionTimestamp.Unix() != 139_999 || before.Name != "before" {
		t.Errorf("%d objects, %v, %v", s.Len(), o, before)
	}
}

// The objects of a resource, in a namespace or in all.
func TestObjectsOf(t *testing.T) {
	kinds := testworld.Types(servedTypes)
	var s graph.Snapshot
	for i, namespace := range []string{"shop", "other", "shop"} {
		s.Add(graph.Object{Resource: &kinds[i%2], Namespace: namespace, Name: bigName(i), UID: types.UID(bigName(i))})
	}
	names := func(resource *graph.Resource, namespace string) string {
		var names []string
		for o := range s.ObjectsOf(resource, namespace) {
			names = append(names, o.Name)
		}
		return strings.Join(names, " ")
	}
	if a, b, c := names(&kinds[0], ""), names(&kinds[0], "other"), names(&kinds[1], "other"); a != "n000000 n000002" || b != "" || c != "n000001" {
		t.Errorf("got %q, %q, %q", a, b, c)
	}
	for range s.ObjectsOf(&kinds[0], "") {
		break // must not go on
	}
}

// realistic packs objects as lists bring them: for each ReplicaSet three Pods
// and two ConfigMaps that nobody owns.
func realistic(n int) []graph.Batch {
	kinds := testworld.Types(servedTypes)
	yes := true
	var packer graph.Packer
	var batches []graph.Batch
	for kind, per := range map[int]int{0: 3, 7: 1, 2: 2} {
		for i := range n / 6 * per {
			rs := i / per
			o := graph.Object{
				Resource: &kinds[kind], Namespace: fmt.Sprintf("team-%03d", rs*1200/n), Name: fmt.Sprintf("web-%06d-5d4f8c7b9", rs), UID: anyUUID(kind, i),
				ResourceVersion: fmt.Sprint(1_000_000 + i), CreationTimestamp: metav1.Unix(1_700_000_000+int64(i), 0),
			}
			if kind != 7 {
				o.Name += fmt.Sprintf("-%05x", i)
			}
			if kind == 0 {
				o.OwnerReferences = []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprintf("web-%06d-5d4f8c7b9", rs), UID: anyUUID(7, rs),
					Controller: &yes, BlockOwnerDeletion: &yes,
				}}
			}
			packer.Add(&o)
			if (i+1)%500 == 0 {
				batches = append(batches, packer.Batch())
			}
		}
		batches = append(batches, packer.Batch())
	}
	return batches
}

// anyUUID returns the UID of the i-th object of a kind.
func anyUUID(kind, i int) types.UID {
	b := sha256.Sum256(fmt.Append(nil, kind, i))
	return uuid(b[:16])
}

// BenchmarkBuild makes a snapshot and a graph of batches as they come from
// lists. The memory that it reports is that of both.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{6_000, 60_000, 600_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			var before, after runtime.MemStats
			for b.Loop() {
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&before)
				batches := realistic(n)
				b.StartTimer()
				g := build(batches)
				b.StopTimer()
				clear(batches)
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(g)
				b.StartTimer()
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "heap-bytes/object")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/object")
		})
	}
}

func build(batches []graph.Batch) *graph.Graph {
	s := &graph.Snapshot{Mapper: testworld.Mapper(testworld.Types(servedTypes))}
	s.AddBatch(batches...)
	return graph.New(s)
}

// The owner of every Pod among many is found.
func TestRealistic(t *testing.T) {
	g := build(realistic(60_000))
	solid := 0
	for n := range g.Nodes() {
		for _, ref := range n.Owners() {
			if ref.State == graph.Solid && ref.Owner.Identity().Name == ref.Name {
				solid++
			}
		}
	}
	if solid != 30_000 || g.Len() != 60_000 {
		t.Errorf("%d solid references among %d nodes", solid, g.Len())
	}
}
