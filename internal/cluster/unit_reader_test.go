// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/testnet"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What could change something does not leave the process.
func TestReadOnlyRefuses(t *testing.T) {
	s := newAPIServer(t)
	config, stats := ReadOnly(&rest.Config{Dial: testnet.Dial, Host: s.URL})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "get"} {
		request, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/api/v1/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "a read command tried to send "+method+" /api/v1/pods") {
			t.Errorf("%s: got error %v", method, err)
		}
	}
	if stats.requests.Load() != 0 || len(s.log) != 0 {
		t.Errorf("%d requests counted, %v received", stats.requests.Load(), s.log)
	}
}

func TestReadOnlyCounts(t *testing.T) {
	s := newAPIServer(t)
	s.raw["/api/v1/version"] = "12345"
	config, stats := ReadOnly(&rest.Config{Dial: testnet.Dial, Host: s.URL})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		response, err := client.Get(s.URL + "/api/v1/version")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil || string(body) != "12345" {
			t.Fatalf("got %s, %v", body, err)
		}
	}
	if got := stats.String(); !strings.HasPrefix(got, "2 requests: 0 discovery, 0 lists in 0 pages, 0 gets, 0 tables; 0.0 kB received; ") {
		t.Errorf("got %s", got)
	}
	if n := stats.bytes.Load(); n != 10 {
		t.Errorf("%d bytes counted", n)
	}
}

// The caller's config stays as it is, and so does a timeout that is in it.
func TestReadOnlyConfig(t *testing.T) {
	original := &rest.Config{}
	if config, _ := ReadOnly(original); config.Timeout != DefaultTimeout || original.Timeout != 0 || original.WrapTransport != nil {
		t.Errorf("timeout %s; the original has %s", config.Timeout, original.Timeout)
	}
	if config, _ := ReadOnly(&rest.Config{Timeout: time.Hour}); config.Timeout != time.Hour {
		t.Errorf("timeout %s", config.Timeout)
	}
}

// deadlines notes requests that have none.
type deadlines struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen int
	none []string
}

func (d *deadlines) RoundTrip(request *http.Request) (*http.Response, error) {
	d.mu.Lock()
	if d.seen++; !hasDeadline(request) {
		d.none = append(d.none, request.Method+" "+request.URL.Path)
	}
	d.mu.Unlock()
	return d.next.RoundTrip(request)
}

func hasDeadline(request *http.Request) bool {
	_, ok := request.Context().Deadline()
	return ok
}

func TestEveryRequestHasADeadline(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		s := newAPIServer(t)
		s.legacy = legacy
		s.add("pods shop/p < example.com/v1:Gizmo:g@g\nnamespaces shop")
		s.on("GET", "/api/v1/configmaps", always, forbidden())
		var d deadlines
		config := &rest.Config{Dial: testnet.Dial, Host: s.URL}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			d.next = next
			return &d
		})
		config, stats := ReadOnly(config)
		r, err := NewReader(t.Context(), config, stats, Options{})
		if err != nil {
			t.Fatal(err)
		}
		snapshot := s.snapshot(r, Scope{})
		o := found(t, snapshot, "p")
		r.Statuses(t.Context(), []*graph.Object{&o})
		r.Facts(t.Context(), &graph.Snapshot{}, []graph.Object{o})
		r.ControllerManagerAlive(t.Context(), time.Now())
		if _, err := r.Page(t.Context(), *o.Resource, "", 1); err != nil {
			t.Error(err)
		}
		if len(d.none) > 0 || d.seen < 10 {
			t.Errorf("%d requests, without a deadline: %s", d.seen, d.none)
		}
	}
}

