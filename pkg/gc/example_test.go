// SPDX-License-Identifier: Apache-2.0

package gc_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// An object with an owner that exists loses its reference to one that does not; without the first it is deleted.
func ExampleDecide() {
	cart := &graph.Object{Name: "cart", UID: "3"}
	lives, gone := metav1.OwnerReference{Name: "lives", UID: "1"}, metav1.OwnerReference{Name: "gone", UID: "2"}
	for _, refs := range []gc.References{
		{Solid: []metav1.OwnerReference{lives}, Dangling: []metav1.OwnerReference{gone}},
		{Dangling: []metav1.OwnerReference{gone}},
	} {
		d := gc.Decide(cart, refs, gc.Dependents{})
		fmt.Printf("%s %q\n", d.Action, d.Policy)
	}
	// Output:
	// RemoveOwnerReferences ""
	// Delete "Background"
}
