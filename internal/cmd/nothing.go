// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// emptyHanded returns an error when an answer about a namespace, or about the
// cluster when that is empty, would rest on nothing: none of its types could be
// listed, or it does not exist. Whether it exists is asked only when nothing is in
// it.
func (g *globals) emptyHanded(ctx context.Context, s *session, snapshot *graph.Snapshot, namespace string) error {
	if !listedAny(s, snapshot, namespace) {
		return errors.Join(errors.New("listing objects: nothing could be read"), render.Warnings(g.ErrOut, snapshot))
	}
	if namespace == "" {
		return nil
	}
	for o := range snapshot.Objects() {
		if o.Namespace == namespace {
			return nil
		}
	}
	return missingNamespace(ctx, s)
}

// listedAny reports whether any type was listed in the namespace, or everywhere
// when that is empty.
func listedAny(s *session, snapshot *graph.Snapshot, namespace string) bool {
	if s.files != nil && snapshot.Len() > 0 {
		return true // files of kubectl's have objects, and never all
	}
	for _, resource := range s.reader.Resources() {
		gr := resource.GroupResource()
		if resource.Namespaced && snapshot.ListedIn(gr, namespace) || namespace == "" && len(snapshot.Listed(gr)) > 0 {
			return true
		}
	}
	return false
}
