// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/testnet"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// await returns the first events that a server brings.
func await(t *testing.T, server *Server, n int) []string {
	t.Helper()
	var events []string
	for ctx := within(t); len(events) < n; {
		more, err := server.Events(ctx, true)
		if err != nil {
			t.Fatalf("after %s: %v", events, err)
		}
		events = append(events, formatEvents(more)...)
	}
	return events
}

// watchOf starts to watch configmaps, after they were listed.
func watchOf(s *apiServer, scope Scope) *Server {
	server := s.writer(rest.Config{}, ServerOptions{})
	snapshot := s.snapshot(server.reader, scope)
	server.Watch(s.t.Context(), snapshot, server.reader.Resources()[:1])
	return server
}

const configmaps = "/api/v1/configmaps"

// What watches bring, and how they go on after whatever ends them.
func TestWatch(t *testing.T) {
	for _, test := range []struct {
		name string
		// before is what was listed, now what there is when it is listed again.
		before, now string
		streams     []string
		make        func(s *apiServer)
		events      string
		// watches are the versions at which watches started, lists how often it
		// was listed.
		watches string
		lists   int
	}{
		{
			name:   "events, in order",
			before: "configmaps shop/a",
			streams: []string{`MODIFIED configmaps shop/a rv=101
				ADDED configmaps shop/b rv=102 uid=b1
				DELETED configmaps shop/b rv=103 uid=b1
				ADDED configmaps shop/b rv=104 uid=b2
				hold`},
			events: `ConfigMap/shop/a@101
				ConfigMap/shop/b@102
				removed ConfigMap/shop/b@103
				ConfigMap/shop/b@104`,
			watches: "100", lists: 1,
		},
		{
			name: "broken off: resumed behind the last event",
			streams: []string{
				"ADDED configmaps shop/a rv=101",
				"ADDED configmaps shop/b rv=102\nhold",
			},
			events:  "ConfigMap/shop/a@101\nConfigMap/shop/b@102",
			watches: "100 101", lists: 1,
		},
		{
			name: "and behind the last bookmark",
			streams: []string{
				"ADDED configmaps shop/a rv=101\nBOOKMARK 150",
				"ADDED configmaps shop/b rv=160\nhold",
			},
			events:  "ConfigMap/shop/a@101\nConfigMap/shop/b@160",
			watches: "100 150", lists: 1,
		},
		{
			name: "an error on the way: resumed",
			streams: []string{
				"ADDED configmaps shop/a rv=101\nERROR 500",
				"ADDED configmaps shop/b rv=102\nhold",
			},
			events:  "ConfigMap/shop/a@101\nConfigMap/shop/b@102",
			watches: "100 101", lists: 1,
		},
		{
			name: "the connection is cut: resumed",
			make: func(s *apiServer) { s.on("WATCH", configmaps, 1, cutOff) },
			streams: []string{
				"ADDED configmaps shop/a rv=101\nhold",
			},
			events:  "ConfigMap/shop/a@101",
			watches: "100 100", lists: 1,
		},
		{
			name:   "forgotten: what is new, changed and gone comes from a list",
			before: "configmaps shop/same\nconfigmaps shop/changed\nconfigmaps shop/gone\nconfigmaps shop/again uid=1",
			now:    "configmaps shop/same\nconfigmaps shop/changed rv=99\nconfigmaps shop/new rv=98\nconfigmaps shop/again uid=2 rv=97",
			streams: []string{
				"ERROR 410",
				"ADDED configmaps shop/b rv=101\nhold",
			},
			events: `ConfigMap/shop/again@97
				ConfigMap/shop/b@101
				ConfigMap/shop/changed@99
				ConfigMap/shop/new@98
				removed ConfigMap/shop/again@1
				removed ConfigMap/shop/gone@1`,
			watches: "100 100", lists: 2,
		},
		{
			name:    "forgotten, and said so at once",
			before:  "configmaps shop/gone",
			make:    func(s *apiServer) { s.on("WATCH", configmaps, 1, status(http.StatusGone, metav1.StatusReasonExpired)) },
			streams: []string{"ADDED configmaps shop/b rv=101\nhold"},
			events:  "ConfigMap/shop/b@101\nremoved ConfigMap/shop/gone@1",
			watches: "100 100", lists: 2,
		},
		{
			name:   "forgotten after events: the list is compared with those",
			before: "configmaps shop/a",
			now:    "configmaps shop/c rv=103",
			streams: []string{
				"ADDED configmaps shop/b rv=101\nADDED configmaps shop/c rv=103\nDELETED configmaps shop/a rv=104\nERROR 410",
				"hold",
			},
			events: `ConfigMap/shop/b@101
				ConfigMap/shop/c@103
				removed ConfigMap/shop/a@104
				removed ConfigMap/shop/b@101`,
			watches: "100", lists: 2,
		},
		{
			name:   "forgotten, and the list fails at first",
			before: "configmaps shop/gone",
			make: func(s *apiServer) {
				s.on("GET", configmaps, 1, status(http.StatusInternalServerError, metav1.StatusReasonInternalError))
			},
			streams: []string{"ERROR 410", "ERROR 410", "hold"},
			events:  "removed ConfigMap/shop/gone@1",
			watches: "100 100", lists: 3,
		},
		{
			name:   "the type is gone: what became of its objects is not known",
			before: "configmaps shop/a\nconfigmaps shop/b",
			make: func(s *apiServer) {
				s.on("WATCH", configmaps, always, unknownPath)
				s.unserve("configmaps")
			},
			events: "lost ConfigMap/shop/a@1\nlost ConfigMap/shop/b@1", watches: "100", lists: 1,
		},
		{
			name:    "the path is not found, but the type is served: watched again",
			before:  "configmaps shop/a",
			make:    func(s *apiServer) { s.on("WATCH", configmaps, 1, unknownPath) },
			streams: []string{"ADDED configmaps shop/b rv=101\nhold"},
			events:  "ConfigMap/shop/b@101",
			watches: "100 100", lists: 1,
		},
		{
			name:   "the path is not found, and the definition of the type is there: watched again",
			before: "configmaps shop/a",
			now:    "customresourcedefinitions configmaps",
			make: func(s *apiServer) {
				s.on("WATCH", configmaps, 1, unknownPath)
				s.on("GET", "/api/v1", always, unknownPath)
			},
			streams: []string{"ADDED configmaps shop/b rv=101\nhold"},
			events:  "ConfigMap/shop/b@101",
			watches: "100 100", lists: 1,
		},
		{
			name:   "the type is gone when it is listed again",
			before: "configmaps shop/a",
			make: func(s *apiServer) {
				s.on("GET", configmaps, always, unknownPath)
				s.unserve("configmaps")
			},
			streams: []string{"ERROR 410"},
			events:  "lost ConfigMap/shop/a@1", watches: "100", lists: 2,
		},
		{
			name:   "watching is forbidden: listed again and again",
			before: "configmaps shop/a",
			now:    "configmaps shop/a rv=99",
			make:   func(s *apiServer) { s.on("WATCH", configmaps, 2, forbidden()) },
			streams: []string{
				"ADDED configmaps shop/b rv=101\nhold",
			},
			events:  "ConfigMap/shop/a@99\nConfigMap/shop/b@101",
			watches: "100 100 100", lists: 3,
		},
		{
			name: "watching is not possible: the same",
			now:  "configmaps shop/a rv=99",
			make: func(s *apiServer) {
				s.on("WATCH", configmaps, always, status(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed))
			},
			events: "ConfigMap/shop/a@99",
		},
		{
			name: "something that is no object: watched again",
			make: func(s *apiServer) {
				s.on("WATCH", configmaps, 1, func(w http.ResponseWriter, _ *http.Request) {
					writeJSON(w, http.StatusOK, map[string]any{"type": "ADDED", "object": map[string]any{"kind": "Status", "apiVersion": "v1"}})
				})
			},
			streams: []string{"ADDED configmaps shop/b rv=101\nhold"},
			events:  "ConfigMap/shop/b@101",
			watches: "100 100", lists: 1,
		},
	} {
		t.Run(test.name, testnet.Bubble(func(t *testing.T) {
			s := newAPIServer(t)
			s.add(test.before)
			server := s.writer(rest.Config{}, ServerOptions{})
			snapshot := s.snapshot(server.reader, Scope{})
			s.mu.Lock()
			s.objects, s.streams[configmaps] = nil, slices.Clone(test.streams)
			s.mu.Unlock()
			s.add(test.now)
			if test.make != nil {
				test.make(s)
			}
			server.Watch(t.Context(), snapshot, server.reader.Resources()[:1])
			want := nonEmpty(test.events)
			got := await(t, server, len(want))
			if !strings.Contains(test.name, "in order") {
				slices.Sort(got)
			}
			same(t, "events", test.events, got)
			var versions []string
			for _, r := range s.asked("GET", configmaps) {
				if _, query, watch := strings.Cut(r, "watch=true"); watch || query != "" {
					versions = append(versions, strings.TrimPrefix(strings.Split(r, "resourceVersion=")[1], "&"))
				}
			}
			for i, v := range versions {
				versions[i], _, _ = strings.Cut(v, "&")
			}
			lists := len(s.asked("GET", configmaps)) - len(versions)
			if test.watches != "" && (!strings.HasPrefix(strings.Join(versions, " "), test.watches) || lists != test.lists) {
				t.Errorf("watched from %s and listed %d times; want %s and %d", versions, lists, test.watches, test.lists)
			}
		}))
	}
}

