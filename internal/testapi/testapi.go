// SPDX-License-Identifier: Apache-2.0

// Package testapi is an API server of whole objects in memory, for tests of what writes to them: it has their versions, holds the guards of
// changes, and answers as the API server does. Faults and other users act in Before and After.
package testapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Server is the API server. Its methods may be called by several goroutines at once;
// Before, After and BeforeRead are called without its lock.
type Server struct {
	// Before is called before a change is made; after an error, which is the answer, it is not made. After is called when it was made; an
	// error is the answer instead.
	Before, After func(*remedy.Op) error
	// BeforeRead is called before an object is read; an error is the answer.
	BeforeRead func(graph.Identity) error
	// Reclaims: the controllers of volumes destroy, or release, a volume whose claim is gone.
	Reclaims bool
	// Sent are the changes that were made, in their order.
	Sent []remedy.Op

	mu      sync.Mutex
	version int
	objects map[key]*unstructured.Unstructured
	history []Version
	// op is the change that is being made, nil while others write.
	op *remedy.Op
}

// Version is what became of an object, and by what.
type Version struct {
	// Op is the change that made it, nil for others.
	Op *remedy.Op
	// Before and After are nil where there is no object.
	Before, After *unstructured.Unstructured
	// Destroyed: the data of the volume is destroyed, as a consequence of the Version that came before.
	Destroyed bool
}

// Object is what a version is of.
func (v *Version) Object() *unstructured.Unstructured {
	if v.Before != nil {
		return v.Before
	}
	return v.After
}

// Removed reports whether the object is gone.
func (v *Version) Removed() bool { return v.After == nil }

// History returns all versions since the first so many.
func (s *Server) History(since int) []Version {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.history[since:])
}

// Objects returns all objects, by their kinds and names.
func (s *Server) Objects() []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(s.objects), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	var all []*unstructured.Unstructured
	for _, k := range keys {
		all = append(all, s.objects[k].DeepCopy())
	}
	return all
}

type key struct{ resource, namespace, name string }

func keyOf(id graph.Identity) key {
	return key{id.Resource.GroupResource().String(), id.Namespace, id.Name}
}

// New returns a server without objects.
func New() *Server { return &Server{objects: map[key]*unstructured.Unstructured{}} }

// Put stores an object as it is, as others do, in a new version. Its UID is that of the identity unless it has one.
func (s *Server) Put(id graph.Identity, object map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := (&unstructured.Unstructured{Object: object}).DeepCopy()
	o.SetName(id.Name)
	o.SetNamespace(id.Namespace)
	if o.GetUID() == "" {
		o.SetUID(id.UID)
	}
	if gvk := id.Resource.GroupVersionKind(); o.GetKind() == "" && gvk.Kind != "" {
		o.SetGroupVersionKind(gvk)
	}
	s.store(keyOf(id), o)
}

// Edit changes an object as others do; nothing where there is none.
func (s *Server) Edit(id graph.Identity, change func(*unstructured.Unstructured)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[keyOf(id)]; o != nil {
		o = o.DeepCopy()
		change(o)
		s.store(keyOf(id), o)
	}
}

// Remove removes an object as others do, whatever its finalizers.
func (s *Server) Remove(id graph.Identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(keyOf(id), nil)
}

// Object returns an object, nil for none.
func (s *Server) Object(id graph.Identity) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[keyOf(id)]; o != nil {
		return o.DeepCopy()
	}
	return nil
}

// store stores an object in a new version, or removes it: with nil, or when it is being deleted and has lost its last finalizer.
func (s *Server) store(at key, o *unstructured.Unstructured) {
	before := s.objects[at]
	v := Version{Op: s.op, Before: before, After: o}
	switch {
	case o == nil && before == nil:
		return
	case o == nil, o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0:
		delete(s.objects, at)
		v.After = nil
	default:
		setDefaults(o)
		s.version++
		o.SetResourceVersion(strconv.Itoa(s.version))
		s.objects[at] = o
	}
	s.history = append(s.history, v)
	if s.Reclaims {
		s.reclaim()
	}
}

