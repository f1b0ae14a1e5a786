// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Tone is the colour of something, by what it is to say. Each format has its own
// shade for it, and SVG and HTML another one on a dark ground.
type Tone string

// The tones.
const (
	Plain  Tone = "plain"
	Red    Tone = "red"
	Amber  Tone = "amber"
	Blue   Tone = "blue"
	Purple Tone = "purple"
	Green  Tone = "green"
	Faint  Tone = "faint"
)

// Mark is something by which nodes or edges are told apart: an entry of the
// legend.
type Mark struct {
	// Key is unique in a picture, and a word of lower-case letters and dashes.
	Key string `json:"key"`
	// Label says it in a few words, Meaning in a sentence.
	Label   string `json:"label"`
	Meaning string `json:"meaning,omitempty"`
	Tone    Tone   `json:"tone"`
	Dashed  bool   `json:"dashed,omitempty"`
	// Edge: it is said of edges, and otherwise of nodes.
	Edge bool `json:"edge,omitempty"`
}

// Attribute is something that is known of a node or an edge, for programs.
type Attribute struct{ Name, Value string }

// Detail is something that is known of a node, for people. Its value may have
// several lines.
type Detail struct {
	Label string `json:"label"`
	Value string `json:"value"`
	// Code: the value is for a shell.
	Code bool `json:"code,omitempty"`
}

// Node is one object, or several that are equal.
type Node struct {
	// ID is unique in a picture.
	ID         string
	Kind, Name string
	// Namespace is empty for an object that is in none.
	Namespace string
	// Marks are the keys of what is said of the node. The first gives the colour.
	Marks []string
	// Note is a line below the name, empty for none.
	Note string
	// NoteTone is the tone of the Note, empty for that of the node.
	NoteTone Tone
	// Count is the number of objects that the node stands for, Members are their
	// names. The Members of a single object are nil.
	Count   int
	Members []string
	// Under is the index of the node that this one is drawn beside, or -1. The node
	// has an edge to it, and going from node to node so comes to an end.
	Under int
	// Kept: it is never made one with others.
	Kept       bool
	Attributes []Attribute
	Details    []Detail
}

// Edge leads from a dependent to its owner, or from what waits to what it waits
// for.
type Edge struct {
	// From and To are indices of nodes.
	From, To int
	// Mark is the key of what is said of the edge.
	Mark string
	// Label says it in a few words, empty when there is nothing to be said.
	Label      string
	Attributes []Attribute
}

// Finding is a line of the list that a page has above its picture.
type Finding struct {
	// Node is the index of the node that it is about, -1 for none.
	Node int `json:"node"`
	// Label is its word, Text what it says.
	Label string `json:"label"`
	Text  string `json:"text"`
	Tone  Tone   `json:"tone"`
}

// Picture is a graph that can be drawn.
type Picture struct {
	// Name is the identifier that DOT has for the graph. Title and Subtitle are for
	// people.
	Name, Title, Subtitle string
	// Notes are sentences about the whole picture.
	Notes []string
	// Findings are what the picture shows, the most important first. Only pages list them.
	Findings []Finding
	// Clustered: the nodes of a namespace are drawn in a frame.
	Clustered bool
	// Marks are those that nodes and edges may have, in the order of the legend.
	Marks []Mark
	Nodes []Node
	Edges []Edge
}

// legend returns the marks that occur.
func (p *Picture) legend() []Mark {
	used := map[string]bool{}
	for i := range p.Nodes {
		for _, key := range p.Nodes[i].Marks {
			used[key] = true
		}
	}
	for i := range p.Edges {
		used[p.Edges[i].Mark] = true
	}
	return slices.DeleteFunc(slices.Clone(p.Marks), func(m Mark) bool { return !used[m.Key] })
}

// mark returns the mark with the key.
func (p *Picture) mark(key string) Mark {
	if i := slices.IndexFunc(p.Marks, func(m Mark) bool { return m.Key == key }); i >= 0 {
		return p.Marks[i]
	}
	return Mark{Key: key, Tone: Plain}
}

// look returns the mark that gives a node its colour.
func (p *Picture) look(n *Node) Mark {
	if len(n.Marks) == 0 {
		return Mark{Tone: Plain}
	}
	return p.mark(n.Marks[0])
}

