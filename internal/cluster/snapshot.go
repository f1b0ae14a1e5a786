// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"

	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// maxFallbackNamespaces bounds the lists that replace one forbidden list of
// all namespaces.
const maxFallbackNamespaces = 100

// Scope is the part of the cluster that a snapshot covers.
type Scope struct {
	// Namespace limits the snapshot to the namespaced types in it; empty means
	// the whole cluster. Owners outside, which can only be cluster-scoped, are
	// read one by one.
	Namespace string
	// Widened: the rest of the cluster is read, too, as far as the user may: what
	// refers to objects of the namespace from there, by mistake, and what depends on
	// owners without a namespace. What may only be listed in the namespace is
	// graph.Snapshot.Outside, not Unlisted.
	Widened bool
	// Parts are what is read instead, and no owners besides but those of OwnersOf; nil is for what is said above.
	Parts graph.Parts
	// OwnersOf is a type: with Parts, owners outside of these are read one by one for its objects, and theirs in turn. Empty is for none.
	OwnersOf schema.GroupResource
	// Kept has the lists of an earlier snapshot, which are not read again, and gets those of this one; nil is for neither.
	Kept *Kept
	// OwnersOnly: list nothing. The snapshot has the extra objects, and their
	// owners in turn, each read by itself.
	OwnersOnly bool
	// Labels are the keys of the labels to keep of what is listed; nil keeps
	// all.
	Labels []string
	// Terminating is called with each listed object that is being deleted, while others are
	// still being read, by several goroutines at once; nil is for nobody. What the object
	// points to is good until it returns.
	Terminating func(*graph.Object)
	// Whole are types of which whole objects may be wanted. Their lists are read after all
	// others, unless Taker, which is asked now and then, says before that somebody takes those
	// of the first: nil is for nobody. When such a list, of all namespaces, is about to be read
	// it is asked who does. What is read for both is read once.
	Whole []schema.GroupVersionResource
	Taker func(schema.GroupVersionResource) Taker
}

// Taker takes the whole objects of a list, without what no explanation looks at.
type Taker interface {
	// Begin is called before the first object, and again when the list is read again: what
	// came before does not count.
	Begin()
	// Take takes an object, in Go's type, which is good until it returns; what the object points
	// to may be kept. An error ends the list for the Taker, and for
	// nobody else.
	Take(runtime.Object) error
	// Complete is called when all objects of the list were taken. If it is not, some are
	// missing.
	Complete()
}

// Snapshot lists the metadata of everything in the scope that the garbage
// collector handles, adds the extra objects, and reads the owners that the
// lists leave undecided. What cannot be read is Unlisted in the snapshot and
// no error; an error means that the context ended.
func (r *Reader) Snapshot(ctx context.Context, scope Scope, extra ...graph.Object) (*graph.Snapshot, error) {
	s := &graph.Snapshot{Mapper: r.catalog.mapper, Types: r.catalog.resources, Parts: scope.Parts}
	for gv, err := range r.catalog.failed {
		s.MarkUnlisted(graph.Unlisted{
			GroupVersionResource: gv.WithResource(""), Reason: graph.DiscoveryFailed, Message: err.Error(),
		})
	}
	work := r.work(scope, func() []string { return withThoseOf(r.fallbackNamespaces(ctx), extra) })
	if scope.Kept != nil {
		scope.Kept.list(work, func(left []*listing) { r.list(ctx, left, scope) })
	} else {
		r.list(ctx, work, scope)
	}
	work = withoutGone(ctx, r.newDiscovery, s, work)
	var pages []graph.Batch
	for _, result := range work {
		pages = result.addTo(s, pages)
	}
	if scope.Kept != nil {
		for i := range pages {
			pages[i] = pages[i].Copy()
		}
	}
	s.AddBatch(pages...)
	for _, o := range extra {
		if listed, ok := s.Object(o.UID); !ok || !samePlace(&listed, &o) {
			s.Add(o) // which learns what else has this UID
		}
	}
	if scope.Parts == nil || scope.OwnersOf != (schema.GroupResource{}) {
		r.decide(ctx, s, &scope)
	}
	return s, ctx.Err()
}

