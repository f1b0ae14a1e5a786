// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Stats counts the requests of Readers and of what writes beside them. It may be read at any time by any
// goroutine.
type Stats struct {
	start time.Time

	requests  atomic.Int64
	discovery atomic.Int64
	lists     atomic.Int64
	pages     atomic.Int64
	gets      atomic.Int64
	tables    atomic.Int64
	deletes   atomic.Int64
	patches   atomic.Int64
	dryRuns   atomic.Int64
	watches   atomic.Int64
	bytes     atomic.Int64

	// trip is the shortest time, in nanoseconds, in which a question about the server was
	// answered over a connection that was there; 0 for none.
	trip atomic.Int64
}

// shortest is how long it took the server to answer when it was fastest, 0 if that is not
// known.
func (s *Stats) shortest() time.Duration { return time.Duration(s.trip.Load()) }

// timed measures how long a request takes from when it is sent until the answer begins.
func (s *Stats) timed(request *http.Request) *http.Request {
	var sent atomic.Int64 // since start
	return request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { sent.Store(time.Since(s.start).Nanoseconds()) },
		GotFirstResponseByte: func() {
			took := time.Since(s.start).Nanoseconds() - sent.Load()
			for {
				best := s.trip.Load()
				if best != 0 && best <= took || s.trip.CompareAndSwap(best, took) {
					return
				}
			}
		},
	}))
}

// String says what was asked of the server, in one line.
func (s *Stats) String() string {
	more := ""
	if n := s.dryRuns.Load(); n > 0 {
		more = fmt.Sprintf(", %d dry runs", n)
	}
	if s.watches.Load()+s.deletes.Load()+s.patches.Load() > 0 {
		more += fmt.Sprintf(", %d deletes, %d patches, %d watches", s.deletes.Load(), s.patches.Load(), s.watches.Load())
	}
	return fmt.Sprintf("%d requests: %d discovery, %d lists in %d pages, %d gets, %d tables%s; %.1f kB received; %.2f s",
		s.requests.Load(), s.discovery.Load(), s.lists.Load(), s.pages.Load(), s.gets.Load(), s.tables.Load(), more,
		float64(s.bytes.Load())/1000, time.Since(s.start).Seconds())
}

// count takes a request into account and returns the response with its bytes
// counted as they are read.
func (s *Stats) count(request *http.Request, next http.RoundTripper) (*http.Response, error) {
	s.requests.Add(1)
	switch path := request.URL.Path; {
	case isDryRun(request):
		s.dryRuns.Add(1)
	case request.Method == http.MethodDelete:
		s.deletes.Add(1)
	case request.Method == http.MethodPatch:
		s.patches.Add(1)
	case request.URL.Query().Has("watch"):
		s.watches.Add(1)
	case strings.HasSuffix(path, "/api"), strings.HasSuffix(path, "/apis"):
		s.discovery.Add(1)
		request = s.timed(request)
	case strings.HasSuffix(path, "/version"):
		request = s.timed(request)
	}
	response, err := next.RoundTrip(request)
	if err == nil {
		response.Body = &countingBody{ReadCloser: response.Body, bytes: &s.bytes}
	}
	return response, err
}

func isDryRun(request *http.Request) bool { return request.URL.Query().Has("dryRun") }

// counting wraps a transport so that its requests are counted.
func (s *Stats) counting(next http.RoundTripper) http.RoundTripper {
	return &transport{next: next, stats: s}
}

// transport counts the requests of what writes. It keeps Retry-After from client-go, which would repeat
// a write by itself (rest/with_retry.go), also after its run was interrupted: Server.send does not.
type transport struct {
	next  http.RoundTripper
	stats *Stats
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.stats.count(request, t.next)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// WrappedRoundTripper lets client-go cancel the request (apimachinery,
// util/net, RoundTripperWrapper).
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// NewStats returns counters that begin now.
func NewStats() *Stats { return &Stats{start: time.Now()} }

// ReadOnly returns a copy of the config for a Reader, and counters of its own.
func ReadOnly(config *rest.Config) (*rest.Config, *Stats) {
	stats := NewStats()
	return stats.ReadOnly(config), stats
}

// ReadOnly returns a copy of the config for a Reader: every request has a
// deadline, is counted in the Stats, and can only be a GET.
func (s *Stats) ReadOnly(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if config.Timeout == 0 {
		config.Timeout = DefaultTimeout
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &readOnlyTransport{next: next, stats: s}
	})
	return config
}

// readOnlyTransport refuses every request that could change something.
type readOnlyTransport struct {
	next  http.RoundTripper
	stats *Stats
}

// RoundTrip implements http.RoundTripper.
func (t *readOnlyTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return nil, fmt.Errorf("a read command tried to send %s %s", request.Method, request.URL.Path)
	}
	return t.stats.count(request, t.next)
}

// WrappedRoundTripper lets client-go cancel the request (apimachinery,
// util/net, RoundTripperWrapper).
func (t *readOnlyTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

type countingBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

// Read implements io.Reader.
func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}
