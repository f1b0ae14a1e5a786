// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"cmp"
	"fmt"
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

// collected says what a write of the garbage collector is for.
func collected(reason string) string {
	if reason == "" {
		return "the garbage collector would do this"
	}
	return "the garbage collector would do this: " + reason
}

func keepData(s *Stake) string {
	return fmt.Sprintf("keep the data: retain the volume %s (%s)", s.Volume.Name, cmp.Or(s.Size, "of unknown size"))
}
