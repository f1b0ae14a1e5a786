// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/definition"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/write"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// The contents of a namespace that its controller fails to delete, and what rejects that.

// standing is what dry runs say of the deletion of a namespace's contents: how many got an answer, were accepted, and were
// about objects that do not exist any more; unsent: some were not sent, because too many had been; slow: an answer took long.
type standing struct {
	asked, accepted, gone int
	unsent, slow          bool
}

// contentRoots are what rejects or delays the deletion of a namespace's contents.
func contentRoots(f *rules.Facts, n graph.Node, most int) (roots []*finding.Cause, stands standing) {
	for m, r := range f.TryContent(n, most) {
		switch {
		case r.Unsent:
			stands.unsent = true
		case r.Gone:
			stands.gone++
		case r.Kind == answer.Accepted:
			stands.accepted++
		}
		stands.slow = stands.slow || r.Slow()
		if !r.Unsent && !r.NoRight {
			stands.asked++
		}
		for _, c := range append(write.Obstacles(f, m, r, "DELETE"), write.Delays(f, m, r, "DELETE")...) {
			if !slices.Contains(roots, c) {
				roots = append(roots, c)
			}
		}
	}
	return roots, stands
}

// contentHangs leads from content that is not being deleted yet to what rejects or delays that. Where an answer takes long
// the namespace controller might be waiting: it sets no condition before it has tried all types.
func contentHangs(f *rules.Facts, n graph.Node) ([]finding.Blocker, standing) {
	var blockers []finding.Blocker
	roots, stands := contentRoots(f, n, rules.FirstAsked)
	for _, c := range roots {
		blockers = append(blockers, finding.Blocker{Symptom: finding.NsContentFailure, Because: say.Of(NotDeleted), Cause: c})
	}
	return blockers, stands
}

// contentUnasked is content of which no dry run, or too few, have checked whether it can be deleted.
func contentUnasked(f *rules.Facts, n graph.Node, untouched, asked int) finding.Blocker {
	c := &finding.Cause{
		Kind: finding.NsContentFailure, At: n.Identity(), Key: "unasked", Verdict: finding.Unknown,
		Summary:  say.Of(ContentsUnchecked, evidence.Number(untouched, "object")),
		Evidence: []finding.Fact{finding.Field(n, "status.conditions", evidence.NotSet), f.Manager().Shows},
		Ways: []finding.Way{finding.See(remedy.Look{Plugin: true, Words: "explain-stuck", Args: []string{"namespaces/" + n.Name()}},
			ExplainAlone)},
	}
	if asked > 0 {
		c.Summary = say.Of(ContentsSampled, evidence.Number(untouched, "object"), asked)
	}
	return finding.Blocker{Symptom: finding.NsControllerAbsent, Because: say.Of(NotDeleted), Cause: c}
}

// contentRefused leads from contents that the namespace controller fails to delete to the blockers of that.
func contentRefused(f *rules.Facts, n graph.Node, whole *unstructured.Unstructured, failure evidence.Condition,
	untouched int) []finding.Blocker {
	roots, stands := contentRoots(f, n, MostAsked)
	roots = slices.Concat(definition.Initializing(f, failure.Message), roots)
	var blockers []finding.Blocker
	known := false
	for _, root := range roots {
		c, first := *root, failure.Fact(n.Identity())
		c.First = &first
		known = known || c.Verdict == finding.Stuck || c.Verdict == finding.Progressing
		blockers = append(blockers, finding.Blocker{Symptom: finding.NsContentFailure, Because: say.Of(CannotDelete), Cause: &c})
	}
	left := untouched - stands.gone
	refused := write.Failing{
		Namespace: n, Whole: whole, Failure: failure,
		Accepted: left > 0 && stands.accepted == left, Unasked: left > 0 && stands.asked == 0 && stands.unsent,
	}
	alone, settled := write.Alone(f, refused)
	for _, b := range alone {
		known = true
		if !slices.ContainsFunc(roots, func(c *finding.Cause) bool { return c.At == b.Cause.At }) {
			blockers = append(blockers, b)
		}
	}
	switch {
	case known:
		return blockers
	case stands.gone > 0 && left <= 0, untouched == 0 && settled:
		return append(blockers, backOff(f, n, failure, say.Of(FailureGone)))
	case len(roots) == 0 && settled && !f.Manager().Dead:
		return append(blockers, backOff(f, n, failure, say.Of(RejectionGone)))
	}
	return append(blockers, finding.Blocker{Because: say.Of(CannotDelete), Cause: contentFailure(f, refused, left)})
}

// contentFailure is content that the namespace controller fails to delete for a reason that is not known.
func contentFailure(f *rules.Facts, refused write.Failing, untouched int) *finding.Cause {
	n := refused.Namespace
	content, count := f.Untouched(n.Name()), evidence.Number(untouched, "object")
	c := &finding.Cause{
		Kind: finding.NsContentFailure, At: n.Identity(), Verdict: finding.Unknown, Summary: say.Of(FailsNow, count),
		Decides:  say.Plain(admission.Shortened(refused.Failure.Message)),
		Evidence: finding.Facts(refused.Failure.Fact(n.Identity())),
	}
	for _, m := range content[:min(len(content), evidence.MaxShown)] {
		c.Evidence = append(c.Evidence, finding.Field(m, "metadata.deletionTimestamp", evidence.NotSet))
	}
	switch {
	case untouched == 0:
		c.Summary = say.Of(FailedBefore)
		return c
	case refused.Accepted:
		c.Summary, c.Evidence = say.Of(AcceptedNow, count), append(c.Evidence, admission.AcceptedEach)
		return c
	case refused.Unasked:
		c.Summary = say.Of(UncheckedNow, count)
	case f.FailsLong(refused.Failure):
		c.Verdict = finding.Stuck
	}
	var types []string
	for _, m := range content {
		types = append(types, m.Resource().GroupResource().String())
	}
	slices.Sort(types)
	look := remedy.Look{Of: graph.Identity{Namespace: n.Name()}, Words: "delete --all",
		Args: []string{strings.Join(slices.Compact(types), ",")}, Flags: " --dry-run=server"}
	c.Ways = []finding.Way{finding.See(look, FindRejection)}
	return c
}
