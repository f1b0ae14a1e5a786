// SPDX-License-Identifier: Apache-2.0

package gc

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// coordinates are what an owner reference states, with the namespace in which
// the owner is looked for; empty for a cluster-scoped one.
type coordinates struct {
	apiVersion, kind, namespace, name string
	uid                               types.UID
}

func coordinatesOf(id graph.Identity) coordinates {
	apiVersion, kind := id.Resource.GroupVersionKind().ToAPIVersionAndKind()
	return coordinates{apiVersion, kind, id.Namespace, id.Name, id.UID}
}

// isAbsent reports whether the owner that a reference of an object in the
// namespace states is known not to exist: with these coordinates and no
// namespace, or in the object's (garbagecollector.go, isDangling).
func (s *state) isAbsent(ref metav1.OwnerReference, namespace string) bool {
	n := s.of(ref.UID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.items.Get(n); it != nil && it.gone {
		gone := coordinatesOf(it.object.Identity())
		if (gone.namespace == "" || gone.namespace == namespace) &&
			gone == (coordinates{ref.APIVersion, ref.Kind, gone.namespace, ref.Name, ref.UID}) {
			return true
		}
	}
	if len(s.absent) == 0 {
		return false
	}
	c := coordinates{ref.APIVersion, ref.Kind, "", ref.Name, ref.UID}
	if s.absent[c] {
		return true
	}
	c.namespace = namespace
	return s.absent[c]
}

// rememberAbsent records that the reference's owner does not exist there. A UID
// does not come back, so this is never forgotten.
func (s *state) rememberAbsent(ref metav1.OwnerReference, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.absent[coordinates{ref.APIVersion, ref.Kind, namespace, ref.Name, ref.UID}] = true
}

// maxReads is how often an owner that cannot be read is asked for, whatever the
// number of its dependents.
const maxReads = 2

// readError returns why the reference's owner could not be read there, when that
// was tried maxReads times.
func (s *state) readError(ref metav1.OwnerReference, namespace string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := s.unreadable[coordinates{ref.APIVersion, ref.Kind, namespace, ref.Name, ""}]
	if len(errs) < maxReads {
		return nil
	}
	return errs[len(errs)-1]
}

// rememberUnreadable records why the reference's owner could not be read there.
func (s *state) rememberUnreadable(ref metav1.OwnerReference, namespace string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := coordinates{ref.APIVersion, ref.Kind, namespace, ref.Name, ""}
	s.unreadable[c] = append(s.unreadable[c], err)
}
