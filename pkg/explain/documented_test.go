// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestCausesAreDocumented looks for every cause and step that the scenarios show
// in the table of the documentation.
func TestCausesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/explain-stuck.md")
	if err != nil {
		t.Fatal(err)
	}
	var wants strings.Builder
	for _, c := range cases {
		wants.WriteString(c.want)
	}
	for _, c := range probeCases {
		wants.WriteString(c.want)
	}
	for _, c := range waiterCases {
		wants.WriteString(c.want)
	}
	ids := map[string]bool{}
	for _, match := range regexp.MustCompile(` ([a-z-]+)@`).FindAllStringSubmatch(wants.String(), -1) {
		ids[match[1]] = true
	}
	if len(ids) < 40 {
		t.Errorf("only %d identifiers in the scenarios", len(ids))
	}
	for id := range ids {
		if !strings.Contains(string(page), "\n| `"+id+"` | ") {
			t.Errorf("docs/explain-stuck.md has no row for %s", id)
		}
	}
}
