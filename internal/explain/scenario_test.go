// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/scenarios"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// TestScenarios runs the scenarios in testdata/*.txt, a file for each first cause. A
// case is a cluster, as explaintest.World reads it, and after a line with -- what is
// said of it:
//
//	ConfigMap/s/a: Stuck fin-absent@a*1        an object, its verdict, its causes: the kind, the
//	                                           object's name, and how many objects that holds up
//	ConfigMap/s/a: it fits ...                 why the garbage collector may have deleted it
//	fin-absent at ConfigMap/s/a: ...           a cause
//	    safe: ...                              what can be done, at what risk
//	        kubectl ...
//	        until the objects are gone         of what is taken back then
//	        frees ...; then ...; held ...      what becomes of the objects that the cause blocks, as it is played
//	                                           in memory (see effects)
func TestScenarios(t *testing.T) { scenarios.Run(t, answer) }

// answer returns the case with what is said.
func answer(t *testing.T, body string) string {
	given, _, ok := strings.Cut(body, "\n--\n")
	if !ok {
		t.Fatal("no line --")
	}
	cluster := parse(t, given)
	report := cluster.report(t)
	return given + "\n--\n" + verdicts(report) + causes(report, effects(t, cluster, report)) + body[len(strings.TrimRight(body, "\n")):]
}

// causes writes what is said of the causes of a report, with what becomes of their remedies if effect is not nil.
func causes(report *explain.Report, effect func(*explain.Cause, *remedy.Op) string) string {
	var text strings.Builder
	for _, c := range report.Causes {
		fmt.Fprintf(&text, "\n%s at %s: %s", c.ID, c.Object, c.Summary)
		for _, r := range c.Remedies {
			fmt.Fprintf(&text, "\n    %s: %s", r.Risk, r.Effect)
			if leaks := r.Leaks(); leaks != "" {
				fmt.Fprintf(&text, "; leaves behind: %s", leaks)
			}
			if r.Command != "" {
				fmt.Fprintf(&text, "\n        %s", r.Command)
			}
			if r.Temporary {
				text.WriteString("\n        until the objects are gone")
			}
			if r.Undo != "" {
				fmt.Fprintf(&text, "\n        undo: %s", r.Undo)
			}
			if r.Operation != nil && effect != nil {
				fmt.Fprintf(&text, "\n        %s", effect(c, r.Operation))
			}
		}
	}
	return text.String()
}

// clusters returns the clusters of all scenarios.
func clusters(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range strings.Split(string(text), "\n== ")[1:] {
			_, body, _ := strings.Cut(c, "\n")
			given, _, _ := strings.Cut(body, "\n--\n")
			all = append(all, given)
		}
	}
	return all
}
