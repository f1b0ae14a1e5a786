// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// maxNamed is the number of objects that a summary names for one reason; more
// are counted.
const maxNamed = 5

// phrases are what a summary says of each result, the worst first.
var phrases = []struct {
	result gc.Result
	words  string
	color  color
	// explained results are listed with their reasons; of the others only those
	// objects are that there is something to say about.
	explained bool
}{
	{gc.Remaining, "not deleted yet", red, true},
	{gc.Unknown, "not known", yellow, true},
	{gc.Deleted, "deleted", noColor, false},
	{gc.Orphaned, "orphaned", noColor, false},
	{gc.OwnerReferenceRemoved, "kept, without an owner reference", noColor, true},
	{gc.Untouched, "kept", noColor, true},
}

// Summary writes what a deletion did to the objects of a cluster: counts by kind for each result,
// and reasons where there is something to explain. where may be nil.
func Summary(w io.Writer, style Style, where *answer.Where, all []gc.Outcome) error {
	out := bufio.NewWriter(w)
	for _, phrase := range phrases {
		matching := withResult(all, phrase.result)
		if len(matching) == 0 {
			continue
		}
		fmt.Fprintf(out, "%s: %s\n", style.paint(phrase.words, phrase.color), counts(matching))
		style.where(out, 2, where)
		where = nil // once
		writeAppeared(out, matching)
		if !phrase.explained {
			matching = slices.DeleteFunc(matching, func(o *gc.Outcome) bool { return o.Reason.IsZero() })
		}
		writeReasons(out, matching)
	}
	return out.Flush()
}

func withResult(all []gc.Outcome, result gc.Result) []*gc.Outcome {
	var matching []*gc.Outcome
	for i := range all {
		if all[i].Result == result {
			matching = append(matching, &all[i])
		}
	}
	return matching
}

// counts says how many objects of each kind there are, as "1 Deployment, 2
// Pods".
func counts(all []*gc.Outcome) string {
	numbers := map[string]int{}
	for _, o := range all {
		numbers[o.Object.Resource.Kind]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(numbers)) {
		parts = append(parts, plural(numbers[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// writeReasons names the objects, those with the same reason together.
func writeReasons(w io.Writer, all []*gc.Outcome) {
	byReason := map[string][]*gc.Outcome{}
	var reasons []string
	for _, o := range all {
		reason := worded(o.Reason)
		if len(o.WaitingFor) > 0 {
			reason += ": " + names(o.WaitingFor)
		}
		if byReason[reason] == nil {
			reasons = append(reasons, reason)
		}
		byReason[reason] = append(byReason[reason], o)
	}
	for _, reason := range reasons {
		same := byReason[reason]
		who := printable(firstNames(len(same), func(i int) graph.Identity { return same[i].Object.Identity() }))
		if reason == "" {
			fmt.Fprintf(w, "  %s\n", who)
		} else {
			fmt.Fprintf(w, "  %s: %s\n", who, printable(reason))
		}
	}
}

// names lists the first few objects and counts the rest.
func names(ids []graph.Identity) string {
	return firstNames(len(ids), func(i int) graph.Identity { return ids[i] })
}

// firstNames is names for so many objects.
func firstNames(n int, id func(i int) graph.Identity) string {
	var parts []string
	for i := range min(n, maxNamed) {
		parts = append(parts, objectName(id(i)))
	}
	if more := n - maxNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// NoSteps says of a preview without steps whether that is because nothing is left to
// do, or nothing can be done.
func NoSteps(report *gc.Report) string {
	if len(report.Remaining()) > 0 {
		return "A deletion cannot free the stuck objects."
	}
	return "Nothing to do."
}

// EventLine is a write as one line of text, as kubectl delete says it.
func EventLine(step gc.Step) string { return printable(eventLine(step)) }

func eventLine(step gc.Step) string {
	id := step.Object.Identity()
	where := ""
	if id.Namespace != "" {
		where = " in namespace " + id.Namespace
	}
	name := kubectlName(id)
	switch {
	case answer.Indeterminate(step.Err):
		return fmt.Sprintf("%s: %s not answered%s: %s", name, step.Action, where, unanswered(step.Err))
	case step.Err != nil:
		return fmt.Sprintf("%s: %s refused%s: %v", name, step.Action, where, step.Err)
	}
	switch step.Action {
	case gc.ActionDelete:
		return fmt.Sprintf("%s: deletion accepted%s (%s)", name, where, strings.ToLower(string(*step.Options.PropagationPolicy)))
	case gc.ActionRemoveFinalizer:
		return fmt.Sprintf("%s: finalizer %s removed%s", name, step.Patch.RemoveFinalizer, where)
	case gc.ActionUnblockOwnerReferences:
		return fmt.Sprintf("%s: owner references unblocked%s", name, where)
	case gc.ActionRemoveOwnerReferences:
		return fmt.Sprintf("%s: owner reference removed%s (%s)", name, where, step.Reason)
	}
	return fmt.Sprintf("%s: %s%s", name, step.Action, where)
}

// kubectlName is an identity as kubectl's -o name prints it.
func kubectlName(id graph.Identity) string { return kubectlKind(&id.Resource) + "/" + id.Name }

// kubectlKind is what stands before the name.
func kubectlKind(r *graph.Resource) string {
	kind := strings.ToLower(r.Kind)
	if r.Group != "" {
		kind += "." + r.Group
	}
	return kind
}

// DeletedNames prints the objects that are deleted as kubectl's -o name does.
func DeletedNames(w io.Writer, all []gc.Outcome) error {
	return ObjectNames(w, func(yield func(graph.Identity) bool) {
		for i := range all {
			if all[i].Result == gc.Deleted && !yield(all[i].Object.Identity()) {
				return
			}
		}
	})
}
