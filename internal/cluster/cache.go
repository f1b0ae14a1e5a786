// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// caches reports whether the listing had better be read in one piece from the API
// server's cache. Its pages may come from etcd: a server has them in its cache only if
// something of the type has changed since etcd was last compacted
// (apiserver/pkg/storage/cacher/watch_cache.go, Compact), and then goes over all that is
// left of the list for each (store/store_btree.go, ListPrefix). A table of whole objects does come in pages: the server has all of it in
// memory before it sends any (apiserver/pkg/endpoints/handlers/response.go, asTable).
func (r *Reader) caches(ctx context.Context, l *listing) bool {
	return r.options.PageSize == AutoPageSize && l.fields == "" && l.include != metav1.IncludeObject && !r.cacheFails(l) &&
		r.Server(ctx).ListsFromCache()
}

// cacheFails reports whether lists of the group could not be read from the cache
// in time before. An aggregated API server has a cache of its own.
func (r *Reader) cacheFails(l *listing) bool {
	_, fails := r.slowCaches.Load(l.resource.Group)
	return fails
}

// cacheFailed takes the error of a list from the cache. It waits if the server is
// busy and says for how long, but no longer than a request may take.
func (r *Reader) cacheFailed(ctx context.Context, l *listing, err error) {
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) || unlistedReason(err) == graph.Timeout ||
		errors.Is(err, errSilence) {
		r.slowCaches.Store(l.resource.Group, true)
		return
	}
	seconds, _ := apierrors.SuggestsClientDelay(err)
	pause(ctx, min(time.Duration(seconds)*time.Second, r.timeout))
}

// errSilence is the error of a list from the cache that did not begin in time.
var errSilence = errors.New("the server has not begun to answer")

// longList is the length of a list that a busy server may take long to begin, for it makes all of
// it before it sends any. The pages of one cost it more, and what it has done would be for nothing.
const longList = 10 * DefaultPageSize

// awaitCache gives a list from the cache up, by calling off its request, when it has not begun
// after a quarter of the time that a request may take. A list that the server says is long may
// take all of that time. The function that it returns must be called when the list has begun,
// or failed, and returns errSilence if it was given up.
func (r *Reader) awaitCache(ctx context.Context, l *listing, callOff func()) (begins func() error) {
	var settled atomic.Bool
	timer := time.AfterFunc(r.timeout/4, func() {
		if !r.isLong(ctx, l, longList) && settled.CompareAndSwap(false, true) {
			callOff()
		}
	})
	return func() error {
		timer.Stop()
		if !settled.CompareAndSwap(false, true) {
			return errSilence
		}
		return nil
	}
}

// isLong reports whether the server says that the list has more objects than so many. It is asked for the first
// object, which one whose cache does not catch up takes as long for as for all.
func (r *Reader) isLong(ctx context.Context, l *listing, most int) bool {
	ctx, cancel := context.WithTimeout(ctx, min(r.timeout/4, shortListTimeout))
	defer cancel()
	r.stats.pages.Add(1)
	list, err := r.client(l.resource, l.namespace).List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil && list.RemainingItemCount != nil && *list.RemainingItemCount >= int64(most)
}
