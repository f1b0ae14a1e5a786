// SPDX-License-Identifier: Apache-2.0

package change

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/restore"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Lost are the objects that a run was to delete or take references from, as they were kept, and no others: empty for a run that kept
// nothing whole.
func (r *Recorded) Lost() []restore.Saved {
	var all []restore.Saved
	kept, sent := false, map[types.UID]*Entry{}
	for i := range r.Changes {
		if e := &r.Changes[i]; e.Op.Verb == remedy.Delete {
			if was := sent[e.Op.Object.UID]; was == nil || !was.Status.stands() || e.Status.stands() {
				sent[e.Op.Object.UID] = e
			}
		}
	}
	add := func(id graph.Identity, k *Kept, volume types.UID, stayed bool) {
		saved := restore.Saved{Object: id, Volume: volume, Stayed: stayed, Going: k != nil && k.Going}
		if e := sent[id.UID]; e != nil { // and its manifest is of the version that was deleted
			saved.Stayed = e.Status == Refused // others may have been faster otherwise
			if e.Before != nil && k != nil {
				saved.Manifest, saved.Err = r.again(k, e.Before)
			} else if e.Before != nil {
				k = e.Before
			}
		}
		if k != nil {
			kept, saved.Partial = true, k.Partial
		}
		if k != nil && saved.Manifest == nil && saved.Err == nil {
			saved.Manifest, saved.Err = r.Manifest(k)
		}
		all = append(all, saved)
	}
	for i := range r.Planned {
		result := r.Planned[i].Result
		if result == letting && sent[r.Planned[i].Object.UID] == nil {
			continue
		}
		if owners := r.Planned[i].Owners; len(owners) > 0 && sent[r.Planned[i].Object.UID] == nil {
			all = append(all, staying(r.Planned[i].Object, owners))
			continue
		}
		add(r.Planned[i].Object, r.Planned[i].Kept, r.Planned[i].Volume, r.Planned[i].loosens())
	}
	for i := range r.Changes {
		if e := &r.Changes[i]; e.Op.Verb == remedy.Delete && e.Op.Save && e.Before != nil && !e.Temporary && e.Status.stands() {
			add(e.Op.Object, e.Before, "", false)
		}
	}
	if !kept {
		return nil
	}
	return append(all, r.loosened(all)...)
}

// again is an object as it was deleted, with the owners and finalizers that it had before others went, which the garbage collector might
// have removed.
func (r *Recorded) again(first, last *Kept) (*unstructured.Unstructured, error) {
	before, err := r.Manifest(first)
	if err != nil {
		return nil, err
	}
	o, err := r.Manifest(last)
	if err != nil {
		return nil, err
	}
	o.SetOwnerReferences(before.GetOwnerReferences())
	o.SetFinalizers(before.GetFinalizers())
	return o, nil
}

// loosened are objects that nobody foresaw to lose references to owners, and that have lost them: those references are all that is known of
// them.
func (r *Recorded) loosened(lost []restore.Saved) (all []restore.Saved) {
	known := sets.New[types.UID]()
	for i := range lost {
		known.Insert(lost[i].Object.UID)
	}
	for i := range r.Changes {
		e := &r.Changes[i]
		if e.Metadata == nil || !e.Status.stands() || known.Has(e.Op.Object.UID) {
			continue
		}
		known.Insert(e.Op.Object.UID)
		all = append(all, staying(e.Op.Object, e.Metadata.OwnerReferences))
	}
	return all
}

// staying is an object of which no more is known than the owners that it had.
func staying(id graph.Identity, owners []metav1.OwnerReference) restore.Saved {
	manifest := &unstructured.Unstructured{Object: map[string]any{}}
	manifest.SetOwnerReferences(owners)
	return restore.Saved{Object: id, Manifest: manifest, Stayed: true}
}

// Since fills in what later runs of this program have done about lost objects: what undos have made again of them and of their volumes,
// which references to owners they had then, and which of them have lost some.
func (r *Recorded) Since(lost []restore.Saved, all []*Recorded) {
	made, sent, loosened, given := map[types.UID]types.UID{}, sets.New[types.UID](), sets.New[types.UID](), restore.Given{}
	for _, later := range all {
		if !later.Started.After(r.Started) {
			continue
		}
		for i := range later.Changes {
			e := &later.Changes[i]
			switch restores := e.Op.Verb == remedy.Restore; {
			case !e.Status.stands():
				continue
			case restores && e.was == "": // without an answer the new UID is not known
				sent.Insert(e.Op.Object.UID)
			case restores:
				made[e.was] = e.Op.Object.UID
			}
			for _, owner := range e.Op.Owners() {
				given.Add(e.Op.Object.UID, owner, e.Version, e.Status == Done)
			}
		}
		for i := range later.Planned {
			if p := &later.Planned[i]; p.loosens() {
				loosened.Insert(p.Object.UID)
				delete(given, p.Object.UID)
			}
		}
	}
	last := func(uid types.UID) types.UID {
		for range made { // what an undo has made may have been deleted and undone again
			if next := made[uid]; next != "" {
				uid = next
			}
		}
		return uid
	}
	for i := range lost {
		s := &lost[i]
		if s.Volume = last(s.Volume); made[s.Object.UID] != "" {
			s.Made = last(s.Object.UID)
		}
		s.Stayed, s.Sent, s.Given = s.Stayed || loosened.Has(s.Object.UID), sent.Has(s.Object.UID), given
	}
}
