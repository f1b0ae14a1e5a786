// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// freed reports whether nothing is left of what a change was made for.
func (r *run) freed(w *Write) bool {
	gone := sets.New[types.UID]()
	for _, id := range r.report.Freed {
		gone.Insert(id.UID)
	}
	return gone.HasAll(w.Frees...)
}

// keepOpen remembers a change that is to be taken back, once. Of what came of it the last counts: when it was made at last, its object has
// another version than an earlier request asks for that got no answer.
func (r *run) keepOpen(rec *Record) {
	at := slices.IndexFunc(r.open, func(other Record) bool { return other.Write.Op.Key() == rec.Write.Op.Key() })
	if at < 0 {
		r.open = append(r.open, *rec)
		return
	}
	if r.open[at].Result == Done && rec.Result != Done {
		return // and is there
	}
	r.open[at] = *rec
}

// takeBack ends temporary changes, the last first, also when the context has ended.
func (r *run) takeBack(ctx context.Context, due func(*Write) bool) error {
	var failed error
	var left []Record
	for _, open := range slices.Backward(r.open) {
		w := &open.Write
		if !due(w) {
			left = append([]Record{open}, left...)
			continue
		}
		made := r.TakeBack(ctx, w.change(), open.before, open.Result)
		record := Record{Time: made.Time, Write: *w, Result: made.Status, Back: made.Back, Err: made.Err}
		r.report.Records = append(r.report.Records, record)
		r.tell(Event{Wrote: &record})
		if record.Result == NotTakenBack {
			failed = errors.Join(failed, fmt.Errorf("taking back what was changed in %s: %w", w.Op.Object, record.Err))
		}
	}
	r.open = left
	return failed
}
