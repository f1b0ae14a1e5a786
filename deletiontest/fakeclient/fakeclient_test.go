// SPDX-License-Identifier: Apache-2.0

package fakeclient_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-gc/kubectl-gc/deletiontest"
	"github.com/kubectl-gc/kubectl-gc/deletiontest/fakeclient"
)

const cleanup = "toys.example.com/cleanup"

// configMap returns an object, owned by others.
func configMap(name string, owners ...metav1.Object) *corev1.ConfigMap {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	for _, owner := range owners {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.GetName(), UID: owner.GetUID(), BlockOwnerDeletion: new(true),
		})
	}
	return o
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// finalizers returns those of an object, and whether it is there.
func finalizers(t *testing.T, c client.Client, o client.Object) ([]string, bool) {
	t.Helper()
	switch err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); {
	case apierrors.IsNotFound(err):
		return nil, false
	case err != nil:
		t.Fatal(err)
	}
	return o.GetFinalizers(), true
}

func TestPolicies(t *testing.T) {
	job := func() client.Object {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "job"}}
	}
	plain := func() client.Object { return configMap("plain") }
	held := func() client.Object {
		o := configMap("held")
		o.Finalizers = []string{cleanup, metav1.FinalizerOrphanDependents}
		return o
	}
	for name, test := range map[string]struct {
		object  func() client.Object
		options []client.DeleteOption
		want    []string // its finalizers, nil when it is gone
	}{
		"background":     {plain, []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}, nil},
		"foreground":     {plain, []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationForeground)}, []string{"foregroundDeletion"}},
		"orphan":         {plain, []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationOrphan)}, []string{"orphan"}},
		"none":           {plain, nil, nil},
		"of a Job":       {job, nil, []string{"orphan"}},
		"of the object":  {held, nil, []string{cleanup, "orphan"}},
		"in its place":   {held, []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationForeground)}, []string{cleanup, "foregroundDeletion"}},
		"and without it": {held, []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}, []string{cleanup}},
		"dry run":        {held, []client.DeleteOption{client.DryRunAll, client.PropagationPolicy("Foreground")}, []string{cleanup, "orphan"}},
	} {
		t.Run(name, func(t *testing.T) {
			for how, remove := range map[string]func(client.Client, client.Object) error{
				"Delete": func(c client.Client, o client.Object) error { return c.Delete(t.Context(), o, test.options...) },
				"DeleteAllOf": func(c client.Client, o client.Object) error {
					options := []client.DeleteAllOfOption{client.InNamespace("shop")}
					for _, option := range test.options {
						options = append(options, option.(client.DeleteAllOfOption))
					}
					return c.DeleteAllOf(t.Context(), o, options...)
				},
			} {
				c, _ := fakeclient.Serve(t, fake.NewClientBuilder().Build())
				o := test.object()
				create(t, c, o)
				if err := remove(c, o); err != nil {
					t.Fatal(err)
				}
				if got, there := finalizers(t, c, o); !slices.Equal(got, test.want) || there != (test.want != nil) {
					t.Errorf("%s: it has the finalizers %v, want %v", how, got, test.want)
				}
			}
		})
	}
}

