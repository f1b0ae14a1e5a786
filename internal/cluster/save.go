// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster/wire"
	"github.com/kubectl-gc/kubectl-gc/internal/lease"
	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// SaveOptions say what Save writes.
type SaveOptions struct {
	// Namespace limits types with namespaces to one, empty for all.
	Namespace string
	// Begun is when reading begins, by the server's clock.
	Begun time.Time
	// Wait lets the time pass that a second look at leases needs; nil takes none.
	Wait func(context.Context, time.Duration)
	// Progress is told of each type before it is listed; nil is for nobody.
	Progress func(resource string)
}

// Contents says what Save writes of each type.
func (r *Reader) Contents() []offline.Content {
	var contents []offline.Content
	for _, resource := range r.saved() {
		gr := resource.GroupResource()
		contents = append(contents, offline.Content{Resource: gr.String(), Version: resource.Version, Holds: offline.HoldsOf(gr)})
	}
	return contents
}

// Save writes what all answers about the cluster rest on, list by list as it comes in;
// no list is in memory. What cannot be read is written as that, and is no error; an
// error means that nothing can be written, or that the context ended.
func (r *Reader) Save(ctx context.Context, w *offline.Writer, options SaveOptions) error {
	s := &saver{Reader: r, ctx: ctx, out: w, options: options, owners: map[graph.Undecided]bool{}, listed: map[schema.GroupResource]int{},
		ending: map[types.UID]bool{}}
	for _, resource := range r.saved() {
		if options.Progress != nil {
			options.Progress(resource.GroupResource().String())
		}
		if err := s.save(resource); err != nil {
			return err
		}
	}
	if err := s.saveOwners(); err != nil {
		return err
	}
	if err := s.events(); err != nil {
		return err
	}
	return s.again()
}

// saved returns the types to write: all that the garbage collector handles, those of
// many objects and dependents late, so that few owners are open at a time, and the
// leases at the end, whose age counts from then.
func (r *Reader) saved() []*graph.Resource {
	resources := slices.Clone(r.catalog.resources)
	rank := func(resource *graph.Resource) int {
		switch {
		case resource.GroupResource() == leases.GroupResource():
			return len(usuallyLarge) + 1
		case slices.Contains(usuallyLarge, resource.GroupResource().String()):
			return len(usuallyLarge) - slices.Index(usuallyLarge, resource.GroupResource().String())
		}
		return 0
	}
	slices.SortStableFunc(resources, func(a, b *graph.Resource) int { return cmp.Compare(rank(a), rank(b)) })
	return resources
}

// saver is one run of Save.
type saver struct {
	*Reader
	ctx     context.Context
	out     *offline.Writer
	options SaveOptions
	// owners are those named by references that no list has shown or disproved yet.
	owners map[graph.Undecided]bool
	// listed is how many objects of each type were listed.
	listed map[schema.GroupResource]int
	// complete are the types of which all objects were listed.
	complete map[schema.GroupResource]bool
	// ending are the objects that are being deleted.
	ending map[types.UID]bool
	// endingAt are the places of the first of them.
	endingAt []graph.Object
	// managed: a controller manager works, by its lease.
	managed bool
	// expired: a lease looks as if nobody renewed it.
	expired bool
	now     time.Time
}

// save writes the objects of a type: all, or those of the namespaces that may be
// listed.
func (s *saver) save(resource *graph.Resource) error {
	namespace := ""
	if resource.Namespaced {
		namespace = s.options.Namespace
	}
	failed, err := s.saveList(resource, namespace, false)
	switch {
	case err != nil:
		return err
	case failed == nil && namespace == "":
		s.decided(resource.GroupResource())
		return nil
	case failed == nil || !resource.Namespaced || namespace != "" || !apierrors.IsForbidden(failed):
		return s.otherVersion(resource, failed)
	}
	for _, namespace := range s.fallbackNamespaces(s.ctx) {
		if _, err := s.saveList(resource, namespace, false); err != nil {
			return err
		}
	}
	return nil
}

