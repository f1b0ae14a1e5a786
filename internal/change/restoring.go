// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/restore"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

const (
	// controllersTake is how long a controller has to make a dependent of what was made again.
	controllersTake = 10 * time.Second
	// mostPasses is how often it is tried to make what a webhook, a quota or a definition does not let be made yet, and betweenPasses what
	// lies between.
	mostPasses    = 20
	betweenPasses = 3 * time.Second
	// restoringAtOnce is the number of objects that are made at once, right after their owners were read.
	restoringAtOnce = 8
)

// Restoration finds out how what a run has deleted is made again.
func (w *Writer) Restoration(ctx context.Context, lost []restore.Saved, wanted func(graph.Identity) bool) *restore.Plan {
	return restore.Of(lost, w.there(ctx, lost), wanted)
}

func (w *Writer) there(ctx context.Context, lost []restore.Saved) *there {
	there := &there{ctx: ctx, Writer: w, many: map[place]int{}, lists: map[place]map[string]*unstructured.Unstructured{}}
	there.volumes = sync.OnceValues(func() ([]unstructured.Unstructured, error) { return w.List(ctx, evidence.Volumes, "") })
	for i := range lost {
		there.many[placeOf(lost[i].Object)]++
	}
	return there
}

func placeOf(id graph.Identity) place { return place{id.Resource.GroupVersionResource, id.Namespace} }

// there is what there is, for a restoration: objects of which there are many of a type and namespace come from one list.
type there struct {
	*Writer
	ctx   context.Context
	many  map[place]int
	lists map[place]map[string]*unstructured.Unstructured
	// volumes are all of them, read once.
	volumes func() ([]unstructured.Unstructured, error)
}

// Find implements restore.Cluster.
func (t *there) Find(id graph.Identity) (*unstructured.Unstructured, error) {
	at := placeOf(id)
	if t.many[at] <= fewSingles {
		return t.look(t.ctx, id)
	}
	if t.lists[at] == nil {
		all, err := t.List(t.ctx, at.resource, at.namespace)
		if err != nil {
			return nil, err
		}
		t.lists[at] = make(map[string]*unstructured.Unstructured, len(all))
		for i := range all {
			all[i].SetGroupVersionKind(id.Resource.GroupVersionKind())
			t.lists[at][all[i].GetName()] = &all[i]
		}
	}
	return t.lists[at][id.Name], nil
}

// Resource implements restore.Cluster.
func (t *there) Resource(kind schema.GroupVersionKind) (graph.Resource, error) {
	return t.Writer.Resource(kind)
}

// Volumes implements restore.Cluster.
func (t *there) Volumes() ([]unstructured.Unstructured, error) { return t.volumes() }

// look reads what has the name of an object, nil for nothing.
func (w *Writer) look(ctx context.Context, id graph.Identity) (*unstructured.Unstructured, error) {
	o, err := w.Read(ctx, id)
	if answer.NoSuchObject(err, id.Resource.GroupResource(), id.Name) {
		return nil, nil
	}
	return o, err
}

// restoring is a restoration that is being done.
type restoring struct {
	*Writer
	dir  string
	plan *restore.Plan
	tell func(Record)

	mu sync.Mutex
	// ids are the UIDs that objects have by now, by those that they had.
	ids map[types.UID]types.UID
	// bound are claims of whose volumes there is nothing to do any more.
	bound map[*restore.Item]bool
	// over are items of which there is nothing to do any more, and failed those that were not made: true for one that is tried again by
	// itself.
	over, failed map[*restore.Item]bool
	// sent is what was sent for items and got no answer.
	sent map[*restore.Item]*Record
	// differs: something is there, and not as it was.
	differs atomic.Bool
}

// Restore makes objects again that were deleted, wave by wave, as a plan has it that was agreed to. Each object is looked at again right
// before, and one that others have made meanwhile is left as it is. What is sent, and what became of it, is told, by one goroutine at a
// time. It returns the UIDs that the objects have by now, by those that they had, and whether all was made.
func (w *Writer) Restore(ctx context.Context, dir string, p *restore.Plan, tell func(Record)) (ids map[types.UID]types.UID, all bool) {
	r := &restoring{Writer: w, dir: dir, plan: p, tell: tell, ids: map[types.UID]types.UID{}, bound: map[*restore.Item]bool{},
		over: map[*restore.Item]bool{}, failed: map[*restore.Item]bool{}, sent: map[*restore.Item]*Record{}}
	for _, i := range p.Items {
		if i.Do == restore.Nothing || i.Do == restore.Bind || i.Do == restore.Link && !i.Late {
			r.ids[i.Object.UID] = i.Now.GetUID()
		}
	}
	for pass := 1; ; pass++ {
		again := r.pass(ctx, pass == mostPasses)
		if !again || ctx.Err() != nil {
			break
		}
		w.Wait(ctx, betweenPasses)
	}
	return r.ids, ctx.Err() == nil && len(r.failed) == 0 && !r.differs.Load()
}