// A request that takes too long is a failure of what it asked for.
func TestTimeout(t *testing.T) {
	testnet.Bubble(func(t *testing.T) {
		s := newAPIServer(t)
		s.add("pods shop/p < v1:Node:n@n")
		s.on("GET", "/api/v1/configmaps", always, hang)
		s.on("GET", "/api/v1/nodes", always, forbidden())
		s.on("GET", "/api/v1/nodes/n", always, hang)
		config, stats := ReadOnly(&rest.Config{Dial: testnet.Dial, Host: s.URL, Timeout: 200 * time.Millisecond})
		r, err := NewReader(t.Context(), config, stats, Options{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "contents", `Pod/shop/p
			configmaps /: Timeout
			nodes /: Forbidden
			nodes /n: Timeout`, contents(s.snapshot(r, Scope{})))
	})(t)
}

// When no list is answered any more, those that are left are not waited for; while a short
// one is, each gets its time.
func TestSilence(t *testing.T) {
	testnet.Bubble(func(t *testing.T) {
		const types = 40
		for answers, most := range map[bool]int64{true: types, false: mostSilent + listsInFlight} {
			s := newAPIServer(t)
			text := "v1 Namespace namespaces cluster delete list watch get\n"
			var asked atomic.Int64
			for i := range types {
				text += fmt.Sprintf("group%02d.example.com/v1 Thing things cluster delete list watch get\n", i)
				s.on("GET", fmt.Sprintf("/apis/group%02d.example.com/v1/things", i), always, hang)
			}
			s.serve(text)
			if !answers {
				s.on("GET", "/api/v1/namespaces", always, hang)
			}
			// They are counted as they are sent: on a busy machine the time of a request may be over
			// before the server hears of it.
			count := func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(request *http.Request) (*http.Response, error) {
					if strings.HasSuffix(request.URL.Path, "/things") {
						asked.Add(1)
					}
					return next.RoundTrip(request)
				})
			}
			config, stats := ReadOnly(&rest.Config{Dial: testnet.Dial, Host: s.URL, Timeout: 100 * time.Millisecond, WrapTransport: count})
			r, err := NewReader(t.Context(), config, stats, Options{})
			if err != nil {
				t.Fatal(err)
			}
			given := int64(0)
			for _, u := range s.snapshot(r, Scope{}).Unlisted() {
				if u.Reason != graph.Timeout {
					t.Errorf("%s: %s, %s", u.GroupVersionResource, u.Reason, u.Message)
				}
				if strings.Contains(u.Message, "not asked for") {
					given++
				}
			}
			if n := asked.Load(); n > most || answers && (n < types || given > 0) || !answers && given == 0 {
				t.Errorf("the server answers a short list: %t; %d lists were asked for, %d given up", answers, n, given)
			}
		}
	})(t)
}

// Both ways of discovery come to the same: what the garbage collector handles,
// in preferred versions, without events; and mappings of every served version.
func TestDiscovery(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		s := newAPIServer(t)
		s.legacy = legacy
		r := s.reader(Options{})
		var got []string
		for _, resource := range r.Resources() {
			line := resource.String() + " " + resource.Kind
			if resource.Namespaced {
				line += " namespaced"
			}
			got = append(got, line)
		}
		same(t, fmt.Sprintf("legacy %t: types", legacy), `/v1, Resource=configmaps ConfigMap namespaced
			apps/v1, Resource=deployments Deployment namespaced
			example.com/v1beta1, Resource=gizmos Gizmo
			/v1, Resource=namespaces Namespace
			/v1, Resource=nodes Node
			/v1, Resource=pods Pod namespaced
			example.com/v1, Resource=widgets Widget namespaced`, got)
		for _, test := range []struct{ apiVersion, kind, want string }{
			{"v1", "Pod", "/v1, Resource=pods"},
			{"v1", "Event", "/v1, Resource=events"},
			{"example.com/v1beta1", "Widget", "example.com/v1beta1, Resource=widgets"},
			{"metrics.example.com/v1", "Measurement", "metrics.example.com/v1, Resource=measurements"},
			{"example.com/v1", "Gizmo", "error"},
			{"core/v1", "Pod", "error"},
		} {
			gvk := schema.FromAPIVersionAndKind(test.apiVersion, test.kind)
			mapping, err := r.Mapper().RESTMapping(gvk.GroupKind(), gvk.Version)
			got := "error"
			if err == nil {
				got = mapping.Resource.String()
			}
			if got != test.want {
				t.Errorf("legacy %t: %s is %s, %v; want %s", legacy, gvk, got, err, test.want)
			}
			if err == nil && test.apiVersion == "example.com/v1beta1" && r.Resource(mapping).Version != "v1" {
				t.Errorf("legacy %t: the preferred version of %s is %s", legacy, gvk, r.Resource(mapping).Version)
			}
		}
		if requests := len(s.asked("GET", "/api")); legacy != (requests > 2) {
			t.Errorf("legacy %t: %d requests", legacy, requests)
		}
	}
}

