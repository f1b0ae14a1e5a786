// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/testnet"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// usualTypes are what an apiServer serves: apiVersion, kind, resource, scope and
// verbs. The first version of a group is its preferred one.
const usualTypes = `
	v1                     Namespace                 namespaces                 cluster     delete list watch get
	v1                     Node                      nodes                      cluster     delete list watch get
	v1                     ConfigMap                 configmaps                 namespaced  delete list watch get
	v1                     Pod                       pods                       namespaced  delete list watch get
	v1                     Event                     events                     namespaced  delete list watch get
	v1                     Binding                   bindings                   namespaced  create
	v1                     ComponentStatus           componentstatuses          cluster     list get
	apps/v1                Deployment                deployments                namespaced  delete list watch get
	events.k8s.io/v1       Event                     events                     namespaced  delete list watch get
	example.com/v1         Widget                    widgets                    namespaced  delete list watch get
	example.com/v1beta1    Widget                    widgets                    namespaced  delete list watch get
	example.com/v1beta1    Gizmo                     gizmos                     cluster     delete list watch get
	metrics.example.com/v1 Measurement               measurements               namespaced  list get
	apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions  cluster     get`

// apiServer is as much of an API server as a Reader and a Server ask for. What
// it does otherwise is up to the test.
type apiServer struct {
	stats Stats // of dry runs
	*httptest.Server
	t *testing.T

	// legacy: it knows no aggregated discovery.
	legacy bool
	types  []servedType
	// failing are the group versions whose discovery fails.
	failing []string

	mu      sync.Mutex
	objects []*object
	// raw holds bodies of GETs that are not for metadata, by path.
	raw   map[string]string
	rules []*rule
	// streams holds what the watches of a path send, one after the other.
	streams map[string][]string
	log     []request
}

type servedType struct {
	schema.GroupVersion
	kind, resource string
	namespaced     bool
	verbs          []string
}

// object is one object under the path of its type.
type object struct {
	metav1.PartialObjectMetadata
	served servedType
}

// rule answers some requests out of turn.
type rule struct {
	method, path string
	times        int // how often; always when it is negative
	answer       http.HandlerFunc
}

type request struct {
	method, path, query, contentType, accept, body, agent string
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{t: t, raw: map[string]string{}, streams: map[string][]string{}}
	s.serve(usualTypes)
	s.Server = testnet.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *apiServer) serve(text string) {
	s.types = nil
	for _, line := range nonEmpty(text) {
		f := strings.Fields(line)
		gv, err := schema.ParseGroupVersion(f[0])
		if err != nil {
			s.t.Fatal(err)
		}
		s.types = append(s.types, servedType{gv, f[1], f[2], f[3] == "namespaced", f[4:]})
	}
}

func nonEmpty(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// add adds objects, or replaces those with the same coordinates. One a line:
//
//	resource[.version] [namespace/]name [uid=u] [rv=5] [finalizers=a,b] [deleting=TIME] [grace=30] [< owner ...]
//
// An owner is apiVersion:kind:name@uid. The UID is the name unless given.
func (s *apiServer) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range nonEmpty(text) {
		o := s.parse(line)
		s.objects = slices.DeleteFunc(s.objects, func(other *object) bool {
			return other.served.resource == o.served.resource && other.Namespace == o.Namespace && other.Name == o.Name
		})
		s.objects = append(s.objects, o)
	}
}

func (s *apiServer) remove(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = slices.DeleteFunc(s.objects, func(o *object) bool { return string(o.UID) == uid })
}

