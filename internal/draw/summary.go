// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxApart is the number of equal dependents of one owner that a summary still
// draws one by one.
const maxApart = 2

// Summary returns the picture with equal dependents of one owner drawn as one
// node, which says how many they are. Equal are those of one kind of which the
// same is said, whose references lead to the same owners, and whose own dependents
// are equal; also objects that have neither owners nor dependents. Its cost is
// linear in the picture, but for sorting.
func (p *Picture) Summary() *Picture {
	s := &summary{
		from: p, to: *p, below: make([][]int, len(p.Nodes)), edges: make([][]int, len(p.Nodes)),
		class: make([]int, len(p.Nodes)), became: make([]int, len(p.Nodes)), classes: map[string]int{},
	}
	s.to.Nodes, s.to.Edges = nil, nil
	s.classify()
	s.mergeAll(s.roots, -1)
	s.mergeEdges()
	return &s.to
}

type summary struct {
	from *Picture
	to   Picture
	// below are the nodes under a node, edges those that leave it.
	below, edges [][]int
	roots        []int
	// class is the same for equal nodes under one owner.
	class   []int
	classes map[string]int
	// became says which node of the summary stands for a node.
	became []int
}

// classify finds out which nodes are equal, those below others first.
func (s *summary) classify() {
	single := make([]bool, len(s.from.Nodes))
	for i := range s.from.Nodes {
		n := &s.from.Nodes[i]
		single[i] = n.Kept
		if n.Under < 0 {
			s.roots = append(s.roots, i)
		} else {
			s.below[n.Under] = append(s.below[n.Under], i)
		}
	}
	for k, e := range s.from.Edges {
		s.edges[e.From] = append(s.edges[e.From], k)
		if s.from.Nodes[e.From].Under != e.To {
			single[e.To] = true // somebody else leads there
		}
	}
	order := slices.Clone(s.roots)
	for k := 0; k < len(order); k++ {
		order = append(order, s.below[order[k]]...)
	}
	for _, i := range slices.Backward(order) {
		key := s.key(i)
		if single[i] || s.from.Nodes[i].Under < 0 && len(s.below[i])+len(s.edges[i]) > 0 {
			key = "only " + strconv.Itoa(i)
		}
		class, known := s.classes[key]
		if !known {
			class = len(s.classes)
			s.classes[key] = class
		}
		s.class[i] = class
	}
}

// key is the same for nodes that are equal, if they are under the same one.
func (s *summary) key(i int) string {
	n := &s.from.Nodes[i]
	parts := []string{n.Kind, n.Namespace, n.Note, strings.Join(n.Marks, " ")}
	for _, k := range s.edges[i] {
		e := &s.from.Edges[k]
		to := e.To
		if to == n.Under {
			to = -1
		}
		parts = append(parts, strconv.Itoa(to), e.Mark, e.Label)
	}
	var below []int
	for _, d := range s.below[i] {
		below = append(below, s.class[d])
	}
	slices.Sort(below)
	return fmt.Sprintf("%q %v", parts, below)
}

// mergeAll adds what stands for the nodes, which are under one, or under equal
// ones. It recurs as deep as owners are.
func (s *summary) mergeAll(nodes []int, under int) {
	at := map[int]int{} // by class
	var groups [][]int
	for _, i := range nodes {
		k, known := at[s.class[i]]
		if !known {
			k = len(groups)
			at[s.class[i]], groups = k, append(groups, nil)
		}
		groups[k] = append(groups[k], i)
	}
	several := under >= 0 && s.to.Nodes[under].Count > 1
	var drawn [][]int
	for _, group := range groups {
		if several || len(group) > maxApart {
			drawn = append(drawn, group)
			continue
		}
		for _, i := range group {
			drawn = append(drawn, []int{i})
		}
	}
	slices.SortFunc(drawn, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	for _, group := range drawn {
		s.merge(group, under)
	}
}

// merge adds one node for the nodes, and those for what is below them.
func (s *summary) merge(group []int, under int) {
	n := s.from.Nodes[group[0]]
	at := len(s.to.Nodes)
	n.Under = under
	if len(group) > 1 {
		n.Count, n.Members = 0, nil
		for _, i := range group {
			n.Count += s.from.Nodes[i].Count
			n.Members = append(n.Members, s.from.Nodes[i].Name)
		}
		n.Details = slices.DeleteFunc(slices.Clone(n.Details), func(d Detail) bool {
			return d.Label != "apiVersion" && d.Label != "namespace"
		})
		n.Attributes = append(slices.Clone(n.Attributes), Attribute{"count", strconv.Itoa(n.Count)})
	}
	s.to.Nodes = append(s.to.Nodes, n)
	var below []int
	for _, i := range group {
		s.became[i] = at
		below = append(below, s.below[i]...)
	}
	s.mergeAll(below, at)
}

// mergeEdges adds the edges, those that have become the same once.
func (s *summary) mergeEdges() {
	type link struct {
		from, to    int
		mark, label string
		number      int // of those that one node has to another
	}
	seen := map[link]bool{}
	for i := range s.from.Nodes {
		number := map[link]int{}
		for _, k := range s.edges[i] {
			e := s.from.Edges[k]
			e.From, e.To = s.became[e.From], s.became[e.To]
			l := link{e.From, e.To, e.Mark, e.Label, 0}
			number[l]++
			if l.number = number[l]; !seen[l] {
				seen[l] = true
				s.to.Edges = append(s.to.Edges, e)
			}
		}
	}
	slices.SortStableFunc(s.to.Edges, func(a, b Edge) int { return cmp.Compare(a.From, b.From) })
}
