// SPDX-License-Identifier: Apache-2.0

package answer_test

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
)

// Only the API server's NotFound of this very object proves that it does not exist: that of its namespace does not.
func ExampleNoSuchObject() {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	fmt.Println(answer.NoSuchObject(apierrors.NewNotFound(claims, "data"), claims, "data"))
	fmt.Println(answer.NoSuchObject(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop"), claims, "data"))
	// Output:
	// true
	// false
}
