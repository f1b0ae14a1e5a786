// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
)

// forPeople are the causes of which nothing is left for a program, with the reason why only a person can act.
var forPeople = map[string]string{
	"adm-refused":          "what the API server refuses for reasons of its own, its configuration says",
	"clock-skew":           "clocks are set on machines",
	"fin-quota":            "how much a quota allows is for who has set it",
	"ns-content-failure":   "what refuses the deletion of the content is a cause of its own",
	"ns-gv-parse":          "an API group with a version of no valid name is repaired by who serves it",
	"pod-mirror":           "the manifest of a static pod is a file on its node",
	"snapshot-clone":       "the content of a snapshot is its driver's",
	"val-schema-tightened": "with which value an object is valid again, who knows the type knows",
	"unread":               "what is needed is a right, or an answer",
}

// steps are the kinds that are never a cause that a program could end: steps on the way to one, which is dealt with instead, and what
// is said of objects that are not stuck.
var steps = map[string]string{
	"gc-fg-blocking":       "the dependent has a cause",
	"ns-content":           "the content has a cause",
	"ns-pods-first":        "the pods have a cause",
	"ns-controller-absent": "kube-controller-manager is started where it runs; or as ns-content-failure",
	"crd-instances":        "the instances have a cause",
	"crd-finalizer":        "the finalizer has a cause",
	"pod-finalizer":        "the finalizer has a cause",
	"pod-unscheduled":      "the finalizer has a cause",
	"pod-grace":            "it ends by itself",
	"fin-working":          "it makes progress, or that is not known",
	"fin-unknown":          "who should act is not known, and so never Stuck",
	"gc-fg-ownerref-scope": "the garbage collector goes on by itself, as far as is known",
	"not-terminating":      "nobody is deleting it",
	"ns-protected":         "nobody is deleting it",
	"recreated":            "nobody is deleting it",
}

// unmade are the causes that a program can end, and that no session makes on a real control plane; scenarios play their ways out in memory.
var unmade = map[string]string{
	"half-deleted":        "the API server leaves no such object behind",
	"node-karpenter":      "a node is drained for ten minutes before that counts",
	"ns-forced-leftovers": "since 1.37 such objects can be deleted",
	"pod-node-gone":       "where pods are collected it ends by itself, and where not that is the cause",
	"podgroup":            "its API is not served without a feature gate",
	"pvc-snapshot-source": "a snapshot is being taken for ten minutes before that counts",
	"val-unreadable":      "it takes a second API server with another key (TestDeleteUnreadable carries out what is shown)",
}

// TestUnstickable: each kind of cause has a session in which unstick ends it, with a line "# cause: ID", or a stated reason why there is
// none, and in docs/unstick-reference.md a row with that session, which holds it (tabled in test/e2e). What is said to be for people has no way out in any scenario that unstick would take.
func TestUnstickable(t *testing.T) {
	ended, rows := map[string]bool{}, map[string]int{}
	doc, err := os.ReadFile("../../docs/unstick-reference.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|.*\\(\\.\\./(test/e2e/testdata/unstick/.*)\\) \\|$").FindAllStringSubmatch(string(doc), -1) {
		rows[row[1]+" ../../"+row[2]]++
	}
	err = filepath.WalkDir("../../test/e2e/testdata/unstick", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, match := range regexp.MustCompile(`(?m)^# cause: (\S+)$`).FindAllStringSubmatch(string(data), -1) {
			ended[match[1]] = true
			if row := match[1] + " " + path; rows[row] != 1 {
				t.Errorf("docs/unstick-reference.md has %d rows for %s, want 1", rows[row], row)
			} else {
				delete(rows, row)
			}
			if len(regexp.MustCompile(`(?m)(^|[^a-z-])`+match[1]+`([^a-z-]|$)`).FindAll(data, -1)) < 2 {
				t.Errorf("%s does not look for %s", path, match[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for row := range rows {
		t.Errorf("docs/unstick-reference.md has a row for %s, which is not ended there", row)
	}
	known := map[string]bool{}
	for _, k := range finding.Kinds() {
		known[k.ID] = true
		said := 0
		for _, is := range []bool{ended[k.ID], forPeople[k.ID] != "", steps[k.ID] != "", unmade[k.ID] != ""} {
			if is {
				said++
			}
		}
		if said != 1 {
			t.Errorf("%s: unstick ends it in a session, or there is one reason why not; there are %d", k.ID, said)
		}
	}
	for _, all := range []map[string]string{forPeople, steps, unmade} {
		for id := range all {
			if !known[id] {
				t.Errorf("there is no cause %s", id)
			}
		}
	}
	for id := range ended {
		if !known[id] {
			t.Errorf("a session is said to end %s, which is no cause", id)
		}
	}
	for _, cluster := range clusters(t) {
		for _, c := range parse(t, cluster).report(t).Causes {
			if forPeople[c.ID]+steps[c.ID] == "" || c.Verdict != explain.Stuck {
				continue
			}
			for i := range c.Remedies {
				if r := &c.Remedies[i]; unstick.Possible(r) && !r.Partial && !r.Keeps {
					t.Errorf("%s is said to be no matter for unstick, which would %s", c.ID, r.Effect)
				}
			}
		}
	}
}
