// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"math"
	"strings"
	"unicode"
)

// box is a place in a drawing, in pixels.
type box struct{ x, y, w, h int }

func (b box) right() int  { return b.x + b.w }
func (b box) bottom() int { return b.y + b.h }
func (b box) middle() int { return b.y + b.h/2 }
func (b box) center() int { return b.x + b.w/2 }

// frame is the place of a cluster.
type frame struct {
	box
	title string
}

// drawing says where everything is.
type drawing struct {
	nodes  []box
	frames []frame
	w, h   int
}

// Sizes in pixels.
const (
	nameWidth    = 7.3  // of a letter of a name: 12 px of a font of one width
	headingSize  = 10.5 // of the letters of a heading or a note
	bold         = 1.18 // how much wider bold letters are
	padding      = 10
	lineHeight   = 15
	rowGap       = 10
	columnGap    = 44
	treeGap      = 26
	frameGap     = 24
	framePadding = 16
	frameTitle   = 22
)

// wide is the width of a drawing over its height that packing aims at.
const wide = 1.6

// layout places the nodes: owners left, each dependent in a row of its own to
// the right of the owner that it is under, and each owner at the middle of its
// dependents' rows. Trees are put into columns, and so are frames. It takes
// linear time and does not recur, since chains of owners may be long.
func (p *Picture) layout() *drawing {
	d := &drawing{nodes: make([]box, len(p.Nodes))}
	for i := range p.Nodes {
		d.nodes[i].w, d.nodes[i].h = p.size(&p.Nodes[i])
	}
	clusters := p.clusters()
	frames := make([]box, len(clusters))
	trees := make([][]tree, len(clusters))
	below := make([][]int, len(p.Nodes))
	for k, c := range clusters {
		trees[k] = d.plant(p, c, below)
		boxes := make([]box, len(trees[k]))
		for j, t := range trees[k] {
			boxes[j] = t.box
		}
		frames[k].w, frames[k].h = pack(boxes, treeGap, treeGap)
		for j := range boxes {
			trees[k][j].x, trees[k][j].y = boxes[j].x, boxes[j].y
		}
		if c.title != "" {
			title := int(math.Ceil(12 * bold * ems(c.title)))
			frames[k].w = max(frames[k].w, title) + 2*framePadding
			frames[k].h += 2*framePadding + frameTitle
		}
	}
	d.w, d.h = pack(frames, frameGap, frameGap)
	for k, c := range clusters {
		x, y := frames[k].x, frames[k].y
		if c.title != "" {
			d.frames = append(d.frames, frame{frames[k], c.title})
			x, y = x+framePadding, y+framePadding+frameTitle
		}
		for _, t := range trees[k] {
			for _, i := range t.nodes {
				d.nodes[i].x += x + t.x
				d.nodes[i].y += y + t.y
			}
		}
	}
	return d
}

// size is the size of a node's box.
func (p *Picture) size(n *Node) (w, h int) {
	widest := max(headingSize*ems(shorten(p.heading(n))), nameWidth*float64(columns(shorten(n.title()))),
		headingSize*bold*ems(shorten(visible(n.Note))))
	h = 2*lineHeight + 8
	if n.Note != "" {
		h += lineHeight - 1
	}
	return int(math.Ceil(widest)) + 2*padding, h
}

// ems is the width of a text in a font without serifs, over its size. That of a
// letter is the widest of the usual fonts, which are those of DejaVu Sans, so that no text
// leaves its box.
func ems(s string) float64 {
	sum := 0.0
	for _, r := range s {
		switch {
		case width(r) == 2:
			sum += 1.1
		case strings.ContainsRune("WM@%mw…", r):
			sum += 0.99
		case strings.ContainsRune("ijltfrI.,:;|'()[]!- ·/", r):
			sum += 0.42
		case r >= 0x80, unicode.IsUpper(r):
			sum += 0.79
		default:
			sum += 0.64
		}
	}
	return sum
}

// tree is a root with all that is under it, in the order in which owners come
// before their dependents.
type tree struct {
	box
	nodes []int
}

// plant places the nodes of a cluster within their trees. below is filled with
// the nodes under each node.
func (d *drawing) plant(p *Picture, c cluster, below [][]int) []tree {
	var roots []int
	for _, i := range c.nodes {
		if p.rooted(i) {
			roots = append(roots, i)
		} else {
			below[p.Nodes[i].Under] = append(below[p.Nodes[i].Under], i)
		}
	}
	trees := make([]tree, len(roots))
	for k, root := range roots {
		trees[k] = d.grow(root, below)
	}
	return trees
}

// grow places the nodes of one tree.
func (d *drawing) grow(root int, below [][]int) tree {
	t := tree{nodes: []int{root}}
	depths := map[int]int{root: 0}
	var widths []int
	for k := 0; k < len(t.nodes); k++ { // t.nodes grows meanwhile
		i := t.nodes[k]
		depth := depths[i]
		if depth == len(widths) {
			widths = append(widths, 0)
		}
		widths[depth] = max(widths[depth], d.nodes[i].w)
		for _, dependent := range below[i] {
			depths[dependent] = depth + 1
			t.nodes = append(t.nodes, dependent)
		}
	}
	heights := make(map[int]int, len(t.nodes)) // of a node with all below it
	for k := len(t.nodes) - 1; k >= 0; k-- {
		i := t.nodes[k]
		heights[i] = max(d.nodes[i].h, rows(below[i], heights))
	}
	column := make([]int, len(widths)) // where the nodes of a depth begin
	for depth := 1; depth < len(widths); depth++ {
		column[depth] = column[depth-1] + widths[depth-1] + columnGap
	}
	tops := map[int]int{root: 0}
	for _, i := range t.nodes {
		b := &d.nodes[i]
		b.x, b.y = column[depths[i]], tops[i]+(heights[i]-b.h)/2
		top := tops[i] + (heights[i]-rows(below[i], heights))/2
		for _, dependent := range below[i] {
			tops[dependent] = top
			top += heights[dependent] + rowGap
		}
	}
	t.w, t.h = column[len(column)-1]+widths[len(widths)-1], heights[root]
	return t
}

// rows is the height of nodes that are drawn one above the other, with all that
// is below each.
func rows(nodes []int, heights map[int]int) int {
	if len(nodes) == 0 {
		return 0
	}
	sum := rowGap * (len(nodes) - 1)
	for _, i := range nodes {
		sum += heights[i]
	}
	return sum
}

// pack puts boxes into columns, in their order, so that all of them together are
// about as wide as wide says. It returns the size of that.
func pack(boxes []box, across, down int) (w, h int) {
	area, highest := 0.0, 0
	for _, b := range boxes {
		area += float64(b.w+across) * float64(b.h+down)
		highest = max(highest, b.h)
	}
	limit := max(highest, int(math.Sqrt(area/wide)))
	x, y, width := 0, 0, 0
	for i := range boxes {
		b := &boxes[i]
		if y > 0 && y+b.h > limit {
			x, y, width = x+width+across, 0, 0
		}
		b.x, b.y = x, y
		y += b.h + down
		width = max(width, b.w)
		w, h = max(w, b.right()), max(h, b.bottom())
	}
	return w, h
}
