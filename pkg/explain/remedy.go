// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// kubectl begins a command about an object.
func (d commands) kubectl(n graph.Node) string { return shell.In(d.programs.Kubectl, n.Namespace()) }

// deleteAgain sends a DELETE with background propagation, which removes the garbage collector's finalizers. The UID
// guards it.
func (d commands) deleteAgain(n graph.Node, risk Risk, effect string) Remedy {
	return Remedy{Risk: risk, Effect: effect, Action: d.delete(n.Identity(), background)}
}

// removeFinalizer removes one finalizer from one object, as long as it is at the index at which it was seen. loss is
// what its controller does not clean up then.
func (d commands) removeFinalizer(n graph.Node, index int, finalizer string, loss []remedy.Loss) Remedy {
	at := fmt.Sprintf("/metadata/finalizers/%d", index)
	return Remedy{
		Risk: Dangerous, Action: d.patch(n.Identity(), remedy.Test(at, finalizer), remedy.Remove(at)),
		Effect: removesFinalizer,
		Loss:   loss,
	}
}

// dropReference removes one owner reference of a dependent.
func (d commands) dropReference(n graph.Node, index int, owner types.UID, effect string) Remedy {
	at := fmt.Sprintf("/metadata/ownerReferences/%d", index)
	return Remedy{Risk: Disruptive, Action: d.patch(n.Identity(), remedy.Test(at+"/uid", owner), remedy.Remove(at)), Effect: effect}
}

// finalizeNamespace removes one entry of a namespace's spec.finalizers, which
// only the subresource finalize can. The resourceVersion that the object
// carries is the guard against changes in between, the name in the entry that
// against another list.
func (d commands) finalizeNamespace(n graph.Node, finalizer string, loss []remedy.Loss) Remedy {
	return Remedy{
		Risk:   Dangerous,
		Action: d.does(remedy.Op{Verb: remedy.Finalize, Object: n.Identity(), Value: finalizer}),
		Effect: removesSpecFinalizer,
		Loss:   loss,
	}
}
