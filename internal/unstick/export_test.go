// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// DigestOf is the digest of changes to what a graph has.
func DigestOf(g *graph.Graph, ops ...remedy.Op) string {
	var writes []Write
	for _, op := range ops {
		writes = append(writes, Write{Op: op})
	}
	return digest(g, writes)
}
