// SPDX-License-Identifier: Apache-2.0

// Package untouched has the rules of objects of which no deletion was requested. None of what they find is a stuck deletion.
package untouched

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/write"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// remade is how young an object must be for its creation to be mentioned: a user who deleted one of its name a moment ago is
// looking at another one.
const remade = 5 * time.Minute

// About says of an object what would become of a DELETE, and whether it might have replaced one that was deleted. The
// terminating contents of a namespace are what is stuck, however young that is.
func About(f *rules.Facts, n graph.Node) []*finding.Cause {
	causes, r := terminatingIn(f, n), f.Admission.TryDelete(n, "")
	age, contents := f.Now.Sub(n.Object().CreationTimestamp.Time), len(causes) > 0
	if r.Kind == answer.Protected {
		c := about(n, finding.NsProtected, say.Of(NamespaceProtected))
		c.Evidence = finding.Facts(r.Fact())
		return append(causes, c)
	}
	if !r.OK() {
		causes = append(causes, refused(f, n, r))
	}
	if contents || n.Object().CreationTimestamp.IsZero() || age > remade {
		return causes
	}
	if creator, garbage := creator(f, n); !garbage {
		c := remadeBy(n, creator, duration.HumanDuration(max(age, 0)))
		if l, named := f.Finder.Server(n, creator); named && len(c.Ways) > 0 {
			logs := remedy.Logs(l.ID(), l.Speaker(), n.Name())
			c.Ways[0].Effect, c.Ways[0].Look = say.Of(StopCreator, l.ID()), &logs
		}
		causes = append(causes, c)
	}
	return causes
}

// refused is an object of which a DELETE would be refused: no controller retries one.
func refused(f *rules.Facts, n graph.Node, r admission.Reply) *finding.Cause {
	c := about(n, finding.NotBeingDeleted, say.Of(WouldBeRefused))
	c.Evidence = finding.Facts(r.Fact())
	if by := write.Refusal(f, n, r, "DELETE"); by != nil {
		c.Summary, c.Evidence = c.Summary.And(RefusedBy, by.At, by.Kind.ID), by.Evidence
		if reason := r.Reason(); reason != "" {
			c.Summary = c.Summary.And(write.Reason, admission.Shortened(reason))
		}
		for _, way := range by.Ways {
			way.Slot, way.Effect = "", way.Effect.And(ThenDeleteAgain)
			c.Ways = append(c.Ways, way)
		}
	}
	return c
}

// about is something to be said of an object.
func about(n graph.Node, kind finding.Kind, summary say.Text) *finding.Cause {
	return &finding.Cause{Kind: kind, At: n.Identity(), Key: "not terminating", Verdict: finding.NotTerminating, Summary: summary}
}

// terminatingIn leads from a namespace to the terminating objects in it.
func terminatingIn(f *rules.Facts, n graph.Node) []*finding.Cause {
	if !n.Resource().IsNamespace() {
		return nil
	}
	c, count := about(n, finding.NotBeingDeleted, say.Text{}), 0
	for _, m := range f.In(n.Name()) {
		if !m.BeingDeleted() {
			continue
		}
		if count++; count <= evidence.MaxShown {
			c.Evidence = append(c.Evidence, finding.Field(m, "metadata.deletionTimestamp", m.Object().DeletionTimestamp.UTC().Format(time.RFC3339)))
		}
	}
	switch count {
	case 0:
		return nil
	case 1:
		c.Summary = say.Of(OneTerminating, evidence.Number(1, "object"))
	default:
		c.Summary = say.Of(SomeTerminating, evidence.Number(count, "object"))
	}
	c.Key = "content"
	c.Ways = []finding.Way{finding.See(remedy.Look{Plugin: true, Of: graph.Identity{Namespace: n.Name()}, Words: "explain-stuck"},
		ExplainContents)}
	return []*finding.Cause{c}
}

// remadeBy says who created an object that is very young; creator is empty for a user, or where it is not known.
func remadeBy(n graph.Node, creator, ago string) *finding.Cause {
	c := about(n, finding.Recreated, say.Of(CreatedBy, creator, ago))
	c.Evidence = []finding.Fact{
		finding.Field(n, "metadata.creationTimestamp", n.Object().CreationTimestamp.UTC().Format(time.RFC3339)),
		finding.Field(n, "metadata.uid", string(n.UID())),
	}
	way := finding.Way{Effect: say.Of(StopCreator, creator), Risk: finding.Disruptive}
	switch {
	case creator == "":
		c.Summary = say.Of(WasCreated, ago)
		return c
	case strings.HasPrefix(creator, "kube-"):
		way = finding.Way{Effect: say.Of(LeaveIt, creator)}
	case strings.Contains(creator, "/"):
		way.Effect = say.Of(DeleteCreator, creator)
	}
	c.Ways = []finding.Way{way}
	return c
}

// creator names the controller that created an object, empty for a user. It is garbage when the controller is an owner that
// no longer exists.
func creator(f *rules.Facts, n graph.Node) (creator string, garbage bool) {
	for _, ref := range f.Owners(n) {
		switch {
		case ref.Controller == nil || !*ref.Controller:
		case ref.State == graph.Dangling:
			return "", true
		default:
			return ref.Kind + "/" + ref.Name, false
		}
	}
	return f.FirstManager(n), false
}
