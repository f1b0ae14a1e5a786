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
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Sender sends all changes, each with its guards. It repeats nothing: a write that is not
// answered may have been carried out, and what became of it is to be looked at (answer.Missing). Its methods may be
// called by several goroutines at once. What an Op says to save is the caller's to keep before.
type Sender struct {
	rest    rest.Interface
	manager string
	dryRun  []string
	now     func() time.Time

	mu sync.Mutex
	// untried has, for dry runs, why none is sent for the types of a group version, nil when they are.
	untried map[schema.GroupVersion]error
}

// NewSender returns a Sender for the cluster of the config that writes as the field manager. With a dry run it cannot write: its transport
// refuses every request but dry runs and reads, and of what an aggregated API may serve, which may not know dry runs, the error is a
// NotAskedError.
func NewSender(config *rest.Config, stats *Stats, manager string, dryRun bool) (*Sender, error) {
	return newSender(config, stats, manager, dryRun, probeTimeout)
}

func newSender(config *rest.Config, stats *Stats, manager string, dryRun bool, timeout time.Duration) (*Sender, error) {
	client, trial := unlimited, []string(nil)
	if dryRun {
		client, trial = dryRunClient, []string{metav1.DryRunAll}
	}
	r, err := client(config, stats, timeout)
	if err != nil {
		return nil, err
	}
	return &Sender{rest: r, manager: manager, dryRun: trial, now: time.Now, untried: map[schema.GroupVersion]error{}}, nil
}

// Do makes one change. The error is remedy.ErrChanged when its guards do not hold, and otherwise what the server said. Collect is no
// request: gc.Collector does that.
func (s *Sender) Do(ctx context.Context, op *remedy.Op) error {
	_, err := s.send(ctx, op)
	if apierrors.IsConflict(err) || answer.NoSuchObject(err, op.Object.Resource.GroupResource(), op.Object.Name) {
		return fmt.Errorf("%s: %w: %w", op.Object, remedy.ErrChanged, err)
	}
	return err
}

// send makes one change and returns the answer: the object's metadata, unless it was deleted. Guards that do not hold are a Conflict,
// whatever the server calls them.
func (s *Sender) send(ctx context.Context, op *remedy.Op) ([]byte, error) {
	if s.dryRun != nil {
		if err := s.mayTry(ctx, op.Object.Resource.GroupVersion()); err != nil {
			return nil, err
		}
	}
	data, err := s.carryOut(ctx, op)
	if answer.WrongUID(err) || (op.Verb == remedy.Patch || op.Verb == remedy.Scale) && failedTest(err) {
		err = apierrors.NewConflict(op.Object.Resource.GroupResource(), op.Object.Name, err)
	}
	return data, err
}

