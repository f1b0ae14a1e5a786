// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
)

// writeAppeared says which of the objects were not there when the deletion was
// previewed, and whose controller has made them: it goes on with that until it sees
// that their owner is being deleted.
func writeAppeared(w io.Writer, all []*gc.Outcome) {
	by := map[string][]*gc.Outcome{}
	for _, o := range all {
		if !o.Appeared {
			continue
		}
		maker := "their creator is not known, or they existed before and were not seen"
		if owner := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: o.Object.OwnerReferences}); owner != nil {
			maker = "created by the controller of " + owner.Kind + "/" + owner.Name + ", which had not seen the deletion yet"
		}
		by[maker] = append(by[maker], o)
	}
	for _, maker := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(w, "  %s since the preview: %s\n", counts(by[maker]), printable(maker))
	}
}
