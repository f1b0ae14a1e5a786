// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// DefaultSettle is how long a Server waits for another change before it says
// that the cluster is at rest.
const DefaultSettle = 10 * time.Second

// restAgain is the pause before a cluster that stays at rest is said to be so
// once more.
const restAgain = 200 * time.Millisecond

// outage is how long a watch that cannot be connected again, or whose user is
// not recognized, may be an accident: it keeps the cluster from counting as at
// rest.
const outage = time.Minute

// graceMargin is what a kubelet may need beyond a pod's grace period before
// the pod counts as overdue.
const graceMargin = 10 * time.Second

// retries is how often, and after which pauses, a request is sent again that
// the API server did not get or could not answer: about half a minute in all,
// enough for it to be restarted.
var retries = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 9}

// Server is the live cluster as gc.Server. It learns what changes through
// watches, which Watch starts.
type Server struct {
	reader   *Reader
	sender   *Sender
	metadata metadata.Interface // for watches
	options  ServerOptions
	timeout  time.Duration
	changes  changes
	// outage and watchLasts are the constants, but in tests.
	outage, watchLasts time.Duration
	// proving is the context of Watch, nil before it, and unfollowed a type that was listed and is
	// not watched, empty for none.
	proving    context.Context
	unfollowed string

	mu        sync.Mutex
	concerned map[types.UID]bool // nil: every object
	graces    map[types.UID]time.Time
	standing  map[types.UID]graph.Object // what changed, as it is by now
	told      map[watchedPlace]bool      // what is watched, or listed again and again
	inFlight  int
	moved     time.Time  // when something last happened
	watchers  []*watcher // all there are
	blind     int        // watches that are not connected
	blindAt   time.Time  // since when there is one
	seeingAt  time.Time  // since when there is none
}

// NewServer returns a Server that writes to the cluster of the config and reads
// through the reader.
func NewServer(reader *Reader, config *rest.Config, options ServerOptions) (*Server, error) {
	if options.Settle == 0 {
		options.Settle = DefaultSettle
	}
	timeout := cmp.Or(config.Timeout, DefaultTimeout)
	client, err := metadata.NewForConfig(forWrites(config, reader.stats))
	if err != nil {
		return nil, fmt.Errorf("configuring the client: %w", err)
	}
	sender, err := newSender(config, reader.stats, options.FieldManager, false, 0)
	if err != nil {
		return nil, err
	}
	return &Server{
		reader: reader, sender: sender, metadata: client, options: options, timeout: timeout, outage: outage, watchLasts: watchLasts,
		graces: map[types.UID]time.Time{}, standing: map[types.UID]graph.Object{}, told: map[watchedPlace]bool{}, moved: time.Now(),
	}, nil
}

// forWrites returns a copy of the config for a Server: without limits, and with
// the requests counted.
func forWrites(config *rest.Config, stats *Stats) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Timeout = -1, 0 // watches last; every other request gets the timeout by its context
	config.WarningHandlerWithContext = rest.NoWarnings{}
	config.Wrap(stats.counting)
	config.Wrap(bounded)
	return config
}

func (s *Server) client(resource *graph.Resource, namespace string) metadata.ResourceInterface {
	return clientOf(s.metadata, resource, namespace)
}

// Get implements gc.Server.
func (s *Server) Get(ctx context.Context, resource graph.Resource, namespace, name string) (graph.Object, error) {
	var o graph.Object
	err := s.insist(ctx, retries, func(ctx context.Context) (err error) {
		o, err = s.reader.Get(ctx, resource, namespace, name)
		return err
	})
	return o, err
}

// Delete implements gc.Server.
func (s *Server) Delete(ctx context.Context, id graph.Identity, options metav1.DeleteOptions) error {
	s.writes(id.UID)
	step := &gc.Step{Action: gc.ActionDelete, Object: graph.Object{Resource: &id.Resource, Namespace: id.Namespace, Name: id.Name,
		UID: id.UID}, Options: options}
	return s.keep(step, func() error {
		_, err := s.sendWrite(ctx, retries, &remedy.Op{Verb: remedy.Delete, Object: id, Options: &options})
		return err
	})
}