// A group whose server is down is missing, and said to be; what it owns is
// undecided, not absent.
func TestDiscoveryFailsPartly(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		s := newAPIServer(t)
		s.legacy, s.failing = legacy, []string{"metrics.example.com/v1", "example.com/v1beta1"}
		s.add(`pods shop/a < metrics.example.com/v1:Measurement:m@m
			pods shop/b < example.com/v1beta1:Gizmo:g@g
			pods shop/c < example.com/v1:Widget:w@w
			pods shop/d < metrics.example.com/v2:Measurement:m@m`)
		r := s.reader(Options{})
		snapshot := s.snapshot(r, Scope{})
		var got []string
		for n := range graph.New(snapshot).Nodes() {
			for _, ref := range n.Owners() {
				got = append(got, fmt.Sprintf("%s: %s %s", n.Identity().Name, ref.State, ref.Reason))
			}
		}
		same(t, fmt.Sprintf("legacy %t: references", legacy), `a: Unknown Unlisted
			b: Unknown Unlisted
			c: Dangling Absent
			d: Unknown Unresolvable`, got)
		same(t, "contents", `Pod/shop/a
			Pod/shop/b
			Pod/shop/c
			Pod/shop/d
			.example.com /: DiscoveryFailed
			.metrics.example.com /: DiscoveryFailed`, contents(snapshot))
	}
}

func TestDiscoveryFails(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(s *apiServer)
		want string
	}{
		{"forbidden", func(s *apiServer) {
			s.on("GET", "/api", always, forbidden())
			s.on("GET", "/apis", always, forbidden())
		}, "asking the server for its types: "},
		{"no API server", func(s *apiServer) {
			s.on("GET", "/api", always, unknownPath)
			s.on("GET", "/apis", always, unknownPath)
		}, "asking the server for its types: "},
		{"nothing that can be listed", func(s *apiServer) {
			s.serve("v1 Binding bindings namespaced create")
		}, "asking the server for its types: it serves none that can be listed"},
		{"unreachable", func(s *apiServer) { s.Close() }, "connect: connection refused"},
	} {
		s := newAPIServer(t)
		test.make(s)
		config, stats := ReadOnly(&rest.Config{Dial: testnet.Dial, Host: s.URL})
		if _, err := NewReader(t.Context(), config, stats, Options{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v", test.name, err)
		}
	}
}

// Ctrl-C ends discovery, although its client knows no context.
func TestDiscoveryIsInterrupted(t *testing.T) {
	s := newAPIServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.on("GET", "/api", always, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	config, stats := ReadOnly(&rest.Config{Dial: testnet.Dial, Host: s.URL})
	if _, err := NewReader(ctx, config, stats, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
}

func TestBadConfig(t *testing.T) {
	config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: "/nonexistent"}}
	if _, err := NewReader(t.Context(), config, &Stats{}, Options{}); err == nil || !strings.HasPrefix(err.Error(), "configuring the client: ") {
		t.Errorf("got error %v", err)
	}
}

const shop = `
	namespaces shop
	namespaces other
	nodes n
	configmaps shop/a < v1:Node:n@n
	configmaps other/b
	pods shop/p < v1:ConfigMap:a@a
	events shop/e < v1:ConfigMap:a@a
	widgets shop/w
	gizmos g`

