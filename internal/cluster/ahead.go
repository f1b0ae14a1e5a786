// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// aheadTransport asks for the groups together with the core group: the discovery client
// asks for /apis when /api is answered (client-go, discovery/discovery_client.go,
// GroupsAndMaybeResources), and from far away that is a way there and back for nothing.
type aheadTransport struct {
	next  http.RoundTripper
	ahead atomic.Pointer[chan ended]
}

// ended is how a request ended. The response is in memory.
type ended struct {
	response *http.Response
	err      error
}

// RoundTrip implements http.RoundTripper. What was asked for ahead is used once, whatever
// came of it: whether to try again the client decides.
func (t *aheadTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	switch kindOfTypes(request.URL.Path) {
	case "APIVersions":
		t.ask(request)
	case "APIGroupList":
		early := t.ahead.Swap(nil)
		if early == nil {
			break
		}
		select {
		case e := <-*early:
			if e.err != nil {
				return nil, e.err
			}
			return e.response, nil
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	}
	return t.next.RoundTrip(request)
}

// ask sends the request for the groups that follows one for the core group. It may take as
// long as that, and is not over with it.
func (t *aheadTransport) ask(core *http.Request) {
	deadline, ok := core.Context().Deadline()
	if !ok {
		deadline = time.Now().Add(DefaultTimeout)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(core.Context()), deadline)
	groups := core.Clone(ctx)
	groups.URL.Path += "s"
	early := make(chan ended, 1)
	t.ahead.Store(&early)
	go func() {
		defer cancel()
		response, err := t.next.RoundTrip(groups)
		if err == nil {
			_, err = inMemory(response)
		}
		early <- ended{response, err}
	}()
}

// inMemory reads the body of a response to its end, and puts it back for others.
func inMemory(response *http.Response) ([]byte, error) {
	data, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err == nil {
		response.Body = io.NopCloser(bytes.NewReader(data))
	}
	return data, err
}

// WrappedRoundTripper lets client-go cancel the request (apimachinery,
// util/net, RoundTripperWrapper).
func (t *aheadTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