// pass does what can be done now. It reports whether more might be possible in a while, unless this is the last time.
func (r *restoring) pass(ctx context.Context, last bool) (again bool) {
	var retry atomic.Bool
	for _, wave := range r.waves() {
		r.await(ctx, wave)
		for items := range slices.Chunk(slices.DeleteFunc(slices.Clone(wave), func(i *restore.Item) bool { return r.over[i] }), restoringAtOnce) {
			contents, refused := r.contents(ctx, items)
			var group errgroup.Group
			for n, i := range items {
				group.Go(func() error {
					if r.one(ctx, i, contents[n], refused[n], last) {
						retry.Store(true)
					}
					return nil
				})
			}
			_ = group.Wait() // no function returns an error
		}
		for _, i := range wave {
			if r.bind(ctx, i, last) {
				retry.Store(true)
			}
		}
	}
	return retry.Load()
}

// contents are what is to be made of items, and why an owner speaks against it.
func (r *restoring) contents(ctx context.Context, items []*restore.Item) (contents []*unstructured.Unstructured, refused []error) {
	met := map[types.UID]error{}
	for _, i := range items {
		content, no := i.Content(r.ids), error(nil)
		if to := i.BoundTo(); to != nil {
			switch err := r.elsewhere(ctx, to); {
			case errors.Is(err, errElsewhere): // its data is not given to that
				content = i.Content(nil)
			case err != nil:
				no = unread{err}
			}
		}
		owners := content.GetOwnerReferences()
		if i.Do == restore.Link {
			owners = nil // link reads them
		}
		for _, ref := range owners {
			if _, known := met[ref.UID]; !known {
				met[ref.UID] = r.ownedBy(ctx, i.Object.Namespace, ref)
			}
			no = errors.Join(no, met[ref.UID])
		}
		contents, refused = append(contents, content), append(refused, no)
	}
	return contents, refused
}

// unread is why it is not known whether something is to be made, as yet.
type unread struct{ error }

// ownedBy returns why nothing is to be made with the owner: it is gone, or goes.
func (r *restoring) ownedBy(ctx context.Context, namespace string, ref metav1.OwnerReference) error {
	entry, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&ref)
	if err != nil {
		return err
	}
	obstacle, err := r.owner(ctx, namespace, entry, map[types.UID]Obstacle{})
	if obstacle == "" {
		return nil
	}
	if err = errors.Join(fmt.Errorf("%s/%s: %s", ref.Kind, ref.Name, Words(obstacle)), err); obstacle == Unread {
		return unread{err}
	}
	return err
}

// waves are the items to be written to, in their order.
func (r *restoring) waves() [][]*restore.Item {
	var waves [][]*restore.Item
	at := -1
	for _, i := range r.plan.Items {
		if !i.Writes() {
			continue
		}
		if i.Wave != at {
			waves, at = append(waves, nil), i.Wave
		}
		waves[len(waves)-1] = append(waves[len(waves)-1], i)
	}
	return waves
}

// await waits until controllers have made what is theirs, for as long as they have.
func (r *restoring) await(ctx context.Context, items []*restore.Item) {
	for end := r.Now().Add(controllersTake); ; r.Wait(ctx, time.Second) {
		missing := false
		for _, i := range items {
			if _, failed := r.failed[i]; i.Do != restore.Await || r.over[i] || r.ids[i.By.UID] == "" && failed {
				continue
			}
			now, err := r.look(ctx, i.Object)
			if err == nil && now != nil && now.GetDeletionTimestamp() == nil && r.controls(i, now) {
				r.have(i, now.GetUID(), nil)
				continue
			}
			missing = missing || err != nil || now == nil // another has its name otherwise
		}
		if !missing || ctx.Err() != nil || !r.Now().Before(end) {
			return
		}
	}
}

// controls reports whether an object is what the controller of an item has made.
func (r *restoring) controls(i *restore.Item, now *unstructured.Unstructured) bool {
	ref, uid := metav1.GetControllerOf(now), i.By.UID
	if is := r.ids[uid]; is != "" {
		uid = is
	}
	return ref != nil && ref.UID == uid
}

// have keeps that an object is there, and tells how it was made, nil for by others, or by what was sent before without an answer.
func (r *restoring) have(i *restore.Item, uid types.UID, made *Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[i.Object.UID], r.over[i] = uid, true
	if was := r.sent[i]; made == nil && was != nil && !was.Change.Op.Creates() {
		made, was.Status, was.Err = was, Done, was.end(Done, "")
	}
	delete(r.sent, i)
	if delete(r.failed, i); made != nil {
		r.tell(*made)
	}
}

// retries reports whether something of which that is true is to be tried again.
func (r *restoring) retries(is func(*restore.Item) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.failed {
		if !r.over[i] && is(i) {
			return true
		}
	}
	return false
}

