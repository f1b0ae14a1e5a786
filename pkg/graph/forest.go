// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"iter"
	"slices"
)

// Branch is one line of a forest: a node under one of its owners.
type Branch struct {
	Node Node
	// Depth is the number of lines that lead to this one, none to a root.
	Depth int
	// Last: no other line follows below the one above.
	Last bool
	// References are the node's references to the owner above, none at a root.
	References []Reference
	// Elsewhere are the node's references to other owners.
	Elsewhere []Reference
	// Cycle marks a line that leads back to a node further up on the same
	// branch, which owns the one above it. Nothing is below it.
	Cycle bool
	// Hidden is the number of dependents that the depth limit cut off.
	Hidden int
}

// Selection is the part of a graph that is shown.
type Selection struct {
	// Nodes are shown, each once.
	Nodes Set
	// Named are the objects that the user asked for. They are always shown, and
	// they come first where the order is free.
	Named []Node
	// Cut are nodes whose dependents a depth limit left out.
	Cut Set
	// unwanted are nodes that a filter took out.
	unwanted Set
}

// SelectDependents selects the nodes and what depends on them, down to the
// depth; a negative depth is no limit.
func SelectDependents(depth int, named ...Node) Selection {
	sel := Selection{Nodes: NewSet(named...), Named: named}
	if len(named) == 0 {
		return sel
	}
	together := len(named)
	if depth < 0 {
		together = 1 // so that few are at hand at a time
	}
	g, level, below := named[0].graph, []int32(nil), []int32(nil)
	for part := range slices.Chunk(named, together) {
		level = level[:0]
		for _, n := range part {
			level = append(level, n.index)
		}
		for d := 0; len(level) > 0; d++ {
			below = sel.addDependents(g, level, depth >= 0 && d >= depth, below[:0])
			level, below = below, level
		}
	}
	return sel
}

// addDependents adds the dependents of a level, or says that they are cut off. It appends
// the new ones.
func (sel *Selection) addDependents(g *Graph, level []int32, cut bool, below []int32) []int32 {
	for _, owner := range level {
		if cut {
			sel.Cut.Add(Node{g, owner})
			continue
		}
		for _, i := range g.dependentsOf(owner) {
			if sel.Nodes.Add(Node{g, i}) {
				below = append(below, i)
			}
		}
	}
	return below
}

// SelectOwners selects the nodes and what owns them.
func SelectOwners(named ...Node) Selection {
	return Selection{Nodes: Ancestors(named...), Named: named}
}

// SelectBoth selects the nodes, what owns them and what depends on them.
func SelectBoth(depth int, named ...Node) Selection {
	sel := SelectDependents(depth, named...)
	sel.Nodes.AddAll(Ancestors(named...))
	return sel
}

// Filter returns the selection without the nodes that match does not want. The
// owners of a node that stays do stay, so that no chain is cut, and so do the
// named ones.
func (sel Selection) Filter(match func(Node) bool) Selection {
	kept := slices.Clone(sel.Named)
	for n := range sel.Nodes.All() {
		if match(n) {
			kept = append(kept, n)
		}
	}
	filtered := sel
	filtered.Nodes, filtered.unwanted = Set{}, Set{}
	wanted := Ancestors(kept...)
	for n := range sel.Nodes.All() {
		if wanted.Has(n) {
			filtered.Nodes.Add(n)
		} else {
			filtered.unwanted.Add(n)
		}
	}
	filtered.unwanted.AddAll(sel.unwanted)
	return filtered
}

// Forest is a selection arranged as trees: every node once, under its
// controller if that exists and is shown, otherwise under the first owner that
// keeps it, otherwise under the first. It knows the places alone, so that it is
// small beside the graph; lines are made when they are asked for.
type Forest struct {
	planter *planter
	// Nodes are those of the selection.
	Nodes Set
	// Roots are the nodes without an owner in the selection, and one node of
	// every cycle that nothing outside leads to, sorted.
	Roots []Node
}

