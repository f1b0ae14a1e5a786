// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"maps"
	"slices"
)

// Branch is one line of a forest: a node under one of its owners.
type Branch struct {
	Node Node
	// References are the node's references to the owner above, none at a root.
	References []Reference
	// Elsewhere are the node's references to other owners.
	Elsewhere []Reference
	// Cycle marks a line that leads back to a node further up on the same
	// branch, which owns the one above it. It has no dependents.
	Cycle bool
	// Hidden is the number of dependents that the depth limit cut off.
	Hidden     int
	Dependents []*Branch
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
	sel := Selection{Nodes: Set{}, Named: named, Cut: Set{}}
	level := named
	for _, n := range named {
		sel.Nodes[n] = true
	}
	for d := 0; len(level) > 0; d++ {
		var below []Node
		for _, n := range level {
			if depth >= 0 && d >= depth {
				sel.Cut[n] = true
				continue
			}
			for _, dependent := range n.Dependents() {
				if !sel.Nodes[dependent] {
					sel.Nodes[dependent] = true
					below = append(below, dependent)
				}
			}
		}
		level = below
	}
	return sel
}

// SelectOwners selects the nodes and what owns them.
func SelectOwners(named ...Node) Selection {
	return Selection{Nodes: Ancestors(named...), Named: named}
}

// SelectBoth selects the nodes, what owns them and what depends on them.
func SelectBoth(depth int, named ...Node) Selection {
	sel := SelectDependents(depth, named...)
	maps.Copy(sel.Nodes, Ancestors(named...))
	return sel
}

// Filter returns the selection without the nodes that match does not want. The
// owners of a node that stays do stay, so that no chain is cut, and so do the
// named ones.
func (sel Selection) Filter(match func(Node) bool) Selection {
	kept := slices.Clone(sel.Named)
	for n := range sel.Nodes {
		if match(n) {
			kept = append(kept, n)
		}
	}
	filtered := sel
	filtered.Nodes, filtered.unwanted = Set{}, maps.Clone(sel.Nodes)
	maps.Copy(filtered.unwanted, sel.unwanted)
	for n := range Ancestors(kept...) {
		if sel.Nodes[n] {
			filtered.Nodes[n] = true
			delete(filtered.unwanted, n)
		}
	}
	return filtered
}

// Sorted returns the set's nodes in the order of their identities.
func (s Set) Sorted() []Node {
	return slices.SortedFunc(maps.Keys(s), Node.Compare)
}

// Forest arranges the selection as trees: every node once, under its
// controller if that exists and is shown, otherwise under the first owner that
// keeps it, otherwise under the first. Nodes without an owner in the selection
// are roots, and so is one node of every cycle that nothing outside leads to.
func (sel Selection) Forest() []*Branch {
	p := newPlanter(sel)
	var roots []Node
	for _, n := range p.order {
		if p.primary[n.index] == nobody && p.place(n) {
			roots = append(roots, n)
		}
	}
	for _, cycle := range sel.cycles() {
		roots = append(roots, p.placeCycle(cycle)...)
	}
	slices.SortFunc(roots, Node.Compare)
	branches := make([]*Branch, len(roots))
	for i, n := range roots {
		branches[i] = p.branch(n, Node{})
	}
	return branches
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
		if owner == n || !sel.Nodes[owner] {
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

// cycles returns the cycles within the selection, owners before dependents.
func (sel Selection) cycles() [][]Node {
	var cycles [][]Node
	for n := range sel.Nodes {
		t := newTarjan(n.graph, func(i int32) bool { return sel.Nodes[Node{n.graph, i}] })
		for _, n := range sel.Nodes.Sorted() {
			t.visit(n.index)
		}
		return t.cycles
	}
	return cycles
}

// planter decides under which owner each node of a selection is shown. Its
// lists are indexed by node.
type planter struct {
	sel   Selection
	graph *Graph // nil for an empty selection
	order []Node // all nodes, those named by the user first
	// primary is the owner that a node is to be shown under, under the one that
	// it is; nobody where there is none.
	primary, under []int32
	placed         []bool
	above          []bool // on the way to the branch that is being built
}

const nobody = -1

func newPlanter(sel Selection) *planter {
	p := &planter{sel: sel}
	p.order = append(slices.Clone(sel.Named), sel.Nodes.Sorted()...)
	if len(p.order) == 0 {
		return p
	}
	p.graph = p.order[0].graph
	size := p.graph.Len()
	p.primary, p.under = make([]int32, size), make([]int32, size)
	p.placed, p.above = make([]bool, size), make([]bool, size)
	for i := range size {
		p.primary[i], p.under[i] = nobody, nobody
	}
	for n := range sel.Nodes {
		if owner, owned := sel.primaryOwner(n); owned {
			p.primary[n.index] = owner.index
		}
	}
	return p
}

// place marks the node and everything whose primary owners lead to it. It
// reports false when the node was placed before.
func (p *planter) place(n Node) bool {
	if p.placed[n.index] {
		return false
	}
	p.placed[n.index] = true
	queue := []int32{n.index}
	for len(queue) > 0 {
		owner := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, d := range p.graph.dependentsOf(owner) {
			if !p.placed[d] && p.primary[d] == owner {
				p.placed[d], p.under[d] = true, owner
				queue = append(queue, d)
			}
		}
	}
	return true
}

// placeCycle places the members of a cycle that primary owners alone did not
// place: under any owner that is placed, and where no member has one, below a
// root, which it returns.
func (p *planter) placeCycle(cycle []Node) []Node {
	members, candidates := Set{}, slices.Clone(cycle)
	for _, n := range cycle {
		members[n] = true
	}
	var roots []Node
	for {
		for len(candidates) > 0 {
			n := candidates[0]
			candidates = candidates[1:]
			if p.placeUnderAny(n) {
				for _, d := range n.Dependents() {
					if members[d] && !p.placed[d.index] {
						candidates = append(candidates, d)
					}
				}
			}
		}
		k := slices.IndexFunc(cycle, func(n Node) bool { return !p.placed[n.index] })
		if k < 0 {
			return roots
		}
		root := cycle[k]
		for _, n := range p.sel.Named {
			if members[n] && !p.placed[n.index] {
				root = n
				break
			}
		}
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

// branch builds the tree below a node.
func (p *planter) branch(n, owner Node) *Branch {
	b := &Branch{Node: n}
	for _, ref := range n.Owners() {
		if owner != (Node{}) && ref.Owner == owner {
			b.References = append(b.References, ref)
		} else {
			b.Elsewhere = append(b.Elsewhere, ref)
		}
	}
	p.above[n.index] = true
	defer func() { p.above[n.index] = false }()
	for _, i := range p.graph.dependentsOf(n.index) {
		d := Node{p.graph, i}
		switch {
		case p.under[i] == n.index:
			b.Dependents = append(b.Dependents, p.branch(d, n))
		case p.above[i]:
			b.Dependents = append(b.Dependents, &Branch{Node: d, References: d.ReferencesTo(n), Cycle: true})
		case p.sel.Cut[n] && !p.sel.Nodes[d] && !p.sel.unwanted[d]:
			b.Hidden++
		}
	}
	return b
}
