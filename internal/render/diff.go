// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-gc/kubectl-gc/internal/diff"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// DiffSide is one side of a comparison.
type DiffSide struct {
	// Name is that of the file, or "live".
	Name     string      `json:"name"`
	Time     metav1.Time `json:"time"`
	Objects  int         `json:"objects"`
	Complete bool        `json:"complete"`
	Unlisted []Unlisted  `json:"unlisted"`
}

// NewDiffSide describes a side.
func NewDiffSide(name string, at time.Time, s *graph.Snapshot) DiffSide {
	return DiffSide{Name: name, Time: metav1.NewTime(at.UTC()), Objects: s.Len(), Complete: s.Complete(), Unlisted: NewUnlisted(s)}
}

// Diff is the document of a comparison.
type Diff struct {
	head        `json:",inline"`
	Complete    bool             `json:"complete"`
	Unlisted    []Unlisted       `json:"unlisted"`
	Before      DiffSide         `json:"before"`
	After       DiffSide         `json:"after"`
	Counts      []DiffCount      `json:"counts"`
	Differences []DiffObject     `json:"differences"`
	Uncompared  []DiffUncompared `json:"uncompared"`
}

// DiffCount is how many objects of a kind in a namespace differ.
type DiffCount struct {
	Namespace         string `json:"namespace,omitempty"`
	Group             string `json:"group"`
	Kind              string `json:"kind"`
	Appeared          int    `json:"appeared"`
	Vanished          int    `json:"vanished"`
	BeganTerminating  int    `json:"beganTerminating"`
	ChangedOwners     int    `json:"changedOwners"`
	ChangedFinalizers int    `json:"changedFinalizers"`
}

// DiffObject is an object that differs.
type DiffObject struct {
	Object            ObjectReference         `json:"object"`
	Change            string                  `json:"change"`
	Replaces          bool                    `json:"replaces,omitempty"`
	BeganTerminating  bool                    `json:"beganTerminating,omitempty"`
	AddedOwners       []metav1.OwnerReference `json:"addedOwners,omitempty"`
	RemovedOwners     []metav1.OwnerReference `json:"removedOwners,omitempty"`
	AddedFinalizers   []string                `json:"addedFinalizers,omitempty"`
	RemovedFinalizers []string                `json:"removedFinalizers,omitempty"`
}

// DiffUncompared is a type of which objects could not be compared.
type DiffUncompared struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
	Objects  int    `json:"objects"`
}

// NewDiff describes a comparison.
func NewDiff(before, after DiffSide, r *diff.Report) *Diff {
	d := &Diff{
		head: headOf("Diff"), Before: before, After: after,
		Complete: before.Complete && after.Complete, Unlisted: append(append([]Unlisted{}, before.Unlisted...), after.Unlisted...),
		Counts: []DiffCount{}, Differences: []DiffObject{}, Uncompared: []DiffUncompared{},
	}
	for _, c := range r.Counts {
		d.Counts = append(d.Counts, DiffCount{c.Namespace, c.Group, c.Kind, c.Appeared, c.Vanished, c.Terminated, c.Owners, c.Finalizers})
	}
	for i := range r.Differences {
		o := &r.Differences[i]
		d.Differences = append(d.Differences, DiffObject{
			NewObjectReference(o.Object), string(o.Change), o.Replaces, o.BeganTerminating, o.AddedOwners, o.RemovedOwners,
			o.AddedFinalizers, o.RemovedFinalizers,
		})
	}
	for _, u := range r.Uncompared {
		d.Uncompared = append(d.Uncompared, DiffUncompared{u.Resource.Group, u.Resource.Resource, u.Objects})
	}
	return d
}

// DeepCopyObject implements runtime.Object, which the printers of cli-runtime
// ask for. Documents are never changed, so the copy is shallow.
func (d *Diff) DeepCopyObject() runtime.Object {
	document := *d
	return &document
}

// signs open the line of a difference.
var signs = map[diff.Change]struct {
	sign  string
	color color
}{diff.Appeared: {"+", green}, diff.Vanished: {"-", red}, diff.Changed: {"~", yellow}}

// DiffText writes a comparison for a person: by namespace, a line for each object, and the
// sums.
func DiffText(w io.Writer, style Style, where *answer.Where, before, after DiffSide, r *diff.Report) error {
	out := bufio.NewWriter(w)
	style.where(out, 0, where)
	fmt.Fprintf(out, "before: %s\nafter:  %s\n", diffSide(before), diffSide(after))
	namespace := "\x00"
	for i := range r.Differences {
		d := &r.Differences[i]
		if d.Object.Namespace != namespace {
			namespace = d.Object.Namespace
			fmt.Fprintf(out, "\n%s:\n", diffPlace(namespace))
		}
		s := signs[d.Change]
		line := fmt.Sprintf("%s %s/%s", style.paint(s.sign, s.color), printable(d.Object.Resource.Kind), printable(d.Object.Name))
		if what := diffWords(d); len(what) > 0 {
			line += "  " + printable(strings.Join(what, "; "))
		}
		fmt.Fprintln(out, line)
	}
	if len(r.Differences) > 0 {
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out, diffSummary(r))
	return out.Flush()
}

