// SPDX-License-Identifier: Apache-2.0

package finalizers_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// Who removes a finalizer of a claim?
func ExampleCatalogue_Find() {
	for _, match := range finalizers.Builtin().Find("kubernetes.io/pvc-protection", schema.GroupKind{Kind: "PersistentVolumeClaim"}) {
		fmt.Println(match.Product, match.Exact)
	}
	// Output: Kubernetes true
}
