// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
)

// Whatever short answers leave out: each text of a report, its reasons, evidence, remedies, losses and paths, is in the document,
// or in the answer of -o wide.
func TestEveryFactIsSomewhere(t *testing.T) {
	facts, onlyWide, onlyDocument := 0, map[string]int{}, map[string]int{}
	explaintest.EachScenario(t, 1, func(t *testing.T, given string) {
		w := explaintest.Parse(t, given)
		report := w.Report(t, w.Graph(), true)
		wide := stuckWide(t, report)
		encoded, err := json.Marshal(render.NewStuckReport(w.Graph().Snapshot(), report))
		if err != nil {
			t.Fatal(err)
		}
		var document any
		if err := json.Unmarshal(encoded, &document); err != nil {
			t.Fatal(err)
		}
		known := strings.Join(leaves(document), "\x00")
		each(reflect.ValueOf(*report), "Report", func(path, text string) {
			inWide, inDocument := strings.Contains(wide, text), strings.Contains(known, text)
			switch facts++; {
			case !inWide && !inDocument:
				t.Errorf("%s is nowhere: %q", path, text)
			case !inDocument:
				onlyWide[path]++
			case !inWide:
				onlyDocument[path]++
			}
		})
	})
	t.Logf("%d texts; only in -o wide: %v; only in documents: %v", facts, onlyWide, onlyDocument)
	if facts < 10_000 {
		t.Errorf("only %d texts", facts)
	}
}

// notFacts are texts that are no facts of a report: the titles of kinds of causes, what is
// still to be read, operations, which commands say, and the risk that is left once data is kept, which decides about an order.
var notFacts = []string{".Kind.Title", ".Kind.Meaning", ".Kind.Class", ".Missed", ".Operation", ".Kept"}

// each calls f with all texts of a value.
func each(v reflect.Value, path string, f func(path, text string)) {
	if slices.ContainsFunc(notFacts, func(suffix string) bool { return strings.HasSuffix(path, suffix) }) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			each(v.Elem(), path, f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			each(v.Index(i), path, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				each(v.Field(i), path+"."+field.Name, f)
			}
		}
	case reflect.String:
		if text := v.String(); text != "" {
			f(path, text)
		}
	}
}

// leaves are the texts of a document.
func leaves(v any) []string {
	var all []string
	switch v := v.(type) {
	case string:
		all = append(all, v)
	case []any:
		for _, e := range v {
			all = append(all, leaves(e)...)
		}
	case map[string]any:
		for _, e := range v {
			all = append(all, leaves(e)...)
		}
	}
	return all
}
