// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// stored says what happens to the data of a claim when that is deleted.
type stored struct {
	// lost is what is lost, nil when that is nothing.
	lost *remedy.Loss
	// keep retains the volume, nil when it is kept anyway, or that is not known.
	keep *Remedy
}

// storage finds out what is lost with claims and volumes.
type storage struct {
	commands
	evidence *evidence.Reader
	// looked counts the volumes that were looked up, and all has all, once they were many.
	looked int
	all    map[string]*unstructured.Unstructured
}

// dataOf finds out what is lost with a claim: nothing when it has no volume, or one whose reclaim policy is
// another than Delete (pkg/controller/volume/persistentvolume/pv_controller.go, reclaimVolume).
func (s *storage) dataOf(n graph.Node) stored {
	unknown := stored{lost: mayLoseData()}
	claim, err := s.evidence.Whole(n)
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
	if volume := s.volumeNamed(name); volume != nil {
		return s.dataOn(volume)
	}
	return unknown
}

// manyVolumes is how many volumes are read one by one, before all are.
const manyVolumes = 20

// volumeNamed reads a volume, nil when that fails.
func (s *storage) volumeNamed(name string) *unstructured.Unstructured {
	if s.looked++; s.looked <= manyVolumes {
		volume, err := s.evidence.Get(volumesOf, "", name)
		if err != nil {
			return nil
		}
		return volume
	}
	if s.all == nil {
		s.all = map[string]*unstructured.Unstructured{}
		all, _ := s.evidence.List(volumesOf, "") // what cannot be read is noted
		for i := range all {
			s.all[all[i].GetName()] = &all[i]
		}
	}
	return s.all[name]
}

// dataOn is dataOf for a volume.
func (s *storage) dataOn(volume *unstructured.Unstructured) stored {
	at := evidence.IdentityOf(volumesOf, "PersistentVolume", volume)
	size := evidence.Nested(volume, "spec", "capacity", "storage")
	switch policy := evidence.Nested(volume, "spec", "persistentVolumeReclaimPolicy"); policy {
	case "Delete":
		keep := s.keepVolume(at)
		keep.Effect = keepData(at, size, volume.GetDeletionTimestamp() != nil)
		return stored{lost: losesVolume(at, size), keep: &keep}
	case "":
		return stored{lost: mayLoseData()}
	}
	return stored{}
}

// keepVolume changes the reclaim policy of a volume.
func (d commands) keepVolume(at graph.Identity) Remedy {
	return Remedy{Risk: Safe, Action: d.does(remedy.RetainOf(at)), Keeps: true}
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
