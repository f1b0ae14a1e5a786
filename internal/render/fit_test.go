// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// rowsOf are rows of one Deployment and its Pod, as a tree has them.
func rowsOf(namespaces ...string) func(func([]cell) bool) {
	return func(yield func([]cell) bool) {
		for i, namespace := range namespaces {
			name := []string{"Deployment/web", "`-Pod/web-1"}[i]
			row := plain(namespace, name, "1/1", "Running", "5m", "Solid", "true", "terminating for 3s; finalizers: example.com/hold")
			row[7].under = "  "
			if !yield(row) {
				return
			}
		}
	}
}

// What a table gives up on a narrow terminal: the namespace if it is one, then the
// details go below, then columns by their importance. Names stay whole.
func TestNarrowTable(t *testing.T) {
	header := plain("NAMESPACE", "NAME", "READY", "STATUS", "AGE", "REFERENCE", "BLOCKS", "DETAILS")
	one, two := []string{"a", "a"}, []string{"a", "b"}
	for _, test := range []struct {
		width      int
		namespaces []string
		want       string // the first row, and what is below it
	}{
		{0, one, "a           Deployment/web   1/1     Running   5m    Solid       true     terminating for 3s; finalizers: example.com/hold"},
		{200, one, "a           Deployment/web   1/1     Running   5m    Solid       true     terminating for 3s; finalizers: example.com/hold"},
		{118, one, "Deployment/web   1/1     Running   5m    Solid       true     terminating for 3s; finalizers: example.com/hold"},
		{118, two, "a           Deployment/web   1/1     Running   5m    Solid       true\n      terminating for 3s; finalizers: example.com/hold"},
		{80, one, "Deployment/web   1/1     Running   5m    Solid       true\n      terminating for 3s; finalizers: example.com/hold"},
		{50, one, "Deployment/web   1/1     Running   5m    Solid\n      terminating for 3s; finalizers:\n      example.com/hold"},
		{45, one, "Deployment/web   Running   5m    Solid\n      terminating for 3s; finalizers:\n      example.com/hold"},
		{10, one, "Deployment/web   Solid\n      terminating\n      for\n      3s;\n      finalizers:\n      example.com/hold"},
	} {
		table := table{style: Style{Width: test.width}, header: header, rows: rowsOf(test.namespaces...), bare: true, fitting: &fitting{same: 0, drop: []int{6, 2, 4, 3}, below: 7}}
		var out bytes.Buffer
		if err := table.write(&out); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.HasPrefix(got, test.want+"\n") {
			t.Errorf("width %d, %v: got\n%swant\n%s", test.width, test.namespaces, got, test.want)
		}
	}
}

// A text that is wrapped has the same words in the same order, and no line that could
// have been broken is too long.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching("[a-zé/]{1,12}"), 1, 20).Draw(t, "words")
		width, begun := rapid.IntRange(1, 40).Draw(t, "width"), rapid.IntRange(0, 10).Draw(t, "begun")
		lines := wrap(strings.Join(words, " "), width, begun, "  ")
		if got := strings.Fields(strings.Join(lines, " ")); !slices.Equal(got, words) {
			t.Fatalf("got %q of %q", got, words)
		}
		for i, line := range lines {
			long := utf8.RuneCountInString(line)
			if i == 0 {
				long += begun
			}
			if len(strings.Fields(line)) > 1 && long > width {
				t.Fatalf("line %d is %d long: %q", i, long, line)
			}
		}
	})
}
