// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// A kubelet stands in for nodes, their kubelets and the scheduler, as the API
// server sees them. It runs no containers.
//
//   - It registers its nodes as Ready and renews their Leases. Stopped, it
//     leaves everything as it is, as a node that lost its power does.
//   - It binds pods that wait for the default scheduler to its nodes in turn. A
//     pod with another schedulerName, or with scheduling gates, stays Pending.
//   - A pod on its nodes is Running and Ready at once. One of a Job succeeds
//     after a second; others run until they are deleted.
//   - A pod that is being deleted stays Running and Ready for its grace period
//     or, if that is less, graceCap. Then it is Succeeded, with its containers
//     terminated, and is deleted with grace period 0 and its uid as a
//     precondition. A finalizer keeps it in that state.
//   - status.observedGeneration follows metadata.generation, so it shows
//     whether the kubelet has seen a deletion.
//
// The grace period starts when the kubelet sees the deletion, and anew when
// the kubelet is started again, as with the real one.
type kubelet struct {
	kubeconfig string
	nodes      []string      // names
	graceCap   time.Duration // 0 means none
	log        string        // file

	mu      sync.Mutex
	cancel  context.CancelFunc // nil when not running
	running sync.WaitGroup
}

// newKubelet returns a kubelet for n nodes, which is not running.
func newKubelet(kubeconfig string, n int, graceCap time.Duration, log string) *kubelet {
	k := &kubelet{kubeconfig: kubeconfig, graceCap: graceCap, log: log}
	for i := range n {
		k.nodes = append(k.nodes, "node-"+strconv.Itoa(i+1))
	}
	return k
}

// start returns when the nodes are registered and the pods are known.
func (k *kubelet) start(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cancel != nil {
		return errors.New("starting the fake kubelet: it is running")
	}
	log, err := os.OpenFile(k.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of the fake kubelet: %w", err)
	}
	client, err := newClient(k.kubeconfig)
	if err != nil {
		return errors.Join(fmt.Errorf("starting the fake kubelet: %w", err), log.Close())
	}
	runCtx, cancel := context.WithCancel(klog.NewContext(context.Background(), newLogger(log)))
	r := newKubeletRun(client, k.nodes, k.graceCap)
	if err := r.prepare(ctx, runCtx); err != nil {
		cancel()
		r.factory.Shutdown()
		return errors.Join(fmt.Errorf("starting the fake kubelet: %w", err), log.Close())
	}
	k.cancel = cancel
	k.running.Go(func() {
		defer log.Close()
		r.run(runCtx)
	})
	return nil
}

// stop ends the kubelet. It tells nobody: the nodes stay registered.
func (k *kubelet) stop() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cancel == nil {
		return errors.New("stopping the fake kubelet: it is not running")
	}
	k.cancel()
	k.running.Wait()
	k.cancel = nil
	return nil
}

func (k *kubelet) kill() error { return k.stop() }

func (k *kubelet) pid() int { return 0 }

// newClient returns a client without a limit of requests per second.
func newClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = kubeletUser
	return kubernetes.NewForConfig(config)
}

// newLogger returns a logger for what the client libraries log, which would
// otherwise go to standard error while the API server is down.
func newLogger(w io.Writer) klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(w)))
}