func diffSide(s DiffSide) string {
	return fmt.Sprintf("%s, %d objects at %s", printable(s.Name), s.Objects, s.Time.UTC().Format(time.RFC3339))
}

func diffPlace(namespace string) string {
	if namespace == "" {
		return "without a namespace"
	}
	return "namespace " + printable(namespace)
}

// diffWords says what else there is to an object that differs.
func diffWords(d *diff.Difference) []string {
	var words []string
	if d.Replaces {
		words = append(words, "in the place of another that vanished")
	}
	if d.BeganTerminating {
		words = append(words, "is being deleted")
	}
	for _, list := range []struct {
		sign string
		refs []metav1.OwnerReference
	}{{"+", d.AddedOwners}, {"-", d.RemovedOwners}} {
		for _, ref := range list.refs {
			words = append(words, fmt.Sprintf("owner %s%s/%s", list.sign, ref.Kind, ref.Name))
		}
	}
	for _, f := range d.AddedFinalizers {
		words = append(words, "finalizer +"+f)
	}
	for _, f := range d.RemovedFinalizers {
		words = append(words, "finalizer -"+f)
	}
	return words
}

// diffSummary is the last line.
func diffSummary(r *diff.Report) string {
	t := r.Total()
	text := "Nothing differs."
	if len(r.Differences) > 0 {
		text = fmt.Sprintf("%d appeared, %d vanished, %d began to be deleted, %d with other owners, %d with other finalizers.",
			t.Appeared, t.Vanished, t.Terminated, t.Owners, t.Finalizers)
	}
	n := 0
	for _, u := range r.Uncompared {
		n += u.Objects
	}
	if n > 0 {
		text += fmt.Sprintf(" %d objects could not be compared: only one side was read.", n)
	}
	return text
}

// diffStyle is that of the page: it follows the reader's choice of light or dark.
const diffStyle = `:root{color-scheme:light dark}body{font:14px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em}
table{border-collapse:collapse;margin:1em 0}th,td{border:1px solid #8886;padding:.2em .6em;text-align:left}td.n{text-align:right}
code{font-family:ui-monospace,monospace}.Appeared{color:light-dark(#116329,#7ee787)}.Vanished{color:light-dark(#a40e26,#ff7b72)}.Changed{color:light-dark(#7d4e00,#e3b341)}`

// DiffHTML writes a comparison as one page that needs nothing else.
func DiffHTML(w io.Writer, where *answer.Where, before, after DiffSide, r *diff.Report) error {
	out := bufio.NewWriter(w)
	e := func(s string) string { return template.HTMLEscapeString(printable(s)) }
	fmt.Fprintf(out,
		"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s and %s</title>\n<meta name=\"viewport\" content=\"width=device-width\">\n"+
			"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<style>%s</style></head><body>\n", e(before.Name), e(after.Name), diffStyle)
	fmt.Fprintf(out, "<h1>What differs%s</h1>\n<p>Before: %s<br>After: %s</p>\n<p>%s</p>\n", e(where.In()),
		template.HTMLEscapeString(diffSide(before)), template.HTMLEscapeString(diffSide(after)), template.HTMLEscapeString(diffSummary(r)))
	if len(r.Counts) > 0 {
		fmt.Fprintln(out,
			"<table><thead><tr><th>Namespace<th>Kind<th>Appeared<th>Vanished<th>Began to be deleted<th>Other owners<th>Other finalizers</thead><tbody>")
	}
	for _, c := range r.Counts {
		fmt.Fprintf(out, "<tr><td>%s<td>%s<td class=n>%d<td class=n>%d<td class=n>%d<td class=n>%d<td class=n>%d\n", e(c.Namespace), e(c.Kind),
			c.Appeared, c.Vanished, c.Terminated, c.Owners, c.Finalizers)
	}
	if len(r.Counts) > 0 {
		fmt.Fprintln(out, "</tbody></table>\n<table><thead><tr><th>Namespace<th>Object<th>Change<th>How</thead><tbody>")
	}
	for i := range r.Differences {
		d := &r.Differences[i]
		fmt.Fprintf(out, "<tr><td>%s<td><code>%s/%s</code><td class=\"%s\">%s<td>%s\n",
			e(d.Object.Namespace), e(d.Object.Resource.Kind), e(d.Object.Name), d.Change, d.Change, e(strings.Join(diffWords(d), "; ")))
	}
	if len(r.Counts) > 0 {
		fmt.Fprintln(out, "</tbody></table>")
	}
	fmt.Fprintln(out, "</body></html>")
	return out.Flush()
}
