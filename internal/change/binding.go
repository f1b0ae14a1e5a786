// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/restore"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// bind gives a claim that is there its volume, as both are by now. It reports whether that is to be tried again.
func (r *restoring) bind(ctx context.Context, i *restore.Item, last bool) (again bool) {
	claim := i.Object
	if claim.UID = r.has(i); i.Then == nil || claim.UID == "" || r.bound[i] || ctx.Err() != nil {
		return false
	}
	c := &Change{Op: *i.Then, Why: recreating(r.dir), Risk: explain.Safe}
	made := Record{Time: r.Now(), Change: *c, Status: Unanswered}
	var now *unstructured.Unstructured
	if now, made.Err = r.look(ctx, c.Op.Object); made.Err == nil {
		made.Err = r.elsewhere(ctx, i)
	}
	if made.Err == nil {
		switch then, why := i.Rebind(c.Op.Object, now, claim.UID); {
		case why != "":
			made.Status, made.Err = Skipped, errors.New(string(why))
		case then == nil: // others were faster, or an answer was lost
			r.bound[i] = true
			r.have(i, claim.UID, nil)
			return false
		default:
			c.Op = *then
			made = r.Make(ctx, c, now)
		}
	}
	if made.Status == Done {
		r.bound[i] = true
		r.have(i, claim.UID, &made)
		return false
	}
	again = passing(&made) && !errors.Is(made.Err, errElsewhere) && !last && ctx.Err() == nil
	r.bound[i] = !again
	return r.fail(i, &made, again, false)
}

// errElsewhere says why a claim is not given its volume.
var errElsewhere = errors.New("the claim has another volume by now")

// elsewhere returns errElsewhere for a claim that is there and has another volume, as one that its controller has made, or why that is not
// known.
func (r *restoring) elsewhere(ctx context.Context, i *restore.Item) error {
	now, err := r.look(ctx, i.Object)
	if err == nil && now != nil && i.Elsewhere(now) {
		return errElsewhere
	}
	return err
}

// link is what gives an object its references again, nil for nothing to do, with the object as it is. The owners are there: of one that is
// not it would be collected.
func (r *restoring) link(ctx context.Context, i *restore.Item) (*remedy.Op, *unstructured.Unstructured, error) {
	now, err := r.look(ctx, i.Object)
	if err != nil {
		return nil, nil, unread{err}
	}
	all := map[types.UID]types.UID{} // what its owners are, by what they were
	r.mu.Lock()
	is := r.ids[i.Object.UID]
	for _, ref := range i.Owners() {
		if uid := r.ids[ref.UID]; uid != "" {
			all[ref.UID] = uid
		}
	}
	r.mu.Unlock()
	switch {
	case now == nil || now.GetUID() != is || now.GetDeletionTimestamp() != nil:
		return nil, nil, remedy.ErrChanged
	case i.Late && ofOthers(now):
		return nil, now, nil
	}
	op, there := i.Relink(all, now), maps.Clone(all)
	if op == nil {
		return nil, now, nil
	}
	for _, ref := range i.Owners() {
		was := ref.UID
		if ref.UID = all[was]; ref.UID == "" {
			continue
		}
		if no := r.ownedBy(ctx, i.Object.Namespace, ref); no != nil {
			delete(there, was)
			err = errors.Join(err, no)
		}
	}
	if len(there) == 0 || errors.As(err, &unread{}) {
		return op, now, err
	}
	return i.Relink(there, now), now, nil // to those that are there
}
