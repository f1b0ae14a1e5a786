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
func (w *walker) kubectl(n graph.Node) string { return shell.In(w.Kubectl, n.Namespace()) }

// deleteAgain sends a DELETE that only the object that was looked at takes.
// With background propagation it takes the garbage collector's finalizers off.
func (w *walker) deleteAgain(n graph.Node, risk Risk, effect string) Remedy {
	return Remedy{Risk: risk, Effect: effect, Action: w.delete(n.Identity(), background)}
}

// removeFinalizer takes one finalizer off one object, as long as it is at the
// index at which it was seen. loss is what its controller does not clean up
// then.
func (w *walker) removeFinalizer(n graph.Node, index int, finalizer string, loss []remedy.Loss) Remedy {
	at := fmt.Sprintf("/metadata/finalizers/%d", index)
	return Remedy{
		Risk: Dangerous, Action: w.patch(n.Identity(), remedy.Test(at, finalizer), remedy.Remove(at)),
		Effect: "remove this finalizer alone, once you have done its cleanup yourself",
		Loss:   loss,
	}
}

// dropReference takes one owner reference out of a dependent.
func (w *walker) dropReference(d graph.Node, index int, owner types.UID, effect string) Remedy {
	at := fmt.Sprintf("/metadata/ownerReferences/%d", index)
	return Remedy{Risk: Disruptive, Action: w.patch(d.Identity(), remedy.Test(at+"/uid", owner), remedy.Remove(at)), Effect: effect}
}

// finalizeNamespace removes one entry of a namespace's spec.finalizers, which
// only the subresource finalize can. The resourceVersion that the object
// carries is the guard against changes in between, the name in the entry that
// against another list.
func (w *walker) finalizeNamespace(n graph.Node, finalizer string, loss []remedy.Loss) Remedy {
	return Remedy{
		Risk:   Dangerous,
		Action: w.does(remedy.Op{Verb: remedy.Finalize, Object: n.Identity(), Value: finalizer}),
		Effect: "remove this entry of spec.finalizers alone, once you have done its cleanup yourself",
		Loss:   loss,
	}
}
