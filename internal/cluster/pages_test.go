// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	gocmp "cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/testnet"
	"github.com/kubectl-gc/kubectl-gc/test/bench/canned"
)

// recorder stands before a made-up server and notes the lists of pods.
type recorder struct {
	*canned.Server
	version string // empty: it may not be asked
	timeout time.Duration
	// cached answers lists that are to come from the cache, and pods the other
	// lists of pods, unless they are nil.
	cached, pods http.HandlerFunc

	mu       sync.Mutex
	asked    []string
	times    []time.Time
	versions int
	// attempts counts the lists that were to come from the cache by path.
	attempts map[string]int
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	lists := strings.Contains(request.Header.Get("Accept"), "PartialObjectMetadataList")
	cached := lists && r.version >= "v1.33" && !query.Has("limit") && !query.Has("continue")
	r.note(request, cached)
	switch {
	case request.URL.Path == "/version" && r.version == "":
		http.Error(w, "no", http.StatusForbidden)
	case request.URL.Path == "/version":
		fmt.Fprintf(w, `{"major":"1","gitVersion":%q}`, r.version)
	case cached && r.cached != nil:
		r.cached(w, request)
	case !cached && r.pods != nil && strings.HasSuffix(request.URL.Path, "/pods"):
		r.pods(w, request)
	default:
		r.Server.ServeHTTP(w, request)
	}
}

func (r *recorder) note(request *http.Request, cached bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if request.URL.Path == "/version" {
		r.versions++
	}
	if cached {
		r.attempts[request.URL.Path]++
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
	if len(words) == 0 {
		words = []string{"all"}
	}
	r.asked, r.times = append(r.asked, strings.Join(words, " ")), append(r.times, time.Now())
}

// questions returns how often pods were asked for.
func (r *recorder) questions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked)
}

// reader connects a Reader to a server that stands behind the recorder.
func (r *recorder) reader(t *testing.T, options cluster.Options) *cluster.Reader {
	t.Helper()
	r.attempts = map[string]int{}
	return readerOf(t, r, options, r.timeout)
}

