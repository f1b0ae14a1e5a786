// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

// A redacted snapshot has the same verdicts, causes and remedies as one that is not, of
// the clusters that the scenarios of explanations have: of each in the long form.
func TestRedactedVerdicts(t *testing.T) {
	stuck := 0
	explaintest.EachScenario(t, nightly.Of(4, 1), func(t *testing.T, given string) {
		plain, _ := explaintest.Parse(t, given).Snapshot(t, false)
		other, originals := explaintest.Parse(t, given).Snapshot(t, true)
		want, got := verdictsIn(t, plain, nil), verdictsIn(t, other, originals)
		stuck += len(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-names +redacted):\n%s", diff)
		}
	})
	if stuck < 90 {
		t.Errorf("only %d objects and causes", stuck)
	}
}

// verdictsIn returns what is said of what is stuck in a snapshot, with the original words.
func verdictsIn(t *testing.T, snapshot []byte, originals map[string]string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "snapshot")
	if err := os.WriteFile(file, snapshot, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	Run(t.Context(), []string{"kubectl-gc", "explain-stuck", "-A", "-o", "json", "--from", file}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &said})
	text := out.String()
	if len(originals) > 0 {
		text = regexp.MustCompile(`\b(`+strings.Join(slices.Collect(maps.Keys(originals)), "|")+`)\b`).ReplaceAllStringFunc(text, func(w string) string { return originals[w] })
	}
	kinds, err := explaintest.Kinds([]byte(text))
	if err != nil {
		t.Fatal(err, text, &said)
	}
	return kinds
}
