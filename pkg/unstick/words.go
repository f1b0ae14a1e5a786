// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"cmp"
	"fmt"
)

func noPick(e *NoPickError) string {
	switch {
	case e.Advice != nil:
		return fmt.Sprintf("way out %d is for a person: %s", e.Way, e.Advice.Effect)
	case e.Way > 0 && e.Of == 1:
		return fmt.Sprintf("there is no way out %d: there is only 1", e.Way)
	case e.Way > 0:
		return fmt.Sprintf("there is no way out %d: there are %d", e.Way, e.Of)
	case e.Of == 1:
		return fmt.Sprintf("there is no cause %d: there is only 1", e.Cause)
	}
	return fmt.Sprintf("there is no cause %d: there are %d", e.Cause, e.Of)
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

// Words says in a few words why a change was skipped, refused or not taken back.
func Words(o Obstacle) string {
	return map[Obstacle]string{
		Gone:        "the object does not exist any more",
		Exists:      "an object of this name exists again",
		Undone:      "it is as it was before",
		Terminating: "the object is being deleted, and the API server accepts no new finalizers then",
		Ownerless:   "its owner does not exist any more, and the garbage collector would delete the object",
		Destroys:    "to put it back would destroy the data of the volume: its claim does not exist any more, or is being deleted",
		Changed:     "others have changed it since",
		Final:       "this change cannot be taken back",
		Unread:      "it could not be read",
	}[o]
}
