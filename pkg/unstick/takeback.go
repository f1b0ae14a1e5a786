// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// freed reports whether nothing is left of what a change was made for.
func (r *run) freed(w *Write) bool {
	gone := sets.New[types.UID]()
	for _, id := range r.report.Freed {
		gone.Insert(id.UID)
	}
	return gone.HasAll(w.Frees...)
}

// takeBack ends temporary changes, the last first, also when the context has ended.
func (r *run) takeBack(ctx context.Context, due func(*Write) bool) error {
	var failed error
	var left []Write
	for _, w := range slices.Backward(r.open) {
		if !due(&w) {
			left = append([]Write{w}, left...)
			continue
		}
		record := r.end(ctx, &w)
		r.report.Records = append(r.report.Records, record)
		r.tell(Event{Wrote: &record})
		if record.Result == NotTakenBack {
			failed = errors.Join(failed, fmt.Errorf("taking back what was changed in %s: %w", w.Op.Object, record.Err))
		}
	}
	r.open = left
	return failed
}

// end takes one change back.
func (r *run) end(ctx context.Context, w *Write) Record {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takingBack)
	defer cancel()
	record := Record{Time: r.Now(), Write: *w, Result: TakenBack}
	for tries := 0; ; tries++ {
		record.Err = TakeBack(ctx, r.Read, r.Do, &w.Op)
		switch {
		case record.Err == nil, errors.Is(record.Err, errGone):
			record.Err = errors.Join(record.Err, r.Journal.takenBack(w))
			return record
		case tries < mostSkips && ctx.Err() == nil && (answer.Missing(record.Err) || answer.Passing(record.Err)) && !errors.Is(record.Err, remedy.ErrChanged):
			r.Wait(ctx, time.Second)
			continue
		}
		record.Result = NotTakenBack
		return record
	}
}

// errGone says that an object does not exist any more, so that nothing of it is to be taken back.
var errGone = errors.New("the object does not exist any more")

// TakeBack ends a temporary change, of its object as it is now. It does nothing when the object is as it was before. The error is
// remedy.ErrChanged when it is neither that nor what the change has made; when the object is gone, Gone reports so of it.
func TakeBack(ctx context.Context, read func(context.Context, graph.Identity) (*unstructured.Unstructured, error), do func(context.Context, *remedy.Op) error, op *remedy.Op) error {
	current, err := read(ctx, op.Object)
	switch {
	case answer.NoSuchObject(err, op.Object.Resource.GroupResource(), op.Object.Name), err == nil && current.GetUID() != op.Object.UID:
		return errGone
	case err != nil:
		return err
	}
	back := byName(op.Back, current)
	if asBefore(back, current) {
		return nil
	}
	return do(ctx, back)
}

// IsGone reports whether an error of TakeBack says that the object does not exist any more.
func IsGone(err error) bool { return errors.Is(err, errGone) }

// asBefore reports whether a patch would set only what is there already.
func asBefore(back *remedy.Op, current *unstructured.Unstructured) bool {
	sets := 0
	for _, step := range back.Patch {
		switch step.Op {
		case "replace", "add":
			if have, there := remedy.At(current.Object, step.Path); !there || !equality.Semantic.DeepEqual(have, step.Value) {
				return false
			}
			sets++
		case "remove":
			return false
		}
	}
	return sets > 0
}

var webhookAt = pattern.New(`^/webhooks/(\d+)(/.*)?$`)

// byName returns a patch of a webhook configuration for the webhooks of the names that it tests, wherever they are by now: others may
// have been put before them.
func byName(back *remedy.Op, current *unstructured.Unstructured) *remedy.Op {
	names := map[string]string{} // by the numbers in the patch
	for _, step := range back.Patch {
		if m := webhookAt().FindStringSubmatch(step.Path); m != nil && m[2] == "/name" && step.Op == "test" {
			names[m[1]] = fmt.Sprint(step.Value)
		}
	}
	webhooks, _, _ := unstructured.NestedSlice(current.Object, "webhooks")
	moved := *back
	moved.Patch = slices.Clone(back.Patch)
	for i, step := range moved.Patch {
		m := webhookAt().FindStringSubmatch(step.Path)
		if m == nil || names[m[1]] == "" {
			continue
		}
		at := slices.IndexFunc(webhooks, func(w any) bool {
			webhook, _ := w.(map[string]any)
			return webhook["name"] == names[m[1]]
		})
		if at >= 0 {
			moved.Patch[i].Path = fmt.Sprintf("/webhooks/%d%s", at, m[2])
		}
	}
	return &moved
}
