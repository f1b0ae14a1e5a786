// SPDX-License-Identifier: Apache-2.0

package fakeclient_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-gc/kubectl-gc/deletiontest"
	"github.com/kubectl-gc/kubectl-gc/deletiontest/fakeclient"
)

var t *testing.T // of the test

func ExampleServe() {
	c, cfg := fakeclient.Serve(t, fake.NewClientBuilder().Build())
	kit := deletiontest.Start(t, cfg)
	owner := configMap("owner")
	create(t, c, owner)
	create(t, c, configMap("dependent", owner))
	kit.Delete(owner, metav1.DeletePropagationForeground)
	kit.LeavesNothing(owner)
}

func TestExample(test *testing.T) {
	t = test
	ExampleServe()
}
