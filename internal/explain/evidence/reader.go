// SPDX-License-Identifier: Apache-2.0

// Package evidence reads what an explanation rests on beyond metadata, each thing
// once: whole objects, lists of them, events, leases. It owns what was read, what
// could not be, and the time. It judges nothing but leases, and creates no cause.
package evidence

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Cluster is where a Reader reads. The error of an absent object is NotFound; any
// other says that the answer is not known.
type Cluster interface {
	// Read returns a whole object.
	Read(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error)
	// List returns all objects of a resource, in the namespace or everywhere.
	List(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error)
	// EachMentioning calls begin, and then yield with each object of a List that has a field
	// of one of the names, wherever. When it has to read the list again, it calls begin
	// again: what came before does not count. After an error there may be more of them.
	EachMentioning(ctx context.Context, resource schema.GroupVersionResource, namespace string, fields []string, begin func(),
		yield func(*unstructured.Unstructured) error) error
	// EachNaming does the same with those that have one of the texts anywhere, also within a longer one. Nothing is left out of them.
	EachNaming(ctx context.Context, resource schema.GroupVersionResource, namespace string, texts []string, begin func(),
		yield func(*unstructured.Unstructured) error) error
	// EachTyped does it with all objects of one of Kubernetes' own types, in Go's. An object is
	// good until yield returns, but what it points to may be kept.
	EachTyped(ctx context.Context, resource schema.GroupVersionResource, kind, namespace string, begin func(),
		yield func(runtime.Object) error) error
}

// Source is what a Reader works with.
type Source struct {
	Cluster Cluster
	// Graph says what there is, by its metadata.
	Graph *graph.Graph
	// Events returns the events about an object; nil reads none.
	Events func(ctx context.Context, namespace string, uid types.UID) ([]unstructured.Unstructured, error)
	// Now is the API server's time.
	Now time.Time
	// Server is what is known of the API server by its version.
	Server answer.Server
	// Wait lets the time pass that a second look needs; nil does not wait.
	Wait func(context.Context, time.Duration)
	// Passed returns how much time has passed since the objects of the graph were
	// listed, or less; nil counts none.
	Passed func() time.Duration
	// Gone names objects of the graph that are to count as gone: what is asked is
	// how things will stand without them. nil is for none.
	Gone func(types.UID) bool
}

// Reader reads each thing once, and remembers what it read: it owns the whole objects and the events. It is for one run,
// and for one goroutine.
type Reader struct {
	*metadata
	*lists
	*leases
	*unread
	source Source
	ctx    context.Context // of the run
	// whole is the Reader that this one gets by, nil for none.
	whole *Reader

	objects map[place]reading
	// early and earlyEvents wait for what is read before it is asked for, or read it; asked
	// and askedEvents are how often objects of a family were asked for, or events about them.
	early              map[place]func() reading
	earlyEvents        map[types.UID]func() listing
	asked, askedEvents map[family]int
	// announced will be asked for, by the lists that have them, in the order of the graph; alone is how many objects were read by
	// themselves.
	announced map[place][]graph.Node
	alone     int
	events    map[types.UID]listing
	// looked counts the volumes that were looked up, and volumes has all, once they were many.
	looked  int
	volumes map[string]*unstructured.Unstructured
}

// New returns a Reader that has read nothing.
func New(ctx context.Context, source Source) *Reader {
	r := &Reader{
		source: source, ctx: ctx, metadata: &metadata{graph: source.Graph, without: source.Gone},
		unread:  &unread{forbidden: map[string]schema.GroupResource{}},
		objects: map[place]reading{}, early: map[place]func() reading{}, earlyEvents: map[types.UID]func() listing{}, asked: map[family]int{},
		askedEvents: map[family]int{},
		announced:   map[place][]graph.Node{},
		events:      map[types.UID]listing{},
	}
	r.lists = &lists{
		metadata: r.metadata, unread: r.unread, source: source, ctx: ctx,
		all: map[place]listing{}, mentioned: map[string]listing{}, earlyLists: map[place]listing{}, pods: map[string]podList{},
		indexes: map[place]*found{},
	}
	r.leases = &leases{clock: &clock{Now: source.Now, ctx: ctx, wait: source.Wait, passed: source.Passed}, reads: r,
		again: map[graph.Identity]LeaseState{}}
	return r
}

// Without returns a Reader to which some objects of the graph count as gone. What it gets
// and lists is read once for both.
func (r *Reader) Without(gone func(types.UID) bool) *Reader {
	source := r.source
	source.Gone = gone
	return r.For(source)
}

