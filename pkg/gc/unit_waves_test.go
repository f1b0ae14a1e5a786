// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What was made or changed since the waves were made, and goes with one that is to come,
// keeps that one back: who made the waves did not know of it.
func TestUnforeseen(t *testing.T) {
	for _, test := range []struct{ name, script, outcomes string }{
		{"nothing", "", "configmap/a Deleted\nconfigmap/b Deleted\nconfigmap/c Deleted"},
		{"a finalizer more", "DELETE a: keep c", "configmap/a Deleted\nconfigmap/b Remaining: not deleted, because it would take along what was made or changed meanwhile: ConfigMap/shop/c\nconfigmap/c Untouched: its owner ConfigMap/b is still there"},
		{"one that went again", "DELETE a: keep c; free c", "configmap/a Deleted\nconfigmap/b Deleted\nconfigmap/c Deleted"},
		{"an object that is not concerned", "DELETE a: create configmap/d", "configmap/a Deleted\nconfigmap/b Deleted\nconfigmap/c Deleted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects := parseWorld(t, "configmap/a\nconfigmap/b\nconfigmap/c < configmap/b")
			f := newFake(t, objects, test.script)
			report, err := perform(t, f, graphOf(objects), "delete a then b Background", Options{
				Unforeseen: func(o *graph.Object) bool { return o.HasFinalizer("example.com/x") },
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(lines(test.outcomes), outcomes(report)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