// Bookmarks are asked for; the type and the namespace are those of the list.
func TestWatchRequests(t *testing.T) {
	for _, test := range []struct {
		name  string
		scope Scope
		make  func(s *apiServer)
		want  string
	}{
		{"of the whole cluster", Scope{}, nil, configmaps},
		{"of a namespace", Scope{Namespace: "shop"}, nil, "/api/v1/namespaces/shop/configmaps"},
		{"of several", Scope{}, func(s *apiServer) { s.on("GET", configmaps, always, forbidden()) },
			"/api/v1/namespaces/other/configmaps\n/api/v1/namespaces/shop/configmaps"},
	} {
		s := newAPIServer(t)
		s.add("namespaces shop\nnamespaces other\nconfigmaps shop/a\nconfigmaps other/b")
		if test.make != nil {
			test.make(s)
		}
		for i, path := range nonEmpty(test.want) {
			s.streams[path] = []string{fmt.Sprintf("ADDED configmaps shop/c%d\nhold", i)}
		}
		server := watchOf(s, test.scope)
		await(t, server, len(nonEmpty(test.want)))
		var paths []string
		for _, r := range s.asked("GET", "/") {
			path, query, _ := strings.Cut(r, "?")
			if strings.Contains(query, "watch=true") {
				paths = append(paths, path)
				values, err := url.ParseQuery(query)
				seconds, _ := strconv.Atoi(values.Get("timeoutSeconds"))
				values.Del("timeoutSeconds")
				if err != nil || values.Encode() != "allowWatchBookmarks=true&resourceVersion=100&watch=true" || seconds < 300 || seconds > 600 {
					t.Errorf("%s: watched with %s", test.name, query)
				}
			}
		}
		slices.Sort(paths)
		same(t, test.name, test.want, paths)
	}
}

