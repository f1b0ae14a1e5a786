// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
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
//	fin-absent at ConfigMap/s/a                a cause
//	    safe: ...                              what can be done, at what risk: a change with its guards, and the one that
//	                                           takes it back; "look" at something; "by hand"; what it loses
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

// causes writes what a report has found out, with what becomes of its remedies if effect is not nil. How it is said stands in
// testdata/words.golden.
func causes(report *explain.Report, effect func(*explain.Cause, *remedy.Op) string) string {
	var text strings.Builder
	for _, c := range report.Causes {
		fmt.Fprintf(&text, "\n%s at %s", c.ID, c.Object)
		for _, r := range c.Remedies {
			fmt.Fprintf(&text, "\n    %s: %s", r.Risk, does(&r))
			if r.Operation != nil && effect != nil {
				fmt.Fprintf(&text, "\n        %s", effect(c, r.Operation))
			}
		}
	}
	return text.String()
}

// does writes what a remedy changes, loses, and how it is taken back.
func does(r *explain.Remedy) string {
	parts := []string{"by hand"}
	switch {
	case r.Operation != nil:
		parts = []string{changes(r.Operation)}
		if r.Temporary {
			parts = append(parts, "for a time")
		}
		if back := r.Operation.Back; back != nil {
			parts = append(parts, "back "+changes(back))
		}
	case r.Command != "":
		parts = []string{"look"}
	}
	for _, l := range r.Loss {
		loss := "loses " + string(l.Kind)
		if l.Object.Name != "" {
			loss += " " + l.Object.String()
		}
		if l.Size != "" {
			loss += " " + l.Size
		}
		if l.Unsure {
			loss += "?"
		}
		parts = append(parts, loss)
	}
	return strings.Join(parts, "; ")
}

// changes writes an operation, what it changes, and what has to be so for it.
func changes(op *remedy.Op) string {
	text := fmt.Sprintf("%s %s", op.Verb, op.Object)
	var guards []string
	if op.Options != nil {
		guards = append(guards, "/metadata/uid")
		if p := op.Options.PropagationPolicy; p != nil {
			text += " " + string(*p)
		}
		if s := op.Options.GracePeriodSeconds; s != nil {
			text += fmt.Sprintf(" grace %d", *s)
		}
	}
	for _, s := range op.Patch {
		value, _ := json.Marshal(s.Value)
		if s.Op == "test" {
			guards = append(guards, s.Path+" "+string(value))
			continue
		}
		text += " " + s.Op + " " + s.Path
		if s.Op != "remove" {
			text += " " + string(value)
		}
	}
	if op.Value != "" {
		text += " " + op.Value
	}
	if op.Replicas != nil {
		text += fmt.Sprintf(" %d to %d", op.Replicas.Current, op.Replicas.Wanted)
	}
	if op.Save {
		text += ", saved"
	}
	if op.Exact {
		guards = append(guards, "/metadata/resourceVersion")
	}
	if len(guards) > 0 {
		text += ", if " + strings.Join(guards, ", ")
	}
	return text
}

// TestWords compares testdata/words.golden with what the scenarios say: each sentence once, as it is said first, with the number of times.
func TestWords(t *testing.T) {
	times, first := map[string]int{}, map[string]string{}
	for _, cluster := range clusters(t) {
		for _, said := range says(parse(t, cluster).report(t)) {
			key := strings.Join(said.Words(), "\n")
			if times[key]++; times[key] == 1 {
				first[key] = said.String()
			}
		}
	}
	var lines []string
	for key, n := range times {
		if key != "" { // a name, or a message of the cluster
			lines = append(lines, fmt.Sprintf("%s (%d)\n", first[key], n))
		}
	}
	slices.Sort(lines)
	scenarios.Golden(t, "testdata/words.golden", strings.Join(lines, ""))
}

// says returns the sentences of a report.
func says(report *explain.Report) (all []say.Text) {
	for _, c := range report.Causes {
		all = append(all, c.Summary)
		for _, r := range c.Remedies {
			all = append(all, r.Effect)
			for _, l := range r.Loss {
				all = append(all, l.What)
			}
		}
	}
	for _, o := range report.Objects {
		all = append(all, o.Why)
		for _, f := range o.Findings {
			for _, l := range f.Chain {
				all = append(all, l.Because)
			}
		}
	}
	return all
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
