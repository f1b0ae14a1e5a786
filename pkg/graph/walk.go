// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"iter"
	"math/bits"
	"slices"
)

// Cycles returns the groups of objects that own each other, directly or
// through others, and the objects that own themselves: the strongly connected
// components, by Tarjan's algorithm. Groups and their members are ordered as
// the nodes are.
func (g *Graph) Cycles() [][]Node {
	between := func(i int32) bool { return len(g.dependentsOf(i)) > 0 && len(g.owners(i)) > 0 } // as all of a cycle are
	t := newTarjan(g, between)
	for i := range int32(len(g.order)) {
		if between(i) {
			t.visit(i)
		}
	}
	return t.sorted()
}

// tarjan holds the state of one run over the nodes that belong. Owner chains
// may be long, so the search keeps its own stack. Cycles are found owners
// first.
type tarjan struct {
	graph   *Graph
	belongs func(int32) bool
	// follows says which references of a node count; nil for all.
	follows func(node int32, reference int) bool

	number []int32 // order of discovery, 0 for not yet found
	low    []int32 // lowest number reachable
	open   []bool  // on the component stack
	stack  []int32
	frames []frame
	next   int32
	cycles [][]Node
}

func newTarjan(g *Graph, belongs func(int32) bool) *tarjan {
	return &tarjan{
		graph: g, belongs: belongs,
		number: make([]int32, g.Len()), low: make([]int32, g.Len()), open: make([]bool, g.Len()),
	}
}

// visit searches from the node unless it was found before.
func (t *tarjan) visit(i int32) {
	if t.number[i] == 0 {
		t.search(i)
	}
}

type frame struct {
	node int32
	edge int // the next owner to follow
}

func (t *tarjan) enter(i int32) frame {
	t.next++
	t.number[i], t.low[i] = t.next, t.next
	t.stack, t.open[i] = append(t.stack, i), true
	return frame{node: i}
}

// search finds every component reachable from the node over its owners.
func (t *tarjan) search(start int32) {
	t.frames = append(t.frames[:0], t.enter(start))
	for len(t.frames) > 0 {
		f := &t.frames[len(t.frames)-1]
		owners := t.graph.owners(f.node)
		if f.edge < len(owners) {
			owner := owners[f.edge].owner
			f.edge++
			if !t.belongs(owner) || t.follows != nil && !t.follows(f.node, f.edge-1) {
				continue
			}
			if t.number[owner] == 0 {
				t.frames = append(t.frames, t.enter(owner))
			} else if t.open[owner] {
				t.low[f.node] = min(t.low[f.node], t.number[owner])
			}
			continue
		}
		done := f.node
		t.frames = t.frames[:len(t.frames)-1]
		if len(t.frames) > 0 {
			above := t.frames[len(t.frames)-1].node
			t.low[above] = min(t.low[above], t.low[done])
		}
		if t.low[done] == t.number[done] {
			t.close(done)
		}
	}
}

// close takes the component with the root off the stack and keeps it when it
// is a cycle.
func (t *tarjan) close(root int32) {
	k := len(t.stack) - 1
	for t.stack[k] != root {
		k--
	}
	members := t.stack[k:] // until the next push
	t.stack = t.stack[:k]
	for _, i := range members {
		t.open[i] = false
	}
	if len(members) == 1 && !t.ownsItself(root) {
		return
	}
	slices.Sort(members)
	cycle := make([]Node, len(members))
	for k, i := range members {
		cycle[k] = Node{t.graph, i}
	}
	t.cycles = append(t.cycles, cycle)
}

func (t *tarjan) ownsItself(i int32) bool {
	for k, e := range t.graph.owners(i) {
		if e.owner == i && (t.follows == nil || t.follows(i, k)) {
			return true
		}
	}
	return false
}

// sorted returns the cycles in the order of their first members.
func (t *tarjan) sorted() [][]Node {
	slices.SortFunc(t.cycles, func(a, b []Node) int { return int(a[0].index) - int(b[0].index) })
	return t.cycles
}

// Path returns the shortest chain of owners from a dependent up to an owner,
// both included, or nil when there is none. Of several it takes the one whose
// references come first.
func (g *Graph) Path(from, to Node) []Node {
	cameFrom := map[int32]int32{from.index: from.index}
	queue := []int32{from.index}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		if i == to.index {
			return g.trace(cameFrom, from.index, to.index)
		}
		for _, e := range g.owners(i) {
			if _, seen := cameFrom[e.owner]; !seen {
				cameFrom[e.owner] = i
				queue = append(queue, e.owner)
			}
		}
	}
	return nil
}

func (g *Graph) trace(cameFrom map[int32]int32, from, to int32) []Node {
	path := []Node{{g, to}}
	for i := to; i != from; {
		i = cameFrom[i]
		path = append(path, Node{g, i})
	}
	slices.Reverse(path)
	return path
}

// Set is a set of nodes of one graph. The zero value is empty and ready for use;
// a copy of any other is the same set.
type Set struct{ *members }

// members are those of a set: few in a map, and of more than one node in perBit a bit for
// each node of the graph, which is less then.
type members struct {
	graph *Graph
	few   map[int32]struct{}
	bits  []uint64
	count int
}

const perBit = 64

// NewSet returns the set of the nodes.
func NewSet(nodes ...Node) Set {
	var s Set
	for _, n := range nodes {
		s.Add(n)
	}
	return s
}

