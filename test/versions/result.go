// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// result is what the tests said of a version.
type result struct {
	Version string
	// When is the day.
	When   string
	Passed int
	Failed []string
	// Skipped has the reasons by the names of tests.
	Skipped map[string]string
}

// save writes the result into a file of its own.
func (r *result) save(dir string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, r.Version+".json"), append(data, '\n'), 0o644)
}

// load reads all results, the oldest version first.
func load(dir string) ([]*result, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []*result
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r := &result{}
		if err := json.Unmarshal(data, r); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *result) int {
		if version.MustParseGeneric(a.Version).LessThan(version.MustParseGeneric(b.Version)) {
			return -1
		}
		return 1
	})
	return all, nil
}

// event is a line of go test -json (cmd/test2json).
type event struct {
	Action, Package, Test, Output string
}

// reason matches what t.Skip and the command skip of a session print.
var reason = regexp.MustCompile(`^\s+\S+\.go:\d+: (?:SKIP: )?(.*)\n?$`)

// read takes the events of a run in. Of a test with subtests only these count.
func (r *result) read(stream io.Reader) error {
	said, ended := map[string]string{}, map[string]string{}
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		switch e.Action {
		case "output":
			// The reason comes first; a session logs what it did after that.
			if match := reason.FindStringSubmatch(e.Output); match != nil && said[e.Test] == "" {
				said[e.Test] = match[1]
			}
			if strings.Contains(e.Output, "--- FAIL") || strings.Contains(e.Output, "FAIL:") {
				fmt.Fprint(os.Stderr, e.Output)
			}
		case "pass", "fail", "skip":
			ended[e.Test] = e.Action
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading what go test says: %w", err)
	}
	for test, how := range ended {
		if hasSubtests(test, ended) {
			continue
		}
		switch how {
		case "pass":
			r.Passed++
		case "fail":
			r.Failed = append(r.Failed, test)
		case "skip":
			r.Skipped[test] = said[test]
		}
	}
	slices.Sort(r.Failed)
	return nil
}

func hasSubtests(test string, all map[string]string) bool {
	for other := range all {
		if strings.HasPrefix(other, test+"/") {
			return true
		}
	}
	return false
}
