// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		for _, o := range r.Outcomes {
			if o.Appeared != (o.Object.Name == "late") {
				t.Errorf("%d workers: %s appeared: %t", workers, o.Object.Name, o.Appeared)
			}
		}
	}
}

// away is a server that cannot be reached in the end.
type away struct {
	*fake
	since time.Duration
}

func (a *away) Away() time.Duration { return a.since }

// What an object waits for is not said when the server could not be asked any more.
func TestReportOfAServerThatIsAway(t *testing.T) {
	for since, want := range map[time.Duration]string{
		time.Second:      "finalizer example.com/x",
		97 * time.Second: "its end was not seen: the API server could not be reached for 1m37s",
	} {
		objects := parseWorld(t, "configmap/a finalizers=example.com/x")
		f := newFake(t, objects, "")
		g := graphOf(objects)
		r, err := New(&away{f, since}, g, Options{}).Delete(t.Context(), targetsOf(g, "a"), DeleteOptions{Policy: metav1.DeletePropagationBackground})
		if err != nil || len(r.Outcomes) != 1 || r.Outcomes[0].Result != Remaining || r.Outcomes[0].Reason != want {
			t.Errorf("%s: got %v, error %v", since, r.Outcomes, err)
		}
	}
}
