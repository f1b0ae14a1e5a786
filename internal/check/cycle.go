// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// maxRing is the number of objects of a circle that a message names.
const maxRing = 6

// cycles reports the circles of owners, those whose references all block as
// both.
func (c *checker) cycles() {
	all := c.graph.Cycles()
	for _, cycle := range c.graph.CyclesOver(all, blocks) {
		c.cycle(cycle, BlockingCycle, blocks)
	}
	for _, cycle := range c.graph.CyclesOver(all, keeps) {
		c.cycle(cycle, OwnerCycle, keeps)
	}
}

// keeps holds for references that keep an object. Of objects that are being
// deleted the circle breaks by itself, or explain-stuck has to be asked.
func keeps(ref graph.Reference) bool {
	return ref.State == graph.Solid && ref.Owner != ref.Dependent && !ref.Dependent.BeingDeleted() // in a circle, each is a dependent
}

func blocks(ref graph.Reference) bool { return ref.Blocking() && keeps(ref) }

// cycle reports a circle at the first of its objects that is checked.
func (c *checker) cycle(cycle []graph.Node, rule string, follow func(graph.Reference) bool) {
	i := slices.IndexFunc(cycle, c.selected)
	if i < 0 {
		return
	}
	members := make([]graph.Identity, len(cycle))
	for k, n := range cycle {
		members[k] = detached(n.Identity())
	}
	ring := ringFrom(cycle[i], cycle, follow)
	s := &subject{snapshot: c.graph.Snapshot(), node: cycle[i], refs: cycle[i].Owners()}
	s.ref = &s.refs[slices.IndexFunc(s.refs, func(ref graph.Reference) bool { return ref.Owner == ring[1] && follow(ref) })]
	sentences := []string{ringText(ring), keptByNext}
	effect, others := breaksCircle, ""
	if c.closesWithout(cycle, s.ref, follow) {
		effect, others = dropsOne, othersClose
	}
	way := c.drop(s, s.ref, effect)
	way.Effect += others
	if rule == BlockingCycle {
		sentences = append(sentences, waitForEachOther)
		way = &Remedy{unblocksIt + others, c.patch(s, s.ref, func(at string) []remedy.Step {
			return []remedy.Step{remedy.Replace(at+"/blockOwnerDeletion", false)}
		})}
	}
	f := c.add(s, rule, Warning, sentences, way)
	f.Members, f.Problem, f.Outcome = members, s.circled(rule, ring), Never
}

// closesWithout reports whether there is a circle among the members without the
// reference.
func (c *checker) closesWithout(members []graph.Node, ref *graph.Reference, follow func(graph.Reference) bool) bool {
	rest := c.graph.CyclesOver([][]graph.Node{members}, func(other graph.Reference) bool {
		return follow(other) && (other.Dependent != ref.Dependent || other.Index != ref.Index)
	})
	return len(rest) > 0
}

// ringFrom returns a shortest way over owners from the node back to itself,
// which is the first and the last in it.
func ringFrom(start graph.Node, members []graph.Node, follow func(graph.Reference) bool) []graph.Node {
	belongs := graph.NewSet(members...)
	cameFrom := map[graph.Node]graph.Node{}
	for queue := []graph.Node{start}; ; queue = queue[1:] {
		n := queue[0]
		for _, ref := range n.Owners() {
			if !belongs.Has(ref.Owner) || !follow(ref) {
				continue
			}
			if ref.Owner == start {
				return trace(cameFrom, start, n)
			}
			if _, seen := cameFrom[ref.Owner]; !seen {
				cameFrom[ref.Owner] = n
				queue = append(queue, ref.Owner)
			}
		}
	}
}

func trace(cameFrom map[graph.Node]graph.Node, start, last graph.Node) []graph.Node {
	ring := []graph.Node{start}
	for n := last; n != start; n = cameFrom[n] {
		ring = append(ring, n)
	}
	ring = append(ring, start)
	slices.Reverse(ring)
	return ring
}

func ringText(ring []graph.Node) string {
	var text strings.Builder
	text.WriteString(ring[0].Identity().String())
	for i, n := range ring[1:] {
		if i >= maxRing && i < len(ring)-2 {
			continue
		}
		text.WriteString(" is owned by ")
		if i > maxRing {
			text.WriteString("others, and those by ")
		}
		text.WriteString(n.Identity().String())
		if i < len(ring)-2 {
			text.WriteString(", which")
		}
	}
	return text.String()
}
