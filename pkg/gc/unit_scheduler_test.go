// SPDX-License-Identifier: Apache-2.0

package gc

import "testing"

// An object gets an owner that waits for what waits for the object: a circle in which each waits for another. None does for ever.
func TestCircleMeanwhile(t *testing.T) {
	s := session{
		world: `configmap/a < configmap/c configmap/none
			configmap/b < configmap/c configmap/nobody
			configmap/c < configmap/b configmap/nothing`,
		do:     "collect",
		script: "GET nobody: own b < configmap/a configmap/c configmap/nobody",
		outcomes: `configmap/a OwnerReferenceRemoved: kept by ConfigMap/c
			configmap/b OwnerReferenceRemoved: kept by ConfigMap/a
			configmap/c OwnerReferenceRemoved: kept by ConfigMap/b`,
	}
	s.test(t)
}

// The end of an owner was let through while something blocked it, and that goes
// before the owner is looked at: what does not block is decided about all the same.
func TestUnblockedMeanwhile(t *testing.T) {
	objects := parseWorld(t, `configmap/a deleting finalizers=foregroundDeletion
		configmap/b < configmap/a!
		configmap/c < configmap/a`)
	c := New(newFake(t, objects, ""), graphOf(objects), Options{Workers: 2})
	c.scope.everything = true
	owner := c.state.of(objects[0].UID)
	c.scheduler.enqueueForeground(owner)
	if _, early := c.scheduler.early(task{kind: finish, object: owner}); early {
		t.Fatal("what blocks an owner is not looked at")
	}
	c.builder.apply(Event{Object: objects[1], Removed: true})
	v, _ := c.state.view(owner)
	c.worker.finish(t.Context(), v)
	if steps := c.report.steps; len(steps) > 0 {
		t.Errorf("the owner is finished before its dependent is decided about: %v", steps)
	}
}

// An owner that orphaned its dependents before a deletion began is none of its business: what comes to depend on it meanwhile
// keeps its reference, as what did before.
func TestOrphanedBefore(t *testing.T) {
	s := session{
		world: `configmap/a
			configmap/b < configmap/a
			configmap/o deleting finalizers=orphan,example.com/x < configmap/a configmap/k
			configmap/k
			secret/d < configmap/o`,
		do:     "delete a Background",
		script: "DELETE b: own b < configmap/a configmap/o",
		requests: `DELETE configmap/a Background
			DELETE configmap/b Background
			GET configmap/b
			PATCH configmap/b drop owners [a]`,
		left: `configmap/b < o
			configmap/k
			configmap/o finalizers=orphan,example.com/x deleting < a k
			secret/d < o`,
	}
	s.test(t)
}
