// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/pkg/cluster"
	"github.com/kubectl-gc/kubectl-gc/test/bench/canned"
)

// recorder notes the lists of pods, and answers some requests itself.
type recorder struct {
	http.Handler
	version string // empty: it may not be asked
	// cached answers lists that are to come from the cache, unless it is nil.
	cached http.HandlerFunc

	mu    sync.Mutex
	asked []string
	times []time.Time
	// attempts counts the lists of all types that were to come from the cache.
	attempts, versions int
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	cached := query.Get("resourceVersionMatch") == "NotOlderThan" && query.Get("resourceVersion") == "1000000"
	r.note(request, cached)
	switch {
	case request.URL.Path == "/version" && r.version == "":
		http.Error(w, "no", http.StatusForbidden)
	case request.URL.Path == "/version":
		fmt.Fprintf(w, `{"major":"1","gitVersion":%q}`, r.version)
	case cached && r.cached != nil:
		r.cached(w, request)
	default:
		r.Handler.ServeHTTP(w, request)
	}
}

func (r *recorder) note(request *http.Request, cached bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if request.URL.Path == "/version" {
		r.versions++
	}
	if cached {
		r.attempts++
	}
	if !strings.HasSuffix(request.URL.Path, "/pods") {
		return
	}
	var words []string
	query := request.URL.Query()
	if limit := query.Get("limit"); limit != "" {
		words = append(words, limit)
	}
	if query.Has("continue") {
		words = append(words, "more")
	}
	if cached {
		words = append(words, "cached")
	}
	if len(words) == 0 {
		words = []string{"all"}
	}
	r.asked, r.times = append(r.asked, strings.Join(words, " ")), append(r.times, time.Now())
}

func failure(code int, reason, details string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"details":{%s}}`, code, reason, details)
	}
}

// breaksOff sends the beginning of a list.
func breaksOff(w http.ResponseWriter, request *http.Request) {
	whole := httptest.NewRecorder()
	canned.New(20_000).ServeHTTP(whole, request)
	w.Header().Set("Content-Type", whole.Header().Get("Content-Type"))
	w.Header().Set("Content-Length", whole.Header().Get("Content-Length"))
	_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
}

// A list that proves to be long is read in one piece from the cache of a server
// that has it there, and in pages of 500 objects, or of what the user said, from
// any other. Whatever happens on the way, every object counts once.
func TestLongLists(t *testing.T) {
	pages := slices.Repeat([]string{"500 more"}, 19)
	inPages := append([]string{"500"}, pages...)
	afterAll := append([]string{"500", "cached"}, pages...)
	for name, test := range map[string]struct {
		objects int // half of them pods
		version string
		size    int64
		cached  http.HandlerFunc
		want    []string
	}{
		"a server with a cache":         {objects: 20_000, version: "v1.33.0", size: cluster.AutoPageSize, want: []string{"500", "cached"}},
		"a build of a vendor":           {objects: 20_000, version: "v1.36.1-gke.1234+abc", size: cluster.AutoPageSize, want: []string{"500", "cached"}},
		"an older server":               {objects: 20_000, version: "v1.32.9", size: cluster.AutoPageSize, want: inPages},
		"a server that does not say":    {objects: 20_000, size: cluster.AutoPageSize, want: inPages},
		"a server that says nonsense":   {objects: 20_000, version: "new", size: cluster.AutoPageSize, want: inPages},
		"what the user said":            {objects: 20_000, version: "v1.36.0", size: 500, want: inPages},
		"all at once":                   {objects: 20_000, version: "v1.36.0", size: 0, want: []string{"all"}},
		"a short list is not asked for": {objects: 1_000, size: cluster.AutoPageSize, want: []string{"500"}},
		"the cache lags behind": {
			objects: 20_000, version: "v1.36.0", size: cluster.AutoPageSize, want: afterAll,
			cached: failure(http.StatusGatewayTimeout, "Timeout", `"retryAfterSeconds":1,"causes":[{"reason":"ResourceVersionTooLarge"}]`),
		},
		"too many requests": {
			objects: 20_000, version: "v1.36.0", size: cluster.AutoPageSize, want: afterAll,
			cached: failure(http.StatusTooManyRequests, "TooManyRequests", `"retryAfterSeconds":1`),
		},
		"the answer breaks off": {objects: 20_000, version: "v1.36.0", size: cluster.AutoPageSize, want: afterAll, cached: breaksOff},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{Handler: canned.New(test.objects), version: test.version, cached: test.cached}
			server := httptest.NewServer(r)
			defer server.Close()
			config, stats := cluster.ReadOnly(&rest.Config{Host: server.URL})
			reader, err := cluster.NewReader(t.Context(), config, stats, cluster.Options{PageSize: test.size})
			if err != nil {
				t.Fatal(err)
			}
			snapshot, err := reader.Snapshot(t.Context(), cluster.Scope{})
			if want := r.Handler.(*canned.Server).Objects(); err != nil || !snapshot.Complete() || snapshot.Len() != want {
				t.Fatalf("%d objects, want %d; %v", snapshot.Len(), want, err)
			}
			for o := range snapshot.Objects() {
				if found, ok := snapshot.Object(o.UID); !ok || found.Name != o.Name {
					t.Fatalf("%s/%s counts twice", o.Resource.Resource, o.Name)
				}
			}
			if diff := cmp.Diff(test.want, r.asked); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			r.check(t, test.objects > 1_000 && test.size == cluster.AutoPageSize)
		})
	}
}

// check looks at what else was asked.
func (r *recorder) check(t *testing.T, long bool) {
	if wanted := map[bool]int{true: 1}[long]; r.versions != wanted {
		t.Errorf("the version was asked for %d times, want %d", r.versions, wanted)
	}
	// Five types are long; those that are read at the same time find out together.
	if lags := strings.HasSuffix(t.Name(), "the_cache_lags_behind"); lags && r.attempts > 4 {
		t.Errorf("%d lists were to come from a cache that lags behind", r.attempts)
	}
	if retry := strings.HasSuffix(t.Name(), "too_many_requests"); retry && r.times[2].Sub(r.times[1]) < time.Second {
		t.Error("the server was asked again before the second that it wanted to have")
	}
}
