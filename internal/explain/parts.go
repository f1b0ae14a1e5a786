// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What of a cluster is read for an answer. The walk notes every part of it on which something
// depends that it says. So what is read first decides how often it is read, and not what is said.

// readAlways are small, and nearly all answers need them.
var readAlways = graph.Parts{{Resource: evidence.Namespaces.GroupResource()}, {Resource: evidence.CRDs.GroupResource()},
	{Resource: evidence.Leases.GroupResource()}}

// PartsIn are what is read first to explain what is being deleted in a namespace.
func PartsIn(namespace string) graph.Parts { return readAlways.With(graph.Part{Namespace: namespace}) }

// PartsOf are what is read first to explain objects.
func PartsOf(objects []graph.Object) graph.Parts {
	parts := readAlways
	for i := range objects {
		o := &objects[i]
		switch {
		case o.BeingDeleted() && slices.ContainsFunc(o.Finalizers, graph.IsCollectorFinalizer):
			return nil
		case o.Resource.IsNamespace():
			parts = parts.With(graph.Part{Namespace: o.Name})
		case o.BeingDeleted() && !graph.BuiltinGroup(o.Resource.Group): // whether its type can be listed, and who has written to others of it
			parts = parts.With(graph.Part{Resource: o.Resource.GroupResource()})
		case o.Namespace != "":
			parts = parts.With(graph.Part{Resource: o.Resource.GroupResource(), Namespace: o.Namespace})
		}
	}
	return parts
}

// mostLooks is how often parts of a cluster are read before all of it is.
const mostLooks = 4

// Wider returns what is to be read instead of parts with which a Report, after so many looks, has
// Missed others.
func Wider(parts graph.Parts, missed []graph.Part, looks int) graph.Parts {
	if looks >= mostLooks {
		return nil
	}
	return parts.With(missed...)
}
