// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// roundTrip is how far away the far server is.
const roundTrip = 50 * time.Millisecond

// farAway makes a server look far away: it returns the path of a kubeconfig by which every
// byte takes half of a round trip in each direction, and what ends that. Connections
// themselves are made at once.
func farAway(ctx context.Context, kubeconfig, dir string) (path string, stop func(), err error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return "", nil, err
	}
	var server string
	var listener net.Listener
	for _, cluster := range config.Clusters {
		u, err := url.Parse(cluster.Server)
		if err != nil {
			return "", nil, err
		}
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
			return "", nil, err
		}
		server, u.Host = u.Host, listener.Addr().String()
		cluster.Server = u.String()
	}
	if listener == nil {
		return "", nil, errors.New("the kubeconfig names no cluster")
	}
	go accept(ctx, listener, server)
	path = filepath.Join(dir, "far")
	data, err := clientcmd.Write(*config)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	return path, func() { _ = listener.Close() }, err
}

// accept serves connections until the listener is closed.
func accept(ctx context.Context, listener net.Listener, server string) {
	for {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		far, err := new(net.Dialer).DialContext(ctx, "tcp", server)
		if err != nil {
			_ = near.Close()
			continue
		}
		go late(near, far)
		go late(far, near)
	}
}

// chunk is what was read, and when it is to arrive.
type chunk struct {
	data []byte
	due  time.Time
}

// late carries bytes from one connection to another, each as much later.
func late(from, to net.Conn) {
	const inFlight = 1024 // chunks: no limit that matters
	chunks := make(chan chunk, inFlight)
	go func() {
		defer close(chunks)
		for {
			data := make([]byte, 64<<10)
			n, err := from.Read(data)
			if n > 0 {
				chunks <- chunk{data[:n], time.Now().Add(roundTrip / 2)}
			}
			if err != nil {
				return
			}
		}
	}()
	for c := range chunks {
		time.Sleep(time.Until(c.due))
		if _, err := to.Write(c.data); err != nil {
			break
		}
	}
	_ = to.Close()
	_ = from.Close()
}
