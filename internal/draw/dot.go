// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/awalterschulze/gographviz"
	"github.com/awalterschulze/gographviz/ast"
)

// DOT writes the picture as a Graphviz graph. The attributes of an ownership
// graph have the names of the controller manager's debug graph
// (garbagecollector/dump.go), so that what reads that one can read this one; edges
// run from dependent to owner as there.
func DOT(w io.Writer, p *Picture) error {
	g := gographviz.NewGraph()
	if err := g.SetName(p.Name); err != nil {
		return err
	}
	if err := g.SetDir(true); err != nil {
		return err
	}
	dotDefaults(g, p)
	for k, c := range p.clusters() {
		parent := p.Name
		if c.title != "" {
			parent = fmt.Sprintf("cluster_%d", k)
			frame := map[string]string{"label": quote(c.title), "style": quote("rounded"), "color": quote(light.frameLine)}
			if err := g.AddSubGraph(p.Name, parent, frame); err != nil {
				return fmt.Errorf("drawing %s: %w", c.title, err)
			}
		}
		for _, i := range c.nodes {
			if err := dotNode(g, p, parent, &p.Nodes[i]); err != nil {
				return err
			}
		}
	}
	for i := range p.Edges {
		if err := dotEdge(g, p, &p.Edges[i]); err != nil {
			return err
		}
	}
	return writeDOT(w, g)
}

// dotDefaults sets what holds for the whole graph.
func dotDefaults(g *gographviz.Graph, p *Picture) {
	attributes := []Attribute{{"rankdir", quote("RL")}, {"fontname", quote("Helvetica")}}
	if p.Title != "" {
		attributes = append(attributes, Attribute{"tooltip", quote(p.Title)})
	}
	if legend := dotLegend(p); legend != "" {
		attributes = append(attributes, Attribute{"label", legend}, Attribute{"labelloc", "t"}, Attribute{"labeljust", "l"})
	}
	for _, a := range attributes {
		g.Attrs[gographviz.Attr(a.Name)] = a.Value
	}
}

// dotLegend is the label of the graph: the title, and a line for every mark that
// occurs. As nodes they would be taken for objects.
func dotLegend(p *Picture) string {
	var b strings.Builder
	for _, m := range p.legend() {
		sign := "&#9632;"
		if m.Edge {
			sign = "&#8592;"
		}
		fmt.Fprintf(&b, `<TR><TD ALIGN="LEFT"><FONT COLOR="%s">%s</FONT> %s</TD></TR>`, light.shades[m.Tone].line, sign,
			template.HTMLEscapeString(m.Label))
	}
	if b.Len() == 0 {
		return ""
	}
	return `<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0">` + b.String() + `</TABLE>>`
}

func dotNode(g *gographviz.Graph, p *Picture, parent string, n *Node) error {
	m := p.look(n)
	style := "rounded,filled"
	if m.Dashed {
		style += ",dashed"
	}
	id := quote(n.ID)
	if err := g.AddNode(parent, id, nil); err != nil {
		return fmt.Errorf("drawing %s: %w", n.full(), err)
	}
	// gographviz refuses attributes that Graphviz itself does not know, so they
	// are set behind its back.
	attrs := g.Nodes.Lookup[id].Attrs
	setAttributes(attrs, Attribute{"label", strings.Join(p.label(n), "\n")}, Attribute{"tooltip", n.full()}, Attribute{"shape", "box"},
		Attribute{"style", style}, Attribute{"fontname", "Helvetica"}, Attribute{"color", light.shades[m.Tone].line},
		Attribute{"fillcolor", light.shades[m.Tone].fill})
	setAttributes(attrs, n.Attributes...)
	return nil
}

func dotEdge(g *gographviz.Graph, p *Picture, e *Edge) error {
	from, to := &p.Nodes[e.From], &p.Nodes[e.To]
	if err := g.AddEdge(quote(from.ID), quote(to.ID), true, nil); err != nil {
		return fmt.Errorf("drawing the edge from %s to %s: %w", from.full(), to.full(), err)
	}
	m := p.mark(e.Mark)
	attrs := g.Edges.Edges[len(g.Edges.Edges)-1].Attrs
	setAttributes(attrs, Attribute{"color", light.shades[m.Tone].line})
	if e.Label != "" {
		setAttributes(attrs, Attribute{"label", visible(e.Label)}, Attribute{"fontsize", "10"}, Attribute{"fontname", "Helvetica"},
			Attribute{"fontcolor", light.shades[m.Tone].text})
	}
	if m.Dashed {
		setAttributes(attrs, Attribute{"style", "dashed"})
	}
	setAttributes(attrs, e.Attributes...)
	return nil
}

func setAttributes(attrs gographviz.Attrs, values ...Attribute) {
	for _, a := range values {
		attrs[gographviz.Attr(a.Name)] = quote(a.Value)
	}
}

// A NUL would end the text for Graphviz.
var dotEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\x00", `\\x00`)

// quote makes any text a DOT identifier. The escaping of gographviz leaves
// names raw that do not parse, so everything is quoted here.
func quote(s string) string { return `"` + dotEscaper.Replace(s) + `"` }

// writeDOT writes the graph statement by statement: the String method of
// gographviz takes quadratic time.
func writeDOT(w io.Writer, g *gographviz.Graph) error {
	tree, err := g.WriteAst()
	if err != nil {
		return fmt.Errorf("drawing the graph: %w", err)
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s %s {\n", tree.Type.String(), tree.ID.String())
	writeStatements(out, tree.StmtList, "\t")
	fmt.Fprintln(out, "}")
	return out.Flush()
}

func writeStatements(w io.Writer, statements ast.StmtList, indent string) {
	for _, statement := range statements {
		if sub, ok := statement.(*ast.SubGraph); ok {
			fmt.Fprintf(w, "%ssubgraph %s {\n", indent, sub.ID.String())
			writeStatements(w, sub.StmtList, indent+"\t")
			fmt.Fprintf(w, "%s}\n", indent)
			continue
		}
		fmt.Fprintf(w, "%s%s;\n", indent, statement.String())
	}
}