// What was not listed is not watched.
func TestWatchOfNothing(t *testing.T) {
	s := newAPIServer(t)
	s.on("GET", configmaps, always, forbidden())
	server := watchOf(s, Scope{})
	server.options.Settle = time.Millisecond
	if events, err := server.Events(within(t), true); !errors.Is(err, gc.ErrAtRest) || len(events) > 0 {
		t.Errorf("got %v, %v", events, err)
	}
	if n := server.reader.stats.watches.Load(); n != 0 {
		t.Errorf("%d watches", n)
	}
}

// When neither watching nor listing is possible, nothing can be learnt any more.
func TestWatchIsRefused(t *testing.T) {
	testnet.Bubble(func(t *testing.T) {
		for name, check := range map[string]func(error) bool{"forbidden": apierrors.IsForbidden, "unauthorized": apierrors.IsUnauthorized} {
			s := newAPIServer(t)
			s.add("configmaps shop/a")
			server := s.writer(rest.Config{}, ServerOptions{})
			server.outage = time.Second
			snapshot := s.snapshot(server.reader, Scope{})
			answer := forbidden()
			if name == "unauthorized" {
				answer = status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
			}
			s.on("WATCH", configmaps, always, answer)
			s.on("GET", configmaps, always, answer)
			server.changes.add(gc.Event{Object: found(t, snapshot, "a")})
			server.Watch(t.Context(), snapshot, server.reader.Resources()[:1])
			same(t, name+": what came before", "ConfigMap/shop/a@1", await(t, server, 1))
			for range 2 {
				if _, err := server.Events(within(t), true); !check(err) || !strings.HasPrefix(err.Error(), "watching configmaps: ") {
					t.Errorf("%s: got error %v", name, err)
				}
			}
		}
	})(t)
}

