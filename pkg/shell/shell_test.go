// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"os/exec"
	"testing"
)

func TestQuote(t *testing.T) {
	for _, word := range []string{"plain", "", "a b", "it's", "$(id)`id`", `"\`, "a;b", "*?"} {
		out, err := exec.Command("sh", "-c", "printf %s "+Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("Quote(%q) = %s, which the shell reads as %q (%v)", word, Quote(word), out, err)
		}
	}
}
