// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
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
	back := *w.Op.Back
	for tries := 0; ; tries++ {
		record.Err = r.Do(ctx, &back)
		switch {
		case record.Err == nil, answer.NoSuchObject(record.Err, w.Op.Object.Resource.GroupResource(), w.Op.Object.Name):
			record.Err = r.Journal.takenBack(w)
			return record
		case tries < mostSkips && ctx.Err() == nil && (answer.Missing(record.Err) || answer.Passing(record.Err)):
			r.Wait(ctx, time.Second)
			continue
		}
		record.Result = NotTakenBack
		return record
	}
}
