// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Planned is an object that a plan speaks for, in a line of its journal.
type Planned struct {
	Object graph.Identity `json:"object"`
	Result gc.Result      `json:"result"`
	// Kept is the manifest of the object, nil unless whole objects are backed up.
	Kept *Kept `json:"kept,omitempty"`
	// Volume is the UID of the volume that a claim has, in a backup; empty where it could not be read.
	Volume types.UID `json:"volume,omitempty"`
	// Owners are the references of an object that stays and may lose some, in a backup.
	Owners []metav1.OwnerReference `json:"owners,omitempty"`
}

// loosens reports whether an object was to be kept without some of its owners.
func (p *Planned) loosens() bool {
	return p.Result == gc.Orphaned || p.Result == gc.OwnerReferenceRemoved
}

// WholeReader reads whole objects, with nothing left out.
type WholeReader interface {
	Read(ctx context.Context, id graph.Identity) (*unstructured.Unstructured, error)
	EachObject(ctx context.Context, resource schema.GroupVersionResource, namespace string, begin func(),
		yield func(*unstructured.Unstructured) error) error
}

// fewSingles is how many objects of a type and namespace are read one by one; more come from one list.
const fewSingles = 20

// Plan writes what a deletion or collection was agreed to, and with a reader the whole objects that it takes away or changes. When it
// returns, all of that is on the disk. The error says what could not be kept: then nothing must be changed.
func (j *Journal) Plan(ctx context.Context, p *Plan, whole WholeReader) error {
	if j == nil {
		return nil
	}
	kept := map[types.UID]*Kept{}
	if j.whole = whole; whole != nil {
		var err error
		if kept, err = j.backup(ctx, p.concerned(), whole); err != nil {
			return err
		}
	}
	volumes := volumesOf(ctx, kept, p.concerned(), whole)
	var lines []Planned
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		owned := func(ref metav1.OwnerReference) bool { return kept[ref.UID] != nil }
		switch id := o.Object.Identity(); {
		case o.Result != gc.Untouched:
			lines = append(lines, Planned{Object: id, Result: o.Result, Kept: kept[id.UID], Volume: volumes[id.UID]})
		case slices.ContainsFunc(o.Object.OwnerReferences, owned): // should that go after all, it loses the reference
			lines = append(lines, Planned{Object: id, Result: o.Result, Owners: o.Object.OwnerReferences})
		}
	}
	for _, id := range p.ensuing() {
		lines = append(lines, Planned{Object: id, Result: gc.Unknown, Kept: kept[id.UID], Volume: volumes[id.UID]})
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range lines {
		if err := j.plan(&lines[i]); err != nil {
			return err
		}
	}
	return errors.Join(j.file.Sync(), syncDir(j.Dir))
}

// volumesOf are the UIDs of the volumes that claims have which are kept, by those of the claims. Where volumes cannot be read, undo goes by
// what they say then.
func volumesOf(ctx context.Context, kept map[types.UID]*Kept, objects []graph.Identity, whole WholeReader) map[types.UID]types.UID {
	volumes := map[types.UID]types.UID{}
	isClaim := func(id graph.Identity) bool {
		return id.Resource.GroupVersionResource == evidence.Claims && kept[id.UID] != nil
	}
	if whole == nil || !slices.ContainsFunc(objects, isClaim) {
		return volumes
	}
	_ = whole.EachObject(ctx, evidence.Volumes, "", func() {}, func(o *unstructured.Unstructured) error {
		volumes[types.UID(evidence.Nested(o, "spec", "claimRef", "uid"))] = o.GetUID()
		return nil
	})
	return volumes
}

func (j *Journal) plan(line *Planned) error {
	return j.append(map[string]*Planned{"planned": line}, false)
}

// ensuing are the objects that others delete, or may, because of the plan.
func (p *Plan) ensuing() []graph.Identity {
	if p.Forecast == nil {
		return nil
	}
	return p.Forecast.Ensuing()
}

// concerned are the objects that a plan takes away or changes, and those that others delete because of it.
func (p *Plan) concerned() []graph.Identity {
	var all []graph.Identity
	for i := range p.Report.Outcomes {
		if o := &p.Report.Outcomes[i]; o.Result != gc.Untouched {
			all = append(all, o.Object.Identity())
		}
	}
	return append(all, p.ensuing()...)
}

// Secrets is how many Secrets a plan takes away or changes.
func (p *Plan) Secrets() int { return Secrets(p.concerned()) }

// Secrets is how many of the objects are Secrets.
func Secrets(objects []graph.Identity) int {
	n := 0
	for _, id := range objects {
		if id.Resource.GroupResource() == (schema.GroupResource{Resource: "secrets"}) {
			n++
		}
	}
	return n
}

// place is a type in a namespace, which is empty for what is in none.
type place struct {
	resource  schema.GroupVersionResource
	namespace string
}

// backup keeps whole objects, by their UIDs. One that is gone by then is left out; that another cannot be read is an error.
func (j *Journal) backup(ctx context.Context, objects []graph.Identity, whole WholeReader) (map[types.UID]*Kept, error) {
	places, order := map[place]map[types.UID]graph.Identity{}, []place{}
	for _, id := range objects {
		at := placeOf(id)
		if places[at] == nil {
			places[at], order = map[types.UID]graph.Identity{}, append(order, at)
		}
		places[at][id.UID] = id
	}
	kept := map[types.UID]*Kept{}
	keep := func(o *unstructured.Unstructured) error {
		j.mu.Lock()
		defer j.mu.Unlock()
		k, err := j.keep(o, false)
		kept[o.GetUID()] = &k
		return err
	}
	for _, at := range order {
		if err := backupOf(ctx, at, places[at], whole, keep); err != nil {
			return nil, err
		}
	}
	return kept, j.syncKept()
}

// backupOf keeps the objects of one place: one by one if they are few, and otherwise from a list, of which what is missing is read by its
// name.
func backupOf(ctx context.Context, at place, wanted map[types.UID]graph.Identity, whole WholeReader,
	keep func(*unstructured.Unstructured) error) error {
	if len(wanted) > fewSingles {
		err := whole.EachObject(ctx, at.resource, at.namespace, func() {}, func(o *unstructured.Unstructured) error {
			id, is := wanted[o.GetUID()]
			if !is {
				return nil
			}
			delete(wanted, o.GetUID())
			o.SetGroupVersionKind(id.Resource.GroupVersionKind())
			return keep(o)
		})
		if err != nil {
			return fmt.Errorf("reading the %s to be backed up: %w", at.resource.Resource, err)
		}
	}
	for _, id := range wanted {
		switch o, err := whole.Read(ctx, id); {
		case IsGone(id, o, err):
		case err != nil:
			return fmt.Errorf("reading %s, to be backed up: %w", id, err)
		default:
			if err := keep(o); err != nil {
				return err
			}
		}
	}
	return nil
}
