// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Action is what a remedy does. Without a command it is something that only a person
// can do.
type Action struct {
	// Command can be pasted into a shell.
	Command string
	// Operation is what the command changes in the cluster, nil when it changes
	// nothing or leaves that to a person.
	Operation *Operation
	// Undo is a command that takes back what the other changed, empty where there is
	// nothing to take back or no such command.
	Undo string
}

// Verb says what an Operation does.
type Verb string

// The verbs.
const (
	// Delete sends a DELETE with the Options.
	Delete Verb = "delete"
	// Patch sends a JSON patch (RFC 6902), which tests what it must not change.
	Patch Verb = "patch"
	// Scale sets the number of replicas, by the subresource scale, when it is the
	// current one.
	Scale Verb = "scale"
	// Restart has all pods of a workload made anew.
	Restart Verb = "restart"
	// Create makes an object that has nothing but a name.
	Create Verb = "create"
	// Finalize takes a value out of the spec.finalizers of a namespace, by its
	// subresource finalize.
	Finalize Verb = "finalize"
)

// Operation is one change of one object, as a program could make it.
type Operation struct {
	Verb Verb
	// Object is what it changes. Where it has a UID only that object may be changed.
	Object graph.Identity
	// Options are those of a Delete.
	Options *metav1.DeleteOptions
	// Patch is that of a Patch, with the test of the UID.
	Patch []shell.Operation
	// Value is that of Finalize.
	Value string
	// Replicas is that of Scale, nil for all others.
	Replicas *Replicas
	// Save: the object is kept in a file before, so that it can be put back.
	Save bool
}

// Replicas are how many a workload is to have, and has now.
type Replicas struct {
	Current int64 `json:"current"`
	Wanted  int64 `json:"wanted"`
}

// shows is a command that changes nothing, or that leaves it to a person what it
// changes.
func shows(format string, args ...any) Action { return Action{Command: fmt.Sprintf(format, args...)} }

var (
	byPolicy   = metav1.DeleteOptions{}
	background = metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	atOnce     = metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
)

// delete is a DELETE with a UID precondition.
func (w *walker) delete(id graph.Identity, options metav1.DeleteOptions) Action {
	var words strings.Builder
	if options.PropagationPolicy != nil {
		fmt.Fprintf(&words, `"propagationPolicy":%q,`, *options.PropagationPolicy)
	}
	if options.GracePeriodSeconds != nil {
		fmt.Fprintf(&words, `"gracePeriodSeconds":%d,`, *options.GracePeriodSeconds)
	}
	options.Preconditions = &metav1.Preconditions{UID: &id.UID}
	return Action{
		Command: fmt.Sprintf(`echo '{"apiVersion":"v1","kind":"DeleteOptions",%s"preconditions":{"uid":"%s"}}' | %s delete --raw %s -f -`,
			&words, id.UID, w.Kubectl, shell.Quote(id.URLPath())),
		Operation: &Operation{Verb: Delete, Object: id, Options: &options},
	}
}

// patch changes an object by JSON patch, guarded by its UID.
func (w *walker) patch(n graph.Node, operations ...shell.Operation) Action {
	return w.patchOf(n.Identity(), operations...)
}

// patchOf is patch for an object that need not be in the graph.
func (w *walker) patchOf(id graph.Identity, operations ...shell.Operation) Action {
	return Action{
		Command:   shell.Patch(w.Kubectl, id, operations...),
		Operation: &Operation{Verb: Patch, Object: id, Patch: shell.Guarded(id, operations...)},
	}
}

// changes is a command that does something else to an object.
func (w *walker) changes(verb Verb, id graph.Identity, format string, args ...any) Action {
	return Action{Command: fmt.Sprintf(format, args...), Operation: &Operation{Verb: verb, Object: id}}
}

// scale gives a workload another number of replicas. The target is what kubectl calls it,
// quoted.
func (w *walker) scale(id graph.Identity, target string, r Replicas) Action {
	return Action{
		Command: fmt.Sprintf("%s scale %s --current-replicas=%d --replicas=%d",
			shell.In(w.Kubectl, id.Namespace), target, r.Current, r.Wanted),
		Operation: &Operation{Verb: Scale, Object: id, Replicas: &r},
	}
}

// scaleUp starts a workload that is scaled to nothing, which kubectl calls so.
func (w *walker) scaleUp(id graph.Identity, ref string) Action {
	return w.scale(id, shell.Quote(ref), Replicas{Wanted: 1})
}

// scaleToNone stops a workload, which can be undone.
func (w *walker) scaleToNone(id graph.Identity, current int64) Action {
	a := w.scale(id, shell.Target(id), Replicas{Current: current})
	a.Undo = w.scale(id, shell.Target(id), Replicas{Wanted: current}).Command
	return a
}

// saved puts a command that writes an object to a file before one that changes
// it. The file is named by the version that was looked at, and what is in it is
// kept: a second remedy must not put what the first has changed in its place.
func (w *walker) saved(id graph.Identity, a Action) Action {
	file := shell.Quote(fmt.Sprintf("%s-%s-%s.yaml", id.Resource.Resource, id.Name, w.evidence.Version(id)))
	a.Command = fmt.Sprintf("{ test -s %s || %s get %s -o yaml > %s; } && %s", file, w.Kubectl, shell.Target(id), file, a.Command)
	if a.Operation == nil {
		return a
	}
	if a.Operation.Verb == Delete {
		a.Undo = fmt.Sprintf("sed -e '/^  resourceVersion: /d' -e '/^  uid: /d' %s | %s create -f -", file, w.Kubectl)
	}
	saving := *a.Operation
	saving.Save = true
	a.Operation = &saving
	return a
}

// change is patchOf for an object that was read whole, kept in a file before. What undoes
// it takes back these values and no others, and nothing when they are not what this has
// made of them.
func (w *walker) change(id graph.Identity, whole *unstructured.Unstructured, operations ...shell.Operation) Action {
	a := w.saved(id, w.patchOf(id, operations...))
	if back, ok := shell.Inverse(whole.Object, operations); ok {
		a.Undo = shell.Patch(w.Kubectl, id, back...)
	}
	return a
}
