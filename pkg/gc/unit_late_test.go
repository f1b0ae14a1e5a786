// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A dependent may be seen after its owner's removal, although it was made
// before: they come by different watches.
func TestLateDependent(t *testing.T) {
	for _, workers := range []int{1, 4} {
		objects := parseWorld(t, "configmap/a\nconfigmap/b < configmap/a")
		f := newFake(t, objects, "DELETE b: create configmap/late < configmap/a")
		r, err := perform(t, f, graphOf(objects), "delete a Background", Options{Workers: workers})
		if diff := cmp.Diff([]string{"configmap/a Deleted", "configmap/b Deleted", "configmap/late Deleted"}, outcomes(r)); diff != "" || err != nil {
			t.Errorf("%d workers: error %v (-want +got):\n%s", workers, err, diff)
		}
	}
}
