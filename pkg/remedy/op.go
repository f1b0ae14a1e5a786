// SPDX-License-Identifier: Apache-2.0

// Package remedy has what a program can do about an object: one change of it, the guards under
// which that is made, the command of kubectl that makes it, and the change that takes it back. It
// sends nothing: cluster.Sender does, and simulator.Server.Do plays it in memory.
package remedy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// ErrChanged says that an object is not what a change was made for, so that nothing was changed.
var ErrChanged = errors.New("it is not as it was when the change was chosen")

// Verb says what an Op does.
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
	// Restart has all pods of a workload made anew, as "kubectl rollout restart" does.
	Restart Verb = "restart"
	// Resume ends the pause of a rollout, as "kubectl rollout resume" does.
	Resume Verb = "resume"
	// Create makes an object that has nothing but a name, or a ClusterRoleBinding with its Grant.
	Create Verb = "create"
	// Restore makes an object again as it was saved before its deletion: its Command from a file, a program from the Manifest.
	Restore Verb = "restore"
	// Finalize takes a Value out of the spec.finalizers of a namespace, by its
	// subresource finalize.
	Finalize Verb = "finalize"
	// Taint puts the taint Value, as kubectl writes it, on a node, and Untaint takes it off.
	Taint   Verb = "taint"
	Untaint Verb = "untaint"
	// Annotate sets the annotation Value to the time, so that its controllers look at the object.
	Annotate Verb = "annotate"
	// Collect does the garbage collector's work in the namespace of the object, or with none in the cluster.
	Collect Verb = "collect"
)

// Op is one change of one object, as a program could make it.
type Op struct {
	Verb Verb
	// Object is what it changes. Where it has a UID only that object may be changed.
	Object graph.Identity
	// Options are those of a Delete, with the UID as a precondition.
	Options *metav1.DeleteOptions
	// Patch is that of a Patch, with the test of the UID.
	Patch []Step
	// Value is that of Finalize, Taint, Untaint and Annotate.
	Value string
	// Replicas is that of Scale, nil for all others.
	Replicas *Replicas
	// Grant is what a ClusterRoleBinding grants that Create makes, nil for all others. It gets the Mark, which no other run has, as an
	// annotation: by that it is known also when no answer came.
	Grant *Grant
	Mark  string
	// Manifest is what Restore makes, nil for what is in a file.
	Manifest map[string]any
	// Save: the object is to be kept in a file before, so that it can be put back. The Command does that; whoever
	// sends the Op otherwise has to.
	Save bool
	// Version is the resourceVersion that was looked at, of one that is saved or Exact.
	Version string
	// Exact: the object may be changed in its Version alone.
	Exact bool
	// Back takes the change back; nil where there is nothing to take back, or no way.
	Back *Op
}

// Creates reports whether it makes an object.
func (o *Op) Creates() bool { return o.Verb == Create || o.Verb == Restore }

// Replicas are how many a workload is to have, and has now.
type Replicas struct {
	Current int64 `json:"current"`
	Wanted  int64 `json:"wanted"`
}

