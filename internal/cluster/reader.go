// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

const (
	// DefaultTimeout is how long one request may take when the user gave no
	// --request-timeout: as long as the API server itself gives a request.
	DefaultTimeout = 60 * time.Second
	// DefaultPageSize is kubectl's --chunk-size.
	DefaultPageSize = 500
	// AutoPageSize is DefaultPageSize, but lists are read in one piece from servers
	// that have them in their cache (docs/internals/snapshot.md).
	AutoPageSize = math.MinInt64
	// listsInFlight lists are asked for at once; more only queue in the API
	// server (docs/internals/snapshot.md).
	listsInFlight = 4
	// listsInFlightFar are when the server is far away, which is when the way there and
	// back takes at least farTrip; smallInFlightFar are when each is of one namespace. Of
	// connections client-go keeps 25 for the next request, and over one API servers take 100
	// requests at a time.
	listsInFlightFar = 24
	smallInFlightFar = 96
	farTrip          = 10 * time.Millisecond
	// getsInFlight small reads are asked for at once.
	getsInFlight = 8
)

// Options configure a Reader.
type Options struct {
	// PageSize is the number of objects that a list asks for at once, or
	// AutoPageSize; 0 asks for everything in one piece.
	PageSize int64
	// Namespace is tried when a list of all namespaces is forbidden and so is
	// the list of the namespaces themselves.
	Namespace string
	// Reading is told when lists for a snapshot are begun, and what it returns is
	// called when they are done; nil is for nobody.
	Reading func(*Progress) (done func())
}

// Reader reads a cluster. Its methods may be called by several goroutines at
// once.
type Reader struct {
	options   Options
	metadata  metadata.Interface
	rest      rest.Interface
	bulk      rest.Interface // for lists
	bulkFar   rest.Interface // for short lists of a server that is far away
	discovery discovery.CachedDiscoveryInterface
	// newDiscovery makes a client that has no answers yet.
	newDiscovery func() (discovery.CachedDiscoveryInterface, error)
	catalog      *catalog
	stats        *Stats
	timeout      time.Duration // of a request, repetitions included
	// server is what askServer has found out of it; slowCaches are the API groups of
	// which it could not send lists from its cache in time.
	askServer  sync.Once
	server     answer.Server
	slowCaches sync.Map
	// fallbacks are the namespaces that are listed where not all may be.
	askNamespaces sync.Once
	fallbacks     []string
}

// NewReader connects to the cluster that the config names and asks it which
// types it serves. The config should come from ReadOnly. An error means that
// the server could not be reached or refused to answer at all; types whose
// discovery failed are reported by Snapshot.
func NewReader(ctx context.Context, config *rest.Config, stats *Stats, options Options) (*Reader, error) {
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	config.QPS = -1
	config.DisableCompression = config.DisableCompression || onThisMachine(config)
	streaming := rest.CopyConfig(config)
	config.Wrap(bounded)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("configuring the client: %w", err)
	}
	r := &Reader{options: options, stats: stats, timeout: cmp.Or(config.Timeout, DefaultTimeout)}
	if r.metadata, err = metadata.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("configuring the client: %w", err)
	}
	if r.rest, err = restClient(config, client); err != nil {
		return nil, fmt.Errorf("configuring the client: %w", err)
	}
	if r.bulk, err = newBulkClient(bulkConfig(streaming)); err != nil {
		return nil, fmt.Errorf("configuring the client: %w", err)
	}
	if r.bulkFar, err = newBulkClient(streaming); err != nil {
		return nil, fmt.Errorf("configuring the client: %w", err)
	}
	r.newDiscovery = func() (discovery.CachedDiscoveryInterface, error) { return discoveryClient(config, client) }
	if r.discovery, err = r.newDiscovery(); err != nil {
		return nil, fmt.Errorf("configuring the client: %w", err)
	}
	if options.PageSize == AutoPageSize {
		go r.Server(ctx) // it is there when the lists are asked for
	}
	if r.catalog, err = discover(ctx, r.discovery); err != nil {
		return nil, err
	}
	return r, nil
}

// newBulkClient returns a client for lists. Clients whose configurations differ in nothing
// that concerns connections share these (client-go, transport/cache.go).
func newBulkClient(config *rest.Config) (rest.Interface, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return restClient(config, client)
}

// restClient returns a client for raw requests.
func restClient(config *rest.Config, client *http.Client) (rest.Interface, error) {
	config = metadata.ConfigFor(config)
	config.GroupVersion = &schema.GroupVersion{}
	config.APIPath = "/"
	return rest.RESTClientForConfigAndClient(config, client)
}

// Stats returns the counters of the requests sent so far.
func (r *Reader) Stats() *Stats { return r.stats }

// errInvalidName is what the API server would say to a name that no object can
// have, as owner references and users may state. It is not sent: in a URL it would
// mean something else. It is not NotFound, for what is asked for so was not looked
// for (graph.ValidName).
func errInvalidName(resource schema.GroupResource, name string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s: no object can have the name %q", resource, name))
}

// Get reads one object's metadata. The error of an absent object is NotFound, that
// of a name which no object can have is not.
func (r *Reader) Get(ctx context.Context, resource graph.Resource, namespace, name string) (graph.Object, error) {
	if !graph.ValidName(name) {
		return graph.Object{}, errInvalidName(resource.GroupResource(), name)
	}
	r.stats.gets.Add(1)
	item, err := r.client(&resource, namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return graph.Object{}, err
	}
	return graph.NewObject(r.catalog.canonical(resource), item), nil
}

// unlistedReason tells what kind of failure kept something from being read.
func unlistedReason(err error) graph.UnlistedReason {
	var timeout interface{ Timeout() bool }
	switch {
	case offline.IsNotHeld(err):
		return graph.NotInSnapshot
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return graph.Forbidden
	case apierrors.IsTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return graph.Timeout
	case errors.As(err, &timeout) && timeout.Timeout():
		return graph.Timeout
	}
	return graph.ServerError
}

// Resources returns the types that the garbage collector handles, sorted. They
// are shared and must not be changed.
func (r *Reader) Resources() []*graph.Resource { return r.catalog.resources }

// Page returns the first objects of a resource, up to the limit.
func (r *Reader) Page(ctx context.Context, resource graph.Resource, namespace string, limit int64) ([]graph.Object, error) {
	r.stats.lists.Add(1)
	r.stats.pages.Add(1)
	page, err := r.client(&resource, namespace).List(ctx, metav1.ListOptions{Limit: limit})
	if err != nil {
		return nil, err
	}
	objects := make([]graph.Object, len(page.Items))
	for i := range page.Items {
		objects[i] = graph.NewObject(r.catalog.canonical(resource), &page.Items[i])
	}
	return objects, nil
}

func (r *Reader) client(resource *graph.Resource, namespace string) metadata.ResourceInterface {
	return clientOf(r.metadata, resource, namespace)
}

// clientOf returns the metadata client of a resource, in the namespace when the
// resource has namespaces and one is given.
func clientOf(all metadata.Interface, resource *graph.Resource, namespace string) metadata.ResourceInterface {
	client := all.Resource(resource.GroupVersionResource)
	if resource.Namespaced && namespace != "" {
		return client.Namespace(namespace)
	}
	return client
}
