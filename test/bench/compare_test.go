// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

// What was measured is compared with the cluster on the page whose size is next to it.
func TestRatios(t *testing.T) {
	page := measuredIn(strings.Split(`
| 51034 | bare download | 0.60 (0.45–1.15) | 1.00 | 0.21 (0.19–0.31) | 1.00 | 27.5 (27.0–27.7) | 0.70 |
| 51034 | kubectl gc check -A | 6.99 (5.99–7.32) | 11.60 | 0.46 (0.41–0.56) | 2.00 | 50.3 (49.0–58.3) | 3.06 |
| 202152 | kubectl gc check -A | 12.8 (10.4–14.6) | 7.41 | 1.14 (1.01–1.30) | 2.67 | 75.8 (75.1–77.5) | 13.8 |`, "\n"))
	now := []measured{{49_000, bare, 1, 1, 27}, {49_000, ourSettled, 12, 3.2, 50}, {49_000, "new", 1, 2, 3}}
	got := ratios(now, page, 50_000)
	_, got, _ = strings.Cut(got, "---|\n")
	want := `| bare download | 1.00 | 1.00 | 1.00 | 1.00 | 27 | 28 |  |
| kubectl gc check -A | 12.00 | 11.60 | 3.20 | 2.00 | 50 | 50 | 1.6 times as much |
| new | 1.00 | | 2.00 | | 3 | | not on the page |
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

// The page has what is compared with it.
func TestRecorded(t *testing.T) {
	page, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range measuredOn(string(page)) {
		found[m.name] = m.wall > 0.1 && m.cpu > 0.1 && m.peak > 1 && m.objects > 10_000
	}
	for _, name := range []string{bare, ourGraph, ourTree, ourCheck, ourSettled, ourExplain, ourCollect} {
		if !found[name] {
			t.Errorf("%s is not on the page", name)
		}
	}
}
