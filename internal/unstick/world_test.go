// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// world is a cluster of objects that have finalizers, and of what blocks them: an object is stuck as long as it has
// a finalizer, and goes with its last. What else blocks is in locks.
type world struct {
	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	// locks are other causes, by the change that ends them.
	locks []lock
	// sent are the changes that came through, in order.
	sent []string
	// version is that of the lock, and fenced whether it has the annotation of a fence.
	version int
	fenced  bool
	// before is called before a change is made, with its text, and may say what the server answers.
	before func(change string) error
	looks  int
	// blind: a look meets no objects, and the server does not hand them out one by one.
	// unlisted: what a look does not meet is in no list of it.
	blind, unlisted bool
	// onLook is called at each look.
	onLook func(n int)
	// says is what a look says of a finalizer, nil for nothing.
	says   func() say.Text
	asked  []unstick.Question
	answer string
	refuse func(unstick.Question) bool
	shown  int
	events []string
}

// lock is a cause with one remedy; the objects are stuck because of it first.
type lock struct {
	kind   explain.Kind
	remedy explain.Remedy
	open   bool
}

func newWorld(names ...string) *world {
	w := &world{objects: map[string]*unstructured.Unstructured{}}
	for _, text := range names {
		name, finalizers, _ := strings.Cut(text, "=")
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("v1")
		o.SetKind("ConfigMap")
		o.SetName(name)
		o.SetNamespace("s")
		o.SetUID(types.UID("uid-" + name))
		o.SetResourceVersion("1")
		o.SetFinalizers(strings.Split(finalizers, ","))
		w.objects[name] = o
	}
	return w
}

func identity(name string) graph.Identity {
	return graph.Identity{
		Resource:  graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true},
		Namespace: "s", Name: name, UID: types.UID("uid-" + name),
	}
}

// manual is a finalizer that only a dangerous change removes.
var manual = explain.Kind{ID: "fin-manual"}

// look explains what there is: each object with a finalizer is stuck, all with the same first finalizer by one cause.
func (w *world) look(context.Context) (*unstick.Look, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looks++; w.onLook != nil {
		w.onLook(w.looks)
	}
	report := &explain.Report{Now: time.Now()}
	snapshot := &graph.Snapshot{}
	if !w.blind && !w.unlisted {
		snapshot.MarkListed(identity("").Resource.GroupResource(), "s", "1")
	}
	causes := map[string]*explain.Cause{}
	for _, name := range w.names() {
		if w.blind {
			break
		}
		o := w.objects[name]
		snapshot.Add(graph.Object{Resource: &graph.Resource{GroupVersionResource: identity(name).Resource.GroupVersionResource, Kind: "ConfigMap", Namespaced: true}, Namespace: "s", Name: name, UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Finalizers: o.GetFinalizers(), DeletionTimestamp: o.GetDeletionTimestamp()})
		e := explain.Explanation{Object: identity(name), Verdict: explain.Stuck}
		for i := range w.locks {
			if l := &w.locks[i]; !l.open {
				c := w.cause(causes, report, l.kind.ID, func() *explain.Cause {
					return &explain.Cause{Kind: l.kind, Object: identity("lock"), Verdict: explain.Stuck, Remedies: []explain.Remedy{l.remedy}}
				})
				e.Findings = append(e.Findings, explain.Finding{Cause: c})
				break
			}
		}
		if len(e.Findings) == 0 {
			finalizer := o.GetFinalizers()[0]
			c := w.cause(causes, report, finalizer, func() *explain.Cause {
				return &explain.Cause{Kind: manual, Object: identity(name), Verdict: explain.Stuck}
			})
			if w.says != nil {
				c.Summary = w.says()
			}
			op := remedy.PatchOf(identity(name), remedy.Test("/metadata/finalizers/0", finalizer), remedy.Remove("/metadata/finalizers/0"))
			c.Remedies = append(c.Remedies, explain.Remedy{Risk: explain.Dangerous, Effect: say.Plain("remove " + finalizer), Action: explain.Action{Operation: &op}})
			e.Findings = append(e.Findings, explain.Finding{Cause: c})
		}
		report.Objects = append(report.Objects, e)
	}
	return &unstick.Look{Report: report, Graph: graph.New(snapshot)}, nil
}

