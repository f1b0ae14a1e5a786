// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What is said of claims, volumes and snapshots, of load balancers and service addresses.

func lostData(volume graph.Identity, size string) string {
	return fmt.Sprintf("the data: %s on %s, which is deleted with the claim", cmp.Or(size, "all"), volume)
}

// keepData says to retain a volume, or the storage of one that is being deleted.
func keepData(volume graph.Identity, size string, terminating bool) string {
	what, when := volume.String(), "its claim"
	if terminating {
		what, when = "the storage behind "+what, "that"
	}
	return fmt.Sprintf("keep the data first: retain %s (%s) when %s is deleted", what, cmp.Or(size, "of unknown size"), when)
}

// driverTask is what a driver or another external controller has to do.
type driverTask struct{ verb, done, object string }

var (
	detachVolume       = driverTask{"detach", "detached", "the volume"}
	deleteStorage      = driverTask{"delete", "deleted", "the storage behind it"}
	deleteSnapshot     = driverTask{"delete", "deleted", "the snapshot behind it"}
	deleteLoadBalancer = driverTask{"delete", "deleted", "its load balancer"}
)

// because says that an object waits for the task.
func (t driverTask) because() string { return t.object + " has to be " + t.done }

// undone says that a controller has not done the task, and fails that it fails to.
func (t driverTask) undone() string { return "%s has not " + t.done + " " + t.object }
func (t driverTask) fails() string  { return "%s fails to " + t.verb + " " + t.object }
