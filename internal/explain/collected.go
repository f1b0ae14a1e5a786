// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// collected says why the garbage collector may have deleted an object: none of its references leads to an owner. Who sent the
// DELETE is not known, but for one that orphans. In a namespace that is being deleted everything is deleted. It is empty for another
// object.
func (w *walker) collected(n graph.Node) say.Text {
	refs := w.evidence.Owners(n)
	owned := slices.ContainsFunc(refs, func(ref graph.Reference) bool { return ref.State != graph.Dangling })
	if len(refs) == 0 || owned || n.HasFinalizer(metav1.FinalizerOrphanDependents) || w.evidence.Ending(n.Namespace()) {
		return say.Text{}
	}
	ref := &refs[max(0, slices.IndexFunc(refs, func(ref graph.Reference) bool { return ref.Reason != graph.Absent }))]
	at, owner := fmt.Sprintf("metadata.ownerReferences[%d]", ref.Index), evidence.Named(ref.Kind, "", ref.Name)
	switch ref.Reason {
	case graph.UIDMismatch:
		return say.Of(ownerReplaced, at, owner).And(saveFirst)
	case graph.WrongNamespace:
		return say.Of(ownerElsewhere, at, owner, ref.Owner.Namespace()).And(saveFirst)
	case graph.CoordinatesMismatch:
		return say.Of(ownerOther, at, owner, ref.Owner.Identity()).And(saveFirst)
	case graph.Absent:
		return say.Of(ownerGone, at, owner)
	}
	return say.Text{}
}
