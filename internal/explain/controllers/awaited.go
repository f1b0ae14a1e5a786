// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/mention"
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
	says := func(word string) bool { return mention.Has(message, word) }
	var awaited []graph.Node
	for _, r := range f.evidence.Types() {
		kinds := []string{r.Kind, r.Kind + "s", r.Resource}
		if r.Group != n.Resource().Group || !slices.ContainsFunc(kinds, says) {
			continue
		}
		for _, m := range f.evidence.Within(r.GroupResource(), n.Namespace()) {
			name := m.Name()
			if m.UID() == n.UID() || !says(name) {
				continue
			}
			// A name like default may be a word of the sentence: it must come behind the kind, or in a list there.
			listed := regexp.MustCompile(`\b(` + strings.Join(kinds, "|") + `)\W+([\w./-]+, ?)*([\w-]+/)?` + regexp.QuoteMeta(name) + `\b`)
			if strings.ContainsAny(name, "-.0123456789") || listed.MatchString(message) {
				awaited = append(awaited, m)
			}
		}
	}
	return awaited
}
