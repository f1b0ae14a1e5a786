// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// StuckReport is the document that explain-stuck prints.
type StuckReport struct {
	metav1.TypeMeta `json:",inline"`
	Complete        bool       `json:"complete"`
	Unlisted        []Unlisted `json:"unlisted"`
	// Unread is what was looked at besides the lists and could not be read.
	Unread  []string      `json:"unread"`
	Objects []StuckObject `json:"objects"`
}

// StuckObject is an object in a StuckReport.
type StuckObject struct {
	Object  ObjectReference `json:"object"`
	Verdict string          `json:"verdict"`
	Since   *metav1.Time    `json:"since,omitempty"`
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
	ID         string           `json:"id"`
	Object     ObjectReference  `json:"object"`
	Verdict    string           `json:"verdict"`
	Summary    string           `json:"summary"`
	Until      *metav1.Time     `json:"until,omitempty"`
	Blocks     int              `json:"blocks"`
	Evidence   []StuckEvidence  `json:"evidence"`
	Controller *StuckController `json:"controller,omitempty"`
	Remedies   []StuckRemedy    `json:"remedies"`
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
	Risk    string `json:"risk"`
	Command string `json:"command"`
	// Operation is what the command changes, nil for nothing or what only a person
	// can change.
	Operation *StuckOperation `json:"operation,omitempty"`
	// Undo puts the object back as it was.
	Undo   string `json:"undo,omitempty"`
	Effect string `json:"effect"`
	Leaks  string `json:"leaks,omitempty"`
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
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "StuckReport"},
		Complete: s.Complete() && len(report.Unread) == 0,
		Unlisted: NewUnlisted(s),
		Unread:   append([]string{}, report.Unread...),
		Objects:  []StuckObject{},
	}
	sorted := slices.SortedStableFunc(slices.Values(report.Objects), func(a, b explain.Explanation) int { return a.Object.Compare(b.Object) })
	causes := map[*explain.Cause]StuckCause{} // many objects wait for the same
	for _, o := range sorted {
		document.Objects = append(document.Objects, newStuckObject(o, causes))
	}
	return document
}

// newStuckObject adds the causes that it makes to those that were made.
func newStuckObject(o explain.Explanation, causes map[*explain.Cause]StuckCause) StuckObject {
	object := StuckObject{
		Object: NewObjectReference(o.Object), Verdict: string(o.Verdict), Chain: []StuckLink{}, Causes: []StuckCause{},
	}
	if !o.Since.IsZero() {
		object.Since = &metav1.Time{Time: o.Since.UTC()}
	}
	for _, link := range o.Chain {
		object.Chain = append(object.Chain, StuckLink{Object: NewObjectReference(link.Object), ID: link.Symptom, Because: link.Because})
	}
	for _, f := range o.Findings {
		if _, made := causes[f.Cause]; !made {
			causes[f.Cause] = newStuckCause(f.Cause)
		}
		object.Causes = append(object.Causes, causes[f.Cause])
	}
	return object
}

func newStuckCause(c *explain.Cause) StuckCause {
	cause := StuckCause{
		ID: c.ID, Object: NewObjectReference(c.Object), Verdict: string(c.Verdict), Summary: c.Summary,
		Blocks: c.Blocks, Evidence: newStuckEvidence(c.Evidence), Remedies: []StuckRemedy{},
	}
	if !c.Until.IsZero() {
		cause.Until = &metav1.Time{Time: c.Until.UTC()}
	}
	if c.Controller != nil {
		cause.Controller = &StuckController{Name: c.Controller.Name, Liveness: c.Controller.Liveness, Evidence: newStuckEvidence(c.Controller.Evidence)}
	}
	for _, r := range c.Remedies {
		cause.Remedies = append(cause.Remedies, StuckRemedy{
			Risk: string(r.Risk), Command: r.Command, Operation: newStuckOperation(r.Operation), Undo: r.Undo, Effect: r.Effect, Leaks: r.Leaks,
		})
	}
	return cause
}

func newStuckOperation(o *remedy.Op) *StuckOperation {
	if o == nil {
		return nil
	}
	return &StuckOperation{
		Verb: string(o.Verb), Object: NewObjectReference(o.Object), Options: o.Options, Patch: o.Patch, Value: o.Value, Grant: o.Grant, Replicas: o.Replicas, Save: o.Save,
	}
}

func newStuckEvidence(evidence []explain.Evidence) []StuckEvidence {
	result := []StuckEvidence{}
	for _, e := range evidence {
		result = append(result, StuckEvidence(e))
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
