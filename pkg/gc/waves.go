// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// wavesOf returns the targets by their waves, the first first.
func wavesOf(targets []Target) [][]*Target {
	byNumber := map[int][]*Target{}
	for i := range targets {
		t := &targets[i]
		byNumber[t.Wave] = append(byNumber[t.Wave], t)
	}
	var waves [][]*Target
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		waves = append(waves, byNumber[number])
	}
	return waves
}

// nextWave queues the next targets, if all that were to go before them have gone, and
// reports whether there are any. What is not deleted because of one that is still
// there remains for that reason.
func (c *Collector) nextWave() bool {
	if len(c.waves) == 0 {
		return false
	}
	c.applying.Lock()
	defer c.applying.Unlock()
	for _, n := range slices.Concat(c.turns.targets, c.awaited) {
		if v, ok := c.state.view(n); ok && !v.gone {
			c.holdBack(errors.New("not deleted, because what was to go before it is still there: " + v.object.Identity().String()))
			return false
		}
	}
	for _, n := range c.unforeseen {
		if v, ok := c.state.view(n); ok && !v.gone && c.options.Unforeseen(&v.object) {
			c.holdBack(errors.New("not deleted, because it would take along what was made or changed meanwhile: " + v.object.Identity().String()))
			return false
		}
	}
	wave := c.waves[0]
	c.waves, c.turns.rested = c.waves[1:], false
	for _, t := range wave {
		if t.UID == "" {
			c.report.nameless = append(c.report.nameless, objectOf(t.Identity))
			continue
		}
		n := c.state.of(t.UID)
		switch v, ok := c.state.view(n); {
		case !ok || v.gone:
			c.enqueueDependents(n)
		case t.Early && v.object.BeingDeleted():
			c.await(n, &v.object)
		default:
			c.queue.push(task{kind: deleteTarget, object: n, target: t})
			c.turns.targets = append(c.turns.targets, n)
		}
	}
	if len(c.waves) == 0 && c.deletion.Policy != metav1.DeletePropagationOrphan {
		c.awaitEnding(c.included()) // what an owner that orphans leaves alone is not waited for
	}
	return true
}

// awaitEnding has a run last until what somebody else deleted before has ended, of some objects,
// if it was given time for that: it goes as what the run deletes does, and nothing need be written
// to it.
func (c *Collector) awaitEnding(objects []number) {
	for _, n := range objects {
		if v, ok := c.state.view(n); ok && !v.gone && v.object.InGrace() {
			c.writer.open.set(n, true)
		}
	}
}

// unchosen says why nothing of the waves that are left may be deleted: something would go before
// a target that a selector chose, and that has changed and does not match any more, or may not.
func (c *Collector) unchosen(ctx context.Context) error {
	left := slices.Concat(c.waves...)
	if !slices.ContainsFunc(left, func(t *Target) bool { return t.Early }) {
		return nil // each is asked about in its turn
	}
	for _, t := range left {
		v, ok := c.state.view(c.state.of(t.UID))
		if t.Early || t.Reselect == nil || !ok || v.gone ||
			v.object.ResourceVersion == c.planned(t).ResourceVersion && c.told(v.object.Resource, v.object.Namespace) {
			continue
		}
		switch now, selected, err := t.Reselect(ctx, c.server); {
		case ctx.Err() != nil:
			return nil // the run says so
		case err != nil:
			return fmt.Errorf("not deleted, because it could not be asked whether %s still matches the selector: %w", t.Identity, err)
		case !selected || now.UID != t.UID:
			return errors.New("not deleted, because this does not match the selector any more: " + t.Identity.String())
		}
	}
	return nil
}

// remember notes an object that goes with a wave which is to come, and of which that wave's
// maker did not know all. The caller holds applying.
func (c *Collector) remember(n number, o *graph.Object) {
	if c.options.Unforeseen == nil || !c.options.Unforeseen(o) || slices.Contains(c.unforeseen, n) {
		return
	}
	for _, t := range slices.Concat(c.waves...) {
		inside := t.Resource.IsNamespace() && t.Name == o.Namespace
		instance := t.Resource.IsCRD() && t.Name == o.Resource.GroupResource().String()
		if inside || instance || c.report.includes(n) {
			c.unforeseen = append(c.unforeseen, n)
			return
		}
	}
}

// await has a wave last until an object has gone that is being deleted already: another
// delete could change how. The caller holds applying.
func (c *Collector) await(n number, o *graph.Object) {
	c.awaited = append(c.awaited, n)
	c.writer.open.set(n, true)
	switch {
	case o.OrphaningDependents():
		c.orphan(n)
	case o.DeletingDependents():
		c.enqueueForeground(n)
	}
}

// holdBack says of the targets whose turn does not come why.
func (c *Collector) holdBack(why error) {
	for _, wave := range c.waves {
		for _, t := range wave {
			if v, ok := c.state.view(c.state.of(t.UID)); ok && !v.gone && !v.object.BeingDeleted() {
				c.report.guarded(v.number, why)
			}
		}
	}
	c.waves = nil
}
