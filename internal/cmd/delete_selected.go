// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// selection is what chose the objects that were not named; chose reports whether
// there is one. Of files -l chooses by the labels that they state, as kubectl does,
// and then by those that the objects have.
func (o *deleteOptions) selection() (s cluster.Selection, chose bool) {
	s = cluster.Selection{Labels: o.selector, Fields: o.fieldSelector}
	return s, o.all || s != cluster.Selection{}
}

// choose returns what makes a target of an object that was found in one of the versions, with the
// question whether the selection still has it if it was not named.
func (o *deleteOptions) choose(versions map[types.UID]string) func(graph.Identity) gc.Target {
	selection, chose := o.selection()
	return func(id graph.Identity) gc.Target {
		t := gc.Target{Identity: id}
		if chose {
			t.Matched, t.Reselect = versions[id.UID], reselects(id, selection)
		}
		return t
	}
}

// selector asks a server whether a selection has an object.
type selector interface {
	Selected(ctx context.Context, id graph.Identity, selection cluster.Selection) (graph.Object, bool, error)
}

// reselects returns what asks a server whether the selection still has an object. A
// preview has no other labels and fields than those that matched, and nobody changes
// them.
func reselects(id graph.Identity, selection cluster.Selection) func(context.Context, gc.Server) (graph.Object, bool, error) {
	return func(ctx context.Context, server gc.Server) (graph.Object, bool, error) {
		if live, ok := server.(selector); ok {
			return live.Selected(ctx, id, selection)
		}
		o, err := server.Get(ctx, id.Resource, id.Namespace, id.Name)
		return o, err == nil, err
	}
}

// reselect drops objects that have changed between their selection and the lists, or were
// chosen in a file, and do not match. One that changes once more has a version that no
// delete of the run states, and is asked about then.
func (o *deleteOptions) reselect(ctx context.Context, s *session, snapshot *graph.Snapshot, found []graph.Object) ([]graph.Object, error) {
	selection, chose := o.selection()
	if !chose || selection == (cluster.Selection{}) {
		return found, nil
	}
	var kept []graph.Object
	var errs []error
	for _, f := range found {
		if now, _ := snapshot.Object(f.UID); now.ResourceVersion == f.ResourceVersion && !o.fromFiles() {
			kept = append(kept, f)
			continue
		}
		now, selected, err := s.reader.Selected(ctx, f.Identity(), selection)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("asking whether %s still matches the selector: %w", f.Identity(), err))
		case selected && now.UID == f.UID:
			kept = append(kept, now)
		default:
			fmt.Fprintf(o.ErrOut, "%s does not match the selector.\n", f.Identity())
		}
	}
	return kept, errors.Join(errs...)
}
