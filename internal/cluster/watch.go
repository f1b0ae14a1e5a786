// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// rewatchAfter is the pause before a watch that broke off is started again, and
// relistAfter the longest before a resource that cannot be watched is listed
// again: short enough for changes to be seen before the cluster counts as at
// rest.
//
// failingAfter is the longest pause while lists fail, and watchLasts what a watch
// lasts at least.
const (
	rewatchAfter = 500 * time.Millisecond
	relistAfter  = DefaultSettle / 3
	failingAfter = 30 * time.Second
	watchLasts   = 5 * time.Minute
)

// Watch starts to follow the resources, each in the namespaces in which the
// snapshot listed it, from the moment of the list on: one watch for each. They
// end with the context, until which the snapshot must not change. Pods that are
// in their grace period already are followed like those whose deletion will be
// seen. It may be called once.
func (s *Server) Watch(ctx context.Context, snapshot *graph.Snapshot, resources []*graph.Resource) {
	s.proving = ctx
	for _, resource := range s.reader.Resources() {
		if !slices.Contains(resources, resource) && len(snapshot.Listed(resource.GroupResource())) > 0 {
			s.unfollowed = resource.GroupResource().String()
		}
	}
	for _, resource := range resources {
		for namespace, version := range snapshot.Listed(resource.GroupResource()) {
			w := &watcher{
				server: s, snapshot: snapshot, resource: resource, namespace: namespace, version: version,
				changed: map[types.UID]*graph.Object{}, news: make(chan struct{}),
			}
			for o := range snapshot.ObjectsOf(resource, namespace) {
				w.objects++
				if o.InGrace() {
					s.follow([]gc.Event{{Object: o}})
				}
			}
			s.tells(w.place(), true)
			s.sees(false)
			s.watched(w)
			go w.run(ctx)
		}
	}
}

// watcher follows one resource in one scope. It knows which objects there are,
// so that after a gap it can tell which are gone: those of the snapshot, with
// what has changed since, nil for an object that is gone.
type watcher struct {
	server    *Server
	snapshot  *graph.Snapshot
	resource  *graph.Resource
	namespace string
	connected bool // of run alone

	mu sync.Mutex
	// version is that up to which everything was told.
	version string
	changed map[types.UID]*graph.Object
	// objects is how many there were at the last list.
	objects int
	// lost: the type was not served when it was last asked for, so that what is
	// known says nothing.
	lost bool
	// news is closed, and another made, when the version changes.
	news chan struct{}
	// hurried: the next watch is to last just long enough for the server to say how far it
	// is. hurry ends the one that is under way.
	hurried bool
	hurry   context.CancelFunc
}

func (w *watcher) place() watchedPlace {
	return watchedPlace{w.resource.GroupResource(), w.namespace}
}

// known goes over the objects that there are.
func (w *watcher) known(yield func(graph.Object) bool) {
	for o := range w.snapshot.ObjectsOf(w.resource, w.namespace) {
		if _, changed := w.changed[o.UID]; !changed && !yield(o) {
			return
		}
	}
	for _, o := range w.changed {
		if o != nil && !yield(*o) {
			return
		}
	}
}

// versionOf returns the resourceVersion of an object that there is.
func (w *watcher) versionOf(uid types.UID) (string, bool) {
	if o, changed := w.changed[uid]; changed {
		if o == nil {
			return "", false
		}
		return o.ResourceVersion, true
	}
	o, ok := w.snapshot.Object(uid)
	return o.ResourceVersion, ok && o.Resource == w.resource && (w.namespace == "" || w.namespace == o.Namespace)
}

// connect notes whether the watcher will hear of what happens now.
func (w *watcher) connect(is bool) {
	if w.connected != is {
		w.connected = is
		w.server.sees(is)
	}
}

