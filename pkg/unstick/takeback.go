// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// keepOpen remembers a change that is to be taken back, once. Of what came of it the last counts: when it was made at last, its object has
// another version than an earlier request asks for that got no answer.
func (r *run) keepOpen(rec *Record) {
	at := slices.IndexFunc(r.open, func(other Record) bool { return other.Write.Op.Key() == rec.Write.Op.Key() })
	if at < 0 {
		r.open = append(r.open, *rec)
		return
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
		record := r.end(ctx, &open)
		r.report.Records = append(r.report.Records, record)
		r.tell(Event{Wrote: &record})
		if record.Result == NotTakenBack {
			failed = errors.Join(failed, fmt.Errorf("taking back what was changed in %s: %w", w.Op.Object, record.Err))
		}
	}
	r.open = left
	return failed
}

// end takes one change back, and looks again what became of that when the answer does not tell. A change that is not there, never was, and might
// still arrive, stays open in the journal, so that the next run looks again.
func (r *run) end(ctx context.Context, open *Record) Record {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takingBack)
	defer cancel()
	w := &open.Write
	record := Record{Time: r.Now(), Write: *w, Result: TakenBack}
	sent := false
	for tries := 0; ; tries++ {
		again, err := TakeBack(ctx, r.Read, r.Do, &w.Op)
		sent, record.Err = sent || again, err
		switch {
		case record.Err == nil && !sent && mayArrive(open.Result, r.Now().Sub(open.Time)):
			return record
		case record.Err == nil, errors.Is(record.Err, errGone):
			record.Err = errors.Join(record.Err, r.Journal.takenBack(w))
			return record
		case tries < mostSkips && ctx.Err() == nil && (answer.Missing(err) || answer.Passing(err) || answer.Failed(err)) && !errors.Is(err, remedy.ErrChanged):
			r.Wait(ctx, time.Second)
			continue
		}
		record.Result = NotTakenBack
		return record
	}
}

// mayArrive reports whether a change of which no answer came, and that is not there so long after it was sent, may still be made.
func mayArrive(result Result, after time.Duration) bool {
	return (result == Unanswered || result == "") && after < arriving
}

// errGone says that an object does not exist any more, so that nothing of it is to be taken back.
var errGone = errors.New("the object does not exist any more")

// TakeBack ends a temporary change, of its object as it is now. It sends nothing when the object is as it was before. The error is
// remedy.ErrChanged when it is neither that nor what the change has made; when the object is gone, IsGone reports so of it. That others,
// such as a controller that writes its status, were faster proves neither: the object is read again then.
func TakeBack(ctx context.Context, read func(context.Context, graph.Identity) (*unstructured.Unstructured, error), do func(context.Context, *remedy.Op) error, op *remedy.Op) (sent bool, err error) {
	for range mostSkips {
		current, failed := read(ctx, op.Object)
		switch {
		case isGone(op.Object, current, failed):
			return sent, errGone
		case failed != nil:
			return sent, failed
		}
		back := byName(op.Back, current)
		if asBefore(back, current) {
			return sent, nil
		}
		if sent, err = true, do(ctx, back); !apierrors.IsConflict(err) {
			return sent, err
		}
	}
	return sent, errors.New("others change the object all the time: " + err.Error()) // which is not remedy.ErrChanged
}

// IsGone reports whether an error of TakeBack says that the object does not exist any more.
func IsGone(err error) bool { return errors.Is(err, errGone) }

// asBefore reports whether an object is what a change would make of it, so that there is nothing to take back.
func asBefore(back *remedy.Op, current *unstructured.Unstructured) bool {
	switch back.Verb {
	case remedy.Scale:
		replicas, there, err := unstructured.NestedInt64(current.Object, "spec", "replicas")
		return there && err == nil && replicas == back.Replicas.Wanted
	case remedy.Untaint:
		taints, _, err := unstructured.NestedSlice(current.Object, "spec", "taints")
		return err == nil && !slices.ContainsFunc(taints, remedy.ParseTaint(back.Value).Is)
	case remedy.Patch:
		changes := slices.DeleteFunc(slices.Clone(back.Patch), func(s remedy.Step) bool { return s.Op == "test" })
		return len(changes) > 0 && !slices.ContainsFunc(changes, func(s remedy.Step) bool { return !made(&s, back.Patch, current.Object) })
	}
	return false
}

// changedSince reports whether an object is not what a change that takes another back is for: the API server would refuse that.
func changedSince(back *remedy.Op, current *unstructured.Unstructured) bool {
	if back.Verb == remedy.Scale {
		replicas, there, err := unstructured.NestedInt64(current.Object, "spec", "replicas")
		return there && err == nil && replicas != back.Replicas.Current
	}
	return slices.ContainsFunc(back.Patch, func(s remedy.Step) bool {
		return s.Op == "test" && s.Path != "/metadata/uid" && !made(&s, back.Patch, current.Object)
	})
}

// made reports whether an object is as a step of a patch would make it. What is removed from a list is the value that the patch tests
// there, wherever it is.
func made(step *remedy.Step, patch []remedy.Step, object map[string]any) bool {
	have, there := remedy.At(object, step.Path)
	if step.Op != "remove" {
		return there && equality.Semantic.DeepEqual(have, step.Value)
	}
	above, _ := remedy.At(object, step.Path[:strings.LastIndexByte(step.Path, '/')])
	list, is := above.([]any)
	if !is {
		return !there
	}
	return !slices.ContainsFunc(patch, func(test remedy.Step) bool {
		return test.Op == "test" && test.Path == step.Path && slices.ContainsFunc(list, func(entry any) bool { return equality.Semantic.DeepEqual(entry, test.Value) })
	})
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
