// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// A dependent is among its owners' dependents, once, and nobody else is.
func TestEdgesAreSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds.Draw(t, "world")
		g := graph.New(w.read(w.drawReading(t)))
		for o := range g.Nodes() {
			var want []graph.Node
			for d := range g.Nodes() {
				if slices.ContainsFunc(d.Object().OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == o.Identity().UID }) {
					want = append(want, d)
				}
			}
			if got := o.Dependents(); !slices.Equal(got, want) || o.HasDependents() != (len(want) > 0) {
				t.Fatalf("dependents of %s: got %s, want %s", o.Identity(), uids(got), uids(want))
			}
			for i, ref := range o.Owners() {
				if ref.Index != i || ref.Dependent != o || ref.Owner.Identity().UID != ref.UID || !slices.Contains(ref.Owner.Dependents(), o) {
					t.Fatalf("reference %d of %s leads to %s", i, o.Identity(), ref.Owner.Identity())
				}
			}
		}
	})
}

// Nodes are the objects in the order of their identities, then exactly the
// owners that references name and nobody read.
func TestNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds.Draw(t, "world")
		s := w.read(w.drawReading(t))
		g := graph.New(s)
		var observed []graph.Node
		virtual := map[types.UID]bool{}
		for n := range g.Nodes() {
			if !n.Virtual() {
				observed = append(observed, n)
			} else if virtual[n.Identity().UID] = true; !n.HasDependents() {
				t.Fatalf("nobody names %s", n.Identity())
			}
		}
		want := map[types.UID]bool{}
		for o := range s.Objects() {
			for _, ref := range o.OwnerReferences {
				if _, read := s.Object(ref.UID); !read {
					want[ref.UID] = true
				}
			}
		}
		sorted := slices.IsSortedFunc(observed, func(a, b graph.Node) int { return a.Identity().Compare(b.Identity()) })
		if diff := cmp.Diff(want, virtual); diff != "" || !sorted || len(observed) != s.Len() || g.Len() != s.Len()+len(want) {
			t.Fatalf("observed %s, virtual (-want +got): %s", uids(observed), diff)
		}
	})
}

func TestOrderOfInsertionIsIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds.Draw(t, "world")
		r := w.drawReading(t)
		r.gets = func(u graph.Undecided) bool { return u.Name == "a" }
		shuffled := world{types: w.types}
		for _, i := range rapid.Permutation(indices(len(w.objects))).Draw(t, "order") {
			shuffled.objects = append(shuffled.objects, w.objects[i])
		}
		if diff := cmp.Diff(dump(graph.New(w.read(r))), dump(graph.New(shuffled.read(r)))); diff != "" {
			t.Fatal(diff)
		}
	})
}

// What a GET is asked for must not depend on who came first, when references
// state several versions of one owner.
func TestUndecidedDoesNotDependOnOrder(t *testing.T) {
	lines := []string{
		"Pod/shop/p uid=p owner=autoscaling/v1:HorizontalPodAutoscaler:h:h",
		"Pod/shop/q uid=q owner=autoscaling/v2:HorizontalPodAutoscaler:h:h",
		"Pod/shop/r uid=r owner=autoscaling/v2:horizontalpodautoscaler:h:h",
	}
	undecided := func(lines []string) []graph.Undecided {
		sc := newScenario()
		for _, line := range append(lines, "unlisted horizontalpodautoscalers.autoscaling Timeout") {
			if err := sc.add(line); err != nil {
				t.Fatal(err)
			}
		}
		return sc.snapshot().Undecided()
	}
	want := undecided(lines)
	slices.Reverse(lines)
	if diff := cmp.Diff(want, undecided(lines)); diff != "" {
		t.Errorf("in the opposite order (-before +after):\n%s", diff)
	}
}

// With everything read, every reference is what the garbage collector's tests
// make of it.
func TestClassification(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds.Draw(t, "world")
		g := graph.New(w.read(w.complete()))
		for _, o := range w.objects {
			for _, ref := range node(g, string(o.UID)).Owners() {
				state, reason := w.classify(ref.OwnerReference, o)
				if ref.State != state || ref.Reason != reason {
					t.Fatalf("%s: %s %s %s %s: got %v %v, want %v %v", o.Identity(), ref.APIVersion, ref.Kind, ref.Name, ref.UID,
						ref.State, ref.Reason, state, reason)
				}
			}
		}
	})
}

// What was not read turns states into Unknown and into nothing else; what was
// looked at is not Unknown.
func TestUnreadIsUnknown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds.Draw(t, "world")
		r := w.drawReading(t)
		s := w.read(r)
		g := graph.New(s)
		for n := range g.Nodes() {
			for _, ref := range n.Owners() {
				state, _ := w.classify(ref.OwnerReference, *n.Object())
				if ref.State != state && ref.State != graph.Unknown {
					t.Fatalf("%s: %s %s %s %s is %v: got %v", n.Identity(), ref.APIVersion, ref.Kind, ref.Name, ref.UID, state, ref.State)
				}
				if state != graph.Unknown && ref.State == graph.Unknown && w.sees(r, ref.OwnerReference, *n.Object()) {
					t.Fatalf("%s: %s %s %s %s was looked at, got %v", n.Identity(), ref.APIVersion, ref.Kind, ref.Name, ref.UID, ref.Reason)
				}
			}
		}
	})
}

// sees reports whether the lists of a reading covered the place where a
// reference says that its owner is.
func (w world) sees(r reading, ref metav1.OwnerReference, item graph.Object) bool {
	served, ok := world{types: w.known(r)}.stated(ref)
	if !ok {
		return false
	}
	namespaces := r.listed[served.GroupResource()]
	return slices.Contains(namespaces, "") || served.Namespaced && slices.Contains(namespaces, item.Namespace)
}

// GETs of what is undecided leave nothing undecided but what they could not
// answer, and no reference Unknown for want of them.
func TestUndecidedIsAllThatGetsCanDecide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds.Draw(t, "world")
		r := w.drawReading(t)
		r.gets = func(graph.Undecided) bool { return true }
		s := w.read(r)
		for range w.objects { // owners that a GET found have owners in turn
			for _, u := range s.Undecided() {
				w.get(s, r, u)
			}
		}
		if left := s.Undecided(); len(left) > 0 {
			t.Fatalf("still undecided: %v", left)
		}
		for n := range graph.New(s).Nodes() {
			for _, ref := range n.Owners() {
				if _, known := (world{types: w.known(r)}).stated(ref.OwnerReference); known && ref.Reason == graph.UnlistedOwner {
					t.Fatalf("%s: %s %s %s %s is still unread", n.Identity(), ref.APIVersion, ref.Kind, ref.Name, ref.UID)
				}
			}
		}
	})
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
