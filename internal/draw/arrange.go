// SPDX-License-Identifier: Apache-2.0

package draw

// Arrange decides for every node which one it is drawn beside: a node that one of
// its edges leads to, on a shortest way to one that no edge leaves. Where all ways
// end in circles, it begins on one of these.
func (p *Picture) Arrange() {
	into, first := make([][]int, len(p.Nodes)), make([]int, len(p.Nodes)) // first: where the first edge leads
	for i := range first {
		first[i] = -1
	}
	for k, e := range p.Edges {
		if e.From != e.To {
			into[e.To] = append(into[e.To], k)
			if first[e.From] < 0 {
				first[e.From] = e.To
			}
		}
	}
	seen := make([]bool, len(p.Nodes))
	spread := func(roots ...int) {
		for _, i := range roots {
			seen[i], p.Nodes[i].Under = true, -1
		}
		for queue := roots; len(queue) > 0; queue = queue[1:] {
			for _, k := range into[queue[0]] {
				if from := p.Edges[k].From; !seen[from] {
					seen[from], p.Nodes[from].Under = true, queue[0]
					queue = append(queue, from)
				}
			}
		}
	}
	var ends []int
	for i := range p.Nodes {
		if first[i] < 0 {
			ends = append(ends, i)
		}
	}
	spread(ends...)
	for i := range p.Nodes {
		for at, met := i, map[int]bool{}; !seen[i]; at = first[at] {
			if met[at] { // the way has come back to where it was
				spread(at)
				break
			}
			met[at] = true
		}
	}
}
