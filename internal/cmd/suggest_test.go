// SPDX-License-Identifier: Apache-2.0

package cmd

import "testing"

func TestNearest(t *testing.T) {
	commands := []string{"tree", "delete", "collect", "check", "explain-stuck", "graph", "snapshot", "diff", "version"}
	for word, want := range map[string]string{
		"tre": "tree", "teer": "tree", "tere": "tree", "delte": "delete", "Delete": "delete", "explain": "explain-stuck", "explain-stuk": "explain-stuck",
		"explain_stuck": "explain-stuck", "chekc": "check", "x": "", "": "", "graf": "graph", "snapshots": "snapshot", "get": "",
	} {
		if got := nearest(word, commands); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if d := distance("kitten", "sitting"); d != 3 {
		t.Errorf("distance = %d", d)
	}
}