// withoutGone drops the lists of types that are gone since the server named them, as definitions are that were deleted a moment ago: for a
// run that begins now there are no such types, so nothing of them is unread. Only another answer about all types proves that, in which
// their groups have not failed.
func withoutGone(ctx context.Context, newDiscovery func() (discovery.CachedDiscoveryInterface,
	error), s *graph.Snapshot, work []*listing) []*listing {
	if !slices.ContainsFunc(work, (*listing).unknown) {
		return work
	}
	client, err := newDiscovery()
	if err != nil {
		return work
	}
	now, err := discover(ctx, client)
	if err != nil {
		return work
	}
	gone := func(resource *graph.Resource) bool {
		_, served := now.preferred[resource.GroupResource()]
		failed := false
		for gv := range now.failed {
			failed = failed || gv.Group == resource.Group
		}
		return !served && !failed
	}
	left := slices.DeleteFunc(slices.Clone(work), func(l *listing) bool { return l.unknown() && gone(l.resource) })
	if len(left) < len(work) {
		s.Mapper, s.Types = now.mapper, slices.DeleteFunc(slices.Clone(s.Types), gone)
	}
	return left
}

// unknown reports whether the server answered a list, or a part of it, as it does for a type that it does not have any more.
func (l *listing) unknown() bool {
	return l.notServed || slices.ContainsFunc(l.parts, (*listing).unknown)
}

// samePlace reports whether two objects have the same URL, in whatever version.
func samePlace(a, b *graph.Object) bool {
	return a.Resource.GroupResource() == b.Resource.GroupResource() && a.Namespace == b.Namespace && a.Name == b.Name
}

// work returns the lists that the scope needs, with the namespaces to try where lists of all are forbidden.
func (r *Reader) work(scope Scope, fallback func() []string) []*listing {
	if scope.OwnersOnly {
		return nil
	}
	var work []*listing
	for _, resource := range r.catalog.resources {
		switch {
		case scope.Parts != nil:
			work = append(work, listingsOf(resource, scope.Parts, fallback)...)
		case scope.Namespace != "" && scope.Widened:
			work = append(work, widenedListing(resource, scope.Namespace))
		case scope.Namespace != "" && resource.Namespaced:
			work = append(work, &listing{resource: resource, namespace: scope.Namespace})
		case scope.Namespace == "" && resource.Namespaced:
			work = append(work, &listing{resource: resource, fallback: fallback})
		case scope.Namespace == "":
			work = append(work, &listing{resource: resource})
		}
	}
	return work
}

// listingsOf are the lists of a resource that make up parts.
func listingsOf(resource *graph.Resource, parts graph.Parts, fallback func() []string) []*listing {
	var listings []*listing
	for _, p := range parts.Of(resource) {
		l := &listing{resource: resource, namespace: p.Namespace, labels: p.Labels}
		if resource.Namespaced && p.Namespace == "" {
			l.fallback = fallback
		}
		listings = append(listings, l)
	}
	return listings
}

// widenedListing lists a resource everywhere, and if that is forbidden in the
// namespace.
func widenedListing(resource *graph.Resource, namespace string) *listing {
	l := &listing{resource: resource, widened: true, fallback: func() []string { return nil }}
	if resource.Namespaced {
		l.fallback = func() []string { return []string{namespace} }
	}
	return l
}

// list makes the lists of a scope, a few at a time.
func (r *Reader) list(ctx context.Context, work []*listing, scope Scope) {
	var progress *Progress
	if r.options.Reading != nil && len(work) > 0 {
		progress = new(Progress)
		progress.all.Store(int64(len(work)))
		defer r.options.Reading(progress)()
	}
	var group sync.WaitGroup
	inFlight := r.inFlight(work)
	s := newSchedule(work, inFlight, scope.Whole, func(l *listing) bool { return scope.Taker(l.resource.GroupVersionResource) != nil })
	quiet := newSilence(func() bool { return ctx.Err() != nil || r.listsAnything(ctx) })
	for range min(inFlight, len(work)) {
		group.Go(func() {
			p := r.newPageReader(scope.Labels)
			p.terminating = scope.Terminating
			for l := s.take(); l != nil; l = s.take() {
				progress.began(l)
				more, err := false, quiet.broken()
				if err == nil {
					l.begin(&scope)
					more, err = p.known(ctx, l)
					if err != nil && l.taker != nil && ctx.Err() == nil {
						l.forget()
						more, err = p.known(ctx, l)
					}
					if err != nil || len(l.pages) > 0 { // and not that it is to be read in pages now
						quiet.took(err)
					}
				}
				progress.read(l)
				parts := l.ended(more, err)
				if l.complete && l.taker != nil {
					l.taker.Complete()
				}
				if !more {
					progress.ended(parts)
				}
				s.done(l, more, parts)
			}
		})
	}
	group.Wait()
}

