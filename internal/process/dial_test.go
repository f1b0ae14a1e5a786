// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/process"
)

// pair returns both ends of a connection.
func pair(t *testing.T, dial func(ctx context.Context, network, address string) (net.Conn, error)) (client net.Conn, server *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if client, err = dial(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), accepted.Close() })
	return client, accepted.(*net.TCPConn)
}

// What is sent is what is read, in whatever pieces, and then comes the end.
func TestDialReads(t *testing.T) {
	client, server := pair(t, process.Dial)
	sent := make([]byte, 5<<20)
	_, _ = rand.Read(sent)
	go func() {
		left := sent
		for piece := 1; len(left) > 0; piece = piece*2 + 1 {
			n, err := server.Write(left[:min(piece, len(left))])
			if err != nil {
				t.Error(err)
				break
			}
			left = left[n:]
		}
		_ = server.Close()
	}()
	got, err := io.ReadAll(client)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes: %v", len(got), len(sent), err)
	}
}

// Reads end as those of any other connection do, with the same error.
func TestDialErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(t *testing.T, client net.Conn, server *net.TCPConn)
		is   error
	}{
		{"the end", func(_ *testing.T, _ net.Conn, server *net.TCPConn) { _ = server.Close() }, io.EOF},
		{"a deadline that has passed", func(_ *testing.T, client net.Conn, _ *net.TCPConn) {
			_ = client.SetReadDeadline(time.Now().Add(-time.Second))
		}, os.ErrDeadlineExceeded},
		{"a deadline that passes", func(_ *testing.T, client net.Conn, _ *net.TCPConn) {
			_ = client.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		}, os.ErrDeadlineExceeded},
		{"closed before", func(_ *testing.T, client net.Conn, _ *net.TCPConn) { _ = client.Close() }, net.ErrClosed},
		{"closed meanwhile", func(_ *testing.T, client net.Conn, _ *net.TCPConn) {
			time.AfterFunc(20*time.Millisecond, func() { _ = client.Close() })
		}, net.ErrClosed},
		{"broken", func(t *testing.T, client net.Conn, server *net.TCPConn) {
			if _, err := client.Write([]byte("not read")); err != nil {
				t.Fatal(err)
			}
			_ = server.SetLinger(0)
			_ = server.Close()
		}, syscall.ECONNRESET},
	} {
		t.Run(test.name, func(t *testing.T) {
			var plain net.Dialer
			said := map[string]string{}
			for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){"plain": plain.DialContext, "ours": process.Dial} {
				client, server := pair(t, dial)
				here, there := client.LocalAddr().String(), client.RemoteAddr().String()
				test.make(t, client, server)
				n, err := client.Read(make([]byte, 10))
				if !errors.Is(err, test.is) {
					t.Errorf("%s: %v", name, err)
				}
				said[name] = strings.NewReplacer(here, "HERE", there, "THERE").Replace(fmt.Sprintf("%d, %v", n, err))
			}
			if said["ours"] != said["plain"] {
				t.Errorf("%q, and of another connection %q", said["ours"], said["plain"])
			}
		})
	}
}

func TestDialFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if c, err := process.Dial(t.Context(), "tcp", l.Addr().String()); c != nil || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v, %v", c, err)
	}
}
