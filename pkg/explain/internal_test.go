// SPDX-License-Identifier: Apache-2.0

package explain

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

func TestSetsFinalizer(t *testing.T) {
	const fields = `{"f:metadata":{"f:finalizers":{".":{},"v:\"example.com/a\"":{}}}}`
	for finalizer, want := range map[string]bool{"example.com/a": true, "example.com/b": false, ".": false, "": false} {
		if got := setsFinalizer([]byte(fields), finalizer); got != want {
			t.Errorf("setsFinalizer(%q) = %t, want %t", finalizer, got, want)
		}
	}
	if setsFinalizer([]byte("{"), "x") {
		t.Error("fields that do not parse set a finalizer")
	}
}
