// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// DryRunner asks the API server what it would answer to the steps of a plan. It
// cannot write: its transport refuses every request but reads and dry runs.
type DryRunner struct {
	sender  *Sender
	timeout time.Duration
}

// NotAskedError says why a change was not sent as a dry run.
type NotAskedError struct{ why string }

// Error implements error.
func (e NotAskedError) Error() string { return e.why }

// NewDryRunner returns a DryRunner for the cluster of the config, which asks as the field manager.
func NewDryRunner(stats *Stats, config *rest.Config, manager string) (*DryRunner, error) {
	sender, err := newSender(config, stats, manager, true, 0)
	if err != nil {
		return nil, err
	}
	return &DryRunner{sender, cmp.Or(config.Timeout, DefaultTimeout)}, nil
}

// Ask sends a step with dryRun=All and returns what the server says to it:
// admission, rights, validation and preconditions are checked, and nothing is
// changed. So an earlier step has changed nothing either, and every step goes
// with the object as the snapshot has it, at the step's resource. A step whose type
// an aggregated API may serve is not sent; the error is a NotAskedError then.
func (d *DryRunner) Ask(ctx context.Context, step gc.Step, snapshot *graph.Snapshot) error {
	o, known := snapshot.Object(step.Object.UID)
	if !known {
		return fmt.Errorf("%s is not in the snapshot", step.Object.Identity())
	}
	o.Resource = step.Object.Resource // another group may serve it, too
	step.Object = o
	return d.ask(ctx, asRead(&o, step.Op()))
}

// AskDelete asks about a user's delete of an object, by UID, whatever its version.
func (d *DryRunner) AskDelete(ctx context.Context, id graph.Identity, policy metav1.DeletionPropagation) error {
	return d.ask(ctx, remedy.DeleteOf(id, metav1.DeleteOptions{PropagationPolicy: &policy}))
}

// AskDeletions asks about a DELETE of each of the objects, as the garbage collector and the
// controllers of Kubernetes send it, some at a time, and returns the answers in their order.
// None is sent after the time is over. The answer about one that was not sent, for that or
// because an aggregated API may serve it, is a NotAskedError.
func (d *DryRunner) AskDeletions(ctx context.Context, objects []graph.Object, within time.Duration) []error {
	answers := make([]error, len(objects))
	begun := time.Now()
	background := metav1.DeletePropagationBackground
	group := errgroup.Group{}
	group.SetLimit(deletionsAtOnce)
	for i := range objects {
		o := &objects[i]
		group.Go(func() error {
			if time.Since(begun) > within {
				answers[i] = NotAskedError{"it timed out"}
				return nil
			}
			answers[i] = d.ask(ctx, asRead(o, remedy.DeleteOf(o.Identity(), metav1.DeleteOptions{PropagationPolicy: &background})))
			return nil
		})
	}
	_ = group.Wait() // the answers have the errors
	return answers
}

// deletionsAtOnce is how many dry runs AskDeletions sends at once.
const deletionsAtOnce = 8

func (d *DryRunner) ask(ctx context.Context, op remedy.Op) error {
	return insist(ctx, retries, d.timeout, func(ctx context.Context) error {
		_, err := d.sender.send(ctx, &op)
		return err
	})
}

// asRead is the change for the version of the object that was read.
func asRead(o *graph.Object, op remedy.Op) remedy.Op {
	if o.ResourceVersion == "" {
		return op
	}
	return op.At(o.ResourceVersion)
}

// onlyDryRuns wraps a transport so that it refuses every request that could
// change something.
func onlyDryRuns(next http.RoundTripper) http.RoundTripper { return &dryRunTransport{next} }

// dryRunTransport is what onlyDryRuns makes.
type dryRunTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *dryRunTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if !changesNothing(request) {
		return nil, fmt.Errorf("a dry run tried to send %s %s", request.Method, request.URL.RequestURI())
	}
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go cancel the request (apimachinery,
// util/net, RoundTripperWrapper).
func (t *dryRunTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// changesNothing reports whether the API server stores nothing for the request: it is a GET, or
// its parameters say dryRun=All, and so does the body of a DELETE, if there is one,
// since that takes the place of the parameters
// (k8s.io/apiserver/pkg/endpoints/handlers/delete.go, DeleteResource).
func changesNothing(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet:
		return true
	case http.MethodPatch, http.MethodPut, http.MethodPost:
		return onlyAll(request.URL.Query()["dryRun"])
	case http.MethodDelete:
		return onlyAll(request.URL.Query()["dryRun"]) && (request.Body == nil || request.Body == http.NoBody || saysDryRun(request))
	}
	return false
}

// saysDryRun reports whether the body of a DELETE asks for a dry run. One that
// cannot be read twice does not.
func saysDryRun(request *http.Request) bool {
	if request.GetBody == nil {
		return false
	}
	body, err := request.GetBody()
	if err != nil {
		return false
	}
	defer func() { _ = body.Close() }() // it was read
	data, err := io.ReadAll(body)
	var options metav1.DeleteOptions
	return err == nil && kjson.Unmarshal(data, &options) == nil && onlyAll(options.DryRun)
}

func onlyAll(dryRun []string) bool { return slices.Equal(dryRun, []string{metav1.DryRunAll}) }
