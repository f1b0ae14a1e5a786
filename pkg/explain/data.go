// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// stored is what becomes of the data of a claim when that goes.
type stored struct {
	// lost is what is lost, nil when that is nothing.
	lost *remedy.Loss
	// keep has the volume stay, nil when it does so anyway, or that is not known.
	keep *Remedy
}

// dataOf finds out what is lost with a claim: nothing when it has no volume, or one whose reclaim policy is
// another than Delete (pkg/controller/volume/persistentvolume/pv_controller.go, reclaimVolume).
func (w *walker) dataOf(n graph.Node) stored {
	unknown := stored{lost: mayLoseData()}
	claim, err := w.evidence.Whole(n)
	if err != nil {
		return unknown
	}
	name := evidence.Nested(claim, "spec", "volumeName")
	if name == "" {
		if evidence.Nested(claim, "status", "phase") == "Pending" {
			return stored{}
		}
		return unknown
	}
	if volume := w.volumeNamed(name); volume != nil {
		return w.dataOn(volume)
	}
	return unknown
}

// manyVolumes is how many volumes are read one by one, before all are.
const manyVolumes = 20

// volumeNamed reads a volume, nil when that fails.
func (w *walker) volumeNamed(name string) *unstructured.Unstructured {
	if w.volumesRead++; w.volumesRead <= manyVolumes {
		volume, err := w.evidence.Get(volumesOf, "", name)
		if err != nil {
			return nil
		}
		return volume
	}
	if w.volumes == nil {
		w.volumes = map[string]*unstructured.Unstructured{}
		all, _ := w.evidence.List(volumesOf, "") // what cannot be read is noted
		for i := range all {
			w.volumes[all[i].GetName()] = &all[i]
		}
	}
	return w.volumes[name]
}

// dataOn is dataOf for a volume.
func (w *walker) dataOn(volume *unstructured.Unstructured) stored {
	at := evidence.IdentityOf(volumesOf, "PersistentVolume", volume)
	size := evidence.Nested(volume, "spec", "capacity", "storage")
	switch policy := evidence.Nested(volume, "spec", "persistentVolumeReclaimPolicy"); policy {
	case "Delete":
		keep := w.keepVolume(at)
		keep.Effect = fmt.Sprintf("keep the data first: retain %s (%s) when its claim is deleted", at, cmp.Or(size, "of unknown size"))
		if volume.GetDeletionTimestamp() != nil {
			keep.Effect = fmt.Sprintf("keep the data first: retain the storage behind %s (%s) when that is deleted", at, cmp.Or(size, "of unknown size"))
		}
		return stored{lost: losesVolume(at, size), keep: &keep}
	case "":
		return stored{lost: mayLoseData()}
	}
	return stored{}
}

// keepVolume changes the reclaim policy of a volume.
func (w *walker) keepVolume(at graph.Identity) Remedy {
	const path = "/spec/persistentVolumeReclaimPolicy"
	op := remedy.PatchOf(at, remedy.Test(path, "Delete"), remedy.Replace(path, "Retain"))
	back := remedy.PatchOf(at, remedy.Test(path, "Retain"), remedy.Replace(path, "Delete"))
	op.Back = &back
	return Remedy{Risk: Safe, Action: w.does(op), Keeps: true}
}

// losing has the ways to end what uses data say what is lost with it, and begins with the one that keeps
// it.
func (d stored) losing(remedies ...Remedy) []Remedy {
	for i := range remedies {
		if d.lost == nil {
			continue
		}
		if d.keep != nil {
			remedies[i].Kept = remedies[i].Risk
		}
		remedies[i].Risk = Dangerous
		if len(remedies[i].Loss) == 0 {
			remedies[i].Loss = []remedy.Loss{*d.lost}
		}
	}
	if d.keep != nil {
		return append([]Remedy{*d.keep}, remedies...)
	}
	return remedies
}