func TestSnapshot(t *testing.T) {
	for _, test := range []struct {
		name  string
		scope Scope
		make  func(s *apiServer)
		want  string
	}{
		{"of the whole cluster", Scope{}, nil, `ConfigMap/other/b
			ConfigMap/shop/a
			Gizmo/g
			Namespace/other
			Namespace/shop
			Node/n
			Pod/shop/p
			Widget/shop/w`},
		{"of a namespace: its cluster-scoped owners one by one", Scope{Namespace: "shop"}, nil, `ConfigMap/shop/a
			Node/n
			Pod/shop/p
			Widget/shop/w`},
		{"a list is forbidden: the namespaces one by one", Scope{}, func(s *apiServer) {
			s.on("GET", "/api/v1/configmaps", always, forbidden())
		}, `ConfigMap/other/b
			ConfigMap/shop/a
			Gizmo/g
			Namespace/other
			Namespace/shop
			Node/n
			Pod/shop/p
			Widget/shop/w
			configmaps /: Forbidden`},
		{"and in a namespace, too", Scope{}, func(s *apiServer) {
			s.on("GET", "/api/v1/configmaps", always, forbidden())
			s.on("GET", "/api/v1/namespaces/other/configmaps", always, forbidden())
		}, `ConfigMap/shop/a
			Gizmo/g
			Namespace/other
			Namespace/shop
			Node/n
			Pod/shop/p
			Widget/shop/w
			configmaps /: Forbidden
			configmaps other/: Forbidden`},
		{"so is the list of namespaces: the one at hand", Scope{}, func(s *apiServer) {
			s.on("GET", "/api/v1/configmaps", always, forbidden())
			s.on("GET", "/api/v1/namespaces", always, forbidden())
			s.on("GET", "/api/v1/namespaces/shop/configmaps/a", always, unknownPath)
		}, `ConfigMap/other/b
			Gizmo/g
			Node/n
			Pod/shop/p
			Widget/shop/w
			configmaps /: Forbidden
			configmaps shop/a: ServerError
			namespaces /: Forbidden`},
		{"too many namespaces: the one at hand", Scope{}, func(s *apiServer) {
			s.on("GET", "/api/v1/configmaps", always, forbidden())
			for i := range maxFallbackNamespaces - 1 {
				s.add(fmt.Sprintf("namespaces n%d", i))
			}
		}, ""},
		{"a cluster-scoped list is forbidden: nothing takes its place", Scope{}, func(s *apiServer) {
			s.on("GET", "/apis/example.com/v1beta1/gizmos", always, forbidden())
		}, `ConfigMap/other/b
			ConfigMap/shop/a
			Namespace/other
			Namespace/shop
			Node/n
			Pod/shop/p
			Widget/shop/w
			gizmos.example.com /: Forbidden`},
		{"a list in the namespace of the scope is forbidden: nothing either", Scope{Namespace: "shop"}, func(s *apiServer) {
			s.on("GET", "/api/v1/namespaces/shop/pods", always, forbidden())
		}, `ConfigMap/shop/a
			Node/n
			Widget/shop/w
			pods shop/: Forbidden`},
		{"a list fails: nothing takes its place, but owners are found", Scope{}, func(s *apiServer) {
			s.on("GET", "/api/v1/configmaps", always, status(http.StatusInternalServerError, metav1.StatusReasonInternalError))
		}, `ConfigMap/shop/a
			Gizmo/g
			Namespace/other
			Namespace/shop
			Node/n
			Pod/shop/p
			Widget/shop/w
			configmaps /: ServerError`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.add(shop)
			if test.make != nil {
				test.make(s)
			}
			got := contents(s.snapshot(s.reader(Options{Namespace: "other"}), test.scope))
			if test.want != "" {
				same(t, "contents", test.want, got)
			} else {
				same(t, "asked", "/api/v1/namespaces/other/configmaps\n/api/v1/namespaces/shop/configmaps/a", s.asked("GET", "/api/v1/namespaces/"))
			}
		})
	}
}

// Who may not list namespaces sees what is in those that he names.
func TestSnapshotOfNamedNamespace(t *testing.T) {
	s := newAPIServer(t)
	s.add(shop)
	s.on("GET", "/api/v1/configmaps", always, forbidden())
	s.on("GET", "/api/v1/namespaces", always, forbidden())
	named := graph.Object{Resource: &graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}, Name: "shop", UID: "shop"}
	got := strings.Join(contents(s.snapshot(s.reader(Options{Namespace: "other"}), Scope{}, named)), "\n")
	for _, want := range []string{"ConfigMap/other/b", "ConfigMap/shop/a", "configmaps /: Forbidden"} {
		if !strings.Contains(got, want) {
			t.Errorf("without %s: %s", want, got)
		}
	}
}

