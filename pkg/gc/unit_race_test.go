// SPDX-License-Identifier: Apache-2.0

package gc

import "testing"

// Whoever else deletes the target at the same time, and whoever gives it dependents
// meanwhile: the job is carried on.
func TestOthersAtTheTarget(t *testing.T) {
	for _, s := range []session{
		{
			name:     "which somebody began to delete, as the user wants it",
			world:    "configmap/a\nconfigmap/b < configmap/a!",
			do:       "delete a Foreground",
			script:   "DELETE a: foreground a; 409",
			outcomes: "configmap/a Deleted\nconfigmap/b Deleted",
		},
		{
			name:     "which this run began to delete, by a request without an answer",
			world:    "configmap/a\nconfigmap/b < configmap/a!",
			do:       "delete a Foreground",
			script:   "DELETE a: mute; foreground a; loud; 504",
			outcomes: "configmap/a Deleted\nconfigmap/b Deleted",
		},
		{
			name:     "which got a dependent, to be orphaned with the others",
			world:    "configmap/a\nconfigmap/b < configmap/a\nconfigmap/c",
			do:       "delete a Orphan",
			script:   "DELETE a: own c < configmap/a",
			outcomes: "configmap/a Deleted\nconfigmap/b Orphaned\nconfigmap/c Orphaned",
		},
	} {
		t.Run(s.name, s.test)
	}
}
