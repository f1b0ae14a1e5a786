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
		return remedy.DeleteOf(id, metav1.DeleteOptions{PropagationPolicy: s.Options.PropagationPolicy,
			GracePeriodSeconds: s.Options.GracePeriodSeconds})
	}
	steps := remedy.Unfinalize(s.Object.Finalizers, func(f string) bool { return f == s.Patch.RemoveFinalizer })
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
