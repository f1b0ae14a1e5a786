// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/mention"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Place is where the controller of a finalizer runs out of sight, as far as an object of the cluster stands for that.
type Place struct {
	Object graph.Identity
	// Gone: the object does not exist.
	Gone bool
	// Lacks is the condition of it that is not so, or not known, and changed last; empty for none.
	Lacks evidence.Condition
}

// PlaceOf returns where the controller of the finalizer of an object runs, nil if the catalogue states no object for that or it could not
// be read.
func (f *references) PlaceOf(n graph.Node, full *unstructured.Unstructured, s *Search) *Place {
	for _, m := range s.Known {
		if stated := strings.Fields(m.Place); len(stated) > 0 {
			return f.place(n, stated[0], strings.TrimPrefix(evidence.FieldOf(full, stated[1]), strings.Join(stated[2:], "")))
		}
	}
	return nil
}

// namedGone returns the object that the finalizer names and without which its controller leaves it alone, by the catalogue, if that does
// not exist; nil otherwise.
func (f *references) namedGone(n graph.Node, s *Search) *graph.Identity {
	for _, m := range s.Known {
		resource, name, _ := strings.Cut(m.Names, " ")
		if p := f.place(n, resource, name); p != nil && p.Gone {
			return &p.Object
		}
	}
	return nil
}

// place reads an object of a type; nil if there is no such type, or it could not be read.
func (f *references) place(n graph.Node, resource, name string) *Place {
	for _, r := range f.evidence.Types() {
		if r.GroupResource().String() != resource || name == "" {
			continue
		}
		p := &Place{Object: identityIn(r, "", name, n)}
		o, err := f.evidence.Get(r.GroupVersionResource, p.Object.Namespace, name)
		if p.Gone = apierrors.IsNotFound(err); err != nil && !p.Gone {
			return nil
		} else if !p.Gone {
			p.Lacks = lacking(evidence.Conditions(o))
		}
		return p
	}
	return nil
}

// lacking is the one of the conditions that is not True and changed last.
func lacking(conditions []evidence.Condition) evidence.Condition {
	conditions = slices.DeleteFunc(conditions, func(c evidence.Condition) bool { return c.Status == "True" || c.Message == "" })
	if len(conditions) == 0 {
		return evidence.Condition{}
	}
	return slices.MaxFunc(conditions, func(a, b evidence.Condition) int { return a.Since.Compare(b.Since) })
}

// nodeOf returns the node that the spec of an object names, empty for none and for more than one.
func (f *references) nodeOf(n graph.Node) (node string) {
	full, err := f.evidence.Whole(n)
	if err != nil {
		return ""
	}
	for o := range f.mentions.In(full) {
		if o.Kind == "Node" && o.InSpec() && o.Sure >= mention.Called {
			if node != "" && node != o.Text {
				return ""
			}
			node = o.Text
		}
	}
	return node
}

// overlooked says why a candidate does not reconcile an object, by what it is told, unless it has, or by its place: then with the node.
func (f *Finder) overlooked(n graph.Node, s *Search, c *Candidate) (why, node string) {
	if !f.shared(c.Workload, n) && !slices.ContainsFunc(s.workers, c.calledBy) {
		why = c.overlooks(n)
	}
	leads := slices.ContainsFunc(c.Signs, func(e evidence.Fact) bool { return e.Path == byHolder }) // one pod for all nodes
	if why == "" && c.resource.Kind == "DaemonSet" && !leads {
		if node = f.nodeOf(n); node != "" {
			why = f.offNode(c.Workload, node)
		}
	}
	return why, node
}

// offNode says of a workload with a pod on each node that none works on this one; empty if one does, or that is not known.
func (f *liveness) offNode(l *Workload, node string) string {
	pods, err := f.podsOf(l)
	if err != nil || slices.ContainsFunc(pods, func(p *unstructured.Unstructured) bool {
		return evidence.Nested(p, "spec", "nodeName") == node && f.podState(p).Liveness == Alive
	}) {
		return ""
	}
	return fmt.Sprintf(notOnNode, node)
}