// otherVersion writes the objects of a type in another of its versions when they
// cannot be listed in the preferred one, as when a conversion fails.
func (s *saver) otherVersion(resource *graph.Resource, failed error) error {
	if failed == nil || apierrors.IsForbidden(failed) || graph.BuiltinGroup(resource.Group) {
		return nil
	}
	mappings, err := s.catalog.mapper.RESTMappings(resource.GroupVersionKind().GroupKind())
	if err != nil {
		return nil //nolint:nilerr // it has no other versions that are known
	}
	for _, mapping := range mappings {
		if mapping.Resource.Version == resource.Version || mapping.Resource.Resource != resource.Resource {
			continue
		}
		other := *resource
		other.Version = mapping.Resource.Version
		if _, err := s.saveList(&other, "", false); err != nil {
			return err
		}
	}
	return nil
}

// saveList writes one list, or a second look at it. failed is why it could not be read.
func (s *saver) saveList(resource *graph.Resource, namespace string, again bool) (failed, err error) {
	holds := offline.HoldsOf(resource.GroupResource())
	list := &offline.List{
		Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Kind: resource.Kind,
		Namespaced: resource.Namespaced, Namespace: namespace, Holds: holds, Again: again,
	}
	if err := s.out.Begin(list); err != nil {
		return nil, err
	}
	var version string
	var whole []graph.Object
	begin := func() {
		whole = nil
		s.out.Restart()
	}
	if holds == offline.Metadata {
		version, failed = s.metadata(resource, namespace, begin, &whole)
	} else {
		version, failed = s.objects(resource, namespace, begin)
	}
	var unwritten writeError
	if errors.As(failed, &unwritten) {
		return nil, unwritten.error
	}
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	end := offline.End{ResourceVersion: version}
	if resource.Resource == "events" {
		end.Partial = "the snapshot has only warnings, and events about what was being deleted"
	}
	if failed != nil {
		end.Error, end.ResourceVersion, whole = statusOf(failed), "", nil
	}
	if err := s.out.End(end); err != nil {
		return nil, err
	}
	return failed, s.wholes(namespace, whole, singleWhole)
}

// statusOf is what a file says of a failure to read.
func statusOf(failed error) *metav1.Status {
	return offline.StatusOf(failed, answer.Words(failed), unlistedReason(failed) == graph.Timeout)
}

// writeError is an error of the file, not of the server.
type writeError struct{ error }

// Unwrap returns the file's error.
func (e writeError) Unwrap() error { return e.error }

// metadata writes a list of which only metadata is held. The first objects of which more is to be read are added to whole, which begin
// empties.
func (s *saver) metadata(resource *graph.Resource, namespace string, begin func(), whole *[]graph.Object) (version string, failed error) {
	p, list := s.newPageReader(nil), metadataList{}
	p.begin = func(*listing) { begin() }
	p.decode = func(_ *listing, body io.Reader) (wire.List, error) {
		err := list.decode(body, func(m *metav1.PartialObjectMetadata) error {
			o := graph.NewObject(resource, m)
			if len(*whole) < maxSingles && (o.BeingDeleted() || len(o.Finalizers) > 0 || s.justMade(&o)) {
				*whole = append(*whole, ownObject(&o))
			}
			return p.handed(s.add(metadataEntry(&o, m.Annotations), &o))
		})
		return list.List, err
	}
	l := &listing{resource: resource, namespace: namespace}
	err := p.all(s.ctx, l)
	return l.version, err
}

// young is how young an object without a controller is whose maker explanations name
// (internal/explain, remade).
const young = 5 * time.Minute

// justMade reports whether explanations ask who made an object.
func (s *saver) justMade(o *graph.Object) bool {
	return s.options.Begun.Sub(o.CreationTimestamp.Time) <= young &&
		metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: o.OwnerReferences}) == nil
}

// ownObject is as much of an object as is needed to ask for it.
func ownObject(o *graph.Object) graph.Object {
	return graph.Object{Resource: o.Resource, Namespace: strings.Clone(o.Namespace), Name: strings.Clone(o.Name)}
}

// metadataList decodes lists of metadata, with the annotations and without the managed fields, one after the other.
type metadataList struct {
	wire.List
	decoder wire.Decoder
	buffer  []byte
}

// managedFields are those of an object's metadata.
var managedFields = cut{"metadata": cuts("managedFields")}.drop(reflect.TypeFor[metav1.PartialObjectMetadata]())

