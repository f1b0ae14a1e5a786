// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"fmt"
	"iter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Cluster is where a job is done: what reads it, and what makes the clients that ask it and write to it.
type Cluster struct {
	Reader Reader
	// DryRunner returns a client that cannot write. It is called to ask the server about a plan, and
	// about targets that are not deleted in the first wave.
	DryRunner func() (DryRunner, error)
	// Server returns a client that can write, for one wave. It is called by Consent.Run alone.
	Server func(options cluster.ServerOptions) (Server, error)
}

// Live returns the cluster of a configuration with which it may be written to. fieldManager is recorded
// as the author of patches.
func Live(reader *cluster.Reader, config *rest.Config, fieldManager string) Cluster {
	return Cluster{
		Reader: reader,
		DryRunner: func() (DryRunner, error) {
			return cluster.NewDryRunner(reader.Stats(), config, fieldManager)
		},
		Server: func(options cluster.ServerOptions) (Server, error) {
			options.FieldManager = fieldManager
			return cluster.NewServer(reader, config, options)
		},
	}
}

// Reader reads the cluster, as cluster.Reader does.
type Reader interface {
	evidence.Cluster
	Events(ctx context.Context, namespace string, uid types.UID) ([]unstructured.Unstructured, error)
	Snapshot(ctx context.Context, scope cluster.Scope, extra ...graph.Object) (*graph.Snapshot, error)
	Get(ctx context.Context, resource graph.Resource, namespace, name string) (graph.Object, error)
	Facts(ctx context.Context, of *graph.Snapshot, objects []graph.Object) graph.Facts
	Resources() []*graph.Resource
	Server(ctx context.Context) answer.Server
	Now(ctx context.Context) time.Time
	ControllerManagerAlive(ctx context.Context, now time.Time) bool
}

// DryRunner asks what the API server would answer to writes, as cluster.DryRunner does.
type DryRunner interface {
	Ask(ctx context.Context, step gc.Step, snapshot *graph.Snapshot) error
	AskDelete(ctx context.Context, id graph.Identity, policy metav1.DeletionPropagation) error
	AskDeletions(ctx context.Context, objects []graph.Object, within time.Duration) []error
}

// Server is a gc.Server that is told what to follow, as cluster.Server is.
type Server interface {
	gc.Server
	Concern(uids iter.Seq[types.UID])
	Watch(ctx context.Context, snapshot *graph.Snapshot, resources []*graph.Resource)
	AwaitWatches(ctx context.Context, atMost time.Duration)
}

// ProveGone returns an error unless the object is proved to be gone: that a list has it no more is no proof.
func ProveGone(ctx context.Context, r Reader, id graph.Identity) error {
	switch now, err := r.Get(ctx, id.Resource, id.Namespace, id.Name); {
	case err == nil && now.UID != id.UID, answer.NoSuchObject(err, id.Resource.GroupResource(), id.Name):
		return nil
	case err == nil:
		return fmt.Errorf("reading %s again: it exists, but no list contains it", id)
	default:
		return fmt.Errorf("reading %s again: %w", id, err)
	}
}
