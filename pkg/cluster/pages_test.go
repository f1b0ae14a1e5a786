// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/pkg/cluster"
	"github.com/kubectl-gc/kubectl-gc/test/bench/canned"
)

// recorder notes the lists of pods, and the requests for the version, to which it
// has an answer of its own.
type recorder struct {
	http.Handler
	version string // empty: it may not be asked

	mu    sync.Mutex
	asked []string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	note := ""
	if request.URL.Path == "/version" {
		note = "version"
	} else if strings.HasSuffix(request.URL.Path, "/pods") {
		note = cmp.Or(request.URL.Query().Get("limit"), "all")
	}
	if note != "" {
		r.mu.Lock()
		r.asked = append(r.asked, note)
		r.mu.Unlock()
	}
	switch {
	case note != "version":
		r.Handler.ServeHTTP(w, request)
	case r.version == "":
		http.Error(w, "no", http.StatusForbidden)
	default:
		fmt.Fprintf(w, `{"major":"1","gitVersion":%q}`, r.version)
	}
}

// Pages grow when a list proves to be long and the server has lists in its
// cache, and are 500 objects otherwise, or what the user said.
func TestGrowingPages(t *testing.T) {
	small := strings.Fields(strings.Repeat("500 ", 20))
	for name, test := range map[string]struct {
		objects int // half of them pods
		version string
		size    int64
		want    []string
	}{
		"a server that caches lists":    {20_000, "v1.34.0", cluster.AutoPageSize, []string{"500", "version", "5000", "5000"}},
		"a build of a vendor":           {20_000, "v1.36.1-gke.1234+abc", cluster.AutoPageSize, []string{"500", "version", "5000", "5000"}},
		"an older server":               {20_000, "v1.33.9", cluster.AutoPageSize, append([]string{"version"}, small...)},
		"a server that does not say":    {20_000, "", cluster.AutoPageSize, append([]string{"version"}, small...)},
		"a server that says nonsense":   {20_000, "new", cluster.AutoPageSize, append([]string{"version"}, small...)},
		"what the user said":            {20_000, "v1.36.0", 500, small},
		"all at once":                   {20_000, "v1.36.0", 0, []string{"all"}},
		"a short list is not asked for": {2_000, "v1.36.0", cluster.AutoPageSize, []string{"500", "500"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{Handler: canned.New(test.objects), version: test.version}
			server := httptest.NewServer(r)
			defer server.Close()
			config, stats := cluster.ReadOnly(&rest.Config{Host: server.URL})
			reader, err := cluster.NewReader(t.Context(), config, stats, cluster.Options{PageSize: test.size})
			if err != nil {
				t.Fatal(err)
			}
			snapshot, err := reader.Snapshot(t.Context(), cluster.Scope{})
			if err != nil || !snapshot.Complete() || snapshot.Len() < test.objects {
				t.Fatalf("%d objects, %v", snapshot.Len(), err)
			}
			got := r.asked
			if slices.Contains(test.want, "version") { // others may have asked
				i := slices.Index(got, "version")
				got = slices.Insert(slices.Delete(slices.Clone(got), i, i+1), slices.Index(test.want, "version"), "version")
			}
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A list takes a number of pages that grows with its logarithm, until pages are
// as large as they may be.
func TestLimitAfter(t *testing.T) {
	for _, test := range []struct{ remaining, want int64 }{
		{0, 500}, {1_000, 500}, {1_001, 5_000}, {20_000, 5_000}, {40_000, 10_000}, {200_000, 50_000}, {5_000_000, 50_000},
	} {
		if got := cluster.LimitAfter(test.remaining); got != test.want {
			t.Errorf("%d remain: got %d, want %d", test.remaining, got, test.want)
		}
	}
}