// Grant is what a ClusterRoleBinding grants: a ClusterRole to a ServiceAccount.
type Grant struct {
	ClusterRole    string `json:"clusterRole"`
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"serviceAccount"`
}

// Binding is the content of a binding that grants it.
func (g *Grant) Binding() map[string]any {
	return map[string]any{"roleRef": g.role(), "subjects": []any{g.Subject()}}
}

func (g *Grant) role() map[string]any {
	return map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": g.ClusterRole}
}

// Subject is who gets it.
func (g *Grant) Subject() map[string]any {
	return map[string]any{"kind": "ServiceAccount", "namespace": g.Namespace, "name": g.ServiceAccount}
}

// MarkAnnotation is where an object has the Mark of the change that made it.
const MarkAnnotation = "kubectl-gc/made-by"

// Made reports whether the change made a binding.
func (o *Op) Made(binding *unstructured.Unstructured) bool {
	return o.Mark != "" && binding.GetAnnotations()[MarkAnnotation] == o.Mark
}

// In finds the subject of a binding by which that grants it, -1 for none. of: the binding is for the same role, and for so many subjects.
func (g *Grant) In(binding map[string]any) (index int, of bool, subjects int) {
	if !equality.Semantic.DeepEqual(binding["roleRef"], g.role()) {
		return -1, false, 0
	}
	all, _ := binding["subjects"].([]any)
	return slices.IndexFunc(all, func(s any) bool { return equality.Semantic.DeepEqual(s, g.Subject()) }), true, len(all)
}

// Complete reports whether a change has all that its verb needs, as what was read from a file may not.
func (o *Op) Complete() bool {
	switch o.Verb {
	case Delete:
		return o.Options != nil
	case Patch:
		return len(o.Patch) > 0
	case Scale:
		return o.Replicas != nil
	case Annotate, Finalize, Taint, Untaint:
		return o.Value != ""
	case Restore:
		return o.Manifest != nil
	}
	return o.Verb != ""
}

// DeleteOf is a DELETE that only the object with the UID takes.
func DeleteOf(id graph.Identity, options metav1.DeleteOptions) Op {
	options.Preconditions = &metav1.Preconditions{UID: &id.UID}
	return Op{Verb: Delete, Object: id, Options: &options}
}

// PatchOf is a JSON patch that does nothing to an object with another UID. The values must be such that they can
// be marshalled.
func PatchOf(id graph.Identity, steps ...Step) Op {
	return Op{Verb: Patch, Object: id, Patch: append([]Step{Test("/metadata/uid", id.UID)}, steps...)}
}

// ScaleOf gives a workload another number of replicas.
func ScaleOf(id graph.Identity, r Replicas) Op {
	return Op{Verb: Scale, Object: id, Replicas: &r}
}

// FieldManager is recorded by the API server as who has written what this program writes.
const FieldManager = "kubectl-gc"

// Wrote reports whether the API server knows that this program has written an object.
func Wrote(o metav1.Object) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == FieldManager })
}

// ReclaimPolicy is where a volume has its reclaim policy.
const ReclaimPolicy = "/spec/persistentVolumeReclaimPolicy"

// ClaimRef is where a volume has its claim.
const ClaimRef = "/spec/claimRef"

// DeletionPolicy is where the content of a VolumeSnapshot has its policy.
const DeletionPolicy = "/spec/deletionPolicy"

// RetainOf keeps a volume with its data, which its policy would destroy with its claim, or the content of a snapshot.
func RetainOf(volume graph.Identity, policy string) Op {
	path := ReclaimPolicy
	if strings.HasSuffix(volume.Resource.Resource, "snapshotcontents") {
		path = DeletionPolicy
	}
	op := PatchOf(volume, Test(path, policy), Replace(path, "Retain"))
	back := PatchOf(volume, Test(path, "Retain"), Replace(path, policy))
	op.Back = &back
	return op
}

// TaintOf puts a taint, as kubectl writes it, on a node.
func TaintOf(id graph.Identity, taint string) Op {
	return Op{Verb: Taint, Object: id, Value: taint, Back: &Op{Verb: Untaint, Object: id, Value: taint}}
}

// GrantOf makes a ClusterRoleBinding, which is taken back by its deletion.
func GrantOf(binding graph.Identity, grant Grant) Op {
	return Op{Verb: Create, Object: binding, Grant: &grant, Back: &Op{Verb: Delete, Object: binding, Options: &metav1.DeleteOptions{}}}
}

// At is the same change for one resourceVersion of the object alone: the API server refuses it for any other.
// What is made, and a collection, has none.
func (o Op) At(version string) Op {
	switch o.Verb {
	case Create, Restore, Collect:
		return o
	case Delete:
		options := *o.Options
		options.Preconditions = &metav1.Preconditions{UID: &o.Object.UID, ResourceVersion: &version}
		o.Options = &options
	case Patch:
		o.Patch = slices.Insert(slices.Clone(o.Patch), 1, Test("/metadata/resourceVersion", version))
	}
	o.Version, o.Exact = version, true
	return o
}

// Key tells changes apart: it is the same for the same change of the same object, in whatever version, and for the removal of the
// same finalizer or owner reference, wherever it is in its list.
func (o *Op) Key() string {
	uid := o.Object.UID
	if o.Creates() { // it has one when it is made
		uid = ""
	}
	patch := slices.Clone(o.Patch)
	for i := range patch {
		patch[i].Path = listed().ReplaceAllString(patch[i].Path, "$1/*")
	}
	options := o.Options
	if options != nil {
		options = options.DeepCopy()
		options.Preconditions = nil
	}
	return marshal([]any{o.Verb, o.Object.Resource.GroupVersionResource, o.Object.Namespace, o.Object.Name, uid, options, patch,
		o.Value, o.Replicas, o.Grant})
}

var listed = pattern.New(`^(/metadata/(?:finalizers|ownerReferences))/\d+`)

// Saved is the same with the object, of the version that was looked at, kept in a file before. A deletion is
// taken back by what was kept.
func (o Op) Saved(version string) Op {
	o.Save, o.Version = true, version
	if o.Verb == Delete {
		o.Back = &Op{Verb: Restore, Object: o.Object, Version: version}
	}
	return o
}

// TakenBack is a patch with what takes it back from an object that was read whole and is changed by nothing else.
func (o Op) TakenBack(whole map[string]any) Op {
	fields, err := o.Fields(whole)
	if err != nil {
		return o
	}
	after, err := apply(whole, o.Patch[1:])
	if err != nil {
		return o
	}
	if steps, standing := Reverse(fields, whole, after); standing == Made {
		back := PatchOf(o.Object, steps...)
		o.Back = &back
	}
	return o
}

// Reaches reports whether a change affects more than its object and what that owns: it starts a program, has requests let through, or
// changes how API servers work. Everything that waits for that is affected, in all namespaces.
func (o *Op) Reaches() bool {
	switch o.Verb {
	case Scale:
		return o.Replicas.Wanted > o.Replicas.Current
	case Delete:
		return o.Object.Resource.Group == "admissionregistration.k8s.io" || o.Object.Resource.Group == "apiregistration.k8s.io"
	case Patch:
		return slices.ContainsFunc(o.Patch, func(s Step) bool {
			return s.Op != "test" && s.Path != ReclaimPolicy && s.Path != DeletionPolicy && !listed().MatchString(s.Path)
		})
	case Finalize, Collect, Untaint:
		return false
	}
	return true
}

// Retains reports whether a patch keeps what is stored.
func (o *Op) Retains() bool {
	return slices.ContainsFunc(o.Patch, func(s Step) bool {
		return s.Op == "replace" && s.Value == "Retain" && (s.Path == ReclaimPolicy || s.Path == DeletionPolicy)
	})
}

// Binds reports whether a patch gives a volume to a claim.
func (o *Op) Binds() bool {
	return slices.ContainsFunc(o.Patch, func(s Step) bool { return s.Op != "test" && strings.HasPrefix(s.Path, ClaimRef) })
}

// Owners are the UIDs of the owners to which an object that is made, or a patch, has references, as far as a patch gives it those.
func (o *Op) Owners() []types.UID {
	var uids []types.UID
	take := func(entries ...any) {
		for _, entry := range entries {
			if uid, _ := asMap(entry)["uid"].(string); uid != "" {
				uids = append(uids, types.UID(uid))
			}
		}
	}
	made, _ := At(o.Manifest, "/metadata/ownerReferences")
	take(asList(made)...)
	for _, s := range o.Patch {
		switch uid, _ := s.Value.(string); {
		case s.Op != "add" && s.Op != "replace" || !strings.HasPrefix(s.Path, "/metadata/ownerReferences"):
		case strings.HasSuffix(s.Path, "/uid"):
			uids = append(uids, types.UID(uid))
		default:
			take(s.Value)
			take(asList(s.Value)...)
		}
	}
	return uids
}

// EndsPods reports whether a change ends pods besides its object, with what they own: those on a node, or those of a workload.
func (o *Op) EndsPods() bool {
	return o.Verb == Taint || o.Verb == Restart || o.Verb == Scale && o.Replicas.Wanted < o.Replicas.Current
}

// Unfinalizes reports whether a patch removes finalizers, and does nothing else.
func (o *Op) Unfinalizes() bool {
	return o.Verb == Patch && !slices.ContainsFunc(o.Patch, func(s Step) bool {
		return s.Op != "test" && (s.Op != "remove" || s.Path != "/metadata/finalizers" && !strings.HasPrefix(s.Path, "/metadata/finalizers/"))
	})
}

// Unfinalize are the Steps that remove some of the finalizers, as long as they are at their places.
func Unfinalize(finalizers []string, remove func(string) bool) (steps []Step) {
	for i, finalizer := range slices.Backward(finalizers) {
		if remove(finalizer) {
			at := fmt.Sprintf("/metadata/finalizers/%d", i)
			steps = append(steps, Test(at, finalizer), Remove(at))
		}
	}
	return steps
}

// Before reports whether a patch has to come before another one of the same object, if both are made as they are: it
// removes a later entry of the same list.
func (o *Op) Before(other *Op) bool {
	list, index := o.removed()
	same, lower := other.removed()
	return o.Object == other.Object && list == same && index > lower && lower >= 0
}

// removed returns the list of which a patch removes an entry, and its index; -1 for none.
func (o *Op) removed() (list string, index int) {
	if len(o.Patch) == 0 || o.Patch[len(o.Patch)-1].Op != "remove" {
		return "", -1
	}
	last := o.Patch[len(o.Patch)-1].Path
	cut := strings.LastIndexByte(last, '/')
	index, err := strconv.Atoi(last[cut+1:])
	if err != nil {
		return "", -1
	}
	return last[:cut], index
}

// Step is a step of a JSON patch (RFC 6902).
type Step struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Test is the Step that fails unless the value is there.
func Test(path string, value any) Step { return Step{"test", path, value} }

// Replace is the Step that puts the value in the place of another.
func Replace(path string, value any) Step { return Step{"replace", path, value} }

// Add is the Step that adds the value, before what a list has at the path.
func Add(path string, value any) Step { return Step{"add", path, value} }

// Remove is the Step that takes away what is there.
func Remove(path string) Step { return Step{Op: "remove", Path: path} }
