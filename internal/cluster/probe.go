// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// probeTimeout is how long a probe may take: as long as the slowest webhook
// may, 30 seconds, and a little for the API server's answer about it.
const probeTimeout = 33 * time.Second

// Prober asks the API server what it would answer to a write. It cannot write:
// its transport refuses every request but reads and dry runs. Its methods may be called by
// several goroutines at once.
type Prober struct {
	rest rest.Interface
}

// NewProber returns a Prober for the cluster that the config names. The
// requests are counted in stats.
func NewProber(config *rest.Config, stats *Stats) (*Prober, error) {
	timeout := probeTimeout
	if config.Timeout > 0 {
		timeout = min(timeout, config.Timeout)
	}
	client, err := dryRunClient(config, stats, timeout)
	if err != nil {
		return nil, err
	}
	return &Prober{rest: client}, nil
}

// dryRunClient returns a client that sends nothing but reads and dry runs. Its requests are
// counted in stats; a timeout of 0 leaves each its own.
func dryRunClient(config *rest.Config, stats *Stats, timeout time.Duration) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.Wrap(onlyDryRuns)
	return unlimited(config, stats, timeout)
}

// unlimited returns a client for writes, as dryRunClient does.
func unlimited(config *rest.Config, stats *Stats, timeout time.Duration) (rest.Interface, error) {
	config = metadata.ConfigFor(forWrites(config, stats)) // with the name of this program
	config.Timeout = timeout
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("configuring the client: %w", err)
	}
	r, err := restClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("configuring the client: %w", err)
	}
	return r, nil
}

// metadataOnly asks for answers without spec, status and data.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// TryPatch sends a JSON merge patch as a dry run and returns the metadata of the
// object as it would be. The error is that of the API server.
func (p *Prober) TryPatch(ctx context.Context, resource schema.GroupVersionResource, namespace, name, subresource string,
	patch []byte) (*unstructured.Unstructured, error) {
	path := pathTo(resource, namespace, name)
	if subresource != "" {
		path = append(path, subresource)
	}
	data, err := raw(ctx, p.rest.Patch(types.MergePatchType).AbsPath(path...).
		SetHeader("Accept", metadataOnly).Param("dryRun", metav1.DryRunAll).Body(patch))
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	return o, o.UnmarshalJSON(data)
}

// TryDelete sends a DELETE with background propagation as a dry run. The error
// is that of the API server.
func (p *Prober) TryDelete(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) error {
	_, err := raw(ctx, p.rest.Delete().AbsPath(pathTo(resource, namespace, name)...).
		SetHeader("Accept", metadataOnly).Param("dryRun", metav1.DryRunAll).
		Param("propagationPolicy", string(metav1.DeletePropagationBackground)))
	return err
}
