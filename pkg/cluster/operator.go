// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Operator carries out what remedies change, each change with its guards. It repeats nothing: a write that is not
// answered may have been carried out, and what became of it is to be looked at (answer.Missing). Its methods may be
// called by several goroutines at once. What an Op says to save is the caller's to keep before.
type Operator struct {
	rest    rest.Interface
	manager string
	dryRun  []string
	now     func() time.Time
}

// NewOperator returns an Operator for the cluster of the config that writes as the field manager. With a dry run it cannot
// write: its transport refuses every request but dry runs and reads.
func NewOperator(config *rest.Config, stats *Stats, manager string, dryRun bool) (*Operator, error) {
	o := &Operator{manager: manager, now: time.Now}
	pass := func(next http.RoundTripper) http.RoundTripper { return next }
	if dryRun {
		pass, o.dryRun = readsAndDryRuns, []string{metav1.DryRunAll}
	}
	var err error
	if o.rest, err = writeClient(config, stats, probeTimeout, pass); err != nil {
		return nil, err
	}
	return o, nil
}

// Do makes one change. The error is remedy.ErrChanged when its guards do not hold, and otherwise what the server said. Collect is no
// request: gc.Collector does that.
func (o *Operator) Do(ctx context.Context, op *remedy.Op) error {
	err := o.send(ctx, op)
	if answer.WrongUID(err) || apierrors.IsConflict(err) || op.Verb == remedy.Patch && failedTest(err) ||
		answer.NoSuchObject(err, op.Object.Resource.GroupResource(), op.Object.Name) {
		return fmt.Errorf("%s: %w: %w", op.Object, remedy.ErrChanged, err)
	}
	return err
}

// failedTest reports whether a JSON patch was refused because of one of its tests: of what is not valid the server names
// the fields (apiserver/pkg/endpoints/handlers/patch.go, applyJSPatch).
func failedTest(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Code != http.StatusUnprocessableEntity {
		return false
	}
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}

func (o *Operator) send(ctx context.Context, op *remedy.Op) error {
	switch id := op.Object; op.Verb {
	case remedy.Delete:
		options := *op.Options
		options.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
		options.DryRun = o.dryRun
		return o.request(ctx, inJSON(o.rest.Delete()).AbsPath(id.Resource.Path(id.Namespace, id.Name)...), &options)
	case remedy.Patch:
		return o.patch(ctx, id, types.JSONPatchType, op.Patch)
	case remedy.Scale:
		return o.update(ctx, op, "scale", func(scale map[string]any) bool {
			now, _, _ := unstructured.NestedInt64(scale, "spec", "replicas") // 0 is not written
			return now == op.Replicas.Current && unstructured.SetNestedField(scale, op.Replicas.Wanted, "spec", "replicas") == nil
		})
	case remedy.Restart:
		return o.merge(ctx, op, map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": annotations("kubectl.kubernetes.io/restartedAt", o.now().Format(time.RFC3339))}}})
	case remedy.Resume:
		return o.merge(ctx, op, map[string]any{"spec": map[string]any{"paused": nil}})
	case remedy.Annotate:
		return o.merge(ctx, op, map[string]any{"metadata": annotations(op.Value, o.now().Format(time.RFC3339))})
	case remedy.Create:
		return o.create(ctx, op)
	case remedy.Restore:
		return o.make(ctx, id, op.Manifest)
	case remedy.Finalize:
		return o.update(ctx, op, "finalize", func(namespace map[string]any) bool {
			values, _, _ := unstructured.NestedStringSlice(namespace, "spec", "finalizers")
			left := slices.DeleteFunc(slices.Clone(values), func(value string) bool { return value == op.Value })
			return len(left) < len(values) && unstructured.SetNestedStringSlice(namespace, left, "spec", "finalizers") == nil
		})
	case remedy.Taint, remedy.Untaint:
		return o.update(ctx, op, "", func(node map[string]any) bool { return taint(node, op.Value, op.Verb == remedy.Taint) })
	}
	return fmt.Errorf("nothing sends a %q", op.Verb)
}

func annotations(key, value string) map[string]any {
	return map[string]any{"annotations": map[string]any{key: value}}
}

// taint puts the taint, as kubectl writes it, on a node that has none of its key and effect, or takes exactly it off, and reports whether
// that changes the node.
func taint(node map[string]any, text string, on bool) bool {
	taints, _, _ := unstructured.NestedSlice(node, "spec", "taints")
	wanted := remedy.ParseTaint(text)
	if !on {
		left := slices.DeleteFunc(slices.Clone(taints), wanted.Is)
		return len(left) < len(taints) && unstructured.SetNestedSlice(node, left, "spec", "taints") == nil
	}
	if slices.ContainsFunc(taints, wanted.Like) {
		return false
	}
	entry := map[string]any{"key": wanted.Key, "value": wanted.Value, "effect": wanted.Effect}
	return unstructured.SetNestedSlice(node, append(taints, entry), "spec", "taints") == nil
}

// update reads an object, or a subresource of it, and writes it as changed, if it is the object and still can be changed
// so. Its resourceVersion is the guard against changes in between.
func (o *Operator) update(ctx context.Context, op *remedy.Op, subresource string, change func(map[string]any) bool) error {
	id := op.Object
	path := id.Resource.Path(id.Namespace, id.Name)
	read := path
	if subresource == "scale" { // finalize can only be written
		read = append(slices.Clone(path), subresource)
	}
	data, err := raw(ctx, o.rest.Get().AbsPath(read...).SetHeader("Accept", "application/json"))
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return err
	}
	if object.GetUID() != id.UID || op.Exact && object.GetResourceVersion() != op.Version || !change(object.Object) {
		return fmt.Errorf("%s: %w", id, remedy.ErrChanged)
	}
	if subresource != "" {
		path = append(path, subresource)
	}
	return o.request(ctx, inJSON(o.rest.Put()).AbsPath(path...).Param("fieldManager", o.manager), object.Object)
}