// setDefaults fills in what the API server does (pkg/apis/admissionregistration/v1/defaults.go).
func setDefaults(o *unstructured.Unstructured) {
	of := []any{}
	switch o.GetKind() {
	case "ValidatingWebhookConfiguration":
		of, _, _ = unstructured.NestedSlice(o.Object, "webhooks")
		defer func() { o.Object["webhooks"] = of }()
	case "ValidatingAdmissionPolicyBinding":
		if resources, has, _ := unstructured.NestedMap(o.Object, "spec", "matchResources"); has {
			of = append(of, resources)
			defer set(o, resources, "spec", "matchResources")
		}
	}
	for _, each := range of {
		for field, value := range map[string]any{"matchPolicy": "Equivalent", "namespaceSelector": map[string]any{},
			"objectSelector": map[string]any{}} {
			if m := each.(map[string]any); m[field] == nil {
				m[field] = value
			}
		}
	}
}

// reclaim does what the controllers of volumes do once their claims are gone (pkg/controller/volume/persistentvolume/pv_controller.go,
// reclaimVolume).
func (s *Server) reclaim() {
	for at, volume := range s.objects {
		claim, bound, _ := unstructured.NestedStringMap(volume.Object, "spec", "claimRef")
		if at.resource != "persistentvolumes" || !bound {
			continue
		}
		policy, _, _ := unstructured.NestedString(volume.Object, "spec", "persistentVolumeReclaimPolicy")
		if c := s.objects[key{"persistentvolumeclaims", claim["namespace"], claim["name"]}]; c != nil && string(c.GetUID()) == claim["uid"] {
			continue
		}
		v := Version{Before: volume, Destroyed: policy == "Delete" || policy == "Recycle"}
		if phase, _, _ := unstructured.NestedString(volume.Object, "status", "phase"); phase == "Released" && !v.Destroyed {
			continue
		}
		if policy == "Delete" {
			delete(s.objects, at)
		} else {
			v.After = volume.DeepCopy()
			s.version++
			v.After.SetResourceVersion(strconv.Itoa(s.version))
			set(v.After, "Released", "status", "phase")
			if policy == "Recycle" {
				unstructured.RemoveNestedField(v.After.Object, "spec", "claimRef")
				set(v.After, "Available", "status", "phase")
			}
			s.objects[at] = v.After
		}
		s.history = append(s.history, v)
	}
}

// Read reads an object.
func (s *Server) Read(ctx context.Context, id graph.Identity) (*unstructured.Unstructured, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.BeforeRead != nil {
		if err := s.BeforeRead(id); err != nil {
			return nil, err
		}
	}
	if o := s.Object(id); o != nil {
		return o, nil
	}
	return nil, notFound(id)
}

// List returns the objects of a type in a namespace.
func (s *Server) List(_ context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []unstructured.Unstructured
	for k, o := range s.objects {
		if k.resource == resource.GroupResource().String() && k.namespace == namespace {
			all = append(all, *o.DeepCopy())
		}
	}
	return all, nil
}

func notFound(id graph.Identity) error {
	return apierrors.NewNotFound(id.Resource.GroupResource(), id.Name)
}

// Do makes a change, as cluster.Sender does on a real server.
func (s *Server) Do(ctx context.Context, op *remedy.Op) (err error) {
	if err = ctx.Err(); err == nil && s.Before != nil {
		err = s.Before(op)
	}
	if err == nil {
		err = s.Apply(op)
	}
	if err == nil && s.After != nil {
		err = s.After(op)
	}
	return err
}

// Apply makes a change, whenever it arrives.
func (s *Server) Apply(op *remedy.Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.op = op
	defer func() { s.op = nil }()
	at := keyOf(op.Object)
	o, err := s.objects[at], error(nil)
	switch {
	case op.Creates():
		if o != nil {
			return apierrors.NewAlreadyExists(op.Object.Resource.GroupResource(), op.Object.Name)
		}
		o = s.made(op)
		s.store(at, o)
	case o == nil:
		return fmt.Errorf("%w: %w", remedy.ErrChanged, notFound(op.Object))
	case op.Verb == remedy.Delete:
		err = s.delete(at, o, op)
	default:
		err = s.update(at, o, op)
	}
	if err == nil {
		s.Sent = append(s.Sent, *op)
	}
	return err
}

// made is an object that a change makes.
func (s *Server) made(op *remedy.Op) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	switch {
	case op.Manifest != nil:
		o = (&unstructured.Unstructured{Object: op.Manifest}).DeepCopy()
	case op.Grant != nil:
		o.Object = op.Grant.Binding()
		o.SetAnnotations(map[string]string{remedy.MarkAnnotation: op.Mark})
	}
	o.SetName(op.Object.Name)
	o.SetNamespace(op.Object.Namespace)
	o.SetUID(types.UID(fmt.Sprintf("made-%d", s.version+1)))
	return o
}

