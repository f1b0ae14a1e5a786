// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"errors"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What a preview says by itself.

// errOfSystem is why something is not written to.
var errOfSystem = errors.New("it belongs to the system, and the preview did not list it for deletion")

// ifOwnerGoes is of what goes with an owner of which it is not sure that it goes.
func ifOwnerGoes(kind, name string) string {
	return "deleted if its owner " + kind + "/" + name + " is"
}

// afterEarlier is of what waits for an earlier wave.
func afterEarlier(first graph.Identity) string {
	return "only once the objects of earlier waves are gone: " + first.String()
}
