// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// request is a DELETE whose options are valid.
type request struct {
	resource        graph.Resource
	namespace, name string
	options         metav1.DeleteOptions
}

func (r request) dryRun() bool { return len(r.options.DryRun) > 0 }

// delete carries out a DELETE: the kinds that override it, and otherwise the
// generic registry's.
func (s *Server) delete(r request) error {
	where := location{r.resource.GroupResource(), r.namespace, r.name}
	if where.resource == priorityResource && slices.Contains(systemPriorityClasses, r.name) {
		return apierrors.NewForbidden(where.resource, r.name,
			errors.New("this is a system priority class and cannot be deleted"))
	}
	o, err := s.view.find(where)
	if err != nil {
		return err
	}
	if err := checkPreconditions(&o, r.options.Preconditions); err != nil {
		return err
	}
	switch o.Resource.GroupResource() { // under whatever other group it was asked for
	case namespaceResource:
		return s.deleteNamespace(o, r)
	case crdResource:
		s.deleteCRD(o, r)
	default:
		s.deleteObject(o, r)
	}
	return nil
}

// checkPreconditions compares what the client expects (registry/rest/delete.go,
// BeforeDelete).
func checkPreconditions(o *graph.Object, p *metav1.Preconditions) error {
	switch {
	case p == nil:
		return nil
	case p.UID != nil && *p.UID != o.UID:
		return apierrors.NewConflict(o.Resource.GroupResource(), o.Name, fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s)", *p.UID, o.UID))
	case p.ResourceVersion != nil && *p.ResourceVersion != o.ResourceVersion:
		return apierrors.NewConflict(o.Resource.GroupResource(), o.Name, fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s)",
			*p.ResourceVersion, o.ResourceVersion))
	}
	return nil
}

// deleteObject is the DELETE of every kind that does not override it
// (registry/generic/registry/store.go, Delete and
// updateForGracefulDeletionAndFinalizers).
func (s *Server) deleteObject(before graph.Object, r request) {
	after := before
	g := s.beforeDelete(&after, r.options)
	if g == pending || r.dryRun() {
		return
	}
	after.Finalizers = FinalizersForDeletion(after.Finalizers, r.resource.GroupVersionResource, r.options)
	switch {
	case g != notGraceful:
		after = s.write(before, after)
		if g == immediate && len(after.Finalizers) == 0 {
			s.remove(after)
		}
	case len(after.Finalizers) == 0:
		s.remove(before)
	default:
		s.markAsDeleting(&after)
		s.write(before, after)
	}
}

// gracefulness is what a DELETE makes of the grace period.
type gracefulness int

const (
	// notGraceful: there is none; finalizers alone decide.
	notGraceful gracefulness = iota
	// pending: a deletion with no longer grace period is under way; the request
	// changes nothing.
	pending
	// graceful: someone must delete again when it is over.
	graceful
	// immediate: it is over at once.
	immediate
)

// beforeDelete sets the deletion timestamp and grace period of a graceful
// deletion, which only pods have (registry/rest/delete.go, BeforeDelete). For
// pods the timestamp is the end of the grace period.
func (s *Server) beforeDelete(o *graph.Object, options metav1.DeleteOptions) gracefulness {
	if !is(o, podResource) {
		return notGraceful
	}
	requested := options.GracePeriodSeconds
	if requested != nil && *requested < 0 {
		requested = new(int64(1))
	}
	if o.BeingDeleted() {
		return s.shorten(o, requested)
	}
	period := s.view.gracePeriod(o, requested)
	o.DeletionTimestamp = stamp(s.clock.now.Add(time.Duration(period) * time.Second))
	o.DeletionGracePeriodSeconds = &period
	if period == 0 {
		return immediate
	}
	return graceful
}

// shorten applies a further DELETE to a pod that is terminating: a grace
// period can only become shorter.
func (s *Server) shorten(o *graph.Object, requested *int64) gracefulness {
	current := graceSeconds(o)
	switch {
	case current == 0:
		return notGraceful
	case requested == nil || *requested >= current:
		return pending
	}
	period := *requested
	end := o.DeletionTimestamp.Add(time.Duration(period-current) * time.Second)
	if end.Before(s.clock.now) {
		end = s.clock.now
		if period != 0 {
			period = 1
		}
	}
	o.DeletionTimestamp = stamp(end)
	o.DeletionGracePeriodSeconds = &period
	if period == 0 {
		return immediate
	}
	return graceful
}

// graceSeconds returns the deletion grace period, 0 when there is none. A
// negative one counts as 1.
func graceSeconds(o *graph.Object) int64 {
	seconds := o.DeletionGracePeriodSeconds
	switch {
	case seconds == nil:
		return 0
	case *seconds < 0:
		return 1
	}
	return *seconds
}

// markAsDeleting marks an object that has no grace period
// (registry/generic/registry/store.go, markAsDeleting).
func (s *Server) markAsDeleting(o *graph.Object) {
	if o.DeletionTimestamp == nil || o.DeletionTimestamp.After(s.clock.now) {
		o.DeletionTimestamp = stamp(s.clock.now)
	}
	o.DeletionGracePeriodSeconds = new(int64(0))
}

// FinalizersForDeletion returns the finalizers of an object of the type with the one of the garbage
// collector that the request asks for, at the end, in the place of those that
// it does not (registry/generic/registry/store.go,
// deletionFinalizersForGarbageCollection). When the set does not change the
// order does not.
func FinalizersForDeletion(finalizers []string, of schema.GroupVersionResource, options metav1.DeleteOptions) []string {
	wanted := wantedFinalizer(finalizers, defaultPolicies[of], options)
	var result []string
	for _, f := range finalizers {
		if !graph.IsCollectorFinalizer(f) {
			result = append(result, f)
		}
	}
	if wanted != "" {
		result = append(result, wanted)
	}
	if sameSet(finalizers, result) {
		return finalizers
	}
	return result
}

// wantedFinalizer returns orphan, foregroundDeletion or nothing: the first of
// the request, the object and the kind that has an opinion decides
// (shouldOrphanDependents and shouldDeleteDependents).
func wantedFinalizer(finalizers []string, policy defaultPolicy, options metav1.DeleteOptions) string {
	const orphan, foreground = metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents
	//nolint:staticcheck // SA1019: orphanDependents is deprecated, and served
	orphanDependentsOption := options.OrphanDependents
	switch {
	case policy == unsupported:
		return ""
	case orphanDependentsOption != nil:
		if *orphanDependentsOption {
			return orphan
		}
		return ""
	case options.PropagationPolicy != nil:
		return map[metav1.DeletionPropagation]string{
			metav1.DeletePropagationOrphan:     orphan,
			metav1.DeletePropagationForeground: foreground,
		}[*options.PropagationPolicy]
	}
	for _, f := range finalizers {
		if f == orphan || f == foreground {
			return f
		}
	}
	if policy == orphanDependents {
		return orphan
	}
	return ""
}

func sameSet(a, b []string) bool {
	return len(a)+len(b) == 0 || sets.New(a...).Equal(sets.New(b...))
}

// stamp returns the time as it is stored, in whole seconds.
func stamp(t time.Time) *metav1.Time {
	return &metav1.Time{Time: t.Truncate(time.Second)}
}