// mayTry returns a NotAskedError unless kube-apiserver itself serves the types
// of the group version.
func (s *Sender) mayTry(ctx context.Context, gv schema.GroupVersion) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	untried, known := s.untried[gv]
	if known {
		return untried
	}
	local, err := graph.Local(gv, func(name string) (*unstructured.Unstructured, error) {
		return s.Read(ctx, graph.Identity{Resource: graph.Resource{GroupVersionResource: graph.APIServices}, Name: name})
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		untried = NotAskedError{"whether an aggregated API serves it could not be read: " + err.Error()}
	case !local:
		untried = NotAskedError{"an aggregated API might not support dry runs"}
	}
	s.untried[gv] = untried
	return untried
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

func (s *Sender) carryOut(ctx context.Context, op *remedy.Op) ([]byte, error) {
	switch id := op.Object; op.Verb {
	case remedy.Delete:
		options := *op.Options
		options.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
		options.DryRun = s.dryRun
		return s.request(ctx, inJSON(s.rest.Delete()).AbsPath(id.Resource.Path(id.Namespace, id.Name)...), &options)
	case remedy.Patch:
		return s.patch(ctx, id, types.JSONPatchType, op.Patch)
	case remedy.Scale:
		if graph.BuiltinGroup(id.Resource.Group) { // the API server loses who manages the replicas where the subresource is written
			steps := []remedy.Step{remedy.Test("/spec/replicas", op.Replicas.Current), remedy.Replace("/spec/replicas", op.Replicas.Wanted)}
			patched := remedy.PatchOf(id, steps...)
			if op.Exact {
				patched = patched.At(op.Version)
			}
			return s.patch(ctx, id, types.JSONPatchType, patched.Patch)
		}
		return s.update(ctx, op, "scale", func(scale map[string]any) bool {
			now, _, _ := unstructured.NestedInt64(scale, "spec", "replicas") // 0 is not written
			return now == op.Replicas.Current && unstructured.SetNestedField(scale, op.Replicas.Wanted, "spec", "replicas") == nil
		})
	case remedy.Restart:
		return s.merge(ctx, op,
			map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": annotations("kubectl.kubernetes.io/restartedAt",
				s.now().Format(time.RFC3339))}}})
	case remedy.Resume:
		return s.merge(ctx, op, map[string]any{"spec": map[string]any{"paused": nil}})
	case remedy.Annotate:
		return s.merge(ctx, op, map[string]any{"metadata": annotations(op.Value, s.now().Format(time.RFC3339))})
	case remedy.Create:
		return s.create(ctx, op)
	case remedy.Restore:
		return s.make(ctx, id, op.Manifest)
	case remedy.Finalize:
		return s.update(ctx, op, "finalize", func(namespace map[string]any) bool {
			values, _, _ := unstructured.NestedStringSlice(namespace, "spec", "finalizers")
			left := slices.DeleteFunc(slices.Clone(values), func(value string) bool { return value == op.Value })
			return len(left) < len(values) && unstructured.SetNestedStringSlice(namespace, left, "spec", "finalizers") == nil
		})
	case remedy.Taint, remedy.Untaint:
		return s.update(ctx, op, "", func(node map[string]any) bool { return taint(node, op.Value, op.Verb == remedy.Taint) })
	}
	return nil, fmt.Errorf("nothing sends a %q", op.Verb)
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
func (s *Sender) update(ctx context.Context, op *remedy.Op, subresource string, change func(map[string]any) bool) ([]byte, error) {
	id := op.Object
	path := id.Resource.Path(id.Namespace, id.Name)
	read := path
	if subresource == "scale" { // finalize can only be written
		read = append(slices.Clone(path), subresource)
	}
	data, err := raw(ctx, s.rest.Get().AbsPath(read...).SetHeader("Accept", "application/json"))
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	if object.GetUID() != id.UID || op.Exact && object.GetResourceVersion() != op.Version || !change(object.Object) {
		return nil, fmt.Errorf("%s: %w", id, remedy.ErrChanged)
	}
	if subresource != "" {
		path = append(path, subresource)
	}
	return s.request(ctx, inJSON(s.rest.Put()).AbsPath(path...).Param("fieldManager", s.manager), object.Object)
}

// merge changes an object by a JSON merge patch, guarded by its UID, and by its version if that has to be exact.
func (s *Sender) merge(ctx context.Context, op *remedy.Op, patch map[string]any) ([]byte, error) {
	guards := map[string]string{"uid": string(op.Object.UID)}
	if op.Exact {
		guards["resourceVersion"] = op.Version
	}
	for field, value := range guards {
		if err := unstructured.SetNestedField(patch, value, "metadata", field); err != nil {
			return nil, err
		}
	}
	return s.patch(ctx, op.Object, types.MergePatchType, patch)
}

func (s *Sender) patch(ctx context.Context, id graph.Identity, kind types.PatchType, patch any) ([]byte, error) {
	return s.request(ctx, s.rest.Patch(kind).AbsPath(id.Resource.Path(id.Namespace, id.Name)...).Param("fieldManager", s.manager), patch)
}

