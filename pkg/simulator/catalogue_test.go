// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// What is known of every finalizer of kube-controller-manager, the garbage
// collector's own aside, is what the simulation does: its condition is modelled,
// or it has none.
func TestCatalogue(t *testing.T) {
	for e := range finalizers.Builtin().Entries() {
		if e.Builtin != finalizers.ControllerManager || e.Field != finalizers.Metadata ||
			e.Finalizer == metav1.FinalizerDeleteDependents || e.Finalizer == metav1.FinalizerOrphanDependents {
			continue
		}
		_, conditional := conditions[e.Finalizer]
		if conditional == slices.Contains(unconditional, e.Finalizer) {
			t.Errorf("%s, which waits until %s: the simulation does not say when it goes", e.Finalizer, e.WaitsFor)
		}
	}
	for f := range conditions {
		if len(finalizers.Builtin().Find(f, schema.GroupKind{})) == 0 {
			t.Errorf("the catalogue does not know %s", f)
		}
	}
}