// Forest arranges the selection.
func (sel Selection) Forest() Forest {
	p := newPlanter(sel)
	var roots []Node
	for n := range sel.Nodes.All() {
		if p.under[n.index] == nobody && p.place(n) {
			roots = append(roots, n)
		}
	}
	if p.left > 0 {
		for _, cycle := range sel.cycles() {
			roots = append(roots, p.placeCycle(cycle)...)
		}
	}
	sortNodes(roots)
	return Forest{p, sel.Nodes, roots}
}

// Branches goes over the lines from top to bottom: owners before dependents,
// dependents of one owner sorted.
func (f Forest) Branches() iter.Seq[*Branch] {
	return func(yield func(*Branch) bool) {
		if len(f.Roots) == 0 {
			return
		}
		w := walker{f.planter, make([]bool, len(f.planter.under)), yield}
		for i, n := range f.Roots {
			if !w.walk(&Branch{Node: n, Elsewhere: n.Owners(), Last: i == len(f.Roots)-1}) {
				return
			}
		}
	}
}

// Placed goes over the nodes of the selection in the order of their lines, each once. It costs
// less than Branches.
func (f Forest) Placed() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		var below []int32 // of which lines are to come, the next one last
		for _, root := range f.Roots {
			below = append(below[:0], root.index)
			for len(below) > 0 {
				i := below[len(below)-1]
				below = below[:len(below)-1]
				if !yield(Node{root.graph, i}) {
					return
				}
				dependents := root.graph.dependentsOf(i)
				for k := len(dependents) - 1; k >= 0; k-- { // slices.Backward would allocate here
					if d := dependents[k]; f.planter.under[d] == i {
						below = append(below, d)
					}
				}
			}
		}
	}
}

// walker makes the lines of a forest.
type walker struct {
	*planter
	above []bool // on the way to the line at hand
	yield func(*Branch) bool
}

// walk yields the line and those below it, until yield wants no more.
func (w *walker) walk(b *Branch) bool {
	n := b.Node
	w.above[n.index] = true
	defer func() { w.above[n.index] = false }()
	below, hidden := w.below(n)
	b.Hidden = hidden
	if !w.yield(b) {
		return false
	}
	for i, d := range below {
		line := w.line(Node{w.graph, d}, n)
		line.Depth, line.Last = b.Depth+1, i == len(below)-1
		next := w.walk
		if line.Cycle {
			next = w.yield
		}
		if !next(line) {
			return false
		}
	}
	return true
}

// below returns the nodes of which lines are below a node, and how many more
// there would be without the depth limit.
func (w *walker) below(n Node) (lines []int32, hidden int) {
	for _, i := range w.graph.dependentsOf(n.index) {
		d := Node{w.graph, i}
		switch {
		case w.under[i] == n.index, w.above[i]:
			lines = append(lines, i)
		case w.sel.Cut.Has(n) && !w.sel.Nodes.Has(d) && !w.sel.unwanted.Has(d):
			hidden++
		}
	}
	return lines, hidden
}

// line makes the line of a node under an owner.
func (w *walker) line(n, owner Node) *Branch {
	b := &Branch{Node: n, Cycle: w.under[n.index] != owner.index}
	if b.Cycle {
		b.References = n.ReferencesTo(owner)
		return b
	}
	for _, ref := range n.Owners() {
		if ref.Owner == owner {
			b.References = append(b.References, ref)
		} else {
			b.Elsewhere = append(b.Elsewhere, ref)
		}
	}
	return b
}

// primaryOwner returns the owner that the node is shown under. An object that
// owns itself is not shown under itself.
func (sel Selection) primaryOwner(n Node) (Node, bool) {
	edges := n.graph.owners(n.index)
	if len(edges) == 0 {
		return Node{}, false
	}
	var best Node
	rank := 0
	b, slot := n.place()
	for k, w := range b.ownersFrom(b.records[slot].owners) {
		owner := Node{n.graph, edges[k].owner}
		if owner == n || !sel.Nodes.Has(owner) {
			continue
		}
		r := 1
		switch {
		case w.is(controllerTrue) && !owner.Virtual():
			r = 3
		case edges[k].state == Solid:
			r = 2
		}
		if r > rank {
			best, rank = owner, r
		}
	}
	return best, rank > 0
}

