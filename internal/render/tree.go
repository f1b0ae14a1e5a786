// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Status is what a tree shows of an object's state.
type Status struct {
	Ready  string
	Status string
}

// Tree holds what Write needs beside the forest.
type Tree struct {
	Style Style
	// Where is named first, with the header; nil for a file.
	Where *answer.Where
	// Wide adds the columns APIVERSION, CONTROLLER and UID.
	Wide bool
	// Now is the time that ages are counted from.
	Now time.Time
	// Statuses are shown by UID where there is one.
	Statuses map[types.UID]Status
	// Named are marked.
	Named graph.Set
	// NoHeaders leaves the first line out.
	NoHeaders bool
	// LabelColumns are the keys of labels that have columns, and ShowLabels adds one
	// with all labels.
	LabelColumns []string
	ShowLabels   bool
}

// Write prints the forest as a table with the tree drawn in the NAME column.
func (t *Tree) Write(w io.Writer, forest graph.Forest) error {
	if len(forest.Roots) == 0 {
		return nil
	}
	t.where(w)
	rows := t.table(forest)
	return rows.write(w)
}

func (t *Tree) where(w io.Writer) {
	if !t.NoHeaders {
		t.Style.where(w, 0, t.Where)
	}
}

// Lines returns the lines of the table, each with the key of its object.
func (t *Tree) Lines(forest graph.Forest) ([]LiveLine, error) {
	if len(forest.Roots) == 0 {
		return nil, nil
	}
	var keys []string
	for b := range forest.Branches() {
		key := string(b.Node.UID())
		if b.Cycle {
			key += " again"
		}
		keys = append(keys, key)
	}
	var text bytes.Buffer
	t.where(&text)
	lines := LiveLines(text.String())
	for i := range lines {
		lines[i].Key = headerKey + " where"
	}
	text.Reset()
	rows := t.table(forest)
	rows.ended = func(row int) {
		key := headerKey
		if row >= 0 {
			key = keys[row]
		}
		lines = append(lines, LiveLine{key, strings.TrimSuffix(text.String(), "\n")})
		text.Reset()
	}
	err := rows.write(&text)
	return lines, err
}

// table makes the table.
func (t *Tree) table(forest graph.Forest) *table {
	header := []string{"NAMESPACE", "NAME", "READY", "STATUS", "AGE", "REFERENCE", "BLOCKS"}
	if t.Wide {
		header = append(header, "CONTROLLER", "APIVERSION", "UID")
	}
	for _, key := range t.LabelColumns {
		header = append(header, strings.ToUpper(key[strings.LastIndex(key, "/")+1:]))
	}
	if t.ShowLabels {
		header = append(header, "LABELS")
	}
	rows := &table{style: t.Style, header: plain(append(header, "DETAILS")...), rows: t.rows(forest), bare: t.NoHeaders}
	if !t.Wide {
		rows.fitting = &fitting{same: 0, drop: []int{6, 2, 4, 3}, below: len(header)} // BLOCKS, READY, AGE, STATUS; DETAILS
	}
	return rows
}

// labels are the cells of the labels that are shown.
func (t *Tree) labels(b *graph.Branch, o *graph.Object) []cell {
	var cells []cell
	for _, key := range t.LabelColumns {
		value, has := o.Labels[key]
		if !has && !b.Cycle && !b.Node.Virtual() {
			value = "<none>"
		}
		cells = append(cells, cell{text: value})
	}
	if t.ShowLabels {
		all := labels.FormatLabels(o.Labels)
		if b.Cycle || b.Node.Virtual() {
			all = ""
		}
		cells = append(cells, cell{text: all})
	}
	return cells
}

// rows makes a row of each line, with what is drawn before its name.
func (t *Tree) rows(forest graph.Forest) iter.Seq[[]cell] {
	return func(yield func([]cell) bool) {
		under := []string{""} // by depth, what is drawn before the lines there
		for b := range forest.Branches() {
			lead := under[b.Depth]
			below := lead
			if b.Depth > 0 {
				drawing := &t.Style.drawing().inner
				if b.Last {
					drawing = &t.Style.drawing().last
				}
				lead, below = lead+drawing.lead, lead+drawing.under
			}
			under = append(under[:b.Depth+1], below)
			if !yield(t.row(b, lead, below)) {
				return
			}
		}
	}
}

func (t *Tree) row(b *graph.Branch, lead, below string) []cell {
	o := b.Node.Object()
	id := o.Identity()
	status := t.Statuses[id.UID]
	name := cell{text: id.Resource.Kind + "/" + id.Name, color: t.nodeColor(b), lead: lead}
	if b.Cycle {
		name.lead, status = lead+t.Style.drawing().cycle, Status{}
	}
	row := []cell{
		{text: id.Namespace}, name, {text: status.Ready}, {text: status.Status}, {text: t.age(b, o)},
		states(b.References), {text: blocks(b.References)},
	}
	if t.Wide {
		apiVersion, _ := id.Resource.GroupVersionKind().ToAPIVersionAndKind()
		row = append(row, cell{text: controls(b.References)}, cell{text: apiVersion}, cell{text: string(id.UID)})
	}
	row = append(row, t.labels(b, o)...)
	return append(row, cell{text: strings.Join(t.details(b, o), "; "), under: below})
}

