// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Keep keeps a change in a journal as one that was made.
func Keep(j *Journal, w *Write, before *unstructured.Unstructured) error {
	finish, err := j.begin(w, before)
	if err != nil {
		return err
	}
	return finish(Done)
}

// DigestOf is the digest of changes to what a graph has.
func DigestOf(g *graph.Graph, ops ...remedy.Op) string {
	var writes []Write
	for _, op := range ops {
		writes = append(writes, Write{Op: op})
	}
	return digest(g, writes)
}
