// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/draw"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// resultMark is what a picture of a deletion says of a result.
type resultMark struct {
	result gc.Result
	mark   draw.Mark
}

var resultMarks = []resultMark{
	{gc.Deleted, draw.Mark{Key: "deleted", Label: "would be deleted", Meaning: "This deletion deletes it.", Tone: draw.Red}},
	{gc.Orphaned, draw.Mark{Key: "orphaned", Label: "would be orphaned", Meaning: "It is kept, and loses the reference to its owner.",
		Tone: draw.Blue}},
	{gc.OwnerReferenceRemoved, draw.Mark{Key: "reference-removed", Label: "would be kept, without a reference",
		Meaning: "Another owner keeps it.", Tone: draw.Green}},
	{gc.Remaining, draw.Mark{Key: "remaining", Label: "would get stuck", Meaning: "Its deletion begins, but a blocker keeps it.",
		Tone: draw.Amber}},
	{gc.Unknown, draw.Mark{Key: "undecided", Label: "not known", Meaning: "Not enough could be read to know its outcome.", Tone: draw.Purple}},
	{gc.Untouched, draw.Mark{Key: "untouched", Label: "would be kept", Meaning: "It is kept as it is.", Tone: draw.Plain}},
}

// OutcomePicture draws the objects of a preview with what becomes of them, and the
// references between them. Those with which data is destroyed, by what is foreseen, are marked. s may be nil.
func OutcomePicture(g *graph.Graph, all []gc.Outcome, s *foresight.Forecast) *draw.Picture {
	outcomes, sel := map[graph.Node]*gc.Outcome{}, graph.Selection{}
	for i := range all {
		if n, ok := g.Node(all[i].Object.UID); ok {
			outcomes[n] = &all[i]
			sel.Nodes.Add(n)
		}
	}
	p := draw.Ownership(sel)
	lost := map[graph.Identity]*foresight.Loss{}
	if s != nil {
		for i := range s.Lost {
			if l := &s.Lost[i]; l.Volume != "" {
				lost[l.Object] = l
			}
		}
	}
	nodes := sel.Nodes.Sorted() // the order that the picture has
	for i, n := range nodes {
		addOutcome(&p.Nodes[i], outcomes[n])
		if l := lost[n.Identity()]; l != nil {
			lose(&p.Nodes[i], fmt.Sprintf("%s on %s is destroyed", cmp.Or(l.Size, "all"), l.On()))
		}
	}
	for _, k := range unended {
		for i, n := range nodes {
			if o := outcomes[n]; k.is(o) {
				p.Findings = append(p.Findings, draw.Finding{Node: i, Label: k.label, Text: objectName(n.Identity()) + ": " + whyHeld(o),
					Tone: markOf(o).Tone})
			}
		}
	}
	var marks []draw.Mark
	for _, r := range resultMarks {
		marks = append(marks, r.mark)
	}
	p.Marks = append(append(marks, lostMark), p.Marks...)
	return p
}

func markOf(o *gc.Outcome) draw.Mark {
	return resultMarks[slices.IndexFunc(resultMarks, func(r resultMark) bool { return r.result == o.Result })].mark
}

func addOutcome(n *draw.Node, o *gc.Outcome) {
	mark := markOf(o)
	n.Marks = append([]string{mark.Key}, n.Marks...)
	n.Note, n.NoteTone = mark.Label, ""
	n.Attributes = append(n.Attributes, draw.Attribute{Name: "result", Value: string(o.Result)},
		draw.Attribute{Name: "reason", Value: o.Reason.String()})
	details := []draw.Detail{{Label: "outcome", Value: mark.Label}}
	if !o.Reason.IsZero() {
		details = append(details, draw.Detail{Label: "why", Value: o.Reason.String()})
	}
	if len(o.WaitingFor) > 0 {
		details = append(details, draw.Detail{Label: "waits for", Value: lines(o.WaitingFor)})
	}
	n.Details = append(details, n.Details...)
}

// lines names objects, one a line.
func lines(ids []graph.Identity) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return strings.Join(texts, "\n")
}

