// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"errors"
	"io"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/uninstall"
)

// ReadUninstallPlan reads a document, in JSON or YAML. The error says why it is none.
func ReadUninstallPlan(text []byte) (*uninstall.Saved, error) {
	var d UninstallPlan
	if err := yaml.Unmarshal(text, &d); err != nil || d.Kind != "UninstallPlan" {
		return nil, errors.New("it is not an UninstallPlan, as -o json prints it")
	}
	if d.APIVersion != APIVersion {
		return nil, errors.New("its apiVersion is not " + APIVersion)
	}
	if d.Cluster == "" {
		return nil, errors.New("it does not say of which cluster it is: who made it is not allowed to read the namespace kube-system")
	}
	s := &uninstall.Saved{Tool: d.Tool, Namespace: d.Namespace, Name: d.Name, Command: d.Command, Cluster: d.Cluster}
	for _, b := range d.Barriers {
		for i := range b.Objects {
			if !d.mayKeep(&b.Objects[i]) {
				s.Goes = append(s.Goes, b.Objects[i].identity())
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
		s.Left = append(s.Left, uninstall.Left{Object: l.Object.identity(), By: l.Belongs, Detail: l.Detail})
	}
	for _, k := range d.Kept {
		reference := ObjectReference{k.Object.APIVersion, k.Object.Kind, "", k.Object.Namespace, k.Object.Name, k.Object.UID}
		s.Kept = append(s.Kept, uninstall.Kept{Object: reference.identity(), Reason: k.Reason})
	}
	return s, nil
}

// mayKeep reports whether the tool's settings decide whether it deletes an object.
func (d *UninstallPlan) mayKeep(r *ObjectReference) bool {
	return slices.ContainsFunc(d.NotKnown, func(q OpenQuestion) bool {
		return q.Cause == uninstall.Untracked && q.Object != nil && q.Object.Kind == r.Kind && q.Object.Namespace == r.Namespace && q.Object.Name == r.Name
	})
}

// Leftovers writes what has become of what a tool was to leave behind: what is left, what is kept and why, and what is gone.
func Leftovers(w io.Writer, style Style, all []uninstall.Leftover) error {
	t := &rows{Style: style, out: bufio.NewWriter(w), all: true}
	var held, left, gone []uninstall.Leftover
	for _, l := range all {
		switch {
		case l.Gone:
			gone = append(gone, l)
		case l.Held != nil:
			held = append(held, l)
		default:
			left = append(left, l)
		}
	}
	names := func(l *uninstall.Leftover) (graph.Identity, string) { return l.Object, "" }
	for _, rows := range []struct {
		label string
		all   []sharing
	}{
		{"left", alikeOf(left, names)},
		{"keeps", alikeOf(held, func(l *uninstall.Leftover) (graph.Identity, string) { return l.Object, ": " + l.Held.Says() })},
		{"gone already", alikeOf(gone, names)},
	} {
		for _, r := range rows.all {
			t.row("", rows.label, noColor, allNames(r.ids)+r.text)
		}
	}
	return t.out.Flush()
}
