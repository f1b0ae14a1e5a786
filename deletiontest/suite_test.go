// SPDX-License-Identifier: Apache-2.0

package deletiontest_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-gc/kubectl-gc/deletiontest"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

// TestSuite says how long tests of a deletion take that look again and again, and those that wait until the cluster is at
// rest. Each asserts that an owner is gone with its dependent, and that this is not created again.
func TestSuite(t *testing.T) {
	nightly.Only(t, "says how long something takes")
	c, namespace := connect(t)
	const interval, during = 250 * time.Millisecond, 2 * time.Second
	const tests = 20
	gone := func(o client.Object) bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(o), &corev1.ConfigMap{}))
	}
	suite := func(test func(kit *deletiontest.Kit, owner, dependent client.Object)) time.Duration {
		begun := time.Now()
		for i := range tests {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				kit := deletiontest.Start(t, apiServer(t))
				owner := configMap(namespace, "owner")
				create(t, c, owner)
				dependent := configMap(namespace, "dependent", owner)
				create(t, c, dependent)
				kit.Delete(owner, metav1.DeletePropagationForeground)
				test(kit, owner, dependent)
			})
		}
		return time.Since(begun).Round(time.Second / 10)
	}
	loops := suite(func(_ *deletiontest.Kit, owner, dependent client.Object) {
		for !gone(owner) || !gone(dependent) { // Eventually
			time.Sleep(interval)
		}
		for begun := time.Now(); time.Since(begun) < during; time.Sleep(interval) { // Consistently
			if !gone(dependent) {
				t.Error("it is created again")
			}
		}
	})
	settled := suite(func(kit *deletiontest.Kit, owner, _ client.Object) {
		kit.LeavesNothing(owner)
		kit.NotRecreated(owner)
	})
	t.Logf("%d tests: loops %s, the kit %s", tests, loops, settled)
}