func conflict(op *remedy.Op) error {
	return fmt.Errorf("%w: %w", remedy.ErrChanged, apierrors.NewConflict(op.Object.Resource.GroupResource(), op.Object.Name,
		errors.New("the object has been modified")))
}

func (s *Server) delete(at key, o *unstructured.Unstructured, op *remedy.Op) error {
	if p := op.Options.Preconditions; p != nil && (p.UID != nil && *p.UID != o.GetUID() ||
		p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion()) {
		return conflict(op)
	}
	after := o.DeepCopy()
	if policy := op.Options.PropagationPolicy; policy != nil {
		after.SetFinalizers(finalizersFor(*policy, after.GetFinalizers()))
	}
	if o.GetDeletionTimestamp() == nil {
		after.SetDeletionTimestamp(new(metav1.Now()))
	}
	if !remedy.Same(o.Object, after.Object) {
		s.store(at, after)
	}
	return nil
}

// finalizersFor are those of an object that is deleted with a policy (apiserver/pkg/registry/generic/registry/store.go,
// deletionFinalizersForGarbageCollection).
func finalizersFor(policy metav1.DeletionPropagation, finalizers []string) []string {
	finalizers = slices.DeleteFunc(finalizers, func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
	switch policy {
	case metav1.DeletePropagationForeground:
		return append(finalizers, metav1.FinalizerDeleteDependents)
	case metav1.DeletePropagationOrphan:
		return append(finalizers, metav1.FinalizerOrphanDependents)
	}
	return finalizers
}

// update makes a change of an object that exists. What changes nothing makes no new version.
func (s *Server) update(at key, o *unstructured.Unstructured, op *remedy.Op) error {
	if op.Verb != remedy.Patch && (o.GetUID() != op.Object.UID || op.Exact && op.Version != o.GetResourceVersion()) {
		return conflict(op)
	}
	after := o.DeepCopy()
	switch op.Verb {
	case remedy.Patch:
		if err := patch(after, op); err != nil {
			return err
		}
	case remedy.Scale:
		now, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		if now != op.Replicas.Current {
			return conflict(op)
		}
		set(after, op.Replicas.Wanted, "spec", "replicas")
	case remedy.Resume:
		unstructured.RemoveNestedField(after.Object, "spec", "paused")
	case remedy.Taint, remedy.Untaint:
		taint(after, op)
	case remedy.Annotate:
		set(after, time.Now().String(), "metadata", "annotations", op.Value)
	case remedy.Restart:
		if o.GetKind() != "Pod" { // which has no template: the field is dropped
			set(after, time.Now().String(), "spec", "template", "metadata", "annotations", "restartedAt")
		}
	}
	more := slices.ContainsFunc(after.GetFinalizers(), func(f string) bool { return !slices.Contains(o.GetFinalizers(), f) })
	if o.GetDeletionTimestamp() != nil && more { // apimachinery/pkg/api/validation/objectmeta.go, ValidateNoNewFinalizers
		return apierrors.NewInvalid(op.Object.Resource.GroupVersionKind().GroupKind(), op.Object.Name, nil)
	}
	if !remedy.Same(o.Object, after.Object) {
		s.store(at, after)
	}
	return nil
}

func set(o *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err) // the tests' objects are such that it can be set
	}
}

func taint(o *unstructured.Unstructured, op *remedy.Op) {
	t := remedy.ParseTaint(op.Value)
	taints, _, _ := unstructured.NestedSlice(o.Object, "spec", "taints")
	taints = slices.DeleteFunc(taints, t.Is)
	if op.Verb == remedy.Taint {
		taints = append(taints, map[string]any{"key": t.Key, "value": t.Value, "effect": t.Effect, "timeAdded": "2026-01-02T03:04:05Z"})
	}
	set(o, taints, "spec", "taints")
}

func patch(o *unstructured.Unstructured, op *remedy.Op) error {
	document, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	words, err := json.Marshal(op.Patch)
	if err != nil {
		return err
	}
	steps, err := jsonpatch.DecodePatch(words)
	if err != nil {
		return err
	}
	if document, err = steps.Apply(document); err != nil {
		return fmt.Errorf("%w: %w", remedy.ErrChanged, err)
	}
	o.Object = nil
	return kjson.Unmarshal(document, &o.Object)
}
