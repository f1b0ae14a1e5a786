// SPDX-License-Identifier: Apache-2.0

package deletiontest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
)

// LeavesNothing waits until the cluster is at rest, and fails the test unless the deleted owner is gone with all that
// depended on it, and with what else its finalizer is for: objects without a reference to it. They must go before
// it does, and so must dependents if its deletion was a foreground one.
func (k *Kit) LeavesNothing(owner metav1.Object, others ...metav1.Object) {
	k.t.Helper()
	all := append([]metav1.Object{owner}, others...)
	for _, o := range all {
		k.identify(o)
	}
	restless := k.settle(k.remakes(owner), all...)
	left, wrong := k.leaves(owner, others)
	if len(left) > 0 {
		wrong = append(wrong, fmt.Sprintf("the deletion of %s leaves %s", k.identify(owner), some(left)))
		wrong = append(wrong, k.madeAgain(owner)...)
		wrong = append(wrong, write(k.report(owner)))
	}
	if restless != nil {
		wrong = append(wrong, restless.Error(), k.restless())
	}
	k.fail(wrong)
}

// leaves returns what the deletion of the owner leaves, and what else is wrong about it.
func (k *Kit) leaves(owner metav1.Object, others []metav1.Object) (left, wrong []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.history[owner.GetUID()]
	id, all := o.object.Identity(), []*life{o}
	if !o.deleted() {
		wrong = append(wrong, fmt.Sprintf("%s was not deleted", id))
	}
	for _, d := range k.history.dependentsOf(id.UID) {
		if all = append(all, d); o.foreground && !d.blocks(id.UID) {
			wrong = append(wrong, fmt.Sprintf("%s does not block the foreground deletion of %s: its owner reference has no "+
				"blockOwnerDeletion: true, so that its owner may be gone while it is still there", d.object.Identity(), id))
		}
	}
	for _, b := range others {
		l := k.history[b.GetUID()]
		if all = append(all, l); o.goneBefore(l) {
			wrong = append(wrong, fmt.Sprintf("%s was gone while %s was still there: %s", id, l.object.Identity(), o.wentEarly()))
		}
	}
	for _, l := range all {
		if !l.gone {
			left = append(left, l.object.Identity().String())
		}
	}
	return left, wrong
}

// some are the first of many.
func some(names []string) string {
	const most = 5
	if more := len(names) - most; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// blocks reports whether the object kept its owner in foreground deletion.
func (l *life) blocks(owner types.UID) bool {
	return slices.ContainsFunc(l.owners, func(ref metav1.OwnerReference) bool {
		return ref.UID == owner && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
	})
}

// wentEarly says how an object came to be gone too early.
func (l *life) wentEarly() string {
	if len(l.held) == 0 {
		return "it has no finalizer that waits for that"
	}
	return "its finalizer " + strings.Join(l.held, ", ") + " was removed before its work was done"
}

// fail fails the test with what is wrong, if anything is.
func (k *Kit) fail(wrong []string) {
	k.t.Helper()
	wrong = slices.DeleteFunc(wrong, func(line string) bool { return line == "" })
	if more := len(wrong) - 20; more > 0 {
		wrong = append(wrong[:20], fmt.Sprintf("and %d more", more))
	}
	if len(wrong) > 0 {
		k.t.Fatal(strings.Join(wrong, "\n"))
	}
}

// StaysStuck waits until the cluster is at rest, and fails the test unless the object is still being deleted, for the cause: one of
// the identifiers in docs/explain-causes.md, such as "fin-absent".
func (k *Kit) StaysStuck(object metav1.Object, cause string) {
	k.t.Helper()
	id := k.identify(object)
	if err := k.settle(nil, object); err != nil {
		k.fail([]string{err.Error(), k.restless()})
	}
	report := k.report(object)
	if len(report.Objects) != 1 || report.Objects[0].Verdict == explain.NotFound {
		k.t.Fatalf("%s is gone, and does not stay stuck for %s", id, cause)
	}
	for _, f := range report.Objects[0].Findings {
		if f.Cause.ID == cause {
			return
		}
	}
	k.t.Fatalf("%s is not stuck for %s\n%s", id, cause, write(report))
}

// NotRecreated waits until the cluster is at rest, and fails the test if something came to depend on the owner once its deletion
// had begun: a controller that does not look at the deletion timestamp.
func (k *Kit) NotRecreated(owner metav1.Object) {
	k.t.Helper()
	k.identify(owner)
	_ = k.settle(k.remakes(owner), owner) // it may not come to rest for this very reason
	k.fail(k.madeAgain(owner))
}

// remakes returns a function that reports whether a controller goes on making dependents of an owner.
func (k *Kit) remakes(owner metav1.Object) func() bool {
	return func() bool { return len(k.history.remade(owner.GetUID())) > 2 }
}

// madeAgain says what was made while an owner was being deleted.
func (k *Kit) madeAgain(owner metav1.Object) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	o, times := k.history[owner.GetUID()], map[string]int{}
	for _, d := range k.history.remade(owner.GetUID()) {
		id := d.object.Identity()
		id.UID = ""
		times[id.String()]++
	}
	var lines []string
	for name, n := range times {
		often := ""
		if n > 1 {
			often = fmt.Sprintf(", %d times", n)
		}
		lines = append(lines, fmt.Sprintf("%s was created after the deletion of %s had begun%s: "+
			"its controller must not create dependents of an owner that has a deletionTimestamp", name, o.object.Identity(), often))
	}
	slices.Sort(lines)
	return lines
}

