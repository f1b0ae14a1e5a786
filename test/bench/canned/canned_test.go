// SPDX-License-Identifier: Apache-2.0

package canned

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/diff"
	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The made-up cluster is a cluster: everything is there, every UID once, every
// owner reference leads to its owner.
func TestServer(t *testing.T) {
	s := New(3000)
	server := httptest.NewServer(s)
	defer server.Close()
	config, stats := cluster.ReadOnly(&rest.Config{Host: server.URL})
	for _, size := range []int64{0, 500} {
		r, err := cluster.NewReader(t.Context(), config, stats, cluster.Options{PageSize: size})
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := r.Snapshot(t.Context(), cluster.Scope{})
		if err != nil || !snapshot.Complete() || snapshot.Len() != s.Objects() || s.Objects() != 3003 {
			t.Fatalf("%d objects, want %d; not read: %v, %v", snapshot.Len(), s.Objects(), snapshot.Unlisted(), err)
		}
		owned := 0
		for n := range graph.New(snapshot).Nodes() {
			for _, ref := range n.Owners() {
				owned++
				if ref.State != graph.Solid {
					t.Fatalf("%s: %s is %s, %s", n.Identity(), ref.Name, ref.State, ref.Reason)
				}
			}
		}
		if owned != 3000/PerApplication*6 {
			t.Errorf("%d owner references", owned)
		}
		part, err := r.Snapshot(t.Context(), cluster.Scope{Namespace: "team-00001"})
		if err != nil || part.Len() != perNamespace*PerApplication {
			t.Errorf("%d objects in a namespace, %v", part.Len(), err)
		}
	}
}

// client-go reads the same, and objects are as large as real ones.
func TestObjects(t *testing.T) {
	s := New(100)
	server := httptest.NewServer(s)
	defer server.Close()
	client, err := metadata.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).List(t.Context(), metav1.ListOptions{Limit: 7})
	if err != nil || len(list.Items) != 7 || *list.RemainingItemCount != 43 {
		t.Fatalf("got %v, %v", list, err)
	}
	pod := list.Items[6]
	if pod.Name != "app-00000001-0000000000-00001" || pod.Namespace != "team-00000" || pod.OwnerReferences[0].Name != "app-00000001-0000000000" || pod.Size() < 1500 {
		t.Errorf("got %s/%s of %s, %d bytes", pod.Namespace, pod.Name, pod.OwnerReferences[0].Name, pod.Size())
	}
}

// The whole objects are those of which the metadata is served, and a snapshot of them
// holds them all.
func TestRows(t *testing.T) {
	s := New(1200)
	server := httptest.NewServer(s)
	defer server.Close()
	config, recording := cluster.Record(&rest.Config{Host: server.URL})
	config, stats := cluster.ReadOnly(config)
	r, err := cluster.NewReader(t.Context(), config, stats, cluster.Options{PageSize: 500})
	if err != nil {
		t.Fatal(err)
	}
	live, err := r.Snapshot(t.Context(), cluster.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	w, err := offline.NewWriter(&text, offline.Header{})
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range recording.Answers() {
		if err := w.Answer(answer); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(r.Save(t.Context(), w, cluster.SaveOptions{Begun: time.Now()}), w.Close(time.Now())); err != nil {
		t.Fatal(err)
	}
	file, err := offline.Open(bytes.NewReader(text.Bytes()), int64(text.Len()))
	if err != nil {
		t.Fatal(err)
	}
	config, stats = cluster.ReadOnly(&rest.Config{Host: "http://snapshot.invalid", Transport: offline.NewServer(file)})
	if r, err = cluster.NewReader(t.Context(), config, stats, cluster.Options{PageSize: 500}); err != nil {
		t.Fatal(err)
	}
	held, err := r.Snapshot(t.Context(), cluster.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if report := diff.Compare(live, held, nil); held.Len() != s.Objects() || len(report.Differences)+len(report.Uncompared) > 0 {
		t.Errorf("%d objects, want %d; %+v", held.Len(), s.Objects(), report)
	}
}
