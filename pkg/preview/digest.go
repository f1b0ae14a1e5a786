// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// digest identifies the writes, in their order, but not the words about them, and
// the objects that the plan speaks for, in whatever version they are.
func (p *Plan) digest() string {
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	for i := range p.Report.Steps {
		s := &p.Report.Steps[i]
		id := s.Object.Identity()
		// Encoding strings, numbers and structs of them into a hash cannot fail.
		_ = encoder.Encode([]any{
			s.Action, id.URLPath(), id.UID, p.Version(s), s.Options.PropagationPolicy, s.Options.GracePeriodSeconds,
			s.Patch.RemoveOwners, s.Patch.Unblock, s.Patch.RemoveFinalizer,
		})
	}
	_ = encoder.Encode(p.covered())
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// inOrder is the digest of a plan of which the order is part.
func inOrder(digest string, waves []Wave) string {
	if len(waves) == 0 {
		return digest
	}
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	_ = encoder.Encode(digest) // as in digest
	for _, wave := range waves {
		_ = encoder.Encode(uidsOf(wave.Objects))
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// Going returns the objects that the plan takes away, whatever holds them for the time
// being: those that it deletes, those that go with a namespace, a definition or an owner
// that goes, and those that go already.
func (p *Plan) Going() map[types.UID]bool {
	going := map[types.UID]bool{}
	var nodes []graph.Node
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		if o.Result != gc.Deleted && !o.Object.BeingDeleted() && !p.followers[o.Object.UID] {
			continue
		}
		going[o.Object.UID] = true
		if n, ok := p.Graph.Node(o.Object.UID); ok {
			nodes = append(nodes, n)
		}
	}
	for _, n := range gc.Contents(p.Graph, nodes...) {
		going[n.UID()] = true
	}
	return going
}

// covered returns the UIDs of the objects that a plan speaks for, in their order: of
// all but those that stay as they are, of those that follow an owner which is held
// for the time being, and of everything that goes with a Namespace
// or a CustomResourceDefinition, whatever keeps it for the time being. One write
// deletes these, and all that is in them.
func (p *Plan) covered() []types.UID {
	uids := make([]types.UID, 0, len(p.Report.Outcomes))
	var going []graph.Node
	for i := range p.Report.Outcomes {
		o := &p.Report.Outcomes[i]
		if o.Result == gc.Untouched && !p.followers[o.Object.UID] {
			continue
		}
		uids = append(uids, o.Object.UID)
		if n, ok := p.Graph.Node(o.Object.UID); ok && (o.Result == gc.Deleted || o.Object.BeingDeleted()) {
			going = append(going, n)
		}
	}
	for _, n := range gc.Contents(p.Graph, going...) {
		uids = append(uids, n.UID())
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}
