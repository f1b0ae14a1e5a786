// SPDX-License-Identifier: Apache-2.0

package answer

import "strings"

// shortDigest is the length of "sha256:" and twelve digits.
const shortDigest = 19

// Short returns the beginning of a digest that stands for it on a terminal.
func Short(digest string) string { return digest[:min(len(digest), shortDigest)] }

// Agrees reports whether what a person has agreed to is a digest, or so much of it as Short returns.
func Agrees(agreed, digest string) bool {
	return agreed == digest || len(agreed) >= shortDigest && strings.HasPrefix(digest, agreed)
}
