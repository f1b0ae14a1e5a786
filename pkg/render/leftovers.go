// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/uninstall"
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
	s := &uninstall.Saved{Tool: d.Tool, Namespace: d.Namespace, Name: d.Name, Command: d.Command, Cluster: d.Cluster, Manifests: d.Manifests}
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
		s.Left = append(s.Left, uninstall.Left{Object: l.Object.identity(), By: l.Belongs, Detail: l.Detail, Version: l.version()})
	}
	for _, k := range d.Kept {
		reference := ObjectReference{k.Object.APIVersion, k.Object.Kind, "", k.Object.Namespace, k.Object.Name, k.Object.UID}
		s.Kept = append(s.Kept, uninstall.Kept{Object: reference.identity(), Reason: k.Reason, Version: k.version()})
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

// returning reports whether an object was foreseen to exist again.
func (d *UninstallPlan) returning(r *ObjectReference) bool {
	return slices.ContainsFunc(d.Returns, func(back Returning) bool { return back.Object == *r })
}

// mayKeep reports whether the tool's settings decide whether it deletes an object.
func (d *UninstallPlan) mayKeep(r *ObjectReference) bool {
	return slices.ContainsFunc(d.NotKnown, func(q OpenQuestion) bool {
		return q.Cause == uninstall.Untracked && q.Object != nil && q.Object.Kind == r.Kind && q.Object.Namespace == r.Namespace && q.Object.Name == r.Name
	})
}

func (v SeenVersion) version() uninstall.Version {
	return uninstall.Version{Resource: v.ResourceVersion, Generation: v.Generation}
}

// Leftovers writes what has become of what a tool was to leave behind: what is left, what is kept and why, and what is gone.
func Leftovers(w io.Writer, style Style, all []uninstall.Leftover, every bool) error {
	t := &rows{Style: style, out: bufio.NewWriter(w), all: every}
	for _, label := range leftoverLabels {
		some := only(all, func(l *uninstall.Leftover) bool { return stateOf(l) == label.state })
		t.each(label.mark, label.label, label.color, alikeOf(some, func(l *uninstall.Leftover) (graph.Identity, string) {
			return l.Object, WithInstances(l.Says(), l.Instances)
		}))
	}
	return t.out.Flush()
}

// leftoverLabels are the rows of leftovers, in their order.
var leftoverLabels = []struct {
	state string
	mark  mark
	label string
	color color
}{
	{leftoverFree, "", "left", noColor},
	{leftoverUnknown, question, "NOT KNOWN", yellow},
	{leftoverKept, "", "keeps", noColor},
	{leftoverGone, "", "gone already", noColor},
}

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
	Complete        bool       `json:"complete"`
	Unlisted        []Unlisted `json:"unlisted"`
	Tool            string     `json:"tool"`
	Namespace       string     `json:"namespace,omitempty"`
	Name            string     `json:"name,omitempty"`
	Command         []string   `json:"command,omitempty"`
	// Leftovers are as they are after what was deleted.
	Leftovers []LeftoverObject `json:"leftovers"`
	// Deletion is the DeletionPlan of a dry run, or the DeletionReport of a run, nil when nothing is to be deleted.
	Deletion runtime.Object `json:"deletion,omitempty"`
}

// LeftoverObject is what became of an object.
type LeftoverObject struct {
	Object  NamedObject       `json:"object"`
	State   string            `json:"state"`
	Reason  uninstall.Holding `json:"reason,omitempty"`
	Message string            `json:"message,omitempty"`
	Changed bool              `json:"changed,omitempty"`
}

// NewLeftoversReport describes leftovers for programs.
func NewLeftoversReport(s *graph.Snapshot, saved *uninstall.Saved, all []uninstall.Leftover, deletion runtime.Object) *LeftoversReport {
	r := &LeftoversReport{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "LeftoversReport"}, Complete: s.Complete(), Unlisted: NewUnlisted(s),
		Tool: saved.Tool, Namespace: saved.Namespace, Name: saved.Name, Command: saved.Command, Leftovers: []LeftoverObject{}, Deletion: deletion,
	}
	for i := range all {
		l := &all[i]
		o := LeftoverObject{Object: newNamedObject(l.Object), State: stateOf(l), Message: l.Says(), Changed: l.Changed}
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

// LeftoverNames prints the leftovers that exist, as kubectl's -o name does.
func LeftoverNames(w io.Writer, all []uninstall.Leftover) error {
	return ObjectNames(w, func(yield func(graph.Identity) bool) {
		for i := range all {
			if !all[i].Gone && !yield(all[i].Object) {
				return
			}
		}
	})
}
