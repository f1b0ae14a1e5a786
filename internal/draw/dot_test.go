// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/awalterschulze/gographviz"
	"github.com/awalterschulze/gographviz/ast"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/draw"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// picture is a DOT graph as read. gographviz.Read refuses attributes that
// Graphviz does not know, like uid; its Analyse lets the reader decide.
type picture struct {
	*gographviz.Graph
	nodes map[string]map[string]string
	edges []map[string]string
}

func (p *picture) AddNode(_, name string, attrs map[string]string) error {
	if p.nodes[name] == nil {
		p.nodes[name] = map[string]string{}
	}
	for key, value := range attrs {
		p.nodes[name][key] = value
	}
	return nil
}

func (p *picture) AddPortEdge(src, srcPort, dst, dstPort string, directed bool, attrs map[string]string) error {
	edge := map[string]string{"from": src, "to": dst}
	for key, value := range attrs {
		edge[key] = value
	}
	if srcPort != "" || dstPort != "" || !directed {
		return fmt.Errorf("edge from %s%s to %s%s", src, srcPort, dst, dstPort)
	}
	p.edges = append(p.edges, edge)
	return nil
}

func readDOT(data []byte) (*picture, error) {
	tree, err := gographviz.Parse(data)
	if err != nil {
		return nil, err
	}
	p := &picture{Graph: gographviz.NewGraph(), nodes: map[string]map[string]string{}}
	return p, gographviz.Analyse(tree, p)
}

// withoutOwnAttributes leaves only what Graphviz, and so gographviz.Read, knows.
func withoutOwnAttributes(t *rapid.T, data []byte) []byte {
	tree, err := gographviz.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	known := func(list ast.AttrList) ast.AttrList {
		attributes := list.GetMap()
		for name := range attributes {
			if _, err := gographviz.NewAttr(name); err != nil {
				delete(attributes, name)
			}
		}
		return ast.PutMap(attributes)
	}
	var prune func(ast.StmtList)
	prune = func(statements ast.StmtList) {
		for _, statement := range statements {
			switch s := statement.(type) {
			case *ast.NodeStmt:
				s.Attrs = known(s.Attrs)
			case *ast.EdgeStmt:
				s.Attrs = known(s.Attrs)
			case *ast.SubGraph:
				prune(s.StmtList)
			}
		}
	}
	prune(tree.StmtList)
	return []byte(tree.String())
}

var dotUnescaper = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// unquote undoes the quoting of an identifier.
func unquote(s string) string {
	return dotUnescaper.Replace(strings.TrimSuffix(strings.TrimPrefix(s, `"`), `"`))
}

// names draws what the API server accepts as a name of, say, a ClusterRole:
// anything but a slash and a percent sign. gographviz cannot read U+FFFD, and
// DOT cannot express NUL.
var names = rapid.OneOf(
	rapid.SampledFrom([]string{
		"web-5d4f8c7b9-abcde", "system:controller:x", "system:", ":x", "a:n", `say "hi"`, `"`, `""`, `\`, `\\`, `a\`, `a\"b`, `a\nb`, "a\nb", "\r\n", "\t",
		"node", "edge", "graph", "digraph", "subgraph", "strict", "Node", "full", "a->b", "a--b", "a;b", "a=b", "a,b", "[a]", "{a}", "}",
		"<b>", "<", "1.2.3", "-1", ".5", "007", "a b", " ", "#a", "/*", "//", "héllo", "世界", "🚢", "ε", "\u00a0", "\u200b", "\x1b[2J", "\x7f",
	}),
	rapid.StringOf(rapid.Rune()),
	rapid.StringOf(rapid.RuneFrom([]rune(`"\:;n=<>-#*{}[] `+"\n"))),
).Filter(func(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/%\x00\uFFFD")
})

// drawGraph draws a few objects with such names, owned at random.
func drawGraph(t *rapid.T) *graph.Graph {
	w := newWorld()
	uids := rapid.SliceOfNDistinct(names, 1, 5, rapid.ID).Draw(t, "uids")
	for _, uid := range uids {
		o := graph.Object{Resource: w.resources["Node"], Name: names.Draw(t, "name"), UID: types.UID(uid)}
		if rapid.Bool().Draw(t, "namespaced") {
			o.Resource, o.Namespace = w.resources["Deployment"], rapid.SampledFrom([]string{"shop", "shop-eu"}).Draw(t, "namespace")
		}
		if rapid.Bool().Draw(t, "deleting") {
			o.DeletionTimestamp = &made
			o.Finalizers = rapid.SampledFrom([][]string{nil, {"foregroundDeletion"}}).Draw(t, "finalizers")
		}
		for range rapid.IntRange(0, 3).Draw(t, "owners") {
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
				APIVersion: rapid.SampledFrom([]string{"v1", "apps/v1", "v9"}).Draw(t, "apiVersion"),
				Kind:       rapid.OneOf(rapid.SampledFrom([]string{"Node", "Deployment"}), names).Draw(t, "kind"),
				Name:       names.Draw(t, "owner"), UID: types.UID(rapid.OneOf(rapid.SampledFrom(uids), names).Draw(t, "owner uid")),
			})
		}
		w.snapshot.Add(o)
	}
	return graph.New(w.snapshot)
}