func TestPreconditions(t *testing.T) {
	c, _ := fakeclient.Serve(t, fake.NewClientBuilder().Build())
	o := configMap("plain")
	create(t, c, o)
	version := o.ResourceVersion
	for _, p := range []client.Preconditions{{UID: new(o.UID + "-not")}, {ResourceVersion: new(version + "0")}} {
		if err := c.Delete(t.Context(), o, p); !apierrors.IsConflict(err) {
			t.Errorf("got %v", err)
		}
	}
	if err := c.Delete(t.Context(), o, client.Preconditions{UID: &o.UID, ResourceVersion: &version}); err != nil {
		t.Error(err)
	}
	if err := c.Delete(t.Context(), o); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

// failing is a test that fails for another one to see.
type failing struct {
	testing.TB
	failure string
}

func (f *failing) Fatal(args ...any) {
	f.failure = fmt.Sprint(args...)
	runtime.Goexit()
}

// An object has a UID, and a reference to one that was not read is refused.
func TestUIDs(t *testing.T) {
	built := configMap("built")
	c, _ := fakeclient.Serve(t, fake.NewClientBuilder().WithObjects(built).Build())
	applied := applycorev1.ConfigMap("applied", "shop")
	if err := c.Apply(t.Context(), applied, client.FieldOwner("test")); err != nil {
		t.Fatal(err)
	}
	created := configMap("created")
	create(t, c, created)
	if created.UID == "" || created.CreationTimestamp.IsZero() {
		t.Errorf("got %v", created)
	}
	created.Data = map[string]string{"a": "b"}
	if err := c.Update(t.Context(), created); err != nil {
		t.Error(err)
	}
	wrong := configMap("wrong", built)
	if err := c.Create(t.Context(), wrong); !apierrors.IsInvalid(err) {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"built", "applied"} {
		o := configMap(name)
		if _, there := finalizers(t, c, o); !there || o.UID == "" {
			t.Errorf("got %v", o)
		}
	}
	failure := failureOf(t, func(t testing.TB) { fakeclient.Serve(t, fake.NewClientBuilder().WithObjects(wrong).Build()) })
	if failure == "" {
		t.Error("it serves an object with such a reference")
	}
}

// failureOf runs a test that has to fail.
func failureOf(t *testing.T, test func(testing.TB)) string {
	f, ended := &failing{TB: t}, make(chan struct{})
	go func() {
		defer close(ended)
		test(f)
	}()
	<-ended
	return f.failure
}

// A namespace goes with its content, of types that the scheme does not have, too; orphans stay.
func TestKit(t *testing.T) {
	c, cfg := fakeclient.Serve(t, fake.NewClientBuilder().Build())
	kit := deletiontest.Start(t, cfg)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	owner := configMap("owner")
	create(t, c, namespace, owner)
	child := configMap("child", owner)
	widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
	widget.SetName("widget")
	inside := widget.DeepCopy()
	inside.SetKind("Gadget")
	inside.SetNamespace("shop")
	inside.SetFinalizers([]string{cleanup})
	create(t, c, child, widget, inside)
	orphan := configMap("orphan", child)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod"}, Spec: corev1.PodSpec{NodeName: "somewhere"}}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "volume"}}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Widget", Name: "widget", UID: widget.GetUID()}}
	volume.OwnerReferences = pod.OwnerReferences
	create(t, c, orphan, pod)

	kit.NoWrongReferences()
	kit.Delete(child, metav1.DeletePropagationOrphan)
	kit.Settle()
	if _, there := finalizers(t, c, orphan); !there || len(orphan.OwnerReferences) > 0 {
		t.Errorf("got %v", orphan)
	}
	kit.Delete(widget, metav1.DeletePropagationBackground)
	kit.LeavesNothing(widget)
	create(t, c, volume)
	kit.Settle()
	if _, there := finalizers(t, c, volume); there {
		t.Error("a volume is kept of which the owner is gone")
	}
	kit.Delete(namespace, metav1.DeletePropagationBackground)
	kit.StaysStuck(namespace, "fin-absent")
	failure := failureOf(t, func(t testing.TB) { deletiontest.Start(t, cfg).LeavesNothing(namespace) })
	if !strings.Contains(failure, "fin-absent") || strings.Contains(failure, "kube-controller-manager") {
		t.Errorf("a Kit stands for the namespace controller, and this fails with:\n%s", failure)
	}
	if _, there := finalizers(t, c, inside); !there {
		t.Fatal("it is gone")
	}
	inside.SetFinalizers(nil)
	if err := c.Update(t.Context(), inside); err != nil {
		t.Fatal(err)
	}
	kit.LeavesNothing(namespace, inside, owner, orphan)
}
