// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/lease"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// LeaseState says what a lease tells of its holder.
type LeaseState int

// The states of leases.
const (
	LeaseUnread LeaseState = iota
	LeaseFresh
	LeaseStale
	LeaseMissing
)

// clock is the API server's time, and how long a run has waited. It owns the limit of that.
type clock struct {
	// Now is the API server's time, at which the run began.
	Now    time.Time
	ctx    context.Context // of the run
	wait   func(context.Context, time.Duration)
	passed func() time.Duration
	// waited is how long the run has paused for leases, sinceLook how long since they were first read.
	waited, sinceLook time.Duration
}

// leases says how leases stand. It owns what a second look at them told.
type leases struct {
	*clock
	reads interface {
		Get(resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error)
		List(resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error)
		Anew(resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error)
	}
	again map[graph.Identity]LeaseState
}

// Lease reads a lease and compares it with the API server's time.
func (s *leases) Lease(namespace, name string) (LeaseState, Fact) {
	id := Identity(Leases, namespace, name)
	l, err := s.reads.Get(Leases, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return LeaseMissing, At(id, "", "does not exist")
	case err != nil:
		return LeaseUnread, At(id, "", "could not be read: "+err.Error())
	}
	return s.LeaseState(l)
}

// LeaseTaken returns when the holder of a lease took it, zero when that is not known.
func (s *leases) LeaseTaken(namespace, name string) time.Time {
	l, err := s.reads.Get(Leases, namespace, name)
	if err != nil {
		return time.Time{}
	}
	return lease.Of(l.Object).Taken
}

// LeaseState compares a lease with the API server's time. The time in it is its
// holder's, whose clock might lag, and a leader that ends in order leaves it to the
// next. So one that looks expired, or has no holder, is read again: when it was
// renewed meanwhile it is fresh.
func (s *leases) LeaseState(object *unstructured.Unstructured) (LeaseState, Fact) {
	id := Identity(Leases, object.GetNamespace(), object.GetName())
	l := lease.Of(object.Object)
	path, value := "spec.holderIdentity", noHolder
	held := l.Holder != "" && !l.Renewed.IsZero()
	if held {
		path, value = "spec.renewTime", renewedBy(max(l.Age(s.Now), 0), l.Holder)
	}
	switch l.Judge(s.Now) {
	case lease.Held:
		return LeaseFresh, At(id, path, value)
	case lease.Abandoned:
		return LeaseStale, At(id, path, value)
	}
	again := s.leaseAgain(object, l)
	return again, At(id, path, value+readAgain[held][again])
}

// maxLeaseWait bounds what a run waits for leases.
const maxLeaseWait = 40 * time.Second

// leaseAgain looks at a lease a second time, when a holder must have renewed it.
// The first time all leases are listed, so that one pause does for all of them.
// Without Wait there is no second look.
func (s *leases) leaseAgain(object *unstructured.Unstructured, l lease.Lease) LeaseState {
	if s.wait == nil {
		return LeaseStale
	}
	id := Identity(Leases, object.GetNamespace(), object.GetName())
	if state, known := s.again[id]; known {
		return state
	}
	first := lease.Of(s.firstLook(object).Object)
	state := LeaseUnread
	if s.pause(l.Again()) {
		switch second, err := s.reads.Anew(Leases, id.Namespace, id.Name); {
		case apierrors.IsNotFound(err):
			state = LeaseStale
		case err != nil:
		case first.RenewedIn(lease.Of(second.Object)):
			state = LeaseFresh
		default:
			state = LeaseStale
		}
	}
	s.again[id] = state
	return state
}

// firstLook returns the lease as it was before the run's first pause, or starts
// another pause with it as it is.
func (s *leases) firstLook(lease *unstructured.Unstructured) *unstructured.Unstructured {
	all, err := s.reads.List(Leases, "")
	if err == nil {
		for i := range all {
			if all[i].GetNamespace() == lease.GetNamespace() && all[i].GetName() == lease.GetName() {
				return &all[i]
			}
		}
	}
	s.sinceLook = 0
	return lease
}

// pause lets time pass until as much has since the first look; it returns false
// when that would take too long.
func (c *clock) pause(d time.Duration) bool {
	more := d - c.sinceLook
	if more <= 0 {
		return true
	}
	if c.waited+more > maxLeaseWait {
		return false
	}
	c.wait(c.ctx, more)
	c.sinceLook += more
	c.waited += more
	return c.ctx.Err() == nil
}

// Settle lets as much time pass since the objects were listed as shows whether an object stays as it is, unless
// the run has waited so long already, or must not wait.
func (c *clock) Settle(d time.Duration) {
	if c.wait == nil || c.waited >= d {
		return
	}
	more := d
	if c.passed != nil {
		more = max(d-c.passed(), 0)
	}
	c.wait(c.ctx, more)
	c.waited += d
}

// Wait lets time pass, or the context end.
func Wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