// pending reports whether something is to be tried again, which others might need.
func (r *restoring) pending() bool {
	return r.retries(func(i *restore.Item) bool { return r.failed[i] })
}

// comes reports whether it is tried again to make what had a UID.
func (r *restoring) comes(uid types.UID) bool {
	return r.retries(func(i *restore.Item) bool { return i.Object.UID == uid && i.Do != restore.Link })
}

// fail keeps that an object is not there, and tells why if nothing more is tried: it is, by itself, or because of others.
func (r *restoring) fail(i *restore.Item, made *Record, itself, others bool) (again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	again = itself || others
	if made != nil && made.Status == Unanswered && made.end != nil {
		r.sent[i] = made
	}
	if r.failed[i] = itself; !again {
		r.over[i] = true
		r.tell(*made)
	}
	return again
}

// one makes or links one object. It reports whether that is to be tried again.
func (r *restoring) one(ctx context.Context, i *restore.Item, content *unstructured.Unstructured, refused error, last bool) (again bool) {
	if i.Do == restore.Bind {
		r.have(i, i.Now.GetUID(), nil)
		return false
	}
	if to := i.BoundTo(); to != nil && !last && r.comes(to.Object.UID) {
		return r.fail(i, nil, false, true)
	}
	c := &Change{Op: remedy.Op{Verb: remedy.Restore, Object: i.Object, Manifest: content.Object}, Why: recreating(r.dir), Risk: explain.Safe}
	for _, claim := range i.Requires {
		if r.has(claim) == "" {
			refused = errors.Join(refused, fmt.Errorf("%s was not recreated, and it would start without", claim.Object))
		}
	}
	var before *unstructured.Unstructured
	if i.Do == restore.Link {
		if !last && slices.ContainsFunc(i.Owners(), func(ref metav1.OwnerReference) bool { return r.comes(ref.UID) }) {
			return r.fail(i, nil, false, true)
		}
		op, now, err := r.link(ctx, i)
		if op == nil && err == nil {
			r.have(i, now.GetUID(), nil)
			return false
		}
		if before, refused = now, errors.Join(refused, err); op != nil {
			c.Op = *op
		}
	}
	if refused != nil {
		return r.fail(i, &Record{Time: r.Now(), Change: *c, Status: Skipped, Err: refused},
			!last && errors.As(refused, &unread{}), !last && r.pending())
	}
	made := r.Make(ctx, c, before)
	if made.Status == Done {
		if made.After != nil && !restore.Same(i, made.After) {
			made.Status, made.Err = Reverted, errDiffers
			r.differs.Store(true)
		}
		r.have(i, made.Change.Op.Object.UID, &made)
		return false
	}
	if now, err := r.look(ctx, i.Object); c.Op.Creates() && err == nil && now != nil && now.GetDeletionTimestamp() == nil {
		if r.answered(i, now, r.lost(i, &made)) {
			return false
		}
	}
	return r.fail(i, &made, passing(&made) && !last && ctx.Err() == nil, false)
}

// lost returns what was sent for an item without an answer, nil for nothing.
func (r *restoring) lost(i *restore.Item, made *Record) *Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	if made.Status == Unanswered {
		return made
	}
	return r.sent[i]
}

// answered takes what is there by now of an item that was to be created: others have made it as it was, or this run has, of which the
// answer was lost, and admission may have changed it. It reports whether it is one of these.
func (r *restoring) answered(i *restore.Item, now *unstructured.Unstructured, lost *Record) bool {
	same, others := restore.Same(i, now), ofOthers(now)
	switch {
	case same && (others || lost == nil):
		r.have(i, now.GetUID(), nil)
	case lost == nil || others || !same && !remedy.Wrote(now):
		return false
	default:
		if lost.Status, lost.Err = Done, lost.end(Done, now.GetUID()); !same {
			lost.Status, lost.Err = Reverted, errors.Join(errDiffers, lost.Err)
			r.differs.Store(true)
		}
		r.have(i, now.GetUID(), lost)
	}
	return true
}

// ofOthers reports whether the API server knows that this program has not made an object: it is as it is for others, and their references.
func ofOthers(o *unstructured.Unstructured) bool {
	return len(o.GetManagedFields()) > 0 && !remedy.Wrote(o)
}

// errDiffers says that what was made is not what was kept.
var errDiffers = errors.New("it was recreated, but differs from what was kept: the API server, a webhook or a controller has changed it")

// has returns the UID that an object has by now, empty for none.
func (r *restoring) has(i *restore.Item) types.UID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[i.Object.UID]
}

// passing reports whether what was not made may be made in a while.
func passing(made *Record) bool {
	return made.Status == Unanswered || failedCall(made.Err) || apierrors.IsNotFound(made.Err) || errors.Is(made.Err, remedy.ErrChanged)
}
