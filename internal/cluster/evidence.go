// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// pathTo is graph.Resource.Path for what need not be known by discovery.
func pathTo(resource schema.GroupVersionResource, namespace, name string) []string {
	return graph.Resource{GroupVersionResource: resource}.Path(namespace, name)
}

// acceptable is the form in which an object is asked for: Secrets and ConfigMaps
// without their data.
func acceptable(resource schema.GroupVersionResource) string {
	if resource.Group == "" && (resource.Resource == "secrets" || resource.Resource == "configmaps") {
		return metadataOnly
	}
	return "application/json"
}

// Read returns a whole object, of Secrets and ConfigMaps the metadata. The error of an absent object is NotFound; any
// other, such as the 404 of a type that is not served, says that the answer is
// not known.
func (r *Reader) Read(ctx context.Context, resource schema.GroupVersionResource, namespace,
	name string) (*unstructured.Unstructured, error) {
	if !graph.ValidName(name) {
		return nil, errInvalidName(resource.GroupResource(), name)
	}
	r.stats.gets.Add(1)
	data, err := raw(ctx, r.rest.Get().AbsPath(pathTo(resource, namespace, name)...).SetHeader("Accept", acceptable(resource)))
	if err != nil {
		if apierrors.IsNotFound(err) && !answer.NoObject(err) {
			return nil, fmt.Errorf("reading %s: the server does not serve it", resource.GroupResource())
		}
		return nil, err
	}
	o := &unstructured.Unstructured{}
	return o, o.UnmarshalJSON(data)
}

// Now returns the API server's time, to the second, or the local one when the
// server does not tell.
func (r *Reader) Now(ctx context.Context) time.Time {
	client, ok := r.rest.(*rest.RESTClient)
	if !ok || client.Client == nil {
		return time.Now()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.rest.Get().AbsPath("version").URL().String(), http.NoBody)
	if err != nil {
		return time.Now()
	}
	r.stats.gets.Add(1)
	response, err := client.Client.Do(request)
	if err != nil {
		return time.Now()
	}
	_ = response.Body.Close() // nothing of it is read
	now, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return time.Now()
	}
	return now
}

// Events returns the events about one object, of those that the server still
// has.
func (r *Reader) Events(ctx context.Context, namespace string, uid types.UID) ([]unstructured.Unstructured, error) {
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where those about cluster-scoped objects are
	}
	return r.listWhole(ctx, schema.GroupVersionResource{Version: "v1", Resource: "events"}, namespace, "involvedObject.uid="+string(uid))
}
