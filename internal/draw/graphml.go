// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"bufio"
	"fmt"
	"io"
)

// GraphML writes the picture as data for programs that analyse graphs, such as
// Gephi, yEd and NetworkX: attributes, and no colours.
func GraphML(w io.Writer, p *Picture) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, `<?xml version="1.0" encoding="UTF-8"?>`)
	fmt.Fprintln(out, `<graphml xmlns="http://graphml.graphdrawing.org/xmlns">`)
	nodes, edges := map[string]bool{}, map[string]bool{}
	key := func(known map[string]bool, kind, name string) {
		if !known[name] {
			known[name] = true
			fmt.Fprintf(out, "  <key id=\"%s-%s\" for=\"%s\" attr.name=\"%s\" attr.type=\"string\"/>\n", kind, name, kind, name)
		}
	}
	key(nodes, "node", "label")
	for i := range p.Nodes {
		for _, a := range p.Nodes[i].Attributes {
			key(nodes, "node", a.Name)
		}
	}
	for i := range p.Edges {
		for _, a := range p.Edges[i].Attributes {
			key(edges, "edge", a.Name)
		}
	}
	fmt.Fprintf(out, "  <graph id=\"%s\" edgedefault=\"directed\">\n", escaped(p.Name))
	data := func(kind, name, value string) {
		if value != "" {
			fmt.Fprintf(out, "<data key=\"%s-%s\">%s</data>", kind, name, escaped(value))
		}
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		fmt.Fprintf(out, "    <node id=\"n%d\">", i)
		data("node", "label", n.full())
		for _, a := range n.Attributes {
			data("node", a.Name, a.Value)
		}
		fmt.Fprintln(out, "</node>")
	}
	for i := range p.Edges {
		e := &p.Edges[i]
		fmt.Fprintf(out, "    <edge source=\"n%d\" target=\"n%d\">", e.From, e.To)
		for _, a := range e.Attributes {
			data("edge", a.Name, a.Value)
		}
		fmt.Fprintln(out, "</edge>")
	}
	fmt.Fprintln(out, "  </graph>\n</graphml>")
	return out.Flush()
}
