// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// deletes is one run of delete, of the objects that the case names, or without any of collect.
func (p *play) deletes(ctx context.Context, name string) {
	c := p.newClient(name)
	ctx, c.cancel = context.WithCancel(ctx)
	defer c.cancel()
	defer c.close()
	report, err := c.deletes(ctx)
	p.say("%s ends: %v", name, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.dead || report == nil {
		return
	}
	for i := range report.Outcomes {
		o := &report.Outcomes[i]
		if now := p.server.Object(o.Object.Identity()); o.Result == gc.Deleted && now != nil && now.GetUID() == o.Object.UID {
			p.fail("%s says Deleted: %s exists", name, o.Object.Name)
		}
	}
}

func (c *client) deletes(ctx context.Context) (*gc.Report, error) {
	j, err := c.job(ctx, nil)
	if err != nil || len(j.Targets) == 0 && len(c.p.script.Targets) > 0 {
		return nil, err
	}
	o := change.Options{
		Safe: c.p.script.Safe, Beforehand: change.Beforehand{Yes: c.p.script.Consent == "yes"}, Timeout: time.Minute, Concurrency: 4, Asker: jobAsker{c},
		Keep: func(context.Context, *change.Plan) (*change.Journal, error) { return c.journal, nil },
	}
	plan, err := change.Make(ctx, j, o)
	if err != nil {
		return nil, err
	}
	consent, err := plan.Consent(ctx)
	if err != nil || len(consent.Plan.Report.Steps) == 0 || consent.Gone {
		return nil, err
	}
	result, err := consent.Run(ctx)
	if result == nil {
		return nil, err
	}
	return result.Report, err
}

// job looks for the objects of the case, or for those of a job that are still there.
func (c *client) job(ctx context.Context, before *change.Job) (*change.Job, error) {
	snapshot, err := c.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	j := &change.Job{Graph: graph.New(snapshot), Job: preview.Job{Policy: c.p.script.Policy}}
	j.Whole, j.Cluster = j.Graph, change.Cluster{
		Reader:    jobReader{c},
		DryRunner: func() (change.DryRunner, error) { return jobReader{c}, nil },
		Server:    func(cluster.ServerOptions) (change.Server, error) { return &collecting{client: c, told: c.looked}, nil },
	}
	j.Again = func(ctx context.Context) (*change.Job, error) { return c.job(ctx, j) }
	if len(c.p.script.Targets) == 0 {
		j.Policy, j.Namespace = "", "s"
		return j, nil
	}
	for o := range snapshot.Objects() {
		id := o.Identity()
		switch {
		case before != nil && slices.Contains(before.Targets, id):
			j.Waves = before.Waves
		case before != nil || id.Namespace != "s" || !slices.Contains(c.p.script.Targets, o.Name):
			continue
		}
		j.Targets = append(j.Targets, id)
		c.targets[id.UID] = true
	}
	return j, nil
}

// snapshot is a look at the metadata.
func (c *client) snapshot(ctx context.Context) (s *graph.Snapshot, err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	err = c.at("look", graph.Identity{}, func(n int) error {
		unlisted := ""
		if c.p.faulty(c, "look", n, "unlisted", false) || c.p.faulty(c, "look", n, "unlisted", true) {
			unlisted = []string{"cm", "claim"}[n%2]
		}
		s, c.looked = snapshotOf(c.p.server, unlisted), c.p.seen
		return nil
	})
	return s, err
}

// jobAsker agrees to what it is shown.
type jobAsker struct{ *client }

// Show implements change.Asker.
func (a jobAsker) Show(p *change.Plan) error {
	a.p.mu.Lock()
	defer a.p.mu.Unlock()
	a.shown = map[types.UID]bool{}
	for uid := range p.Going() {
		a.shown[uid] = true
	}
	for i := range p.Report.Steps {
		a.shown[p.Report.Steps[i].Object.UID] = true
	}
	if p.Forecast != nil {
		for _, loss := range p.Forecast.Lost {
			if loss.Volume != "" {
				a.named[refTo("volume", loss.Volume).UID] = true
			}
		}
	}
	a.p.trace("%s shows %d writes", a.name, len(p.Report.Steps))
	return nil
}

// Ask implements change.Asker.
func (a jobAsker) Ask(_ context.Context, q change.Question) (string, error) {
	if err := a.at("read", graph.Identity{Name: "question"}, func(int) error { return nil }); err != nil {
		return "", err
	}
	if q.Name == "" {
		return "y", nil
	}
	return q.Name, nil
}

// jobReader reads what there is, and has no webhooks to ask.
type jobReader struct{ *client }

func (r jobReader) Snapshot(ctx context.Context, _ cluster.Scope, _ ...graph.Object) (*graph.Snapshot, error) {
	return r.snapshot(ctx)
}

func (r jobReader) Get(ctx context.Context, resource graph.Resource, namespace, name string) (graph.Object, error) {
	return (&collecting{client: r.client}).Get(ctx, resource, namespace, name)
}

func (r jobReader) Read(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	for _, each := range served {
		if each.GroupVersionResource == resource {
			return r.read(ctx, graph.Identity{Resource: *each, Namespace: namespace, Name: name})
		}
	}
	return nil, apierrors.NewNotFound(resource.GroupResource(), name)
}

func (r jobReader) List(ctx context.Context, resource schema.GroupVersionResource, _ string) ([]unstructured.Unstructured, error) {
	return observed{server: r.p.server}.List(ctx, resource, "")
}

func (r jobReader) each(ctx context.Context, resource schema.GroupVersionResource, begin func(), yield func(*unstructured.Unstructured) error) error {
	begin()
	all, err := r.List(ctx, resource, "")
	for i := range all {
		if err = yield(&all[i]); err != nil {
			return err
		}
	}
	return err
}

func (r jobReader) EachMentioning(ctx context.Context, resource schema.GroupVersionResource, _ string, _ []string, begin func(), yield func(*unstructured.Unstructured) error) error {
	return r.each(ctx, resource, begin, yield)
}

func (r jobReader) EachNaming(ctx context.Context, resource schema.GroupVersionResource, _ string, _ []string, begin func(), yield func(*unstructured.Unstructured) error) error {
	return r.each(ctx, resource, begin, yield)
}

func (r jobReader) EachTyped(ctx context.Context, resource schema.GroupVersionResource, kind, _ string, begin func(), yield func(runtime.Object) error) error {
	return r.each(ctx, resource, begin, func(o *unstructured.Unstructured) error {
		typed, err := scheme.Scheme.New(resource.GroupVersion().WithKind(kind))
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed)
		}
		if err != nil {
			return err
		}
		return yield(typed)
	})
}

func (jobReader) Events(context.Context, string, types.UID) ([]unstructured.Unstructured, error) {
	return nil, nil
}

func (jobReader) Facts(context.Context, *graph.Snapshot, []graph.Object) graph.Facts {
	return graph.Facts{}
}
func (jobReader) Resources() []*graph.Resource                           { return everyResource{}.Resources() }
func (jobReader) Server(context.Context) answer.Server                   { return answer.Server{} }
func (jobReader) Now(context.Context) time.Time                          { return time.Now() }
func (jobReader) ControllerManagerAlive(context.Context, time.Time) bool { return false }
func (jobReader) Ask(context.Context, gc.Step, *graph.Snapshot) error    { return nil }
func (jobReader) AskDelete(context.Context, graph.Identity, metav1.DeletionPropagation) error {
	return nil
}

func (jobReader) AskDeletions(_ context.Context, objects []graph.Object, _ time.Duration) []error {
	return make([]error, len(objects))
}
