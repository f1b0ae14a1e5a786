// SPDX-License-Identifier: Apache-2.0

// Package deletiontest asserts how objects are deleted, in the tests of operators. A test
// environment such as envtest has an API server and no controllers: owner references do nothing
// there, namespaces are never emptied, and a foreground deletion does not end. A Kit does there what
// Kubernetes' own controllers do about deletions, and says in a failure what explain-stuck says.
//
//	kit := deletiontest.Start(t, cfg)
//	kit.Delete(database, metav1.DeletePropagationForeground)
//	kit.LeavesNothing(database)
//
// No other controllers run: no Deployment gets pods. An object is meant by its UID, so it must have
// been created or read before it is handed over. Package fakeclient serves controller-runtime's fake client to a Kit.
package deletiontest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

const (
	// quiet is how long nothing changes in a cluster at rest, and patient how long while an object waits for a
	// finalizer that the controller under test has to remove. The API server looks for what is left of a definition
	// every five seconds (apiextensions-apiserver/pkg/controller/finalizer, deleteInstances).
	quiet       = 200 * time.Millisecond
	patient     = 2 * time.Second
	definitions = 6 * time.Second
	// limit is how long an assertion waits for the cluster to be at rest.
	limit = time.Minute
	// farewell is how long a Kit that stops goes on with reading: client-go logs discovery that is cut short.
	farewell = 5 * time.Second
)

// Kit collects garbage, empties namespaces, ends pods, and releases claims and volumes while a test runs.
type Kit struct {
	t      testing.TB
	config *rest.Config
	sender *cluster.Sender
	kick   chan struct{}

	mu      sync.Mutex
	news    chan struct{} // closed, and another made, when a round ends
	history history
	changed time.Time // when something last changed
	done    rounds
	last    *graph.Graph
	failure error
}

// rounds says how many were begun, which of them was the last that left nothing to do.
type rounds struct{ begun, idle int }

// Start starts the controllers on the API server of the config, and stops them with the test. The config may be that of
// envtest, kind or any other API server on which only tests run: all of it is collected.
func Start(t testing.TB, config *rest.Config) *Kit {
	t.Helper()
	connections := &connections{open: map[net.Conn]bool{}}
	config, err := connections.configure(config)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := cluster.NewSender(config, cluster.NewStats(), manager, false)
	if err != nil {
		t.Fatal(err)
	}
	k := &Kit{
		t: t, config: config, sender: sender, kick: make(chan struct{}, 1), news: make(chan struct{}), history: history{}, changed: time.Now(),
	}
	ctx, cancel := context.WithCancel(context.Background())
	reading, abort := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.run(ctx, reading)
	}()
	t.Cleanup(func() {
		cancel()
		timer := time.AfterFunc(farewell, abort)
		<-ended
		timer.Stop()
		abort()
		connections.close()
	})
	return k
}

// connections are those of a Kit, which end with it.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]bool // nil when they are closed
}

// configure returns a config for the same user with a transport of its own, which all clients of a Kit share.
func (c *connections) configure(config *rest.Config) (*rest.Config, error) {
	config = rest.CopyConfig(config)
	if config.Transport == nil {
		config.Dial = c.dialer(config.Dial)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	own := rest.AnonymousClientConfig(config)
	own.TLSClientConfig, own.Dial, own.Proxy, own.WrapTransport = rest.TLSClientConfig{}, nil, nil, nil
	own.Transport, own.QPS = client.Transport, -1
	return own, nil
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

func (c *connections) dialer(with dial) dial {
	if with == nil {
		with = (&net.Dialer{Timeout: 30 * time.Second}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := with(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open == nil { // http.Transport goes on with what nobody waits for any more
			_ = conn.Close()
			return nil, net.ErrClosed
		}
		c.open[conn] = true
		return conn, nil
	}
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.Close()
	}
	c.open = nil
}

// Settle returns when nothing is left to do: every dependent, namespace, pod, claim and volume has what its deletion needs
// from Kubernetes, and nothing has changed for a moment, or for two seconds while an object waits for a
// finalizer that the controller under test may still remove. It fails the test if the cluster does not come to rest.
func (k *Kit) Settle() {
	k.t.Helper()
	if err := k.settle(nil); err != nil {
		k.t.Fatalf("the cluster does not come to rest: %v\n%s", err, k.restless())
	}
}

var errRestless = errors.New("something changes again and again")

// settle waits until the cluster is at rest as far as it concerns the objects, or, without any, altogether; or until something
// has happened by which that is not to be waited for.
func (k *Kit) settle(happened func() bool, objects ...metav1.Object) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	k.mu.Lock()
	first := k.done.begun + 1
	k.mu.Unlock()
	for {
		k.mu.Lock()
		news, err, enough := k.news, k.failure, happened != nil && happened()
		left, proved := time.Until(k.changed.Add(k.history.patience(objects))), k.done.idle >= first
		k.mu.Unlock()
		switch {
		case err != nil, proved && left <= 0:
			return err
		case enough:
			return errRestless
		case !proved:
			k.wake()
		}
		select {
		case <-deadline.C:
			return errRestless
		case <-news:
		case <-time.After(min(max(left, 10*time.Millisecond), quiet)):
		}
	}
}

// wake has a round begin if none is under way.
func (k *Kit) wake() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// note takes what changed, and reports whether it is something that a controller may have to act on.
func (k *Kit) note(objects []event) (relevant bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range objects {
		if k.history.take(&objects[i]) {
			relevant = true
		}
	}
	if relevant {
		k.changed = time.Now()
	}
	return relevant
}

// Delete deletes the object as a user would, with the policy.
func (k *Kit) Delete(object metav1.Object, policy metav1.DeletionPropagation) {
	k.t.Helper()
	id := k.identify(object)
	op := remedy.DeleteOf(id, metav1.DeleteOptions{PropagationPolicy: &policy})
	if err := k.sender.Do(k.t.Context(), &op); err != nil {
		k.t.Fatalf("deleting %s: %v", id, err)
	}
}

// identify finds an object by its UID.
func (k *Kit) identify(object metav1.Object) graph.Identity {
	k.t.Helper()
	for range 2 {
		k.mu.Lock()
		life, known := k.history[object.GetUID()]
		k.mu.Unlock()
		if known {
			return life.object.Identity()
		}
		if err := k.settle(nil); err != nil && !errors.Is(err, errRestless) {
			k.t.Fatal(err)
		}
	}
	k.t.Fatalf("%s has the UID %q, which no object has: create or read it first", object.GetName(), object.GetUID())
	return graph.Identity{}
}
