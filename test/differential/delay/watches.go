// SPDX-License-Identifier: Apache-2.0

package delay

import (
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/transport"
)

// Watches makes what watches tell come late, by up to the longest. Each watch has a longest delay of its own, and its
// events keep their order. Everything else comes as it does.
func Watches(longest time.Duration) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if watch := r.URL.Query().Get("watch"); err == nil && (watch == "1" || watch == "true") {
				answer.Body = newLateBody(answer.Body, rand.N(longest)) //nolint:gosec // G404: no secret
			}
			return answer, err
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// lateBody hands on what it reads after a while.
type lateBody struct {
	chunks <-chan chunk
	rest   []byte
	closed chan struct{}
	close  func() error
}

// chunk is something that was read, and when it is due.
type chunk struct {
	at   time.Time
	data []byte
	err  error
}

// newLateBody returns the body, of which each part comes late by up to the longest.
func newLateBody(body io.ReadCloser, longest time.Duration) io.ReadCloser {
	const onTheirWay = 1 << 12
	chunks, closed := make(chan chunk, onTheirWay), make(chan struct{})
	go func() {
		defer close(chunks)
		for last := time.Now(); ; {
			data := make([]byte, 1<<12)
			n, err := body.Read(data)
			if at := time.Now().Add(rand.N(longest + 1)); at.After(last) { //nolint:gosec // G404: no secret
				last = at
			}
			select {
			case chunks <- chunk{last, data[:n], err}:
			case <-closed:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return &lateBody{chunks: chunks, closed: closed, close: sync.OnceValue(func() error {
		close(closed)
		return body.Close()
	})}
}

// Close implements io.Closer.
func (b *lateBody) Close() error { return b.close() }

// Read implements io.Reader. Only one goroutine may call it.
func (b *lateBody) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		c, ok := <-b.chunks
		if !ok {
			return 0, io.EOF
		}
		select {
		case <-time.After(time.Until(c.at)):
		case <-b.closed:
			return 0, io.ErrClosedPipe
		}
		if b.rest = c.data; c.err != nil && len(c.data) == 0 {
			return 0, c.err
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}
