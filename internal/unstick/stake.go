// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/ensuing"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// FindStakes finds out which data goes when what is being deleted is freed: that of claims which are being deleted, or are in a namespace
// that is, of claims that the garbage collector deletes after their owners, and after pods that end; and that on volumes which wait to be
// reclaimed, where a driver may be started, or what refuses that be passed. The claims are those of the graph, which has those of the Parts
// with their owners. What could not be read is among the stakes without a volume, or Unlisted.
func (l *Look) FindStakes(ctx context.Context, cluster evidence.Cluster) {
	l.Unlisted = slices.DeleteFunc(l.Parts(), func(p graph.Part) bool { return !l.unlisted(p) })
	source := evidence.Source{Cluster: cluster, Graph: l.Graph}
	reader := evidence.New(ctx, source)
	l.findEnded(reader, ensuing.New(ctx, source, reader, admission.New(ctx, nil, reader, nil)))
	l.above = evidence.NewAbove(l.Graph)
	data := l.data()
	starts := slices.ContainsFunc(l.Report.Causes, func(c *explain.Cause) bool {
		return c.Verdict == explain.Stuck && (l.stores(c) || c.Waits != nil)
	}) || slices.ContainsFunc(l.with.Sorted(), func(n graph.Node) bool { return evidence.Stores(n.Resource().GroupResource()) })
	l.findCopies(reader, data, starts)
	if len(data) == 0 && !starts {
		return
	}
	volumes, err := reader.List(evidence.Volumes, "")
	if err != nil {
		l.Stakes = append(slices.Collect(maps.Values(data)), DataAtRisk{waits: true})
		return
	}
	for i := range volumes {
		v := &volumes[i]
		policy, destroys := evidence.ReclaimPolicy(v)
		of, in := types.UID(evidence.Nested(v, "spec", "claimRef", "uid")), evidence.Nested(v, "spec", "claimRef", "namespace")
		s, at := data[of]
		phase := evidence.Nested(v, "status", "phase")
		s.policy, s.driver, s.leaves = policy, evidence.DriverOf(v), v.GetDeletionTimestamp() != nil
		claim, claimed := l.Graph.Node(of) // whatever the phase, of which the controller may be kept from writing another
		s.waits = s.leaves || phase == "Released" || phase == "Failed" ||
			of != "" && !claimed && !l.unlisted(graph.Part{Resource: evidence.Claims.GroupResource(), Namespace: in})
		if destroys && claimed && !at {
			l.live = append(l.live, claim)
		}
		if destroys && (at || s.waits) {
			s.Volume, s.Size = evidence.IdentityOf(evidence.Volumes, "PersistentVolume", v), evidence.Nested(v, "spec", "capacity", "storage")
			l.Stakes = append(l.Stakes, s)
		}
	}
	graph.SortByIdentity(l.Stakes, func(s *DataAtRisk) graph.Identity { return s.Volume })
}

// findCopies adds the contents of the snapshots of volumes that go, as claims do, and where a driver may be started those that wait for
// one: they are being deleted, or their snapshot is gone. Their policy may have the driver delete the snapshot behind them.
func (l *Look) findCopies(reader *evidence.Reader, data map[types.UID]DataAtRisk, starts bool) {
	for _, kind := range evidence.Copies {
		going := false
		for uid := range data {
			going = going || data[uid].claim.Resource().GroupResource() == kind.Of
		}
		served := slices.IndexFunc(l.Graph.Snapshot().Types, func(r *graph.Resource) bool { return r.Group == kind.Of.Group })
		if served < 0 || !going && !starts {
			continue
		}
		resource := kind.Contents.WithVersion(l.Graph.Snapshot().Types[served].Version)
		contents, err := reader.List(resource, "")
		if err != nil {
			l.Stakes = append(l.Stakes, DataAtRisk{waits: true, copy: true})
		}
		for i := range contents {
			c := &contents[i]
			of := types.UID(evidence.Nested(c, "spec", kind.Ref, "uid"))
			s, goes := data[of]
			live, there := l.Graph.Node(of)
			s.Volume, s.policy, s.copy = evidence.IdentityOf(resource, kind.Kind, c), evidence.Nested(c, "spec", "deletionPolicy"), true
			s.driver, s.leaves = evidence.Nested(c, "spec", "driver"), c.GetDeletionTimestamp() != nil
			s.waits = s.leaves || of != "" && !there
			switch {
			case s.policy != "Delete":
			case goes || s.waits:
				l.Stakes = append(l.Stakes, s)
			case there:
				l.live = append(l.live, live)
			}
		}
	}
}

