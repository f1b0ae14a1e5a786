// SPDX-License-Identifier: Apache-2.0

package change

import "fmt"

// fencing says what a change is for by which a write without an answer is kept from being made late.
const fencing = "a change of which no answer came must not be made any more"

// reviving says what the changes of a revival are for.
const reviving = "its deletion is a mistake"

// undoing says what a change is for that takes another one back.
func undoing(number int, dir string) string {
	return fmt.Sprintf("undo of change %d in %s", number, dir)
}

// recreating says what a change is for that recreates what a run has deleted.
func recreating(dir string) string { return "undo of the deletion in " + dir }

// Words says in a few words why a change was skipped, refused or not taken back.
func Words(o Obstacle) string {
	return map[Obstacle]string{
		Gone:        "the object does not exist any more",
		Replaced:    "another object has its name by now, with this change: look whether it is meant to have it",
		Going:       "it still exists, and is being deleted",
		Exists:      "an object of this name exists again",
		Undone:      "it is as it was before",
		Terminating: "the object is being deleted, and the API server accepts no new finalizers then",
		Ownerless:   "its owner does not exist any more, or is being deleted, and the garbage collector would delete the object",
		Destroys:    "to put it back could destroy the data of a volume: its claim is gone or deleted, or might be",
		Changed:     "others have changed it since",
		Late:        "it is not there, but no answer to it ever came: that it is made late is prevented",
		Incomplete:  "not all that the run has deleted is recreated: it would start empty, or its data be lost",
		Final:       "this change cannot be taken back",
		Unread:      "it could not be read",
	}[o]
}
