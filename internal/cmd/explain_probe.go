// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// unreadError says which named object the server could not hand out.
type unreadError struct {
	error
	object graph.Identity
}

// Unwrap returns the server's error.
func (e unreadError) Unwrap() error { return e.error }

// unreadableObjects takes those objects out of an error of which it can be
// explained why they cannot be read.
func unreadableObjects(err error) ([]explain.Failed, error) {
	if err == nil {
		return nil, nil
	}
	var failed []explain.Failed
	rest := utilerrors.FilterOut(err, func(err error) bool {
		var u unreadError
		if !errors.As(err, &u) || !explain.Unreadable(u.error) {
			return false
		}
		failed = append(failed, explain.Failed{Object: u.object, Err: u.error})
		return true
	})
	return failed, rest
}

// readOtherwise reads the objects that the server could not hand out in the other versions of their types,
// and takes those that it can out of the failed: what holds them is found as of any other.
func (o *explainOptions) readOtherwise(ctx context.Context, s *session) (found []graph.Object) {
	o.failed = slices.DeleteFunc(o.failed, func(f explain.Failed) bool {
		mappings, err := s.reader.Mapper().RESTMappings(f.Object.Resource.GroupVersionKind().GroupKind())
		if err != nil {
			return false
		}
		for _, mapping := range mappings {
			readable := graph.ResourceOf(mapping)
			object, err := s.reader.Get(ctx, readable, f.Object.Namespace, f.Object.Name)
			if err == nil {
				object.Resource = &readable // whoever reads or writes it has to do that in this version
				found = append(found, object)
				return true
			}
		}
		return false
	})
	return found
}

// prober returns a client for dry runs, nil when none are to be sent.
func (o *explainOptions) prober(s *session) (explain.Prober, error) {
	if !o.probe || s.files != nil {
		return nil, nil
	}
	config, err := s.ConfigFlags.ToRESTConfig() // s.config only reads
	if err != nil {
		return nil, kubeconfigError(err)
	}
	prober, err := cluster.NewProber(config, s.reader.Stats())
	if err != nil {
		return nil, fmt.Errorf("preparing dry runs: %w", err)
	}
	return prober, nil
}

// identified returns the identity of an object of which only its place is
// known.
func identified(kind *graph.Resource, namespace, name string) graph.Identity {
	id := graph.Identity{Resource: *kind, Name: name}
	if kind.Namespaced {
		id.Namespace = namespace
	}
	return id
}
