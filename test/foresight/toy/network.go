// SPDX-License-Identifier: Apache-2.0

package toy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A Network is what an API server reaches pods through: the addresses that pods on
// fake nodes have lead nowhere. It is an HTTP proxy on a socket, which the API server
// is told of by [Network.APIServerArgs]. Its methods may be called concurrently.
type Network struct {
	dir    string
	server *http.Server

	mu    sync.Mutex
	pods  map[string]string   // address of a port of a pod: where it is served
	conns map[string][]func() // to close what goes to a pod
}

// NewNetwork makes a network without pods. The caller must call Close.
func NewNetwork() (*Network, error) {
	dir, err := os.MkdirTemp("", "toy-network-")
	if err != nil {
		return nil, fmt.Errorf("making a network: %w", err)
	}
	n := &Network{dir: dir, pods: map[string]string{}, conns: map[string][]func(){}}
	listener, err := net.Listen("unix", n.socket())
	if err == nil {
		err = os.WriteFile(n.config(), fmt.Appendf(nil, egress, n.socket()), 0o600)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("making a network: %w", err)
	}
	n.server = &http.Server{Handler: n, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = n.server.Serve(listener) }() // ends with Close
	return n, nil
}

// egress is the configuration of an API server that calls services through a proxy.
const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %q}}
`

func (n *Network) socket() string { return filepath.Join(n.dir, "socket") }
func (n *Network) config() string { return filepath.Join(n.dir, "egress.yaml") }

// APIServerArgs are the flags with which an API server uses the network, and chooses
// among the pods of a service as it does where no kube-proxy helps it.
func (n *Network) APIServerArgs() []string {
	return []string{"--egress-selector-config-file=" + n.config(), "--enable-aggregator-routing=true"}
}

// Close ends it.
func (n *Network) Close() error {
	err := n.server.Close()
	n.mu.Lock()
	for pod := range n.pods {
		n.drop(pod)
	}
	n.mu.Unlock()
	if removed := os.RemoveAll(n.dir); err == nil {
		err = removed
	}
	return err
}

// connect says where the port of a pod is served, and returns what ends that, with
// every connection there is.
func (n *Network) connect(pod, address string) func() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods[pod] = address
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.drop(pod)
	}
}

// drop forgets a pod; the mutex is held.
func (n *Network) drop(pod string) {
	for _, stop := range n.conns[pod] {
		stop()
	}
	delete(n.pods, pod)
	delete(n.conns, pod)
}

// ServeHTTP implements http.Handler: CONNECT to the port of a pod.
func (n *Network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	address := n.pods[r.Host]
	n.mu.Unlock()
	if r.Method != http.MethodConnect || address == "" {
		http.Error(w, "no route to host", http.StatusBadGateway)
		return
	}
	there, err := net.Dial("tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	here, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_, err = io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n")
	}
	if err != nil {
		_ = there.Close()
		return
	}
	stop := sync.OnceFunc(func() { _, _ = here.Close(), there.Close() })
	n.mu.Lock()
	n.conns[r.Host] = append(n.conns[r.Host], stop)
	if n.pods[r.Host] == "" { // it went meanwhile
		n.drop(r.Host)
	}
	n.mu.Unlock()
	go func() { defer stop(); _, _ = io.Copy(there, here) }()
	defer stop()
	_, _ = io.Copy(here, there)
}
