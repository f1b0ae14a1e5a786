// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/cluster/wire"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// acceptLists asks for metadata alone. A server that cannot leave the rest away
// sends it in JSON, as old aggregated ones do.
const acceptLists = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// A GET whose connection breaks before the answer is sent again, as client-go
// does (rest/with_retry.go); what a server answers with Retry-After client-go
// repeats by itself.
const (
	brokenRetries = 10
	brokenPause   = time.Second
)

// bulkConfig is the configuration for lists. HTTP/1.1 with a connection for
// each list in flight costs half of what HTTP/2 does for many megabytes, and
// compression is a waste when the server is on this machine
// (docs/design.md, "Requests").
func bulkConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if config.Transport == nil {
		config.NextProtos = []string{"http/1.1"}
	}
	if server, _, err := rest.DefaultServerUrlFor(config); err == nil {
		host := server.Hostname()
		config.DisableCompression = config.DisableCompression || host == "localhost" || net.ParseIP(host).IsLoopback()
	}
	return config
}

// listing is one list to make and what became of it.
type listing struct {
	resource  *graph.Resource
	namespace string
	// fallback names the namespaces to list one by one when the list of all is
	// forbidden. It is asked only then.
	fallback func() []string
	// widened: all namespaces are tried although one is asked for.
	widened bool

	pages []graph.Batch
	// objects are those of the pages for who asks for them so.
	objects  []graph.Object
	version  string // the list's resourceVersion
	complete bool
	unlisted []graph.Unlisted
	parts    []*listing

	way  way
	told told
	// token continues the list; remaining is what it leads to.
	token     string
	remaining int64
	// onward: it was begun, and its next page is being read.
	onward bool
	// json: it comes in JSON, and a page is in memory in full.
	json bool
}

// way is how a list is read.
type way int

const (
	inPages way = iota
	// fromCache: all of it again in one piece, from the API server's cache.
	fromCache
	// afresh: the token has expired, so all of it again in one piece.
	afresh
)

// pageReader reads pages, one after the other.
type pageReader struct {
	reader  *Reader
	decoder wire.Decoder
	packer  graph.Packer
}

// newPageReader returns a pageReader that keeps the labels with the keys, or
// all if there are none.
func (r *Reader) newPageReader(labels []string) *pageReader {
	return &pageReader{reader: r, decoder: wire.Decoder{Labels: labels}}
}

// next reads the listing's next page and reports whether there are more. A list
// that proves to have more than one is read again in one piece where the server
// has it in its cache; the token of the first page is for the case that this
// fails. When a token has expired the listing starts over, in one piece
// (client-go, tools/pager, FullListIfExpired). What came before is dropped. A
// server may cap its answers all the same, and then the tokens are followed.
func (p *pageReader) next(ctx context.Context, l *listing) (more bool, err error) {
	if l.way == fromCache && p.reader.cacheFails(l) {
		l.way = inPages // found out by others
	}
	if l.token == "" && l.way == inPages {
		p.reader.stats.lists.Add(1)
	}
	p.reader.stats.pages.Add(1)
	list, err := p.read(ctx, l)
	page := p.packer.Batch()
	switch {
	case err == nil:
	case l.way == fromCache && ctx.Err() == nil:
		l.way = inPages
		p.reader.cacheFailed(ctx, l, err)
		return true, nil
	case l.token != "" && l.way == inPages && apierrors.IsResourceExpired(err):
		l.pages, l.token, l.way = nil, "", afresh
		return true, nil
	default:
		return false, err
	}
	first := len(l.pages) == 0 && l.way == inPages
	if l.way == fromCache {
		l.pages, l.way = nil, inPages
	}
	l.pages = append(l.pages, page)
	l.version, l.token, l.remaining = list.ResourceVersion, list.Continue, list.Remaining
	if first && l.token != "" && p.reader.caches(ctx, l) {
		l.way = fromCache
	}
	return l.token != "", nil
}

// read sends the request for a page and packs its objects.
func (p *pageReader) read(ctx context.Context, l *listing) (wire.List, error) {
	ctx, cancel := context.WithTimeout(ctx, p.reader.timeout)
	defer cancel()
	request := p.reader.bulk.Get().AbsPath(l.resource.Path(l.namespace, "")...).SetHeader("Accept", acceptLists)
	p.reader.choose(request, l)
	body, err := stream(ctx, request)
	if err != nil {
		return wire.List{}, err
	}
	defer func() { _ = body.Close() }()
	add := func(o *graph.Object) error {
		o.Resource = l.resource
		p.packer.Add(o)
		return nil
	}
	var start [4]byte
	n, err := io.ReadFull(body, start[:])
	whole := io.MultiReader(bytes.NewReader(start[:n]), body)
	var list wire.List
	if err == nil && wire.Recognizes(start[:]) {
		list, err = p.decoder.Decode(whole, add)
	} else {
		l.json = true
		list, err = decodeJSON(whole, add)
	}
	if err != nil {
		err = fmt.Errorf("reading the list of %s: %w", l.resource.GroupResource(), err)
	}
	return list, err
}

// choose says which part of the list the request is for.
func (r *Reader) choose(request *rest.Request, l *listing) {
	if l.way == fromCache {
		request.Param("resourceVersion", l.version).MaxRetries(0).
			Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
		return
	}
	size := r.options.PageSize
	if size == AutoPageSize {
		size = DefaultPageSize
	}
	if size > 0 && l.way == inPages {
		request.Param("limit", strconv.FormatInt(size, 10))
	}
	if l.token != "" {
		request.Param("continue", l.token)
	}
}

