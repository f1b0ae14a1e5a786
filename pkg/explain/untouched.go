// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/collector"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/write"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// Objects of which no deletion was requested.

// remade is how young an object must be for its creation to be mentioned:
// a user who deleted one of its name a moment ago is looking at another one.
const remade = 5 * time.Minute

// notTerminating says of an object that is not being deleted what would become of
// a DELETE, and whether it might have replaced one that was deleted.
// None of it is a stuck deletion.
func (w *walker) notTerminating(n graph.Node) []Finding {
	findings := w.terminatingIn(n)
	contents := len(findings) > 0 // which are what is stuck, however young the namespace is
	r := w.asker.TryDelete(n, "")
	if r.Kind == answer.Protected {
		return append(findings, w.notStuck(n, finding.NsProtected, func(c *Cause) {
			c.Summary, c.Evidence = namespaceProtected, []Evidence{r.Fact()}
		}))
	}
	if !r.OK() {
		findings = append(findings, w.notStuck(n, finding.NotBeingDeleted, func(c *Cause) {
			c.Summary, c.Evidence = wouldBeRefused, []Evidence{r.Fact()}
			if by := write.Refusal(w.rules, n, r, "DELETE"); by != nil {
				root := w.caused(by)
				c.Summary = fmt.Sprintf(refusedBy, root.Object, root.ID)
				c.Evidence, c.Remedies = root.Evidence, slices.Clone(root.Remedies)
				for i := range c.Remedies { // no controller retries
					c.Remedies[i].Effect += thenDeleteAgain
				}
			}
		}))
	}
	if contents {
		return findings
	}
	if age := w.evidence.Now.Sub(n.Object().CreationTimestamp.Time); !n.Object().CreationTimestamp.IsZero() && age <= remade {
		creator, garbage := w.creator(n)
		if garbage {
			return findings
		}
		findings = append(findings, w.notStuck(n, finding.Recreated, func(c *Cause) { remadeBy(c, n, creator, duration.HumanDuration(max(age, 0))) }))
	}
	return findings
}

// terminatingIn leads from a namespace that is not being deleted to the terminating objects in it.
func (w *walker) terminatingIn(n graph.Node) []Finding {
	if !n.Resource().IsNamespace() {
		return nil
	}
	var ending []graph.Node
	for _, m := range w.evidence.In(n.Name()) {
		if m.BeingDeleted() {
			ending = append(ending, m)
		}
	}
	if len(ending) == 0 {
		return nil
	}
	c := w.cause(finding.NotBeingDeleted, n.Identity(), "content", func(c *Cause) {
		c.Verdict = NotTerminating
		c.Summary = fmt.Sprintf(someTerminating, evidence.Number(len(ending), "object"))
		if len(ending) == 1 {
			c.Summary = fmt.Sprintf(oneTerminating, evidence.Number(1, "object"))
		}
		for _, m := range ending[:min(len(ending), evidence.MaxShown)] {
			c.Evidence = append(c.Evidence, evidence.Field(m, "metadata.deletionTimestamp", m.Object().DeletionTimestamp.UTC().Format(time.RFC3339)))
		}
		c.Remedies = []Remedy{{Risk: Safe, Action: shows("%s explain-stuck", shell.In(w.Plugin, n.Name())), Effect: explainContents}}
	})
	return []Finding{{c, []Link{{Object: n.Identity()}}}}
}

// notStuck is something to be said of an object that is not being deleted.
func (w *walker) notStuck(n graph.Node, id Kind, fill func(*Cause)) Finding {
	c := w.cause(id, n.Identity(), "not terminating", func(c *Cause) {
		c.Verdict = NotTerminating
		fill(c)
	})
	return Finding{c, []Link{{Object: n.Identity()}}}
}