// run watches until the context ends. When the server has forgotten the
// resourceVersion, or does not let the user watch, the resource is listed.
func (w *watcher) run(ctx context.Context) {
	defer w.connect(true) // it does not matter any more
	next, deniedAt := rewatchAfter, time.Time{}
	for ctx.Err() == nil {
		calm, planned, err := w.watch(ctx)
		if planned {
			continue
		}
		most, listed := relistAfter, false
		if mustList(err) || w.isLost() && err == nil {
			var changed bool
			changed, err = w.list(ctx, false)
			listed, calm = err == nil, !changed
			if err != nil {
				most = failingAfter
			}
		}
		w.connect(listed)
		if !apierrors.IsUnauthorized(err) {
			deniedAt = time.Time{}
		} else if deniedAt.IsZero() {
			deniedAt = time.Now()
		}
		switch {
		case apierrors.IsNotFound(err) && w.typeIsGone(ctx):
			w.lose()
			most = failingAfter
		case apierrors.IsForbidden(err), !deniedAt.IsZero() && time.Since(deniedAt) > w.server.outage:
			w.server.tells(w.place(), false)
			w.server.changes.fail(fmt.Errorf("watching %s: %w", w.resource.Resource, err))
			return
		}
		if next = min(2*next, most); !calm {
			next = rewatchAfter
		}
		pause(ctx, next)
	}
}

// mustList reports whether a watch that ended so cannot go on where it was.
func mustList(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// lose tells that the objects cannot be seen any more. That their type has vanished
// does not say that they are gone: a definition that is deleted with others of its
// kind, or whose finalizer somebody takes off, leaves them in storage, and shows
// them when it is made again. The watcher looks for that.
func (w *watcher) lose() {
	w.server.tells(w.place(), false)
	w.connect(true) // nothing is missed
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost {
		return
	}
	w.lost = true
	for o := range w.known {
		w.server.changes.add(gc.Event{Object: o, Lost: true})
	}
}

// typeIsGone reports whether the type was deleted. That its path is not found does
// not say so: a server that is starting answers so before it has read the
// CustomResourceDefinitions, and so may a proxy.
func (w *watcher) typeIsGone(ctx context.Context) bool {
	name := w.resource.GroupResource().String()
	_, err := w.server.reader.Get(ctx, definitions, "", name)
	if !answer.NoSuchObject(err, definitions.GroupResource(), name) {
		return false
	}
	var served metav1.APIResourceList
	path := w.resource.Path("", "")
	err = w.server.reader.rest.Get().AbsPath(path[:len(path)-1]...).Do(ctx).Into(&served)
	return apierrors.IsNotFound(err) || err == nil && !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool {
		return r.Name == w.resource.Resource
	})
}

// definitions are the CustomResourceDefinitions.
var definitions = graph.Resource{
	GroupVersionResource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	Kind:                 "CustomResourceDefinition",
}

// watch takes events until the watch ends. It returns whether none came, whether it ended
// because its time was over or it was hurried, and why it could not go on; an end without a
// reason is none. A server that does not begin to answer is given up, and every watch ends
// some time, as those of client-go do (tools/cache/reflector.go).
func (w *watcher) watch(ctx context.Context) (calm, planned bool, _ error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(w.server.timeout, cancel)
	version, lasts := w.begin(cancel)
	began, seconds := time.Now(), int64(lasts.Seconds())
	stream, err := w.server.client(w.resource, w.namespace).Watch(ctx, metav1.ListOptions{
		ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return true, false, err
	}
	late.Stop()
	defer stream.Stop()
	if w.isLost() {
		return true, false, nil // a list says what there is
	}
	w.connect(true)
	calm = true
	for e := range stream.ResultChan() {
		if e.Type == watch.Error {
			return calm, false, apierrors.FromObject(e.Object)
		}
		item, ok := e.Object.(*metav1.PartialObjectMetadata)
		if !ok {
			return calm, false, fmt.Errorf("watching %s: unexpected %T", w.resource.Resource, e.Object)
		}
		calm = false
		w.told(item, e.Type)
	}
	return calm, w.isHurried() || time.Since(began) > lasts/2, nil
}

// begin returns from where and for how long the next watch is to last, which end ends.
func (w *watcher) begin(end context.CancelFunc) (version string, lasts time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hurry, lasts = end, w.server.watchLasts+rand.N(w.server.watchLasts)
	if w.hurried {
		w.hurried, lasts = false, hurriedLasts
	}
	return w.version, lasts
}

// hurriedLasts is how long a watch lasts that is to say how far the server is: it gets a
// bookmark two seconds before its time is over (apiserver/pkg/storage/cacher/cache_watcher.go,
// nextBookmarkTime).
const hurriedLasts = 3 * time.Second

func (w *watcher) isHurried() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hurried
}

