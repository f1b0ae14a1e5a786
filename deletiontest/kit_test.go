// SPDX-License-Identifier: Apache-2.0

package deletiontest_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-gc/kubectl-gc/deletiontest"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

// bare is a control plane without controllers, as envtest has it, that starts when a test needs it.
var bare struct {
	sync.Once
	*controlplane.ControlPlane
	config *rest.Config
	err    error
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	code := m.Run()
	if bare.ControlPlane != nil {
		if err := bare.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// apiServer returns the config of the control plane.
func apiServer(t testing.TB) *rest.Config {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	bare.Do(func() {
		if bare.ControlPlane, bare.err = controlplane.Run(context.Background(), controlplane.Options{}, os.Stderr); bare.err == nil {
			bare.config, bare.err = clientcmd.BuildConfigFromFlags("", bare.Kubeconfig)
		}
	})
	if bare.err != nil {
		t.Fatal(bare.err)
	}
	config := rest.CopyConfig(bare.config)
	config.QPS = -1
	return config
}

// connect returns a client in a namespace of the test's own.
func connect(t *testing.T) (client.Client, string) {
	t.Helper()
	c, err := client.New(apiServer(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, c, namespace)
	return c, namespace.Name
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// configMap returns an object, owned by others.
func configMap(namespace, name string, owners ...metav1.Object) *corev1.ConfigMap {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, owner := range owners {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.GetName(), UID: owner.GetUID(), BlockOwnerDeletion: new(true),
		})
	}
	return o
}

// TestManyDependents says how long the dependents of an owner take, beside as many deletions by themselves.
func TestManyDependents(t *testing.T) {
	c, namespace := connect(t)
	many := nightly.Of(100, 1000)
	var dependents []client.Object
	make := func(owners ...metav1.Object) {
		dependents = nil
		for i := range many {
			dependents = append(dependents, configMap(namespace, fmt.Sprintf("dependent-%d", i), owners...))
		}
		each(t, dependents, func(o client.Object) error { return c.Create(t.Context(), o) })
	}
	make()
	begun := time.Now()
	each(t, dependents, func(o client.Object) error { return c.Delete(t.Context(), o) })
	t.Logf("%d deletions: %s", many, time.Since(begun))

	kit := deletiontest.Start(t, apiServer(t))
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		owner := configMap(namespace, "owner")
		create(t, c, owner)
		make(owner)
		kit.Settle()
		begun := time.Now()
		kit.Delete(owner, policy)
		kit.LeavesNothing(owner)
		t.Logf("%d dependents, %s: %s", many, policy, time.Since(begun))
	}
}

// each does something about each of all, as many at once as the garbage collector does.
func each[T any](t *testing.T, all []T, do func(T) error) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(20)
	for _, one := range all {
		group.Go(func() error { return do(one) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestKinds(t *testing.T) {
	c, namespace := connect(t)
	kit := deletiontest.Start(t, apiServer(t))
	owner := configMap(namespace, "owner")
	create(t, c, owner)
	child := configMap(namespace, "child", owner)
	create(t, c, child)
	grandchild := configMap(namespace, "grandchild", child)
	create(t, c, grandchild)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"}, Spec: corev1.PodSpec{
		NodeName: "somewhere", Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}
	pod.OwnerReferences = grandchild.OwnerReferences
	create(t, c, pod)
	kit.Delete(owner, metav1.DeletePropagationForeground)
	kit.LeavesNothing(owner)
	stuck := configMap(namespace, "stuck")
	stuck.Finalizers = []string{"toys.example.com/cleanup"}
	create(t, c, stuck)
	kit.Delete(stuck, metav1.DeletePropagationBackground)
	kit.StaysStuck(stuck, "fin-absent")
	if err := c.Patch(t.Context(), stuck, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	var ns corev1.Namespace
	if err := c.Get(t.Context(), client.ObjectKey{Name: namespace}, &ns); err != nil {
		t.Fatal(err)
	}
	kit.Finalizes(&ns, 10*time.Second)
}

// TestEnds has two Kits at once, of which nothing is left when they have ended.
func TestEnds(t *testing.T) {
	c, namespace := connect(t)
	before := goleak.IgnoreCurrent()
	for range 2 {
		t.Run("kit", func(t *testing.T) {
			t.Parallel()
			kit := deletiontest.Start(t, apiServer(t))
			owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "owner-"}}
			create(t, c, owner)
			kit.Delete(owner, metav1.DeletePropagationForeground)
			kit.LeavesNothing(owner)
		})
	}
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}