// A list without a version cannot be watched from.
func TestListWithoutVersion(t *testing.T) {
	testnet.Bubble(func(t *testing.T) {
		s := newAPIServer(t)
		s.streams[configmaps] = []string{"ERROR 410", "ADDED configmaps shop/a rv=101\nhold"}
		server := s.writer(rest.Config{}, ServerOptions{})
		snapshot := s.snapshot(server.reader, Scope{})
		s.on("GET", configmaps, 1, func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, http.StatusOK, metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}})
		})
		server.Watch(t.Context(), snapshot, server.reader.Resources()[:1])
		same(t, "events", "ConfigMap/shop/a@101", await(t, server, 1))
	})(t)
}

// Events come in the order in which they were collected, each once.
func TestEvents(t *testing.T) {
	s := newAPIServer(t)
	s.add("configmaps shop/a\nconfigmaps shop/b\nconfigmaps shop/c")
	server := s.writer(rest.Config{}, ServerOptions{})
	snapshot := s.snapshot(server.reader, Scope{})
	event := func(uid string) gc.Event { return gc.Event{Object: found(t, snapshot, uid)} }
	take := func(wait bool) string {
		events, err := server.Events(within(t), wait)
		if err != nil {
			t.Error(err)
		}
		return strings.Join(formatEvents(events), " ")
	}
	if got := take(false); got != "" {
		t.Errorf("nothing happened, and %s came", got)
	}
	server.changes.add(event("a"), event("b"))
	server.changes.add(event("a"))
	if got := take(false); got != "ConfigMap/shop/a@1 ConfigMap/shop/b@1 ConfigMap/shop/a@1" {
		t.Errorf("got %s", got)
	}
	if got := take(false); got != "" {
		t.Errorf("once more: %s", got)
	}
	server.changes.add(event("b"))
	if got := take(true); got != "ConfigMap/shop/b@1" {
		t.Errorf("already there: %s", got)
	}
	waiting := make(chan string)
	go func() { waiting <- take(true) }()
	server.changes.add(event("c"))
	if got := <-waiting; got != "ConfigMap/shop/c@1" {
		t.Errorf("waited for %s", got)
	}
}

