// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/draw"
)

// hostile draws texts that mean something to one of the formats, or to those who
// read them, and any others.
var hostile = rapid.OneOf(
	names,
	rapid.SampledFrom([]string{
		`</script><script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `<!--`, `-->`, `]]>`, `<![CDATA[`, `</title>`, `</svg>`, `</style>`,
		`&lt;`, `&amp;`, `&#60;`, `"]`, `'`, `" onload="alert(1)`, "javascript:alert(1)", "\u2028", "\u202e", "\x00", "\ufffe", "\ufffd", "\x1b[2J", "\xff",
		"end", "subgraph x", "%%{init: {}}%%", "#35;", "#quot;", ":::stuck", "click n0 href", "`", "|", "{{", "]]", "n0 --> n1", "x\ny", "{{.}}", "%s%d",
		strings.Repeat("a", 300), strings.Repeat("世", 50),
	}),
	rapid.String(),
)

// drawPicture draws a picture in which every text is hostile.
func drawPicture(t *rapid.T) *draw.Picture {
	p := &draw.Picture{
		Name: "full", Title: hostile.Draw(t, "title"), Subtitle: hostile.Draw(t, "subtitle"), Clustered: rapid.Bool().Draw(t, "clustered"),
		Notes: rapid.SliceOfN(hostile, 0, 2).Draw(t, "notes"),
		Marks: []draw.Mark{
			{Key: "bad", Label: "bad", Tone: draw.Red}, {Key: "new", Label: "new", Tone: draw.Blue, Dashed: true},
			{Key: "holds", Label: "holds", Tone: draw.Plain, Edge: true}, {Key: "maybe", Label: "maybe", Tone: draw.Purple, Dashed: true, Edge: true},
		},
	}
	n := rapid.IntRange(0, 6).Draw(t, "nodes")
	for i := range n {
		node := draw.Node{
			ID: fmt.Sprint(i, hostile.Draw(t, "id")), Kind: hostile.Draw(t, "kind"), Name: hostile.Draw(t, "name"), Note: hostile.Draw(t, "note"),
			Namespace: rapid.OneOf(rapid.Just(""), hostile).Draw(t, "namespace"), Count: 1, Under: -1,
			Marks:      rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"bad", "new"}), 0, 2, rapid.ID).Draw(t, "marks"),
			Attributes: []draw.Attribute{{Name: "name", Value: hostile.Draw(t, "attribute")}},
			Details:    []draw.Detail{{Label: hostile.Draw(t, "label"), Value: hostile.Draw(t, "value"), Code: rapid.Bool().Draw(t, "code")}},
		}
		if rapid.Bool().Draw(t, "several") {
			node.Count, node.Members = 2, []string{hostile.Draw(t, "member"), "b"}
		}
		p.Nodes = append(p.Nodes, node)
	}
	for range rapid.IntRange(0, min(2*n, 8)).Draw(t, "edges") {
		p.Edges = append(p.Edges, draw.Edge{
			From: rapid.IntRange(0, n-1).Draw(t, "from"), To: rapid.IntRange(0, n-1).Draw(t, "to"),
			Mark: rapid.SampledFrom([]string{"holds", "maybe"}).Draw(t, "mark"), Label: hostile.Draw(t, "because"),
			Attributes: []draw.Attribute{{Name: "state", Value: hostile.Draw(t, "state")}},
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "findings") {
		p.Findings = append(p.Findings, draw.Finding{Node: rapid.IntRange(-1, n-1).Draw(t, "about"), Label: hostile.Draw(t, "word"), Text: hostile.Draw(t, "finding"), Tone: draw.Red})
	}
	p.Arrange()
	return p
}

func text(t rapid.TB, write func(io.Writer, *draw.Picture) error, p *draw.Picture) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out, p); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestSVGIsInert reads images: they are XML, with the elements that were meant,
// and nothing in them runs or leads anywhere.
func TestSVGIsInert(t *testing.T) { rapid.Check(t, svgIsInert) }
func FuzzSVG(f *testing.F)        { f.Fuzz(rapid.MakeFuzz(svgIsInert)) }

