// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"cmp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Loss is something that goes with an object of the plan and is worth more than that, or
// that stays although one might think that it goes.
type Loss struct {
	// Object is what goes.
	Object graph.Identity
	// Why is what goes, or stays, with it.
	Why    say.Text
	claims []graph.Identity
	// Stays: it does.
	Stays bool
	// Certain is unset when it depends on what could not be read.
	Certain bool
	// Volume is the PersistentVolume, or the content of a snapshot, of which the data is destroyed with the object, and Size what it has;
	// empty for everything else. Copy: it is the content of a snapshot.
	Volume, Size string
	Copy         bool
	kept         string // the PersistentVolume that stays
	bare         bool   // the object alone goes, with nothing that is worth more
}

// On names the Volume.
func (l *Loss) On() string {
	if l.Copy {
		return "snapshot content " + l.Volume
	}
	return "pv/" + l.Volume
}

// Claims returns the claims of a StatefulSet that stay, when it is that which stays.
func (l *Loss) Claims() []graph.Identity { return l.claims }

// ClaimsKept are the claims of StatefulSets that stay, by the set.
func (s *Forecast) ClaimsKept() map[string][]graph.Identity {
	claims := map[string][]graph.Identity{}
	for i := range s.Lost {
		if l := &s.Lost[i]; l.Claims() != nil {
			claims[l.Object.String()] = l.Claims()
		}
	}
	return claims
}

// Losing returns the objects with which something is lost, in their order, each once, and those that certainly go because of the plan.
func (s *Forecast) Losing() []graph.Identity {
	var ids []graph.Identity
	for i := range s.Lost {
		if l := &s.Lost[i]; !l.Stays && !l.bare {
			ids = append(ids, l.Object)
		}
	}
	ids = slices.Compact(ids) // what is lost with one object stands together
	for _, e := range s.ensues {
		if e.certain {
			ids = append(ids, e.node.Identity())
		}
	}
	return ids
}

// Ensuing returns the objects that go, or may, because of the plan, and that nobody has deleted before. What each node has of its own is
// none of them.
func (s *Forecast) Ensuing() []graph.Identity {
	var ids []graph.Identity
	for _, e := range s.ensues {
		ofNode := func(ref graph.Reference) bool { return ref.Kind == "DaemonSet" || ref.Kind == "Node" }
		if !e.node.BeingDeleted() && !(e.node.Resource().IsPod() && slices.ContainsFunc(e.node.Owners(), ofNode)) {
			ids = append(ids, e.node.Identity())
		}
	}
	return ids
}

// Destroyed returns the losses that are data on volumes.
func (s *Forecast) Destroyed() []Loss {
	return slices.DeleteFunc(slices.Clone(s.Lost), func(l Loss) bool { return l.Volume == "" })
}

// losses are what is lost with what goes. They are read from the scene, and nothing of it is kept.
type losses struct {
	*forecaster
	// told are the explanations of objects that are being deleted and were asked about, nil for what nobody knows.
	told map[types.UID]*explain.Explanation
}

