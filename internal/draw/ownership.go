// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Keys of the marks of an ownership graph.
const (
	markTerminating = "terminating"
	markForeground  = "foreground"
	markOrphaning   = "orphaning"
	markVirtual     = "virtual"
	markSolid       = "solid"
	markDangling    = "dangling"
	markWaiting     = "waiting"
	markUnknown     = "unknown"
)

// edgeMarks are the marks of the states of references.
var edgeMarks = map[graph.State]string{
	graph.Solid: markSolid, graph.Dangling: markDangling, graph.WaitingForDependentsDeletion: markWaiting, graph.Unknown: markUnknown,
}

// ownershipMarks are those of nodes, and referenceMarks those of references.
var (
	ownershipMarks = []Mark{
		{Key: markForeground, Label: "in foreground deletion", Meaning: "It is being deleted, and waits until no dependent blocks it.",
			Tone: Amber},
		{Key: markOrphaning, Label: "orphaning its dependents", Meaning: "It is being deleted, and its dependents are kept.", Tone: Blue},
		{Key: markTerminating, Label: "terminating", Meaning: "It is being deleted: it has a deletion timestamp.", Tone: Red},
		{Key: markVirtual, Label: "virtual owner", Meaning: "It is known from owner references alone.", Tone: Faint, Dashed: true},
	}
	referenceMarks = []Mark{
		{Key: markSolid, Label: "solid reference", Meaning: "The owner exists, and keeps the dependent.", Tone: Plain, Edge: true},
		{Key: markDangling, Label: "dangling reference", Meaning: "There is no such owner.", Tone: Red, Edge: true},
		{Key: markWaiting, Label: "owner waits for its dependents",
			Meaning: "The owner is in foreground deletion, and does not keep the dependent.", Tone: Amber, Edge: true},
		{Key: markUnknown, Label: "unknown reference", Meaning: "The garbage collector cannot decide, or what was read is not enough to.",
			Tone: Purple, Dashed: true, Edge: true},
	}
)

// Ownership makes the picture of a selection: its nodes, and the references
// between them, each node beside the owner that a tree shows it under. A node that
// was named is never made one with others.
func Ownership(sel graph.Selection) *Picture {
	p := &Picture{Name: "full", Clustered: true, Marks: append(append([]Mark{}, ownershipMarks...), referenceMarks...)}
	named := graph.NewSet(sel.Named...)
	at := map[graph.Node]int{}
	nodes := sel.Nodes.Sorted()
	p.Nodes = make([]Node, 0, len(nodes))
	for i, n := range nodes {
		at[n] = i
		drawn := ownershipNode(n)
		drawn.Kept = named.Has(n)
		p.Nodes = append(p.Nodes, drawn)
	}
	for i, n := range nodes {
		for _, ref := range n.Owners() {
			if owner, drawn := at[ref.Owner]; drawn {
				p.Edges = append(p.Edges, ownershipEdge(i, owner, ref))
			}
		}
	}
	above := []int{}
	for b := range sel.Forest().Branches() {
		if i := at[b.Node]; !b.Cycle {
			above = append(above[:b.Depth], i)
			if b.Depth > 0 {
				p.Nodes[i].Under = above[b.Depth-1]
			}
		}
	}
	return p
}

func ownershipNode(n graph.Node) Node {
	o := n.Object()
	id := o.Identity()
	drawn := Node{
		ID: cmp.Or(string(id.UID), "#"+id.String()), Kind: id.Resource.Kind, Name: id.Name, Namespace: id.Namespace, Count: 1, Under: -1,
		Attributes: []Attribute{
			{"uid", string(id.UID)}, {"namespace", id.Namespace}, {"name", id.Name},
			{"kind", id.Resource.Kind}, {"group", id.Resource.Group}, {"version", id.Resource.Version},
			{"missing", strconv.FormatBool(n.Virtual())}, {"virtual", strconv.FormatBool(n.Virtual())},
			{"beingDeleted", strconv.FormatBool(n.BeingDeleted())}, {"deletingDependents", strconv.FormatBool(n.DeletingDependents())},
		},
	}
	var notes []string
	switch {
	case n.Virtual():
		drawn.Marks, notes = []string{markVirtual}, []string{"virtual"}
	case n.DeletingDependents():
		drawn.Marks, notes = []string{markForeground, markTerminating}, []string{"in foreground deletion"}
	case n.OrphaningDependents():
		drawn.Marks, notes = []string{markOrphaning, markTerminating}, []string{"terminating, orphaning"}
	case n.BeingDeleted():
		drawn.Marks, notes = []string{markTerminating}, []string{"terminating"}
	}
	for _, ref := range n.Owners() {
		text := stateText(ref)
		if ref.State == graph.Solid || ref.State == graph.WaitingForDependentsDeletion || slices.Contains(notes, text) {
			continue // of an owner that waits, it says so itself
		}
		notes = append(notes, text)
		if drawn.Marks == nil && drawn.NoteTone != Red {
			drawn.NoteTone = noteTones[ref.State]
		}
	}
	drawn.Note = strings.Join(notes, " · ")
	drawn.Details = objectDetails(o)
	return drawn
}

var noteTones = map[graph.State]Tone{graph.Dangling: Red, graph.Unknown: Purple}

// objectDetails are what people want to know of an object.
func objectDetails(o *graph.Object) []Detail {
	apiVersion, _ := o.Resource.GroupVersionKind().ToAPIVersionAndKind()
	details := []Detail{{Label: "apiVersion", Value: apiVersion}}
	add := func(label, value string) {
		if value != "" {
			details = append(details, Detail{Label: label, Value: value})
		}
	}
	add("namespace", o.Namespace)
	add("uid", string(o.UID))
	if !o.CreationTimestamp.IsZero() {
		add("created", o.CreationTimestamp.UTC().Format(time.RFC3339))
	}
	if o.DeletionTimestamp != nil {
		add("deletion timestamp", o.DeletionTimestamp.UTC().Format(time.RFC3339))
	}
	if grace := o.DeletionGracePeriodSeconds; grace != nil && *grace > 0 {
		add("grace period", fmt.Sprintf("%d s", *grace))
	}
	add("finalizers", strings.Join(o.Finalizers, "\n"))
	return details
}

// stateText is the state of a reference with the reason, where that says more.
func stateText(ref graph.Reference) string {
	if ref.Reason == graph.NoReason || ref.Reason == graph.Waiting {
		return ref.State.String()
	}
	return ref.State.String() + "(" + ref.Reason.String() + ")"
}

func ownershipEdge(from, to int, ref graph.Reference) Edge {
	e := Edge{From: from, To: to, Mark: edgeMarks[ref.State], Attributes: []Attribute{
		{"state", ref.State.String()},
		{"controller", strconv.FormatBool(ref.Controller != nil && *ref.Controller)},
		{"blockOwnerDeletion", strconv.FormatBool(ref.Blocking())},
	}}
	if ref.Reason != graph.NoReason {
		e.Attributes = append(e.Attributes, Attribute{"reason", ref.Reason.String()})
		e.Label = stateText(ref)
	}
	return e
}
