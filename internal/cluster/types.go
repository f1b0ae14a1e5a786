// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// typesTransport lets only answers about types through that are some. The discovery
// client takes any JSON for a list, and one without the fields that it looks for for an
// empty one: a type that is not in it would not exist, and nothing would say that
// it was not read. How long answers may be the transport below it bounds.
type typesTransport struct {
	next http.RoundTripper
}

// typesOnly returns a client for discovery, whose answers about types are some.
func typesOnly(client *http.Client) *http.Client {
	checked := *client
	if checked.Transport == nil {
		checked.Transport = http.DefaultTransport
	}
	checked.Transport = &aheadTransport{next: &typesTransport{checked.Transport}}
	return &checked
}

// RoundTrip implements http.RoundTripper.
func (t *typesTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	kind := kindOfTypes(request.URL.Path)
	if err != nil || kind == "" || response.StatusCode != http.StatusOK {
		return response, err
	}
	data, err := inMemory(response)
	if err == nil {
		err = checkTypes(data, response.Header.Get("Content-Type"), kind)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the types of %s: %w", request.URL.Path, err)
	}
	return response, nil
}

// WrappedRoundTripper lets client-go cancel the request (apimachinery,
// util/net, RoundTripperWrapper).
func (t *typesTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// kindOfTypes returns what the answer is to be that a server without aggregated
// discovery gives under a path, empty for a path that is not about types.
func kindOfTypes(path string) string {
	_, rest, legacy := strings.Cut(path+"/", "/api/")
	_, named, groups := strings.Cut(path+"/", "/apis/")
	switch {
	case groups && named == "":
		return "APIGroupList"
	case groups && strings.Count(named, "/") == 2:
		return "APIResourceList"
	case legacy && rest == "":
		return "APIVersions"
	case legacy && strings.Count(rest, "/") == 1:
		return "APIResourceList"
	}
	return ""
}

// aggregated is the answer of a server with aggregated discovery.
var aggregated = schema.GroupVersionKind{Group: "apidiscovery.k8s.io", Version: "v2", Kind: "APIGroupDiscoveryList"}

// checkTypes reports an answer that is neither of the kind nor aggregated. Which of these
// it is the discovery client goes by what the header says.
func checkTypes(data []byte, contentType, kind string) error {
	var stated struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(data, &stated); err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	if is, _ := discovery.ContentTypeIsGVK(contentType, aggregated); is {
		kind = aggregated.Kind
	}
	if stated.Kind != kind {
		return fmt.Errorf("the server sent %s instead of %s", orNothing(stated.Kind), kind)
	}
	return nil
}

func orNothing(kind string) string {
	if kind == "" {
		return "nothing that states its kind"
	}
	return kind
}
