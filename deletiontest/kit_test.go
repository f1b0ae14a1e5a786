// SPDX-License-Identifier: Apache-2.0

package deletiontest_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-gc/kubectl-gc/deletiontest"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// apiServer is the config of a control plane without controllers, as envtest has it; nil with -short.
var apiServer *rest.Config

func TestMain(m *testing.M) {
	flag.Parse()
	code := func() int {
		if testing.Short() {
			return m.Run()
		}
		cp, err := controlplane.Run(context.Background(), controlplane.Options{}, os.Stderr)
		if err == nil {
			defer func() { _ = cp.Close() }()
			apiServer, err = clientcmd.BuildConfigFromFlags("", cp.Kubeconfig)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		apiServer.QPS = -1
		return m.Run()
	}()
	os.Exit(code)
}

// connect returns a client in a namespace of the test's own.
func connect(t *testing.T) (client.Client, string) {
	t.Helper()
	if apiServer == nil {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	c, err := client.New(apiServer, client.Options{})
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

func TestManyDependents(t *testing.T) {
	c, namespace := connect(t)
	owner := configMap(namespace, "owner")
	create(t, c, owner)
	for i := range 1000 {
		create(t, c, configMap(namespace, fmt.Sprintf("dependent-%d", i), owner))
	}
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground} {
		kit := deletiontest.Start(t, apiServer)
		kit.Settle()
		begun := time.Now()
		kit.Delete(owner, policy)
		kit.LeavesNothing(owner)
		t.Logf("1000 dependents, %s: %s", policy, time.Since(begun))
	}
}

func TestKinds(t *testing.T) {
	c, namespace := connect(t)
	kit := deletiontest.Start(t, apiServer)
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
	begun := time.Now()
	kit.Delete(owner, metav1.DeletePropagationForeground)
	kit.LeavesNothing(owner)
	t.Log(time.Since(begun))
	stuck := configMap(namespace, "stuck")
	stuck.Finalizers = []string{"toys.example.com/cleanup"}
	create(t, c, stuck)
	kit.Delete(stuck, metav1.DeletePropagationBackground)
	kit.StaysStuck(stuck, "fin-absent")
	t.Log(time.Since(begun))
	stuck.Finalizers = nil
	if err := c.Patch(t.Context(), stuck, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	var ns corev1.Namespace
	if err := c.Get(t.Context(), client.ObjectKey{Name: namespace}, &ns); err != nil {
		t.Fatal(err)
	}
	kit.Finalizes(&ns, 10*time.Second)
	t.Log(time.Since(begun))
}
