// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"unicode"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// waitingText is a message about something that has to go first.
var waitingText = pattern.New(`(?i)will not be deleted|until|wait(s|ing)? for|dependent|in use|used by|still (has|have|exists?|references?)`)

// Awaited returns the objects that a message of an object's controller names as those
// that have to go first: of the same API and namespace, by their kind and name.
func (f *references) Awaited(n graph.Node, message string) []graph.Node {
	if n.Namespace() == "" || !waitingText().MatchString(message) {
		return nil
	}
	words := map[string]bool{}
	for _, word := range strings.FieldsFunc(message, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '.'
	}) {
		words[strings.Trim(word, ".")] = true
	}
	var awaited []graph.Node
	for _, m := range f.evidence.In(n.Namespace()) {
		r := m.Resource()
		if m.UID() != n.UID() && r.Group == n.Resource().Group && words[m.Name()] && (words[r.Kind] || words[r.Kind+"s"] || words[r.Resource]) {
			awaited = append(awaited, m)
		}
	}
	return awaited
}
