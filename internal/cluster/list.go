// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster/wire"
	"github.com/kubectl-gc/kubectl-gc/internal/rawjson"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
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

// The API server names a new type a moment before it answers for it: when it does not know
// one that it has named, it is asked again.
const (
	unknownRetries = 3
	unknownPause   = 500 * time.Millisecond
)

// bulkConfig is the configuration for lists that may be long. HTTP/1.1 with a
// connection for each list in flight costs half of what HTTP/2 does for many megabytes
// (docs/internals/snapshot.md), and from far away a connection has no window of 4 MB, which is
// what HTTP/2 in Go lets come in one way there and back.
func bulkConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if config.Transport == nil {
		config.NextProtos = []string{"http/1.1"}
	}
	return config
}

// onThisMachine reports whether the server is: compression is a waste then.
func onThisMachine(config *rest.Config) bool {
	server, _, err := rest.DefaultServerUrlFor(config)
	return err == nil && (server.Hostname() == "localhost" || net.ParseIP(server.Hostname()).IsLoopback())
}

// Far reports whether requests spend most of their time on the way. Then many lists are asked
// for at once: the server has no more of them to answer at a time than a near one. Short ones,
// of one namespace, are over the connection that is there.
func (r *Reader) Far() bool { return r.stats.shortest() >= farTrip }

// listing is one list to make and what became of it.
type listing struct {
	resource  *graph.Resource
	namespace string
	// fields selects objects by fields, and labels by labels; empty selects all.
	fields, labels string
	// fallback names the namespaces to list one by one when the list of all is
	// forbidden. It is asked only then.
	fallback func() []string
	// widened: all namespaces are tried although one is asked for.
	widened bool
	// data: Secrets and ConfigMaps come with theirs.
	data bool
	// include is how much of objects a table has; empty leaves that to the server.
	include metav1.IncludeObjectPolicy
	// taker takes the whole objects; nil when metadata is all that is asked for.
	taker Taker

	pages []graph.Batch
	// objects are those of the pages for who asks for them so.
	objects  []graph.Object
	version  string // the list's resourceVersion
	complete bool
	unlisted []graph.Unlisted
	parts    []*listing
	// notServed: the server may not have the type any more.
	notServed bool

	way  way
	told told
	// asked: a request was sent.
	asked bool
	// token continues the list; remaining is what it leads to.
	token     string
	remaining int64
	// onward: it was begun, and its next page is being read.
	onward bool
	paging paging
	size   pageSize
}

// way is how a list is read.
type way int

const (
	inPages way = iota
	// fromCache: all of it in one piece, from the API server's cache.
	fromCache
	// afresh: the token has expired, so all of it again in one piece.
	afresh
)

// pageReader reads pages, one after the other.
type pageReader struct {
	reader  *Reader
	decoder wire.Decoder
	packer  graph.Packer
	objects int // of the page that was read last
	whole   wholeDecoder

	// accept is the form in which pages are asked for.
	accept string
	// decode decodes a page while it comes in, and calls count for each object.
	decode func(l *listing, body io.Reader) (wire.List, error)
	// begin drops what came of a list, which is read from its beginning.
	begin func(l *listing)
	// terminating is that of a Scope.
	terminating func(*graph.Object)
}

// newPageReader returns a pageReader of metadata that keeps the labels with the keys, or
// all if there are none.
func (r *Reader) newPageReader(labels []string) *pageReader {
	p := &pageReader{reader: r, decoder: wire.Decoder{Labels: labels}, accept: acceptLists}
	p.decode = func(l *listing, body io.Reader) (wire.List, error) {
		add := func(o *graph.Object) error {
			o.Resource = l.resource
			p.packer.Add(o)
			if p.terminating != nil && o.BeingDeleted() {
				p.terminating(o)
			}
			return p.count()
		}
		if l.taker != nil {
			return p.decodeBoth(l, body, add)
		}
		return decodeList(&p.decoder, body, add)
	}
	p.begin = func(l *listing) {
		l.pages = nil
		if l.taker != nil {
			l.taker.Begin()
		}
	}
	return p
}

