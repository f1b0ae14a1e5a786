// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"errors"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
)

// What a preview says by itself.

// errOfSystem is why something is not written to.
var errOfSystem = errors.New("it belongs to the system, and the preview did not list it for deletion")

const (
	// ifOwnerGoes is of what goes with an owner of which it is not sure that it goes.
	ifOwnerGoes say.Word = "deleted if its owner %s/%s is"
	// garbageThen is of what no owner keeps any more.
	garbageThen say.Word = "it is garbage then: its other owner %s/%s does not exist, and the garbage collector deletes it"
	// afterEarlier is of what waits for an earlier wave.
	afterEarlier say.Word = "only once the objects of earlier waves are gone: %s"
)
