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
{"Action":"skip","Test":"TestA/three"}
{"Action":"fail","Test":"TestA/four"}
{"Action":"fail","Test":"TestA"}
not JSON
{"Action":"pass","Test":"TestB"}
{"Action":"fail","Package":"p"}
`

func TestRead(t *testing.T) {
	r := &result{Version: "1.30.14", Skipped: map[string]string{}}
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	want := &result{
		Version: "1.30.14", Passed: 2, Failed: []string{"TestA/four"},
		Skipped: map[string]string{"TestA/two": "needs Kubernetes 1.36: the kubelet", "TestA/three": "not served"},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	text := (&page{When: "2026-01-02", Results: []*result{r}}).String()
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
