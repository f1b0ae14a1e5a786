// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// A DELETE under a second group does what it does under the first, also what only
// the kind of the first does; one under a name that the object does not have does
// nothing, whatever its UID.
func TestAliases(t *testing.T) {
	namespaces := graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}
	projects := graph.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "project.openshift.io", Version: "v1", Resource: "projects"}, Kind: "Project"}
	shop := graph.Object{Resource: &namespaces, Name: "shop", UID: "shop", ResourceVersion: "7"}
	alias, view := shop, shop
	alias.Resource, view.Resource, view.Name = &projects, &projects, "shop:old"
	s := &graph.Snapshot{}
	s.Add(shop)
	s.Add(alias)
	for _, r := range []graph.Resource{namespaces, projects} {
		s.MarkListed(r.GroupResource(), "", "7")
	}
	server := simulator.New(s, simulator.Options{Now: time.Now()})
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &shop.UID, ResourceVersion: &shop.ResourceVersion}}
	if err := server.Delete(t.Context(), view.Identity(), options); !apierrors.IsNotFound(err) {
		t.Errorf("under another name: %v", err)
	}
	if err := server.Delete(t.Context(), alias.Identity(), options); err != nil {
		t.Error(err)
	}
	if o, err := server.Get(t.Context(), namespaces, "", "shop"); err != nil || !o.BeingDeleted() {
		t.Errorf("a namespace is not gone at once: %v, %v", o.Identity(), err)
	}
}
