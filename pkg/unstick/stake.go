// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// FindStakes finds out which data goes when what is asked for, and what is in its namespaces, is freed: of claims that are being deleted, or are in a
// namespace that is. It reads the claims of these namespaces, and the volumes if there are such claims. What it cannot read
// makes the namespace Unsure: the data of claims that nobody saw may be lost.
func (l *Look) FindStakes(ctx context.Context, cluster evidence.Cluster) {
	namespaces := l.namespaces()
	lists := sets.List(namespaces)
	if len(lists) > mostLists {
		lists = []string{""}
	}
	deleted := sets.New[types.UID]() // what the garbage collector would delete
	for i := range l.Pending {
		if l.Pending[i].Action == gc.ActionDelete {
			deleted.Insert(l.Pending[i].Object.UID)
		}
	}
	claimed, ending := map[types.UID]string{}, l.ending() // by the UIDs of claims, their namespaces
	for _, namespace := range lists {
		claims, err := cluster.List(ctx, evidence.Claims, namespace)
		if err != nil {
			l.Unsure = append(l.Unsure, sets.List(namespaces)...)
			break
		}
		for i := range claims {
			c := &claims[i]
			if at := c.GetNamespace(); namespaces.Has(at) && (ending(at) || c.GetDeletionTimestamp() != nil || deleted.Has(c.GetUID())) {
				claimed[c.GetUID()] = at
			}
		}
	}
	if len(claimed) == 0 {
		return
	}
	volumes, err := cluster.List(ctx, evidence.Volumes, "")
	if err != nil {
		l.Unsure = append(l.Unsure, sets.List(sets.New(slices.Collect(maps.Values(claimed))...))...)
		return
	}
	for i := range volumes {
		v := &volumes[i]
		if namespace, at := claimed[types.UID(evidence.Nested(v, "spec", "claimRef", "uid"))]; at && evidence.Nested(v, "spec", "persistentVolumeReclaimPolicy") == "Delete" {
			l.Stakes = append(l.Stakes, Stake{Volume: evidence.IdentityOf(evidence.Volumes, "PersistentVolume", v), Size: evidence.Nested(v, "spec", "capacity", "storage"), Namespace: namespace})
		}
	}
	graph.SortByIdentity(l.Stakes, func(s *Stake) graph.Identity { return s.Volume })
}

// namespaces are those in which something is stuck, or which are themselves.
func (l *Look) namespaces() sets.Set[string] {
	all := sets.New[string]()
	for _, c := range l.Report.Causes {
		if c.Verdict == explain.Stuck {
			all = all.Union(l.touched(c, nil))
		}
	}
	for i := range l.Pending {
		if namespace := l.Pending[i].Object.Namespace; namespace != "" {
			all.Insert(namespace)
		}
	}
	return all
}

// mostLists is the number of namespaces up to which their claims are listed one by one.
const mostLists = 20

// touched are the namespaces of what a cause blocks, and of what a way out of it changes.
func (l *Look) touched(c *explain.Cause, way []*explain.Remedy) sets.Set[string] {
	all := sets.New[string]()
	add := func(id graph.Identity) {
		if id.Resource.IsNamespace() {
			all.Insert(id.Name)
		} else if id.Namespace != "" {
			all.Insert(id.Namespace)
		}
	}
	for o := range l.Report.Blocked(c) {
		add(o.Object)
		for _, f := range o.Findings {
			for _, link := range f.Chain {
				if f.Cause == c {
					add(link.Object)
				}
			}
		}
	}
	for _, r := range way {
		add(r.Operation.Object)
	}
	return all
}

// ending returns what reports whether a namespace is being deleted, or whether that is not known.
func (l *Look) ending() func(name string) bool {
	is := map[string]bool{}
	for n := range l.Graph.Nodes() {
		if !n.Virtual() && n.Resource().IsNamespace() {
			is[n.Object().Name] = n.BeingDeleted()
		}
	}
	return func(name string) bool {
		ending, known := is[name]
		return ending || !known
	}
}

// keeps are the changes that keep the data which would go with what a way out frees.
func (l *Look) keeps(c *explain.Cause, way []*explain.Remedy) []*explain.Remedy {
	namespaces := l.touched(c, way)
	var keep []*explain.Remedy
	for _, s := range l.Stakes {
		if namespaces.Has(s.Namespace) {
			keep = append(keep, &explain.Remedy{Risk: explain.Safe, Keeps: true, Effect: keepData(&s), Action: actionOf(remedy.RetainOf(s.Volume))})
		}
	}
	return keep
}

// actionOf is a change with its command.
func actionOf(op remedy.Op) explain.Action {
	return explain.Action{Operation: &op, Command: op.Command(remedy.Programs{Kubectl: "kubectl"})}
}

// unsure reports whether data may go with what a way out frees of which that could not be found out.
func (l *Look) unsure(c *explain.Cause, way []*explain.Remedy) bool {
	return l.touched(c, way).HasAny(l.Unsure...)
}
