// SPDX-License-Identifier: Apache-2.0

package evidence

import "testing"

func TestSetsFinalizer(t *testing.T) {
	const fields = `{"f:metadata":{"f:finalizers":{".":{},"v:\"example.com/a\"":{}}}}`
	for finalizer, want := range map[string]bool{"example.com/a": true, "example.com/b": false, ".": false, "": false} {
		if got := SetsFinalizer([]byte(fields), finalizer); got != want {
			t.Errorf("SetsFinalizer(%q) = %t, want %t", finalizer, got, want)
		}
	}
	if SetsFinalizer([]byte("{"), "x") {
		t.Error("fields that do not parse set a finalizer")
	}
}