func (s *apiServer) parse(line string) *object {
	line, owners, _ := strings.Cut(line, " <")
	f := strings.Fields(line)
	resource, version, _ := strings.Cut(f[0], ".")
	o := &object{}
	for _, r := range s.types {
		if r.resource == resource && (version == "" || version == r.Version) && (o.served.kind == "" || version != "") {
			o.served = r
		}
	}
	if o.served.kind == "" {
		s.t.Fatalf("what is %s?", f[0])
	}
	o.APIVersion, o.Kind = o.served.String(), o.served.kind
	namespace, name, namespaced := strings.Cut(f[1], "/")
	if !namespaced {
		namespace, name = "", namespace
	}
	o.Namespace, o.Name, o.UID, o.ResourceVersion = namespace, name, types.UID(name), "1"
	for _, field := range f[2:] {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "uid":
			o.UID = types.UID(value)
		case "rv":
			o.ResourceVersion = value
		case "finalizers":
			o.Finalizers = strings.Split(value, ",")
		case "deleting":
			at, err := time.Parse(time.RFC3339, value)
			if err != nil {
				s.t.Fatal(err)
			}
			o.DeletionTimestamp = &metav1.Time{Time: at}
		case "grace":
			seconds, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			o.DeletionGracePeriodSeconds = &seconds
		default:
			s.t.Fatalf("%s: what is %s?", line, field)
		}
	}
	for _, owner := range strings.Fields(owners) {
		owner, uid, _ := strings.Cut(owner, "@")
		part := strings.Split(owner, ":")
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
			APIVersion: part[0], Kind: part[1], Name: part[2], UID: types.UID(uid),
		})
	}
	return o
}

// on answers a request out of turn: once, or as often as times says, always if
// that is negative.
func (s *apiServer) on(method, path string, times int, answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, &rule{method, path, times, answer})
}

const always = -1

// unserve takes a resource out of what the server says that it serves.
func (s *apiServer) unserve(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.types = slices.DeleteFunc(slices.Clone(s.types), func(t servedType) bool { return t.resource == resource })
}

// status answers with a metav1.Status, whose details name what is at the path.
func status(code int, reason metav1.StatusReason, causes ...metav1.StatusCause) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		segments := strings.Split(r.URL.Path, "/")
		details := &metav1.StatusDetails{Name: segments[len(segments)-1], Kind: segments[len(segments)-2], Causes: causes}
		if len(segments) > 2 && segments[1] == "apis" {
			details.Group = segments[2]
		}
		writeJSON(w, code, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Reason: reason, Code: int32(code), Message: strings.ToLower(string(reason)), Details: details,
		})
	}
}

func forbidden() http.HandlerFunc { return status(http.StatusForbidden, metav1.StatusReasonForbidden) }

// unknownPath is what an API server says to a path of no type, or a proxy to
// anything.
func unknownPath(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "404 page not found", http.StatusNotFound)
}

// hang answers when the client has given up.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// cutOff breaks the connection off.
func cutOff(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.log = append(s.log, request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Content-Type"), r.Header.Get("Accept"), string(body), r.UserAgent()})
	answer := s.rule(r)
	s.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r)
	case r.URL.Path == "/api" || r.URL.Path == "/apis":
		s.discovery(w, r)
	case r.URL.Query().Has("watch"):
		s.watch(w, r)
	case r.Method == http.MethodGet:
		s.get(w, r)
	case r.Method == http.MethodDelete:
		writeJSON(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
	case r.Method == http.MethodPatch:
		s.patched(w, r)
	default:
		http.Error(w, "not here", http.StatusMethodNotAllowed)
	}
}

func (s *apiServer) rule(r *http.Request) http.HandlerFunc {
	for _, rule := range s.rules {
		method := r.Method
		if r.URL.Query().Has("watch") {
			method = "WATCH"
		}
		if rule.method == method && rule.path == r.URL.Path && rule.times != 0 {
			rule.times--
			return rule.answer
		}
	}
	return nil
}

// discovery answers /api and /apis.
func (s *apiServer) discovery(w http.ResponseWriter, r *http.Request) {
	core := r.URL.Path == "/api"
	if s.legacy {
		s.legacyDiscovery(w, core)
		return
	}
	list := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	for _, t := range s.types {
		if (t.Group == "") != core {
			continue
		}
		i := slices.IndexFunc(list.Items, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == t.Group })
		if i < 0 {
			i = len(list.Items)
			list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: t.Group}})
		}
		group := &list.Items[i]
		j := slices.IndexFunc(group.Versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == t.Version })
		if j < 0 {
			j = len(group.Versions)
			version := apidiscovery.APIVersionDiscovery{Version: t.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
			if slices.Contains(s.failing, t.String()) {
				version.Freshness = apidiscovery.DiscoveryFreshnessStale
			}
			group.Versions = append(group.Versions, version)
		}
		scope := apidiscovery.ScopeCluster
		if t.namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		if group.Versions[j].Freshness == apidiscovery.DiscoveryFreshnessCurrent {
			group.Versions[j].Resources = append(group.Versions[j].Resources, apidiscovery.APIResourceDiscovery{
				Resource: t.resource, ResponseKind: &metav1.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.kind},
				Scope: scope, SingularResource: strings.ToLower(t.kind), Verbs: t.verbs,
				Subresources: []apidiscovery.APISubresourceDiscovery{{
					Subresource: "status", ResponseKind: &metav1.GroupVersionKind{Kind: t.kind}, Verbs: []string{"delete", "list", "watch"},
				}},
			})
		}
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_ = json.NewEncoder(w).Encode(list)
}