func svgIsInert(t *rapid.T) {
	allowed := []string{"svg", "title", "style", "defs", "marker", "path", "rect", "g", "text"}
	p := drawPicture(t)
	nodes := 0
	for _, e := range elements(t, text(t, draw.SVG, p)) {
		if !slices.Contains(allowed, e.Name.Local) {
			t.Fatalf("element %s", e.Name.Local)
		}
		for _, a := range e.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Name.Local, "href") {
				t.Fatalf("attribute %s of %s", a.Name.Local, e.Name.Local)
			}
			if e.Name.Local == "text" && a.Value == "name" {
				nodes++
			}
		}
	}
	if nodes != len(p.Nodes) {
		t.Fatalf("%d nodes, want %d", nodes, len(p.Nodes))
	}
}

// elements returns the elements of a document, which must be XML to its end.
func elements(t rapid.TB, document []byte) []xml.StartElement {
	t.Helper()
	var all []xml.StartElement
	decoder := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if e, is := token.(xml.StartElement); is {
			all = append(all, e.Copy())
		}
	}
}

// TestHTMLIsInert reads pages as a browser does: whatever the texts are, a page
// has the same elements, and the texts are in its data.
func TestHTMLIsInert(t *testing.T) { rapid.Check(t, htmlIsInert) }
func FuzzHTML(f *testing.F)        { f.Fuzz(rapid.MakeFuzz(htmlIsInert)) }

func htmlIsInert(t *rapid.T) {
	want := shape(t, text(t, draw.HTML, &draw.Picture{}))
	p := drawPicture(t)
	page := text(t, draw.HTML, p)
	if got := shape(t, page); got != want {
		t.Fatalf("elements:\n%s\nwant:\n%s", got, want)
	}
	var data struct {
		Title string
		Nodes []struct{ Name, Kind, Note string }
		Edges []struct{ Label string }
	}
	_, rest, _ := strings.Cut(string(page), `id="data">`)
	if err := json.NewDecoder(strings.NewReader(rest)).Decode(&data); err != nil {
		t.Fatal(err)
	}
	for i, n := range p.Nodes {
		if got := data.Nodes[i]; plain(n.Name) && got.Name != n.Name || plain(n.Kind) && got.Kind != n.Kind {
			t.Fatalf("node %d is %+v, want %+v", i, got, n)
		}
	}
	if len(data.Nodes) != len(p.Nodes) || len(data.Edges) != len(p.Edges) {
		t.Fatalf("%d nodes and %d edges", len(data.Nodes), len(data.Edges))
	}
}

// plain holds for texts in which nothing has to be escaped for a reader.
func plain(s string) bool { return regexp.MustCompile(`^[ -~]*$`).MatchString(s) }

// shape is what a page consists of, without the title and the data.
func shape(t rapid.TB, page []byte) string {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for n := range root.Descendants() {
		switch {
		case n.Type == html.TextNode && n.Parent.Data != "title" && !hasID(n.Parent, "data"):
			fmt.Fprintf(&b, "%q\n", n.Data)
		case n.Type == html.ElementNode:
			fmt.Fprintln(&b, n.Data, n.Attr)
		case n.Type == html.CommentNode:
			fmt.Fprintf(&b, "comment %q\n", n.Data)
		}
	}
	return b.String()
}

func hasID(n *html.Node, id string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "id" && a.Val == id })
}

