// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"iter"
	"slices"
	"sort"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// index finds the objects of the graph.
type index struct {
	// ranges say where they stand in the order of the graph.
	ranges *graph.Ranges
	// inNamespace has those in namespaces that were asked for.
	inNamespace map[string][]graph.Node
	// byName has the numbers of those of types that were looked for by name, sorted by
	// namespace and name.
	byName map[schema.GroupResource][]int32
}

// metadata is what there is, by the graph. It owns the indexes of that, and leaves out what counts as gone.
type metadata struct {
	graph *graph.Graph
	// without is Gone of the Source.
	without func(types.UID) bool
	nodes   *index
	counted *counts
	// missed are the parts of the cluster that were needed and not read.
	missed []graph.Part
}

func (m *metadata) index() *index {
	if m.nodes == nil {
		m.nodes = &index{
			ranges:      graph.RangesOf(m.places),
			inNamespace: map[string][]graph.Node{}, byName: map[schema.GroupResource][]int32{},
		}
	}
	return m.nodes
}

// places goes over the types and namespaces of the objects of the graph.
func (m *metadata) places(yield func(*graph.Resource, string) bool) {
	for n := range m.graph.Nodes() {
		if n.Virtual() || !yield(n.Resource(), n.Namespace()) {
			return // virtual ones follow all others
		}
	}
}

func (m *metadata) at(i int32) graph.Node { return m.graph.At(int(i)) }

// left returns the objects with the numbers, but for those that are gone.
func (m *metadata) left(numbers iter.Seq[int32]) iter.Seq[graph.Node] {
	return func(yield func(graph.Node) bool) {
		for i := range numbers {
			if n := m.at(i); (m.without == nil || !m.gone(n.UID())) && !yield(n) {
				return
			}
		}
	}
}

// Needs notes that what is said depends on a part of the cluster. All methods that tell what there
// is note it of the part that they tell of.
func (m *metadata) Needs(p graph.Part) {
	if !m.graph.Snapshot().Parts.Contain(p) && !slices.Contains(m.missed, p) {
		m.missed = append(m.missed, p)
	}
}

// Missed returns the parts of the cluster that were needed and that nobody had asked the server
// for. When there are any, what is said counts for nothing.
func (m *metadata) Missed() []graph.Part { return m.missed }

// Instances goes over the objects of a type by their metadata, in the order of the graph, those
// that are gone left out.
func (m *metadata) Instances(resource schema.GroupResource) iter.Seq[graph.Node] {
	m.Needs(graph.Part{Resource: resource})
	return m.seen(resource)
}

// Going goes over the objects of a type that are there and count as gone.
func (m *metadata) Going(resource schema.GroupResource) iter.Seq[graph.Node] {
	return func(yield func(graph.Node) bool) {
		for i := range m.index().ranges.OfType(resource) {
			if n := m.at(i); m.gone(n.UID()) && !yield(n) {
				return
			}
		}
	}
}

// seen are the Instances in what was read of the cluster.
func (m *metadata) seen(resource schema.GroupResource) iter.Seq[graph.Node] {
	return m.left(m.index().ranges.OfType(resource))
}

// Node returns the object with the UID, which should be of the type and in the namespace.
func (m *metadata) Node(resource schema.GroupResource, namespace string, uid types.UID) (graph.Node, bool) {
	n, known := m.graph.Node(uid)
	if !known || n.Virtual() {
		m.Needs(graph.Part{Resource: resource, Namespace: namespace})
	}
	return n, known
}

// needsOwner needs the owner that a reference names: where that says that it is, or anywhere when it
// is not there.
func (m *metadata) needsOwner(n graph.Node, ref graph.Reference) {
	resource, namespaced, served := m.ServedKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	p := graph.Part{Resource: resource.GroupResource()}
	if namespaced {
		p.Namespace = n.Namespace()
	}
	switch owner, known := m.graph.Node(ref.UID); {
	case known && !owner.Virtual():
	case !served || m.graph.Snapshot().Parts.Contain(p): // it is not where the reference says, and may be anywhere
		m.Needs(graph.Part{})
	default:
		m.Needs(p)
	}
}

// Owners returns the references of a node to its owners.
func (m *metadata) Owners(n graph.Node) []graph.Reference {
	owners := n.Owners()
	for _, ref := range owners {
		m.needsOwner(n, ref)
	}
	return owners
}

// Count returns the number of the Instances.
func (m *metadata) Count(resource schema.GroupResource) (number int) {
	for range m.Instances(resource) {
		number++
	}
	return number
}

// NoneOf reports whether what was read of the cluster shows that there is no object of a type. It is
// for who would ask for them anyway: it needs nothing.
func (m *metadata) NoneOf(resource schema.GroupResource) bool {
	for range m.seen(resource) {
		return false
	}
	return m.graph.Snapshot().Covers(resource, "", "")
}

// unmarked selects the pods that bear no mark of a Deployment or a Job: most others of a cluster,
// which have their names from these.
const unmarked = "!pod-template-hash,!batch.kubernetes.io/job-name"

// UnmarkedPods are the Instances of pods that bear no mark of a Deployment or a Job, and of which
// the name is wanted.
func (m *metadata) UnmarkedPods(wanted func(name string) bool) iter.Seq[graph.Node] {
	selector, err := labels.Parse(unmarked)
	if err != nil {
		panic(err) // it is above
	}
	m.Needs(graph.Part{Resource: Pods.GroupResource(), Labels: unmarked})
	return func(yield func(graph.Node) bool) {
		for n := range m.seen(Pods.GroupResource()) {
			if wanted(n.Name()) && selector.Matches(labels.Set(n.Object().Labels)) && !yield(n) {
				return
			}
		}
	}
}

