// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// history is every version of every object of some types, as watches tell. The API server
// counts the changes of all types in one order, so that it can be said what was when.
type history struct {
	mu      sync.Mutex
	objects map[types.UID][]version
	watches sync.WaitGroup
	failed  error
}

// version is an object after a change.
type version struct {
	at      uint64 // resourceVersion
	name    string
	owners  []types.UID
	gone    bool
	deleted bool // has a deletionTimestamp, or is gone
	// waiting: it is in foreground deletion, and its dependents go first.
	waiting bool
}

// record begins a history of the types, until the context ends.
func record(ctx context.Context, client dynamic.Interface, resources ...schema.GroupVersionResource) (*history, error) {
	h := &history{objects: map[types.UID][]version{}}
	for _, resource := range resources {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			h.add(watch.Added, &list.Items[i])
		}
		events, err := client.Resource(resource).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		if err != nil {
			return nil, err
		}
		h.watches.Go(func() {
			for event := range events.ResultChan() {
				o, is := event.Object.(*unstructured.Unstructured)
				if !is && ctx.Err() != nil {
					break // it is how a watch ends that is not wanted any more
				}
				if !is {
					h.mu.Lock()
					h.failed = fmt.Errorf("the watch of %s: %v", resource.Resource, event.Object)
					h.mu.Unlock()
					continue
				}
				h.add(event.Type, o)
			}
			if ctx.Err() == nil {
				h.mu.Lock()
				h.failed = fmt.Errorf("the watch of %s ended", resource.Resource)
				h.mu.Unlock()
			}
		})
	}
	return h, nil
}

// catchUp returns when the watches have told of all changes until now: each tells them in order, and so the last
// of an object that is made now.
func (h *history) catchUp(ctx context.Context, client dynamic.Interface) error {
	const poll, patience = 20 * time.Millisecond, time.Minute
	for _, resource := range besideTypes {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetAPIVersion(resource.GroupVersion().String())
		o.SetKind(besideKinds[resource.Resource])
		o.SetGenerateName("last-")
		last, err := client.Resource(resource).Namespace(metav1.NamespaceDefault).Create(ctx, o, metav1.CreateOptions{})
		if err == nil {
			err = wait.PollUntilContextTimeout(ctx, poll, patience, true, func(context.Context) (bool, error) {
				h.mu.Lock()
				defer h.mu.Unlock()
				return len(h.objects[last.GetUID()]) > 0, h.failed
			})
		}
		if err != nil {
			return fmt.Errorf("waiting for the watch of %s: %w", resource.Resource, err)
		}
	}
	return nil
}

func (h *history) add(event watch.EventType, o *unstructured.Unstructured) {
	at, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	v := version{
		at: at, name: o.GetName(), gone: event == watch.Deleted,
		deleted: event == watch.Deleted || o.GetDeletionTimestamp() != nil,
		waiting: o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents),
	}
	for _, ref := range o.GetOwnerReferences() {
		v.owners = append(v.owners, ref.UID)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.objects[o.GetUID()] = append(h.objects[o.GetUID()], v)
	if err != nil {
		h.failed = err
	}
}

// span returns the versions of an object that there were from one change to another.
func (h *history) span(uid types.UID, from, to uint64) []version {
	var found []version
	for _, v := range h.objects[uid] {
		if v.at > to {
			break
		}
		if v.at <= from {
			found = found[:0]
		}
		found = append(found, v)
	}
	return found
}

// keeps reports whether an owner was there all the time from one change to another, and
// not to go after its dependents: what it owned was to stay.
func (h *history) keeps(owner types.UID, from, to uint64) bool {
	versions := h.span(owner, from, to)
	return len(versions) > 0 && !slices.ContainsFunc(versions, func(v version) bool { return v.gone || v.waiting })
}

// judge returns what is wrong about a write that was accepted.
func (h *history) judge(w *write, mayForce func(name string) bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	uid, from := w.preconditions()
	switch {
	case uid == "":
		return fmt.Errorf("%s states no UID", w)
	case from == 0 && w.Verb == "delete" && mayForce(w.ObjectRef.Name):
		return nil
	case from == 0:
		return fmt.Errorf("%s states no resourceVersion", w)
	}
	versions := h.objects[uid]
	i := slices.IndexFunc(versions, func(v version) bool { return v.at == from })
	if i < 0 {
		return fmt.Errorf("%s is of a version that nobody has seen", w)
	}
	if i+1 == len(versions) || versions[i].deleted || w.Verb == "delete" && mayForce(w.ObjectRef.Name) {
		return nil // it changed nothing, or was asked for
	}
	before, after := versions[i], versions[i+1]
	lost := before.owners
	if w.Verb == "patch" {
		lost = slices.DeleteFunc(slices.Clone(before.owners), func(o types.UID) bool { return slices.Contains(after.owners, o) })
	}
	for _, owner := range lost {
		if h.keeps(owner, before.at, after.at) {
			return fmt.Errorf("%s: its owner %s was there from %d to %d", w, h.objects[owner][0].name, before.at, after.at)
		}
	}
	if w.Verb == "delete" && len(lost) == 0 {
		return fmt.Errorf("%s: it had no owner, and nobody asked for it", w)
	}
	return nil
}

// write is a request in an audit log.
type write struct {
	Stage, Verb, UserAgent, RequestURI string
	ObjectRef                          struct{ Resource, Namespace, Name string }
	ResponseStatus                     struct{ Code int }
	RequestObject                      json.RawMessage
}

// String names it.
func (w *write) String() string {
	return fmt.Sprintf("%s of %s %s/%s", w.Verb, w.ObjectRef.Resource, w.ObjectRef.Namespace, w.ObjectRef.Name)
}

// preconditions returns for which object it was meant, and for which of its versions; 0
// for any.
func (w *write) preconditions() (types.UID, uint64) {
	var options struct {
		Preconditions struct{ UID, ResourceVersion string }
	}
	var steps []struct{ Op, Path, Value string }
	if w.Verb == "patch" {
		_ = json.Unmarshal(w.RequestObject, &steps) // values that are no strings are left out
	} else {
		_ = json.Unmarshal(w.RequestObject, &options) // without a body there are no preconditions
	}
	uid, at := options.Preconditions.UID, options.Preconditions.ResourceVersion
	for _, step := range steps {
		switch {
		case step.Op != "test":
		case step.Path == "/metadata/uid":
			uid = step.Value
		case step.Path == "/metadata/resourceVersion":
			at = step.Value
		}
	}
	version, _ := strconv.ParseUint(at, 10, 64)
	return types.UID(uid), version
}

// writesIn returns the accepted writes of the plugin, dry runs left out.
func writesIn(t *testing.T, auditLog string) []*write {
	t.Helper()
	file, err := os.Open(auditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var all []*write
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		w := &write{}
		if err := json.Unmarshal(lines.Bytes(), w); err != nil {
			t.Fatal(err)
		}
		reads := slices.Contains([]string{"get", "list", "watch"}, w.Verb)
		if !reads && w.Stage == "ResponseComplete" && strings.HasPrefix(w.UserAgent, "kubectl-gc/") && w.ResponseStatus.Code < 300 && !strings.Contains(w.RequestURI, "dryRun") {
			all = append(all, w)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
