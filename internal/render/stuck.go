// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// StuckReport is the document that explain-stuck prints.
type StuckReport struct {
	head     `json:",inline"`
	Complete bool       `json:"complete"`
	Unlisted []Unlisted `json:"unlisted"`
	// Unread is what was looked at besides the lists and could not be read.
	Unread  []string      `json:"unread"`
	Objects []StuckObject `json:"objects"`
}

// StuckObject is an object in a StuckReport.
type StuckObject struct {
	Object  ObjectReference `json:"object"`
	Verdict string          `json:"verdict"`
	Since   *metav1.Time    `json:"since,omitempty"`
	Why     string          `json:"why,omitempty"`
	Chain   []StuckLink     `json:"chain"`
	Causes  []StuckCause    `json:"causes"`
}

// StuckLink is a step from an object to a cause.
type StuckLink struct {
	Object ObjectReference `json:"object"`
	// ID is the catalogue's identifier of the step.
	ID      string `json:"id,omitempty"`
	Because string `json:"because,omitempty"`
}

// StuckCause is a cause in a StuckReport.
type StuckCause struct {
	ID string `json:"id"`
	// Rank is the number that --cause takes: the causes that are grave and block most come first.
	Rank    int             `json:"rank"`
	Object  ObjectReference `json:"object"`
	Verdict string          `json:"verdict"`
	Summary string          `json:"summary"`
	// Decides is the part of Summary that decides, empty for all of it.
	Decides    string           `json:"decides,omitempty"`
	Until      *metav1.Time     `json:"until,omitempty"`
	Blocks     int              `json:"blocks"`
	Evidence   []StuckEvidence  `json:"evidence"`
	Controller *StuckController `json:"controller,omitempty"`
	Remedies   []StuckRemedy    `json:"remedies"`
	// Next is the number of the remedy to try next, counted from 1, 0 when all are dangerous or there is none.
	Next int `json:"next"`
}

// StuckController is who should act.
type StuckController struct {
	Name     string          `json:"name"`
	Liveness string          `json:"liveness"`
	Evidence []StuckEvidence `json:"evidence"`
}

// StuckEvidence is a fact that a cause rests on.
type StuckEvidence struct {
	Source string `json:"source"`
	Path   string `json:"path"`
	Value  string `json:"value"`
}

// StuckRemedy is a way out.
type StuckRemedy struct {
	// Way is the number that unstick takes: remedies that read the same are one way out.
	Way     int    `json:"way"`
	Risk    string `json:"risk"`
	Command string `json:"command"`
	// Operation is what the command changes, nil for nothing or what only a person
	// can change.
	Operation *StuckOperation `json:"operation,omitempty"`
	// Undo puts the object back as it was.
	Undo   string `json:"undo,omitempty"`
	Effect string `json:"effect"`
	// Leaks says in words what Loss has.
	Leaks string `json:"leaks,omitempty"`
	// Loss is what is lost or left behind.
	Loss []StuckLoss `json:"loss,omitempty"`
}

// StuckLoss is something that a remedy loses or leaves behind.
type StuckLoss struct {
	// Kind is data, corruption, object, leak, guard or rights.
	Kind string `json:"kind"`
	// Object is what is lost, where that is an object.
	Object *ObjectReference `json:"object,omitempty"`
	// Size is that of a volume.
	Size string `json:"size,omitempty"`
	// Unsure: whether it is lost could not be read.
	Unsure bool   `json:"unsure,omitempty"`
	What   string `json:"what"`
}

// StuckOperation is a change of one object.
type StuckOperation struct {
	Verb   string          `json:"verb"`
	Object ObjectReference `json:"object"`
	// Options are those of a delete.
	Options *metav1.DeleteOptions `json:"options,omitempty"`
	// Patch is a JSON patch.
	Patch []remedy.Step `json:"patch,omitempty"`
	// Value is what finalize takes away, taint puts on, and annotate sets.
	Value string `json:"value,omitempty"`
	// Grant is that of a ClusterRoleBinding.
	Grant *remedy.Grant `json:"grant,omitempty"`
	// Replicas are those of a scale.
	Replicas *remedy.Replicas `json:"replicas,omitempty"`
	// Save: the object is to be kept before.
	Save bool `json:"save,omitempty"`
}

// NewStuckReport returns the document of an explanation.
func NewStuckReport(s *graph.Snapshot, report *explain.Report) *StuckReport {
	document := &StuckReport{
		head:     headOf("StuckReport"),
		Complete: s.Complete() && len(report.Unread) == 0,
		Unlisted: NewUnlisted(s),
		Unread:   append([]string{}, evidence.Gaps(report.Unread)...),
		Objects:  []StuckObject{},
	}
	sorted := slices.SortedStableFunc(slices.Values(report.Objects), func(a, b explain.Explanation) int { return a.Object.Compare(b.Object) })
	causes := map[*explain.Cause]StuckCause{} // many objects wait for the same
	for i, c := range report.Causes {
		causes[c] = newStuckCause(c, i+1)
	}
	for _, o := range sorted {
		document.Objects = append(document.Objects, newStuckObject(o, causes))
	}
	return document
}

