// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"fmt"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
)

func noPick(e *NoPickError) string {
	switch {
	case e.Person:
		return fmt.Sprintf("way out %d is for a person", e.Way)
	case e.Way > 0 && e.Of == 1:
		return fmt.Sprintf("there is no way out %d: there is only 1", e.Way)
	case e.Way > 0:
		return fmt.Sprintf("there is no way out %d: there are %d", e.Way, e.Of)
	case e.Of == 1:
		return fmt.Sprintf("there is no cause %d: there is only 1", e.Cause)
	}
	return fmt.Sprintf("there is no cause %d: there are %d", e.Cause, e.Of)
}

func moved(e *MovedError) string {
	switch {
	case !e.Cause:
		return "there is no such cause any more"
	case e.Way == "":
		return "the cause is another by now"
	}
	return "the cause has no such way out any more"
}

const (
	wouldCollect say.Word = "the garbage collector would do this"
	collectedFor say.Word = ": %s"
	keepData     say.Word = "keep the data: retain the volume %s (%s)"
	unknownSize  say.Word = "of unknown size"
)