// remadeBy says who created an object that is very young; creator is empty for a user, or where it is not known.
func remadeBy(c *Cause, n graph.Node, creator, ago string) {
	c.Evidence = []Evidence{
		evidence.Field(n, "metadata.creationTimestamp", n.Object().CreationTimestamp.UTC().Format(time.RFC3339)),
		evidence.Field(n, "metadata.uid", string(n.UID())),
	}
	if creator == "" {
		c.Summary = fmt.Sprintf(wasCreated, ago)
		return
	}
	c.Summary = fmt.Sprintf(createdBy, creator, ago)
	switch {
	case strings.HasPrefix(creator, "kube-"):
		c.Remedies = []Remedy{{Risk: Safe, Effect: fmt.Sprintf(leaveIt, creator)}}
	case strings.Contains(creator, "/"):
		c.Remedies = []Remedy{{Risk: Disruptive, Effect: fmt.Sprintf(deleteCreator, creator)}}
	default:
		c.Remedies = []Remedy{{Risk: Disruptive, Effect: fmt.Sprintf(stopCreator, creator)}}
	}
}

// creator names the controller that created an object, empty for a user. It is garbage
// when the controller is an owner that no longer exists.
func (w *walker) creator(n graph.Node) (creator string, garbage bool) {
	for _, ref := range w.evidence.Owners(n) {
		switch {
		case ref.Controller == nil || !*ref.Controller:
		case ref.State == graph.Dangling:
			return "", true
		default:
			return ref.Kind + "/" + ref.Name, false
		}
	}
	return w.rules.FirstManager(n), false
}

// unasked adds the causes of objects that are not being deleted, which block
// nothing.
func unasked(report *Report) {
	for _, o := range report.Objects {
		for _, f := range o.Findings {
			if !slices.Contains(report.Causes, f.Cause) {
				report.Causes = append(report.Causes, f.Cause)
			}
		}
	}
}

// waysOut adds to the blockers of an owner in foreground deletion the ways to delete
// the owner without it: only the first owner that was asked for is helped,
// since the cause may block hundreds.
func (w *walker) waysOut(e Explanation) {
	for _, f := range e.Findings {
		if len(f.Chain) < 2 || f.Chain[0].Symptom != finding.GcFgBlocking.ID || f.Cause.Class == finding.Collector || f.Cause.Verdict == Progressing {
			continue
		}
		owner, known := w.Graph.Node(f.Chain[0].Object.UID)
		dependent, there := w.Graph.Node(f.Chain[1].Object.UID)
		owns := func(ref graph.Reference) bool { return ref.UID == owner.UID() }
		if !known || !there || !slices.ContainsFunc(dependent.Owners(), owns) {
			continue
		}
		if !w.help(f.Cause) {
			continue
		}
		for _, r := range w.remedies(collector.FreeOwner(owner, dependent, unchangeable(e, dependent.UID()))) {
			w.offer(f.Cause, r) // which remains
		}
	}
}

// unchangeable reports whether one of the findings is that changes of the object
// are refused.
func unchangeable(e Explanation, uid types.UID) bool {
	return slices.ContainsFunc(e.Findings, func(f Finding) bool {
		refused := f.Cause.Class == finding.Refusal
		at := slices.IndexFunc(f.Chain, func(l Link) bool { return l.Object.UID == uid })
		return refused && at >= 0 && at >= len(f.Chain)-2
	})
}

// skew is how far clocks may differ without a mention.
const skew = time.Minute

// future is an object that was deleted in the future: only pods have a grace
// period, so clocks differ, and no age can be trusted.
func (w *walker) future(n graph.Node) *Cause {
	ahead := evidence.Requested(n.Object()).Sub(w.evidence.Now)
	if ahead <= skew {
		return nil
	}
	return w.shared("", finding.ClockSkew, n.Identity(), func(c *Cause) {
		c.Summary = fmt.Sprintf(requestedAhead, duration.HumanDuration(ahead))
		c.Evidence = []Evidence{
			evidence.Field(n, "metadata.deletionTimestamp", n.Object().DeletionTimestamp.UTC().Format(time.RFC3339)),
			{Source: "the API server", Path: "Date", Value: w.evidence.Now.UTC().Format(time.RFC3339)},
		}
		c.Remedies = []Remedy{{Risk: Safe, Effect: syncClocks}}
	})
}
