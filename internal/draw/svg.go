// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// SVG writes the picture as an image, with a dark variant for a reader who
// prefers that. It contains no script and refers to nothing outside.
func SVG(w io.Writer, p *Picture) error {
	s := &svg{out: bufio.NewWriter(w), picture: p, drawing: p.layout()}
	s.header()
	for _, f := range s.frames {
		s.frame(f)
	}
	for _, e := range s.edgesByWeight() {
		s.edge(e)
	}
	for i := range p.Nodes {
		s.node(i)
	}
	s.print("</g>\n</svg>\n")
	return s.out.Flush()
}

// svg writes one image.
type svg struct {
	*drawing
	out     *bufio.Writer
	picture *Picture
}

const (
	margin      = 24
	leastWidth  = 560
	legendLine  = 22
	headingLine = 20
)

func (s *svg) print(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

// escaped makes a text that may stand in XML, of which control characters and
// the like are no part.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(visible(text))) // a Builder does not fail
	return b.String()
}

const svgStyle = `text{font:10.5px %s}.title{font-size:16px;font-weight:600}.subtitle{font-size:12px}.legend{font-size:11.5px}
.frametitle{font-size:12px;font-weight:600}.name{font:12px %s}.frame{stroke-width:1}.n rect{stroke-width:1.2}.note{font-weight:600}
.n.dashed rect,.e.dashed{stroke-dasharray:5 3}.e{fill:none;stroke-width:1.3}.e.aside{stroke-opacity:.65}
`

// header writes what comes before frames, edges and nodes: the style, the title
// and the legend. What follows is below it.
func (s *svg) header() {
	p := s.picture
	legend, legendHeight, width := s.legend(max(s.w, leastWidth))
	top := margin
	var head strings.Builder
	line := func(class, text string, size float64, height int) {
		if text != "" {
			top += height
			fmt.Fprintf(&head, "<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", class, margin, top-6, escaped(text))
			width = max(width, int(size*bold*ems(visible(text))))
		}
	}
	line("title text", p.Title, 16, headingLine+2)
	line("subtitle muted", p.Subtitle, 12, headingLine)
	for _, note := range p.Notes {
		line("subtitle text", note, 12, headingLine)
	}
	if len(p.legend()) > 0 {
		fmt.Fprintf(&head, "<g transform=\"translate(%d %d)\">\n%s</g>\n", margin, top+8, legend)
		top += legendHeight + 8
	}
	top += 12
	width, height := max(s.w, width)+2*margin, top+s.h+margin
	s.print("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\">\n",
		width, height, width, height)
	s.print("<title>%s</title>\n<style>\n", escaped(p.Title))
	s.print(svgStyle, textFont, nameFont)
	s.print("%s@media (prefers-color-scheme:dark){\n%s}\n</style>\n<defs>\n", light.rules(), dark.rules())
	for _, tone := range tones {
		s.print("<marker id=\"to-%s\" class=\"a %s\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker>\n", tone, tone)
	}
	s.print("</defs>\n<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n%s<g transform=\"translate(%d %d)\">\n", width, height,
		head.String(), margin, top)
}

// legend returns the marks that occur, in lines of the width.
func (s *svg) legend(limit int) (text string, height, width int) {
	var b strings.Builder
	x, y := 0, 0
	for _, m := range s.picture.legend() {
		wide := 33 + int(11.5*ems(m.Label)) + 20
		if x > 0 && x+wide > limit {
			x, y = 0, y+legendLine
		}
		if m.Edge {
			fmt.Fprintf(&b, "<path class=\"e %s\" d=\"M%d %dH%d\" marker-end=\"url(#to-%s)\"/>", class(m), x+26, y+9, x, m.Tone)
		} else {
			fmt.Fprintf(&b, "<g class=\"n %s\"><rect x=\"%d\" y=\"%d\" width=\"24\" height=\"14\" rx=\"4\"/></g>", class(m), x+1, y+2)
		}
		fmt.Fprintf(&b, "<text class=\"legend muted\" x=\"%d\" y=\"%d\">%s</text>\n", x+33, y+13, escaped(m.Label))
		x += wide
		width = max(width, x)
	}
	return b.String(), y + legendLine, width
}

func class(m Mark) string {
	if m.Dashed {
		return string(m.Tone) + " dashed"
	}
	return string(m.Tone)
}