// inFlight is how many of the lists are asked for at once. Those of one namespace are small:
// what they cost is the way there and back.
func (r *Reader) inFlight(work []*listing) int {
	switch {
	case !r.Far():
		return listsInFlight
	case slices.ContainsFunc(work, func(l *listing) bool { return l.namespace == "" }):
		return listsInFlightFar
	}
	return smallInFlightFar
}

// begin notes who takes the whole objects of a list that is about to be read.
func (l *listing) begin(scope *Scope) {
	if !l.asked && l.namespace == "" && l.labels == "" && slices.Contains(scope.Whole, l.resource.GroupVersionResource) {
		if l.taker = scope.Taker(l.resource.GroupVersionResource); l.taker != nil {
			l.taker.Begin()
		}
	}
}

// forget has a list of whole objects, which could not be read, read again as metadata: it may
// be that the server, or who takes them, cannot do with the rest.
func (l *listing) forget() {
	l.taker, l.pages, l.asked, l.way, l.token, l.paging = nil, nil, false, inPages, "", paging{}
}

// ended notes how a list ended, if it has no more pages. When it was forbidden
// it returns lists of the namespaces at hand, which take its place.
func (l *listing) ended(more bool, err error) []*listing {
	if more || err == nil {
		l.complete = !more
		return nil
	}
	if !offline.IsPartial(err) { // what a file has is there, whatever else may be
		l.pages = nil
	}
	if l.widened && apierrors.IsForbidden(err) {
		return l.narrow()
	}
	l.notServed = apierrors.IsNotFound(err) || apierrors.IsInternalError(err) // of a cache that was stopped
	l.unlisted = []graph.Unlisted{{
		GroupVersionResource: l.resource.GroupVersionResource,
		Namespace:            l.namespace,
		Reason:               unlistedReason(err),
		Message:              answer.Words(err),
	}}
	if l.fallback == nil || !apierrors.IsForbidden(err) {
		return nil
	}
	return l.narrow()
}

// narrow lists the namespaces of the fallback instead.
func (l *listing) narrow() []*listing {
	for _, namespace := range l.fallback() {
		l.parts = append(l.parts, &listing{resource: l.resource, namespace: namespace, labels: l.labels})
	}
	return l.parts
}

// addTo records the result in the snapshot, but for the objects, which it adds to
// the pages.
func (l *listing) addTo(s *graph.Snapshot, pages []graph.Batch) []graph.Batch {
	pages = append(pages, l.pages...)
	if l.complete && l.labels == "" {
		s.MarkListed(l.resource.GroupResource(), l.namespace, l.version)
	}
	for _, u := range l.unlisted {
		s.MarkUnlisted(u)
	}
	if l.widened && !l.complete && len(l.unlisted) == 0 {
		s.MarkOutside(l.resource.GroupResource())
	}
	for _, part := range l.parts {
		pages = part.addTo(s, pages)
	}
	return pages
}

