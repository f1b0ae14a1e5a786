// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/testnet"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

var configMaps = graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}

// flood answers with a beginning, and then with more of the same than anybody takes.
// sent counts megabytes.
func flood(sent *atomic.Int64, most int64, contentType, begin string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, err := io.WriteString(w, begin)
		for block := []byte(strings.Repeat("x", 1<<20)); err == nil && sent.Load() < most; sent.Add(1) {
			_, err = w.Write(block)
		}
	}
}

// An object that does not end is given up, in every client.
func TestObjectWithoutEnd(t *testing.T) {
	for _, do := range map[string]func(*Reader, *Server) error{
		"get": func(r *Reader, _ *Server) error {
			_, err := r.Get(t.Context(), configMaps, "shop", "x")
			return err
		},
		"read": func(r *Reader, _ *Server) error {
			_, err := r.Read(t.Context(), configMaps.GroupVersionResource, "shop", "x")
			return err
		},
		"delete": func(_ *Reader, server *Server) error {
			return server.Delete(t.Context(), graph.Identity{Resource: configMaps, Namespace: "shop", Name: "x"}, metav1.DeleteOptions{})
		},
	} {
		s := newAPIServer(t)
		var sent atomic.Int64
		for _, method := range []string{"GET", "DELETE"} {
			s.on(method, "/api/v1/namespaces/shop/configmaps/x", always, flood(&sent, 200, "application/json", `{"metadata":{"name":"`))
		}
		r := s.reader(Options{})
		server, err := NewServer(r, &rest.Config{Dial: testnet.Dial, Host: s.URL}, ServerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := do(r, server); err == nil || !strings.Contains(err.Error(), "longer than 64 MB") {
			t.Errorf("got error %v", err)
		}
		if s.CloseClientConnections(); sent.Load() >= 200 {
			t.Error("all of it was read")
		}
	}
}

// A list whose pages lead to themselves, or nowhere, is no list.
func TestPagesWithoutEnd(t *testing.T) {
	for name, next := range map[string]func(n int) string{
		"to itself": func(int) string { return "again" },
		"nowhere":   func(n int) string { return fmt.Sprint(n) },
	} {
		s, n := newAPIServer(t), 0
		s.on("GET", "/api/v1/configmaps", always, func(w http.ResponseWriter, _ *http.Request) {
			n++
			writeJSON(w, http.StatusOK, metav1.PartialObjectMetadataList{
				TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
				ListMeta: metav1.ListMeta{ResourceVersion: "1", Continue: next(n)},
			})
		})
		snapshot := s.snapshot(s.reader(Options{PageSize: 500}), Scope{})
		same(t, name, "configmaps /: ServerError", contents(snapshot))
		for _, u := range snapshot.Unlisted() {
			if !strings.Contains(u.Message, "the list does not end") {
				t.Errorf("%s: %s", name, u.Message)
			}
		}
		if n > mostEmptyPages+2 {
			t.Errorf("%s: %d pages were read", name, n)
		}
	}
}

// A server that sends somewhere else without end is given up.
func TestRedirects(t *testing.T) {
	s, n := newAPIServer(t), 0
	s.on("GET", "/api/v1/configmaps", always, func(w http.ResponseWriter, r *http.Request) {
		n++
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	})
	same(t, "contents", "configmaps /: ServerError", contents(s.snapshot(s.reader(Options{}), Scope{})))
	if n > 20 {
		t.Errorf("%d times", n)
	}
}
