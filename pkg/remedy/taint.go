// SPDX-License-Identifier: Apache-2.0

package remedy

import "strings"

// A NodeTaint is one of a node.
type NodeTaint struct{ Key, Value, Effect string }

// ParseTaint takes a taint apart that is written as kubectl writes it, key=value:effect.
func ParseTaint(text string) NodeTaint {
	pair, effect, _ := strings.Cut(text, ":")
	key, value, _ := strings.Cut(pair, "=")
	return NodeTaint{key, value, effect}
}

// Like reports whether an entry of spec.taints has the key and the effect: a node has one such taint at most.
func (t NodeTaint) Like(entry any) bool {
	fields, _ := entry.(map[string]any)
	return fields["key"] == t.Key && fields["effect"] == t.Effect
}

// Is reports whether an entry of spec.taints is the taint.
func (t NodeTaint) Is(entry any) bool {
	fields, _ := entry.(map[string]any)
	value, _ := fields["value"].(string) // an empty one is left out
	return t.Like(entry) && value == t.Value
}
