// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// HelmRecord returns the record of a release of Helm out of its Secret, and nothing of any other Secret. It is the only read of
// the data of a Secret. The error shows nothing of it.
func (r *Reader) HelmRecord(ctx context.Context, namespace, name string) ([]byte, error) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	if !graph.ValidName(name) {
		return nil, errInvalidName(secrets.GroupResource(), name)
	}
	r.stats.gets.Add(1)
	data, err := raw(ctx, r.rest.Get().AbsPath(pathTo(secrets, namespace, name)...).SetHeader("Accept", "application/json"))
	if err != nil {
		return nil, err
	}
	var secret struct {
		Type string
		Data struct{ Release []byte }
	}
	if json.Unmarshal(data, &secret) != nil || secret.Type != "helm.sh/release.v1" {
		return nil, fmt.Errorf("the Secret %s/%s is no record of a Helm release", namespace, name)
	}
	return secret.Data.Release, nil
}