// rooted reports whether a node begins a tree: it is under none, or under one in
// another frame.
func (p *Picture) rooted(i int) bool {
	under := p.Nodes[i].Under
	return under < 0 || p.Clustered && p.Nodes[under].Namespace != p.Nodes[i].Namespace
}

// beside reports whether an edge leads to the node that its own is drawn beside.
func (p *Picture) beside(e *Edge) bool { return p.Nodes[e.From].Under == e.To && !p.rooted(e.From) }

// noteTone is the tone of a node's note, that of the node unless it says another.
func (p *Picture) noteTone(n *Node) Tone {
	if n.NoteTone != "" {
		return n.NoteTone
	}
	return p.look(n).Tone
}

// cluster is the nodes of one namespace, or those that are in none.
type cluster struct {
	namespace, title string
	nodes            []int
}

// clusters returns the nodes by namespace, those without one first, and all as
// one without a title when the picture is not clustered.
func (p *Picture) clusters() []cluster {
	if !p.Clustered {
		all := cluster{}
		for i := range p.Nodes {
			all.nodes = append(all.nodes, i)
		}
		return []cluster{all}
	}
	byNamespace := map[string]int{}
	var found []cluster
	for i := range p.Nodes {
		namespace := p.Nodes[i].Namespace
		at, known := byNamespace[namespace]
		if !known {
			at = len(found)
			byNamespace[namespace] = at
			found = append(found, cluster{namespace: namespace, title: clusterTitle(namespace)})
		}
		found[at].nodes = append(found[at].nodes, i)
	}
	slices.SortFunc(found, func(a, b cluster) int { return strings.Compare(a.namespace, b.namespace) })
	return found
}

func clusterTitle(namespace string) string {
	if namespace == "" {
		return "cluster-scoped"
	}
	return "namespace " + visible(namespace)
}

// heading is the first line of a node: its kind, with the namespace where no
// frame says it, and the number of objects.
func (p *Picture) heading(n *Node) string {
	text := visible(n.Kind)
	if !p.Clustered && n.Namespace != "" {
		text += " · " + visible(n.Namespace)
	}
	return text
}

// title is the second line of a node.
func (n *Node) title() string {
	if n.Count > 1 {
		return "x" + strconv.Itoa(n.Count)
	}
	return visible(n.Name)
}

// label returns the lines of a node for formats that lay out text themselves.
func (p *Picture) label(n *Node) []string {
	lines := []string{p.heading(n), n.title()}
	if n.Count > 1 {
		lines = []string{p.heading(n) + " " + n.title()}
	}
	if n.Note != "" {
		lines = append(lines, visible(n.Note))
	}
	return lines
}

// visible escapes what would not be seen, or would change how its neighbours
// are: control characters, and those that change the direction of text.
func visible(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return s // as nearly all names are
	}
	unseen := func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) ||
			r == unicode.ReplacementChar || r >= 0xFFFE && r&0xFFFE == 0xFFFE
	}
	return Escape(s, unseen)
}

// Escape writes the runes for which a function holds as Go does.
func Escape(s string, unseen func(rune) bool) string {
	if !strings.ContainsFunc(s, unseen) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unseen(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// maxShown is the number of columns that a line of a node has.
const maxShown = 40

// shorten leaves out the middle of a line that is too long: names of pods tell
// more by their ends.
func shorten(s string) string {
	runes := []rune(s)
	if columns(s) <= maxShown {
		return s
	}
	head, tail := 0, len(runes)
	for used := 1; head < tail; {
		next := &runes[head]
		front := head <= len(runes)-tail
		if !front {
			next = &runes[tail-1]
		}
		if used += width(*next); used > maxShown {
			break
		}
		if front {
			head++
		} else {
			tail--
		}
	}
	return string(runes[:head]) + "…" + string(runes[tail:])
}

// columns is the width of a text in those of a font of one width.
func columns(s string) int {
	sum := 0
	for _, r := range s {
		sum += width(r)
	}
	return sum
}

// width is 2 for what may be wider than a letter. It may be too much.
func width(r rune) int {
	if r >= 0x1100 && r != '…' {
		return 2
	}
	return 1
}