// OfTypes returns the objects of the types that are wanted, as Instances does, in the order
// of the graph.
func (m *metadata) OfTypes(wanted func(*graph.Resource) bool) []graph.Node {
	var found []graph.Node
	for _, resource := range m.Types() {
		if wanted(resource) {
			m.Needs(graph.Part{Resource: resource.GroupResource()})
		}
	}
	for resource := range m.index().ranges.Types() {
		if wanted(resource) {
			found = slices.AppendSeq(found, m.Instances(resource.GroupResource()))
		}
	}
	slices.SortFunc(found, graph.Node.Compare)
	return found
}

// Within returns the objects of a type in a namespace, as Instances does.
func (m *metadata) Within(resource schema.GroupResource, namespace string) []graph.Node {
	m.Needs(graph.Part{Resource: resource, Namespace: namespace})
	return m.between(resource, func(n graph.Node) int { return cmp.Compare(n.Namespace(), namespace) })
}

// Named returns the objects of a type with the name in the namespace, as Instances does:
// more than one if it was deleted and made anew while it was listed.
func (m *metadata) Named(resource schema.GroupResource, namespace, name string) []graph.Node {
	m.Needs(graph.Part{Resource: resource, Namespace: namespace})
	return m.between(resource, func(n graph.Node) int {
		return cmp.Or(cmp.Compare(n.Namespace(), namespace), cmp.Compare(n.Name(), name))
	})
}

// Called is Named for a type with namespaces, in any of them where that is empty.
func (m *metadata) Called(resource schema.GroupResource, namespace, name string) (all []graph.Node) {
	if namespace != "" {
		return m.Named(resource, namespace, name)
	}
	for n := range m.Instances(resource) {
		if n.Name() == name {
			all = append(all, n)
		}
	}
	return all
}

// between returns the objects of a type that are equal to what is looked for.
func (m *metadata) between(resource schema.GroupResource, compare func(graph.Node) int) []graph.Node {
	all := m.byName(resource)
	from := sort.Search(len(all), func(i int) bool { return compare(m.at(all[i])) >= 0 })
	to := from + sort.Search(len(all)-from, func(i int) bool { return compare(m.at(all[from+i])) > 0 })
	return slices.Collect(m.left(slices.Values(all[from:to])))
}

// byName returns the numbers of the objects of a type, sorted by namespace and name.
func (m *metadata) byName(resource schema.GroupResource) []int32 {
	all, known := m.index().byName[resource]
	if !known {
		all = slices.Collect(m.index().ranges.OfType(resource))
		order := func(i, j int32) int {
			a, b := m.at(i), m.at(j)
			return cmp.Or(cmp.Compare(a.Namespace(), b.Namespace()), cmp.Compare(a.Name(), b.Name()))
		}
		if !slices.IsSortedFunc(all, order) { // it is, but for types with two kinds
			slices.SortStableFunc(all, order)
		}
		m.index().byName[resource] = all
	}
	return all
}

// In returns what is in a namespace, as Instances does.
func (m *metadata) In(namespace string) []graph.Node {
	m.Needs(graph.Part{Namespace: namespace})
	x := m.index()
	all, known := x.inNamespace[namespace]
	if !known {
		all = slices.Collect(m.left(x.ranges.InNamespace(namespace)))
		x.inNamespace[namespace] = all
	}
	return all
}

// Covers reports whether an object with these coordinates that is not among the
// Instances is provably absent.
func (m *metadata) Covers(resource schema.GroupResource, namespace, name string) bool {
	m.Needs(graph.Part{Resource: resource, Namespace: namespace})
	return m.graph.Snapshot().Covers(resource, namespace, name)
}

// NamespaceGone reports whether the namespace provably does not exist.
func (r *Reader) NamespaceGone(name string) bool {
	if name == "" {
		return false
	}
	if _, there := r.namespace(name); there || !r.Covers(Namespaces.GroupResource(), "", name) {
		return false
	}
	_, err := r.Get(Namespaces, "", name) // it may have been created meanwhile
	return apierrors.IsNotFound(err)
}

// Ending reports whether a namespace is being deleted, or does not exist.
func (r *Reader) Ending(name string) bool {
	if n, there := r.namespace(name); there {
		return n.BeingDeleted()
	}
	return r.NamespaceGone(name)
}

func (m *metadata) namespace(name string) (graph.Node, bool) {
	if found := m.Named(Namespaces.GroupResource(), "", name); len(found) > 0 {
		return found[0], true
	}
	return graph.Node{}, false
}

// Types returns the types whose objects may be in the graph. They must not be changed.
func (m *metadata) Types() []*graph.Resource { return m.graph.Snapshot().Types }

// Served returns the preferred version of a type that the server has.
func (m *metadata) Served(resource schema.GroupResource) (schema.GroupVersionResource, bool) {
	mapper := m.graph.Snapshot().Mapper
	if found, err := mapper.ResourceFor(resource.WithVersion("")); err == nil {
		return found, true
	}
	all, err := mapper.ResourcesFor(resource.WithVersion("")) // that was ambiguous
	if err != nil || len(all) == 0 {
		return schema.GroupVersionResource{}, false
	}
	return all[0], true
}

// ServedKind returns the type of a kind that the server has, and whether its objects are
// in namespaces.
func (m *metadata) ServedKind(kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced, served bool) {
	mapping, err := m.graph.Snapshot().Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupVersionResource{}, false, false
	}
	return mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}
