// SPDX-License-Identifier: Apache-2.0

// Package testnet serves HTTP in memory, for tests in bubbles of testing/synctest: time
// stands still in these while a socket is read, and passes at once while a pipe is.
package testnet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
)

// domain ends the addresses of all servers.
const domain = ".testnet:80"

var (
	mu        sync.Mutex
	count     int
	listeners = map[string]*listener{}
)

// NewServer starts a server that is reached through Dial alone. The caller must close it.
func NewServer(handler http.Handler) *httptest.Server {
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	mu.Lock()
	count++
	l.address = address(fmt.Sprint(count, domain))
	listeners[string(l.address)] = l
	mu.Unlock()
	s := httptest.NewUnstartedServer(handler)
	_ = s.Listener.Close() // that of a socket, which nobody knows
	s.Listener = l
	s.Start()
	return s
}

// Dial connects to a server of this package, and otherwise as net does.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	mu.Lock()
	l := listeners[address]
	mu.Unlock()
	switch {
	case l == nil && strings.HasSuffix(address, domain):
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case l == nil:
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
	case <-ctx.Done():
	}
	_, _ = client.Close(), server.Close() // which cannot fail
	return nil, &net.OpError{Op: "dial", Net: network, Err: net.ErrClosed}
}

// Bubble returns a test that runs in a bubble of testing/synctest.
func Bubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

// listener hands out pipes.
type listener struct {
	address address
	conns   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		mu.Lock()
		defer mu.Unlock()
		delete(listeners, string(l.address))
	})
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.address }

type address string

// Network implements net.Addr.
func (address) Network() string { return "testnet" }

// String implements net.Addr.
func (a address) String() string { return string(a) }
