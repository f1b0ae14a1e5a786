// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// overlapping are custom resources that share their storage with built-in ones,
// whose objects are left alone (apiextensions-apiserver/pkg/controller/
// finalizer, OverlappingBuiltInResources).
var overlapping = []schema.GroupResource{
	{Group: "apiregistration.k8s.io", Resource: "apiservices"},
	crdResource,
}

// deleteCRD is the DELETE of a CustomResourceDefinition (apiextensions-
// apiserver/pkg/registry/customresourcedefinition, Delete). The first marks it
// and ignores the propagation policy.
func (s *Server) deleteCRD(before graph.Object, r request) {
	switch {
	case before.BeingDeleted():
		s.deleteObject(before, r)
	case !r.dryRun():
		after := before
		after.DeletionTimestamp = stamp(s.clock.now)
		if !after.HasFinalizer(crdCleanup) {
			after.Finalizers = append(slices.Clone(before.Finalizers), crdCleanup)
		}
		s.write(before, after)
	}
}

// definition is what is known of a CustomResourceDefinition.
type definition struct {
	instances group
	// left alone: its instances are not deleted.
	leftAlone bool
	// unread says why it is not known which instances it has; empty when it is.
	unread string
}

// define returns what is known of a CustomResourceDefinition. Its name says its
// group and plural when the facts do not; that instances were read shows that
// it was established.
func (v *view) define(o *graph.Object) definition {
	plural, groupName, _ := strings.Cut(o.Name, ".")
	facts, read := v.snapshot.Facts.CRDs[o.UID]
	if read {
		plural, groupName = facts.Plural, facts.Group
	}
	resource := schema.GroupResource{Group: groupName, Resource: plural}
	d := definition{instances: group{resource: resource}}
	switch {
	case read && !facts.Established, slices.Contains(overlapping, resource):
		d.leftAlone = true
	case !v.listed(d.instances):
		d.unread = resource.String() + " could not be listed"
	}
	return d
}

// definitionController lets a terminating CustomResourceDefinition go after its instances. It runs in the API
// server, so that there always is one. It remembers nothing.
type definitionController struct {
	view   *view
	clock  *clock
	groups *memberships
	api    api
}

// planCRD lets the API server see a terminating CustomResourceDefinition.
func (c *definitionController) planCRD(o *graph.Object) {
	if o.HasFinalizer(crdCleanup) {
		c.clock.after(instancesAreDeleted, o.UID, controllerDelay)
	}
}

// syncCRD deletes the instances with no options, so that policies are the
// types' defaults and finalizers are respected, and lets the definition go when
// none is left (apiextensions-apiserver/pkg/controller/finalizer, sync and
// deleteInstances).
func (c *definitionController) syncCRD(o graph.Object) {
	if !o.BeingDeleted() || !o.HasFinalizer(crdCleanup) {
		return
	}
	d := c.view.define(&o)
	if !d.leftAlone {
		for _, uid := range c.view.members(d.instances) {
			if instance, gone, _ := c.view.look(uid); !gone {
				c.api.deleteAs(instance, metav1.DeleteOptions{})
			}
		}
		if c.groups.left(d.instances) > 0 {
			c.groups.waitFor(d.instances, instancesAreDeleted, o.UID)
			return
		}
	}
	if d.unread == "" {
		after := o
		after.Finalizers = without(o.Finalizers, crdCleanup)
		c.api.update(o, after)
	}
}

// crdRemoved takes the type of a removed CustomResourceDefinition out of the
// API. What is left of its instances stays in storage.
func (s *Server) crdRemoved(o *graph.Object) {
	instances := s.view.define(o).instances
	if slices.Contains(overlapping, instances.resource) {
		return
	}
	s.view.unserved[instances.resource] = true
	for _, uid := range s.view.members(instances) {
		if instance, gone, _ := s.view.look(uid); !gone {
			s.pending = append(s.pending, gc.Event{Object: instance, Lost: true})
		}
	}
}
