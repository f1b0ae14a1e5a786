// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/ensuing"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// reaches reports whether a way out affects more than what its cause blocks: all that waits for the same, in any namespace. What it
// changes of an object that is being deleted affects that alone, unless this is the type of others.
func (l *Look) reaches(way []*explain.Remedy) bool {
	return slices.ContainsFunc(way, func(r *explain.Remedy) bool {
		if r.Operation == nil || !r.Temporary && !r.Operation.Reaches() {
			return false
		}
		n, known := l.Graph.Node(r.Operation.Object.UID)
		return r.Operation.Verb != remedy.Patch || !known || !n.BeingDeleted() || n.Resource().IsCRD()
	})
}

// Parts are what of the cluster the ways out affect, or may: claims whose data goes, and what waits for the same.
func (l *Look) Parts() []graph.Part {
	parts := sets.New(l.dataIn(l.places())...)
	for _, c := range l.Report.Causes {
		for i := range c.Remedies {
			if c.Verdict == explain.Stuck {
				parts.Insert(l.partsOf(c, []*explain.Remedy{&c.Remedies[i]})...)
			}
		}
	}
	return slices.SortedFunc(maps.Keys(parts), func(a, b graph.Part) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// dataIn are the claims in namespaces, and the snapshots of volumes where the server has them.
func (l *Look) dataIn(places sets.Set[string]) []graph.Part {
	var parts []graph.Part
	for place := range places {
		parts = append(parts, graph.Part{Resource: evidence.Claims.GroupResource(), Namespace: place})
		for _, r := range l.Graph.Snapshot().Types {
			if of := r.GroupResource(); of != evidence.Claims.GroupResource() && evidence.KeepsData(of) {
				parts = append(parts, graph.Part{Resource: r.GroupResource(), Namespace: place})
			}
		}
	}
	return parts
}

// partsOf are those of a way out of a cause. What waits for the same may be of any type.
func (l *Look) partsOf(c *explain.Cause, way []*explain.Remedy) []graph.Part {
	after, places := graph.Fall{Set: graph.NewSet(l.frees(c, way)...)}, l.placesOf(c)
	after.Spread()
	evicts := slices.ContainsFunc(way, func(r *explain.Remedy) bool { return r.Operation != nil && r.Operation.Verb == remedy.Taint }) ||
		slices.ContainsFunc(after.Set.Sorted(), func(n graph.Node) bool { return n.Resource().GroupResource() == evidence.Nodes.GroupResource() })
	reaches, types := l.reaches(way), sets.Set[schema.GroupResource](nil)
	if !reaches && !evicts {
		parts := l.dataIn(places.Union(shrunk(way)))
		if places.Has("") { // what is in no namespace may own nodes
			parts = append(parts, graph.Part{Resource: evidence.Nodes.GroupResource()})
		}
		return parts
	}
	if reaches {
		types = l.waiting(c).types
	}
	parts := l.dataIn(sets.New(""))
	for t := range types {
		parts = append(parts, graph.Part{Resource: t})
	}
	if evicts {
		parts = append(parts, graph.Part{Resource: evidence.Pods.GroupResource()})
	}
	if c.Waits != nil || len(types) > 0 || evicts {
		parts = append(parts, graph.Part{})
	}
	return parts
}

// unlisted reports whether a part could not be listed. Types that the API server cannot list because it fails at them are no part of
// everything: it fails at writes of them, too.
func (l *Look) unlisted(p graph.Part) bool {
	s := l.Graph.Snapshot()
	if p != (graph.Part{}) {
		return !s.ListedIn(p.Resource, p.Namespace)
	}
	return slices.ContainsFunc(s.Unlisted(), func(u graph.Unlisted) bool {
		return u.Name == "" && u.Reason != graph.DiscoveryFailed && !answer.IsConversionFailure(u.Message)
	})
}

// waiting says how to tell what waits for a cause: by its finalizers, where a controller has to remove these, or else by its type.
type waiting struct {
	finalizers sets.Set[string]
	domains    sets.Set[string] // of the finalizers
	types      sets.Set[schema.GroupResource]
}

func (w waiting) insert(finalizers ...string) {
	w.finalizers.Insert(finalizers...)
	for _, f := range finalizers {
		if domain, _, qualified := strings.Cut(f, "/"); qualified && domain != "kubernetes.io" {
			w.domains.Insert(domain)
		}
	}
}

// removes reports whether who removes the finalizers removes another, too: that, or one of the same domain, unless that is Kubernetes'.
func (w waiting) removes(finalizer string) bool {
	domain, _, qualified := strings.Cut(finalizer, "/")
	return w.finalizers.Has(finalizer) || qualified && w.domains.Has(domain)
}

// waiting finds that out from the objects that the cause blocks directly.
func (l *Look) waiting(c *explain.Cause) waiting {
	w := waiting{sets.New[string](), sets.New[string](), sets.New[schema.GroupResource]()}
	for o := range l.Report.Blocked(c) {
		for _, f := range o.Findings {
			link := explain.Link{Object: o.Object}
			if last := len(f.Chain) - 1; last >= 0 && f.Cause == c {
				if link = f.Chain[last]; last > 0 && link.Object == c.Object && link.Because.Equal(c.Summary) { // the cause itself
					link = f.Chain[last-1]
				}
			}
			alone := link.Object == c.Object || link.Object.Resource.IsPod() // of pods, those on the same node: the change names that
			n, known := l.Graph.Node(link.Object.UID)
			if f.Cause != c || !known || !n.BeingDeleted() || alone && c.Controller == nil && c.Class != finding.Refusal {
				continue
			}
			w.types.Insert(n.Resource().GroupResource())
			if link.Finalizer != "" {
				w.insert(link.Finalizer)
			} else if c.Controller != nil {
				w.insert(slices.DeleteFunc(slices.Clone(n.Finalizers()), ofControlPlane)...)
			}
		}
	}
	return w
}

// ofControlPlane reports whether a finalizer is one that the garbage collector or kube-controller-manager removes, and not a driver.
func ofControlPlane(finalizer string) bool {
	return graph.IsCollectorFinalizer(finalizer) ||
		strings.HasPrefix(finalizer, "kubernetes.io/") && strings.HasSuffix(finalizer, "-protection")
}

// leaving are the objects that are being deleted, or are in a namespace that is, and those that the garbage collector deletes.
func (l *Look) leaving() []graph.Node {
	if l.leave == nil {
		l.leave = append([]graph.Node{}, graph.Leaving(l.Graph)...)
	}
	return l.leave
}

// lets are the objects that a way out may free, or deletes, besides those that a cause blocks, and the content of the namespaces that were
// asked for: what is being deleted, or in a namespace that is, and waits for the same, and what goes with the pods that it ends, and with
// what it frees.
func (l *Look) lets(c *explain.Cause, way []*explain.Remedy) []graph.Node {
	w, frees, asked := l.waiting(c), graph.NewSet(l.frees(c, way)...), sets.New[string]()
	for _, id := range l.left() {
		if id.Resource.IsNamespace() {
			asked.Insert(id.Name)
		}
	}
	var all []graph.Node
	for _, r := range way {
		if endsPods(r) {
			all = append(all, l.ended[r.Operation.Object.UID]...)
			for _, g := range l.unguarded(l.podsOf(r.Operation.Object.UID)...) {
				all = append(all, l.guards[g]...)
			}
		}
	}
	base := graph.Fall{}
	base.Set.AddAll(frees)
	base.Spread()
	for n := range base.Set.All() {
		all = append(all, l.after(n, way)...)
	}
	all = slices.DeleteFunc(all, func(n graph.Node) bool { return asked.Has(n.Namespace()) || base.Set.Has(n) })
	if !l.reaches(way) {
		return l.withDependents(all, frees, way)
	}
	for of := range w.types {
		if c.Controller != nil {
			all = append(all, l.unwanted[of]...)
		}
	}
	for _, n := range l.leaving() {
		if frees.Has(n) || asked.Has(n.Namespace()) || !n.BeingDeleted() && c.Waits == nil {
			continue
		}
		waits := w.types.Has(n.Resource().GroupResource())
		if c.Waits != nil {
			waits = c.Waits(n)
		} else if len(w.finalizers) > 0 {
			waits = slices.ContainsFunc(n.Finalizers(), w.removes)
		}
		if waits && opens(way, n.Identity()) {
			all = append(all, n)
		}
	}
	return l.withDependents(all, frees, way)
}

// after are what others delete once an object is gone. What a tool's own object has deployed its controller deletes, if a way out has it
// act.
func (l *Look) after(n graph.Node, way []*explain.Remedy) []graph.Node {
	if delivery.Known(n.Resource().GroupResource()) && !l.reaches(way) {
		return nil
	}
	all := l.ended[n.UID()]
	for _, g := range l.unguarded(n) {
		all = append(slices.Clip(all), l.guards[g]...)
	}
	return all
}

// unguarded are the guards that deny nothing without some of the objects.
func (l *Look) unguarded(nodes ...graph.Node) []*ensuing.Guard {
	var all []*ensuing.Guard
	for g := range l.guards {
		if slices.ContainsFunc(nodes, g.Without.Has) {
			all = append(all, g)
		}
	}
	return all
}

// opens reports whether a way out is one for an object.
func opens(way []*explain.Remedy, id graph.Identity) bool {
	return slices.ContainsFunc(way, func(r *explain.Remedy) bool { return len(r.In) == 0 || slices.Contains(r.In, id.Place()) })
}

// withDependents adds the dependents that the garbage collector deletes after objects, and what others do.
func (l *Look) withDependents(nodes []graph.Node, frees graph.Set, way []*explain.Remedy) []graph.Node {
	after := graph.Fall{Set: graph.NewSet(nodes...)}
	for before := -1; after.Set.Len() > before; {
		before = after.Set.Len()
		after.Spread()
		for _, n := range after.Set.Sorted() {
			after.Set.AddAll(graph.NewSet(l.after(n, way)...))
		}
	}
	return slices.DeleteFunc(after.Set.Sorted(), func(n graph.Node) bool { return n.Virtual() || frees.Has(n) })
}

// stores reports whether a cause is about storage: a driver's, or of claims, volumes, attachments or snapshots.
func (l *Look) stores(c *explain.Cause) bool {
	return c.Driver != "" || slices.ContainsFunc(l.frees(c, nil), func(n graph.Node) bool {
		of := n.Resource().GroupResource()
		return of == evidence.Claims.GroupResource() || of == evidence.Volumes.GroupResource() ||
			of.Group == "storage.k8s.io" || of.Group == evidence.Snapshots.Group
	})
}

// reclaims returns what reports whether a way out of a cause has a volume that waits for that reclaimed: it passes what refuses changes of
// the volume, or starts the driver. Where it is not known which driver that is, each may be it.
func (l *Look) reclaims(c *explain.Cause, way []*explain.Remedy) func(*DataAtRisk) bool {
	if c.Waits != nil {
		return func(s *DataAtRisk) bool {
			n, known := l.Graph.Node(s.Volume.UID)
			return opens(way, s.Volume) && (!known || c.Waits(n))
		}
	}
	if !l.stores(c) {
		return func(*DataAtRisk) bool { return false }
	}
	drivers, frees := sets.New(c.Driver), graph.NewSet(l.frees(c, nil)...)
	for i := range l.Stakes {
		s := &l.Stakes[i]
		if n, known := l.Graph.Node(s.Volume.UID); known && frees.Has(n) || s.Namespace != "" && frees.Has(s.claim) {
			drivers.Insert(s.driver)
		}
	}
	drivers.Delete("")
	return func(s *DataAtRisk) bool {
		return s.Volume.Name == "" || len(drivers) == 0 || drivers.Has(s.driver)
	}
}