// For returns a Reader of a source of the same cluster. What it gets and lists is read once for both.
func (r *Reader) For(source Source) *Reader {
	other := New(r.ctx, source)
	other.whole, other.lists.whole = r, r.lists
	other.unread, other.lists.unread = r.unread, r.unread
	return other
}

// Again returns a Reader of a later graph of the same cluster, which has what this one has read, but for failures. What was not
// there is proved absent with the later graph.
func (r *Reader) Again(source Source) *Reader {
	other := New(r.ctx, source)
	for p, l := range r.objects {
		if l.err == nil || apierrors.IsNotFound(l.err) {
			other.objects[p] = l
		}
	}
	for p, l := range r.lists.all {
		if l.err == nil {
			other.lists.all[p] = l
		}
	}
	for p, l := range r.mentioned {
		if l.err == nil {
			other.mentioned[p] = l
		}
	}
	for uid, l := range r.events {
		if l.err == nil {
			other.events[uid] = l
		}
	}
	return other
}

// Server is what is known of the API server by its version.
func (r *Reader) Server() answer.Server { return r.source.Server }

// place is what a read asks for.
type place struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// placeOf is where the whole of a node is read.
func placeOf(n graph.Node) place {
	return place{n.Resource().GroupVersionResource, n.Namespace(), n.Name()}
}

// alikeOf is the list to which a node belongs with those that are like it: of its type, and
// of pods in its namespace.
func alikeOf(n graph.Node) place {
	p := place{resource: n.Resource().GroupVersionResource}
	if n.Resource().IsPod() {
		p.namespace = n.Namespace()
	}
	return p
}

func (p place) String() string {
	name := p.resource.GroupResource().String()
	if p.name != "" {
		name += "/" + p.name
	}
	if p.namespace != "" {
		name += " in namespace " + p.namespace
	}
	return name
}

type reading struct {
	object *unstructured.Unstructured
	err    error
}

// Get reads a whole object.
func (r *Reader) Get(resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	p := place{resource, namespace, name}
	known, ok := r.objects[p]
	if !ok {
		if r.whole != nil {
			known.object, known.err = r.whole.Get(resource, namespace, name)
		} else {
			known = r.read(p)
		}
		if known.err == nil && r.gone(known.object.GetUID()) {
			known = reading{err: apierrors.NewNotFound(resource.GroupResource(), name)}
		}
		r.objects[p] = known
		r.note(p, known.err)
	}
	return known.object, known.err
}

// read returns what was read early, or reads it.
func (r *Reader) read(p place) reading {
	if early := r.early[p]; early != nil {
		return early()
	}
	r.alone++
	return r.readNow(r.ctx, p)
}

// readNow may be called by several goroutines.
func (r *Reader) readNow(ctx context.Context, p place) (l reading) {
	l.object, l.err = r.source.Cluster.Read(ctx, p.resource, p.namespace, p.name)
	return l
}

func (m *metadata) gone(uid types.UID) bool { return m.without != nil && m.without(uid) }

// Known reports that an object was read by other means than Get, which returns it
// from now on.
func (r *Reader) Known(resource schema.GroupVersionResource, o *unstructured.Unstructured) {
	p := place{resource, o.GetNamespace(), o.GetName()}
	if _, ok := r.objects[p]; !ok {
		r.objects[p] = reading{object: o}
	}
}

// Anew reads a whole object as it is now, and remembers nothing of it.
func (r *Reader) Anew(resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	return r.source.Cluster.Read(r.ctx, resource, namespace, name)
}

// ListAnew lists whole objects as they are now, and remembers nothing of them.
func (r *lists) ListAnew(resource schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	return r.source.Cluster.List(r.ctx, resource, "")
}

// maxAlike is the number of terminating objects of a type, of pods those in a
// namespace, up to which each is read by itself. Of more they are listed, unless there
// are so many others of the type, perTerminating for each, that the requests cost less.
const (
	maxAlike       = 20
	perTerminating = 50
)

// Whole reads the whole of a node. Another object of its name is an error: the node
// is gone.
func (r *Reader) Whole(n graph.Node) (*unstructured.Unstructured, error) {
	p, alike := placeOf(n), alikeOf(n)
	if _, known := r.objects[p]; known {
		return r.itself(n, p)
	}
	if r.many(alike) {
		if full, err := r.inList(n, alike); !apierrors.IsNotFound(err) {
			return full, err
		}
	} else {
		r.ahead(n)
	}
	return r.itself(n, p)
}

