// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// rewatchAfter is the pause before a watch that broke off is started again.
const rewatchAfter = 500 * time.Millisecond

// Watch starts to follow the resources, each in the namespaces in which the
// snapshot listed it, from the moment of the list on: one watch for each. They
// end with the context. Pods that are in their grace period already are
// followed like those whose deletion will be seen.
func (s *Server) Watch(ctx context.Context, snapshot *graph.Snapshot, resources []*graph.Resource) {
	for _, resource := range resources {
		for namespace, version := range snapshot.Listed(resource.GroupResource()) {
			w := &watcher{server: s, resource: resource, namespace: namespace, version: version, known: map[types.UID]graph.Object{}}
			for o := range snapshot.Objects() {
				if o.Resource == resource && (namespace == "" || o.Namespace == namespace) {
					w.known[o.UID] = o
					if inGrace(&o) {
						s.follow([]gc.Event{{Object: o}})
					}
				}
			}
			s.sees(false)
			go w.run(ctx)
		}
	}
}

// watcher follows one resource in one scope. It knows which objects there are,
// so that after a gap it can tell which are gone.
type watcher struct {
	server    *Server
	resource  *graph.Resource
	namespace string
	version   string
	known     map[types.UID]graph.Object
	connected bool
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
	for ctx.Err() == nil {
		err, listed := w.watch(ctx), false
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) {
			if err = w.list(ctx); err == nil && w.version == "" {
				err = fmt.Errorf("listing %s: the list has no resourceVersion", w.resource.Resource)
			}
			listed = err == nil
		}
		w.connect(listed)
		switch {
		case apierrors.IsNotFound(err):
			w.removeAll() // the type itself is gone
			return
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			w.server.changes.fail(fmt.Errorf("watching %s: %w", w.resource.Resource, err))
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(rewatchAfter):
		}
	}
}

// watch takes events until the watch ends, and returns why it could not go on;
// an end without a reason is none.
func (w *watcher) watch(ctx context.Context) error {
	stream, err := w.server.client(w.resource, w.namespace).Watch(ctx, metav1.ListOptions{
		ResourceVersion: w.version, AllowWatchBookmarks: true,
	})
	if err != nil {
		return err
	}
	defer stream.Stop()
	w.connect(true)
	for e := range stream.ResultChan() {
		if e.Type == watch.Error {
			return apierrors.FromObject(e.Object)
		}
		item, ok := e.Object.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("watching %s: unexpected %T", w.resource.Resource, e.Object)
		}
		w.version = item.ResourceVersion
		if e.Type != watch.Bookmark {
			w.take(graph.NewObject(w.resource, item), e.Type == watch.Deleted)
		}
	}
	return nil
}

func (w *watcher) take(o graph.Object, removed bool) {
	if removed {
		delete(w.known, o.UID)
	} else {
		w.known[o.UID] = o
	}
	w.server.changes.add(gc.Event{Object: o, Removed: removed})
}

// list reads the resource again and reports how it differs from what was
// known.
func (w *watcher) list(ctx context.Context) error {
	l := &listing{resource: w.resource, namespace: w.namespace}
	if err := w.server.reader.listPages(ctx, l); err != nil {
		return err
	}
	w.version = l.version
	now := map[types.UID]bool{}
	for _, o := range l.objects {
		now[o.UID] = true
		if before, ok := w.known[o.UID]; !ok || before.ResourceVersion != o.ResourceVersion {
			w.take(o, false)
		}
	}
	for uid, o := range w.known {
		if !now[uid] {
			w.take(o, true)
		}
	}
	return nil
}

func (w *watcher) removeAll() {
	for _, o := range w.known {
		w.take(o, true)
	}
}