// stuckMarks are what a picture of an explanation tells objects apart by: the
// verdicts of causes, and what was asked for.
var (
	stuckMarks = map[explain.Verdict]draw.Mark{
		explain.Stuck: {Key: "stuck", Label: "cause: needs action", Meaning: "Nothing happens until a user or an admin acts.",
			Tone: draw.Red},
		explain.Unknown: {Key: "unclear", Label: "cause: unknown", Meaning: "The objects that could be read do not decide.",
			Tone: draw.Purple},
		explain.Progressing: {Key: "progressing", Label: "cause: ends by itself", Meaning: "It is in progress, and ends by itself.",
			Tone: draw.Green},
		explain.Pending: {Key: "pending", Label: "cause: the garbage collector has to act", Meaning: "Nothing prevents that.", Tone: draw.Green},
	}
	lostMark  = draw.Mark{Key: "data-loss", Label: "DATA LOSS", Meaning: "Data of a volume is destroyed.", Tone: draw.Red}
	askedMark = draw.Mark{Key: "asked", Label: "explained object", Meaning: "It was asked about, or is being deleted.", Tone: draw.Amber}
	waitsMark = draw.Mark{Key: "waits", Label: "waits for", Meaning: "It is deleted only after the other object.",
		Tone: draw.Plain, Edge: true}
)

// StuckPicture draws the chains of a report: an edge leads from an object to what
// it waits for.
func StuckPicture(report *explain.Report) *draw.Picture {
	s := &stuckPicture{
		picture: &draw.Picture{Name: "stuck"}, report: report,
		at: map[graph.Identity]int{}, edges: map[link]bool{},
	}
	s.collect()
	s.picture.Marks = append(s.picture.Marks, askedMark)
	for _, v := range verdicts {
		if mark, is := stuckMarks[v.verdict]; is {
			s.picture.Marks = append(s.picture.Marks, mark)
		}
	}
	s.picture.Marks = append(s.picture.Marks, lostMark, waitsMark)
	s.picture.Subtitle = s.counts()
	s.picture.Arrange()
	return s.picture
}

type stuckPicture struct {
	picture *draw.Picture
	report  *explain.Report
	at      map[graph.Identity]int
	edges   map[link]bool
}

// link is an edge as far as it is told from others.
type link struct {
	from, to int
	because  string
}

// collect adds all nodes, in the order of their identities, and all edges.
func (s *stuckPicture) collect() {
	var ids []graph.Identity
	for i := range s.report.Objects {
		ids = append(ids, s.report.Objects[i].Object)
		for _, f := range s.report.Objects[i].Findings {
			for _, l := range f.Chain {
				ids = append(ids, l.Object)
			}
		}
	}
	for _, c := range s.report.Causes {
		ids = append(ids, c.Object)
	}
	slices.SortFunc(ids, graph.Identity.Compare)
	for _, id := range slices.Compact(ids) {
		s.at[id] = len(s.picture.Nodes)
		s.picture.Nodes = append(s.picture.Nodes, stuckNode(id))
	}
	for _, c := range s.report.Causes {
		s.cause(c)
	}
	for i := range s.report.Objects {
		s.object(&s.report.Objects[i])
	}
	for id, i := range s.at {
		s.picture.Nodes[i].Details = append(s.picture.Nodes[i].Details, identityDetails(id)...)
	}
}

// identityDetails say which object it is.
func identityDetails(id graph.Identity) []draw.Detail {
	apiVersion, _ := id.Resource.GroupVersionKind().ToAPIVersionAndKind()
	details := []draw.Detail{{Label: "apiVersion", Value: apiVersion}, {Label: "namespace", Value: id.Namespace},
		{Label: "uid", Value: string(id.UID)}}
	return slices.DeleteFunc(details, func(d draw.Detail) bool { return d.Value == "" })
}

func stuckNode(id graph.Identity) draw.Node {
	return draw.Node{
		// What is no object in the cluster has no UID.
		ID: cmp.Or(string(id.UID), id.String()), Kind: id.Resource.Kind, Name: id.Name, Namespace: id.Namespace, Count: 1, Under: -1,
		Attributes: []draw.Attribute{
			{Name: "uid", Value: string(id.UID)}, {Name: "namespace", Value: id.Namespace}, {Name: "name", Value: id.Name},
			{Name: "kind", Value: id.Resource.Kind}, {Name: "group", Value: id.Resource.Group}, {Name: "version", Value: id.Resource.Version},
		},
	}
}