// data are the claims and snapshots that go with something, by their UIDs, as stakes without a volume.
func (l *Look) data() map[types.UID]DataAtRisk {
	going := sets.New[types.UID]() // what is freed, or deleted
	for i := range l.Pending {
		if l.Pending[i].Action == gc.ActionDelete {
			going.Insert(l.Pending[i].Object.UID)
		}
	}
	for _, id := range l.left() {
		going.Insert(id.UID)
	}
	ended := going.Clone()
	after, unread := graph.Fall{}, graph.Fall{}
	for n := range l.Graph.Nodes() {
		switch {
		case n.Virtual():
			unread.Set.Add(n)
		case n.BeingDeleted():
			going.Insert(n.UID())
			ended.Insert(n.UID())
		}
	}
	after.Set.AddAll(unread.Set)
	for _, c := range l.Report.Causes {
		for i := range c.Remedies {
			going.Insert(deletedBy(&c.Remedies[i])...)
		}
	}
	for uid := range going {
		if n, known := l.Graph.Node(uid); known {
			after.Set.Add(n)
		}
	}
	after.Spread()
	l.falls, unread.Within = after.Set, &after.Set
	unread.Spread()
	with := graph.Fall{Set: graph.NewSet(slices.Concat(slices.AppendSeq(slices.Collect(maps.Values(l.ended)), maps.Values(l.unwanted))...)...)}
	with.Spread()
	l.with = with.Set
	all, places, ending := map[types.UID]DataAtRisk{}, l.places(), l.ending()
	for n := range l.Graph.Nodes() {
		if n.Virtual() || !evidence.KeepsData(n.Resource().GroupResource()) {
			continue
		}
		is, known := ending(n.Namespace())
		near := places.Has(n.Namespace())
		s := DataAtRisk{Namespace: n.Namespace(), claim: n}
		s.ends, s.open = is || !known && near || ended.Has(n.UID()), unread.Set.Has(n) || !known && !near
		if s.ends || s.open || after.Set.Has(n) || l.with.Has(n) {
			all[n.UID()] = s
		}
	}
	return all
}

// places are the namespaces in which something is stuck, or which are themselves, with "" for what is in none: its dependents may be
// in any.
func (l *Look) places() sets.Set[string] {
	all := sets.New[string]()
	for _, c := range l.Report.Causes {
		if c.Verdict != explain.Stuck {
			continue
		}
		all = all.Union(l.placesOf(c))
		for i := range c.Remedies {
			all = all.Union(shrunk([]*explain.Remedy{&c.Remedies[i]}))
		}
	}
	for i := range l.Pending {
		if namespace := l.Pending[i].Object.Namespace; namespace != "" {
			all.Insert(namespace)
		}
	}
	return all
}

func (l *Look) placesOf(c *explain.Cause) sets.Set[string] {
	all := l.touched(c, nil)
	for _, n := range l.frees(c, nil) {
		if n.Namespace() == "" && !n.Resource().IsNamespace() {
			all.Insert("")
		}
	}
	return all
}

// frees are what a cause blocks, what of that is on the way to it, and what a way out deletes.
func (l *Look) frees(c *explain.Cause, way []*explain.Remedy) []graph.Node {
	uids := sets.New[types.UID]()
	for o := range l.Report.Blocked(c) {
		uids.Insert(o.Object.UID)
		for _, f := range o.Findings {
			for _, link := range f.Chain {
				if n, known := l.Graph.Node(link.Object.UID); f.Cause == c && known && n.BeingDeleted() {
					uids.Insert(n.UID())
				}
			}
		}
	}
	for _, r := range way {
		uids.Insert(deletedBy(r)...)
	}
	var all []graph.Node
	for uid := range uids {
		if n, known := l.Graph.Node(uid); known && !n.Virtual() {
			all = append(all, n)
		}
	}
	return all
}

// deletedBy is what a remedy deletes.
func deletedBy(r *explain.Remedy) []types.UID {
	if r.Operation == nil || r.Operation.Verb != remedy.Delete {
		return nil
	}
	return []types.UID{r.Operation.Object.UID}
}

// touched are the namespaces of what a cause blocks, and of what a way out of it changes.
func (l *Look) touched(c *explain.Cause, way []*explain.Remedy) sets.Set[string] {
	all := sets.New[string]()
	for o := range l.Report.Blocked(c) {
		all.Insert(o.Object.Place())
		for _, f := range o.Findings {
			for _, link := range f.Chain {
				if f.Cause == c {
					all.Insert(link.Object.Place())
				}
			}
		}
	}
	for _, r := range way {
		all.Insert(r.Operation.Object.Place())
	}
	return all.Delete("")
}

// left are the explained objects that are being deleted.
func (l *Look) left() []graph.Identity {
	var ids []graph.Identity
	for i := range l.Report.Objects {
		if o := &l.Report.Objects[i]; o.BeingDeleted() {
			ids = append(ids, o.Object)
		}
	}
	return ids
}