// What a snapshot says of itself: which lists were complete, and at which
// version.
func TestSnapshotListed(t *testing.T) {
	s := newAPIServer(t)
	s.add(shop)
	s.on("GET", "/api/v1/configmaps", always, forbidden())
	s.on("GET", "/api/v1/namespaces/other/configmaps", always, forbidden())
	snapshot := s.snapshot(s.reader(Options{}), Scope{})
	for resource, want := range map[string]string{
		"pods": "map[:100]", "configmaps": "map[shop:100]", "events": "map[]", "componentstatuses": "map[]",
	} {
		if got := fmt.Sprint(snapshot.Listed(schema.GroupResource{Resource: resource})); got != want {
			t.Errorf("%s listed in %s, want %s", resource, got, want)
		}
	}
}

// Pages are put together; when their token expires the list starts over, and no
// object counts twice.
func TestPages(t *testing.T) {
	for _, test := range []struct {
		name    string
		size    int64
		expires bool
		want    string
	}{
		{"all at once", 0, false, "/api/v1/configmaps"},
		{"in pages", 2, false, `/api/v1/configmaps?limit=2
			/api/v1/configmaps?continue=2&limit=2
			/api/v1/configmaps?continue=4&limit=2`},
		{"in one page that is not full", 50, false, "/api/v1/configmaps?limit=50"},
		{"the token expires", 2, true, `/api/v1/configmaps?limit=2
			/api/v1/configmaps?continue=2&limit=2
			/api/v1/configmaps`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newAPIServer(t)
			for i := range 5 {
				s.add(fmt.Sprintf("configmaps shop/c%d", i))
			}
			if test.expires {
				var pages int
				s.on("GET", "/api/v1/configmaps", always, func(w http.ResponseWriter, r *http.Request) {
					if pages++; pages == 2 {
						s.remove("c0")
						status(http.StatusGone, metav1.StatusReasonExpired)(w, r)
						return
					}
					s.get(w, r)
				})
			}
			var progress *Progress
			var before, after [3]int // objects, lists that are done, lists
			look := func() (at [3]int) {
				at[0] = progress.Objects()
				at[1], at[2] = progress.Lists()
				return at
			}
			reading := func(p *Progress) func() {
				progress = p
				before = look()
				return func() { after = look() }
			}
			snapshot := s.snapshot(s.reader(Options{PageSize: test.size, Reading: reading}), Scope{})
			if objects := snapshot.Len(); before[0] != 0 || before[1] != 0 || after != [3]int{objects, before[2], before[2]} || progress.Resource() == "" {
				t.Errorf("progress from %v to %v, at last of %q; there are %d objects", before, after, progress.Resource(), objects)
			}
			same(t, "requests", test.want, s.asked("GET", "/api/v1/configmaps"))
			want := "c0 c1 c2 c3 c4"
			if test.expires {
				want = "c1 c2 c3 c4"
			}
			var got []string
			for o := range snapshot.Objects() {
				got = append(got, o.Name)
			}
			if strings.Join(got, " ") != want || !snapshot.Complete() {
				t.Errorf("got %s, complete %t", got, snapshot.Complete())
			}
		})
	}
}

// Many owners of one type are read from one list, which proves absent what it does not have; by a GET each when it cannot be read, or has
// too many others.
func TestManyUndecidedOwners(t *testing.T) {
	const many = fewSingles + 10
	for _, test := range []struct {
		name   string
		others int
		make   func(s *apiServer)
		gets   int
	}{
		{"from a list", 0, nil, 0},
		{"the list has too many others", perSingle*many + 1, nil, many},
		{"the list is forbidden", 0, func(s *apiServer) { s.on("GET", "/api/v1/nodes", always, forbidden()) }, many},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newAPIServer(t)
			for i := range many {
				s.add(fmt.Sprintf("configmaps shop/c%d < v1:Node:n%d@n%d", i, i, i))
				if i != 3 {
					s.add(fmt.Sprintf("nodes n%d", i))
				}
			}
			s.add("configmaps shop/odd < v1:Node:n/status@x")
			for i := range test.others {
				s.add(fmt.Sprintf("nodes other%d", i))
			}
			if test.make != nil {
				test.make(s)
			}
			snapshot := s.snapshot(s.reader(Options{}), Scope{Namespace: "shop"})
			for n := range graph.New(snapshot).Nodes() {
				for _, ref := range n.Owners() {
					want := graph.Solid
					switch n.Name() {
					case "c3":
						want = graph.Dangling
					case "odd":
						want = graph.Unknown
					}
					if ref.State != want {
						t.Errorf("%s: %s %s, want %s", n.Name(), ref.State, ref.Reason, want)
					}
				}
			}
			if objects := snapshot.Len(); objects != 2*many {
				t.Errorf("%d objects, want %d", objects, 2*many)
			}
			gets := 0
			for _, path := range s.asked("GET", "/api/v1/nodes") {
				if placeOf(path).name != "" {
					gets++
				}
			}
			if gets != test.gets {
				t.Errorf("%d GETs of owners, want %d", gets, test.gets)
			}
		})
	}
}

