// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/internal/draw"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// ReadUninstallPlan reads a document, in JSON or YAML. The error says why it is none.
func ReadUninstallPlan(text []byte) (*uninstall.Saved, error) {
	var d UninstallPlan
	document, more := firstDocument(text)
	if err := yaml.Unmarshal(document, &d); err != nil || d.Kind != "UninstallPlan" {
		return nil, errors.New("it is not an UninstallPlan, as -o json and -o yaml print it")
	}
	if more {
		return nil, errors.New("it has more than one document")
	}
	if err := yaml.UnmarshalStrict(document, &UninstallPlan{}); err != nil { // which has no effect, and no place in the digest
		return nil, errors.New("it has fields that an UninstallPlan does not have, or one twice")
	}
	if d.APIVersion != APIVersion {
		return nil, errors.New("its apiVersion is not " + APIVersion)
	}
	if d.Digest != d.digest() {
		return nil, errors.New("it was changed since it was saved, or saved by another version: its digest is not that of its content")
	}
	if d.Cluster == "" {
		return nil, errors.New("it does not say of which cluster it is: who made it is not allowed to read the namespace kube-system")
	}
	if len(d.Of) == 0 && d.Tool != "prune" {
		return nil, errors.New("it does not say who delivered the objects: another version saved it")
	}
	s := &uninstall.Saved{Tool: d.Tool, Namespace: d.Namespace, Name: d.Name, Command: d.Command, Of: d.Of,
		Cluster: d.Cluster, Manifests: d.Manifests}
	for _, b := range d.Barriers {
		for i := range b.Objects {
			if !d.mayKeep(&b.Objects[i]) {
				s.Goes = append(s.Goes, b.Objects[i].identity())
				if !d.returning(&b.Objects[i]) {
					s.Targets = append(s.Targets, b.Objects[i].identity())
				}
			}
		}
	}
	for i := range d.Outcome {
		o := &d.Outcome[i]
		if goes := o.Result == gc.Deleted || o.Result == gc.Remaining || o.Result == gc.Unknown; goes && !d.mayKeep(&o.Object) {
			s.Goes = append(s.Goes, o.Object.identity())
		}
	}
	for i := range d.Left {
		l := &d.Left[i]
		s.Left = append(s.Left, uninstall.Left{Object: l.Object.identity(), By: l.Belongs, Detail: l.Detail, Version: l.Version})
	}
	for _, k := range d.Kept {
		reference := ObjectReference{k.Object.APIVersion, k.Object.Kind, "", k.Object.Namespace, k.Object.Name, k.Object.UID}
		s.Kept = append(s.Kept, uninstall.Kept{Object: reference.identity(), Reason: k.Reason, Version: k.Version})
	}
	return s, nil
}

// firstDocument returns the first document of a text in JSON or YAML, empty if there is none, and whether there is anything else.
func firstDocument(text []byte) (document []byte, more bool) {
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text)+1)
	var first, second runtime.RawExtension
	if err := documents.Decode(&first); err != nil {
		return nil, false
	}
	return first.Raw, !errors.Is(documents.Decode(&second), io.EOF)
}

// returning reports whether an object was foreseen to exist again, under its name.
func (d *UninstallPlan) returning(r *ObjectReference) bool {
	made := func(k KeptObject) bool {
		return k.Reason == uninstall.HookMade && k.Object == NamedObject{APIVersion: r.APIVersion, Kind: r.Kind,
			Namespace: r.Namespace, Name: r.Name}
	}
	return slices.ContainsFunc(d.Kept, made) || slices.ContainsFunc(d.Returns, func(back Returning) bool { return back.Object == *r })
}

// mayKeep reports whether the tool's settings decide whether it deletes an object.
func (d *UninstallPlan) mayKeep(r *ObjectReference) bool {
	return slices.ContainsFunc(d.NotKnown, func(q OpenQuestion) bool {
		return (q.Cause == uninstall.Untracked || q.Cause == uninstall.MayKeep) && q.Object != nil && q.Object.Kind == r.Kind &&
			q.Object.Namespace == r.Namespace && q.Object.Name == r.Name
	})
}

// Leftovers are what a tool was to leave behind, of which cluster and by which plan.
type Leftovers struct {
	*uninstall.Saved
	// Plan names the file of the plan.
	Plan string
	// Where is the cluster, nil for a file, and Cluster its UID, empty when that could not be read.
	Where   *answer.Where
	Cluster types.UID
	// Time is when they were judged.
	Time time.Time
	// Delete is the command that takes the file.
	Delete string
	All    []uninstall.Leftover
}