// caches reports whether the listing, of which there is one page, had better be
// read in one piece from the API server's cache. Its further pages may come from
// etcd: a server has pages in its cache only if something of the type has changed
// since etcd was last compacted (apiserver/pkg/storage/cacher/watch_cache.go,
// Compact), and then goes over all that is left of the list for each
// (store/store_btree.go, ListPrefix).
func (r *Reader) caches(ctx context.Context, l *listing) bool {
	return r.options.PageSize == AutoPageSize && l.version != "" && l.version != "0" && !l.json && !r.cacheFails(l) && r.Server(ctx).StreamsFromCache()
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
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) || unlistedReason(err) == graph.Timeout {
		r.slowCaches.Store(l.resource.Group, true)
		return
	}
	seconds, _ := apierrors.SuggestsClientDelay(err)
	select {
	case <-ctx.Done():
	case <-time.After(min(time.Duration(seconds)*time.Second, r.timeout)):
	}
}

// Server returns what is known of the API server by its version, for which it is asked
// once.
func (r *Reader) Server(ctx context.Context) answer.Server {
	r.askServer.Do(func() { r.server = r.askVersion(ctx) })
	return r.server
}

func (r *Reader) askVersion(ctx context.Context) answer.Server {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	data, err := r.rest.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return answer.Server{}
	}
	var info apiversion.Info
	if err := json.Unmarshal(data, &info); err != nil {
		return answer.Server{}
	}
	return answer.ServerOf(info.GitVersion)
}

// stream sends the request, again while the connection breaks before the
// answer.
func stream(ctx context.Context, request *rest.Request) (io.ReadCloser, error) {
	for attempt := 0; ; attempt++ {
		body, err := request.Stream(ctx)
		if err == nil || attempt == brokenRetries || !utilnet.IsConnectionReset(err) && !utilnet.IsProbableEOF(err) {
			return body, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(brokenPause):
		}
	}
}

// decodeJSON decodes a list as client-go's metadata client does: of metadata,
// or of whole objects. It is in memory in full.
func decodeJSON(r io.Reader, add func(*graph.Object) error) (wire.List, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return wire.List{}, err
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(data, &list); err != nil {
		return wire.List{}, err
	}
	if !strings.HasSuffix(list.Kind, "List") {
		return wire.List{}, &wire.KindError{APIVersion: list.APIVersion, Kind: list.Kind}
	}
	for i := range list.Items {
		o := graph.NewObject(nil, &list.Items[i])
		if err := add(&o); err != nil {
			return wire.List{}, err
		}
	}
	result := wire.List{ResourceVersion: list.ResourceVersion, Continue: list.Continue}
	if list.RemainingItemCount != nil {
		result.Remaining = *list.RemainingItemCount
	}
	return result, nil
}

// listPages reads all pages of a list into l.objects.
func (r *Reader) listPages(ctx context.Context, l *listing) error {
	p := r.newPageReader(nil)
	for {
		more, err := p.next(ctx, l)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	for _, page := range l.pages {
		l.objects = slices.AppendSeq(l.objects, page.Objects())
	}
	l.pages = nil
	return nil
}

// usuallyLarge are the types of which a cluster has most objects, more or less
// in that order. Which are large in this one the first pages tell.
var usuallyLarge = []string{
	"pods", "replicasets.apps", "configmaps", "secrets", "endpointslices.discovery.k8s.io", "jobs.batch",
	"controllerrevisions.apps", "endpoints", "services", "serviceaccounts", "deployments.apps", "leases.coordination.k8s.io",
}

// sizeRank is the type's place among those that are usually large.
func (l *listing) sizeRank() int {
	if i := slices.Index(usuallyLarge, l.resource.GroupResource().String()); i >= 0 {
		return i
	}
	return len(usuallyLarge)
}

// schedule hands out lists, a page at a time. The pages of a list follow one
// another, so the longest list takes longest however many are in flight; it
// must begin early and never wait. The first page tells how long a list is.
// While there are lists whose length is not known, half of the readers go on
// with those that have most left; then all do.
type schedule struct {
	mu    sync.Mutex
	ready *sync.Cond
	fresh []*listing
	begun []*listing
	// busy counts the lists that are being read, onward those of them that were
	// begun before.
	busy, onward int
}

func newSchedule(work []*listing) *schedule {
	s := &schedule{fresh: slices.Clone(work)}
	slices.SortStableFunc(s.fresh, func(a, b *listing) int { return cmp.Compare(a.sizeRank(), b.sizeRank()) })
	s.ready = sync.NewCond(&s.mu)
	return s
}

// take returns a list of which the next page is to be read, or nil when there
// will be none. It blocks while others may still add some.
func (s *schedule) take() *listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.fresh) == 0 && len(s.begun) == 0 && s.busy > 0 {
		s.ready.Wait()
	}
	if len(s.fresh) == 0 && len(s.begun) == 0 {
		return nil
	}
	s.busy++
	if len(s.begun) > 0 && (len(s.fresh) == 0 || s.onward < listsInFlight/2) {
		s.onward++
		return s.longest()
	}
	l := s.fresh[0]
	s.fresh = s.fresh[1:]
	return l
}

// longest takes the list with most left out of those that were begun.
func (s *schedule) longest() *listing {
	l := slices.MaxFunc(s.begun, func(a, b *listing) int { return cmp.Compare(a.remaining, b.remaining) })
	i := slices.Index(s.begun, l)
	s.begun = slices.Delete(s.begun, i, i+1)
	l.onward = true
	return l
}

// done gives a list back that was taken, if it has more pages, and adds others.
func (s *schedule) done(l *listing, more bool, others []*listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	if l.onward {
		s.onward--
		l.onward = false
	}
	if more {
		s.begun = append(s.begun, l)
	}
	s.fresh = append(s.fresh, others...)
	s.ready.Broadcast()
}