// Patch implements gc.Server, by a JSON patch that tests the UID, the resourceVersion and what it replaces.
func (s *Server) Patch(ctx context.Context, base graph.Object, p gc.Patch) (graph.Object, error) {
	s.writes(base.UID)
	step := &gc.Step{Object: base, Patch: p}
	op := asRead(&base, step.Op())
	item := &metav1.PartialObjectMetadata{}
	err := s.keep(step, func() error {
		data, err := s.sendWrite(ctx, tries(p), &op)
		if err != nil {
			return err
		}
		return json.Unmarshal(data, item)
	})
	if err != nil {
		return graph.Object{}, err
	}
	return graph.NewObject(base.Resource, item), nil
}

// tries says how often a patch is sent. One that finishes an owner rests on a proof that does not last: whoever
// sends it proves that anew before.
func tries(p gc.Patch) wait.Backoff {
	if p.RemoveFinalizer != "" {
		return wait.Backoff{Steps: 1}
	}
	return retries
}

// insist is insist for what keeps the cluster from counting as at rest.
func (s *Server) insist(ctx context.Context, tries wait.Backoff, request func(context.Context) error) error {
	s.sending(1)
	defer s.sending(-1)
	return insist(ctx, tries, s.timeout, request)
}

// insist makes a request, and makes it again while the API server cannot be
// reached or is too busy. A request that was sent is finished also when the
// context ends, so that its result is known; it is only not repeated then.
func insist(ctx context.Context, tries wait.Backoff, timeout time.Duration, request func(context.Context) error) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, tries, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		last = request(ctx)
		if last != nil && answer.Retryable(last) {
			return false, nil
		}
		return true, last
	})
	if last != nil {
		return last
	}
	return err
}

// sendWrite insists on a write. When the answer to it was lost, and it is told after that that its object is
// not there, or is another version, that may be its own doing: then the answer is that there was none.
func (s *Server) sendWrite(ctx context.Context, tries wait.Backoff, op *remedy.Op) ([]byte, error) {
	var lost error
	var data []byte
	err := s.insist(ctx, tries, func(ctx context.Context) (err error) {
		data, err = s.sender.send(ctx, op)
		if answer.Indeterminate(err) && !utilnet.IsConnectionRefused(err) {
			lost = err
		}
		return err
	})
	if lost != nil && (apierrors.IsNotFound(err) || apierrors.IsConflict(err)) {
		return nil, lost
	}
	return data, err
}

// sending notes that requests were begun, or ended when n is negative.
func (s *Server) sending(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight += n
	s.moved = time.Now()
}

// Concern says which objects the run is about. Only changes of these, of objects
// that it writes to, and of those that they own keep the cluster from counting
// as at rest. Without it all do.
func (s *Server) Concern(uids iter.Seq[types.UID]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.concerned = map[types.UID]bool{}
	for uid := range uids {
		s.concerned[uid] = true
	}
}

// concerns reports whether the run is about the object, and remembers that it
// is. The caller holds the lock.
func (s *Server) concerns(o *graph.Object) bool {
	if s.concerned == nil || s.concerned[o.UID] {
		return true
	}
	for _, ref := range o.OwnerReferences {
		if s.concerned[ref.UID] {
			s.concerned[o.UID] = true
			return true
		}
	}
	return false
}

// writes notes that the run is about an object, because it writes to it.
func (s *Server) writes(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.concerned != nil {
		s.concerned[uid] = true
	}
}

// watchedPlace is a resource in a namespace, or everywhere when that is empty.
type watchedPlace struct {
	resource  schema.GroupResource
	namespace string
}

// Tells reports whether the server's events tell of these objects sooner or later.
func (s *Server) Tells(resource schema.GroupResource, namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[watchedPlace{resource, ""}] || s.told[watchedPlace{resource, namespace}]
}

// tells notes whether the events of a place will come.
func (s *Server) tells(place watchedPlace, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[place] = is
}

// flapping is how soon at least after the watches were connected one that breaks
// off continues the outage before. It is the settling time if that is longer.
const flapping = 5 * time.Second

// watched notes that there is another watch.
func (s *Server) watched(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = append(s.watchers, w)
}

