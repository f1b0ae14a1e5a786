// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/testnet"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// inProtobuf lets an apiServer answer lists of metadata in protobuf to who
// accepts it, as real ones do, and add annotations and managed fields.
func inProtobuf(s *apiServer) {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		s.t.Fatal(err)
	}
	codec := protobuf.NewSerializer(scheme, scheme)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		s.ServeHTTP(recorder, r)
		var list metav1.PartialObjectMetadataList
		answer := recorder.Body.Bytes()
		if strings.HasPrefix(r.Header.Get("Accept"), "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;") &&
			json.Unmarshal(answer, &list) == nil && list.Kind == "PartialObjectMetadataList" {
			for i := range list.Items {
				list.Items[i].Annotations = map[string]string{"note": strings.Repeat("x", 100_000*(i%2))}
				list.Items[i].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: &metav1.FieldsV1{Raw: []byte("{}")}}}
			}
			var body bytes.Buffer
			if err := codec.Encode(&list, &body); err != nil {
				s.t.Error(err)
			}
			recorder.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			answer = body.Bytes()
		}
		for key, values := range recorder.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(answer)
	})
}

const manyObjects = `
	namespaces shop rv=3
	namespaces other rv=4 deleting=2024-05-06T07:08:09Z finalizers=example.com/hold
	nodes n rv=5
	configmaps shop/a uid=c1b7c9a0-3a52-4a3c-8f8e-2f3f4d5e6a7b rv=6 < v1:Node:n@n v1:ConfigMap:gone@01b7c9a0-3a52-4a3c-8f8e-2f3f4d5e6a7b
	configmaps shop/b rv=7 finalizers=x,foregroundDeletion deleting=2024-05-06T07:08:09Z
	configmaps other/b uid=b2 rv=8 < v1:ConfigMap:b@b
	pods shop/p rv=9 grace=30 deleting=2024-05-06T07:08:09Z < v1:ConfigMap:b@b
	widgets shop/w rv=10 < example.com/v1beta1:Widget:w@w`

// What a Reader makes of protobuf, of JSON, of pages and of one piece is the
// same, and is what client-go's metadata client returns.
func TestEncodingsAreEqual(t *testing.T) {
	for _, size := range []int64{0, 1, 2, 500} {
		s := newAPIServer(t)
		s.add(manyObjects)
		plain := s.snapshot(s.reader(Options{PageSize: size}), Scope{})
		inProtobuf(s)
		r := s.reader(Options{PageSize: size})
		binary := s.snapshot(r, Scope{})
		if diff := cmp.Diff(slices.Collect(plain.Objects()), slices.Collect(binary.Objects())); diff != "" {
			t.Errorf("page size %d (-JSON +protobuf):\n%s", size, diff)
		}
		i := 0
		var want []graph.Object
		for _, resource := range r.Resources() {
			list, err := r.client(resource, "").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				want = append(want, graph.NewObject(resource, &list.Items[i]))
			}
		}
		for o := range binary.Objects() {
			if diff := cmp.Diff(want[i], o); diff != "" {
				t.Errorf("page size %d: object %d (-client-go +got):\n%s", size, i, diff)
			}
			i++
		}
		if i != len(want) || !binary.Complete() {
			t.Errorf("page size %d: %d objects, want %d; not read: %v", size, i, len(want), binary.Unlisted())
		}
	}
}

