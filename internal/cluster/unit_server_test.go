// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/testnet"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// A patch tests the UID, the version that was read, and all that it replaces.
func TestPatchSent(t *testing.T) {
	s := newAPIServer(t)
	s.add("pods shop/p rv=5")
	server := s.writer(rest.Config{}, ServerOptions{FieldManager: "tester"})
	o := found(t, s.snapshot(server.reader, Scope{}), "p")
	o.Finalizers = []string{"x", "y"}
	o.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "A", BlockOwnerDeletion: new(true), Controller: new(true)},
		{APIVersion: "v1", Kind: "ConfigMap", Name: "b", UID: "B", BlockOwnerDeletion: new(false)},
		{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "A", BlockOwnerDeletion: new(true)},
	}
	const read = `[{"op":"test","path":"/metadata/uid","value":"p"},{"op":"test","path":"/metadata/resourceVersion","value":"5"},`
	for _, test := range []struct {
		patch gc.Patch
		want  string
	}{
		{gc.Patch{RemoveOwners: []types.UID{"B"}}, `{"op":"test","path":"/metadata/ownerReferences/1/uid","value":"B"},{"op":"remove","path":"/metadata/ownerReferences/1"}]`},
		{gc.Patch{RemoveOwners: []types.UID{"A"}, Unblock: true}, `{"op":"test","path":"/metadata/ownerReferences/2/uid","value":"A"},{"op":"remove","path":"/metadata/ownerReferences/2"},` +
			`{"op":"test","path":"/metadata/ownerReferences/0/uid","value":"A"},{"op":"remove","path":"/metadata/ownerReferences/0"}]`},
		{gc.Patch{Unblock: true}, `{"op":"test","path":"/metadata/ownerReferences/2/uid","value":"A"},{"op":"replace","path":"/metadata/ownerReferences/2/blockOwnerDeletion","value":false},` +
			`{"op":"test","path":"/metadata/ownerReferences/0/uid","value":"A"},{"op":"replace","path":"/metadata/ownerReferences/0/blockOwnerDeletion","value":false}]`},
		{gc.Patch{RemoveFinalizer: "y"}, `{"op":"test","path":"/metadata/finalizers/1","value":"y"},{"op":"remove","path":"/metadata/finalizers/1"}]`},
	} {
		if _, err := server.Patch(t.Context(), o, test.patch); err != nil {
			t.Errorf("%+v: %v", test.patch, err)
		}
		sent := s.log[len(s.log)-1]
		if got := strings.TrimSpace(sent.body); got != read+test.want || sent.contentType != string(types.JSONPatchType) || sent.query != "fieldManager=tester" || !strings.HasPrefix(sent.agent, "cluster.test/") {
			t.Errorf("%+v: sent %s %s\n got %s\nwant %s", test.patch, sent.contentType, sent.query, got, read+test.want)
		}
	}
}

// The answer to a patch is the object as it is then; a wrong UID is a conflict.
func TestPatch(t *testing.T) {
	invalid := func(field string) http.HandlerFunc {
		return status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: field})
	}
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		check  func(error) bool
	}{
		{"accepted", nil, func(err error) bool { return err == nil }},
		{"another UID", invalid("metadata.uid"), apierrors.IsConflict},
		{"invalid for another reason", invalid("metadata.finalizers"), func(err error) bool { return apierrors.IsInvalid(err) && !apierrors.IsConflict(err) }},
		{"a test that fails", status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid), apierrors.IsConflict},
		{"another version", status(http.StatusConflict, metav1.StatusReasonConflict), apierrors.IsConflict},
		{"gone", status(http.StatusNotFound, metav1.StatusReasonNotFound), answer.NoObject},
		{"forbidden", forbidden(), apierrors.IsForbidden},
	} {
		s := newAPIServer(t)
		s.add("pods shop/p rv=5 < v1:Node:n@n")
		server := s.writer(rest.Config{}, ServerOptions{})
		base := found(t, s.snapshot(server.reader, Scope{}), "p")
		if test.answer != nil {
			s.on("PATCH", "/api/v1/namespaces/shop/pods/p", always, test.answer)
		}
		got, err := server.Patch(t.Context(), base, gc.Patch{RemoveOwners: []types.UID{"n"}})
		if !test.check(err) {
			t.Errorf("%s: got error %v", test.name, err)
		}
		if err == nil && (got.ResourceVersion != "50" || got.Resource != base.Resource) {
			t.Errorf("%s: got %+v", test.name, got)
		}
		if n := len(s.asked("PATCH", "/")); n != 1 {
			t.Errorf("%s: sent %d times", test.name, n)
		}
	}
}

