// SPDX-License-Identifier: Apache-2.0

// Package fakeclient has a deletiontest.Kit collect what is in controller-runtime's fake client. Prefer envtest, which has
// a real API server. Its limits:
//
//   - Nothing tells a controller what happens: the test calls Reconcile.
//   - What is written through the client that Serve returns is seen as it happens, also beneath interceptors around that;
//     subresources, and what is written to the fake client itself, are seen when the Kit looks next.
//   - An object that was built with the fake client, or created by a server-side apply, gets its UID afterwards: read it
//     before you hand it over, or make it an owner.
//   - Owner references are validated in Create, Update and Patch, and nothing else is: new finalizers are accepted while an
//     object is being deleted. There is no admission: nobody protects claims and volumes by finalizers.
//   - A deletion has its policy, or the default one of its type, and its preconditions; DeleteAllOf deletes one by one. A pod
//     goes at once. A namespace that is being deleted has the finalizer "kubernetes" in its metadata until it is empty,
//     and does not refuse new objects. A CustomResourceDefinition goes without its objects.
//   - The objects of a type should be in one version, and either all in namespaces or none. The namespace need not exist.
package fakeclient

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// Serve returns a client for the test and the controller under test, in place of the fake client, and the config of an API
// server for deletiontest.Start that has the same objects until the test ends.
func Serve(t testing.TB, fake client.WithWatch) (client.WithWatch, *rest.Config) {
	t.Helper()
	s := &server{fake: fake, objects: map[key]*entry{}, news: make(chan struct{})}
	for _, known := range []*runtime.Scheme{fake.Scheme(), scheme.Scheme} {
		s.mapper = append(s.mapper, fake.RESTMapper(), testrestmapper.TestOnlyStaticRESTMapper(known))
		for _, gv := range known.PrioritizedVersionsAllGroups() {
			for kind := range known.KnownTypes(gv) {
				if o, err := known.New(gv.WithKind(kind)); err == nil && known.Recognizes(gv.WithKind(kind+"List")) {
					if _, is := o.(metav1.Object); is {
						s.serve(gv.WithKind(kind), known == fake.Scheme())
					}
				}
			}
		}
	}
	s.serve(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, false)
	s.serve(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, false)
	for i := range s.types {
		if err := s.look(t.Context(), &s.types[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range s.objects {
		if err := validate(e.object); err != nil {
			t.Fatal(err)
		}
	}
	listener := httptest.NewServer(s.handler())
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
	})
	return interceptor.NewClient(fake, s.funcs()), &rest.Config{Host: listener.URL}
}

// serve returns a type, which it adds if it is new.
func (s *server) serve(kind schema.GroupVersionKind, known bool) *servedType {
	if i := slices.IndexFunc(s.types, func(t servedType) bool { return t.kind == kind }); i >= 0 {
		return &s.types[i]
	}
	added := servedType{kind: kind, known: known, namespaced: true}
	if mapping, err := (meta.FirstHitRESTMapper{MultiRESTMapper: s.mapper}).RESTMapping(kind.GroupKind(), kind.Version); err == nil {
		added.resource, added.namespaced = mapping.Resource.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace
	} else {
		guess, _ := meta.UnsafeGuessKindToResource(kind)
		added.resource = guess.Resource
	}
	s.types = append(s.types, added)
	return &s.types[len(s.types)-1]
}

// server is an API server over a fake client.
type server struct {
	fake   client.WithWatch
	mapper meta.MultiRESTMapper

	mu      sync.Mutex // of each write
	types   []servedType
	objects map[key]*entry
	log     []change
	news    chan struct{} // closed, and another made, when the log has become longer
}

type servedType struct {
	kind       schema.GroupVersionKind
	resource   string
	namespaced bool
	known      bool // to the scheme of the fake client, which would add it
}

type key struct {
	schema.GroupVersionKind
	client.ObjectKey
}

// entry is an object as it is served: its resourceVersion says when it was changed among all others.
type entry struct {
	object *unstructured.Unstructured
	stored string // its resourceVersion in the fake client
}

// change made the version that is its place in the log.
type change struct {
	kind   watch.EventType
	key    key
	object *unstructured.Unstructured
}

func (s *server) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			identify(o)
			err := s.write(ctx, o, func() error { return c.Create(ctx, o, options...) })
			if err != nil {
				o.SetUID("")
				o.SetCreationTimestamp(metav1.Time{})
			}
			return err
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return s.write(ctx, o, func() error { return c.Update(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			return s.write(ctx, o, func() error { return c.Patch(ctx, o, p, options...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, applied runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(applied)
			if err != nil {
				return err
			}
			return s.write(ctx, &unstructured.Unstructured{Object: o}, func() error { return c.Apply(ctx, applied, options...) })
		},
		Delete: func(ctx context.Context, _ client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return s.deleteOne(ctx, o, (&client.DeleteOptions{}).ApplyOptions(options).AsDeleteOptions())
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteAllOfOption) error {
			all := (&client.DeleteAllOfOptions{}).ApplyOptions(options)
			kind, err := c.GroupVersionKindFor(o)
			if err != nil {
				return err
			}
			list := listOf(kind)
			if err := c.List(ctx, list, &all.ListOptions); err != nil {
				return err
			}
			for i := range list.Items {
				if err := s.deleteOne(ctx, &list.Items[i], all.AsDeleteOptions()); client.IgnoreNotFound(err) != nil {
					return err
				}
			}
			return nil
		},
	}
}

func listOf(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

func (s *server) keyOf(o client.Object) (key, error) {
	kind, err := s.fake.GroupVersionKindFor(o)
	return key{kind, client.ObjectKeyFromObject(o)}, err
}

// validate returns what the API server says of wrong owner references: one without a UID is that of an owner that was not read.
func validate(o client.Object) error {
	wrong := validation.ValidateOwnerReferences(o.GetOwnerReferences(), field.NewPath("metadata", "ownerReferences"))
	if len(wrong) == 0 {
		return nil
	}
	return apierrors.NewInvalid(o.GetObjectKind().GroupVersionKind().GroupKind(), o.GetName(), wrong)
}

// write has the fake client write an object.
func (s *server) write(ctx context.Context, o client.Object, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := validate(o); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	k, err := s.keyOf(o)
	if err != nil {
		return err
	}
	_, err = s.see(ctx, k)
	return err
}

// identify gives a new object what a fake client does not.
func identify(o client.Object) {
	o.SetUID(uuid.NewUUID())
	o.SetCreationTimestamp(metav1.Now())
}

// namespaceFinalizer is that of spec.finalizers. A fake client removes what is being deleted and has none in its metadata.
const namespaceFinalizer = "kubernetes"

func (k key) isNamespace() bool { return k.Group == "" && k.Kind == "Namespace" }

func (s *server) deleteOne(ctx context.Context, o client.Object, options *metav1.DeleteOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.keyOf(o)
	if err != nil {
		return err
	}
	return s.delete(ctx, k, options)
}

// delete deletes as the API server does, and leaves to the fake client when the object goes.
func (s *server) delete(ctx context.Context, k key, options *metav1.DeleteOptions) error {
	o, err := s.see(ctx, k)
	resource, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
	switch p := options.Preconditions; {
	case err != nil:
		return err
	case o == nil:
		return apierrors.NewNotFound(resource.GroupResource(), k.Name)
	case p != nil && (p.UID != nil && *p.UID != o.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion()):
		return apierrors.NewConflict(resource.GroupResource(), k.Name, errors.New("it is not the object that the preconditions are for"))
	case len(options.DryRun) > 0:
		return nil
	}
	finalizers := simulator.FinalizersForDeletion(o.GetFinalizers(), resource, *options)
	if k.isNamespace() && o.GetDeletionTimestamp() == nil {
		finalizers = append(slices.Clone(finalizers), namespaceFinalizer)
	}
	if !slices.Equal(finalizers, o.GetFinalizers()) {
		o.SetFinalizers(finalizers)
		err = s.fake.Update(ctx, o)
	}
	if err == nil && o.GetDeletionTimestamp() == nil {
		err = s.fake.Delete(ctx, o)
	}
	if err != nil {
		return err
	}
	_, err = s.see(ctx, k)
	return err
}

// look takes what the fake client has of a type.
func (s *server) look(ctx context.Context, of *servedType) error {
	if !of.known {
		return nil
	}
	list, there := listOf(of.kind), map[key]bool{}
	if err := s.fake.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		k := key{of.kind, client.ObjectKeyFromObject(&list.Items[i])}
		there[k] = true
		if err := s.take(ctx, k, &list.Items[i]); err != nil {
			return err
		}
	}
	for k := range s.objects {
		if k.GroupVersionKind == of.kind && !there[k] {
			s.end(k)
		}
	}
	return nil
}

// see takes an object as the fake client has it, and returns it, or nil if there is none.
func (s *server) see(ctx context.Context, k key) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(k.GroupVersionKind)
	switch err := s.fake.Get(ctx, k.ObjectKey, o); {
	case apierrors.IsNotFound(err):
		s.end(k)
		return nil, nil
	case err != nil:
		return nil, err
	}
	return o, s.take(ctx, k, o)
}

// take serves an object as it is now. One without a UID is new, and gets one.
func (s *server) take(ctx context.Context, k key, o *unstructured.Unstructured) error {
	if o.GetUID() == "" {
		identify(o)
		if err := s.fake.Update(ctx, o); err != nil {
			return err
		}
	}
	before := s.objects[k]
	if before != nil && before.object.GetUID() == o.GetUID() && before.stored == o.GetResourceVersion() {
		return nil
	}
	kind := watch.Modified
	if before == nil || before.object.GetUID() != o.GetUID() {
		s.end(k)
		kind = watch.Added
	}
	s.serve(k.GroupVersionKind, true).namespaced = k.Namespace != ""
	served := o.DeepCopy()
	if finalizers := served.GetFinalizers(); k.isNamespace() {
		served.SetFinalizers(slices.DeleteFunc(finalizers, func(f string) bool { return f == namespaceFinalizer }))
		if len(finalizers) > len(served.GetFinalizers()) {
			_ = unstructured.SetNestedStringSlice(served.Object, []string{namespaceFinalizer}, "spec", "finalizers") // the spec is an object
		}
	}
	s.objects[k] = &entry{served, o.GetResourceVersion()}
	s.tell(kind, k, served)
	return nil
}

// end notes that an object is gone, unless that is known.
func (s *server) end(k key) {
	if before := s.objects[k]; before != nil {
		delete(s.objects, k)
		s.tell(watch.Deleted, k, before.object.DeepCopy())
	}
}

func (s *server) tell(kind watch.EventType, k key, o *unstructured.Unstructured) {
	o.SetResourceVersion(strconv.Itoa(len(s.log) + 1))
	s.log = append(s.log, change{kind, k, o})
	close(s.news)
	s.news = make(chan struct{})
}
