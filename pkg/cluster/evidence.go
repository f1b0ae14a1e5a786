// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
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
func (r *Reader) Read(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
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

// List returns all whole objects of a resource, as Read does, in the namespace or, when that
// is empty, everywhere. What no explanation looks at is left out (see reduce).
func (r *Reader) List(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	return r.listWhole(ctx, resource, namespace, "")
}

// EachMentioning calls yield with each object of a List that has a field of one of the
// names, wherever. The others are not even decoded. Its error ends the list, and so does
// any of the server: then not all objects were seen.
func (r *Reader) EachMentioning(ctx context.Context, resource schema.GroupVersionResource, namespace string, fields []string, yield func(*unstructured.Unstructured) error) error {
	quoted := make([][]byte, len(fields))
	for i, field := range fields {
		quoted[i] = []byte(`"` + field + `"`)
	}
	return r.eachWhole(ctx, resource, namespace, "", func(item []byte) error {
		if !slices.ContainsFunc(quoted, func(name []byte) bool { return bytes.Contains(item, name) }) {
			return nil
		}
		o, err := decodeWhole(resource, item)
		if err != nil {
			return err
		}
		return yield(&o)
	})
}

// Each calls yield with the JSON of each object of a List, as the server sends it, and
// keeps none of them. yield must not keep it, either. Its error ends the list, and so
// does any of the server: then not all objects were seen.
func (r *Reader) Each(ctx context.Context, resource schema.GroupVersionResource, namespace string, yield func(item []byte) error) error {
	return r.eachWhole(ctx, resource, namespace, "", yield)
}

// listWhole lists the whole objects that a field selector matches; an empty one matches
// all.
func (r *Reader) listWhole(ctx context.Context, resource schema.GroupVersionResource, namespace, fields string) ([]unstructured.Unstructured, error) {
	var items []unstructured.Unstructured
	err := r.eachWhole(ctx, resource, namespace, fields, func(item []byte) error {
		o, err := decodeWhole(resource, item)
		items = append(items, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return items, nil
}

// decodeWhole returns an object of a list, reduced.
func decodeWhole(resource schema.GroupVersionResource, item []byte) (unstructured.Unstructured, error) {
	var o unstructured.Unstructured
	if err := json.Unmarshal(item, &o.Object); err != nil {
		return o, err
	}
	reduce(resource, &o)
	return o, nil
}

// eachWhole is Each for the objects that a field selector matches. The next page is on its
// way while those of one are looked at.
func (r *Reader) eachWhole(ctx context.Context, resource schema.GroupVersionResource, namespace, fields string, yield func([]byte) error) error {
	r.stats.lists.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ask := func(token string) <-chan wholePage {
		answer := make(chan wholePage, 1)
		go func() { answer <- r.wholePage(ctx, resource, namespace, fields, token) }()
		return answer
	}
	next := ask("")
	for pages := (paging{}); ; {
		page := <-next
		if page.err != nil {
			return page.err
		}
		if err := pages.page(len(page.Items), page.Metadata.Continue); err != nil {
			return fmt.Errorf("reading the list of %s: %w", resource.GroupResource(), err)
		}
		if pages.token != "" {
			next = ask(pages.token)
		}
		for _, item := range page.Items {
			if err := yield(item); err != nil {
				return err
			}
		}
		if pages.token == "" {
			return nil
		}
	}
}

// wholePage is a page of a list of whole objects, or what kept it from being read.
type wholePage struct {
	Metadata metav1.ListMeta      `json:"metadata"`
	Items    []stdjson.RawMessage `json:"items"`
	err      error
}

// wholePage reads the page to which the token leads, the first when it is empty.
func (r *Reader) wholePage(ctx context.Context, resource schema.GroupVersionResource, namespace, fields, token string) (page wholePage) {
	r.stats.pages.Add(1)
	request := r.rest.Get().AbsPath(pathTo(resource, namespace, "")...).
		SetHeader("Accept", strings.Replace(acceptable(resource), "PartialObjectMetadata;", "PartialObjectMetadataList;", 1)).
		Param("limit", fmt.Sprint(DefaultPageSize)).Param("continue", token)
	if fields != "" {
		request = request.Param("fieldSelector", fields)
	}
	data, err := raw(ctx, request)
	if err == nil {
		err = json.Unmarshal(data, &page)
	}
	page.err = err
	return page
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
