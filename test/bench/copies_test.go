// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/test/bench/canned"
)

// storeOfOne is an etcd with one application, of which all objects name the UIDs of the
// Deployment and the ReplicaSet, and what is put into it.
type storeOfOne struct {
	mu         sync.Mutex
	put        []stored
	namespaces []string
}

func (s *storeOfOne) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/v3/kv/range":
		var question struct{ Key []byte }
		_ = json.NewDecoder(r.Body).Decode(&question)
		resource := strings.Split(string(question.Key), "/")[2]
		n := map[string]int{"deployments": 1, "replicasets": 1, "pods": 5, "configmaps": 2, "secrets": 1}[resource]
		var found []stored
		for i := range n {
			name := fmt.Sprintf("%s-%d", nameOf(0), i)
			found = append(found, stored{
				Key: []byte("/registry/" + resource + "/" + namespaceOf(0) + "/" + name),
				Value: fmt.Appendf(nil, "k8s\x00 %s in %s: 00000000-0000-4000-8000-00000000000%d 11111111-0000-4000-8000-000000000000",
					name, namespaceOf(0), i),
			})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kvs": found})
	case "/v3/kv/txn":
		var question struct {
			Success []struct{ RequestPut stored }
		}
		_ = json.NewDecoder(r.Body).Decode(&question)
		for _, operation := range question.Success {
			s.put = append(s.put, operation.RequestPut)
		}
		_, _ = w.Write([]byte("{}"))
	case "/api/v1/namespaces":
		var o struct{ Metadata struct{ Name string } }
		_ = json.NewDecoder(r.Body).Decode(&o)
		s.namespaces = append(s.namespaces, o.Metadata.Name)
		_, _ = w.Write([]byte(`{"metadata":{"uid":"1"}}`))
	default:
		http.NotFound(w, r)
	}
}

// TestCopies: every copy has names and UIDs of its own, which its objects share, and is
// of the original's length.
func TestCopies(t *testing.T) {
	store := &storeOfOne{}
	server := httptest.NewServer(store)
	defer server.Close()
	c, err := creatorFor(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.copies(t.Context(), &etcd{url: server.URL, client: server.Client()}, 100, 250); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"team-00001", "team-00002"}, store.namespaces); diff != "" {
		t.Errorf("namespaces: -want +got:\n%s", diff)
	}
	if want := 150 * canned.PerApplication; len(store.put) != want {
		t.Fatalf("%d objects were put, not %d", len(store.put), want)
	}
	keys, owners := map[string]bool{}, map[string]string{} // the application of a UID
	length := len("k8s\x00 app-00000000-0 in team-00000: ") + 2*36 + 1
	for _, o := range store.put {
		keys[string(o.Key)] = true
		application, namespace := string(o.Value[5:17]), string(o.Value[23:33])
		if key := string(o.Key); !strings.Contains(key, "/"+namespace+"/"+application) || application == nameOf(0) || namespace == namespaceOf(0) || len(o.Value) != length {
			t.Errorf("%s is %q", key, o.Value)
		}
		for _, id := range uid.FindAllString(string(o.Value), -1) {
			if of, known := owners[id]; known && of != application {
				t.Errorf("UID %s is in %s and %s", id, of, application)
			}
			owners[id] = application
		}
	}
	if len(keys) != len(store.put) || len(owners) != 150*6 {
		t.Errorf("%d keys and %d UIDs", len(keys), len(owners))
	}
}
