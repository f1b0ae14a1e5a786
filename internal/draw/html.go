// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"bufio"
	"crypto/sha256"
	_ "embed" // the page, its style and its script
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"
)

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

// HTML writes the picture as one page that needs nothing else: it can be moved,
// searched and asked for details, offline and under a policy that forbids it any
// request. The data is in it as JSON, in which nothing can end the element that
// holds it, and the script makes text of it and never markup.
func HTML(w io.Writer, p *Picture) error {
	style, script := pageColors()+pageStyle, pageScript
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; style-src '" + digestOf(style) +
		"'; script-src '" + digestOf(script) + "'"
	title := template.HTMLEscapeString(visible(p.Title))
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"+
		"<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n"+
		"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"+
		"<title>%s</title>\n<style>%s</style>\n</head>\n<body>\n", policy, title, style)
	fmt.Fprintf(out, "<noscript>This page draws with a script, which is in it, and which is switched off here.</noscript>\n"+
		"<main id=\"app\"></main>\n<script type=\"application/json\" id=\"data\">")
	// The encoder writes <, > and & as escapes, so no text ends the element.
	if err := json.NewEncoder(out).Encode(newPage(p)); err != nil {
		return fmt.Errorf("drawing the page: %w", err)
	}
	fmt.Fprintf(out, "</script>\n<script>%s</script>\n</body>\n</html>\n", script)
	return out.Flush()
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// pageColors are the CSS variables of both themes, and the rules that use those
// of a tone.
func pageColors() string {
	var b strings.Builder
	variables := func(t *theme) {
		fmt.Fprintf(&b, "--ground:%s;--frame:%s;--frame-line:%s;--text:%s;--muted:%s", t.ground, t.frame, t.frameLine, t.text, t.muted)
		for _, tone := range tones {
			s := t.shades[tone]
			fmt.Fprintf(&b, ";--%s-line:%s;--%s-fill:%s;--%s-text:%s", tone, s.line, tone, s.fill, tone, s.text)
		}
	}
	b.WriteString(":root{color-scheme:light;")
	variables(&light)
	b.WriteString("}\n@media (prefers-color-scheme:dark){:root:not([data-theme=light]){color-scheme:dark;")
	variables(&dark)
	b.WriteString("}}\n:root[data-theme=dark]{color-scheme:dark;")
	variables(&dark)
	b.WriteString("}\n")
	for _, tone := range tones {
		fmt.Fprintf(&b,
			".n.%[1]s rect{fill:var(--%[1]s-fill);stroke:var(--%[1]s-line)}.far.%[1]s{fill:var(--%[1]s-line)}.n.%[1]s .kind,.note.%[1]s,.mark.%[1]s{fill:var(--%[1]s-text);color:var(--%[1]s-text)}"+
				".e.%[1]s{stroke:var(--%[1]s-line)}.a.%[1]s{fill:var(--%[1]s-line)}.mark.%[1]s{background:var(--%[1]s-fill);border-color:var(--%[1]s-line)}\n", tone)
	}
	fmt.Fprintf(&b, "body{font-family:%s}.mono,.name,code,pre{font-family:%s}\n", textFont, nameFont)
	return b.String()
}

// page is what the script gets to draw.
type page struct {
	Title     string     `json:"title"`
	Subtitle  string     `json:"subtitle"`
	Notes     []string   `json:"notes"`
	Findings  []Finding  `json:"findings"`
	Clustered bool       `json:"clustered"`
	Marks     []Mark     `json:"marks"`
	Tones     []Tone     `json:"tones"`
	Sizes     pageSizes  `json:"sizes"`
	Nodes     []pageNode `json:"nodes"`
	Edges     []pageEdge `json:"edges"`
}

// pageSizes are those that the layout of the page shares with that of images.
type pageSizes struct {
	Padding      int     `json:"padding"`
	Line         int     `json:"line"`
	RowGap       int     `json:"rowGap"`
	ColumnGap    int     `json:"columnGap"`
	TreeGap      int     `json:"treeGap"`
	FrameGap     int     `json:"frameGap"`
	FramePadding int     `json:"framePadding"`
	FrameTitle   int     `json:"frameTitle"`
	Wide         float64 `json:"wide"`
}

// pageNode is a node with the lines and the size of its box.
type pageNode struct {
	Heading   string   `json:"heading"`
	Title     string   `json:"title"`
	Note      string   `json:"note,omitempty"`
	NoteTone  Tone     `json:"noteTone,omitempty"`
	Kind      string   `json:"kind"`
	Name      string   `json:"name"`
	Namespace string   `json:"namespace,omitempty"`
	Marks     []string `json:"marks,omitempty"`
	Count     int      `json:"count,omitempty"`
	Members   []string `json:"members,omitempty"`
	Under     int      `json:"under"`
	Width     int      `json:"w"`
	Height    int      `json:"h"`
	Details   []Detail `json:"details,omitempty"`
}

type pageEdge struct {
	From    int      `json:"from"`
	To      int      `json:"to"`
	Mark    string   `json:"mark"`
	Label   string   `json:"label,omitempty"`
	Details []string `json:"details,omitempty"`
}

func newPage(p *Picture) *page {
	data := &page{
		Title: visible(p.Title), Subtitle: visible(p.Subtitle), Notes: make([]string, len(p.Notes)), Clustered: p.Clustered,
		Findings: []Finding{}, Marks: p.legend(), Tones: tones, Nodes: make([]pageNode, len(p.Nodes)), Edges: make([]pageEdge, len(p.Edges)),
		Sizes: pageSizes{padding, lineHeight, rowGap, columnGap, treeGap, frameGap, framePadding, frameTitle, wide},
	}
	for i, note := range p.Notes {
		data.Notes[i] = visible(note)
	}
	for _, f := range p.Findings {
		f.Label, f.Text = visible(f.Label), visible(f.Text)
		data.Findings = append(data.Findings, f)
	}
	for i := range p.Nodes {
		data.Nodes[i] = newPageNode(p, &p.Nodes[i])
	}
	for i := range p.Edges {
		e := &p.Edges[i]
		data.Edges[i] = pageEdge{From: e.From, To: e.To, Mark: e.Mark, Label: visible(e.Label)}
		for _, a := range e.Attributes {
			if a.Value == "true" { // controller, blockOwnerDeletion
				data.Edges[i].Details = append(data.Edges[i].Details, a.Name)
			}
		}
	}
	return data
}

func newPageNode(p *Picture, n *Node) pageNode {
	node := pageNode{
		Heading: shorten(p.heading(n)), Title: shorten(n.title()), Note: shorten(visible(n.Note)),
		Kind: visible(n.Kind), Name: visible(n.Name), Namespace: visible(n.Namespace), Marks: n.Marks, Under: n.Under,
	}
	if n.Count > 1 {
		node.Count = n.Count
	}
	if n.Note != "" {
		node.NoteTone = p.noteTone(n)
	}
	for _, name := range n.Members {
		node.Members = append(node.Members, visible(name))
	}
	for _, d := range n.Details {
		lines := strings.Split(d.Value, "\n")
		for i := range lines {
			lines[i] = visible(lines[i])
		}
		node.Details = append(node.Details, Detail{d.Label, strings.Join(lines, "\n"), d.Code})
	}
	node.Width, node.Height = p.size(n)
	return node
}