func (s *apiServer) legacyDiscovery(w http.ResponseWriter, core bool) {
	if core {
		writeJSON(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		return
	}
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, t := range s.types {
		if t.Group == "" {
			continue
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: t.String(), Version: t.Version}
		i := slices.IndexFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == t.Group })
		if i < 0 {
			i = len(list.Groups)
			list.Groups = append(list.Groups, metav1.APIGroup{Name: t.Group, PreferredVersion: version})
		}
		if !slices.Contains(list.Groups[i].Versions, version) {
			list.Groups[i].Versions = append(list.Groups[i].Versions, version)
		}
	}
	writeJSON(w, http.StatusOK, list)
}

// legacyVersion answers the discovery of one group version.
func (s *apiServer) legacyVersion(w http.ResponseWriter, gv string) {
	if slices.Contains(s.failing, gv) {
		http.Error(w, "its server is down", http.StatusServiceUnavailable)
		return
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv}
	for _, t := range s.types {
		if t.String() == gv {
			list.APIResources = append(list.APIResources,
				metav1.APIResource{Name: t.resource, Kind: t.kind, Namespaced: t.namespaced, Verbs: t.verbs},
				metav1.APIResource{Name: t.resource + "/status", Kind: t.kind, Namespaced: t.namespaced, Verbs: []string{"delete", "list", "watch"}})
		}
	}
	writeJSON(w, http.StatusOK, list)
}

// place is what a path names.
type place struct {
	schema.GroupVersion
	namespace, resource, name string
}

func placeOf(path string) place {
	f := strings.Split(strings.Trim(path, "/"), "/")
	var p place
	if f[0] == "api" {
		p.Version, f = f[1], f[2:]
	} else {
		p.Group, p.Version, f = f[1], f[2], f[3:]
	}
	if len(f) > 2 && f[0] == "namespaces" {
		p.namespace, f = f[1], f[2:]
	}
	if f = append(f, "", ""); f[0] != "" {
		p.resource, p.name = f[0], f[1]
	}
	return p
}

// get answers a GET of an object or a list.
func (s *apiServer) get(w http.ResponseWriter, r *http.Request) {
	if f := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); len(f) == 2 && f[0] == "api" || len(f) == 3 && f[0] == "apis" {
		s.legacyVersion(w, strings.Join(f[1:], "/"))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := placeOf(r.URL.Path)
	if body, ok := s.raw[r.URL.Path]; ok && !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
		return
	}
	if p.name == "" {
		s.list(w, r, p)
		return
	}
	for _, o := range s.objects {
		if s.is(o, p) && o.Name == p.name && o.Namespace == p.namespace {
			writeJSON(w, http.StatusOK, partial(o))
			return
		}
	}
	status(http.StatusNotFound, metav1.StatusReasonNotFound)(w, r)
}

// is reports whether an object is served at the place's type and namespace.
func (s *apiServer) is(o *object, p place) bool {
	return o.served.Group == p.Group && o.served.resource == p.resource && (p.namespace == "" || p.namespace == o.Namespace)
}

func partial(o *object) metav1.PartialObjectMetadata {
	result := o.PartialObjectMetadata
	result.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}
	return result
}

// list answers a list, in pages if asked for. Its version is 100.
func (s *apiServer) list(w http.ResponseWriter, r *http.Request, p place) {
	list := metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: "100"},
	}
	for _, o := range s.objects {
		if s.is(o, p) {
			list.Items = append(list.Items, partial(o))
		}
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	list.Items = list.Items[from:]
	if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 && limit < len(list.Items) {
		left := int64(len(list.Items) - limit)
		list.Items, list.Continue, list.RemainingItemCount = list.Items[:limit], strconv.Itoa(from+limit), &left
	}
	writeJSON(w, http.StatusOK, list)
}

