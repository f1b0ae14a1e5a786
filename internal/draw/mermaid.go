// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Limits of Mermaid, with which it refuses to draw unless it is told otherwise.
const (
	MermaidEdges = 500
	MermaidBytes = 50_000
)

// Mermaid writes the picture as a flowchart of Mermaid, which many web pages
// draw.
func Mermaid(w io.Writer, p *Picture) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "flowchart RL")
	for k, c := range p.clusters() {
		indent := "  "
		if c.title != "" {
			fmt.Fprintf(out, "  subgraph frame%d[\"%s\"]\n", k, mermaidText(c.title))
			indent = "    "
		}
		for _, i := range c.nodes {
			n := &p.Nodes[i]
			lines := p.label(n)
			for j := range lines {
				lines[j] = mermaidText(lines[j])
			}
			fmt.Fprintf(out, "%sn%d[\"%s\"]", indent, i, strings.Join(lines, "<br/>"))
			if len(n.Marks) > 0 {
				fmt.Fprintf(out, ":::%s", n.Marks[0])
			}
			fmt.Fprintln(out)
		}
		if c.title != "" {
			fmt.Fprintln(out, "  end")
		}
	}
	mermaidEdges(out, p)
	mermaidLegend(out, p)
	return out.Flush()
}

// mermaidLegend writes a frame with a line for every mark that occurs, and the classes
// of colours, which the nodes share. Mermaid has no other place for a legend.
func mermaidLegend(out io.Writer, p *Picture) {
	marks := p.legend()
	if len(marks) == 0 {
		return
	}
	fmt.Fprintln(out, `  subgraph legend["legend"]`)
	for k, m := range marks {
		sign := ""
		if m.Edge {
			sign = "← "
		}
		fmt.Fprintf(out, "    mark%d[\"%s\"]:::%s\n", k, mermaidText(sign+m.Label), m.Key)
	}
	fmt.Fprintln(out, "  end")
	for _, m := range marks {
		s := light.shades[m.Tone]
		if m.Edge {
			fmt.Fprintf(out, "  classDef %s fill:%s,stroke:%s,color:%s\n", m.Key, light.ground, light.ground, s.text)
			continue
		}
		fmt.Fprintf(out, "  classDef %s fill:%s,stroke:%s,color:%s%s\n", m.Key, s.fill, s.line, light.text, mermaidDashes(m))
	}
}

// mermaidEdges writes the edges, and their colours, which go by number.
func mermaidEdges(out io.Writer, p *Picture) {
	numbers := map[string][]string{}
	for k := range p.Edges {
		e := &p.Edges[k]
		label := ""
		if e.Label != "" {
			label = `|"` + mermaidText(e.Label) + `"|`
		}
		fmt.Fprintf(out, "  n%d -->%s n%d\n", e.From, label, e.To)
		numbers[e.Mark] = append(numbers[e.Mark], strconv.Itoa(k))
	}
	for _, m := range p.legend() {
		if m.Edge && m.Tone != Plain {
			fmt.Fprintf(out, "  linkStyle %s stroke:%s%s\n", strings.Join(numbers[m.Key], ","), light.shades[m.Tone].line, mermaidDashes(m))
		}
	}
}

func mermaidDashes(m Mark) string {
	if m.Dashed {
		return ",stroke-dasharray:5 3"
	}
	return ""
}

// mermaidText writes everything that might mean something to Mermaid, or to the
// HTML that it makes, as the number of its character.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range visible(s) {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune(" -_.,:()/", r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}