// Whatever the names are, what was drawn is read back: nodes with their
// attributes and a line for every reference.
func TestDOTRoundTrip(t *testing.T) { rapid.Check(t, dotRoundTrip) }
func FuzzDOT(f *testing.F)          { f.Fuzz(rapid.MakeFuzz(dotRoundTrip)) }

func dotRoundTrip(t *rapid.T) {
	g := drawGraph(t)
	var nodes []graph.Node
	for n := range g.Nodes() {
		if rapid.IntRange(0, 4).Draw(t, "leave out") > 0 {
			nodes = append(nodes, n)
		}
	}
	var out bytes.Buffer
	if err := draw.DOT(&out, draw.Ownership(graph.Selection{Nodes: graph.NewSet(nodes...)})); err != nil {
		t.Fatal(err)
	}
	p, err := readDOT(out.Bytes())
	if err != nil {
		t.Fatalf("%v in:\n%s", err, out.String())
	}
	if !p.Directed || p.Name != "full" {
		t.Fatalf("directed %v, name %s", p.Directed, p.Name)
	}
	read, err := gographviz.Read(withoutOwnAttributes(t, out.Bytes()))
	if err != nil || len(read.Nodes.Nodes) != len(p.nodes) || len(read.Edges.Edges) != len(p.edges) {
		t.Fatalf("gographviz.Read: %v of:\n%s", err, out.String())
	}
	wantNodes, wantEdges := describe(nodes)
	if diff := cmp.Diff(wantNodes, readNodes(p)); diff != "" {
		t.Fatalf("nodes (-want +got):\n%s\n%s", diff, out.String())
	}
	if diff := cmp.Diff(wantEdges, readEdges(p)); diff != "" {
		t.Fatalf("edges (-want +got):\n%s\n%s", diff, out.String())
	}
}

var (
	nodeAttributes = []string{"uid", "namespace", "name", "kind", "group", "version", "missing", "virtual", "beingDeleted", "deletingDependents"}
	edgeAttributes = []string{"from", "to", "state", "reason", "controller", "blockOwnerDeletion"}
)

// describe says what a picture of the nodes must hold: the attributes of nodes
// by UID, and of edges.
func describe(nodes []graph.Node) (map[string][]string, []string) {
	wantNodes, wantEdges := map[string][]string{}, []string{}
	for _, n := range nodes {
		id, virtual := n.Identity(), strconv.FormatBool(n.Virtual())
		wantNodes[string(id.UID)] = []string{
			string(id.UID), id.Namespace, id.Name, id.Resource.Kind, id.Resource.Group, id.Resource.Version,
			virtual, virtual, strconv.FormatBool(n.BeingDeleted()), strconv.FormatBool(n.DeletingDependents()),
		}
		for _, ref := range n.Owners() {
			if slices.Contains(nodes, ref.Owner) {
				wantEdges = append(wantEdges, fmt.Sprintf("%q", []string{
					string(id.UID), string(ref.UID), ref.State.String(), ref.Reason.String(),
					strconv.FormatBool(ref.Controller != nil && *ref.Controller), strconv.FormatBool(ref.Blocking()),
				}))
			}
		}
	}
	slices.Sort(wantEdges)
	return wantNodes, wantEdges
}

func readNodes(p *picture) map[string][]string {
	got := map[string][]string{}
	for name, attributes := range p.nodes {
		for _, key := range nodeAttributes {
			got[unquote(name)] = append(got[unquote(name)], unquote(attributes[key]))
		}
	}
	return got
}

func readEdges(p *picture) []string {
	got := []string{}
	for _, edge := range p.edges {
		var values []string
		for _, key := range edgeAttributes {
			values = append(values, unquote(edge[key]))
		}
		got = append(got, fmt.Sprintf("%q", values))
	}
	slices.Sort(got)
	return got
}

// The name in an owner reference may be any text. A NUL ends the picture for
// Graphviz, so it must not get there.
func TestDOTWithoutNUL(t *testing.T) {
	w := newWorld()
	w.add("Pod", "shop", "p", nil, metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "a\x00b", UID: "s\x00"})
	var out bytes.Buffer
	if err := draw.DOT(&out, w.picture()); err != nil || strings.Contains(out.String(), "\x00") {
		t.Errorf("%v, or NUL in:\n%q", err, out.String())
	}
}