// merge changes an object by a JSON merge patch, guarded by its UID, and by its version if that has to be exact.
func (o *Operator) merge(ctx context.Context, op *remedy.Op, patch map[string]any) error {
	guards := map[string]string{"uid": string(op.Object.UID)}
	if op.Exact {
		guards["resourceVersion"] = op.Version
	}
	for field, value := range guards {
		if err := unstructured.SetNestedField(patch, value, "metadata", field); err != nil {
			return err
		}
	}
	return o.patch(ctx, op.Object, types.MergePatchType, patch)
}

func (o *Operator) patch(ctx context.Context, id graph.Identity, kind types.PatchType, patch any) error {
	return o.request(ctx, o.rest.Patch(kind).AbsPath(id.Resource.Path(id.Namespace, id.Name)...).Param("fieldManager", o.manager), patch)
}

// create makes an object with a grant, or with nothing but its name.
func (o *Operator) create(ctx context.Context, op *remedy.Op) error {
	id := op.Object
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(id.Resource.GroupVersionKind())
	object.SetName(id.Name)
	object.SetNamespace(id.Namespace)
	if g := op.Grant; g != nil {
		maps.Copy(object.Object, g.Binding())
	}
	return o.make(ctx, id, object.Object)
}

func (o *Operator) make(ctx context.Context, id graph.Identity, object map[string]any) error {
	return o.request(ctx, inJSON(o.rest.Post()).AbsPath(id.Resource.Path(id.Namespace, "")...).Param("fieldManager", o.manager), object)
}

// Read returns an object as it is now, with everything that is in it.
func (o *Operator) Read(ctx context.Context, id graph.Identity) (*unstructured.Unstructured, error) {
	data, err := raw(ctx, o.rest.Get().AbsPath(id.Resource.Path(id.Namespace, id.Name)...).SetHeader("Accept", "application/json"))
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(data)
}

// inJSON says in what form the body of a request is; a patch says it itself.
func inJSON(request *rest.Request) *rest.Request {
	return request.SetHeader("Content-Type", "application/json")
}

func (o *Operator) request(ctx context.Context, request *rest.Request, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request.SetHeader("Accept", metadataOnly)
	for _, value := range o.dryRun {
		request.Param("dryRun", value)
	}
	_, err = raw(ctx, request.Body(data))
	return err
}
