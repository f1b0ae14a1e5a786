// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The guard is asked about every write that the Collector decides, and about no
// delete of a target. What it refuses is left alone and remains, and so does what
// waits for it. Here something of kube-system appears during the run, which was in no
// preview.
func TestGuard(t *testing.T) {
	const (
		world = "node/n\nkube-system:configmap/planned < node/n\nkube-system:configmap/target"
		late  = "DELETE n: create kube-system:configmap/late < node/n!"
		not   = "configmap/late Remaining: not in the preview"
	)
	for _, test := range []struct{ name, do, requests, outcomes string }{
		{
			"what would be deleted", "delete n target Background",
			"DELETE node/n Background\nDELETE configmap/target Background\nDELETE configmap/planned Background",
			"configmap/late Remaining: not in the preview\nconfigmap/planned Deleted\nconfigmap/target Deleted\nnode/n Deleted",
		},
		{
			"what would be deleted first", "delete n Foreground",
			"DELETE node/n Foreground\nDELETE configmap/planned Background",
			not + "\nconfigmap/planned Deleted\nnode/n Remaining: a blocking dependent must be deleted first [ConfigMap/kube-system/late]",
		},
		{
			"what would lose its owner", "delete n Orphan",
			"DELETE node/n Orphan\nPATCH configmap/planned drop owners [n]",
			not + "\nconfigmap/planned Orphaned\nnode/n Remaining: its dependents are not orphaned yet",
		},
	} {
		for _, workers := range []int{1, 4} {
			objects := parseWorld(t, world)
			f := newFake(t, objects, late)
			guard := func(_ Action, o graph.Object) error {
				if o.Namespace == "kube-system" && o.Name != "planned" {
					return errors.New("not in the preview")
				}
				return nil
			}
			r, err := perform(t, f, graphOf(objects), test.do, Options{Workers: workers, Guard: guard})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(lines(test.outcomes), outcomes(r)); diff != "" {
				t.Errorf("%s, %d workers (-want +got):\n%s", test.name, workers, diff)
			}
			var writes []string
			for _, request := range f.log {
				if !strings.HasPrefix(request, "GET") {
					writes = append(writes, request)
				}
			}
			if diff := cmp.Diff(lines(test.requests), writes); workers == 1 && diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.name, diff)
			}
		}
	}
}
