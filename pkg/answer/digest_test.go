// SPDX-License-Identifier: Apache-2.0

package answer

import "testing"

// The beginning of a digest stands for it, and less than that does not.
func TestDigest(t *testing.T) {
	const digest = "sha256:0123456789abcdef"
	for agreed, want := range map[string]bool{digest: true, Short(digest): true, "sha256:0123456789a": false, "sha256:0123456789ff": false, "": false} {
		if Agrees(agreed, digest) != want {
			t.Errorf("%q: %v", agreed, !want)
		}
	}
}
