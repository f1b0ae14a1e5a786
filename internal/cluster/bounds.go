// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"io"
	"net/http"
)

// What an answer may come to before it is given up. No cluster has what is longer: etcd
// takes 1.5 MB for an object unless told otherwise, and 8 GB are much for all of it.
const (
	// longestAnswer is for one object, and for what is not a list, in bytes.
	longestAnswer = 64 << 20
	// longestPage is for a page of a list that is in memory in full, in bytes.
	longestPage = 256 << 20
	// mostObjects is the number of objects of one list, mostEmptyPages that of its pages
	// without any.
	mostObjects    = 10_000_000
	mostEmptyPages = 1000
)

// boundedTransport ends answers that are longer than any right one, so that no server can
// fill the memory of this machine. What is decoded while it streams in does not go through it.
type boundedTransport struct {
	next http.RoundTripper
}

// bounded is a wrapper for a rest.Config.
func bounded(next http.RoundTripper) http.RoundTripper { return &boundedTransport{next} }

// RoundTrip implements http.RoundTripper.
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	query := request.URL.Query()
	if err != nil || query.Has("watch") {
		return response, err
	}
	most := int64(longestAnswer)
	if query.Has("limit") {
		most = longestPage
	}
	response.Body = &boundedBody{response.Body, &boundedReader{response.Body, most, most}}
	return response, nil
}

// WrappedRoundTripper lets client-go cancel the request (apimachinery,
// util/net, RoundTripperWrapper).
func (t *boundedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

type boundedBody struct {
	io.Closer
	io.Reader
}

// boundedReader fails after so many bytes.
type boundedReader struct {
	in         io.Reader
	most, left int64
}

// Read implements io.Reader.
func (r *boundedReader) Read(p []byte) (int, error) {
	if r.left < 0 {
		return 0, fmt.Errorf("the answer is longer than %d MB", r.most>>20)
	}
	n, err := r.in.Read(p[:min(int64(len(p)), r.left+1)])
	if r.left -= int64(n); r.left < 0 {
		return 0, fmt.Errorf("the answer is longer than %d MB", r.most>>20)
	}
	return n, err
}

// each has what f gets count by itself.
func (r *boundedReader) each(f func([]byte) error) func([]byte) error {
	return func(item []byte) error {
		r.left = r.most
		return f(item)
	}
}
