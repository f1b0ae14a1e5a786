// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finalizers"
)

// KnownOwner tells from the built-in catalogue who removes a finalizer, nil
// when it is not in there.
func KnownOwner(finalizer string, kind schema.GroupKind) *Controller {
	matches := finalizers.Builtin().Find(finalizer, kind)
	if len(matches) == 0 {
		return nil
	}
	m := matches[0]
	name := m.Controller
	if name == "" {
		name = "the controller"
	}
	if m.Product != "" {
		name += " of " + m.Product
	}
	c := &Controller{Name: name, Liveness: string(Unknown)}
	add := func(what, value string) {
		if value != "" {
			c.Evidence = append(c.Evidence, Evidence{Source: "the catalogue of finalizers", Path: what, Value: value})
		}
	}
	add("waits for", m.WaitsFor)
	for _, workload := range m.Workloads {
		where := workload.Kind + "/" + workload.Name
		if workload.Namespace != "" {
			where += " in namespace " + workload.Namespace
		}
		add("usually runs as", where)
	}
	add("runs outside the cluster", m.OffCluster)
	return c
}