// Old aggregated servers send whole objects where metadata was asked for.
func TestWholeObjectsAreRead(t *testing.T) {
	s := newAPIServer(t)
	s.on("GET", "/apis/example.com/v1/widgets", always, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind": "WidgetList", "apiVersion": "example.com/v1", "metadata": {"resourceVersion": "5"},
			"items": [{"kind": "Widget", "metadata": {"name": "w", "namespace": "shop", "uid": "w"}, "spec": {"metadata": 1}}]}`)
	})
	snapshot := s.snapshot(s.reader(Options{}), Scope{})
	if o := found(t, snapshot, "w"); o.Name != "w" || o.Namespace != "shop" || !snapshot.Complete() {
		t.Errorf("got %+v, %v", o, snapshot.Unlisted())
	}
}

// A type that the server has just named, and does not answer for yet, is asked for again.
func TestTypeThatIsNew(t *testing.T) {
	testnet.Bubble(func(t *testing.T) {
		for answers, listed := range map[int]bool{unknownRetries: true, unknownRetries + 1: false} {
			s := newAPIServer(t)
			s.add("pods shop/p")
			s.on("GET", "/api/v1/configmaps", answers, func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "404 page not found", http.StatusNotFound)
			})
			snapshot := s.snapshot(s.reader(Options{}), Scope{})
			if snapshot.Complete() != listed {
				t.Errorf("%d answers: complete %t; %v", answers, snapshot.Complete(), snapshot.Unlisted())
			}
		}
	})(t)
}

// A type that is gone since the server named it is not unread. Only another answer about all types proves it gone, in which its group has
// not failed.
func TestTypeThatIsGone(t *testing.T) {
	testnet.Bubble(func(t *testing.T) {
		without := strings.Join(slices.DeleteFunc(nonEmpty(usualTypes), func(line string) bool { return strings.Contains(line, "Widget") }), "\n")
		for name, c := range map[string]struct {
			answer   http.HandlerFunc
			types    string
			failing  []string
			complete bool
		}{
			"gone":                       {unknownPath, without, nil, true},
			"its cache is stopped":       {status(http.StatusInternalServerError, metav1.StatusReasonInternalError), without, nil, true},
			"it is still named":          {unknownPath, usualTypes, nil, false},
			"its group fails":            {unknownPath, without, []string{"example.com/v1beta1"}, false},
			"refused, whatever is named": {forbidden(), without, nil, false},
		} {
			s := newAPIServer(t)
			s.add("pods shop/p < example.com/v1:Widget:w@w")
			r := s.reader(Options{})
			s.serve(c.types)
			s.failing = c.failing
			s.on("GET", "/apis/example.com/v1/widgets", always, c.answer)
			snapshot := s.snapshot(r, Scope{})
			if snapshot.Complete() != c.complete {
				t.Errorf("%s: complete %t; %v", name, snapshot.Complete(), snapshot.Unlisted())
			}
			named := slices.ContainsFunc(snapshot.Types, func(r *graph.Resource) bool { return r.Resource == "widgets" })
			if _, err := snapshot.Mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"}, "v1"); (err == nil) == c.complete || named == c.complete {
				t.Errorf("%s: the type is known: %t, %v", name, named, err)
			}
		}
	})(t)
}

// An answer that is no list is a failure, not an empty list.
func TestAnswersThatAreNoLists(t *testing.T) {
	for body, want := range map[string]string{
		`{}`: "the server sent ,  instead of",
		`{"kind": "Status", "apiVersion": "v1", "status": "Success"}`: "the server sent v1, Status instead of",
		`<html>Welcome</html>`:                     "invalid character",
		`{"kind": "ConfigMapList", "items": []}{}`: "after the list",
		`{"kind": "ConfigMapList", "items": {}}`:   "has its objects",
		`null`:                                     "the server sent null where a list has {",
		``:                                         "unexpected EOF",
		"k8s\x00":                                  "the body does not say what it is",
		"k8s\x00\x0a\x03":                          "unexpected EOF",
	} {
		s := newAPIServer(t)
		s.add("pods shop/p < v1:ConfigMap:c@c")
		s.on("GET", "/api/v1/configmaps", always, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		s.on("GET", "/api/v1/namespaces/shop/configmaps/c", always, forbidden())
		snapshot := s.snapshot(s.reader(Options{}), Scope{})
		unlisted := snapshot.Unlisted()
		if len(unlisted) != 2 || unlisted[0].Reason != graph.ServerError || !strings.Contains(unlisted[0].Message, want) ||
			!strings.HasPrefix(unlisted[0].Message, "reading the list of configmaps: ") {
			t.Errorf("%q: got %v", body, unlisted)
		}
		for n := range graph.New(snapshot).Nodes() {
			if refs := n.Owners(); len(refs) > 0 && refs[0].State != graph.Unknown {
				t.Errorf("%q: the reference is %s", body, refs[0].State)
			}
		}
	}
}

// A connection that breaks before the answer is tried again; one that breaks in
// the middle of a list is a failure of that list.
func TestBrokenConnections(t *testing.T) {
	testnet.Bubble(func(t *testing.T) {
		s := newAPIServer(t)
		s.add("configmaps shop/a\npods shop/p")
		s.on("GET", "/api/v1/configmaps", 1, cutOff)
		s.on("GET", "/api/v1/pods", always, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"kind": "PartialObjectMetadataList", "items": [`)
			w.(http.Flusher).Flush()
			cutOff(w, r)
		})
		snapshot := s.snapshot(s.reader(Options{}), Scope{Namespace: ""})
		same(t, "contents", `ConfigMap/shop/a
			pods /: ServerError`, contents(snapshot))
		if asked := s.asked("GET", "/api/v1/configmaps"); len(asked) != 2 {
			t.Errorf("asked %d times", len(asked))
		}
	})(t)
}