func (t *Tree) nodeColor(b *graph.Branch) color {
	switch {
	case b.Node.Virtual():
		return faint
	case b.Node.BeingDeleted():
		return red
	case t.Named.Has(b.Node):
		return bold
	}
	return noColor
}

func (t *Tree) age(b *graph.Branch, o *graph.Object) string {
	if b.Cycle || o.CreationTimestamp.IsZero() {
		return ""
	}
	return duration.HumanDuration(t.Now.Sub(o.CreationTimestamp.Time))
}

// states shows the state of every reference, with the reason for all but
// solid and waiting ones, which say it themselves.
func states(refs []graph.Reference) cell {
	var texts []string
	worst := noColor
	for _, ref := range refs {
		texts = append(texts, stateText(ref))
		worst = max(worst, stateColors[ref.State])
	}
	return cell{text: strings.Join(texts, ","), color: worst}
}

var stateColors = map[graph.State]color{
	graph.Solid: noColor, graph.WaitingForDependentsDeletion: yellow, graph.Unknown: yellow, graph.Dangling: red,
}

func stateText(ref graph.Reference) string {
	if ref.Reason == graph.NoReason || ref.Reason == graph.Waiting {
		return ref.State.String()
	}
	return fmt.Sprintf("%s(%s)", ref.State, ref.Reason)
}

// blocks shows blockOwnerDeletion of every reference, - where it is not set.
func blocks(refs []graph.Reference) string {
	return flags(refs, func(r graph.Reference) *bool { return r.BlockOwnerDeletion })
}

func controls(refs []graph.Reference) string {
	return flags(refs, func(r graph.Reference) *bool { return r.Controller })
}

func flags(refs []graph.Reference, flag func(graph.Reference) *bool) string {
	var texts []string
	for _, ref := range refs {
		text := "-"
		if value := flag(ref); value != nil {
			text = fmt.Sprint(*value)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ",")
}

// details lists what does not fit a column.
func (t *Tree) details(b *graph.Branch, o *graph.Object) []string {
	if b.Cycle {
		return []string{"cycle: this is the object above again"}
	}
	var details []string
	if b.Node.Virtual() {
		details = append(details, "virtual: "+missing(b.Node))
	}
	details = append(details, t.deletion(o)...)
	for _, ref := range b.Elsewhere {
		owner := ref.Owner.Identity()
		switch {
		case ref.Owner == b.Node:
			details = append(details, fmt.Sprintf("owns itself (%s)", stateText(ref)))
		case len(b.References) == 0:
			details = append(details, fmt.Sprintf("owned by %s/%s (%s)", owner.Resource.Kind, owner.Name, stateText(ref)))
		default:
			details = append(details, fmt.Sprintf("also owned by %s/%s (%s)", owner.Resource.Kind, owner.Name, stateText(ref)))
		}
	}
	if b.Hidden > 0 {
		details = append(details, fmt.Sprintf("%d more below", b.Hidden))
	}
	return details
}

// missing says why an owner is known from references alone.
func missing(n graph.Node) string {
	for _, d := range n.Dependents() {
		for _, ref := range d.ReferencesTo(n) {
			switch ref.Reason {
			case graph.UIDMismatch:
				return "another object has this name"
			case graph.Unresolvable:
				return "the server does not serve " + ref.APIVersion + " " + ref.Kind
			case graph.ClusterScopedDependent:
				return "a cluster-scoped object cannot have a namespaced owner"
			case graph.InvalidName:
				return "no object can have this name"
			case graph.UnlistedOwner:
				return "could not be read"
			}
		}
	}
	if n.Identity().Namespace != "" {
		return "does not exist in this namespace"
	}
	return "does not exist"
}

// deletion tells how far the object's deletion is.
func (t *Tree) deletion(o *graph.Object) []string {
	var details []string
	if o.BeingDeleted() {
		grace := time.Duration(0)
		if o.DeletionGracePeriodSeconds != nil {
			grace = time.Duration(*o.DeletionGracePeriodSeconds) * time.Second
		}
		requested := o.DeletionTimestamp.Add(-grace)
		text := "terminating for " + duration.HumanDuration(t.Now.Sub(requested))
		if left := o.DeletionTimestamp.Sub(t.Now); left > 0 && grace > 0 {
			text += ", grace period ends in " + duration.HumanDuration(left)
		}
		details = append(details, text)
	}
	if len(o.Finalizers) > 0 {
		details = append(details, "finalizers: "+strings.Join(o.Finalizers, ", "))
	}
	return details
}

// Names prints the objects as kubectl's -o name does. Missing owners have no
// name that a command could use and are left out.
func Names(w io.Writer, forest graph.Forest) error {
	return NodeNames(w, forest.Placed())
}

// NodeNames prints objects in the order given as kubectl's -o name does, those that are
// there.
func NodeNames(w io.Writer, nodes iter.Seq[graph.Node]) error {
	const buffer = 64 << 10
	out := bufio.NewWriterSize(w, buffer)
	kinds := map[*graph.Resource]string{}
	for n := range nodes {
		if n.Virtual() {
			continue
		}
		kind, known := kinds[n.Resource()]
		if !known {
			kind = kubectlKind(n.Resource())
			kinds[n.Resource()] = kind
		}
		_, _ = out.WriteString(kind) // Flush has the error
		_ = out.WriteByte('/')
		_, _ = out.WriteString(n.Name())
		if err := out.WriteByte('\n'); err != nil {
			return err
		}
	}
	return out.Flush()
}