func (s *svg) frame(f frame) {
	s.print("<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"8\"/>", f.x, f.y, f.w, f.h)
	s.print("<text class=\"frametitle muted\" x=\"%d\" y=\"%d\">%s</text>\n", f.x+framePadding, f.y+framePadding+6, escaped(f.title))
}

// edgesByWeight returns the edges so that those of which more is to be said are
// drawn over the others.
func (s *svg) edgesByWeight() []*Edge {
	edges := make([]*Edge, len(s.picture.Edges))
	weight := map[Tone]int{}
	for i, tone := range tones {
		weight[tone] = i
	}
	order := map[string]int{}
	for _, m := range s.picture.Marks {
		order[m.Key] = weight[m.Tone]
	}
	for i := range edges {
		edges[i] = &s.picture.Edges[i]
	}
	slices.SortStableFunc(edges, func(a, b *Edge) int { return order[a.Mark] - order[b.Mark] })
	return edges
}

func (s *svg) edge(e *Edge) {
	m := s.picture.mark(e.Mark)
	from, to := s.nodes[e.From], s.nodes[e.To]
	classes, path := "e "+class(m), ""
	switch {
	case e.From == e.To:
		path = loop(from)
	case s.picture.beside(e):
		path = elbow(from, to)
	default:
		classes, path = classes+" aside", curve(from, to)
	}
	s.print("<path class=\"%s\" d=\"%s\" marker-end=\"url(#to-%s)\"", classes, path, m.Tone)
	if e.Label == "" {
		s.print("/>\n")
		return
	}
	s.print("><title>%s</title></path>\n", escaped(e.Label))
}

// elbow leads from a dependent to the owner left of it, in right angles.
func elbow(from, to box) string {
	if from.middle() == to.middle() {
		return fmt.Sprintf("M%d %dH%d", from.x, from.middle(), to.right()+1)
	}
	turn := from.x - columnGap/2
	r := min(6, abs(from.middle()-to.middle())/2)
	up := r
	if from.middle() > to.middle() {
		up = -r
	}
	return fmt.Sprintf("M%d %dH%dq%d 0 %d %dV%dq0 %d %d %dH%d", from.x, from.middle(), turn+r, -r, -r, up, to.middle()-up,
		up, -r, up, to.right()+1)
}

// curve leads from one node to any other, from the side that is nearer to the
// side that is.
func curve(from, to box) string {
	const bend = 40
	y, z := from.middle(), to.middle()
	switch {
	case to.right() < from.x:
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", from.x, y, from.x-bend, y, to.right()+bend, z, to.right()+1, z)
	case from.right() < to.x:
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", from.right(), y, from.right()+bend, y, to.x-bend, z, to.x-1, z)
	case from.y > to.bottom():
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", from.center(), from.y, from.center(), from.y-bend, to.center(), to.bottom()+bend,
			to.center(), to.bottom()+1)
	}
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", from.center(), from.bottom(), from.center(), from.bottom()+bend, to.center(),
		to.y-bend, to.center(), to.y-1)
}

// loop leads from a node to itself.
func loop(b box) string {
	return fmt.Sprintf("M%d %dc-26 -22 -26 22 -1 8", b.x, b.middle()-6)
}

func abs(n int) int { return max(n, -n) }

func (s *svg) node(i int) {
	n, b := &s.picture.Nodes[i], s.nodes[i]
	s.print("<g class=\"n %s\"><title>%s</title>", class(s.picture.look(n)), escaped(n.full()))
	if n.Count > 1 {
		s.print("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>", b.x+4, b.y+4, b.w, b.h)
	}
	s.print("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>", b.x, b.y, b.w, b.h)
	s.print("<text class=\"kind\" x=\"%d\" y=\"%d\">%s</text>", b.x+padding, b.y+lineHeight, escaped(shorten(s.picture.heading(n))))
	s.print("<text class=\"name\" x=\"%d\" y=\"%d\">%s</text>", b.x+padding, b.y+2*lineHeight, escaped(shorten(n.title())))
	if n.Note != "" {
		s.print("<text class=\"note %s\" x=\"%d\" y=\"%d\">%s</text>", s.picture.noteTone(n), b.x+padding, b.y+3*lineHeight-1,
			escaped(shorten(visible(n.Note))))
	}
	s.print("</g>\n")
}

// full is all of a node's name.
func (n *Node) full() string {
	name := n.Kind + "/"
	if n.Namespace != "" {
		name += n.Namespace + "/"
	}
	if n.Count > 1 {
		return name + strings.Join(n.Members, ", ")
	}
	return name + n.Name
}