// A server that is busy says when to come back.
func TestRetryAfter(t *testing.T) {
	testnet.Bubble(func(t *testing.T) {
		s := newAPIServer(t)
		s.add("configmaps shop/a")
		s.on("GET", "/api/v1/configmaps", 2, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "1")
			status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)(w, r)
		})
		snapshot := s.snapshot(s.reader(Options{}), Scope{})
		if asked := s.asked("GET", "/api/v1/configmaps"); len(asked) != 3 || !snapshot.Complete() {
			t.Errorf("asked %d times; not read: %v", len(asked), snapshot.Unlisted())
		}
	})(t)
}

// Types that are usually large come first, and of lists that were begun always
// the one of which most is left. Half of the readers take no new list while one
// was begun.
func TestLongestListsFirst(t *testing.T) {
	left := map[string]int64{"widgets": 6, "secrets": 2, "pods": 4, "nodes": 1}
	var work []*listing
	for _, name := range []string{"nodes", "secrets", "widgets", "pods"} {
		work = append(work, &listing{resource: &graph.Resource{GroupVersionResource: schema.GroupVersionResource{Resource: name}}})
	}
	read := func(s *schedule, l *listing, others ...*listing) string {
		name := l.resource.Resource
		left[name]--
		l.remaining = left[name]
		s.done(l, l.remaining > 0, others)
		return name
	}
	s := newSchedule(work, listsInFlight, nil, nil)
	a, b, c := s.take(), s.take(), s.take() // three readers
	got := []string{read(s, a), read(s, b), read(s, c)}
	a, b, c = s.take(), s.take(), s.take()
	got = append(got, "|", read(s, a), read(s, b), read(s, c), "|")
	for l := s.take(); l != nil; l = s.take() {
		got = append(got, read(s, l))
	}
	want := "pods secrets nodes | pods secrets widgets | widgets widgets widgets pods widgets pods widgets"
	if strings.Join(got, " ") != want || work[0].resource.Resource != "nodes" {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
}

// What comes last comes next as soon as it is wanted, or when nothing else is left to begin.
func TestWantedListsNext(t *testing.T) {
	late := func(name string) schema.GroupVersionResource { return schema.GroupVersionResource{Resource: name} }
	for wantedAt, want := range map[int]string{
		0: "deployments daemonsets pods secrets widgets",
		2: "pods secrets deployments daemonsets widgets",
		9: "pods secrets widgets deployments daemonsets",
	} {
		var work []*listing
		for _, name := range []string{"daemonsets", "widgets", "deployments", "secrets", "pods"} {
			work = append(work, &listing{resource: &graph.Resource{GroupVersionResource: late(name)}})
		}
		work[2].resource.Group = "apps"
		var got []string
		s := newSchedule(work, listsInFlight, []schema.GroupVersionResource{late("daemonsets"), work[2].resource.GroupVersionResource},
			func(l *listing) bool { return l == work[2] && len(got) >= wantedAt })
		for l := s.take(); l != nil; l = s.take() {
			got = append(got, l.resource.Resource)
			s.done(l, false, nil)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("wanted after %d: got %s, want %s", wantedAt, strings.Join(got, " "), want)
		}
	}
}

// However many take lists at once, each page is read once, and none waits for
// ever.
func TestScheduleIsShared(t *testing.T) {
	var work []*listing
	for range 20 {
		work = append(work, &listing{resource: &graph.Resource{}, remaining: 5})
	}
	s := newSchedule(work, listsInFlight, nil, nil)
	var mu sync.Mutex
	var group sync.WaitGroup
	pages := 0
	for range 8 {
		group.Go(func() {
			for l := s.take(); l != nil; l = s.take() {
				mu.Lock()
				pages++
				mu.Unlock()
				l.remaining--
				s.done(l, l.remaining > 0, nil)
			}
		})
	}
	group.Wait()
	if pages != 100 {
		t.Errorf("%d pages", pages)
	}
}

// Labels are kept if they are asked for.
func TestLabelsOfAScope(t *testing.T) {
	s := newAPIServer(t)
	s.add("configmaps shop/a")
	s.objects[0].Labels = map[string]string{"app": "web", "tier": "front"}
	inProtobuf(s)
	r := s.reader(Options{})
	for want, labels := range map[string][]string{"map[app:web tier:front]": nil, "map[]": {}, "map[tier:front]": {"tier"}} {
		o := found(t, s.snapshot(r, Scope{Labels: labels}), "a")
		if got := fmt.Sprint(o.Labels); got != want {
			t.Errorf("%v: got %s, want %s", labels, got, want)
		}
	}
}

// Lists go over HTTP/1.1, and uncompressed when the server is on this machine.
func TestBulkConfig(t *testing.T) {
	for host, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "[::1]:6443": true, "localhost": true, "https://api.example.com": false, "10.0.0.1": false,
	} {
		if got := onThisMachine(&rest.Config{Host: host}); got != want {
			t.Errorf("%s: on this machine: %t", host, got)
		}
	}
	if config := bulkConfig(&rest.Config{}); !slices.Equal(config.NextProtos, []string{"http/1.1"}) {
		t.Errorf("NextProtos %s", config.NextProtos)
	}
	if own := bulkConfig(&rest.Config{Transport: http.DefaultTransport}); own.NextProtos != nil {
		t.Error("the transport of the caller is to be taken as it is")
	}
}