// itself reads the whole of a node by its name.
func (r *Reader) itself(n graph.Node, p place) (*unstructured.Unstructured, error) {
	o, err := r.Get(p.resource, p.namespace, p.name)
	if err == nil && o.GetUID() != n.UID() {
		return nil, apierrors.NewNotFound(p.resource.GroupResource(), p.name)
	}
	return o, err
}

// many reports whether there are so many terminating objects that they are listed,
// or that they were.
func (r *lists) many(p place) bool {
	if _, listed := r.all[p]; listed {
		return true
	}
	c := r.counts()
	return c.terminating[p] > maxAlike && c.all[p] <= c.terminating[p]*perTerminating
}

// counts are how many objects there are, and how many are being deleted, by the list to which
// they belong.
type counts struct {
	all, terminating map[place]int
	// deleted are those that are being deleted, by type, in the order of the graph.
	deleted map[schema.GroupVersionResource][]graph.Node
}

func (m *metadata) counts() *counts {
	if m.counted == nil {
		c := &counts{map[place]int{}, map[place]int{}, map[schema.GroupVersionResource][]graph.Node{}}
		for n := range m.graph.Nodes() {
			if n.Virtual() {
				break // they follow all others
			}
			of := alikeOf(n)
			c.all[of]++
			if n.BeingDeleted() {
				c.terminating[of]++
				c.deleted[of.resource] = append(c.deleted[of.resource], n)
			}
		}
		m.counted = c
	}
	return m.counted
}

// NoteList keeps that a list of all objects of a resource could not be read, if so.
func (u *unread) NoteList(resource schema.GroupVersionResource, err error) {
	u.note(place{resource: resource}, err)
}

// Versions returns the versions that a resource has, and whether that could be found out: those of its definition, whether they are served
// or not, or, of Kubernetes' own, those that the server has.
func (r *Reader) Versions(resource graph.Resource) (versions []string, known bool) {
	if graph.BuiltinGroup(resource.Group) {
		mappings, err := r.graph.Snapshot().Mapper.RESTMappings(resource.GroupVersionKind().GroupKind())
		for _, mapping := range mappings {
			versions = append(versions, mapping.Resource.Version)
		}
		return versions, err == nil
	}
	definition, err := r.Get(CRDs, "", resource.GroupResource().String())
	if err != nil {
		return nil, false
	}
	all, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, each := range all {
		version, _ := each.(map[string]any)
		versions = append(versions, Text(version["name"]))
	}
	return versions, len(versions) > 0
}

// IsGone reports whether an object of the graph counts as gone.
func (m *metadata) IsGone(uid types.UID) bool { return uid != "" && m.gone(uid) }

// Itself returns an object whole, nil when it could not be read, or another has its name.
func (r *Reader) Itself(id graph.Identity) *unstructured.Unstructured {
	object, err := r.Get(id.Resource.GroupVersionResource, id.Namespace, id.Name)
	if err != nil || object.GetUID() != id.UID {
		return nil
	}
	return object
}

// Version returns the resourceVersion of an object as it was read, or its UID when
// it was not.
func (r *Reader) Version(id graph.Identity) string {
	resource := id.Resource.GroupVersionResource
	if known := r.objects[place{resource, id.Namespace, id.Name}]; known.object != nil && known.err == nil && known.object.GetUID() == id.UID {
		return known.object.GetResourceVersion()
	}
	items := r.lists.all[place{resource, "", ""}].items
	for i := range items {
		if items[i].GetUID() == id.UID {
			return items[i].GetResourceVersion()
		}
	}
	for _, namespace := range []string{"", id.Namespace} {
		if list := r.indexes[place{resource, namespace, ""}]; list != nil {
			if o := list.of(id.UID); o != nil {
				return o.GetResourceVersion()
			}
		}
	}
	return string(id.UID)
}

// maxEventReads is the number of objects whose events are read.
const maxEventReads = 40

// Events reads the events about an object: nil when there are none, when they cannot
// be read, or when those of many objects were.
func (r *Reader) Events(namespace string, uid types.UID) []unstructured.Unstructured {
	l, known := r.events[uid]
	if known || r.source.Events == nil || len(r.events) == maxEventReads {
		return l.items
	}
	r.eventsAhead(uid)
	items, err := r.readEvents(namespace, uid)
	r.events[uid] = listing{items, err}
	r.note(place{schema.GroupVersionResource{Version: "v1", Resource: "events"}, namespace, ""}, err)
	return items
}

// readEvents returns events that were read early, or reads them.
func (r *Reader) readEvents(namespace string, uid types.UID) ([]unstructured.Unstructured, error) {
	if early := r.earlyEvents[uid]; early != nil {
		l := early()
		return l.items, l.err
	}
	return r.source.Events(r.ctx, namespace, uid)
}
