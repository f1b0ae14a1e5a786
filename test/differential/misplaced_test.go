// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
)

const (
	// bulky is how many large ClusterRoles are made along with the one in question, so that the watch of
	// ClusterRoles is behind that of ConfigMaps, and rounds how often that is done: it is a race.
	bulky  = 32
	rounds = 30
)

// TestMisplaced shows the one way in which the garbage collector deletes an object without a
// namespace that has an owner in one: when it sees a dependent first, it takes the object for
// one in the dependent's namespace. model.misplaced has it. Until then, all must be as it was.
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
		made := makeBulky(t.Context(), client, round)
		play, err := a.world.Play(t.Context(), &parsed[0])
		if err == nil {
			err = gctest.Prepare(t.Context(), play, &parsed[0])
		}
		if err := errors.Join(err, made()); err != nil {
			t.Fatal(err)
		}
		a.await(t, nil, nil)
		states, err := play.States(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fate := func(namespace, kind, name string) gctest.Fate {
			return states[gctest.Path{Namespace: namespace, Kind: kind, Name: name}].Fate
		}
		if fate("other", "configmap", "owner") != gctest.Intact {
			t.Fatalf("the owner is gone: %v", states)
		}
		if fate("", "clusterrole", "victim") == gctest.Gone {
			t.Logf("deleted in round %d", round+1)
			return
		}
		if fate("", "configmap", "dependent") != gctest.Intact {
			t.Fatalf("the dependent of what is there is gone: %v", states)
		}
	}
	t.Errorf("the garbage collector has not deleted it in %d rounds", rounds)
}

// makeBulky begins to make large ClusterRoles, and returns what waits for them.
func makeBulky(ctx context.Context, client kubernetes.Interface, round int) (wait func() error) {
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Verbs: []string{"get"}, Resources: []string{"configmaps"}}
	for i := range 20_000 {
		rule.ResourceNames = append(rule.ResourceNames, fmt.Sprintf("name-%08d", i))
	}
	var group errgroup.Group
	for i := range bulky {
		group.Go(func() error {
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bulky-%d-%d", round, i)}, Rules: []rbacv1.PolicyRule{rule}}
			_, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait
}
