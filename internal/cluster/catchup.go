// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
)

const (
	// provenByList is the number of objects up to which a type is listed again to prove that all of
	// it is known.
	provenByList = 2000
	// provenSoon is how long an event is waited for that proves it, of a type with more objects.
	provenSoon = 100 * time.Millisecond
	// provenAt is how many types are proved at a time.
	provenAt = 8
)

// CatchUp implements gc.Server. That a watch is connected proves nothing: what it tells may be late.
// So each type of few objects is listed again. Of others the version is asked for that the server
// has now; an event or a bookmark at or past it is the proof, and there is one after a second
// or two at the latest, since the watch is begun anew for so short a time that it ends with one. When none
// comes, such a type is listed, too.
func (s *Server) CatchUp(round int) bool {
	s.sending(1)
	go func() {
		defer s.sending(-1)
		s.changes.add(gc.Event{CaughtUp: round, Err: s.prove()})
	}()
	return false
}

// prove returns nil once everything was told that the server had when it was called.
func (s *Server) prove() error {
	s.mu.Lock()
	watchers := s.watchers
	s.mu.Unlock()
	switch {
	case s.proving == nil:
		return errors.New("nothing is watched")
	case s.unfollowed != "":
		return fmt.Errorf("%s is not watched", s.unfollowed)
	}
	group, ctx := errgroup.WithContext(s.proving)
	group.SetLimit(provenAt)
	for _, w := range watchers {
		group.Go(func() error {
			err := w.prove(ctx)
			if apierrors.IsNotFound(err) && w.typeIsGone(ctx) {
				w.lose()
				return nil
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", w.resource.GroupResource(), err)
			}
			return err
		})
	}
	return group.Wait()
}

// prove returns nil once everything of the resource was told that there was when it was called.
func (w *watcher) prove(ctx context.Context) error {
	w.mu.Lock()
	few, lost := w.objects <= provenByList, w.lost
	w.mu.Unlock()
	switch {
	case lost:
		return nil
	case few:
		return w.relist(ctx)
	}
	var version string
	err := w.server.insist(ctx, retries, func(ctx context.Context) error {
		page, err := w.server.client(w.resource, w.namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			version = page.ResourceVersion
		}
		return err
	})
	if err != nil || w.reaches(ctx, version, provenSoon) {
		return err
	}
	w.hasten()
	if w.reaches(ctx, version, 2*hurriedLasts) {
		return nil
	}
	return w.relist(ctx)
}

// relist lists the resource, and reports how it differs from what is known.
func (w *watcher) relist(ctx context.Context) error {
	return w.server.insist(ctx, retries, func(ctx context.Context) error {
		_, err := w.list(ctx, true)
		return err
	})
}

// hasten has the watch begin anew, to last just until the server has said how far it is.
func (w *watcher) hasten() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hurried = true
	if w.hurry != nil {
		w.hurry()
	}
}

// reaches waits until everything up to the version was told, and reports whether that is so in time.
func (w *watcher) reaches(ctx context.Context, version string, within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		w.mu.Lock()
		done, news := reached(w.version, version), w.news
		w.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-news:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
