// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// randomForest draws a picture of nodes of several sizes in a few namespaces,
// each under one that comes before it, or none.
func randomForest(t *rapid.T) *Picture {
	p := &Picture{Clustered: rapid.Bool().Draw(t, "clustered")}
	for i := range rapid.IntRange(0, 40).Draw(t, "nodes") {
		n := Node{
			Kind: "Pod", Name: fmt.Sprintf("%0*d", rapid.IntRange(1, 30).Draw(t, "length"), i), Count: 1,
			Namespace: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "namespace"), Note: rapid.SampledFrom([]string{"", "terminating"}).Draw(t, "note"),
			Under: rapid.IntRange(-1, i-1).Draw(t, "under"),
		}
		if n.Under >= 0 {
			p.Edges = append(p.Edges, Edge{From: i, To: n.Under})
		}
		p.Nodes = append(p.Nodes, n)
	}
	return p
}

func (b box) overlaps(other box) bool {
	return b.x < other.right() && other.x < b.right() && b.y < other.bottom() && other.y < b.bottom()
}

func (b box) within(other box) bool {
	return b.x >= other.x && b.y >= other.y && b.right() <= other.right() && b.bottom() <= other.bottom()
}

// TestLayout: nothing lies on anything else, dependents are right of their
// owners and in their order, everything is within the drawing, and nodes are in
// the frame of their namespace.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomForest(t)
		d := p.layout()
		all := box{0, 0, d.w, d.h}
		frames := map[string]box{}
		for i, f := range d.frames {
			frames[f.title] = f.box
			for _, other := range d.frames[:i] {
				if f.overlaps(other.box) {
					t.Fatalf("frames %+v and %+v overlap", f, other)
				}
			}
		}
		last := map[int]int{}
		for i, b := range d.nodes {
			n := &p.Nodes[i]
			if !b.within(all) || p.Clustered && !b.within(frames[clusterTitle(n.Namespace)]) {
				t.Fatalf("node %d at %+v is outside", i, b)
			}
			for j, other := range d.nodes[:i] {
				if b.overlaps(other) {
					t.Fatalf("nodes %d and %d overlap: %+v %+v", i, j, b, other)
				}
			}
			if p.rooted(i) {
				continue
			}
			if owner := d.nodes[n.Under]; b.x < owner.right()+columnGap {
				t.Fatalf("node %d at %+v is not right of its owner at %+v", i, b, owner)
			}
			if before, known := last[n.Under]; known && d.nodes[before].y >= b.y {
				t.Fatalf("nodes %d and %d are not in their order", before, i)
			}
			last[n.Under] = i
		}
	})
}

// TestLayoutOfADeepChain does not depend on how deep owners are.
func TestLayoutOfADeepChain(t *testing.T) {
	const n = 100_000
	p := &Picture{}
	for i := range n {
		p.Nodes = append(p.Nodes, Node{Kind: "Pod", Name: "p", Count: 1, Under: i - 1})
	}
	d := p.layout()
	if last := d.nodes[n-1]; last.right() != d.w || last.y != 0 {
		t.Errorf("the last is at %+v of %d", last, d.w)
	}
}

func TestShorten(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"web", "web"},
		{"0123456789012345678901234567890123456789", "0123456789012345678901234567890123456789"},
		{"begin-678901234567890123456789012345678901234-end", "begin-67890123456789…67890123456"},
		{"", ""},
	} {
		got := shorten(test.text)
		if columns(got) > maxShown {
			t.Errorf("%q is still too long: %q", test.text, got)
		}
		if columns(test.text) <= maxShown && got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if s := rapid.String().Draw(t, "s"); columns(shorten(s)) > maxShown {
			t.Fatalf("%q is still too long: %q", s, shorten(s))
		}
	})
}

// TestArrange: every node is under one that its edges lead to, in no circle.
func TestArrange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Picture{Nodes: make([]Node, rapid.IntRange(1, 10).Draw(t, "nodes"))}
		leads := map[[2]int]bool{}
		for range rapid.IntRange(0, 20).Draw(t, "edges") {
			e := Edge{From: rapid.IntRange(0, len(p.Nodes)-1).Draw(t, "from"), To: rapid.IntRange(0, len(p.Nodes)-1).Draw(t, "to")}
			leads[[2]int{e.From, e.To}] = true
			p.Edges = append(p.Edges, e)
		}
		p.Arrange()
		for i := range p.Nodes {
			steps := 0
			for at := i; p.Nodes[at].Under >= 0; at = p.Nodes[at].Under {
				if !leads[[2]int{at, p.Nodes[at].Under}] || steps > len(p.Nodes) {
					t.Fatalf("node %d is under %d", at, p.Nodes[at].Under)
				}
				steps++
			}
		}
	})
}

// TestArrangeCircle: what leads to a circle is under a member of it.
func TestArrangeCircle(t *testing.T) {
	p := &Picture{Nodes: make([]Node, 4), Edges: []Edge{{From: 0, To: 1}, {From: 1, To: 2}, {From: 2, To: 1}, {From: 3, To: 3}}}
	p.Arrange()
	for i, want := range []int{1, -1, 1, -1} {
		if got := p.Nodes[i].Under; got != want {
			t.Errorf("node %d is under %d, want %d", i, got, want)
		}
	}
}