// Owners that the lists leave open are read by one GET each, and theirs in turn.
func TestUndecidedOwners(t *testing.T) {
	for _, test := range []struct {
		name, objects string
		make          func(s *apiServer)
		want, asked   string
	}{
		{
			name: "a chain",
			objects: `configmaps shop/a < v1:Node:n@n
				configmaps shop/b < v1:Node:n@n
				nodes n < example.com/v1beta1:Gizmo:g@g
				gizmos g < v1:Namespace:shop@shop
				namespaces shop`,
			want:  "a: Solid, b: Solid, g: Solid, n: Solid",
			asked: "/api/v1/nodes/n\n/apis/example.com/v1beta1/gizmos/g\n/api/v1/namespaces/shop",
		},
		{
			name: "a circle",
			objects: `configmaps shop/a < v1:Node:n@n
				nodes n < example.com/v1beta1:Gizmo:g@g
				gizmos g < v1:Node:n@n`,
			want:  "a: Solid, g: Solid, n: Solid",
			asked: "/api/v1/nodes/n\n/apis/example.com/v1beta1/gizmos/g",
		},
		{
			name:    "a 404 that names the object: absent",
			objects: "configmaps shop/a < v1:Node:n@n",
			want:    "a: Dangling Absent",
			asked:   "/api/v1/nodes/n",
		},
		{
			name:    "a 404 that does not: unknown",
			objects: "configmaps shop/a < v1:Node:n@n\nnodes n",
			make:    func(s *apiServer) { s.on("GET", "/api/v1/nodes/n", always, unknownPath) },
			want:    "a: Unknown Unlisted",
			asked:   "/api/v1/nodes/n",
		},
		{
			name:    "forbidden: unknown, and asked once",
			objects: "configmaps shop/a < v1:Node:n@n\nconfigmaps shop/b < v1:Node:n@n",
			make:    func(s *apiServer) { s.on("GET", "/api/v1/nodes/n", always, forbidden()) },
			want:    "a: Unknown Unlisted, b: Unknown Unlisted",
			asked:   "/api/v1/nodes/n",
		},
		{
			name:    "another object of that name",
			objects: "configmaps shop/a < v1:Node:n@n\nnodes n uid=m",
			want:    "a: Dangling UIDMismatch",
			asked:   "/api/v1/nodes/n",
		},
		{
			name:    "a type that cannot be listed",
			objects: "configmaps shop/a < metrics.example.com/v1:Measurement:m@m\nmeasurements shop/m",
			want:    "a: Solid",
			asked:   "/apis/metrics.example.com/v1/namespaces/shop/measurements/m",
		},
		{
			name:    "names that are no path segments are not sent, and prove nothing",
			objects: "configmaps shop/a < v1:Node:n/status@n v1:Node:..@o v1:Node:.@p v1:ConfigMap:a%2fb@q",
			want:    "a: Unknown InvalidName Unknown InvalidName Unknown InvalidName Unknown InvalidName",
		},
		{
			name:    "listed: not asked",
			objects: "configmaps shop/a < v1:ConfigMap:b@b v1:ConfigMap:c@c\nconfigmaps shop/b",
			want:    "a: Solid Dangling Absent",
		},
		{
			name:    "not served: not asked",
			objects: "configmaps shop/a < example.com/v9:Gizmo:b@b",
			want:    "a: Unknown Unresolvable",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.add(test.objects)
			if test.make != nil {
				test.make(s)
			}
			snapshot := s.snapshot(s.reader(Options{}), Scope{Namespace: "shop"})
			var got []string
			for n := range graph.New(snapshot).Nodes() {
				line := n.Identity().Name + ":"
				for _, ref := range n.Owners() {
					line = strings.TrimSpace(line + " " + ref.State.String() + " " + ref.Reason.String())
				}
				if len(n.Owners()) > 0 {
					got = append(got, line)
				}
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("got %s, want %s", strings.Join(got, ", "), test.want)
			}
			var asked []string
			for _, path := range s.asked("GET", "/api") {
				if path != "/api" && path != "/apis" && placeOf(path).name != "" {
					asked = append(asked, path)
				}
			}
			same(t, "asked", test.asked, asked)
		})
	}
}

