// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc/gctest"
)

const (
	// bulky is how many large ClusterRoles are made before the one in question, so that the watch of
	// ClusterRoles is behind that of ConfigMaps, and rounds how often that is done: it is a race.
	bulky  = 32
	rounds = 30
)

// TestMisplaced shows the one way in which the garbage collector deletes an object without a
// namespace that has an owner in one: when it sees a dependent first, it takes the object for
// one in the dependent's namespace. model.misplaced has it.
func TestMisplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	a := newArena(t)
	client, err := kubernetes.NewForConfig(a.world.Config)
	if err != nil {
		t.Fatal(err)
	}
	a.start(t)
	a.await(t, nil, nil)
	parsed, err := gctest.Parse(`== an object without a namespace, of an owner in one and with a dependent in another
objects
  other:configmap/owner
  clusterrole/victim < other:configmap/owner
  configmap/dependent < clusterrole/victim
collect
expect
  other:configmap/owner intact
  clusterrole/victim intact < other:configmap/owner
  configmap/dependent intact < clusterrole/victim
`)
	if err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		makeBulky(t, client, round)
		play, err := a.world.Play(t.Context(), &parsed[0])
		if err == nil {
			err = gctest.Prepare(t.Context(), play, &parsed[0])
		}
		if err != nil {
			t.Fatal(err)
		}
		a.await(t, nil, nil)
		states, err := play.States(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if states[gctest.Path{Kind: "clusterrole", Name: "victim"}].Fate == gctest.Gone {
			t.Logf("deleted in round %d", round+1)
			return
		}
	}
	t.Errorf("the garbage collector has not deleted it in %d rounds", rounds)
}

// makeBulky makes large ClusterRoles.
func makeBulky(t *testing.T, client kubernetes.Interface, round int) {
	t.Helper()
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Verbs: []string{"get"}, Resources: []string{"configmaps"}}
	for i := range 20_000 {
		rule.ResourceNames = append(rule.ResourceNames, fmt.Sprintf("name-%08d", i))
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range bulky {
		group.Go(func() error {
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bulky-%d-%d", round, i)}, Rules: []rbacv1.PolicyRule{rule}}
			_, err := client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