// lost finds what is lost with what goes, what stays of it, and the objects that go because of it.
func (l *losses) lost() (all []Loss, ensues []ensued) {
	var nodes []graph.Node
	for uid := range l.going {
		if n, ok := l.node(uid); ok {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, graph.Node.Compare)
	for _, n := range nodes {
		switch n.Resource().GroupResource() {
		case evidence.StatefulSets.GroupResource():
			all = append(all, l.claimsOf(n)...)
		case evidence.ServiceAccounts.GroupResource():
			all = append(all, l.tokensOf(n)...)
		}
		all = slices.Concat(all, l.dataOf(n), l.guarded(n))
	}
	more, ensues := l.ensuing(nodes)
	return l.shared(append(all, more...)), ensues
}

// shared adds the volumes that are to their driver the same as one of which the data is destroyed, whatever their own policy.
func (l *losses) shared(all []Loss) []Loss {
	destroyed := map[string]Loss{}
	for _, loss := range all {
		if loss.Volume != "" && !loss.Copy {
			destroyed[loss.Volume] = loss
		}
	}
	if len(destroyed) == 0 {
		return all
	}
	volumes, _ := l.now.evidence.List(evidence.Volumes, "") // that it could not be read is noted
	with := map[string]Loss{}
	for i := range volumes {
		if handle := evidence.Nested(&volumes[i], "spec", "csi", "volumeHandle"); handle != "" {
			if loss, is := destroyed[volumes[i].GetName()]; is {
				with[evidence.DriverOf(&volumes[i])+" "+handle] = loss
			}
		}
	}
	for i := range volumes {
		v := &volumes[i]
		handle := evidence.Nested(v, "spec", "csi", "volumeHandle")
		loss, is := with[evidence.DriverOf(v)+" "+handle]
		if _, itself := destroyed[v.GetName()]; !is || itself {
			continue
		}
		all = slices.DeleteFunc(all, func(l Loss) bool { return l.kept == v.GetName() })
		size := evidence.Nested(v, "spec", "capacity", "storage")
		why := say.Of(volumeShared, evidence.Identity(evidence.Volumes, "", v.GetName()), cmp.Or(size, unknownSize),
			evidence.Identity(evidence.Volumes, "", loss.Volume), handle)
		all = append(all, Loss{Object: loss.Object, Why: why, Certain: loss.Certain, Volume: v.GetName(), Size: size})
	}
	return all
}

// dataOf says what becomes of the data of an object.
func (l *losses) dataOf(n graph.Node) []Loss {
	switch n.Resource().GroupResource() {
	case evidence.Claims.GroupResource():
		return l.volumeOf(n)
	case evidence.Volumes.GroupResource():
		if l.going[n.UID()] {
			return nil
		}
		return l.unclaimed(n)
	}
	return l.copiesOf(n)
}

// volumeOf says what becomes of the volume of a claim.
func (l *losses) volumeOf(n graph.Node) []Loss {
	id := n.Identity()
	claim, err := l.now.evidence.Whole(n)
	if apierrors.IsNotFound(err) {
		return nil
	}
	unknown := func(what string, err error) []Loss {
		return []Loss{{Object: id, Why: say.Of(volumeUnread, what, err)}}
	}
	if err != nil {
		return unknown("it", err)
	}
	volume, err := l.boundTo(claim)
	if volume == nil || apierrors.IsNotFound(err) {
		return nil
	}
	name := volume.GetName()
	if err != nil {
		return unknown("PersistentVolume/"+name, err)
	}
	// The volume follows the claim to which it is bound, by UID (pkg/controller/volume/persistentvolume/pv_controller.go, syncVolume).
	if of := evidence.Nested(volume, "spec", "claimRef", "uid"); of != "" && of != string(n.UID()) {
		return nil
	}
	size := evidence.Nested(volume, "spec", "capacity", "storage")
	policy, destroys := evidence.ReclaimPolicy(volume)
	if !destroys {
		kept := volumeKept
		if l.going[volume.GetUID()] {
			kept = storageKept
		}
		return []Loss{{Object: id, Why: say.Of(kept, evidence.Identity(evidence.Volumes, "", name), cmp.Or(size, unknownSize), policy),
			Stays: true, Certain: true, kept: name}}
	}
	goes := volumeGoes
	if policy == "Recycle" {
		goes = volumeRecycled
	}
	return []Loss{{Object: id, Why: say.Of(goes, evidence.Identity(evidence.Volumes, "", name), cmp.Or(size, unknownSize), policy),
		Certain: true, Volume: name, Size: size}}
}

// boundTo returns the volume of a claim: the one that it names, or that names it by its UID when the claim has not been told yet. Of one
// that could not be read it has the name, if that is known; nil is for none.
func (l *losses) boundTo(claim *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	named := &unstructured.Unstructured{}
	named.SetName(evidence.Nested(claim, "spec", "volumeName"))
	if named.GetName() != "" {
		if volume, err := l.now.evidence.Volume(named.GetName()); err == nil {
			return volume, nil
		} else {
			return named, err
		}
	}
	volumes, err := l.now.evidence.List(evidence.Volumes, "")
	if err != nil {
		return named, err
	}
	for i := range volumes {
		if evidence.Nested(&volumes[i], "spec", "claimRef", "uid") == string(claim.GetUID()) {
			return &volumes[i], nil
		}
	}
	return nil, nil
}

// copiesOf says what becomes of the content of a snapshot that goes, or of content that goes: its policy may have the driver delete the
// snapshot behind it.
func (l *losses) copiesOf(n graph.Node) []Loss {
	at := slices.IndexFunc(evidence.Copies, func(c evidence.Copy) bool { return c.Has(n.Resource().GroupResource()) })
	if at < 0 {
		return nil
	}
	kind, id := evidence.Copies[at], n.Identity()
	contents, err := l.now.evidence.List(kind.Contents.WithVersion(id.Resource.Version), "")
	if err != nil && !apierrors.IsNotFound(err) {
		return []Loss{{Object: id, Why: say.Of(copiesUnread, err)}}
	}
	var all []Loss
	for i := range contents {
		c := &contents[i]
		if c.GetUID() != n.UID() && (evidence.Nested(c, "spec", kind.Ref, "uid") != string(n.UID()) || l.going[c.GetUID()]) {
			continue
		}
		if policy := evidence.Nested(c, "spec", "deletionPolicy"); policy != "Delete" {
			if c.GetUID() != n.UID() {
				all = append(all, Loss{Object: id, Why: say.Of(copyKept, kind.Kind, c.GetName(), policy), Stays: true, Certain: true})
			}
			continue
		}
		loss := Loss{Object: id, Certain: true, Volume: c.GetName(), Copy: true}
		if size, known, _ := unstructured.NestedInt64(c.Object, "status", "restoreSize"); known {
			loss.Size = resource.NewQuantity(size, resource.BinarySI).String()
		}
		loss.Why = say.Of(copyGoes, kind.Kind, c.GetName(), cmp.Or(loss.Size, unknownSize))
		all = append(all, loss)
	}
	return all
}

// claimsOf says which claims of a StatefulSet stay.
func (l *losses) claimsOf(n graph.Node) []Loss {
	id := n.Identity()
	set, err := l.now.evidence.Whole(n)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return []Loss{{Object: id, Why: say.Of(claimsUnread, err), Stays: true}}
	}
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	if len(templates) > 0 && !l.now.evidence.Covers(evidence.Claims.GroupResource(), id.Namespace, "") {
		whenDeleted := cmp.Or(evidence.Nested(set, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"), "Retain")
		return []Loss{{Object: id, Stays: whenDeleted == "Retain", Why: say.Of(claimsUnlisted, whenDeleted)}}
	}
	var stay []graph.Identity
	for _, m := range l.now.evidence.Within(evidence.Claims.GroupResource(), id.Namespace) {
		if evidence.IsTemplateClaim(set, m.Name()) && !l.going[m.UID()] && !m.BeingDeleted() {
			stay = append(stay, m.Identity())
		}
	}
	if len(stay) == 0 {
		return nil
	}
	return []Loss{{Object: id, Why: say.Of(claimsKept, some(stay)), claims: stay, Stays: true, Certain: true}}
}

// guarded says what the finalizers of an object stand for, where the catalogue knows it:
// that is done before the object is gone.
func (l *losses) guarded(n graph.Node) []Loss {
	var all []Loss
	for _, finalizer := range n.Object().Finalizers {
		if !isForeign(finalizer) {
			continue
		}
		for _, m := range l.now.finder.Entries(finalizer, n.Resource().GroupVersionKind().GroupKind(), finalizers.Metadata) {
			if m.WaitsFor != "" && m.WhileUsed != finalizers.OnlyWaits && !m.Harmless && !l.spares(n, finalizer) {
				all = append(all, Loss{Object: n.Identity(), Why: say.Of(cleansUpOutside, m.WaitsFor, l.deployed(n), finalizer, m.Product)})
			}
		}
	}
	return all
}

// spares reports whether an object says itself that its controller is to leave alone what its finalizer stands for.
func (l *losses) spares(n graph.Node, finalizer string) bool {
	resource := n.Resource().GroupResource()
	if !delivery.MaySpare(resource, finalizer) {
		return false
	}
	full, err := l.now.evidence.Whole(n)
	return err == nil && delivery.Spares(resource, full) // or else it is noted as unread
}

// deployed counts what an object has deployed, 0 where its status does not tell.
func (l *losses) deployed(n graph.Node) say.Text {
	resource := n.Resource().GroupResource()
	if !delivery.Deploys(resource) {
		return say.Text{}
	}
	full, err := l.now.evidence.Whole(n)
	if err != nil {
		return say.Text{} // it is noted as unread
	}
	if all := delivery.Inventory(resource, full); len(all) > 0 {
		return say.Of(byItsStatus, evidence.Number(len(all), "object"))
	}
	return say.Text{}
}

// tokensOf says that Secrets with tokens of an account go with it, where it is not known which these are.
func (l *losses) tokensOf(n graph.Node) []Loss {
	if _, goes := l.named["Namespace/"+n.Namespace()]; goes || l.now.evidence.Covers(evidence.Secrets.GroupResource(), n.Namespace(), "") {
		return nil
	}
	return []Loss{{Object: n.Identity(), Why: say.Of(tokensGo)}}
}