func TestDelete(t *testing.T) {
	s := newAPIServer(t)
	s.add("pods shop/p rv=5\nnodes n\nwidgets shop/w")
	server := s.writer(rest.Config{}, ServerOptions{})
	snapshot := s.snapshot(server.reader, Scope{})
	policy, uid, version := metav1.DeletePropagationForeground, types.UID("p"), "5"
	options := metav1.DeleteOptions{
		PropagationPolicy: &policy, GracePeriodSeconds: new(int64(3)),
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	}
	for _, name := range []string{"p", "n", "w"} {
		o := found(t, snapshot, name)
		if err := server.Delete(t.Context(), o.Identity(), options); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	same(t, "deleted", `/api/v1/namespaces/shop/pods/p
		/api/v1/nodes/n
		/apis/example.com/v1/namespaces/shop/widgets/w`, s.asked("DELETE", "/"))
	for _, r := range s.log[len(s.log)-3:] {
		const want = `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":3,"preconditions":{"uid":"p","resourceVersion":"5"},"propagationPolicy":"Foreground"}`
		if strings.TrimSpace(r.body) != want || r.contentType != "application/json" {
			t.Errorf("sent %s as %s", r.body, r.contentType)
		}
	}
	if got := server.reader.Stats().String(); !strings.Contains(got, ", 3 deletes, 0 patches, 0 watches; ") {
		t.Errorf("counted %s", got)
	}
}

// refusing makes the first connections fail as if nobody listened.
func refusing(n int32) func(context.Context, string, string) (net.Conn, error) {
	var left atomic.Int32
	left.Store(n)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if left.Add(-1) >= 0 {
			return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		}
		return testnet.Dial(ctx, network, address)
	}
}

// What is likely to go away is waited for; what the server has decided is not.
func TestRetries(t *testing.T) {
	retryAfter := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(code)
		}
	}
	for _, test := range []struct {
		name   string
		config rest.Config
		answer http.HandlerFunc
		times  int
		sent   int
		check  func(error) bool
	}{
		{"connection refused", rest.Config{Dial: refusing(2)}, nil, 0, 1, nil},
		{"connection cut", rest.Config{}, cutOff, 1, 2, nil},
		{"429 with Retry-After", rest.Config{}, retryAfter(http.StatusTooManyRequests), 2, 3, nil},
		{"429", rest.Config{}, status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), 2, 3, nil},
		{"503", rest.Config{}, status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable), 2, 3, nil},
		{"503 of a proxy", rest.Config{}, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusServiceUnavailable) }, 1, 2, nil},
		{"502 of a proxy", rest.Config{}, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusBadGateway) }, 1, 2, nil},
		{"the server timed out", rest.Config{}, status(http.StatusInternalServerError, metav1.StatusReasonServerTimeout), 1, 2, nil},
		{"403", rest.Config{}, forbidden(), 1, 1, apierrors.IsForbidden},
		{"404", rest.Config{}, status(http.StatusNotFound, metav1.StatusReasonNotFound), 1, 1, apierrors.IsNotFound},
		{"409", rest.Config{}, status(http.StatusConflict, metav1.StatusReasonConflict), 1, 1, apierrors.IsConflict},
		{"422", rest.Config{}, status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid), 1, 1, apierrors.IsInvalid},
		{"500", rest.Config{}, status(http.StatusInternalServerError, metav1.StatusReasonInternalError), 1, 1, apierrors.IsInternalError},
	} {
		t.Run(test.name, testnet.Bubble(func(t *testing.T) {
			s := newAPIServer(t)
			s.add("pods shop/p")
			server := s.writer(test.config, ServerOptions{})
			p := found(t, s.snapshot(server.reader, Scope{}), "p")
			s.on("DELETE", "/api/v1/namespaces/shop/pods/p", test.times, test.answer)
			err := server.Delete(within(t), p.Identity(), metav1.DeleteOptions{})
			if test.check == nil {
				test.check = func(err error) bool { return err == nil }
			}
			if !test.check(err) {
				t.Errorf("got error %v", err)
			}
			if n := len(s.asked("DELETE", "/")); n != test.sent {
				t.Errorf("sent %d times, want %d", n, test.sent)
			}
		}))
	}
}