// count counts an object of a page.
func (p *pageReader) count() error {
	if p.objects++; p.objects > mostObjects {
		return fmt.Errorf("the list does not end: there are more than %d objects", mostObjects)
	}
	return nil
}

// next reads the listing's next page and reports whether there are more. A server
// that has the list in its cache is asked for all of it in one piece, and for pages
// only if this fails. When a token has expired the listing starts over, in one piece
// (client-go, tools/pager, FullListIfExpired). What came before is dropped. A
// server may cap its answers all the same, and then the tokens are followed.
func (p *pageReader) next(ctx context.Context, l *listing) (more bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if !l.asked {
		l.asked = true
		p.reader.stats.lists.Add(1)
		if p.reader.caches(ctx, l) {
			l.way = fromCache
		}
	}
	p.reader.stats.pages.Add(1)
	asked := time.Now()
	list, err := p.read(ctx, l)
	page := p.packer.Batch() // also of a page that broke off: the next may be of another list
	switch {
	case err == nil:
	case l.way == fromCache && ctx.Err() == nil && mayComeInPages(err):
		p.begin(l)
		l.way = inPages
		p.reader.cacheFailed(ctx, l, err)
		return true, nil
	case l.token != "" && l.way == inPages && apierrors.IsResourceExpired(err):
		p.begin(l)
		l.token, l.way, l.paging = "", afresh, paging{}
		return true, nil
	default:
		return false, err
	}
	switch l.way {
	case inPages:
		l.size = l.size.after(time.Since(asked))
	case fromCache:
		l.way = inPages
	}
	if err := l.paging.page(p.objects, list.Continue); err != nil {
		return false, fmt.Errorf("reading the list of %s: %w", l.resource.GroupResource(), err)
	}
	l.pages = append(l.pages, page)
	l.version, l.token, l.remaining = list.ResourceVersion, list.Continue, list.Remaining
	return l.token != "", nil
}

// known is next for a type that the server has just named.
func (p *pageReader) known(ctx context.Context, l *listing) (more bool, err error) {
	for range unknownRetries {
		if more, err = p.next(ctx, l); !apierrors.IsNotFound(err) {
			return more, err
		}
		pause(ctx, unknownPause)
	}
	return p.next(ctx, l)
}

// mayComeInPages reports whether it is worth trying to read a list in pages that was not to
// be had in one piece: not when the server refuses it, nor when who takes it does.
func mayComeInPages(err error) bool {
	return !errors.As(err, new(takerError)) && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsNotFound(err) &&
		!apierrors.IsMethodNotSupported(err)
}

// pause waits, but not for longer than the context.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// read sends the request for a page and packs its objects.
func (p *pageReader) read(ctx context.Context, l *listing) (wire.List, error) {
	ctx, cancel := context.WithTimeout(ctx, p.reader.timeout)
	defer cancel()
	lists := p.reader.bulk
	if p.reader.Far() && l.namespace != "" {
		lists = p.reader.bulkFar
	}
	request := lists.Get().AbsPath(l.resource.Path(l.namespace, "")...).SetHeader("Accept", p.accepts(l))
	p.reader.choose(request, l)
	begins := func() error { return nil }
	if l.way == fromCache {
		begins = p.reader.awaitCache(ctx, l, cancel)
	}
	body, err := stream(ctx, request)
	if body != nil {
		defer func() { _ = body.Close() }()
	}
	if err := cmp.Or(begins(), err); err != nil {
		return wire.List{}, err
	}
	p.objects = 0
	list, err := p.decode(l, body)
	if err != nil {
		err = fmt.Errorf("reading the list of %s: %w", l.resource.GroupResource(), err)
	}
	return list, err
}