func newStuckObject(o explain.Explanation, causes map[*explain.Cause]StuckCause) StuckObject {
	object := StuckObject{
		Object: NewObjectReference(o.Object), Verdict: string(o.Verdict), Why: o.Why.String(), Chain: []StuckLink{}, Causes: []StuckCause{},
	}
	if !o.Since.IsZero() {
		object.Since = &metav1.Time{Time: o.Since.UTC()}
	}
	for _, link := range o.Chain {
		object.Chain = append(object.Chain, StuckLink{Object: NewObjectReference(link.Object), ID: link.Symptom, Because: link.Because.String()})
	}
	for _, f := range o.Findings {
		object.Causes = append(object.Causes, causes[f.Cause])
	}
	return object
}

func newStuckCause(c *explain.Cause, rank int) StuckCause {
	cause := StuckCause{
		ID: c.ID, Rank: rank, Object: NewObjectReference(c.Object), Verdict: string(c.Verdict), Summary: c.Summary.String(),
		Decides: strings.TrimLeft(c.Decides.String(), "; "),
		Blocks:  c.Blocks, Evidence: newStuckEvidence(c.Evidence), Remedies: []StuckRemedy{},
	}
	if !c.Until.IsZero() {
		cause.Until = &metav1.Time{Time: c.Until.UTC()}
	}
	if c.Controller != nil {
		cause.Controller = &StuckController{Name: c.Controller.Name.String(), Liveness: c.Controller.Liveness,
			Evidence: newStuckEvidence(c.Controller.Evidence)}
	}
	next := nextOf(c)
	way := map[*explain.Remedy]int{}
	for number, remedies := range c.Ways() {
		for _, r := range remedies {
			way[r] = number + 1
		}
	}
	for i := range c.Remedies {
		r := &c.Remedies[i]
		if r == next {
			cause.Next = i + 1
		}
		cause.Remedies = append(cause.Remedies, StuckRemedy{
			Way: way[r], Risk: string(r.Risk), Command: r.Command, Operation: newStuckOperation(r.Operation), Undo: r.Undo,
			Effect: r.Effect.String(),
			Leaks:  r.Leaks(), Loss: newStuckLosses(r.Loss),
		})
	}
	return cause
}

func newStuckLosses(losses []remedy.Loss) []StuckLoss {
	var documents []StuckLoss
	for _, l := range losses {
		document := StuckLoss{Kind: string(l.Kind), Size: l.Size, Unsure: l.Unsure, What: l.What.String()}
		if l.Object.Name != "" {
			document.Object = new(NewObjectReference(l.Object))
		}
		documents = append(documents, document)
	}
	return documents
}

func newStuckOperation(o *remedy.Op) *StuckOperation {
	if o == nil {
		return nil
	}
	return &StuckOperation{
		Verb: string(o.Verb), Object: NewObjectReference(o.Object), Options: o.Options, Patch: o.Patch, Value: o.Value, Grant: o.Grant,
		Replicas: o.Replicas, Save: o.Save,
	}
}

func newStuckEvidence(evidence []explain.Evidence) []StuckEvidence {
	result := []StuckEvidence{}
	for _, e := range evidence {
		result = append(result, StuckEvidence{e.Source.String(), e.Path, e.Value.String()})
	}
	return result
}

// WriteJSON writes the document as the JSON printer of cli-runtime does
// (printers.JSONPrinter), object after object: where much is stuck it has hundreds of
// megabytes, because each object has its causes.
func (r *StuckReport) WriteJSON(w io.Writer) error {
	const indent, none = "    ", `"objects": []`
	frame := *r
	frame.Objects = []StuckObject{}
	text, err := json.MarshalIndent(&frame, "", indent)
	if err != nil {
		return err
	}
	// Within a string its quotes would be escaped.
	at := bytes.LastIndex(text, []byte(none)) + len(none) - 1
	separator, end := "", ""
	for i := range r.Objects {
		object, err := json.MarshalIndent(&r.Objects[i], indent+indent, indent)
		if err != nil {
			return err
		}
		begin := separator + "\n" + indent + indent
		if i == 0 {
			begin = string(text[:at]) + begin
		}
		if _, err := w.Write(append([]byte(begin), object...)); err != nil {
			return err
		}
		separator, end = ",", "\n"+indent
	}
	if len(r.Objects) > 0 {
		text = append([]byte(end), text[at:]...)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// DeepCopyObject implements runtime.Object, which the printers of cli-runtime
// ask for. Documents are never changed, so the copy is shallow.
func (r *StuckReport) DeepCopyObject() runtime.Object {
	document := *r
	return &document
}
