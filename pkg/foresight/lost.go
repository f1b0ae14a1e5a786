// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"cmp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/delivery"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
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
	// Volume is the PersistentVolume, or the content of a snapshot, of which the data is destroyed with the object, and Size what it has; empty for
	// everything else. Copy: it is the content of a snapshot.
	Volume, Size string
	Copy         bool
}

// On names the Volume.
func (l *Loss) On() string {
	if l.Copy {
		return "snapshot content " + l.Volume
	}
	return "pv/" + l.Volume
}

// Says says what goes, or stays, with it.
func (l *Loss) Says() string { return l.Why.String() }

// Claims returns the claims of a StatefulSet that stay, when it is that which stays.
func (l *Loss) Claims() []graph.Identity { return l.claims }

// ClaimsKept are the claims of StatefulSets that stay, by the set.
func (s *Sight) ClaimsKept() map[string][]graph.Identity {
	claims := map[string][]graph.Identity{}
	for i := range s.Lost {
		if l := &s.Lost[i]; l.Claims() != nil {
			claims[l.Object.String()] = l.Claims()
		}
	}
	return claims
}

// Losing returns the objects with which something is lost, in their order, each once.
func (s *Sight) Losing() []types.UID {
	var uids []types.UID
	for i := range s.Lost {
		if l := &s.Lost[i]; !l.Stays {
			uids = append(uids, l.Object.UID)
		}
	}
	return slices.Compact(uids) // what is lost with one object stands together
}

// Destroyed returns the losses that are data on volumes.
func (s *Sight) Destroyed() []Loss {
	return slices.DeleteFunc(slices.Clone(s.Lost), func(l Loss) bool { return l.Volume == "" })
}

// losses are what is lost with what goes. They are read from the scene, and nothing of it is kept.
type losses struct{ *scene }

// lost finds what is lost with what goes, and what stays of it.
func (l *losses) lost() []Loss {
	var nodes []graph.Node
	for uid := range l.going {
		if n, ok := l.node(uid); ok {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, graph.Node.Compare)
	var all []Loss
	for _, n := range nodes {
		switch n.Resource().GroupResource() {
		case evidence.Claims.GroupResource():
			all = append(all, l.volumeOf(n)...)
		case evidence.StatefulSets.GroupResource():
			all = append(all, l.claimsOf(n)...)
		case evidence.ServiceAccounts.GroupResource():
			all = append(all, l.tokensOf(n)...)
		}
		all = slices.Concat(all, l.copiesOf(n), l.guarded(n))
	}
	for _, on := range l.nodes {
		nodes = append(nodes, on.pods...)
	}
	ended, freed := l.released(nodes)
	return slices.Concat(all, ended, l.fallen(freed), l.unguarded())
}

// released says what becomes of the volumes of claims that somebody deleted before, and that
// nothing keeps but pods that go.
func (l *losses) released(going []graph.Node) (all []Loss, freed []graph.Node) {
	asked := map[string]bool{}
	for _, n := range going {
		if !n.Resource().IsPod() || asked[n.Namespace()] {
			continue
		}
		asked[n.Namespace()] = true
		for _, claim := range l.now.evidence.Within(evidence.Claims.GroupResource(), n.Namespace()) {
			if !claim.BeingDeleted() || l.going[claim.UID()] {
				continue
			}
			frees, certain := l.frees(claim)
			if !frees {
				continue
			}
			freed = append(freed, claim)
			for _, loss := range l.volumeOf(claim) {
				loss.Why = say.Of(withPods, loss.Why)
				loss.Certain = loss.Certain && certain
				all = append(all, loss)
			}
		}
	}
	return all, freed
}

// frees reports whether the plan takes away a pod that keeps a claim which is being deleted, and
// whether nothing else is known to keep it.
func (l *losses) frees(claim graph.Node) (frees, certain bool) {
	users, err := l.now.evidence.PodsWithClaims(claim.Namespace())
	certain = err == nil && len(claim.Finalizers()) == 1 && claim.Finalizers()[0] == finalizers.ClaimProtection
	for i := range users {
		switch {
		case !evidence.ProtectsClaim(&users[i], claim.Object()):
		case l.going[users[i].GetUID()] || l.onNodes.Has(users[i].GetUID()):
			frees = true
		case users[i].GetDeletionTimestamp() == nil:
			return false, true // it stays
		}
	}
	return frees || err != nil, certain
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
	name := evidence.Nested(claim, "spec", "volumeName")
	if name == "" {
		return nil
	}
	volume, err := l.now.evidence.Volume(name)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return unknown("PersistentVolume/"+name, err)
	}
	// The volume follows the claim to which it is bound, by UID (pkg/controller/volume/persistentvolume/pv_controller.go, syncVolume).
	if of := evidence.Nested(volume, "spec", "claimRef", "uid"); of != "" && of != string(n.UID()) {
		return nil
	}
	size := evidence.Nested(volume, "spec", "capacity", "storage")
	policy, destroys := evidence.ReclaimPolicy(volume)
	if !destroys {
		return []Loss{{Object: id, Why: say.Of(volumeKept, name, cmp.Or(size, unknownSize), policy), Stays: true, Certain: true}}
	}
	goes := volumeGoes
	if policy == "Recycle" {
		goes = volumeRecycled
	}
	return []Loss{{Object: id, Why: say.Of(goes, name, cmp.Or(size, unknownSize), policy), Certain: true, Volume: name, Size: size}}
}

// copiesOf says what becomes of the content of a snapshot that goes, or of content that goes: its policy may have the driver delete the snapshot behind it.
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

// spares reports whether an object says itself that its controller is to leave alone what its finalizer
// stands for: kustomize-controller prunes nothing of one that is suspended or does not prune
// (kustomization_controller.go, finalize), and a deletionPolicy may have it stay.
func (l *losses) spares(n graph.Node, finalizer string) bool {
	resource := n.Resource().GroupResource()
	policy := resource == pushSecrets || finalizer == "finalizer.managedresource.crossplane.io"
	if !policy && resource != delivery.Kustomizations {
		return false
	}
	full, err := l.now.evidence.Whole(n)
	if err != nil {
		return false // it is noted as unread
	}
	prunes, stated, _ := unstructured.NestedBool(full.Object, "spec", "prune")
	suspended, _, _ := unstructured.NestedBool(full.Object, "spec", "suspend")
	if resource == delivery.Kustomizations {
		return suspended || stated && !prunes
	}
	kept := evidence.Nested(full, "spec", "deletionPolicy")
	return kept == "Orphan" || resource == pushSecrets && kept != "Delete"
}

var pushSecrets = schema.GroupResource{Group: "external-secrets.io", Resource: "pushsecrets"}

// deployed counts what an object has deployed, 0 where its status does not tell.
func (l *losses) deployed(n graph.Node) say.Text {
	resource := n.Resource().GroupResource()
	if resource != delivery.Applications && resource != delivery.Kustomizations {
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

var secrets = schema.GroupResource{Resource: "secrets"}

// tokensOf says that the Secrets with tokens of an account go with it
// (pkg/controller/serviceaccount/tokens_controller.go). Whose they are only the whole
// Secrets tell, which are not read.
func (l *losses) tokensOf(n graph.Node) []Loss {
	if _, goes := l.named["Namespace/"+n.Namespace()]; goes || len(l.now.evidence.Within(secrets, n.Namespace())) == 0 {
		return nil
	}
	return []Loss{{Object: n.Identity(), Why: say.Of(tokensGo)}}
}