// choose says which part of the list the request is for.
func (r *Reader) choose(request *rest.Request, l *listing) {
	if l.labels != "" {
		request.Param("labelSelector", l.labels)
	}
	if l.include != "" {
		request.Param("includeObject", string(l.include))
	}
	if l.way == fromCache {
		request.MaxRetries(0)
		return
	}
	size := r.options.PageSize
	if size == AutoPageSize {
		size = l.size.objects()
	}
	if size > 0 && l.way == inPages {
		request.Param("limit", strconv.FormatInt(size, 10))
	}
	if l.token != "" {
		request.Param("continue", l.token)
	}
	if l.fields != "" {
		request.Param("fieldSelector", l.fields)
	}
}

// versionTimeout is how long the version is waited for: what it is for can do without.
const versionTimeout = 10 * time.Second

// Server returns what is known of the API server by its version, for which it is asked
// once.
func (r *Reader) Server(ctx context.Context) answer.Server {
	r.askServer.Do(func() { r.server = r.askVersion(ctx) })
	return r.server
}

func (r *Reader) askVersion(ctx context.Context) answer.Server {
	ctx, cancel := context.WithTimeout(ctx, min(r.timeout, versionTimeout))
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
		if pause(ctx, brokenPause); ctx.Err() != nil {
			return nil, err
		}
	}
}

// recognizes reports whether a body is in protobuf, and returns all of it. Its error is the
// one of reading the body.
func recognizes(body io.Reader) (packed bool, whole io.Reader, err error) {
	var start [4]byte
	n, err := io.ReadFull(body, start[:])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // it is short, and no list
	}
	return wire.Recognizes(start[:n]), io.MultiReader(bytes.NewReader(start[:n]), body), err
}

// decodeList decodes a list of metadata in either encoding while it comes in.
func decodeList(decoder *wire.Decoder, body io.Reader, add func(*graph.Object) error) (wire.List, error) {
	switch packed, whole, err := recognizes(body); {
	case err != nil:
		return wire.List{}, err
	case packed:
		return decoder.Decode(whole, add)
	default:
		return decodeJSON(whole, func(text []byte) error { return decodeItem(text, add) })
	}
}

// decodeJSON splits a list of metadata, or of whole objects, while it comes in, into the
// JSON of its objects. As client-go's metadata client does, it takes nothing else for one.
func decodeJSON(r io.Reader, item func(text []byte) error) (wire.List, error) {
	var list metav1.PartialObjectMetadataList
	in := &boundedReader{r, longestAnswer, longestAnswer}
	stream := rawjson.NewStream(in)
	err := stream.Fields(func(name string) error {
		in.left = in.most // for each of what is in memory at a time
		switch name {
		case "kind":
			return decodeNext(stream, &list.Kind)
		case "apiVersion":
			return decodeNext(stream, &list.APIVersion)
		case "metadata":
			return decodeNext(stream, &list.ListMeta)
		case "items":
			return stream.Elements(in.each(item))
		}
		_, err := stream.Value()
		return err
	})
	switch {
	case err != nil:
		return wire.List{}, err
	case !strings.HasSuffix(list.Kind, "List"):
		return wire.List{}, &wire.KindError{APIVersion: list.APIVersion, Kind: list.Kind}
	}
	return listOf(&list.ListMeta), nil
}

// listOf is what a list says of itself.
func listOf(m *metav1.ListMeta) wire.List {
	return wire.List{ResourceVersion: m.ResourceVersion, Continue: m.Continue, Remaining: ptr.Deref(m.RemainingItemCount, 0)}
}

// decodeItem decodes the metadata of an object.
func decodeItem(text []byte, add func(*graph.Object) error) error {
	var item metav1.PartialObjectMetadata
	if err := json.Unmarshal(text, &item); err != nil {
		return err
	}
	o := graph.NewObject(nil, &item)
	return add(&o)
}

// listPages reads all pages of a list into l.objects.
func (r *Reader) listPages(ctx context.Context, l *listing) error {
	if err := r.newPageReader(nil).all(ctx, l); err != nil {
		return err
	}
	for _, page := range l.pages {
		l.objects = slices.AppendSeq(l.objects, page.Objects())
	}
	l.pages = nil
	return nil
}