func (w *world) cause(causes map[string]*explain.Cause, report *explain.Report, key string, made func() *explain.Cause) *explain.Cause {
	if causes[key] == nil {
		causes[key] = made()
		report.Causes = append(report.Causes, causes[key])
	}
	return causes[key]
}

func (w *world) names() []string {
	var names []string
	for name := range w.objects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (w *world) read(_ context.Context, id graph.Identity) (*unstructured.Unstructured, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id.Name == "lock" {
		o := &unstructured.Unstructured{}
		o.SetName("lock")
		o.SetUID(id.UID)
		o.SetResourceVersion(fmt.Sprint(w.version))
		if w.fenced {
			o.SetAnnotations(map[string]string{"kubectl-gc/fence": "1"})
		}
		policy := "Fail"
		if len(w.locks) > 0 && w.locks[0].open {
			policy = "Ignore"
		}
		o.Object["webhooks"] = []any{map[string]any{"failurePolicy": policy}}
		return o, nil
	}
	if w.blind {
		return nil, apierrors.NewForbidden(id.Resource.GroupResource(), id.Name, errors.New("no right"))
	}
	if o := w.objects[id.Name]; o != nil {
		return o.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(id.Resource.GroupResource(), id.Name)
}

// do makes a change as the API server would: under its guards.
func (w *world) do(ctx context.Context, op *remedy.Op) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf("%s %s", op.Verb, op.Object.Name)
	closes := op.Object.Name == "lock" && slices.ContainsFunc(op.Patch, func(s remedy.Step) bool { return s.Value == "Fail" })
	fences := slices.ContainsFunc(op.Patch, func(s remedy.Step) bool { return strings.HasPrefix(s.Path, "/metadata/annotations") })
	switch {
	case closes:
		text = "back lock"
	case fences:
		text = "fence lock"
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	lost := error(nil)
	if w.before != nil {
		if err := w.before(text); err != nil {
			made := lostAnswer{}
			if !errors.As(err, &made) {
				return err
			}
			lost = made.error
		}
	}
	if op.Object.Name == "lock" {
		if !op.Exact || op.Version != fmt.Sprint(w.version) {
			return fmt.Errorf("guard: %w", remedy.ErrChanged)
		}
		w.version++
		if fences {
			w.fenced = !w.fenced
			w.sent = append(w.sent, text)
			return lost
		}
		for i := range w.locks {
			if l := &w.locks[i]; l.remedy.Operation.Verb == op.Verb {
				l.open = !closes
			}
		}
		w.sent = append(w.sent, text)
		return lost
	}
	o := w.objects[op.Object.Name]
	if o == nil || o.GetUID() != op.Object.UID || !op.Exact || op.Version != o.GetResourceVersion() {
		return fmt.Errorf("guard: %w", remedy.ErrChanged)
	}
	left := o.GetFinalizers()[1:]
	o.SetFinalizers(left)
	o.SetResourceVersion(o.GetResourceVersion() + "0")
	if len(left) == 0 {
		delete(w.objects, op.Object.Name)
	}
	w.sent = append(w.sent, text)
	return lost
}

// lostAnswer is an answer that says nothing of a change, or none, of one that was made.
type lostAnswer struct{ error }

var errLost = errors.New("connection lost")

// Show implements unstick.Asker.
func (w *world) Show(*unstick.Plan, *unstick.Look) error {
	w.shown++
	return nil
}

// Ask implements unstick.Asker: the answer, or what is asked for.
func (w *world) Ask(_ context.Context, q unstick.Question) (string, error) {
	w.asked = append(w.asked, q)
	if w.refuse != nil && w.refuse(q) {
		return "no", nil
	}
	if w.answer != "" {
		return w.answer, nil
	}
	if q.Name == "" {
		return "yes", nil
	}
	return q.Name + "\n", nil
}

func (w *world) edges(t *testing.T) *unstick.Edges {
	t.Helper()
	return &unstick.Edges{
		Look: w.look, Asker: w,
		Writer: change.Writer{
			Read: w.read, Now: time.Now, Do: w.do,
			Wait: func(ctx context.Context, d time.Duration) {
				select {
				case <-ctx.Done():
				case <-time.After(d):
				}
			},
		},
		Log: func(e unstick.Event) {
			if e.Wrote != nil {
				w.events = append(w.events, fmt.Sprintf("%s %s %s", e.Wrote.Result, e.Wrote.Write.Op.Verb, e.Wrote.Write.Op.Object.Name))
			}
		},
	}
}
