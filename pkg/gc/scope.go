// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"sync"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// scope says what is the business of a run: what depends on the targets and all that comes up about
// that, or, for a collection, all objects of a namespace. Once an object is included it stays so. It
// may be used by several goroutines.
type scope struct {
	state *state
	// everything is set when all objects are the Collector's business, not only
	// those that depend on the targets.
	everything bool
	// namespace is the one that is collected, empty for all.
	namespace string
	// targets are those of a deletion.
	targets map[number]bool
	// services and endpoints are those among the nodes of a deletion.
	services, endpoints []number

	mu       sync.Mutex
	included graph.Table[number, bool]
}

// expect includes the nodes of a deletion of the targets.
func (s *scope) expect(nodes graph.Set, targets map[number]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.targets = targets
	for n := range nodes.All() {
		*s.included.At(numberOf(n)) = true
		switch {
		case n.Virtual(): // its type may not be known
		case isCore(n.Resource(), "services"):
			s.services = append(s.services, numberOf(n))
		case isCore(n.Resource(), "endpoints"):
			s.endpoints = append(s.endpoints, numberOf(n))
		}
	}
}

func (s *scope) include(n number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.included.At(n) = true
}

func (s *scope) includes(n number) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.included.Get(n)
}

// within reports whether objects of the namespace are to be collected.
func (s *scope) within(namespace string) bool {
	return s.namespace == "" || s.namespace == namespace
}

// inScope reports whether the object is the Collector's business.
func (s *scope) inScope(n number) bool {
	if s.everything && s.namespace == "" || s.includes(n) {
		return true
	}
	v, ok := s.state.view(n)
	return s.everything && ok && s.within(v.object.Namespace)
}

// members returns what the report is about: the nodes of the graph in their order, and
// then what is newer.
func (s *scope) members() []number {
	var included []number
	for n, in := range s.included.All() {
		if *in {
			included = append(included, n)
		}
	}
	return included
}

// containers goes over the Namespaces and CustomResourceDefinitions that the report is about.
func (s *scope) containers(yield func(view) bool) {
	for _, n := range s.members() {
		v, ok := s.state.view(n)
		if ok && (v.object.Resource.IsNamespace() || v.object.Resource.IsCRD()) && !yield(v) {
			return
		}
	}
}

// left are the Endpoints that are there without their Services: the API server, or kube-controller-manager from 1.37 on, deletes them.
func (s *scope) left() (left []graph.Object) {
	gone := map[[2]string]bool{}
	for _, n := range s.services {
		if v, ok := s.state.view(n); ok && v.gone {
			gone[[2]string{v.object.Namespace, v.object.Name}] = true
		}
	}
	for _, n := range s.endpoints {
		if v, ok := s.state.view(n); ok && !v.gone && gone[[2]string{v.object.Namespace, v.object.Name}] {
			left = append(left, v.object)
		}
	}
	return left
}
