// SPDX-License-Identifier: Apache-2.0

package gctest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
)

// TestRoundTrip writes every scenario of the suite and reads it again.
func TestRoundTrip(t *testing.T) {
	for _, scenarios := range gctest.Scenarios(t) {
		for _, want := range scenarios {
			again, err := gctest.Parse(want.String())
			if err != nil || len(again) != 1 {
				t.Errorf("%s: read as %d scenarios, error %v", &want, len(again), err)
				continue
			}
			want.Steps, want.Outcomes = nil, nil // are not written
			if diff := cmp.Diff(want, again[0]); diff != "" {
				t.Errorf("%s(-want +got):\n%s", &want, diff)
			}
		}
	}
}

func TestParseError(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no scenario":          {"objects\n", "before the first scenario"},
		"unknown kind":         {"== x\nobjects\n  nothing/a\n", `unknown kind "nothing"`},
		"same object twice":    {"== x\nobjects\n  configmap/a\n  configmap/a\n", "a second object configmap/a"},
		"unknown word":         {"== x\nobjects\n  configmap/a colour=red\n", "unknown word"},
		"unknown owner":        {"== x\nobjects\n  configmap/a < b\ncollect\nexpect\n  configmap/a gone\n", "0 objects have this name"},
		"ambiguous owner":      {"== x\nobjects\n  configmap/a\n  secret/a\n  pod/p < a\ncollect\nexpect\n", "2 objects have this name"},
		"unknown action":       {"== x\nobjects\n  configmap/a\npaint configmap/a\n", `unknown action "paint"`},
		"no namespace":         {"== x\nobjects\n  configmap/a\ncollect in\n", `unknown word "in"`},
		"unknown target":       {"== x\nobjects\n  configmap/a\ndelete configmap/b Foreground\n", "there is no object configmap/b"},
		"nothing is done":      {"== x\nobjects\n  configmap/a\nexpect\n  configmap/a gone\n", "nothing is done"},
		"forgotten object":     {"== x\nobjects\n  configmap/a\ncollect\nexpect\n", "it is not said what is left of configmap/a"},
		"not a state":          {"== x\nobjects\n  configmap/a\ncollect\nexpect\n  configmap/a terminating\n", "is not a state"},
		"indented outside":     {"== x\n  configmap/a\n", "an indented line outside a block"},
		"brace with a mistake": {"== x\nobjects\n  configmap/a\n  pod/p < a{colour=red}\ncollect\nexpect\n", "unknown word"},
	} {
		if _, err := gctest.Parse(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
}

// TestCheck holds an end against the alternatives of a scenario.
func TestCheck(t *testing.T) {
	scenarios, err := gctest.Parse(`
== either both or none
objects
  configmap/a
  configmap/b < a!
delete configmap/a Foreground
expect
  configmap/a gone
either
  configmap/b gone
or
  configmap/b intact <
`)
	if err != nil {
		t.Fatal(err)
	}
	s := &scenarios[0]
	a, b := s.Objects[0].Path, s.Objects[1].Path
	gone := gctest.State{Fate: gctest.Gone}
	for _, test := range []struct {
		b    gctest.State
		want string
	}{
		{gone, ""},
		{gctest.State{}, ""},
		{s.Objects[1].Declared(), "- configmap/b gone\n+ configmap/b intact - < configmap/a!\n"},
	} {
		if diff := s.Check(map[gctest.Path]gctest.State{a: gone, b: test.b}); diff != test.want {
			t.Errorf("b is %s: the difference is %q, want %q", test.b, diff, test.want)
		}
	}
}

// FuzzParse reads any text without a panic, and what it takes it can write and read
// again.
func FuzzParse(f *testing.F) {
	for _, scenarios := range gctest.Scenarios(f) {
		for _, s := range scenarios {
			f.Add(s.String())
		}
	}
	f.Add("== x\nobjects\n  configmap/a < a{uid=nobody}!*\ncollect in .\nexpect\n  configmap/a gone\n")
	f.Fuzz(func(t *testing.T, text string) {
		scenarios, err := gctest.Parse(text)
		if err != nil {
			return
		}
		for i := range scenarios {
			written := scenarios[i].String()
			again, err := gctest.Parse(written)
			if err != nil || len(again) != 1 {
				t.Fatalf("%q is written as\n%s\nand read as %d scenarios, error %v", text, written, len(again), err)
			}
			if twice := again[0].String(); twice != written {
				t.Errorf("(-written once +twice):\n%s", cmp.Diff(written, twice))
			}
		}
	})
}