// Once a run is interrupted, no write is sent, whatever the server says of trying again.
func TestInterruptedWrites(t *testing.T) {
	for name, header := range map[string]string{"": "", "with Retry-After": "1"} {
		t.Run(name, testnet.Bubble(func(t *testing.T) {
			s := newAPIServer(t)
			s.add("pods shop/p")
			server := s.writer(rest.Config{}, ServerOptions{})
			p := found(t, s.snapshot(server.reader, Scope{}), "p")
			ctx, interrupt := context.WithCancel(within(t))
			s.on("DELETE", "/api/v1/namespaces/shop/pods/p", 1, func(w http.ResponseWriter, _ *http.Request) {
				interrupt()
				if header != "" {
					w.Header().Set("Retry-After", header)
				}
				w.WriteHeader(http.StatusTooManyRequests)
			})
			if err := server.Delete(ctx, p.Identity(), metav1.DeleteOptions{}); err == nil {
				t.Error("no error")
			}
			if n := len(s.asked("DELETE", "/")); n != 1 {
				t.Errorf("sent %d times", n)
			}
		}))
	}
}

// A write that was carried out while its answer was lost is told, when it is repeated, what itself has done. Nobody knows
// then whether it was that.
func TestLostAnswers(t *testing.T) {
	for _, second := range []http.HandlerFunc{
		status(http.StatusNotFound, metav1.StatusReasonNotFound), status(http.StatusConflict, metav1.StatusReasonConflict),
	} {
		t.Run("", testnet.Bubble(func(t *testing.T) {
			s := newAPIServer(t)
			s.add("pods shop/p")
			server := s.writer(rest.Config{}, ServerOptions{})
			p := found(t, s.snapshot(server.reader, Scope{}), "p")
			s.on("DELETE", "/api/v1/namespaces/shop/pods/p", 1, cutOff)
			s.on("DELETE", "/api/v1/namespaces/shop/pods/p", 1, second)
			if err := server.Delete(within(t), p.Identity(), metav1.DeleteOptions{}); !answer.Indeterminate(err) {
				t.Errorf("got error %v", err)
			}
			if n := len(s.asked("DELETE", "/")); n != 2 {
				t.Errorf("sent %d times", n)
			}
		}))
	}
}

// The same holds for reading an object after a conflict.
func TestGetRetries(t *testing.T) {
	s := newAPIServer(t)
	s.add("pods shop/p rv=5")
	server := s.writer(rest.Config{}, ServerOptions{})
	p := found(t, s.snapshot(server.reader, Scope{}), "p")
	s.on("GET", "/api/v1/namespaces/shop/pods/p", 1, status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
	if o, err := server.Get(within(t), *p.Resource, "shop", "p"); err != nil || o.UID != "p" {
		t.Errorf("got %+v, %v", o, err)
	}
	if _, err := server.Get(within(t), *p.Resource, "shop", "nobody"); !answer.NoObject(err) {
		t.Errorf("got error %v", err)
	}
}

// Requests are repeated for about half a minute: long enough for an API server
// to be restarted.
func TestRetriesLast(t *testing.T) {
	testnet.Bubble(func(t *testing.T) {
		b, requests, total := retries, 0, time.Duration(0)
		for b.Steps > 0 { // as wait.ExponentialBackoffWithContext does
			requests++
			if b.Steps == 1 {
				break
			}
			pause := b.Step()
			if total += pause; b.Steps == 0 {
				t.Errorf("after %d requests it pauses for %s, and then sends nothing", requests, pause)
			}
		}
		if total < 20*time.Second || total > 40*time.Second {
			t.Errorf("%d requests in %s", requests, total)
		}
	})(t)
}

// A request that was sent is finished although the user pressed Ctrl-C, so that
// its result is known. It is not repeated, and no other is sent.
func TestRequestIsFinished(t *testing.T) {
	s := newAPIServer(t)
	s.add("pods shop/p\npods shop/q\npods shop/r")
	server := s.writer(rest.Config{}, ServerOptions{})
	snapshot := s.snapshot(server.reader, Scope{})
	ctx, cancel := context.WithCancel(within(t))
	s.on("DELETE", "/api/v1/namespaces/shop/pods/p", always, func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		writeJSON(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
	})
	p, q, r := found(t, snapshot, "p"), found(t, snapshot, "q"), found(t, snapshot, "r")
	if err := server.Delete(ctx, p.Identity(), metav1.DeleteOptions{}); err != nil {
		t.Errorf("the request in flight: %v", err)
	}
	if err := server.Delete(ctx, q.Identity(), metav1.DeleteOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the next one: %v", err)
	}
	ctx, cancel = context.WithCancel(within(t))
	s.on("DELETE", "/api/v1/namespaces/shop/pods/r", always, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)(w, r)
	})
	if err := server.Delete(ctx, r.Identity(), metav1.DeleteOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("one that would be repeated: %v", err)
	}
	if n := len(s.asked("DELETE", "/")); n != 2 {
		t.Errorf("%d requests were sent", n)
	}
}

