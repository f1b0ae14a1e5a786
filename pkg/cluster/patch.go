// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// strategic reports whether the patch is sent as a strategic merge patch: only
// built-in types have one, finalizers have no merge key, and entries with the
// same UID cannot be told apart by it.
func (s *Server) strategic(o *graph.Object, p gc.Patch) bool {
	s.mu.Lock()
	refused := s.noSMP[o.Resource.GroupResource().String()]
	s.mu.Unlock()
	return !refused && p.RemoveFinalizer == "" && scheme.Scheme.Recognizes(o.Resource.GroupVersionKind()) &&
		(!p.Unblock || distinctUIDs(o.OwnerReferences))
}

func distinctUIDs(refs []metav1.OwnerReference) bool {
	seen := map[types.UID]bool{}
	for _, ref := range refs {
		if seen[ref.UID] {
			return false
		}
		seen[ref.UID] = true
	}
	return true
}

// strategicMergePatch drops or unblocks references by their UID, as the garbage
// collector does (garbagecollector/patch.go).
func strategicMergePatch(o *graph.Object, p gc.Patch) []byte {
	refs := []any{}
	for _, uid := range p.RemoveOwners {
		refs = append(refs, map[string]any{"$patch": "delete", "uid": uid})
	}
	if p.Unblock {
		for _, ref := range o.OwnerReferences {
			if ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion {
				unblocked := false
				ref.BlockOwnerDeletion = &unblocked
				refs = append(refs, ref)
			}
		}
	}
	return metadataPatch(o, "ownerReferences", refs)
}

// mergePatch replaces the whole list, which the resourceVersion proves to be
// the one that the patch was made from.
func mergePatch(o *graph.Object, p gc.Patch) []byte {
	if p.RemoveFinalizer != "" {
		return metadataPatch(o, "finalizers", p.Finalizers(o.Finalizers))
	}
	return metadataPatch(o, "ownerReferences", p.OwnerReferences(o.OwnerReferences))
}

func metadataPatch(o *graph.Object, field string, value any) []byte {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.UID, "resourceVersion": o.ResourceVersion, field: value,
	}})
	if err != nil {
		panic(err) // strings, booleans and lists of them can be marshalled
	}
	return data
}
