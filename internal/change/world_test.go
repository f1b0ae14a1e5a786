// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/testworld"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a cluster in memory of Widgets and Namespaces. It is a change.Reader and a change.DryRunner.
type world struct {
	t         *testing.T
	resources []*graph.Resource
	// now is what is there.
	now *simulator.Server
	// unlisted could not be read, and refused are deletes that the server would not accept, by name.
	unlisted []graph.Unlisted
	refused  map[string]error
	// writers counts the clients that can write.
	writers int
}

func newWorld(t *testing.T, objects ...string) *world {
	w := &world{t: t}
	w.become(objects...)
	return w
}

// become changes what is there, as others do.
func (w *world) become(objects ...string) {
	w.t.Helper()
	read := testworld.World{Types: testworld.Types("example.com/v1 Widget widgets namespaced\nv1 Namespace namespaces cluster"), Now: start, UID: testworld.Name}
	for _, line := range objects {
		if _, err := read.Add(strings.Fields(line), nil); err != nil {
			w.t.Fatal(err)
		}
	}
	s := &graph.Snapshot{Mapper: testworld.Mapper(read.Types)}
	for _, o := range read.Objects {
		s.Add(o)
	}
	w.resources = nil
	for i := range read.Types {
		w.resources = append(w.resources, &read.Types[i])
		s.MarkListed(read.Types[i].GroupResource(), "", "1")
	}
	w.now = simulator.New(s, simulator.Options{Now: start})
}

// has returns the names of what is there.
func (w *world) has() string {
	var names []string
	for o := range w.now.Snapshot().Objects() {
		names = append(names, o.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// job deletes those of the named Widgets that are there.
func (w *world) job(names ...string) *change.Job {
	s, _ := w.Snapshot(w.t.Context(), cluster.Scope{})
	j := &change.Job{Graph: graph.New(s), Job: preview.Job{Policy: metav1.DeletePropagationBackground}}
	for _, name := range names {
		if o, known := s.Object(types.UID(name)); known {
			j.Targets = append(j.Targets, o.Identity())
		}
	}
	j.Cluster = change.Cluster{
		Reader:    w,
		DryRunner: func() (change.DryRunner, error) { return w, nil },
		Server: func(cluster.ServerOptions) (change.Server, error) {
			w.writers++
			return writer{w.now}, nil
		},
	}
	j.Again = func(context.Context) (*change.Job, error) {
		again := w.job(names...)
		again.Waves = j.Waves
		return again, nil
	}
	return j
}

// writer is the cluster for who may write.
type writer struct{ *simulator.Server }

func (writer) Concern(iter.Seq[types.UID])                               {}
func (writer) Watch(context.Context, *graph.Snapshot, []*graph.Resource) {}
func (writer) AwaitWatches(context.Context, time.Duration)               {}

func (w *world) Snapshot(context.Context, cluster.Scope, ...graph.Object) (*graph.Snapshot, error) {
	s := w.now.Snapshot()
	for _, u := range w.unlisted {
		s.MarkUnlisted(u)
	}
	return s, nil
}

func (w *world) Get(ctx context.Context, resource graph.Resource, namespace, name string) (graph.Object, error) {
	return w.now.Get(ctx, resource, namespace, name)
}

func (w *world) Read(_ context.Context, resource schema.GroupVersionResource, _, name string) (*unstructured.Unstructured, error) {
	return nil, apierrors.NewNotFound(resource.GroupResource(), name)
}

func (w *world) List(context.Context, schema.GroupVersionResource, string) ([]unstructured.Unstructured, error) {
	return nil, nil
}

func (w *world) EachMentioning(_ context.Context, _ schema.GroupVersionResource, _ string, _ []string, begin func(), _ func(*unstructured.Unstructured) error) error {
	begin()
	return nil
}

func (w *world) EachNaming(_ context.Context, _ schema.GroupVersionResource, _ string, _ []string, begin func(), _ func(*unstructured.Unstructured) error) error {
	begin()
	return nil
}

func (w *world) EachTyped(_ context.Context, _ schema.GroupVersionResource, _, _ string, begin func(), _ func(runtime.Object) error) error {
	begin()
	return nil
}

func (w *world) Events(context.Context, string, types.UID) ([]unstructured.Unstructured, error) {
	return nil, nil
}

func (w *world) Facts(context.Context, *graph.Snapshot, []graph.Object) graph.Facts {
	return graph.Facts{}
}
func (w *world) Resources() []*graph.Resource                           { return w.resources }
func (w *world) Server(context.Context) answer.Server                   { return answer.Server{} }
func (w *world) Now(context.Context) time.Time                          { return start }
func (w *world) ControllerManagerAlive(context.Context, time.Time) bool { return true }
func (w *world) Ask(_ context.Context, s gc.Step, _ *graph.Snapshot) error {
	return w.refused[s.Object.Name]
}

func (w *world) AskDelete(_ context.Context, id graph.Identity, _ metav1.DeletionPropagation) error {
	return w.refused[id.Name]
}

func (w *world) AskDeletions(_ context.Context, objects []graph.Object, _ time.Duration) []error {
	return make([]error, len(objects))
}

// asker answers the questions in turn, and does something before each answer.
type asker struct {
	answers []string
	before  func(answered int)
	shown   int
	asked   []change.Question
}

func (a *asker) Show(*change.Plan) error {
	a.shown++
	return nil
}

func (a *asker) Ask(_ context.Context, q change.Question) (string, error) {
	a.asked = append(a.asked, q)
	if a.before != nil {
		a.before(len(a.asked))
	}
	if len(a.asked) > len(a.answers) {
		return "", errNobody
	}
	return a.answers[len(a.asked)-1], nil
}