// sees notes that a watch was connected, or broke off. After an outage the
// cluster gets the time to settle anew, for what happened meanwhile comes now.
// Watches that keep breaking off do not delay the rest for ever.
func (s *Server) sees(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, flapping := time.Now(), max(flapping, s.options.Settle)
	if !is {
		if s.blind == 0 && now.Sub(s.seeingAt) > flapping {
			s.blindAt = now
		}
		s.blind++
		return
	}
	if s.blind--; s.blind == 0 {
		if now.Sub(s.seeingAt) > flapping || now.Sub(s.blindAt) < s.outage {
			s.moved = now
		}
		s.seeingAt = now
	}
}

// Away implements what a gc.Collector asks for its report: for how long no watch at all
// could be connected by now.
func (s *Server) Away() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watchers) == 0 || s.blind < len(s.watchers) {
		return 0
	}
	return time.Since(s.blindAt)
}

// AwaitWatches returns when all watches are connected, or after the time.
func (s *Server) AwaitWatches(ctx context.Context, atMost time.Duration) {
	_ = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, atMost, true, func(context.Context) (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.blind == 0, nil
	})
}

// Events implements gc.Server: it returns what the watches brought. The cluster
// is at rest when for the settling time nothing moved (see moves), no request was in
// flight and all watches were connected, and no pod is inside its grace period.
func (s *Server) Events(ctx context.Context, wait bool) ([]gc.Event, error) {
	for {
		events, err := s.changes.take()
		if len(events) > 0 {
			s.follow(events)
			return events, nil
		}
		if err != nil || !wait {
			return nil, err
		}
		left := s.restsIn()
		if left <= 0 {
			s.rested()
			return nil, gc.ErrAtRest
		}
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-s.changes.wake():
			timer.Stop()
		case <-timer.C:
		}
	}
}

// follow notes until when pods may still take.
func (s *Server) follow(events []gc.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		if !s.concerns(&e.Object) {
			continue
		}
		if s.moves(&e) {
			s.moved = time.Now()
		}
		if !e.Removed && e.Object.InGrace() {
			s.graces[e.Object.UID] = e.Object.DeletionTimestamp.Add(graceMargin)
		} else {
			delete(s.graces, e.Object.UID)
		}
	}
}

// moves reports whether an event brings a deletion on. Labels, annotations and what
// stands in a status do not: somebody may go on writing them for ever. The caller
// holds the lock.
func (s *Server) moves(e *gc.Event) bool {
	o := &e.Object
	before, known := s.standing[o.UID]
	if e.Removed || e.Lost {
		delete(s.standing, o.UID)
		return true
	}
	s.standing[o.UID] = *o
	return !known || !o.DeletionTimestamp.Equal(before.DeletionTimestamp) || !slices.Equal(o.Finalizers, before.Finalizers) ||
		!equality.Semantic.DeepEqual(o.OwnerReferences, before.OwnerReferences)
}

// rested notes that the cluster was said to be at rest. Who asks again is told
// again, but not in the same moment.
func (s *Server) rested() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = time.Now().Add(min(restAgain, s.options.Settle) - s.options.Settle)
}

// restsIn returns how long it is until the cluster counts as at rest.
func (s *Server) restsIn() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight > 0 || s.blind > 0 && time.Since(s.blindAt) < s.outage {
		return s.options.Settle
	}
	rest := s.moved.Add(s.options.Settle)
	if !s.options.IgnoreGrace {
		for _, end := range s.graces {
			if end.After(rest) {
				rest = end
			}
		}
	}
	return time.Until(rest)
}

// changes collects events from the watches. Its zero value is empty.
type changes struct {
	mu     sync.Mutex
	events []gc.Event
	err    error
	signal chan struct{}
}

func (c *changes) add(events ...gc.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, events...)
	c.notify()
}

// fail records that a watch cannot go on.
func (c *changes) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = errors.Join(c.err, err)
	c.notify()
}

func (c *changes) notify() {
	select {
	case c.signal <- struct{}{}: // never while the channel is nil
	default:
	}
}

// take returns the collected events, and the error once there are none.
func (c *changes) take() ([]gc.Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	events := c.events
	c.events = nil
	if len(events) > 0 {
		return events, nil
	}
	return nil, c.err
}

// wake returns a channel that receives when something was collected.
func (c *changes) wake() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.signal == nil {
		c.signal = make(chan struct{}, 1)
	}
	if len(c.events) > 0 || c.err != nil {
		c.notify()
	}
	return c.signal
}