// cause says on a node what it is the cause of, and what to do.
func (s *stuckPicture) cause(c *explain.Cause) {
	n := &s.picture.Nodes[s.at[c.Object]]
	if mark, is := stuckMarks[c.Verdict]; is && !slices.Contains(n.Marks, mark.Key) {
		n.Marks = append(n.Marks, mark.Key)
	}
	s.picture.Findings = append(s.picture.Findings, draw.Finding{Node: s.at[c.Object], Label: spoken[c.Verdict],
		Text: holding(c) + ": " + worded(c.Summary), Tone: cmp.Or(stuckMarks[c.Verdict].Tone, draw.Plain)})
	for _, l := range endangered(c) {
		lose(n, destroyedWith(&l))
		s.picture.Findings = append(s.picture.Findings, draw.Finding{Node: s.at[c.Object], Label: lostMark.Label,
			Text: destroyedWith(&l), Tone: lostMark.Tone})
	}
	n.Note = cmp.Or(n.Note, c.ID)
	n.Attributes = append(n.Attributes, draw.Attribute{Name: "cause", Value: c.ID}, draw.Attribute{Name: "verdict", Value: string(c.Verdict)})
	details := []draw.Detail{{Label: fmt.Sprintf("cause (%s): %s", c.Verdict, c.ID), Value: worded(c.Summary)}}
	if c.Blocks > 1 {
		details = append(details, draw.Detail{Label: "blocks", Value: fmt.Sprintf("%d deletions", c.Blocks)})
	}
	if !c.Until.IsZero() {
		details = append(details, draw.Detail{Label: "until", Value: c.Until.UTC().Format(time.RFC3339)})
	}
	details = append(details, evidenceDetails("evidence", c.Evidence)...)
	if c.Controller != nil {
		label, text := controllerState(c.Controller)
		details = append(details, draw.Detail{Label: label, Value: text})
		details = append(details, evidenceDetails("evidence about the controller", c.Controller.Evidence)...)
	}
	for _, r := range c.Remedies {
		details = append(details, remedyDetails(r)...)
	}
	n.Details = append(n.Details, details...)
}

func evidenceDetails(label string, all []explain.Evidence) []draw.Detail {
	if len(all) == 0 {
		return nil
	}
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = strings.Join(slices.DeleteFunc([]string{worded(e.Source), e.Path}, func(s string) bool { return s == "" }),
			" ") + ": " + worded(e.Value)
	}
	return []draw.Detail{{Label: label, Value: strings.Join(texts, "\n")}}
}

func remedyDetails(r explain.Remedy) []draw.Detail {
	effect := r.Effect.String()
	var costs []string
	for i := range r.Loss {
		costs = append(costs, lossText(&r.Loss[i]))
	}
	if len(costs) > 0 {
		effect += "\n" + strings.Join(costs, "; ")
	}
	details := []draw.Detail{{Label: "what to do (" + string(r.Risk) + ")", Value: effect}}
	if r.Command != "" {
		details = append(details, draw.Detail{Label: "command", Value: r.Command, Code: true})
	}
	if r.Undo != "" {
		details = append(details, draw.Detail{Label: "undo", Value: r.Undo, Code: true})
	}
	return details
}

// lose marks a node with which data is destroyed.
func lose(n *draw.Node, text string) {
	if !slices.Contains(n.Marks, lostMark.Key) {
		n.Marks = append(n.Marks, lostMark.Key)
	}
	n.Details = append([]draw.Detail{{Label: lostMark.Label, Value: text}}, n.Details...)
}

// object adds the chains of an object.
func (s *stuckPicture) object(o *explain.Explanation) {
	n := &s.picture.Nodes[s.at[o.Object]]
	n.Marks = append(n.Marks, askedMark.Key)
	n.Note = cmp.Or(n.Note, string(o.Verdict))
	asked := []draw.Detail{{Label: "verdict", Value: string(o.Verdict)}}
	if !o.Since.IsZero() {
		asked = append(asked, draw.Detail{Label: "terminating for", Value: duration.HumanDuration(max(s.report.Now.Sub(o.Since), 0))})
	}
	n.Details = append(asked, n.Details...)
	for _, f := range o.Findings {
		for i, l := range f.Chain[:max(len(f.Chain)-1, 0)] {
			s.edge(l, f.Chain[i+1].Object)
		}
	}
}

func (s *stuckPicture) edge(l explain.Link, to graph.Identity) {
	key := link{s.at[l.Object], s.at[to], l.Because.String()}
	if s.edges[key] {
		return
	}
	s.edges[key] = true
	s.picture.Edges = append(s.picture.Edges, draw.Edge{
		From: key.from, To: key.to, Mark: waitsMark.Key, Label: l.Because.String(),
		Attributes: []draw.Attribute{{Name: "because", Value: l.Because.String()}, {Name: "symptom", Value: l.Symptom}},
	})
}

// counts says how many objects have which verdict.
func (s *stuckPicture) counts() string {
	var parts []string
	for _, v := range verdicts {
		n := 0
		for i := range s.report.Objects {
			if s.report.Objects[i].Verdict == v.verdict {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", v.verdict, n))
		}
	}
	return strings.Join(parts, ", ")
}
