// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// page is docs/compatibility.md.
type page struct {
	Results     []*result
	Differences []difference
}

// difference is a session that expects something else from a version on.
type difference struct {
	Since, Session, About string
}

const head = `# Which versions of Kubernetes

The tests that need a control plane were run against kube-apiserver and kube-controller-manager of these versions, built
from source: the sessions of ` + "`test/e2e`" + `, which play every command as a user would, the conformance scenarios of
the engine, and generated graphs beside the real garbage collector. ` + "`make test-versions`" + ` does that and writes
this page.

| Kubernetes | passed | skipped | failed | when |
|---|---|---|---|---|
`

func (p *page) String() string {
	var b strings.Builder
	b.WriteString(head)
	for _, r := range p.Results {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %s |\n", r.Version, r.Passed, len(r.Skipped), len(r.Failed), r.When)
	}
	b.WriteString("\n## What differs\n\nThese sessions expect something else of a server from a version on, or below it.\n\n| since | session | what it is about |\n|---|---|---|\n")
	for _, d := range p.Differences {
		fmt.Fprintf(&b, "| %s | [%s](../test/e2e/testdata/%s.txt) | %s |\n", d.Since, d.Session, d.Session, d.About)
	}
	for _, r := range p.Results {
		if len(r.Failed)+len(r.Skipped) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## Kubernetes %s\n\n| test | |\n|---|---|\n", r.Version)
		for _, test := range r.Failed {
			fmt.Fprintf(&b, "| `%s` | failed |\n", test)
		}
		for _, test := range slices.Sorted(maps.Keys(r.Skipped)) {
			fmt.Fprintf(&b, "| `%s` | skipped: %s |\n", test, r.Skipped[test])
		}
	}
	return b.String()
}

// condition is one on the version in a session.
var condition = regexp.MustCompile(`(?m)^\[!?since:([0-9.]+)\]`)

// differences finds the conditions in sessions, with what the session says of itself in
// its first sentence.
func differences(dir string) ([]difference, error) {
	var found []difference
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".txt" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		session, _ := filepath.Rel(dir, strings.TrimSuffix(path, ".txt"))
		for _, match := range condition.FindAllStringSubmatch(string(text), -1) {
			d := difference{Since: match[1], Session: filepath.ToSlash(session), About: about(string(text))}
			if !slices.Contains(found, d) {
				found = append(found, d)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for what differs: %w", err)
	}
	slices.SortFunc(found, func(a, b difference) int {
		if c := strings.Compare(a.Since, b.Since); c != 0 {
			return c
		}
		return strings.Compare(a.Session, b.Session)
	})
	return found, nil
}

// about is the first sentence of a session.
func about(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		comment, is := strings.CutPrefix(line, "#")
		if !is {
			break
		}
		words = append(words, strings.Fields(comment)...)
	}
	sentence, _, _ := strings.Cut(strings.Join(words, " ")+" ", ". ")
	return strings.TrimSuffix(strings.TrimSpace(sentence), ".")
}
