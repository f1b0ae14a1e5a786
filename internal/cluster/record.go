// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	stdjson "encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/json"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/offline"
)

// Recording keeps what the server says about itself: its types and its version.
type Recording struct {
	mu      sync.Mutex
	answers map[string]*offline.Answer
}

// Record returns a copy of the config whose clients' questions about the server itself
// are kept in the Recording, with their answers.
func Record(config *rest.Config) (*rest.Config, *Recording) {
	config = rest.CopyConfig(config)
	r := &Recording{answers: map[string]*offline.Answer{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &recorder{next: next, recording: r} })
	return config, r
}

// Answers returns what was kept, by path.
func (r *Recording) Answers() []*offline.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*offline.Answer
	for _, a := range r.answers {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *offline.Answer) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// Version is the server's version, empty when it did not tell.
func (r *Recording) Version() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var info apiversion.Info
	if a := r.answers["/version"]; a == nil || json.Unmarshal(a.Body, &info) != nil {
		return ""
	}
	return info.GitVersion
}

// recorder is the transport of a Recording.
type recorder struct {
	next      http.RoundTripper
	recording *Recording
}

// RoundTrip implements http.RoundTripper.
func (t *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	path := strings.TrimSuffix(request.URL.Path, "/")
	if err != nil || !aboutServer(path) {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // it was read
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if a := (&offline.Answer{Path: path, Code: response.StatusCode, ContentType: response.Header.Get("Content-Type"),
		Body: body}); stdjson.Valid(body) {
		t.recording.mu.Lock()
		t.recording.answers[path] = a
		t.recording.mu.Unlock()
	}
	return response, nil
}

// WrappedRoundTripper lets client-go cancel the request (apimachinery,
// util/net, RoundTripperWrapper).
func (t *recorder) WrappedRoundTripper() http.RoundTripper { return t.next }

// aboutServer reports whether a path is one of discovery, or that of the version.
func aboutServer(path string) bool {
	words := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch words[0] {
	case "version":
		return len(words) == 1
	case "api":
		return len(words) <= 2
	case "apis":
		return len(words) <= 3
	}
	return false
}