// For owners alone nothing is listed: each is read by itself, and what is said of
// the references is what lists would have said.
func TestOwnersOnly(t *testing.T) {
	s := newAPIServer(t)
	s.add(`configmaps shop/a < v1:ConfigMap:b@b v1:Node:n@n
		configmaps shop/b < v1:ConfigMap:gone@gone
		configmaps shop/other < v1:ConfigMap:a@a
		nodes n < example.com/v1beta1:Gizmo:g@another
		gizmos g`)
	r := s.reader(Options{})
	all := s.snapshot(r, Scope{Namespace: "shop"})
	before := len(s.log)
	owners, err := r.Snapshot(within(t), Scope{Namespace: "shop", OwnersOnly: true}, found(t, all, "a"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "contents", "ConfigMap/shop/a\nConfigMap/shop/b\nGizmo/g\nNode/n", contents(owners))
	var asked []string
	for _, request := range s.log[before:] {
		asked = append(asked, request.path)
	}
	slices.Sort(asked)
	same(t, "asked", `/api/v1/namespaces/shop/configmaps/b
		/api/v1/namespaces/shop/configmaps/gone
		/api/v1/nodes/n
		/apis/example.com/v1beta1/gizmos/g`, asked)
	states := func(s *graph.Snapshot, uid string) string {
		n, _ := graph.New(s).Node(types.UID(uid))
		var line string
		for _, ref := range n.Owners() {
			line += fmt.Sprint(ref.State, ref.Reason, " ")
		}
		return line
	}
	for _, uid := range []string{"a", "b", "n"} {
		if got, want := states(owners, uid), states(all, uid); got != want {
			t.Errorf("%s: got %s, want %s", uid, got, want)
		}
	}
}

// Facts asks about objects that HasFacts names, and about no others.
func TestHasFacts(t *testing.T) {
	s := newAPIServer(t)
	s.add(manyObjects + "\ncustomresourcedefinitions widgets.example.com")
	r := s.reader(Options{})
	var objects []graph.Object
	for i := range s.objects {
		o := s.objects[i]
		resource := graph.Resource{GroupVersionResource: o.served.WithResource(o.served.resource), Kind: o.served.kind, Namespaced: o.served.namespaced}
		objects = append(objects, graph.NewObject(&resource, &o.PartialObjectMetadata))
	}
	for i := range objects {
		before := len(s.log)
		r.Facts(t.Context(), &graph.Snapshot{}, objects[i:i+1])
		if asked := len(s.log) > before; asked != HasFacts(objects[i].Resource) {
			t.Errorf("%s: asked %t, HasFacts says %t", objects[i].Identity(), asked, !asked)
		}
	}
}