// readerOf connects a Reader to a server of the handler.
func readerOf(t *testing.T, handler http.Handler, options cluster.Options, timeout time.Duration) *cluster.Reader {
	t.Helper()
	server := testnet.NewServer(handler)
	t.Cleanup(server.Close)
	config, stats := cluster.ReadOnly(&rest.Config{Dial: testnet.Dial, Host: server.URL, Timeout: gocmp.Or(timeout, 30*time.Second)})
	reader, err := cluster.NewReader(t.Context(), config, stats, options)
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

func failure(code int, reason, details string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"details":{%s}}`, code, reason, details)
	}
}

// lags answers like a server whose cache does not catch up.
var lags = failure(http.StatusGatewayTimeout, "Timeout", `"retryAfterSeconds":1,"causes":[{"reason":"ResourceVersionTooLarge"}]`)

// breaksOff sends the beginning of a list.
func breaksOff(w http.ResponseWriter, request *http.Request) {
	whole := httptest.NewRecorder()
	canned.New(20_000).ServeHTTP(whole, request)
	w.Header().Set("Content-Type", whole.Header().Get("Content-Type"))
	w.Header().Set("Content-Length", whole.Header().Get("Content-Length"))
	_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
}

// capped answers like a server that sends no more than 4,000 objects at once.
func capped(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	if limit, err := strconv.Atoi(query.Get("limit")); err != nil || limit > 4_000 {
		query.Set("limit", "4000")
	}
	request.URL.RawQuery = query.Encode()
	canned.New(20_000).ServeHTTP(w, request)
}

// expires answers the first page, then that its token has expired, then like a
// server that caps.
func expires() http.HandlerFunc {
	expired := false
	return func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Query().Has("continue") && !expired {
			expired = true
			failure(http.StatusGone, "Expired", "")(w, request)
			return
		}
		capped(w, request)
	}
}

// folded returns what a list was asked for, with "rest" for the pages after the first. The first of
// them has 500 objects unless one came before, and any other as many as the one before, twice or
// half as many.
func folded(t *testing.T, asked []string) []string {
	t.Helper()
	var kinds []string
	size := 0
	for _, page := range asked {
		words := strings.Fields(page)
		next, err := strconv.Atoi(words[0])
		switch {
		case err != nil:
			size = 0
		case len(words) == 1:
			size = next
		case next == gocmp.Or(size, 500) || next >= 500 && next <= 8000 && (next == 2*size || 2*next == size):
			size, page = next, "rest"
		default:
			t.Errorf("a page of %d objects after one of %d", next, size)
		}
		if page != "rest" || len(kinds) == 0 || kinds[len(kinds)-1] != page {
			kinds = append(kinds, page)
		}
	}
	return kinds
}

// What comes fast is asked for in longer pages: each that is no longer than the one before tells
// of half a second.
func TestPagesGrow(t *testing.T) {
	for name, test := range map[string]struct {
		version string
		cached  http.HandlerFunc
		first   []string
	}{
		"an older server":   {"v1.32.9", nil, []string{"500"}},
		"a cache that lags": {"v1.36.0", lags, []string{"all", "500"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{Server: canned.New(100_000), version: test.version, cached: test.cached}
			reader, begin := r.reader(t, cluster.Options{PageSize: cluster.AutoPageSize}), time.Now()
			snapshot, err := reader.Snapshot(t.Context(), cluster.Scope{})
			took := time.Since(begin)
			if err != nil || !snapshot.Complete() || snapshot.Len() != r.Objects() {
				t.Fatalf("%d objects, want %d; %v, %v", snapshot.Len(), r.Objects(), snapshot.Unlisted(), err)
			}
			if diff := cmp.Diff(test.first, r.asked[:len(test.first)]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			folded(t, r.asked)
			size, slow := 500, 0
			for _, page := range r.asked[len(test.first):] {
				next, _, _ := strings.Cut(page, " ")
				n, _ := strconv.Atoi(next)
				if n < min(2*size, 8000) {
					slow++
				}
				size = n
			}
			if least := time.Duration(slow) * 500 * time.Millisecond; took < least {
				t.Errorf("%d pages are no longer than the one before, but all took %s: %s", slow, took, r.asked)
			}
		})
	}
}

// A list is read in one piece from the cache of a server that has it there, and in pages from any
// other: of 500 objects and more, or of as many as the user said. Whatever happens on the way,
// nothing is left out.
func TestLongLists(t *testing.T) {
	inPages, afterAll := []string{"500", "rest"}, []string{"all", "500", "rest"}
	asSaid := append([]string{"500"}, slices.Repeat([]string{"500 more"}, 19)...)
	for name, test := range map[string]struct {
		objects      int // half of them pods
		version      string
		size         int64
		cached, pods http.HandlerFunc
		want         []string
	}{
		"a server with a cache":       {objects: 20_000, version: "v1.33.0", size: cluster.AutoPageSize, want: []string{"all"}},
		"a build of a vendor":         {objects: 20_000, version: "v1.36.1-gke.1234+abc", size: cluster.AutoPageSize, want: []string{"all"}},
		"an older server":             {objects: 20_000, version: "v1.32.9", size: cluster.AutoPageSize, want: inPages},
		"a server that does not say":  {objects: 20_000, size: cluster.AutoPageSize, want: inPages},
		"a server that says nonsense": {objects: 20_000, version: "new", size: cluster.AutoPageSize, want: inPages},
		"what the user said":          {objects: 20_000, version: "v1.36.0", size: 500, want: asSaid},
		"all at once":                 {objects: 20_000, version: "v1.36.0", size: 0, want: []string{"all"}},
		"too many requests": {
			objects: 20_000, version: "v1.36.0", size: cluster.AutoPageSize, want: afterAll,
			cached: failure(http.StatusTooManyRequests, "TooManyRequests", `"retryAfterSeconds":1`),
		},
		"the answer breaks off": {objects: 20_000, version: "v1.36.0", size: cluster.AutoPageSize, want: afterAll, cached: breaksOff},
		"the answer is capped": {
			objects: 20_000, version: "v1.36.0", size: cluster.AutoPageSize, cached: capped,
			want: []string{"all", "rest"},
		},
		"the token expires": {
			objects: 20_000, version: "v1.32.0", size: cluster.AutoPageSize, pods: expires(),
			want: []string{"500", "rest", "all", "more", "more"},
		},
	} {
		t.Run(name, testnet.Bubble(func(t *testing.T) {
			r := &recorder{Server: canned.New(test.objects), version: test.version, cached: test.cached, pods: test.pods}
			snapshot, err := r.reader(t, cluster.Options{PageSize: test.size}).Snapshot(t.Context(), cluster.Scope{})
			if err != nil || !snapshot.Complete() || snapshot.Len() != r.Objects() {
				t.Fatalf("%d objects, want %d; %v, %v", snapshot.Len(), r.Objects(), snapshot.Unlisted(), err)
			}
			asked, wanted := r.asked, 0
			if test.size == cluster.AutoPageSize {
				asked, wanted = folded(t, r.asked), 1
			}
			if diff := cmp.Diff(test.want, asked); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if r.versions != wanted {
				t.Errorf("the version was asked for %d times, want %d", r.versions, wanted)
			}
			if name == "too many requests" && r.times[1].Sub(r.times[0]) < time.Second {
				t.Error("the server was asked again before the second that it wanted to have")
			}
		}))
	}
}

// What is read in one piece takes the place of the first page, with its version.
func TestListInPlaceOfThePage(t *testing.T) {
	r := &recorder{Server: canned.New(20_000), version: "v1.36.0"}
	r.cached = func(w http.ResponseWriter, request *http.Request) {
		if !strings.HasSuffix(request.URL.Path, "/pods") {
			r.Server.ServeHTTP(w, request)
			return
		}
		list := metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1000007"}}
		list.Items = make([]metav1.PartialObjectMetadata, 1)
		list.Items[0].Name, list.Items[0].Namespace, list.Items[0].UID = "late", "team-00000", "late"
		raw, _ := list.Marshal()
		body, _ := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, Raw: raw}).Marshal()
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		_, _ = w.Write(append([]byte("k8s\x00"), body...))
	}
	snapshot, err := r.reader(t, cluster.Options{PageSize: cluster.AutoPageSize}).Snapshot(t.Context(), cluster.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	var pods []string
	for o := range snapshot.Objects() {
		if o.Resource.Resource == "pods" {
			pods = append(pods, o.Name)
		}
	}
	listed := snapshot.Listed(schema.GroupResource{Resource: "pods"})
	if !slices.Equal(pods, []string{"late"}) || listed[""] != "1000007" {
		t.Errorf("pods %.100s, listed at %s", pods, listed)
	}
}

// When a list could not be read from the cache in time, no more are tried of its
// group, but of others, which may be an aggregated server's.
func TestCacheThatLags(t *testing.T) {
	r := &recorder{Server: canned.New(20_000), version: "v1.36.0"}
	r.cached = func(w http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.URL.Path, "/api/") {
			lags(w, request)
			return
		}
		r.Server.ServeHTTP(w, request)
	}
	reader := r.reader(t, cluster.Options{PageSize: cluster.AutoPageSize})
	for round, want := range []map[string]bool{
		// Which of the core types come before the first answer is left open.
		{"/apis/apps/v1/deployments": true, "/apis/apps/v1/replicasets": true},
		{"/apis/apps/v1/deployments": true, "/apis/apps/v1/replicasets": true},
	} {
		clear(r.attempts)
		snapshot, err := reader.Snapshot(t.Context(), cluster.Scope{})
		if err != nil || !snapshot.Complete() || snapshot.Len() != r.Objects() {
			t.Fatalf("%d objects, want %d; %v, %v", snapshot.Len(), r.Objects(), snapshot.Unlisted(), err)
		}
		core := 0
		for path, n := range r.attempts {
			if strings.HasPrefix(path, "/api/") {
				core += n
			} else if !want[path] || n != 1 {
				t.Errorf("round %d: %s was asked for %d times", round, path, n)
			}
			delete(want, path)
		}
		if len(want) > 0 || round == 0 && core == 0 || round == 1 && core > 0 {
			t.Errorf("round %d: not tried %v, %d core types tried", round, want, core)
		}
	}
}

// A server that wants to be left alone for an hour, or that says nothing, costs no
// more time than a request may take.
func TestCacheThatTakesLong(t *testing.T) {
	for name, cached := range map[string]http.HandlerFunc{
		"an hour": failure(http.StatusTooManyRequests, "TooManyRequests", `"retryAfterSeconds":3600`),
		"nothing": func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() },
	} {
		t.Run(name, testnet.Bubble(func(t *testing.T) {
			r := &recorder{Server: canned.New(2_000), version: "v1.36.0", cached: cached, timeout: 5 * time.Second}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			snapshot, err := r.reader(t, cluster.Options{PageSize: cluster.AutoPageSize}).Snapshot(ctx, cluster.Scope{})
			if err != nil || !snapshot.Complete() || snapshot.Len() != r.Objects() {
				t.Fatalf("%d objects, want %d; %v, %v", snapshot.Len(), r.Objects(), snapshot.Unlisted(), err)
			}
		}))
	}
}

// A list that has not begun after a quarter of the time that a request may take is read in
// pages, but a long one is waited for: the server makes all of it before it sends any.
func TestCacheThatBeginsLate(t *testing.T) {
	const timeout = 24 * time.Second // of which a loaded machine may need much
	for name, test := range map[string]struct {
		objects int // half of them pods
		begins  bool
		want    []string
	}{
		"a short list": {2_000, false, []string{"all", "1", "500", "rest"}},
		"a long list":  {11_000, true, []string{"all", "1"}},
	} {
		t.Run(name, testnet.Bubble(func(t *testing.T) {
			r := &recorder{Server: canned.New(test.objects), version: "v1.36.0", timeout: timeout}
			r.cached = func(w http.ResponseWriter, request *http.Request) {
				if !strings.HasSuffix(request.URL.Path, "/pods") {
					r.Server.ServeHTTP(w, request)
					return
				}
				// It begins, if at all, a second after its first object was asked for.
				asked := func(context.Context) (bool, error) { return test.begins && r.questions() >= 2, nil }
				if wait.PollUntilContextCancel(request.Context(), 50*time.Millisecond, true, asked) == nil {
					time.Sleep(time.Second)
					r.Server.ServeHTTP(w, request)
				}
			}
			snapshot, err := r.reader(t, cluster.Options{PageSize: cluster.AutoPageSize}).Snapshot(t.Context(), cluster.Scope{})
			if err != nil || !snapshot.Complete() || snapshot.Len() != r.Objects() {
				t.Fatalf("%d objects, want %d; %v, %v", snapshot.Len(), r.Objects(), snapshot.Unlisted(), err)
			}
			if diff := cmp.Diff(test.want, folded(t, r.asked)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}))
	}
}

// A server that takes long to answer even what it knows by heart is asked for more than
// four lists at a time: none of these is answered before five are asked for.
func TestFarServer(t *testing.T) {
	testnet.Bubble(func(t *testing.T) {
		const away, together = 30 * time.Millisecond, 5
		made := canned.New(2_000)
		var lists sync.WaitGroup
		lists.Add(together)
		var asked atomic.Int64
		server := testnet.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			time.Sleep(away)
			if strings.Contains(request.Header.Get("Accept"), "PartialObjectMetadataList") {
				if asked.Add(1) <= together {
					lists.Done()
				}
				lists.Wait()
			}
			made.ServeHTTP(w, request)
		}))
		defer server.Close()
		config, stats := cluster.ReadOnly(&rest.Config{Dial: testnet.Dial, Host: server.URL, Timeout: time.Minute})
		reader, err := cluster.NewReader(t.Context(), config, stats, cluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := reader.Snapshot(t.Context(), cluster.Scope{})
		if err != nil || !snapshot.Complete() || snapshot.Len() != made.Objects() {
			t.Fatalf("%d objects, want %d; %v, %v", snapshot.Len(), made.Objects(), snapshot.Unlisted(), err)
		}
	})(t)
}
