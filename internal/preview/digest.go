// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// digest identifies the writes, in their order, but not the words about them, and
// the objects that the plan speaks for, in whatever version they are. Each line is strings, quoted.
func (p *Plan) digest() string {
	hash := sha256.New()
	var line []byte
	for i := range p.Report.Steps {
		line = append(p.appendStep(line[:0], &p.Report.Steps[i]), '\n')
		hash.Write(line)
	}
	for _, uid := range p.covered() {
		hash.Write(strconv.AppendQuote(line[:0], string(uid)))
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// inOrder is the digest of a plan of which the order is part.
func inOrder(digest string, waves []Wave) string {
	if len(waves) == 0 {
		return digest
	}
	parts := []any{digest}
	for _, wave := range waves {
		parts = append(parts, uidsOf(wave.Objects))
	}
	return Checksum(parts...)
}

// Checksum is the digest of parts that can be encoded, each a line of JSON.
func Checksum(parts ...any) string {
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	for _, part := range parts {
		_ = encoder.Encode(part)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// Lose has the digest stand for the objects, too, with which something is lost that is worth more than they are: whoever agreed to a plan
// did not agree to the loss of what was to stay. ensuing are those that others delete because of it.
func (p *Plan) Lose(objects, ensuing []graph.Identity) {
	p.lost, p.ensuing = objects, ensuing
	if len(objects) > 0 {
		p.Digest = Checksum([]any{"lost", p.Digest, uidsOf(objects)})
	}
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
	for _, n := range graph.Contents(p.Graph, nodes...) {
		going[n.UID()] = true
	}
	return going
}

// appendStep appends what a digest has of a write.
func (p *Plan) appendStep(line []byte, s *gc.Step) []byte {
	var policy, grace string
	if s.Options.PropagationPolicy != nil {
		policy = string(*s.Options.PropagationPolicy)
	}
	if s.Options.GracePeriodSeconds != nil {
		grace = strconv.FormatInt(*s.Options.GracePeriodSeconds, 10)
	}
	id := s.Object.Identity()
	line = id.AppendURLPath(line) // quotes are escaped in it
	for _, part := range []string{string(s.Object.UID), p.Version(s), string(s.Action), policy, grace, s.Patch.RemoveFinalizer,
		strconv.FormatBool(s.Patch.Unblock)} {
		line = strconv.AppendQuote(line, part)
	}
	for _, owner := range s.Patch.RemoveOwners {
		line = strconv.AppendQuote(line, string(owner))
	}
	return line
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
	for _, n := range graph.Contents(p.Graph, going...) {
		uids = append(uids, n.UID())
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}
