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
		after.DeletionTimestamp = stamp(s.now)
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
func (s *Server) define(o *graph.Object) definition {
	plural, groupName, _ := strings.Cut(o.Name, ".")
	facts, read := s.snapshot.Facts.CRDs[o.UID]
	if read {
		plural, groupName = facts.Plural, facts.Group
	}
	resource := schema.GroupResource{Group: groupName, Resource: plural}
	d := definition{instances: group{resource: resource}}
	switch {
	case read && !facts.Established, slices.Contains(overlapping, resource):
		d.leftAlone = true
	case !s.listed(d.instances):
		d.unread = resource.String() + " could not be listed"
	}
	return d
}

// planCRD lets the API server see a terminating CustomResourceDefinition.
func (s *Server) planCRD(o *graph.Object) {
	if o.HasFinalizer(crdCleanup) {
		s.plan(instancesAreDeleted, o.UID, s.now.Add(controllerDelay))
	}
}

// syncCRD deletes the instances with no options, so that policies are the
// types' defaults and finalizers are respected, and lets the definition go when
// none is left (apiextensions-apiserver/pkg/controller/finalizer, sync and
// deleteInstances).
func (s *Server) syncCRD(o graph.Object) {
	if !o.BeingDeleted() || !o.HasFinalizer(crdCleanup) {
		return
	}
	d := s.define(&o)
	if !d.leftAlone {
		for _, uid := range s.members(d.instances) {
			if instance, gone, _ := s.look(uid); !gone {
				s.deleteAs(instance, metav1.DeleteOptions{})
			}
		}
		if s.left(d.instances) > 0 {
			s.waitFor(d.instances, instancesAreDeleted, o.UID)
			return
		}
	}
	if d.unread == "" {
		after := o
		after.Finalizers = without(o.Finalizers, crdCleanup)
		s.update(o, after)
	}
}

// crdRemoved takes the type of a removed CustomResourceDefinition out of the
// API. What is left of its instances stays in storage.
func (s *Server) crdRemoved(o *graph.Object) {
	instances := s.define(o).instances
	if slices.Contains(overlapping, instances.resource) {
		return
	}
	s.unserved[instances.resource] = true
	for _, uid := range s.members(instances) {
		if instance, gone, _ := s.look(uid); !gone {
			s.pending = append(s.pending, gc.Event{Object: instance, Lost: true})
		}
	}
}
