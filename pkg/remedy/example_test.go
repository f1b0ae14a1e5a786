// SPDX-License-Identifier: Apache-2.0

package remedy_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// A workload is started, by a command that any shell takes.
func ExampleOp() {
	operator := graph.Identity{
		Resource:  graph.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment", Namespaced: true},
		Namespace: "shop", Name: "operator",
	}
	start := remedy.ScaleOf(operator, remedy.Replicas{Current: 0, Wanted: 1})
	fmt.Println(start.Command(remedy.Programs{Kubectl: "kubectl"}))
	// Output: kubectl -n shop scale deployment/operator --current-replicas=0 --replicas=1
}