// A reference may state any served version; the object is the same.
func TestStatedVersion(t *testing.T) {
	s := newAPIServer(t)
	s.add("configmaps shop/a < example.com/v1beta1:Widget:w@w\nwidgets shop/w")
	s.on("GET", "/apis/example.com/v1/namespaces/shop/widgets", always, forbidden())
	snapshot := s.snapshot(s.reader(Options{}), Scope{Namespace: "shop"})
	if o := found(t, snapshot, "w"); o.Resource.Version != "v1" {
		t.Errorf("got version %s", o.Resource.Version)
	}
	same(t, "asked", "/apis/example.com/v1beta1/namespaces/shop/widgets/w", s.asked("GET", "/apis/example.com/v1beta1"))
}

// Extra objects are added unless a list has them.
func TestExtraObjects(t *testing.T) {
	s := newAPIServer(t)
	s.add("configmaps shop/a rv=7\nevents shop/e < v1:Node:n@n\nnodes n")
	r := s.reader(Options{})
	event := graph.NewObject(&graph.Resource{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "events"}, Kind: "Event", Namespaced: true,
	}, &s.objects[1].PartialObjectMetadata)
	old := graph.NewObject(r.Resources()[0], &s.objects[0].PartialObjectMetadata)
	old.ResourceVersion = "6"
	snapshot, err := r.Snapshot(within(t), Scope{Namespace: "shop"}, event, old)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "contents", `ConfigMap/shop/a
		Event/shop/e
		Node/n`, contents(snapshot))
	if o := found(t, snapshot, "a"); o.ResourceVersion != "7" {
		t.Errorf("the listed object was replaced by version %s", o.ResourceVersion)
	}
}

