// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/finalizer"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// What explain says itself. What rules find is said in their packages.
const (
	notTerminated  say.Word = "it is not being deleted"
	andMore        say.Word = "and %d more like it"
	unexamined     say.Word = "who removes the finalizers of %s beyond the first %d: it has %d"
	undeleted      say.Word = "%s, which is not being deleted"
	unreadable     say.Word = "it cannot be read: %s"
	ownerReplaced  say.Word = "it fits that the garbage collector deleted it: %s names %s with the UID of one that was there before"
	ownerElsewhere say.Word = "it fits that the garbage collector deleted it: %s names %s, which is in namespace %s"
	ownerOther     say.Word = "it fits that the garbage collector deleted it: %s names %s, but the object with that UID is %s"
	ownerGone      say.Word = "it fits that the garbage collector deleted it: %s names %s, which does not exist"
	saveFirst      say.Word = ". A deletion cannot be taken back: save the object first"
	// sentByYou is where a refusal is shown that says nothing of the object.
	sentByYou = "when you send it"
)

// FromCatalogue is the source of evidence that is not about the cluster but about
// finalizers, by the catalogue.
const FromCatalogue = "the catalogue of finalizers"

// entryEvidence is what the catalogue says of a finalizer.
func entryEvidence(m finalizers.Match) []Evidence {
	var facts []Evidence
	add := func(what string, value any) {
		if fact := evidence.At(FromCatalogue, what, value); !fact.Value.IsZero() {
			facts = append(facts, fact)
		}
	}
	add("waits for", m.WaitsFor)
	for _, workload := range m.Workloads {
		add("usually runs as", finalizer.RunsAs(workload))
	}
	add("runs outside the cluster", m.OffCluster)
	add("note", m.Note)
	return facts
}