// restless says what keeps the cluster from coming to rest.
func (k *Kit) restless() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	times := map[string]int{}
	for _, l := range k.history {
		id := l.object.Identity()
		id.UID = ""
		times[id.String()]++
	}
	var lines []string
	for name, n := range times {
		if n > 2 {
			lines = append(lines, fmt.Sprintf("%s was created %d times", name, n))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// NoWrongReferences waits until the cluster is at rest, and fails the test if an owner reference is wrong: its owner is in
// another namespace, is not what it says, or cannot be resolved.
func (k *Kit) NoWrongReferences() {
	k.t.Helper()
	restless := k.settle(nil)
	k.mu.Lock()
	g := k.last
	lost := k.history.misplaced()
	k.mu.Unlock()
	if g == nil {
		k.t.Fatal(restless)
	}
	wrong := lost
	for _, f := range check.Check(g, check.Options{WithoutRemedies: true}).Findings {
		wrong = append(wrong, fmt.Sprintf("%s: %s", f.Object, f.Message()))
	}
	k.fail(wrong)
}

// Finalizes deletes the object, unless that was done, and fails the test unless it is gone in time: the controllers that
// set its finalizers remove them.
func (k *Kit) Finalizes(object metav1.Object, within time.Duration) {
	k.t.Helper()
	id := k.identify(object)
	k.mu.Lock()
	life := k.history[id.UID]
	deleted := life.deleted()
	k.mu.Unlock()
	if !deleted {
		k.Delete(object, metav1.DeletePropagationBackground)
	}
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		k.mu.Lock()
		gone, news := life.gone, k.news
		k.mu.Unlock()
		if gone {
			return
		}
		k.wake()
		select {
		case <-news:
		case <-time.After(20 * time.Millisecond):
		}
	}
	k.t.Fatalf("%s is not gone after %s\n%s", id, within, write(k.report(object)))
}

// misplaced says which references of objects were to owners in another namespace. The garbage collector takes such an
// owner for absent, so the objects may be gone by now.
func (h history) misplaced() []string {
	var wrong []string
	for _, l := range h {
		for _, ref := range l.owners {
			if o := h[ref.UID]; o != nil && o.object.Resource.Namespaced && o.object.Namespace != l.object.Namespace && l.gone {
				wrong = append(wrong, fmt.Sprintf("%s: its owner reference is to %s, which is in another namespace: the garbage collector "+
					"has taken its owner for absent, and deleted it", l.object.Identity(), o.object.Identity()))
			}
		}
	}
	slices.Sort(wrong)
	return slices.Compact(wrong)
}
