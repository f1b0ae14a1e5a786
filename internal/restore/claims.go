// SPDX-License-Identifier: Apache-2.0

package restore

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// claim is one that is made again, or was: bound to its volume, with what that holds, or not at all. The volume gets it after it is there,
// by its UID: of any other way a claim of others might be faster.
func (p *planner) claim(i *Item) {
	if i.wasBound() {
		p.give(i, evidence.Nested(i.Manifest, "spec", "volumeName"), "")
	}
}

// unbound is a claim that an earlier undo has made: it might have ended before the volume was the claim's.
func (p *planner) unbound(i *Item) {
	name := evidence.Nested(i.Manifest, "spec", "volumeName")
	if name == "" || evidence.Nested(i.Now, "spec", "volumeName") != name ||
		evidence.Nested(i.Now, "status", "phase") == string(corev1.ClaimBound) {
		return
	}
	if p.give(i, name, i.Now.GetUID()); i.Then != nil && i.Do == Nothing {
		i.Do = Bind
	}
}

// give has the volume of a claim become that of the one with the UID, which is empty before it is made, or refuses the claim. A volume that
// is made is made with it.
func (p *planner) give(i *Item, name string, claim types.UID) {
	by := evidence.Identity(evidence.Volumes, "", name)
	if other := p.named[by]; other != nil {
		if p.settle(other); other.Do == Make || other.Do == Await {
			return
		}
		if claim == "" && other.Do == Refuse && other.Reason != NotAsked {
			i.refuse(DataGone, by, nil)
			return
		}
	}
	now, err := p.Find(by)
	why := DataGone
	switch {
	case err != nil:
		why = Unread
	case now == nil:
	case i.had(now):
		by.UID = now.GetUID()
		if i.Then, why = i.Rebind(by, now, claim); why == "" {
			return
		}
	case claim != "":
		by.UID, why = now.GetUID(), Taken
	case i.Volume == "":
		why = Unproved
	}
	i.refuse(why, by, err)
}

// had reports whether a volume is the one that a claim had: another of its name may be another disk.
func (i *Item) had(volume *unstructured.Unstructured) bool {
	uid := types.UID(evidence.Nested(volume, "spec", "claimRef", "uid"))
	return volume.GetUID() == i.Volume || uid != "" && (uid == i.Object.UID || uid == i.Made)
}

// Elsewhere reports whether a claim has another volume by now than it had.
func (i *Item) Elsewhere(now *unstructured.Unstructured) bool {
	name := evidence.Nested(now, "spec", "volumeName")
	return name != "" && name != evidence.Nested(i.Manifest, "spec", "volumeName")
}

// BoundTo is the claim for which a volume is made, nil for none.
func (i *Item) BoundTo() *Item { return i.bound }

// wasBound reports whether a claim had a volume. One that was pending has held no data, even if it names a volume, unless that was the
// claim's already.
func (i *Item) wasBound() bool {
	return evidence.Nested(i.Manifest, "spec", "volumeName") != "" &&
		(i.Volume != "" || evidence.Nested(i.Manifest, "status", "phase") != string(corev1.ClaimPending))
}

// Binding is a claim that is to be bound to a volume. Made: a plan has made it.
type Binding struct {
	Claim  graph.Identity
	Volume string
	Made   bool
}

// Bindings are the claims that are to be bound again. ids are the UIDs that objects have by now, by those that they had.
func (plan *Plan) Bindings(ids map[types.UID]types.UID) (all []Binding) {
	for _, i := range plan.Items {
		makes := i.Do == Make || i.Do == Await
		switch of := kindOf(i.Object.Resource); {
		case i.Late || ids[i.Object.UID] == "" || !makes && i.Then == nil:
		case of == claim && i.wasBound():
			b := Binding{i.Object, evidence.Nested(i.Manifest, "spec", "volumeName"), true}
			b.Claim.UID = ids[i.Object.UID]
			all = append(all, b)
		case of == volume && (i.bound == nil || i.bound.Do == Nothing):
			ref := func(field string) string { return evidence.Nested(i.Manifest, "spec", "claimRef", field) }
			id := evidence.Identity(evidence.Claims, ref("namespace"), ref("name"))
			if id.UID = types.UID(ref("uid")); ids[id.UID] != "" {
				id.UID = ids[id.UID]
			}
			if id.UID != "" {
				all = append(all, Binding{Claim: id, Volume: i.Object.Name})
			}
		}
	}
	return all
}

// Rebind returns what gives a claim, which has that UID by now, the volume again that it had, as that is now, or why nothing does: one that
// is retained, and is free, or the claim's by name or by the UID that it had. Another volume of the name may be another disk. An empty UID
// is of a claim that is not there yet.
func (i *Item) Rebind(id graph.Identity, now *unstructured.Unstructured, claim types.UID) (then *remedy.Op, why Reason) {
	const ref = remedy.ClaimRef
	if now == nil || now.GetUID() != id.UID || now.GetDeletionTimestamp() != nil ||
		evidence.Nested(now, "spec", "persistentVolumeReclaimPolicy") != string(corev1.PersistentVolumeReclaimRetain) {
		return nil, DataGone
	}
	is, _, _ := unstructured.NestedMap(now.Object, "spec", "claimRef")
	uid, _ := is["uid"].(string)
	ours := is["namespace"] == i.Object.Namespace && is["name"] == i.Object.Name
	steps := []remedy.Step{remedy.Test(remedy.ReclaimPolicy, string(corev1.PersistentVolumeReclaimRetain))}
	switch {
	case len(is) == 0:
		steps = append(steps, remedy.Add(ref, map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": i.Object.Namespace,
			"name": i.Object.Name, "uid": string(claim)}))
	case ours && uid == "", ours && uid == string(claim):
		return nil, ""
	case !ours || uid != string(i.Object.UID) && uid != string(i.Made):
		return nil, Taken
	default:
		steps = append(steps, remedy.Test(ref+"/uid", uid), remedy.Replace(ref+"/uid", string(claim)))
		if is["resourceVersion"] != nil {
			steps = append(steps, remedy.Remove(ref+"/resourceVersion"))
		}
	}
	return new(remedy.PatchOf(id, steps...)), ""
}

// bind has a volume that is made again come after its claim, for its UID. It stays Released unless its claim is there.
func (p *planner) bind(i *Item) {
	if i.Do != Make && i.Do != Await || kindOf(i.Object.Resource) != volume {
		return
	}
	c := p.items[types.UID(evidence.Nested(i.Manifest, "spec", "claimRef", "uid"))]
	if c != nil && c.There() && (c.Do != Nothing || !c.Elsewhere(c.Now)) {
		needy := i.needy // the server can be asked about it before
		i.needs(c)
		i.bound, i.needy = c, needy
	}
}