// cycles returns the cycles within the selection, which is not empty, owners
// before dependents.
func (sel Selection) cycles() [][]Node {
	g := sel.Nodes.graph
	t := newTarjan(g, func(i int32) bool { return sel.Nodes.Has(Node{g, i}) })
	for _, n := range sel.Nodes.Sorted() {
		t.visit(n.index)
	}
	return t.cycles
}

// planter decides under which owner each node of a selection is shown. Its
// lists are indexed by node.
type planter struct {
	sel   Selection
	graph *Graph // nil for an empty selection
	// under is the owner that a node is to be shown under, and once the node is placed the one
	// that it is; nobody where there is none.
	under  []int32
	placed []bool
	left   int     // nodes that are not placed
	queue  []int32 // of place
}

const nobody = -1

func newPlanter(sel Selection) *planter {
	p := &planter{sel: sel, left: sel.Nodes.Len()}
	if p.left == 0 {
		return p
	}
	p.graph = sel.Nodes.graph
	size := p.graph.Len()
	p.under, p.placed = make([]int32, size), make([]bool, size)
	for i := range size {
		p.under[i] = nobody
	}
	for n := range sel.Nodes.All() {
		if owner, owned := sel.primaryOwner(n); owned {
			p.under[n.index] = owner.index
		}
	}
	return p
}

// place places the node as it stands, and everything whose primary owners lead to it. It
// reports false when the node was placed before.
func (p *planter) place(n Node) bool {
	if p.placed[n.index] {
		return false
	}
	p.placed[n.index] = true
	p.left--
	p.queue = append(p.queue[:0], n.index)
	for len(p.queue) > 0 {
		owner := p.queue[len(p.queue)-1]
		p.queue = p.queue[:len(p.queue)-1]
		for _, d := range p.graph.dependentsOf(owner) {
			if !p.placed[d] && p.under[d] == owner {
				p.placed[d] = true
				p.left--
				p.queue = append(p.queue, d)
			}
		}
	}
	return true
}

// placeCycle places the members of a cycle that primary owners alone did not
// place: under any owner that is placed, and where no member has one, below a
// root, which it returns.
func (p *planter) placeCycle(cycle []Node) []Node {
	members, candidates := NewSet(cycle...), slices.Clone(cycle)
	var roots []Node
	var done Set // those whose dependents are candidates; others were placed along with an owner
	for {
		for len(candidates) > 0 {
			n := candidates[0]
			candidates = candidates[1:]
			if done.Has(n) || !p.placeUnderAny(n) {
				continue
			}
			done.Add(n)
			for _, d := range n.Dependents() {
				if members.Has(d) && !done.Has(d) {
					candidates = append(candidates, d)
				}
			}
		}
		k := slices.IndexFunc(cycle, func(n Node) bool { return !p.placed[n.index] })
		if k < 0 {
			return roots
		}
		root := cycle[k]
		for _, n := range p.sel.Named {
			if members.Has(n) && !p.placed[n.index] {
				root = n
				break
			}
		}
		p.under[root.index] = nobody
		p.place(root)
		roots = append(roots, root)
		candidates = slices.Clone(cycle)
	}
}

// placeUnderAny places a node under the first of its owners that is placed. It
// reports whether the node is placed now.
func (p *planter) placeUnderAny(n Node) bool {
	if p.placed[n.index] {
		return true
	}
	for _, e := range p.graph.owners(n.index) {
		if p.placed[e.owner] {
			p.under[n.index] = e.owner
			return p.place(n)
		}
	}
	return false
}