// An error comes after the events before it, and stays.
func TestEventsFail(t *testing.T) {
	s := newAPIServer(t)
	server := s.writer(rest.Config{}, ServerOptions{})
	first, second := errors.New("one"), errors.New("two")
	failed := make(chan error)
	go func() {
		_, err := server.Events(within(t), true)
		failed <- err
	}()
	server.changes.fail(first)
	if err := <-failed; !errors.Is(err, first) {
		t.Errorf("got %v", err)
	}
	server.changes.fail(second)
	for _, wait := range []bool{false, true} {
		if _, err := server.Events(within(t), wait); !errors.Is(err, first) || !errors.Is(err, second) {
			t.Errorf("got %v", err)
		}
	}
}

func TestEventsAreInterrupted(t *testing.T) {
	s := newAPIServer(t)
	server := s.writer(rest.Config{}, ServerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := server.Events(ctx, true); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The cluster is at rest when nothing came for the settling time, and stays so.
func TestAtRest(t *testing.T) {
	testnet.Bubble(func(t *testing.T) {
		s := newAPIServer(t)
		server := s.writer(rest.Config{}, ServerOptions{Settle: time.Millisecond})
		for range 3 {
			if events, err := server.Events(within(t), true); !errors.Is(err, gc.ErrAtRest) || len(events) > 0 {
				t.Errorf("got %v, %v", events, err)
			}
			if events, err := server.Events(within(t), false); err != nil || len(events) > 0 {
				t.Errorf("without waiting: got %v, %v", events, err)
			}
		}
		if server, err := NewServer(server.reader, &rest.Config{Dial: testnet.Dial, Host: s.URL}, ServerOptions{}); err != nil || server.options.Settle != DefaultSettle {
			t.Errorf("by default it settles for %s, %v", server.options.Settle, err)
		}
	})(t)
}

// The end of the settling time moves with everything that happens.
func TestRestMoves(t *testing.T) {
	testnet.Bubble(func(t *testing.T) {
		s := newAPIServer(t)
		s.add("pods shop/p")
		now := time.Now()
		later := now.Add(time.Hour).UTC().Format(time.RFC3339)
		for _, test := range []struct {
			name        string
			ignoreGrace bool
			events      string
			// atLeast and atMost bound how long it is until all is at rest.
			atLeast, atMost time.Duration
		}{
			{"nothing happened", false, "", -24 * time.Hour, -time.Hour},
			{"it was said to be at rest, and may be so again soon", false, "rested", -time.Minute, restAgain},
			{"an event", false, "MODIFIED pods shop/p", 0, time.Minute},
			{"a pod is being deleted, with an hour's grace", false, "MODIFIED pods shop/p deleting=" + later + " grace=3600", time.Hour, 2 * time.Hour},
			{"the same, and nobody waits for it", true, "MODIFIED pods shop/p deleting=" + later + " grace=3600", 0, time.Minute},
			{"it is gone", false, "MODIFIED pods shop/p deleting=" + later + " grace=3600\nDELETED pods shop/p deleting=" + later + " grace=3600", 0, time.Minute},
			{"its grace period is taken from it", false, "MODIFIED pods shop/p deleting=" + later + " grace=3600\nMODIFIED pods shop/p deleting=" + later + " grace=0", 0, time.Minute},
			{"another pod's goes on", false, "MODIFIED pods shop/p deleting=" + later + " grace=3600\nMODIFIED pods shop/q deleting=" + later + " grace=0", time.Hour, 2 * time.Hour},
			{"something that has no grace period", false, "MODIFIED configmaps shop/c deleting=" + later, 0, time.Minute},
		} {
			server := s.writer(rest.Config{}, ServerOptions{Settle: time.Minute, IgnoreGrace: test.ignoreGrace})
			server.moved = now.Add(-2 * time.Hour)
			for _, line := range nonEmpty(test.events) {
				kind, text, _ := strings.Cut(line, " ")
				if kind == "rested" {
					server.rested()
					continue
				}
				o := s.parse(text)
				resource := &graph.Resource{GroupVersionResource: o.served.WithResource(o.served.resource), Kind: o.served.kind, Namespaced: true}
				server.changes.add(gc.Event{Object: graph.NewObject(resource, &o.PartialObjectMetadata), Removed: kind == "DELETED"})
				if _, err := server.Events(within(t), false); err != nil {
					t.Error(err)
				}
			}
			if got := server.restsIn(); got < test.atLeast || got > test.atMost {
				t.Errorf("%s: at rest in %s, want between %s and %s", test.name, got, test.atLeast, test.atMost)
			}
		}
	})(t)
}

// The answer to a write is something that happens: its event is still to come.
func TestWritesKeepFromResting(t *testing.T) {
	s := newAPIServer(t)
	s.add("pods shop/p")
	server := s.writer(rest.Config{}, ServerOptions{Settle: time.Hour})
	p := found(t, s.snapshot(server.reader, Scope{}), "p")
	server.moved = time.Now().Add(-2 * time.Hour) // as after a question that was answered late
	if err := server.Delete(t.Context(), p.Identity(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if server.restsIn() <= 0 {
		t.Error("at rest just after a DELETE")
	}
}

// While a request is in flight, something is still to come.
func TestRequestsKeepFromResting(t *testing.T) {
	s := newAPIServer(t)
	s.add("pods shop/p")
	server := s.writer(rest.Config{}, ServerOptions{Settle: time.Millisecond})
	p := found(t, s.snapshot(server.reader, Scope{}), "p")
	arrived, answer := make(chan bool), make(chan bool)
	s.on("DELETE", "/api/v1/namespaces/shop/pods/p", 1, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- true
		<-answer
		writeJSON(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
	})
	done := make(chan error)
	go func() { done <- server.Delete(within(t), p.Identity(), metav1.DeleteOptions{}) }()
	<-arrived
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := server.Events(ctx, true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while a DELETE is in flight: %v", err)
	}
	close(answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := server.Events(within(t), true); !errors.Is(err, gc.ErrAtRest) {
		t.Errorf("after it: %v", err)
	}
}

// A pod that was in its grace period when it was listed has it still, though no
// event says so.
func TestGraceOfListedPods(t *testing.T) {
	s := newAPIServer(t)
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	s.add("pods shop/p grace=3600 deleting=" + later)
	server := s.writer(rest.Config{}, ServerOptions{Settle: time.Millisecond})
	snapshot := s.snapshot(server.reader, Scope{})
	p := found(t, snapshot, "p")
	server.Watch(t.Context(), snapshot, []*graph.Resource{p.Resource})
	if left := time.Until(server.graces[p.UID]); left < 30*time.Minute {
		t.Errorf("waits for %s", left)
	}
}

// While a watch is not connected, nobody knows what happens.
func TestUnconnectedWatchesKeepFromResting(t *testing.T) {
	s := newAPIServer(t)
	server := s.writer(rest.Config{}, ServerOptions{Settle: time.Millisecond})
	connect := make(chan bool)
	s.on("WATCH", configmaps, 1, func(w http.ResponseWriter, r *http.Request) {
		<-connect
		s.watch(w, r)
	})
	snapshot := s.snapshot(server.reader, Scope{})
	server.Watch(t.Context(), snapshot, server.reader.Resources()[:1])
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := server.Events(ctx, true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before it is connected: %v", err)
	}
	close(connect)
	if _, err := server.Events(within(t), true); !errors.Is(err, gc.ErrAtRest) {
		t.Errorf("then: %v", err)
	}
}

// A server is away while none of its watches is connected, and not because of one.
func TestAway(t *testing.T) {
	s := newAPIServer(t)
	server := s.writer(rest.Config{}, ServerOptions{})
	if server.Away() != 0 {
		t.Error("without a watch")
	}
	server.watchers, server.blind, server.blindAt = make([]*watcher, 2), 1, time.Now().Add(-time.Minute)
	if server.Away() != 0 {
		t.Error("one of two")
	}
	server.blind = 2
	if away := server.Away(); away < time.Minute || away > 2*time.Minute {
		t.Error(away)
	}
}
