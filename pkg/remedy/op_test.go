// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What starts a program, or changes how API servers work, affects more than its object.
func TestReaches(t *testing.T) {
	config := graph.Identity{Name: "w"}
	config.Resource.Group = "admissionregistration.k8s.io"
	for name, test := range map[string]struct {
		op   Op
		want bool
	}{
		"a workload is scaled up":     {ScaleOf(graph.Identity{}, Replicas{Wanted: 2}), true},
		"a workload is stopped":       {ScaleOf(graph.Identity{}, Replicas{Current: 2}), false},
		"a restart":                   {Op{Verb: Restart}, true},
		"an account is made":          {Op{Verb: Create}, true},
		"a webhook is passed over":    {PatchOf(config, Test("/webhooks/0/name", "a"), Replace("/webhooks/0/failurePolicy", "Ignore")), true},
		"a configuration is deleted":  {DeleteOf(config, metav1.DeleteOptions{}), true},
		"an object is deleted":        {DeleteOf(graph.Identity{}, metav1.DeleteOptions{}), false},
		"a finalizer is removed":      {PatchOf(graph.Identity{}, Test("/metadata/finalizers/0", "a"), Remove("/metadata/finalizers/0")), false},
		"a reference does not block":  {PatchOf(graph.Identity{}, Replace("/metadata/ownerReferences/1/blockOwnerDeletion", false)), false},
		"a pause ends":                {PatchOf(graph.Identity{}, Remove("/metadata/annotations/paused")), true},
		"a volume is kept":            {RetainOf(graph.Identity{}, "Recycle"), false},
		"a namespace is finalized":    {Op{Verb: Finalize}, false},
		"a definition is looked over": {Op{Verb: Annotate}, true},
	} {
		if got := test.op.Reaches(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
