// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/testnet"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// rests waits until the server says that the cluster is at rest.
func rests(t *testing.T, server *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		if _, err := server.Events(ctx, true); errors.Is(err, gc.ErrAtRest) {
			return
		} else if err != nil {
			t.Fatalf("waiting for rest: %v", err)
		}
	}
}

// A watch that never works delays the rest by an outage, and not for ever.
func TestRestDespiteWatch(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"the path is not found": unknownPath,
		"it fails":              status(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		"it ends at once": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
		},
	} {
		t.Run(name, testnet.Bubble(func(t *testing.T) {
			s := newAPIServer(t)
			server := s.writer(rest.Config{}, ServerOptions{Settle: 700 * time.Millisecond})
			server.outage = time.Second
			snapshot := s.snapshot(server.reader, Scope{})
			s.on("WATCH", configmaps, always, answer)
			s.on("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/configmaps", always, forbidden())
			server.Watch(t.Context(), snapshot, server.reader.Resources()[:1])
			rests(t, server)
		}))
	}
}

// Whenever the watches are connected again, what happened meanwhile has the
// settling time to arrive, also when they broke off soon after they began.
func TestRestAfterOutage(t *testing.T) {
	for name, test := range map[string]struct {
		seeing, blind time.Duration // since when
		settles       bool
	}{
		"soon after the watches began": {time.Second, time.Second, true},
		"after a long calm":            {time.Hour, time.Hour, true},
		"again and again":              {30 * time.Second, time.Hour, false},
	} {
		server := newAPIServer(t).writer(rest.Config{}, ServerOptions{Settle: time.Minute})
		now := time.Now()
		server.moved, server.seeingAt, server.blindAt = now.Add(-time.Hour), now.Add(-test.seeing), now.Add(-test.blind)
		server.sees(false)
		server.sees(true)
		if settles := server.restsIn() > 0; settles != test.settles {
			t.Errorf("%s: it settles anew: %t, want %t", name, settles, test.settles)
		}
	}
}

// The end of a watch whose time is over is no outage: nothing is waited for.
func TestWatchEndsAsPlanned(t *testing.T) {
	testnet.Bubble(func(t *testing.T) {
		s := newAPIServer(t)
		server := s.writer(rest.Config{}, ServerOptions{Settle: 300 * time.Millisecond})
		server.watchLasts = 20 * time.Millisecond
		snapshot := s.snapshot(server.reader, Scope{})
		watches := make(chan struct{}, 1000)
		s.on("WATCH", configmaps, always, func(w http.ResponseWriter, _ *http.Request) {
			watches <- struct{}{}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			time.Sleep(50 * time.Millisecond)
		})
		server.Watch(t.Context(), snapshot, server.reader.Resources()[:1])
		server.AwaitWatches(t.Context(), 10*time.Second)
		seeing := server.seeingAt
		rests(t, server)
		server.mu.Lock()
		defer server.mu.Unlock()
		if len(watches) < 2 || server.blind > 0 || !server.seeingAt.Equal(seeing) {
			t.Errorf("%d watches, %d of them blind; seeing since %s, at first %s", len(watches), server.blind, server.seeingAt, seeing)
		}
	})(t)
}

// Objects that the run is not about do not keep the cluster from resting; what
// they own, what is written to, and what that owns, does.
func TestConcern(t *testing.T) {
	s := newAPIServer(t)
	s.add("configmaps shop/own uid=own\nconfigmaps shop/written uid=written\nconfigmaps shop/other uid=other")
	for name, counts := range map[string]bool{"own": true, "written": true, "other": false, "dependent": true, "stranger": false} {
		server := s.writer(rest.Config{}, ServerOptions{Settle: time.Hour})
		snapshot := s.snapshot(server.reader, Scope{})
		server.Concern(slices.Values([]types.UID{"own"}))
		written := found(t, snapshot, "written")
		if err := server.Delete(t.Context(), written.Identity(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		o := graph.Object{Resource: written.Resource, Name: name, UID: types.UID(name)}
		if name == "dependent" {
			o.OwnerReferences = []metav1.OwnerReference{{UID: "other"}, {UID: "written"}}
		}
		before := time.Now().Add(-time.Minute)
		server.moved = before
		server.changes.add(gc.Event{Object: o})
		if events, err := server.Events(t.Context(), false); len(events) != 1 || err != nil {
			t.Errorf("%s: got %v, %v", name, events, err)
		}
		if moved := !server.moved.Equal(before); moved != counts {
			t.Errorf("%s: it counts: %t, want %t", name, moved, counts)
		}
	}
}

// The events tell of what is watched, and of nothing else.
func TestTells(t *testing.T) {
	s := newAPIServer(t)
	s.add("namespaces shop\nconfigmaps shop/a\npods shop/p")
	everywhere, inShop := watchOf(s, Scope{}), watchOf(s, Scope{Namespace: "shop"})
	configMaps, pods := schema.GroupResource{Resource: "configmaps"}, schema.GroupResource{Resource: "pods"}
	for _, test := range []struct {
		server    *Server
		resource  schema.GroupResource
		namespace string
		want      bool
	}{
		{everywhere, configMaps, "shop", true},
		{everywhere, configMaps, "other", true},
		{everywhere, pods, "shop", false},
		{inShop, configMaps, "shop", true},
		{inShop, configMaps, "other", false},
		{inShop, configMaps, "", false},
	} {
		if got := test.server.Tells(test.resource, test.namespace); got != test.want {
			t.Errorf("%s in %q: got %t", test.resource, test.namespace, got)
		}
	}
}
