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
// the objects that the plan speaks for, in whatever version they are.
func (p *Plan) digest() string {
	hash := sha256.New()
	var line []byte
	for i := range p.Report.Steps {
		line = append(p.appendStep(line[:0], &p.Report.Steps[i]), '\n')
		hash.Write(line)
	}
	line = append(line[:0], '[')
	for i, uid := range p.covered() {
		if i > 0 {
			line = append(line, ',')
		}
		line = appendString(line, string(uid))
		hash.Write(line)
		line = line[:0]
	}
	hash.Write(append(line, "]\n"...))
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

// Lose has the digest stand for the objects, too, with which something is lost that is worth more
// than they are: whoever agreed to a plan did not agree to the loss of what was to stay.
func (p *Plan) Lose(objects []types.UID) {
	p.lost = objects
	if len(objects) > 0 {
		p.Digest = Checksum([]any{"lost", p.Digest, objects})
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
	for _, n := range gc.Contents(p.Graph, nodes...) {
		going[n.UID()] = true
	}
	return going
}

// appendStep appends what a digest has of a write, as JSON.
func (p *Plan) appendStep(line []byte, s *gc.Step) []byte {
	line = appendString(append(line, '['), string(s.Action))
	line = appendPath(append(line, ','), s.Object.Identity())
	line = appendString(append(line, ','), string(s.Object.UID))
	line = appendString(append(line, ','), p.Version(s))
	line = append(line, ',')
	if policy := s.Options.PropagationPolicy; policy != nil {
		line = appendString(line, string(*policy))
	} else {
		line = append(line, "null"...)
	}
	line = append(line, ',')
	if grace := s.Options.GracePeriodSeconds; grace != nil {
		line = strconv.AppendInt(line, *grace, 10)
	} else {
		line = append(line, "null"...)
	}
	line = appendUIDs(append(line, ','), s.Patch.RemoveOwners)
	line = strconv.AppendBool(append(line, ','), s.Patch.Unblock)
	return append(appendString(append(line, ','), s.Patch.RemoveFinalizer), ']')
}

// appendPath appends the path of an object's URL as a JSON string.
func appendPath(line []byte, id graph.Identity) []byte {
	start := len(line)
	line = id.AppendURLPath(append(line, '"'))
	if path := line[start+1:]; !plain(path) {
		return appendString(line[:start], string(path))
	}
	return append(line, '"')
}

// appendUIDs appends a list of UIDs as JSON, which is null for nil.
func appendUIDs(line []byte, uids []types.UID) []byte {
	if uids == nil {
		return append(line, "null"...)
	}
	line = append(line, '[')
	for i, uid := range uids {
		if i > 0 {
			line = append(line, ',')
		}
		line = appendString(line, string(uid))
	}
	return append(line, ']')
}

// appendString appends a string as encoding/json writes it.
func appendString(line []byte, s string) []byte {
	if plain(s) {
		return append(append(append(line, '"'), s...), '"')
	}
	quoted, _ := json.Marshal(s) // strings can always be encoded
	return append(line, quoted...)
}

// plain reports whether encoding/json writes the text as it is.
func plain[T string | []byte](text T) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
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