// patched answers a PATCH with the object, in its next version.
func (s *apiServer) patched(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := placeOf(r.URL.Path)
	for _, o := range s.objects {
		if s.is(o, p) && o.Name == p.name && o.Namespace == p.namespace {
			o.ResourceVersion += "0"
			writeJSON(w, http.StatusOK, partial(o))
			return
		}
	}
	status(http.StatusNotFound, metav1.StatusReasonNotFound)(w, r)
}

// watch sends the next stream of the path, one event a line:
//
//	ADDED OBJECT, MODIFIED OBJECT, DELETED OBJECT
//	BOOKMARK VERSION
//	ERROR CODE
//	hold
//
// The stream ends behind the last line; hold keeps it open. Without a stream
// nothing happens.
func (s *apiServer) watch(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	stream := "hold"
	if streams := s.streams[r.URL.Path]; len(streams) > 0 {
		stream, s.streams[r.URL.Path] = streams[0], streams[1:]
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for _, line := range nonEmpty(stream) {
		kind, text, _ := strings.Cut(line, " ")
		var event any
		switch kind {
		case "hold":
			<-r.Context().Done()
			return
		case "BOOKMARK":
			event = metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"},
				ObjectMeta: metav1.ObjectMeta{ResourceVersion: text},
			}
		case "ERROR":
			code, _ := strconv.Atoi(text)
			reason := map[int]metav1.StatusReason{410: metav1.StatusReasonExpired, 500: metav1.StatusReasonInternalError}[code]
			event = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason}
		default:
			event = partial(s.parse(text))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": event})
		w.(http.Flusher).Flush()
	}
}

// asked returns the requests with the method whose path has the prefix, without
// the timeout that the server is told.
func (s *apiServer) asked(method, prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, r := range s.log {
		if r.method == method && strings.HasPrefix(r.path, prefix) {
			query := slices.DeleteFunc(strings.Split(r.query, "&"), func(p string) bool { return strings.HasPrefix(p, "timeout=") })
			lines = append(lines, strings.TrimSuffix(r.path+"?"+strings.Join(query, "&"), "?"))
		}
	}
	return lines
}

// reader connects a Reader.
func (s *apiServer) reader(options Options) *Reader {
	s.t.Helper()
	config, stats := ReadOnly(&rest.Config{Dial: testnet.Dial, Host: s.URL})
	r, err := NewReader(s.t.Context(), config, stats, options)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// writer connects a Server. It settles after an hour unless told otherwise, so
// that it never does by accident.
func (s *apiServer) writer(config rest.Config, options ServerOptions) *Server {
	s.t.Helper()
	if options.Settle == 0 {
		options.Settle = time.Hour
	}
	config.Host = s.URL
	if config.Dial == nil {
		config.Dial = testnet.Dial
	}
	server, err := NewServer(s.reader(Options{}), &config, options)
	if err != nil {
		s.t.Fatal(err)
	}
	return server
}

// snapshot reads everything.
func (s *apiServer) snapshot(r *Reader, scope Scope, extra ...graph.Object) *graph.Snapshot {
	s.t.Helper()
	snapshot, err := r.Snapshot(within(s.t), scope, extra...)
	if err != nil {
		s.t.Fatal(err)
	}
	return snapshot
}

// within returns a context that ends a test that hangs.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// found returns the object of a snapshot, which must be there.
func found(t *testing.T, s *graph.Snapshot, uid string) graph.Object {
	t.Helper()
	o, ok := s.Object(types.UID(uid))
	if !ok {
		t.Fatalf("no object has the UID %s", uid)
	}
	return o
}

// contents returns what a snapshot holds and what it could not read.
func contents(s *graph.Snapshot) []string {
	var lines []string
	for o := range s.Objects() {
		lines = append(lines, o.Identity().String())
	}
	slices.Sort(lines)
	for _, u := range s.Unlisted() {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s/%s: %s", u.GroupResource(), u.Namespace, u.Name, u.Reason)))
	}
	return lines
}

func same(t *testing.T, what string, want string, got []string) {
	t.Helper()
	if diff := cmp.Diff(nonEmpty(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func formatEvents(events []gc.Event) []string {
	var lines []string
	for _, e := range events {
		line := e.Object.Identity().String() + "@" + e.Object.ResourceVersion
		switch {
		case e.Removed:
			line = "removed " + line
		case e.Lost:
			line = "lost " + line
		}
		lines = append(lines, line)
	}
	return lines
}