// TestGraphMLRoundTrip reads the data back.
func TestGraphMLRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPicture(t)
		document := text(t, draw.GraphML, p)
		var read struct {
			XMLName xml.Name `xml:"http://graphml.graphdrawing.org/xmlns graphml"`
			Keys    []struct {
				ID string `xml:"id,attr"`
			} `xml:"key"`
			Graph struct {
				Nodes []struct {
					ID   string `xml:"id,attr"`
					Data []struct {
						Key  string `xml:"key,attr"`
						Text string `xml:",chardata"`
					} `xml:"data"`
				} `xml:"node"`
				Edges []struct {
					Source string `xml:"source,attr"`
					Target string `xml:"target,attr"`
				} `xml:"edge"`
			} `xml:"graph"`
		}
		if err := xml.Unmarshal(document, &read); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if len(read.Graph.Nodes) != len(p.Nodes) || len(read.Graph.Edges) != len(p.Edges) {
			t.Fatalf("%d nodes and %d edges", len(read.Graph.Nodes), len(read.Graph.Edges))
		}
		keys := map[string]bool{}
		for _, k := range read.Keys {
			keys[k.ID] = true
		}
		for i, n := range read.Graph.Nodes {
			for _, d := range n.Data {
				if !keys[d.Key] {
					t.Fatalf("no key %s", d.Key)
				}
				if want := p.Nodes[i].Attributes[0].Value; d.Key == "node-name" && plain(want) && d.Text != want {
					t.Fatalf("node %d is %q, want %q", i, d.Text, want)
				}
			}
		}
		for i, e := range read.Graph.Edges {
			if want := p.Edges[i]; e.Source != fmt.Sprint("n", want.From) || e.Target != fmt.Sprint("n", want.To) {
				t.Fatalf("edge %d is %+v, want %+v", i, e, want)
			}
		}
	})
}

// mermaidLine is the grammar of the lines that are written: texts stand between
// quotes, and consist of letters and numbers of characters.
var mermaidLine = func() *regexp.Regexp {
	const text = `"((?:[a-zA-Z0-9 \-_.,:()/]|#\d+;|<br/>)*)"`
	return regexp.MustCompile(`^(?:flowchart RL|  subgraph frame\d+\[` + text + `\]|  end|  subgraph legend\["legend"\]|    mark\d+\[` + text + `\]:::[a-z-]+| {2,4}n(\d+)\[` + text + `\](?::::[a-z-]+)?|  n(\d+) -->(?:\|` + text + `\|)? n(\d+)` +
		`|  linkStyle \d+(?:,\d+)* stroke:#[0-9a-f]{6}(?:,stroke-dasharray:5 3)?|  classDef [a-z-]+ fill:#[0-9a-f]{6},stroke:#[0-9a-f]{6},color:#[0-9a-f]{6}(?:,stroke-dasharray:5 3)?)$`)
}()

// TestMermaidGrammar holds every line to the grammar: no text of an object is
// more than text.
func TestMermaidGrammar(t *testing.T) { rapid.Check(t, mermaidGrammar) }
func FuzzMermaid(f *testing.F)        { f.Fuzz(rapid.MakeFuzz(mermaidGrammar)) }

func mermaidGrammar(t *rapid.T) {
	p := drawPicture(t)
	nodes, edges := 0, 0
	for line := range strings.Lines(string(text(t, draw.Mermaid, p))) {
		match := mermaidLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if match == nil {
			t.Fatalf("line %q", line)
		}
		if match[3] != "" {
			nodes++
		}
		if match[5] != "" {
			edges++
		}
	}
	if nodes != len(p.Nodes) || edges != len(p.Edges) {
		t.Fatalf("%d nodes and %d edges, want %d and %d", nodes, edges, len(p.Nodes), len(p.Edges))
	}
}

// TestDOTSecondOpinion asks Graphviz itself.
func TestDOTSecondOpinion(t *testing.T) {
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("there is no dot: Debian has it in graphviz")
	}
	rapid.Check(t, func(t *rapid.T) {
		p := drawPicture(t)
		cmd := exec.Command(dot, "-Tplain")
		cmd.Stdin = bytes.NewReader(text(t, draw.DOT, p))
		var out, complaints bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &complaints
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, complaints.String())
		}
		nodes := strings.Count("\n"+out.String(), "\nnode ")
		if nodes != len(p.Nodes) {
			t.Fatalf("%d nodes, want %d", nodes, len(p.Nodes))
		}
	})
}