// decode calls each for the objects of a list in either encoding.
func (l *metadataList) decode(body io.Reader, each func(*metav1.PartialObjectMetadata) error) error {
	packed, whole, err := recognizes(body)
	switch {
	case err != nil:
	case packed:
		kind := metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}
		l.List, err = l.decoder.Split(whole, kind, func(message []byte) error {
			var m metav1.PartialObjectMetadata
			message, l.buffer = managedFields.From(message, l.buffer)
			if err := m.Unmarshal(message); err != nil {
				return fmt.Errorf("decoding a list: %w", err)
			}
			return each(&m)
		})
	default:
		l.List, err = decodeJSON(whole, func(text []byte) error {
			var m metav1.PartialObjectMetadata
			if err := json.Unmarshal(text, &m); err != nil {
				return err
			}
			return each(&m)
		})
	}
	return err
}

// metadataEntry is the entry of an object of which only that is known.
func metadataEntry(o *graph.Object, annotations map[string]string) *offline.Entry {
	m := o.Metadata()
	maps.DeleteFunc(annotations, func(name, _ string) bool { return !offline.KeepsAnnotation(name) })
	m.Annotations = annotations
	text, _ := stdjson.Marshal(struct { // strings, numbers and times
		Metadata *metav1.ObjectMeta `json:"metadata"`
	}{&m})
	return &offline.Entry{Object: text}
}

// add writes an object, and notes what is to be read for it later.
func (s *saver) add(e *offline.Entry, o *graph.Object) error {
	s.listed[o.Resource.GroupResource()]++
	if o.BeingDeleted() {
		s.ending[types.UID(strings.Clone(string(o.UID)))] = true
		if len(s.endingAt) <= maxSingles {
			s.endingAt = append(s.endingAt, ownObject(o))
		}
	}
	for i := range o.OwnerReferences {
		s.owner(o, &o.OwnerReferences[i])
	}
	if err := s.out.Add(e); err != nil {
		return writeError{err}
	}
	return nil
}

// fallbackNamespaces is namespaces, asked once.
func (r *Reader) fallbackNamespaces(ctx context.Context) []string {
	r.askNamespaces.Do(func() { r.fallbacks = r.namespaces(ctx) })
	return r.fallbacks
}

// events writes the events about objects that are being deleted, and all warnings.
func (s *saver) events() error {
	resource := &graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "events"},
		Kind: "Event", Namespaced: true}
	if s.options.Progress != nil {
		s.options.Progress("events")
	}
	return s.save(resource)
}

// secondLook is how long after the first look a second one shows whether leases are
// renewed, and whether anybody works on what is being deleted.
const secondLook = 12 * time.Second

// again writes a second look at the leases, and at what is being deleted, when that
// decides whether somebody works: a lease looks as if nobody renewed it, though its
// holder's clock may lag, or no controller manager is seen to work.
func (s *saver) again() error {
	if s.options.Wait == nil || len(s.ending) == 0 || len(s.endingAt) > maxSingles || !s.expired && s.managed {
		return nil
	}
	if s.options.Progress != nil {
		s.options.Progress("what moves")
	}
	s.options.Wait(s.ctx, secondLook)
	for left := s.endingAt; len(left) > 0; {
		next := slices.IndexFunc(left, func(o graph.Object) bool { return o.Resource.GroupResource() != left[0].Resource.GroupResource() })
		if next < 0 {
			next = len(left)
		}
		if err := s.wholes(s.options.Namespace, left[:next], singleAgain); err != nil {
			return err
		}
		left = left[next:]
	}
	return s.leasesAgain()
}

func (s *saver) leasesAgain() error {
	i := slices.IndexFunc(s.catalog.resources, func(r *graph.Resource) bool { return r.GroupResource() == leases.GroupResource() })
	if i < 0 {
		return nil
	}
	_, err := s.saveList(s.catalog.resources[i], s.options.Namespace, true)
	return err
}

// noteLease looks whether a second look is needed.
func (s *saver) noteLease(object []byte) error {
	var o unstructured.Unstructured
	if err := json.Unmarshal(object, &o.Object); err != nil {
		return err
	}
	if s.now.IsZero() {
		s.now = s.Now(s.ctx)
	}
	switch lease.Of(o.Object).Judge(s.now) {
	case lease.Expired, lease.Released:
		s.expired = true
	case lease.Held:
		s.managed = s.managed || o.GetNamespace() == metav1.NamespaceSystem && o.GetName() == "kube-controller-manager"
	}
	return nil
}
