// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const events = `{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/one"}
{"Action":"pass","Test":"TestA/one"}
{"Action":"output","Test":"TestA/two","Output":"    a_test.go:7: needs Kubernetes 1.36: the kubelet\n"}
{"Action":"skip","Test":"TestA/two"}
{"Action":"output","Test":"TestA/three","Output":"        testscript.go:558: SKIP: not served\n"}
{"Action":"output","Test":"TestA/three","Output":"        testscript.go:609: WORK=$WORK\n"}
{"Action":"skip","Test":"TestA/three"}
{"Action":"fail","Test":"TestA/four"}
{"Action":"fail","Test":"TestA"}
not JSON
{"Action":"pass","Test":"TestB"}
{"Action":"fail","Package":"p"}
`

func TestRead(t *testing.T) {
	r := &result{Version: "1.30.14", When: "2026-01-02", Skipped: map[string]string{}}
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	want := &result{
		Version: "1.30.14", When: "2026-01-02", Passed: 2, Failed: []string{"TestA/four"},
		Skipped: map[string]string{"TestA/two": "needs Kubernetes 1.36: the kubelet", "TestA/three": "not served"},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	dir := t.TempDir()
	newer := &result{Version: "1.37.0", When: "2026-01-03", Passed: 3}
	for _, kept := range []*result{newer, r} {
		if err := kept.save(dir); err != nil {
			t.Fatal(err)
		}
	}
	all, err := load(dir)
	if diff := cmp.Diff([]*result{r, newer}, all); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
	text := (&page{Results: all}).String()
	for _, line := range []string{"| 1.30.14 | 2 | 2 | 1 | 2026-01-02 |", "| `TestA/four` | failed |", "| `TestA/three` | skipped: not served |"} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
}

func TestDifferences(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.txt": "# What comes\n# first. And then.\nexec a\n[since:1.33] stdout b\n[!since:1.33] stdout c\n[since:1.37] stdout d\n",
		"b.txt": "# Nothing.\nexec a\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := differences(dir)
	want := []difference{{"1.33", "a", "What comes first"}, {"1.37", "a", "What comes first"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

// The page is what the command makes of the results, and nothing else.
func TestPageIsWritten(t *testing.T) {
	results, err := load("results")
	if err != nil {
		t.Fatal(err)
	}
	page := &page{Results: results}
	if page.Differences, err = differences("../e2e/testdata"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(page.String(), string(text)); diff != "" {
		t.Errorf("make test-versions writes the page (-what it would be +as it is):\n%s", diff)
	}
}
