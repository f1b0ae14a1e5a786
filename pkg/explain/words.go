// SPDX-License-Identifier: Apache-2.0

package explain

// All that explain says is in words.go and words_*.go, a file for each subject. The rules choose values, and nothing
// reads a sentence.

// Common facts and reasons.
const (
	notTerminated = "it is not being deleted"
	andMore       = "and %d more like it"
	unexamined    = "who removes the finalizers of %s beyond the first %d: it has %d"

	undeleted = "%s, which is not being deleted"

	removeFinalizer = "remove this finalizer alone, once you have done its cleanup yourself"
)
