// SPDX-License-Identifier: Apache-2.0

package deletiontest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubectl-gc/kubectl-gc/deletiontest"
	"github.com/kubectl-gc/kubectl-gc/deletiontest/fakeclient"
)

const cleanup = "toys.example.com/cleanup"

// bug is what is wrong with the operator.
type bug string

const (
	none        bug = "none"
	madeAgain   bug = "children made again"
	neverGone   bug = "finalizer never removed"
	tooEarly    bug = "finalizer removed too early"
	elsewhere   bug = "reference across namespaces"
	notBlocking bug = "no blockOwnerDeletion"
)

// toy is an operator: for each ConfigMap of that name it makes a Secret with a reference to it, and in the namespace default a
// ConfigMap without one, which it deletes before it removes its finalizer.
type toy struct {
	client.Client
	bug bug
}

// outside is the object in another namespace.
func outside(owner client.Object) *corev1.ConfigMap {
	return configMap("default", "of-"+owner.GetNamespace())
}

func (r *toy) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	owner := &corev1.ConfigMap{}
	if request.Name != "toy" {
		return reconcile.Result{}, nil
	}
	if err := r.Get(ctx, request.NamespacedName, owner); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !owner.DeletionTimestamp.IsZero() && r.bug != madeAgain {
		return reconcile.Result{}, r.finalize(ctx, owner)
	}
	if owner.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(owner, cleanup) {
		if err := r.Update(ctx, owner); err != nil {
			return reconcile.Result{}, err
		}
	}
	child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: "child"}}
	ref := metav1.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: new(r.bug != notBlocking),
	}
	child.OwnerReferences = []metav1.OwnerReference{ref}
	other := outside(owner)
	if r.bug == elsewhere {
		other.OwnerReferences = []metav1.OwnerReference{ref}
	}
	for _, o := range []client.Object{child, other} { // the other last: the test waits for it
		if err := r.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return reconcile.Result{}, err
		}
	}
	if !owner.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.finalize(ctx, owner)
	}
	return reconcile.Result{}, nil
}

func (r *toy) finalize(ctx context.Context, owner *corev1.ConfigMap) error {
	if r.bug != neverGone && r.bug != tooEarly {
		if err := client.IgnoreNotFound(r.Delete(ctx, outside(owner))); err != nil {
			return err
		}
	}
	if r.bug != neverGone && controllerutil.RemoveFinalizer(owner, cleanup) {
		return r.Update(ctx, owner)
	}
	return nil
}

// run runs the operator in a namespace until the function that it returns is called.
func (r *toy) run(t *testing.T, namespace string) (stop func()) {
	t.Helper()
	manager, err := ctrl.NewManager(apiServer(t), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Client = manager.GetClient()
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}, builder.MatchEveryOwner).Complete(r)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// recorder is a test that fails for another one to see.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.failure = fmt.Sprint(args...)
	runtime.Goexit()
}

// says is what a failure has to say of each bug.
var says = map[bug][]string{
	none:      nil,
	madeAgain: {"Secret/NAMESPACE/child was created", "must not create dependents of an owner that has a deletionTimestamp"},
	neverGone: {"leaves ConfigMap/NAMESPACE/toy", cleanup, "fin-absent"},
	tooEarly: {"ConfigMap/NAMESPACE/toy was gone while ConfigMap/default/of-NAMESPACE was still there",
		"its finalizer " + cleanup + " was removed before"},
	elsewhere:   {"ConfigMap/default/of-NAMESPACE", "another namespace"},
	notBlocking: {"Secret/NAMESPACE/child does not block the foreground deletion of ConfigMap/NAMESPACE/toy", "blockOwnerDeletion"},
}

// TestBugs has an operator with a bug in a deletion test of five lines, which names the bug.
func TestBugs(t *testing.T) {
	for bug := range says {
		t.Run(string(bug), func(t *testing.T) {
			c, namespace := connect(t)
			stop := (&toy{bug: bug}).run(t, namespace)
			defer stop()
			names(t, bug, namespace, func(t testing.TB) { deletionTest(t, c, namespace) })
		})
	}
}

// names runs a test, which has to fail with what names the bug.
func names(t *testing.T, bug bug, namespace string, test func(testing.TB)) {
	t.Helper()
	r, ended := &recorder{TB: t}, make(chan struct{})
	go func() {
		defer close(ended)
		test(r)
	}()
	<-ended
	t.Logf("as a developer sees it:\n%s", r.failure)
	if (r.failure == "") != (says[bug] == nil) {
		t.Error("it does not say whether there is a bug")
	}
	for _, text := range says[bug] {
		if text = strings.ReplaceAll(text, "NAMESPACE", namespace); !strings.Contains(r.failure, text) {
			t.Errorf("it does not say %q", text)
		}
	}
}

// deletionTest is what a developer would write.
func deletionTest(t testing.TB, c client.Client, namespace string) {
	kit := deletiontest.Start(t, apiServer(t))
	owner, other := configMap(namespace, "toy"), configMap("default", "of-"+namespace)
	if err := c.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	for c.Get(t.Context(), client.ObjectKeyFromObject(other), other) != nil {
		time.Sleep(10 * time.Millisecond) // until the operator has made what it makes
	}
	kit.NoWrongReferences()
	kit.Delete(owner, metav1.DeletePropagationForeground)
	kit.NotRecreated(owner)
	kit.LeavesNothing(owner, other)
}

// TestBugsWithFakeClient has the same operator in a test with controller-runtime's fake client.
func TestBugsWithFakeClient(t *testing.T) {
	for bug := range says {
		t.Run(string(bug), func(t *testing.T) {
			t.Parallel()
			names(t, bug, "shop", func(t testing.TB) {
				c, cfg := fakeclient.Serve(t, fake.NewClientBuilder().Build())
				kit, operator := deletiontest.Start(t, cfg), &toy{c, bug}
				owner := configMap("shop", "toy")
				reconcileOf := func() {
					_, err := operator.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(owner)})
					if err != nil {
						t.Fatal(err)
					}
				}
				if err := c.Create(t.Context(), owner); err != nil {
					t.Fatal(err)
				}
				reconcileOf()
				other := outside(owner)
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
					t.Fatal(err)
				}
				kit.NoWrongReferences()
				kit.Delete(owner, metav1.DeletePropagationForeground)
				kit.Settle()
				reconcileOf()
				kit.NotRecreated(owner)
				kit.LeavesNothing(owner, other)
			})
		})
	}
}
