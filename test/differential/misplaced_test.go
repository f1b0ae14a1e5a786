// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc/gctest"
)

// misplacedRoles makes the list of the type of the object long, so that its dependent is
// seen before it, and misplacedStarts is how often the garbage collector is started: it is a race.
const (
	misplacedRoles  = 3000
	misplacedStarts = 10
)

// TestMisplaced shows the one way in which the garbage collector deletes an object without a
// namespace that has an owner in one: when it starts and sees a dependent first, it takes
// the object for one in the dependent's namespace. model.misplaced has it.
func TestMisplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	a := newArena(t)
	config, err := clientcmd.BuildConfigFromFlags("", a.cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	roles := client.RbacV1().ClusterRoles()
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range misplacedRoles {
		group.Go(func() error {
			_, err := roles.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a-%05d", i)}}, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	const text = `== an object without a namespace, of an owner in one and with a dependent in another
objects
  other:configmap/owner
  clusterrole/victim < other:configmap/owner
  configmap/dependent < clusterrole/victim
collect
expect
  other:configmap/owner intact
  clusterrole/victim intact < other:configmap/owner
  configmap/dependent intact < clusterrole/victim
`
	parsed, err := gctest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	play, err := a.world.Play(t.Context(), &parsed[0])
	if err == nil {
		err = gctest.Prepare(t.Context(), play, &parsed[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	name := play.Stage().NameOf(gctest.Path{Kind: "clusterrole", Name: "victim"})
	for i := range misplacedStarts {
		a.start(t)
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(look) {
			_, err := roles.Get(t.Context(), name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				t.Logf("deleted at start %d", i+1)
				return
			case err != nil:
				t.Fatal(err)
			}
		}
		a.stop(t)
	}
	t.Errorf("%d starts of the garbage collector have not deleted it", misplacedStarts)
}