// ending returns what reports whether a namespace is being deleted, if that is known.
func (l *Look) ending() func(name string) (ending, known bool) {
	is := map[string]bool{}
	for n := range l.Graph.Nodes() {
		if !n.Virtual() && n.Resource().IsNamespace() {
			is[n.Object().Name] = n.BeingDeleted()
		}
	}
	return func(name string) (ending, known bool) {
		ending, known = is[name]
		return ending, known
	}
}

// keeps are the changes that keep the data which would go with what a way out frees, after those that the cause has.
func (l *Look) keeps(keep []*explain.Remedy, c *explain.Cause, way []*explain.Remedy) []*explain.Remedy {
	going := l.goes(c, way)
	for i := range l.Stakes {
		s := &l.Stakes[i]
		kept := func(r *explain.Remedy) bool { return r.Operation.Object.UID == s.Volume.UID }
		if s.Volume.Name != "" && going(s) && !slices.ContainsFunc(keep, kept) {
			retain := l.action(remedy.RetainOf(s.Volume, s.policy))
			keep = append(keep, &explain.Remedy{Risk: explain.Safe, Keeps: true,
				Effect: say.Of(keepData, s.Volume.Name, cmp.Or(s.Size, unknownSize)), Action: retain})
		}
	}
	return keep
}

// goes returns what reports whether a stake goes when a way out is taken.
func (l *Look) goes(c *explain.Cause, way []*explain.Remedy) func(*DataAtRisk) bool {
	if len(l.Stakes) == 0 {
		return func(*DataAtRisk) bool { return false }
	}
	reaches, reclaims, lets := l.reaches(way), l.reclaims(c, way), l.lets(c, way)
	namespaces, after := l.touched(c, way), l.fallen(c, way, lets)
	for _, n := range lets {
		namespaces.Insert(n.Identity().Place())
	}
	everywhere := reaches && c.Waits == nil // a program does more than one can tell
	return func(s *DataAtRisk) bool {
		switch {
		case s.waits && (reaches && reclaims(s) || l.among(s.Volume.UID, after)):
			return true
		case s.Namespace == "":
			return false
		case s.ends && (everywhere && !s.copy || namespaces.Has(s.Namespace)):
			return true
		}
		return after.Has(s.claim) || everywhere && !s.copy && l.falls.Has(s.claim)
	}
}

func (l *Look) among(uid types.UID, set graph.Set) bool {
	n, known := l.Graph.Node(uid)
	return known && set.Has(n)
}

// fallen are what a way out frees, what it lets go besides, and what goes with and after that, as far as it may.
func (l *Look) fallen(c *explain.Cause, way []*explain.Remedy, lets []graph.Node) graph.Set {
	after := graph.Fall{Set: graph.NewSet(append(l.frees(c, way), lets...)...), Within: &l.falls}
	after.Spread()
	return after.Set
}

// leaves reports whether an object is being deleted itself.
func (l *Look) leaves(uid types.UID) bool {
	n, known := l.Graph.Node(uid)
	return known && n.BeingDeleted() || slices.ContainsFunc(l.Stakes, func(s DataAtRisk) bool { return s.Volume.UID == uid && s.leaves })
}

// action is a change with its command.
func (l *Look) action(op remedy.Op) explain.Action {
	return explain.Action{Operation: &op, Command: op.Command(remedy.Programs{Kubectl: cmp.Or(l.Kubectl, "kubectl")})}
}

// unsure reports whether data may go with what a way out frees, or more be freed, of which that could not be found out.
func (l *Look) unsure(c *explain.Cause, way []*explain.Remedy) bool {
	if slices.ContainsFunc(l.partsOf(c, way), func(p graph.Part) bool { return slices.Contains(l.Unlisted, p) }) {
		return true
	}
	if c.Covers != nil &&
		slices.ContainsFunc(l.live, func(n graph.Node) bool { return opens(way, n.Identity()) && l.above.Any(n, c.Covers) }) {
		return true
	}
	passed := func(n graph.Node) bool { // the cause knows what waits for it
		return c.Waits != nil && len(way) > 0 && slices.Contains(deletedBy(way[0]), n.UID())
	}
	gone := l.fallen(c, way, l.lets(c, way)).Sorted()
	for _, r := range way {
		if endsPods(r) {
			gone = append(gone, l.podsOf(r.Operation.Object.UID)...)
		}
	}
	if len(l.unguarded(slices.DeleteFunc(gone, passed)...)) > 0 { // nobody knows what else they keep
		return true
	}
	places, going, reaches := l.placesOf(c), l.goes(c, way), l.reaches(way)
	return slices.ContainsFunc(l.Stakes, func(s DataAtRisk) bool {
		return s.Volume.Name == "" && going(&s) || s.open && !going(&s) && (reaches || places.HasAny("", s.Namespace))
	})
}