func (w *watcher) isLost() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// told takes an event of the watch.
func (w *watcher) told(item *metav1.PartialObjectMetadata, kind watch.EventType) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if kind != watch.Bookmark {
		w.take(graph.NewObject(w.resource, item), kind == watch.Deleted)
	}
	w.reach(item.ResourceVersion)
}

// reach notes that everything up to the version was told. The caller holds the lock.
func (w *watcher) reach(version string) {
	if !reached(w.version, version) {
		w.version = version
	}
	close(w.news)
	w.news = make(chan struct{})
}

// reached reports whether the first version is at or past the second. Of what cannot be
// compared it says no.
func reached(version, wanted string) bool {
	order, err := resourceversion.CompareResourceVersion(version, wanted)
	return err == nil && order >= 0
}

// take takes an object as it is now, or was when it was removed. The caller holds the lock.
func (w *watcher) take(o graph.Object, removed bool) {
	_, listed := w.snapshot.Object(o.UID)
	switch {
	case !removed:
		w.changed[o.UID] = &o
	case listed:
		w.changed[o.UID] = nil
	default:
		delete(w.changed, o.UID)
	}
	w.server.changes.add(gc.Event{Object: o, Removed: removed})
}

// list reads the resource again, reports how it differs from what was known,
// and returns whether it does. It may be called beside a watch.
func (w *watcher) list(ctx context.Context, beside bool) (bool, error) {
	l := &listing{resource: w.resource, namespace: w.namespace}
	if err := w.server.reader.listPages(ctx, l); err != nil {
		return false, err
	}
	if l.version == "" {
		return false, fmt.Errorf("listing %s: the list has no resourceVersion", w.resource.Resource)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if beside && w.lost {
		return false, nil
	}
	return w.compare(l, beside), nil
}

// compare takes a list, and reports whether it differs from what is known. What a watch beside
// it has told meanwhile, which is later, stands. The caller holds the lock.
func (w *watcher) compare(l *listing, beside bool) bool {
	now, changed := map[types.UID]bool{}, false
	for _, o := range l.objects {
		now[o.UID] = true
		before, known := w.versionOf(o.UID)
		_, told := w.changed[o.UID]
		later := beside && (known && reached(before, o.ResourceVersion) || told && !known)
		if (!known || before != o.ResourceVersion || w.lost) && !later {
			w.take(o, false)
			changed = true
		}
	}
	var missing []graph.Object
	for o := range w.known {
		if !now[o.UID] && (!beside || reached(l.version, o.ResourceVersion)) {
			missing = append(missing, o)
		}
	}
	if w.lost { // a definition that was made again need not show what the old one had
		w.forget(missing)
		w.lost = false
		w.server.tells(w.place(), true)
	} else {
		w.remove(missing)
	}
	w.objects = len(l.objects)
	if !beside {
		w.version = l.version
	}
	w.reach(l.version)
	return changed || len(missing) > 0
}

// forget takes objects out of what is known, without a word.
func (w *watcher) forget(objects []graph.Object) {
	for _, o := range objects {
		w.changed[o.UID] = nil
	}
}

// remove reports that objects are gone.
func (w *watcher) remove(objects []graph.Object) {
	for _, o := range objects {
		w.take(o, true)
	}
}
