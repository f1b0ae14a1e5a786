// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Op is the write as a change with its guards.
func (s *Step) Op() remedy.Op {
	id := s.Object.Identity()
	if s.Action == ActionDelete {
		return remedy.DeleteOf(id, metav1.DeleteOptions{PropagationPolicy: s.Options.PropagationPolicy, GracePeriodSeconds: s.Options.GracePeriodSeconds})
	}
	var steps []remedy.Step
	for i, finalizer := range slices.Backward(s.Object.Finalizers) {
		if finalizer == s.Patch.RemoveFinalizer {
			at := fmt.Sprintf("/metadata/finalizers/%d", i)
			steps = append(steps, remedy.Test(at, finalizer), remedy.Remove(at))
		}
	}
	for i, ref := range slices.Backward(s.Object.OwnerReferences) {
		at := fmt.Sprintf("/metadata/ownerReferences/%d", i)
		switch {
		case slices.Contains(s.Patch.RemoveOwners, ref.UID):
			steps = append(steps, remedy.Test(at+"/uid", ref.UID), remedy.Remove(at))
		case s.Patch.Unblock && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion:
			steps = append(steps, remedy.Test(at+"/uid", ref.UID), remedy.Replace(at+"/blockOwnerDeletion", false))
		}
	}
	return remedy.PatchOf(id, steps...)
}