// errUnmarked says why nothing is granted.
var errUnmarked = errors.New("an admission webhook or policy removes the annotation " + remedy.MarkAnnotation +
	", by which it would be taken back")

// create makes an object with nothing but its name, or a binding with a grant. That is made without subjects, which are added to what was
// made: a creation that arrives late, when nobody takes it back any more, grants nothing, and the other change is for one version.
func (s *Sender) create(ctx context.Context, op *remedy.Op) ([]byte, error) {
	id, g := op.Object, op.Grant
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(id.Resource.GroupVersionKind())
	object.SetName(id.Name)
	object.SetNamespace(id.Namespace)
	if g == nil {
		return s.make(ctx, id, object.Object)
	}
	maps.Copy(object.Object, g.Binding())
	if s.dryRun != nil {
		return s.make(ctx, id, object.Object)
	}
	delete(object.Object, "subjects")
	object.SetAnnotations(map[string]string{remedy.MarkAnnotation: op.Mark})
	answered, existed := s.make(ctx, id, object.Object)
	if existed != nil && !apierrors.IsAlreadyExists(existed) && !answer.Open(existed) { // without an answer it may have been made
		return nil, existed
	}
	made, err := s.Read(ctx, id)
	switch {
	case err != nil && existed != nil:
		return nil, existed
	case err != nil:
		made = &unstructured.Unstructured{}
		if json.Unmarshal(answered, &made.Object) != nil {
			return nil, err
		}
	}
	_, _, subjects := g.In(made.Object)
	if existed != nil && (!op.Made(made) || subjects > 0 || made.GetDeletionTimestamp() != nil) {
		return nil, existed
	}
	if err == nil && !op.Made(made) {
		err = errUnmarked
	}
	var data []byte
	if id.UID = made.GetUID(); err == nil {
		step := remedy.Add("/subjects", []any{g.Subject()})
		if subjects > 0 { // by admission
			step = remedy.Add("/subjects/-", g.Subject())
		}
		data, err = s.patch(ctx, id, types.JSONPatchType, remedy.PatchOf(id, step).At(made.GetResourceVersion()).Patch)
	}
	if err != nil && !answer.Open(err) {
		unused := remedy.DeleteOf(id, metav1.DeleteOptions{}).At(made.GetResourceVersion())
		_, _ = s.carryOut(ctx, &unused) // it grants nothing
	}
	return data, err
}

func (s *Sender) make(ctx context.Context, id graph.Identity, object map[string]any) ([]byte, error) {
	return s.request(ctx, inJSON(s.rest.Post()).AbsPath(id.Resource.Path(id.Namespace, "")...).Param("fieldManager", s.manager), object)
}

// Read returns an object as it is now, with everything that is in it.
func (s *Sender) Read(ctx context.Context, id graph.Identity) (*unstructured.Unstructured, error) {
	data, err := raw(ctx, s.rest.Get().AbsPath(id.Resource.Path(id.Namespace, id.Name)...).SetHeader("Accept", "application/json"))
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(data)
}

// List returns the objects of a type in a namespace, with everything that is in them.
func (s *Sender) List(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	of := graph.Resource{GroupVersionResource: resource, Namespaced: true}
	data, err := raw(ctx, s.rest.Get().AbsPath(of.Path(namespace, "")...).SetHeader("Accept", "application/json"))
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	return list.Items, list.UnmarshalJSON(data)
}

// inJSON says in what form the body of a request is; a patch says it itself.
func inJSON(request *rest.Request) *rest.Request {
	return request.SetHeader("Content-Type", "application/json")
}

func (s *Sender) request(ctx context.Context, request *rest.Request, body any) ([]byte, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request.SetHeader("Accept", metadataOnly)
	for _, value := range s.dryRun {
		request.Param("dryRun", value)
	}
	return raw(ctx, request.Body(data))
}
