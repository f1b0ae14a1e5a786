// SPDX-License-Identifier: Apache-2.0

package gc

import "testing"

// The end of an owner was let through while something blocked it, and that goes
// before the owner is looked at: what does not block is decided about all the same.
func TestUnblockedMeanwhile(t *testing.T) {
	objects := parseWorld(t, `configmap/a deleting finalizers=foregroundDeletion
		configmap/b < configmap/a!
		configmap/c < configmap/a`)
	c := New(newFake(t, objects, ""), graphOf(objects), Options{Workers: 2})
	c.everything = true
	owner := c.state.of(objects[0].UID)
	c.enqueueForeground(owner)
	if _, early := c.early(task{kind: finish, object: owner}); early {
		t.Fatal("what blocks an owner is not looked at")
	}
	c.apply(Event{Object: objects[1], Removed: true})
	v, _ := c.state.view(owner)
	c.finish(t.Context(), v)
	if steps := c.report.steps; len(steps) > 0 {
		t.Errorf("the owner is finished before its dependent is decided about: %v", steps)
	}
}
