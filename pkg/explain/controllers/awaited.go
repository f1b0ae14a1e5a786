// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/mention"
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
	says := func(word string) bool { return mention.Has(message, word) }
	var awaited []graph.Node
	for _, m := range f.evidence.In(n.Namespace()) {
		r := m.Resource()
		if m.UID() != n.UID() && r.Group == n.Resource().Group && mention.Has(message, m.Name()) && slices.ContainsFunc([]string{r.Kind, r.Kind + "s", r.Resource}, says) {
			awaited = append(awaited, m)
		}
	}
	return awaited
}