// Every request but a watch has a deadline.
func TestWritesHaveADeadline(t *testing.T) {
	s := newAPIServer(t)
	s.add("pods shop/p < v1:Node:n@n")
	s.streams["/api/v1/pods"] = []string{"MODIFIED pods shop/p rv=2\nhold"}
	var d, watches deadlines
	config := rest.Config{Dial: testnet.Dial, Host: s.URL}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		d.next, watches.next = next, next
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Has("watch") {
				return watches.RoundTrip(r)
			}
			return d.RoundTrip(r)
		})
	})
	server := s.writer(config, ServerOptions{})
	snapshot := s.snapshot(server.reader, Scope{})
	p := found(t, snapshot, "p")
	server.Watch(t.Context(), snapshot, []*graph.Resource{p.Resource})
	if _, err := server.Events(within(t), true); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Patch(t.Context(), p, gc.Patch{RemoveOwners: []types.UID{"n"}}); err != nil {
		t.Error(err)
	}
	if err := server.Delete(t.Context(), p.Identity(), metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if d.seen != 2 || len(d.none) > 0 {
		t.Errorf("%d requests, without a deadline: %s", d.seen, d.none)
	}
	if watches.seen != 1 || len(watches.none) != 1 {
		t.Errorf("%d watches, %d without a deadline", watches.seen, len(watches.none))
	}
}

// A write that takes too long is given up.
func TestWriteTimeout(t *testing.T) {
	s := newAPIServer(t)
	s.add("pods shop/p")
	server := s.writer(rest.Config{Timeout: 200 * time.Millisecond}, ServerOptions{})
	p := found(t, s.snapshot(server.reader, Scope{}), "p")
	s.on("DELETE", "/api/v1/namespaces/shop/pods/p", always, hang)
	if err := server.Delete(within(t), p.Identity(), metav1.DeleteOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v", err)
	}
}

func TestBadServerConfig(t *testing.T) {
	s := newAPIServer(t)
	config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: "/nonexistent"}}
	if _, err := NewServer(s.reader(Options{}), config, ServerOptions{}); err == nil || !strings.HasPrefix(err.Error(), "configuring the client: ") {
		t.Errorf("got error %v", err)
	}
}

// Only what brings a deletion on keeps a run waiting: others may write labels and
// states for ever.
func TestMoves(t *testing.T) {
	s := &Server{standing: map[types.UID]graph.Object{}}
	object := graph.Object{UID: "a", ResourceVersion: "1", Finalizers: []string{"example.com/a", "example.com/b"}}
	for _, step := range []struct {
		what   string
		change func(e *gc.Event)
		want   bool
	}{
		{"it is seen first", func(*gc.Event) {}, true},
		{"somebody writes to it", func(e *gc.Event) { e.Object.ResourceVersion = "2" }, false},
		{"it is deleted", func(e *gc.Event) { e.Object.DeletionTimestamp = new(metav1.Now()) }, true},
		{"somebody writes to it again", func(e *gc.Event) { e.Object.ResourceVersion = "4" }, false},
		{"a finalizer goes", func(e *gc.Event) { e.Object.Finalizers = e.Object.Finalizers[1:] }, true},
		{"a reference comes", func(e *gc.Event) { e.Object.OwnerReferences = []metav1.OwnerReference{{UID: "b"}} }, true},
		{"and nothing else", func(*gc.Event) {}, false},
		{"it is gone", func(e *gc.Event) { e.Removed = true }, true},
		{"it is there again", func(*gc.Event) {}, true},
	} {
		e := gc.Event{Object: object}
		step.change(&e)
		object = e.Object
		if got := s.moves(&e); got != step.want {
			t.Errorf("%s: %v", step.what, got)
		}
	}
}
