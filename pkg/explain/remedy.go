// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// kubectl begins a command about an object.
func (w *walker) kubectl(n graph.Node) string { return shell.In(w.Kubectl, n.Namespace()) }

// deleteAgain sends a DELETE that only the object that was looked at takes.
// With background propagation it takes the garbage collector's finalizers off.
func (w *walker) deleteAgain(n graph.Node, risk Risk, effect string) Remedy {
	return Remedy{Risk: risk, Effect: effect, Command: w.deleteRaw(n.Identity(), `"propagationPolicy":"Background",`)}
}

// deleteRaw is a DELETE with a UID precondition and further options.
func (w *walker) deleteRaw(id graph.Identity, options string) string {
	return fmt.Sprintf(`echo '{"apiVersion":"v1","kind":"DeleteOptions",%s"preconditions":{"uid":"%s"}}' | %s delete --raw %s -f -`,
		options, id.UID, w.Kubectl, shell.Quote(id.URLPath()))
}

// patch changes an object by JSON patch, guarded by its UID.
func (w *walker) patch(n graph.Node, operations ...shell.Operation) string {
	return w.patchOf(n.Identity(), operations...)
}

// patchOf is patch for an object that need not be in the graph.
func (w *walker) patchOf(id graph.Identity, operations ...shell.Operation) string {
	return shell.Patch(w.Kubectl, id, operations...)
}

// saved puts a command that writes an object to a file before one that changes
// it. The file is named by the version that was looked at, and what is in it is
// kept: a second remedy must not put what the first has changed in its place.
func (w *walker) saved(id graph.Identity, command string) string {
	file := shell.Quote(fmt.Sprintf("%s-%s-%s.yaml", id.Resource.Resource, id.Name, w.evidence.Version(id)))
	return fmt.Sprintf("{ test -s %s || %s get %s -o yaml > %s; } && %s", file, w.Kubectl, shell.Target(id), file, command)
}

// removeFinalizer takes one finalizer off one object, as long as it is at the
// index at which it was seen. leaks says what its controller does not clean up
// then.
func (w *walker) removeFinalizer(n graph.Node, index int, finalizer, leaks string) Remedy {
	at := fmt.Sprintf("/metadata/finalizers/%d", index)
	return Remedy{
		Risk: Dangerous, Command: w.patch(n, shell.Test(at, finalizer), shell.Remove(at)),
		Effect: "takes this finalizer alone off this object, after what it guards was cleaned up by hand",
		Leaks:  leaks,
	}
}

// dropReference takes one owner reference out of a dependent.
func (w *walker) dropReference(d graph.Node, index int, owner types.UID, effect string) Remedy {
	at := fmt.Sprintf("/metadata/ownerReferences/%d", index)
	return Remedy{Risk: Disruptive, Command: w.patch(d, shell.Test(at+"/uid", owner), shell.Remove(at)), Effect: effect}
}

// finalizeNamespace removes one entry of a namespace's spec.finalizers, which
// only the subresource finalize can. The resourceVersion that the object
// carries is the guard against changes in between, the name in the entry that
// against another list.
func (w *walker) finalizeNamespace(n graph.Node, finalizer, leaks string) Remedy {
	name := n.Object().Name
	return Remedy{
		Risk: Dangerous,
		Command: fmt.Sprintf(`%s get namespace %s -o json | jq --arg uid %s --arg f %s 'if .metadata.uid == $uid then .spec.finalizers -= [$f] else error("another namespace") end' | %s replace --raw %s -f -`,
			w.Kubectl, shell.Quote(name), shell.Quote(string(n.UID())), shell.Quote(finalizer), w.Kubectl, shell.Quote(n.Identity().URLPath()+"/finalize")),
		Effect: "takes this entry alone out of spec.finalizers, after what it guards was cleaned up by hand",
		Leaks:  leaks,
	}
}
