// SPDX-License-Identifier: Apache-2.0

package deletiontest_test

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-gc/kubectl-gc/deletiontest"
)

// What a test has: TestExamples sets it. The database owns the secret, and the backup has a finalizer.
var (
	t                        *testing.T
	cfg                      *rest.Config
	database, secret, backup *corev1.ConfigMap
	release                  = func() {}
)

func ExampleStart() {
	kit := deletiontest.Start(t, cfg) // stops with the test
	kit.Settle()
}

func ExampleKit_Settle() {
	kit := deletiontest.Start(t, cfg)
	kit.Delete(database, metav1.DeletePropagationBackground)
	kit.Settle()
	// whatever is left now stays
}

func ExampleKit_Delete() {
	kit := deletiontest.Start(t, cfg)
	kit.Delete(database, metav1.DeletePropagationOrphan)
	kit.Settle()
	kit.Delete(secret, metav1.DeletePropagationBackground)
}

func ExampleKit_LeavesNothing() {
	kit := deletiontest.Start(t, cfg)
	kit.Delete(database, metav1.DeletePropagationForeground)
	kit.LeavesNothing(database)
}

func ExampleKit_StaysStuck() {
	kit := deletiontest.Start(t, cfg)
	kit.Delete(backup, metav1.DeletePropagationBackground)
	kit.StaysStuck(backup, "fin-absent") // nobody removes its finalizer
}

func ExampleKit_NotRecreated() {
	kit := deletiontest.Start(t, cfg)
	kit.Delete(database, metav1.DeletePropagationForeground)
	kit.NotRecreated(database)
}

func ExampleKit_NoWrongReferences() {
	kit := deletiontest.Start(t, cfg)
	kit.NoWrongReferences()
}

func ExampleKit_Finalizes() {
	kit := deletiontest.Start(t, cfg)
	go release() // as the controller under test would
	kit.Finalizes(backup, 10*time.Second)
}

// TestExamples runs the examples, of which every exported name has one.
func TestExamples(test *testing.T) {
	examples := map[string]func(){
		"Start": ExampleStart, "Settle": ExampleKit_Settle, "Delete": ExampleKit_Delete, "LeavesNothing": ExampleKit_LeavesNothing,
		"StaysStuck": ExampleKit_StaysStuck, "NotRecreated": ExampleKit_NotRecreated,
		"NoWrongReferences": ExampleKit_NoWrongReferences, "Finalizes": ExampleKit_Finalizes,
	}
	for method := range reflect.TypeFor[*deletiontest.Kit]().Methods() {
		if examples[method.Name] == nil {
			test.Errorf("%s has no example", method.Name)
		}
	}
	for name, example := range examples {
		test.Run(name, func(test *testing.T) {
			c, namespace := connect(test)
			t, cfg = test, apiServer(test)
			database, backup = configMap(namespace, "database"), configMap(namespace, "backup")
			backup.Finalizers = []string{"toys.example.com/backup"}
			create(t, c, database, backup)
			secret = configMap(namespace, "secret", database)
			create(t, c, secret)
			release = func() {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				_ = c.Patch(test.Context(), backup.DeepCopy(), patch)
			}
			example()
			release()
		})
	}
}