// withThoseOf adds the namespace of each object to others: a user who may not list namespaces sees the contents of those
// that he names.
func withThoseOf(namespaces []string, objects []graph.Object) []string {
	namespaces = slices.Clip(namespaces)
	for i := range objects {
		namespace := objects[i].Namespace
		if objects[i].Resource.IsNamespace() {
			namespace = objects[i].Name
		}
		if namespace != "" && !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// namespaces returns the namespaces to try when lists of all are forbidden:
// those that can be listed, otherwise the one of the context.
func (r *Reader) namespaces(ctx context.Context) []string {
	l := &listing{resource: &graph.Resource{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace",
	}}
	if err := r.listPages(ctx, l); err != nil || len(l.objects) > maxFallbackNamespaces {
		return []string{r.options.Namespace}
	}
	var names []string
	for _, o := range l.objects {
		names = append(names, o.Name)
	}
	return names
}

// decide reads the owners that the lists can neither show nor prove absent, a
// GET each, and their owners in turn; where parts are read, those of OwnersOf alone.
func (r *Reader) decide(ctx context.Context, s *graph.Snapshot, scope *Scope) {
	type place struct {
		resource        schema.GroupResource
		namespace, name string
	}
	at := func(u graph.Undecided) place { return place{u.Resource.GroupResource(), u.Namespace, u.Name} }
	tried := map[place]bool{}
	for ctx.Err() == nil {
		undecided := slices.DeleteFunc(s.Undecided(), func(u graph.Undecided) bool { return tried[at(u)] })
		if scope.Parts != nil {
			stated := ownersOf(s, scope.OwnersOf)
			undecided = slices.DeleteFunc(undecided, func(u graph.Undecided) bool { return !stated[[2]string{u.Resource.Kind, u.Name}] })
		}
		if len(undecided) == 0 {
			return
		}
		r.decideAll(ctx, s, undecided)
		for _, u := range undecided {
			tried[at(u)] = true
		}
	}
}

// ownersOf are the kinds and names of the owners that objects of a type state, and of theirs as far as these were read.
func ownersOf(s *graph.Snapshot, resource schema.GroupResource) map[[2]string]bool {
	stated, seen := map[[2]string]bool{}, map[types.UID]bool{}
	var queue []metav1.OwnerReference
	for o := range s.Objects() {
		if o.Resource.GroupResource() == resource {
			queue = append(queue, o.OwnerReferences...)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		ref := queue[0]
		stated[[2]string{ref.Kind, ref.Name}] = true
		if owner, known := s.Object(ref.UID); known && !seen[ref.UID] {
			seen[ref.UID] = true
			queue = append(queue, owner.OwnerReferences...)
		}
	}
	return stated
}

// decideAll reads owners and records what it found: those of a type of which there are many from one list, the others a few at
// a time. They are sorted.
func (r *Reader) decideAll(ctx context.Context, s *graph.Snapshot, undecided []graph.Undecided) {
	single := slices.DeleteFunc(slices.Clone(undecided), func(u graph.Undecided) bool { return graph.ValidName(u.Name) })
	undecided = slices.DeleteFunc(slices.Clone(undecided), func(u graph.Undecided) bool { return !graph.ValidName(u.Name) })
	for len(undecided) > 0 {
		first := undecided[0]
		n := 1
		for n < len(undecided) && undecided[n].Namespace == first.Namespace && undecided[n].Resource == first.Resource {
			n++
		}
		if n <= fewSingles || !r.decideListed(ctx, s, undecided[:n]) {
			single = append(single, undecided[:n]...)
		}
		undecided = undecided[n:]
	}
	r.decideSingly(ctx, s, single)
}

// decideListed reads owners of one type, and in one namespace if they have any, from a list, which proves absent what it does
// not have. It is false if the list has too many others, or cannot be read.
func (r *Reader) decideListed(ctx context.Context, s *graph.Snapshot, undecided []graph.Undecided) bool {
	of := undecided[0].Resource
	l := &listing{resource: r.catalog.canonical(of), namespace: undecided[0].Namespace}
	if r.isLong(ctx, l, perSingle*len(undecided)) || r.listPages(ctx, l) != nil {
		return false
	}
	absent := sets.New[string]()
	for _, u := range undecided {
		absent.Insert(u.Name)
	}
	for _, o := range l.objects {
		if absent.Has(o.Name) {
			absent.Delete(o.Name)
			s.Add(o)
		}
	}
	for name := range absent {
		s.MarkAbsent(of.GroupResource(), l.namespace, name)
	}
	return true
}

// decideSingly reads owners by themselves.
func (r *Reader) decideSingly(ctx context.Context, s *graph.Snapshot, undecided []graph.Undecided) {
	objects := make([]graph.Object, len(undecided))
	errs := make([]error, len(undecided))
	var group errgroup.Group
	group.SetLimit(getsInFlight)
	for i, u := range undecided {
		group.Go(func() error {
			objects[i], errs[i] = r.Get(ctx, u.Resource, u.Namespace, u.Name)
			return nil
		})
	}
	_ = group.Wait() // failures are in errs
	for i, u := range undecided {
		switch err := errs[i]; {
		case err == nil:
			s.Add(objects[i])
		case answer.NoSuchObject(err, u.Resource.GroupResource(), u.Name):
			s.MarkAbsent(u.Resource.GroupResource(), u.Namespace, u.Name)
		default:
			s.MarkUnlisted(graph.Unlisted{
				GroupVersionResource: u.Resource.GroupVersionResource, Namespace: u.Namespace, Name: u.Name,
				Reason: unlistedReason(err), Message: answer.Words(err),
			})
		}
	}
}
