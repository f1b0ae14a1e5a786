// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"os/exec"
	"strings"
	"testing"
)

// quotable are words that mean something to a shell.
var quotable = []string{"plain", "", "a b", "it's", "$(id)`id`", `"\`, "a;b", "*?", "-n", "a\nb", "\x1b[2J", "\xff", "~", "#", "{a,b}", "!!"}

// Whatever a word is, the shell reads what it was.
func FuzzQuote(f *testing.F) {
	for _, word := range quotable {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if strings.Contains(word, "\x00") {
			return // no argument can have it
		}
		out, err := exec.Command("sh", "-c", "printf %s "+Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("Quote(%q) = %s, which the shell reads as %q (%v)", word, Quote(word), out, err)
		}
	})
}