func TestSnapshotIsInterrupted(t *testing.T) {
	s := newAPIServer(t)
	s.add(shop)
	r := s.reader(Options{})
	ctx, cancel := context.WithCancel(t.Context())
	s.on("GET", "/api/v1/pods", always, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if snapshot, err := r.Snapshot(ctx, Scope{}); !errors.Is(err, context.Canceled) || snapshot.Complete() {
		t.Errorf("got error %v", err)
	}
}

// Four lists are in flight at a time, and eight GETs.
func TestReadsInFlight(t *testing.T) {
	s := newAPIServer(t)
	for i := range fewSingles {
		s.add(fmt.Sprintf("configmaps shop/c%d < v1:Node:n%d@n%d", i, i, i))
	}
	var mu sync.Mutex
	inFlight, most := map[string]int{}, map[string]int{}
	count := func(kind string, n int) {
		mu.Lock()
		defer mu.Unlock()
		inFlight[kind] += n
		most[kind] = max(most[kind], inFlight[kind])
	}
	config := &rest.Config{Dial: testnet.Dial, Host: s.URL}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			kind := "list"
			if p := strings.Count(r.URL.Path, "/"); p < 3 {
				kind = "discovery"
			} else if placeOf(r.URL.Path).name != "" {
				kind = "get"
			}
			count(kind, 1)
			defer count(kind, -1)
			return next.RoundTrip(r)
		})
	})
	config, stats := ReadOnly(config)
	r, err := NewReader(t.Context(), config, stats, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.snapshot(r, Scope{Namespace: "shop"})
	if most["list"] > listsInFlight || most["get"] > getsInFlight || most["get"] == 0 {
		t.Errorf("in flight at most: %v", most)
	}
	if got := r.Stats().String(); !strings.Contains(got, fmt.Sprintf("2 discovery, 4 lists in 4 pages, %d gets, 0 tables; ", fewSingles)) {
		t.Errorf("counted %s", got)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestGet(t *testing.T) {
	s := newAPIServer(t)
	s.add("configmaps shop/a rv=5 finalizers=x,y < v1:Node:n@n")
	r := s.reader(Options{})
	configmaps := *r.Resources()[0]
	o, err := r.Get(t.Context(), configmaps, "shop", "a")
	if err != nil || o.UID != "a" || o.ResourceVersion != "5" || len(o.Finalizers) != 2 || len(o.OwnerReferences) != 1 || o.Resource != r.Resources()[0] {
		t.Errorf("got %+v, %v", o, err)
	}
	for name, check := range map[string]func(error) bool{
		"nobody": answer.NoObject, "..": apierrors.IsBadRequest, "a/b": apierrors.IsBadRequest, "a%20": apierrors.IsBadRequest, "": apierrors.IsBadRequest,
	} {
		before := len(s.log)
		if _, err := r.Get(t.Context(), configmaps, "shop", name); !check(err) || apierrors.IsNotFound(err) != (name == "nobody") {
			t.Errorf("%s: getting it: %v", name, err)
		}
		if _, err := r.Read(t.Context(), configmaps.GroupVersionResource, "shop", name); !check(err) || apierrors.IsNotFound(err) != (name == "nobody") {
			t.Errorf("%s: reading it: %v", name, err)
		}
		if sent := len(s.log) > before; sent != (name == "nobody") {
			t.Errorf("%s: a request was sent: %t", name, sent)
		}
	}
}

// A type that discovery did not show stays as it was asked for; a group version
// that is none is skipped.
func TestUnknownTypes(t *testing.T) {
	s := newAPIServer(t)
	s.serve("v1 ConfigMap configmaps namespaced delete list watch get\nlost.example.com/v1 Thing things cluster delete list watch get")
	s.failing = []string{"lost.example.com/v1"}
	s.add("things t")
	r := s.reader(Options{})
	thing := graph.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "lost.example.com", Version: "v1", Resource: "things"}, Kind: "Thing"}
	if o, err := r.Get(t.Context(), thing, "", "t"); err != nil || *o.Resource != thing {
		t.Errorf("got %+v, %v", o, err)
	}
	r.catalog.add(&metav1.APIResourceList{GroupVersion: "a/b/c", APIResources: []metav1.APIResource{{Name: "things", Verbs: []string{"delete", "list", "watch"}}}})
	if n := len(r.Resources()); n != 1 {
		t.Errorf("%d types", n)
	}
}

// Who asks for discovery gets what this run was told, without another request.
func TestDiscoveryIsKept(t *testing.T) {
	s := newAPIServer(t)
	r := s.reader(Options{})
	before := len(s.log)
	if groups, err := r.Discovery().ServerGroups(); err != nil || len(groups.Groups) != 6 {
		t.Errorf("got %v, %v", groups, err)
	}
	if len(s.log) != before {
		t.Errorf("asked %v", s.log[before:])
	}
}

func TestPage(t *testing.T) {
	s := newAPIServer(t)
	s.add(shop)
	r := s.reader(Options{})
	objects, err := r.Page(t.Context(), *r.Resources()[0], "", 1)
	if err != nil || len(objects) != 1 || objects[0].Resource != r.Resources()[0] {
		t.Errorf("got %v, %v", objects, err)
	}
	s.on("GET", "/api/v1/namespaces/shop/configmaps", always, forbidden())
	if _, err := r.Page(t.Context(), *r.Resources()[0], "shop", 1); !apierrors.IsForbidden(err) {
		t.Errorf("got error %v", err)
	}
}

func TestUnlistedReason(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	for _, test := range []struct {
		err  error
		want graph.UnlistedReason
	}{
		{apierrors.NewForbidden(resource, "p", nil), graph.Forbidden},
		{apierrors.NewUnauthorized("who?"), graph.Forbidden},
		{apierrors.NewTimeoutError("slow", 1), graph.Timeout},
		{fmt.Errorf("listing: %w", context.DeadlineExceeded), graph.Timeout},
		{apierrors.NewInternalError(errors.New("broken")), graph.ServerError},
		{errors.New("connection refused"), graph.ServerError},
	} {
		if got := unlistedReason(test.err); got != test.want {
			t.Errorf("%v: got %s, want %s", test.err, got, test.want)
		}
	}
}