// File writes them as a List of manifests, each with its UID: delete -f deletes exactly these objects. Kept ones are comments. Each object
// is one line, which no text of an object can end.
func (l *Leftovers) File(w io.Writer) error {
	out := bufio.NewWriter(w)
	comment := func(format string, args ...any) {
		fmt.Fprintln(out, "# "+Line(fmt.Sprintf(format, args...)))
	}
	comment("Left behind by: %s", l.Title())
	comment("Plan:           %s", l.Plan)
	comment("Cluster:        %s, UID %s", l.Where, cmp.Or(string(l.Cluster), "unknown"))
	comment("Printed:        %s; delete does not look again for what uses these objects", l.Time.UTC().Format(time.RFC3339))
	exists := only(l.All, func(l *uninstall.Leftover) bool { return !l.Gone })
	if len(exists) == 0 {
		comment("Nothing is left: all objects that were to be kept or left are gone.")
		return out.Flush()
	}
	comment("Preview:        %s --dry-run", l.Delete)
	comment("Delete:         %s", l.Delete)
	comment("The UIDs protect recreated objects; kubectl delete ignores UIDs. Remove the # before a kept object to include it.")
	fmt.Fprint(out, "apiVersion: v1\nkind: List\nitems:\n")
	for _, label := range leftoverLabels {
		for _, o := range only(exists, func(l *uninstall.Leftover) bool { return stateOf(l) == label.state }) {
			text := worded(o.Says())
			if o.Held == nil {
				text = worded(o.Belongs)
			}
			comment("%s: %s: %s", label.label, objectName(o.Object), WithInstances(text, o.Instances))
			manifest, err := manifestOf(o.Object)
			switch {
			case err != nil:
				return err
			case o.Held == nil:
				fmt.Fprintln(out, "- "+manifest)
			case o.Held.Why != uninstall.Replaced: // whose UID is gone
				fmt.Fprintln(out, "# - "+manifest)
			}
		}
	}
	return out.Flush()
}

// manifestOf is what delete -f has to know of an object, in JSON that is YAML, too, where some control characters would end a line.
func manifestOf(id graph.Identity) (string, error) {
	n := newNamedObject(id)
	text, err := json.Marshal(map[string]any{
		"apiVersion": n.APIVersion, "kind": n.Kind, "metadata": struct {
			Name      string    `json:"name"`
			Namespace string    `json:"namespace,omitempty"`
			UID       types.UID `json:"uid"`
		}{n.Name, n.Namespace, n.UID},
	})
	return draw.Escape(string(text), func(r rune) bool { return r <= 0xffff && drivesTerminal(r) }), err
}

// leftoverLabels are the comments on leftovers, in their order.
var leftoverLabels = []struct{ state, label string }{{leftoverFree, "left"}, {leftoverUnknown, "not known"}, {leftoverKept, "kept"}}

// The states of leftovers in a document.
const (
	leftoverFree    = "Removable"
	leftoverUnknown = "Unknown"
	leftoverKept    = "Kept"
	leftoverGone    = "Gone"
)

func stateOf(l *uninstall.Leftover) string {
	switch {
	case l.Gone:
		return leftoverGone
	case l.Unknown():
		return leftoverUnknown
	case l.Held != nil:
		return leftoverKept
	}
	return leftoverFree
}

// LeftoversReport is the document of what a tool has left behind.
type LeftoversReport struct {
	metav1.TypeMeta `json:",inline"`
	Complete        bool             `json:"complete"`
	Unlisted        []Unlisted       `json:"unlisted"`
	Tool            string           `json:"tool"`
	Namespace       string           `json:"namespace,omitempty"`
	Name            string           `json:"name,omitempty"`
	Command         []string         `json:"command,omitempty"`
	Cluster         types.UID        `json:"cluster,omitempty"`
	Leftovers       []LeftoverObject `json:"leftovers"`
}

// LeftoverObject is what became of an object.
type LeftoverObject struct {
	Object  NamedObject       `json:"object"`
	State   string            `json:"state"`
	Reason  uninstall.Holding `json:"reason,omitempty"`
	Message string            `json:"message,omitempty"`
	Belongs string            `json:"belongs,omitempty"`
	Changed bool              `json:"changed,omitempty"`
}

// Document describes them for programs.
func (l *Leftovers) Document(s *graph.Snapshot) *LeftoversReport {
	r := &LeftoversReport{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "LeftoversReport"}, Complete: s.Complete(), Unlisted: NewUnlisted(s),
		Tool: l.Tool, Namespace: l.Namespace, Name: l.Name, Command: l.Command, Cluster: l.Cluster, Leftovers: []LeftoverObject{},
	}
	for i := range l.All {
		l := &l.All[i]
		o := LeftoverObject{Object: newNamedObject(l.Object), State: stateOf(l), Message: l.Says().String(),
			Belongs: l.Belongs.String(), Changed: l.Changed}
		if l.Held != nil {
			o.Reason = l.Held.Why
		}
		r.Leftovers = append(r.Leftovers, o)
	}
	return r
}

// DeepCopyObject implements runtime.Object; the copy is shallow.
func (r *LeftoversReport) DeepCopyObject() runtime.Object {
	document := *r
	return &document
}

// Names prints those that exist, as kubectl's -o name does.
func (l *Leftovers) Names(w io.Writer) error {
	return ObjectNames(w, func(yield func(graph.Identity) bool) {
		for i := range l.All {
			if !l.All[i].Gone && !yield(l.All[i].Object) {
				return
			}
		}
	})
}