// Add adds a node and reports whether it was not in the set before.
func (s *Set) Add(n Node) bool {
	if s.members == nil {
		s.members = &members{graph: n.graph, few: map[int32]struct{}{}}
	}
	if s.has(n.index) {
		return false
	}
	s.count++
	if s.bits == nil && s.count*perBit > s.graph.Len() {
		s.spread()
	}
	if s.bits == nil {
		s.few[n.index] = struct{}{}
	} else {
		s.bits[n.index/perBit] |= 1 << (n.index % perBit)
	}
	return true
}

// spread goes from a map to bits.
func (m *members) spread() {
	m.bits = make([]uint64, (m.graph.Len()+perBit-1)/perBit)
	for i := range m.few {
		m.bits[i/perBit] |= 1 << (i % perBit)
	}
	m.few = nil
}

func (m *members) has(i int32) bool {
	if m.bits != nil {
		return m.bits[i/perBit]&(1<<(i%perBit)) != 0
	}
	_, ok := m.few[i]
	return ok
}

// AddAll adds the nodes of another set.
func (s *Set) AddAll(other Set) {
	for n := range other.All() {
		s.Add(n)
	}
}

// Has reports whether the node is in the set.
func (s Set) Has(n Node) bool {
	return s.members != nil && n.graph == s.graph && s.has(n.index)
}

// Len returns the number of nodes.
func (s Set) Len() int {
	if s.members == nil {
		return 0
	}
	return s.count
}

// All goes over the nodes in no order.
func (s Set) All() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		if s.members == nil {
			return
		}
		if s.bits == nil {
			for i := range s.few {
				if !yield(Node{s.graph, i}) {
					return
				}
			}
			return
		}
		for at, word := range s.bits {
			for ; word != 0; word &= word - 1 {
				if !yield(Node{s.graph, int32(at*perBit + bits.TrailingZeros64(word))}) {
					return
				}
			}
		}
	}
}

// Sorted returns the nodes in the order of their identities.
func (s Set) Sorted() []Node {
	nodes := slices.Collect(s.All())
	sortNodes(nodes)
	return nodes
}

// sortNodes sorts nodes by their identities. Mostly they are in order but for some at the end:
// virtual ones, whose comparisons cost more, and those of cycles. These are put where they belong.
func sortNodes(nodes []Node) {
	sorted := 1
	for sorted < len(nodes) && nodes[sorted-1].Compare(nodes[sorted]) <= 0 {
		sorted++
	}
	if sorted >= len(nodes) {
		return
	}
	rest := slices.SortedFunc(slices.Values(nodes[sorted:]), Node.Compare)
	for k, n := range slices.Backward(rest) { // nodes[:sorted] and rest[:k+1] are still to be merged
		at, _ := slices.BinarySearchFunc(nodes[:sorted], n, Node.Compare)
		copy(nodes[at+k+1:], nodes[at:sorted])
		nodes[at+k], sorted = n, at
	}
}

// Ancestors returns the nodes that can be reached over owners from the given
// ones, which are included.
func Ancestors(nodes ...Node) Set {
	return reach(nodes, func(n Node, add func(int32)) {
		for _, e := range n.graph.owners(n.index) {
			add(e.owner)
		}
	})
}

// Descendants returns the nodes that can be reached over dependents from the
// given ones, which are included.
func Descendants(nodes ...Node) Set {
	return reach(nodes, func(n Node, add func(int32)) {
		for _, i := range n.graph.dependentsOf(n.index) {
			add(i)
		}
	})
}

// Component returns the nodes that can be reached from the given ones, which are
// included, over owners and dependents alike: what the garbage collector's debug
// graph shows for a UID (garbagecollector/dump.go, ToGonumGraphForObj).
func Component(nodes ...Node) Set {
	return reach(nodes, func(n Node, add func(int32)) {
		for _, e := range n.graph.owners(n.index) {
			add(e.owner)
		}
		for _, i := range n.graph.dependentsOf(n.index) {
			add(i)
		}
	})
}

func reach(nodes []Node, next func(n Node, add func(int32))) Set {
	set := NewSet(nodes...)
	queue := slices.Clone(nodes)
	var n Node
	add := func(i int32) {
		if m := (Node{n.graph, i}); set.Add(m) {
			queue = append(queue, m)
		}
	}
	for len(queue) > 0 {
		n = queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		next(n, add)
	}
	return set
}

// CyclesOver returns the cycles that only those references make which follow
// wants, among the members of cycles that Cycles returned. Groups and their
// members are ordered as the nodes are.
func (g *Graph) CyclesOver(cycles [][]Node, follow func(Reference) bool) [][]Node {
	if len(cycles) == 0 {
		return nil
	}
	wanted := map[int32][]bool{}
	for _, cycle := range cycles {
		for _, n := range cycle {
			owners := n.Owners()
			wanted[n.index] = make([]bool, len(owners))
			for k, ref := range owners {
				wanted[n.index][k] = follow(ref)
			}
		}
	}
	t := newTarjan(g, func(i int32) bool { return wanted[i] != nil })
	t.follows = func(i int32, k int) bool { return wanted[i][k] }
	for _, cycle := range cycles {
		for _, n := range cycle {
			t.visit(n.index)
		}
	}
	return t.sorted()
}
