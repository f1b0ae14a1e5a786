// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/testnet"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// An answer that is no list of types is none without types.
func TestTypesOnly(t *testing.T) {
	const v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, path := range []string{"/api", "/apis"} {
		for _, test := range []struct{ name, contentType, body, want string }{
			{"an empty object", v2, "{}", "sent nothing that states its kind"},
			{"null", v2, "null", "sent nothing that states its kind"},
			{"nothing", v2, "", "not JSON"},
			{"a page", v2, "<html>log in</html>", "not JSON"},
			{"a Status", "application/json", `{"kind":"Status","apiVersion":"v1","status":"Success"}`, "sent Status instead of"},
			{"the other kind", "application/json", `{"kind":"APIGroupDiscoveryList"}`, "sent APIGroupDiscoveryList instead of"},
			{"a kind in the wrong place", v2, `{"items":[{"kind":"APIGroupDiscoveryList"}]}`, "sent nothing that states its kind"},
			{"half of it", v2, `{"kind":"APIGroupDiscoveryList","items":[`, "not JSON"},
		} {
			s := newAPIServer(t)
			s.on("GET", path, always, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				_, _ = io.WriteString(w, test.body)
			})
			config, stats := ReadOnly(&rest.Config{Dial: testnet.Dial, Host: s.URL})
			_, err := NewReader(t.Context(), config, stats, Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s for %s: got error %v", test.name, path, err)
			}
		}
	}
}

// A server that knows no /api is not one without Pods.
func TestCoreTypesThatAreHidden(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		s := newAPIServer(t)
		s.legacy = legacy
		s.on("GET", "/api", always, unknownPath)
		snapshot := s.snapshot(s.reader(Options{}), Scope{})
		same(t, "contents", "/: DiscoveryFailed", contents(snapshot))
		if snapshot.Complete() {
			t.Errorf("legacy %t: nothing is missing", legacy)
		}
	}
}

// What is longer than any cluster's types is given up.
func TestTypesWithoutEnd(t *testing.T) {
	s := newAPIServer(t)
	var sent atomic.Int64 // bytes
	s.on("GET", "/apis", always, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for block := []byte(strings.Repeat(" ", 1<<20)); r.Context().Err() == nil && sent.Load() < 4*longestAnswer; sent.Add(int64(len(block))) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	config, stats := ReadOnly(&rest.Config{Dial: testnet.Dial, Host: s.URL})
	if _, err := NewReader(t.Context(), config, stats, Options{}); err == nil || !strings.Contains(err.Error(), "longer than 64 MB") {
		t.Errorf("got error %v", err)
	}
	s.CloseClientConnections()
	if sent.Load() >= 4*longestAnswer {
		t.Errorf("all of it was read")
	}
}

// The groups are asked for before the core group is answered, and once.
func TestGroupsAreAskedForAhead(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		s := newAPIServer(t)
		s.legacy = legacy
		asked := make(chan bool, 8)
		s.on("GET", "/apis", 1, func(w http.ResponseWriter, r *http.Request) {
			asked <- true
			s.ServeHTTP(w, r)
		})
		s.on("GET", "/api", 1, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-asked:
			case <-time.After(20 * time.Second):
				t.Error("the groups are not asked for")
			}
			s.ServeHTTP(w, r)
		})
		r := s.reader(Options{})
		if got := r.stats.discovery.Load(); !legacy && got != 2 {
			t.Errorf("got %d requests for types", got)
		}
		if _, err := r.Mapper().RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}); err != nil {
			t.Error(err)
		}
	}
}

// A refusal of the groups that came ahead is what the user is told.
func TestGroupsAreRefusedAhead(t *testing.T) {
	s := newAPIServer(t)
	s.on("GET", "/apis", always, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not for you", http.StatusForbidden) })
	config, stats := ReadOnly(&rest.Config{Dial: testnet.Dial, Host: s.URL})
	if _, err := NewReader(t.Context(), config, stats, Options{}); err == nil || !strings.Contains(err.Error(), "not for you") {
		t.Errorf("got error %v", err)
	}
}
