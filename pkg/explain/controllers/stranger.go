// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// Who is not the controller of a finalizer, although he works and may change the
// object: rights alone do not say so, least of all those of the type's own operator,
// which has them anyway.

// isAnother reports whether a workload is somebody else for certain: it writes to the
// objects under a name of its own, and the finalizer was set under another; or nothing
// but rights, or what it was installed with, points at it, and it is the controller of
// other finalizers, by the catalogue, or the controller is made beside the object, and is
// not there.
func (f *Finder) isAnother(s *Search, c *Candidate) bool {
	if c.strong || len(f.inventory().unread) > 0 {
		return false
	}
	return f.writesOtherwise(s, c) || !c.Named && s.vacant() && (local(s.Known) || f.livesElsewhere(s, c.Workload))
}

// vacant reports whether the catalogue has places for the controller, and nobody is in
// one of them or called so.
func (s *Search) vacant() bool {
	return !s.placed && slices.ContainsFunc(s.Known, func(m finalizers.Match) bool {
		return len(m.Workloads) > 0 && m.OffCluster == ""
	})
}

// ownNames returns the names under which the finalizer was set that are somebody's: those
// of programs, and not common ones or people's tools.
func (s *Search) ownNames() []string {
	return slices.DeleteFunc(slices.Clone(s.Setters), func(m string) bool { return isCommon(m) || isPerson(m) })
}

// writesOtherwise reports whether the workload has written to the objects under a name
// of its own, and the finalizer was set under names that have nothing of it: not even a
// word, as the names of one program's parts have.
func (f *Finder) writesOtherwise(s *Search, c *Candidate) bool {
	names := s.ownNames()
	leads := slices.ContainsFunc(c.Signs, func(e evidence.Fact) bool { return strings.HasPrefix(e.Source, "Lease/") })
	akin := func(name string) bool {
		return c.calledBy(name) || slices.ContainsFunc(append(c.programs, c.ID.Name), func(program string) bool { return shareWord(name, program) })
	}
	return !leads && len(names) > 0 && len(names) == len(s.Setters) && !slices.ContainsFunc(names, akin) && slices.ContainsFunc(s.writers, c.calledBy)
}

// shareWord reports whether two names have a word in common that tells something.
func shareWord(a, b string) bool {
	words := notWords.Split(strings.ToLower(b), -1)
	return slices.ContainsFunc(notWords.Split(strings.ToLower(a), -1), func(word string) bool {
		return len(word) > 1 && !slices.Contains(controllerWords, word) && !slices.Contains(finalizerWords, word) && slices.Contains(words, word)
	})
}

// livesElsewhere reports whether the catalogue has the workload, by namespace and name,
// as the controller of other finalizers.
func (f *Finder) livesElsewhere(s *Search, l *Workload) bool {
	for e := range f.catalogue.Entries() {
		if slices.ContainsFunc(s.Known, func(m finalizers.Match) bool { return m.Product == e.Product && m.Controller == e.Controller }) {
			continue
		}
		for _, usual := range e.Workloads {
			if usual.Namespace != "" && usual.Namespace != finalizers.ObjectNamespace && !strings.ContainsAny(usual.Name+usual.Namespace, "*<") &&
				usual.Is(l.ID.Resource.Kind, l.ID.Namespace, l.ID.Name, "") {
				return true
			}
		}
	}
	return false
}

// calledSo reports whether the manager is a name of a workload that is there.
func (f *Finder) calledSo(manager string) bool {
	return slices.ContainsFunc(f.inventory().workloads, func(l *Workload) bool { return l.calledBy(manager) })
}

// Missing returns the name under which the finalizer was set when it is a program's and
// no workload has it, empty otherwise.
func (f *Finder) Missing(s *Search) string {
	names := s.ownNames()
	if len(names) != 1 || len(s.Setters) != 1 || f.calledSo(names[0]) {
		return ""
	}
	return names[0]
}
