// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// stored says what happens to the data of a claim when that is deleted.
type stored struct {
	// lost is what is lost, nil when that is nothing.
	lost *remedy.Loss
	// keep retains the volume, nil when it is kept anyway, or that is not known.
	keep *finding.Way
}

// unknown is data of which it is not known whether it is lost.
func unknown() stored {
	return stored{lost: &remedy.Loss{Kind: remedy.LosesData, Unsure: true, What: say.Of(LostUnknown)}}
}

// dataOf finds out what is lost with a claim: nothing when it has no volume, or one whose reclaim policy is Retain.
func dataOf(r *evidence.Reader, n graph.Node) stored {
	claim, err := r.Whole(n)
	if err != nil {
		return unknown()
	}
	name := evidence.Nested(claim, "spec", "volumeName")
	if name == "" {
		if evidence.Nested(claim, "status", "phase") == "Pending" {
			return stored{}
		}
		return unknown()
	}
	if volume, err := r.Volume(name); err == nil {
		return dataOn(volume)
	}
	return unknown()
}

// dataOn is dataOf for a volume.
func dataOn(volume *unstructured.Unstructured) stored {
	at := evidence.IdentityOf(evidence.Volumes, "PersistentVolume", volume)
	size := evidence.Nested(volume, "spec", "capacity", "storage")
	switch policy, destroys := evidence.ReclaimPolicy(volume); {
	case destroys:
		known := cmp.Or(size, UnknownSize)
		keep := keepVolume(at, policy, KeepData, at, known)
		if volume.GetDeletionTimestamp() != nil {
			keep.Effect = say.Of(KeepBehind, at, known)
		}
		return stored{lost: &remedy.Loss{Kind: remedy.LosesData, Object: at, Size: size, What: say.Of(LostData, cmp.Or(size, AllOf), at)},
			keep: &keep}
	case policy == "":
		return unknown()
	}
	return stored{}
}

// keepVolume changes the reclaim policy of a volume.
func keepVolume(at graph.Identity, policy string, w string, args ...any) finding.Way {
	way := finding.Does(remedy.RetainOf(at, policy), w, args...)
	way.Keeps = true
	return way.At(finding.Safe)
}

// mistake is what keeps a claim whose data would be lost.
func (d stored) mistake(claim graph.Node) []finding.Way {
	if d.keep == nil {
		return nil
	}
	return []finding.Way{finding.See(remedy.Look{Words: "revive", Of: claim.Identity(), Plugin: true}, ReviveClaim).At(finding.Disruptive)}
}

// losing has the ways to end what uses data say what is lost with it, and begins with the one that keeps
// it.
func (d stored) losing(ways ...finding.Way) []finding.Way {
	for i := range ways {
		ways[i].Data, ways[i].Kept = d.lost, d.keep != nil
	}
	if d.keep != nil {
		return append([]finding.Way{*d.keep}, ways...)
	}
	return ways
}
