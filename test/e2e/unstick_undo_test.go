// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os/exec"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// undone puts back what the session's runs without --backup have changed, the last first. Each object that exists then, and of which no
// reason is given why it is kept, is what it was before the first change to it.
func undone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: undone")
	}
	dirs, err := change.Journals(ts.MkAbs(".local/state/kubectl-gc/journal"))
	ts.Check(err)
	compared := 0
	for _, dir := range slices.Backward(dirs) {
		err := ts.Exec("kubectl-gc", "undo", dir, "--yes")
		said := ts.ReadFile("stdout")
		if !strings.Contains(said, "keep: ") { // then the exit code is 2
			ts.Check(err)
		}
		recorded, err := change.ReadJournal(dir)
		ts.Check(err)
		seen := map[types.UID]bool{} // the first change of each object counts
		for i := range recorded.Changes {
			e := &recorded.Changes[i]
			if seen[e.Op.Object.UID] {
				continue
			}
			seen[e.Op.Object.UID] = e.Op.Object.UID != ""
			if !kept(said, e.Op) && asSaved(ts, recorded, e) {
				compared++
			}
		}
	}
	if compared == 0 {
		ts.Fatalf("no object exists of those that were changed in %v", dirs)
	}
}

// kept reports whether --undo has said why it does not put a change back; that it was as before is no reason to be another.
func kept(said string, op *remedy.Op) bool {
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "keep: ") && strings.Contains(line, remedy.Ref(op.Object)) && !strings.Contains(line, change.Words(change.Undone)) {
			return true
		}
	}
	return false
}

// asSaved compares an object with what was kept of it before a change: what was not there is not there again. It is false for one that does
// not exist, and did before.
func asSaved(ts *testscript.TestScript, recorded *change.Recorded, e *change.Entry) bool {
	id := e.Op.Object
	get := []string{"get", id.Resource.GroupResource().String(), id.Name, "-o", "json", "--ignore-not-found", "--kubeconfig", ts.Getenv("KUBECONFIG")}
	if id.Namespace != "" {
		get = append(get, "-n", id.Namespace)
	}
	text, err := exec.Command(ts.Getenv("KUBECTL"), get...).Output()
	switch {
	case e.Op.Verb == remedy.Create:
		if err != nil || len(text) > 0 {
			ts.Fatalf("%s was made, and is still there: %v", id, err)
		}
		return true
	case err != nil || len(text) == 0: // its type may be gone, too
		return false
	}
	now := &unstructured.Unstructured{}
	ts.Check(now.UnmarshalJSON(text))
	before, err := recorded.Manifest(e.Before)
	ts.Check(err)
	for _, field := range []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"} { // those are not kept
		unstructured.RemoveNestedField(now.Object, "metadata", field)
	}
	if diff := cmp.Diff(lasting(before), lasting(now)); diff != "" {
		ts.Fatalf("%s is not what it was before (-before +now):\n%s", id, diff)
	}
	return true
}
