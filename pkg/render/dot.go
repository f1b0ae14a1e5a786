// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/awalterschulze/gographviz"
	"github.com/awalterschulze/gographviz/ast"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// DOT writes the nodes and the references between them as a Graphviz graph. Its
// attributes have the names of the controller manager's debug graph
// (garbagecollector/dump.go), so that what reads that one can read this one;
// edges run from dependent to owner as there.
func DOT(w io.Writer, nodes []graph.Node) error {
	return writeGraph(w, nodes, func(graph.Node, gographviz.Attrs) {})
}

// writeGraph draws the nodes and the references between them. decorate may
// change the attributes of a node.
func writeGraph(w io.Writer, nodes []graph.Node, decorate func(graph.Node, gographviz.Attrs)) error {
	g := gographviz.NewGraph()
	if err := g.SetName("full"); err != nil {
		return err
	}
	if err := g.SetDir(true); err != nil {
		return err
	}
	set := graph.NewSet(nodes...)
	for _, n := range nodes {
		if err := addVertex(g, n); err != nil {
			return err
		}
		decorate(n, g.Nodes.Lookup[vertexID(n)].Attrs)
	}
	for _, n := range nodes {
		for _, ref := range n.Owners() {
			if !set.Has(ref.Owner) {
				continue
			}
			if err := addEdge(g, ref); err != nil {
				return err
			}
		}
	}
	return writeDOT(w, g)
}

func addVertex(g *gographviz.Graph, n graph.Node) error {
	id := n.Identity()
	attributes := map[string]string{
		"label":              strings.ReplaceAll(id.String(), "/", "\n"),
		"uid":                string(id.UID),
		"namespace":          id.Namespace,
		"name":               id.Name,
		"kind":               id.Resource.Kind,
		"group":              id.Resource.Group,
		"version":            id.Resource.Version,
		"missing":            strconv.FormatBool(n.Virtual()),
		"virtual":            strconv.FormatBool(n.Virtual()),
		"beingDeleted":       strconv.FormatBool(n.BeingDeleted()),
		"deletingDependents": strconv.FormatBool(n.DeletingDependents()),
		"shape":              "box",
	}
	switch {
	case n.Virtual():
		attributes["style"] = "dashed"
	case n.BeingDeleted():
		attributes["color"] = "red"
	}
	vertex := vertexID(n)
	if err := g.AddNode("full", vertex, nil); err != nil {
		return fmt.Errorf("drawing %s: %w", id, err)
	}
	// gographviz refuses attributes that Graphviz itself does not know, so they
	// are set behind its back.
	setAttributes(g.Nodes.Lookup[vertex].Attrs, attributes)
	return nil
}

var edgeColors = map[graph.State]string{
	graph.Dangling:                     "red",
	graph.WaitingForDependentsDeletion: "orange",
	graph.Unknown:                      "gray",
}

func addEdge(g *gographviz.Graph, ref graph.Reference) error {
	if err := g.AddEdge(vertexID(ref.Dependent), vertexID(ref.Owner), true, nil); err != nil {
		return fmt.Errorf("drawing the reference of %s: %w", ref.Dependent.Identity(), err)
	}
	attributes := map[string]string{
		"state":              ref.State.String(),
		"controller":         strconv.FormatBool(ref.Controller != nil && *ref.Controller),
		"blockOwnerDeletion": strconv.FormatBool(ref.Blocking()),
	}
	if ref.Reason != graph.NoReason {
		attributes["reason"] = ref.Reason.String()
		attributes["label"] = ref.State.String() + "\n" + ref.Reason.String()
	}
	if color, ok := edgeColors[ref.State]; ok {
		attributes["color"] = color
	}
	setAttributes(g.Edges.Edges[len(g.Edges.Edges)-1].Attrs, attributes)
	return nil
}

func setAttributes(attrs gographviz.Attrs, values map[string]string) {
	for name, value := range values {
		attrs[gographviz.Attr(name)] = quote(value)
	}
}

func vertexID(n graph.Node) string { return quote(string(n.Identity().UID)) }

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
	writeStatements(out, tree.StmtList)
	fmt.Fprintln(out, "}")
	return out.Flush()
}

func writeStatements(w io.Writer, statements ast.StmtList) {
	for _, statement := range statements {
		fmt.Fprintf(w, "\t%s;\n", statement.String())
	}
}
