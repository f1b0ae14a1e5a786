// SPDX-License-Identifier: Apache-2.0

// Package definition has the rules of CustomResourceDefinitions, and of types whose objects cannot be read.
package definition

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// The instances of a CustomResourceDefinition: apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go.

// Cleanup is the API server's own finalizer of CustomResourceDefinitions.
const Cleanup = "customresourcecleanup.apiextensions.k8s.io"

// delay is how long the API server may take to notice that a CustomResourceDefinition has no instances any more.
const delay = 75 * time.Second

// Instances is the finalizer of a CustomResourceDefinition: the API server deletes its instances first.
func Instances(f *rules.Facts, n rules.Mark) ([]finding.Blocker, bool) {
	gr := schema.ParseGroupResource(n.Name())
	all, untouched := slices.Collect(f.Instances(gr)), 0
	var blockers []finding.Blocker
	for _, m := range all {
		if m.BeingDeleted() {
			blockers = append(blockers,
				finding.Blocker{Symptom: finding.CrdInstances, Because: say.Of(WaitsForInstances, evidence.Some(len(all), "instance")), Next: &m})
		} else {
			untouched++
		}
	}
	unseen := !f.Covers(gr, "", "")
	if refused := instancesRefused(f, n.Node, gr, all); len(refused) > 0 {
		blockers = append(blockers, refused...)
	} else if unseen || untouched > 0 || len(all) == 0 {
		blockers = append(blockers, finding.Blocker{Symptom: finding.CrdInstances, Because: say.Of(DeleteInstances),
			Cause: instancesLeft(f, n.Node, untouched, unseen)})
	}
	return blockers, true
}

// instancesLeft is a definition at which it is the API server's turn, or whose instances are not known.
func instancesLeft(f *rules.Facts, n graph.Node, untouched int, unseen bool) *finding.Cause {
	c := &finding.Cause{
		Kind: finding.CrdInstances, At: n.Identity(), Verdict: finding.Unknown, Summary: say.Of(InstancesRemain, untouched),
		Evidence: append([]finding.Fact{finding.Field(n, "metadata.finalizers", Cleanup)}, ending(f, n)...), Ways: nudge(n, say.Of(RetryNow)),
	}
	if untouched == 0 {
		c.Summary = say.Of(InstancesDeleted)
	}
	switch until := evidence.Requested(n.Object()).Add(delay); {
	case unseen:
		c.Summary = say.Of(InstancesUnknown)
	case f.Now.After(until):
		c.Summary = c.Summary.And(TooLong)
	default:
		c.Verdict, c.Until = finding.Progressing, until
	}
	return c
}

// ending is what the API server says of the deletion of a definition.
func ending(f *rules.Facts, n graph.Node) []finding.Fact {
	if full, err := f.Whole(n); err == nil {
		if condition, ok := evidence.ConditionOf(full, "Terminating"); ok {
			return finding.Facts(condition.Fact(n.Identity()))
		}
	}
	return nil
}

// nudge makes the API server look at a definition again, which it does ever more rarely after failures.
func nudge(n graph.Node, effect say.Text) []finding.Way {
	return []finding.Way{{Effect: effect, Op: &remedy.Op{Verb: remedy.Annotate, Object: n.Identity(), Value: "kubectl-gc/nudge"}}}
}

// instancesRefused is what keeps the API server from deleting the instances of a definition.
func instancesRefused(f *rules.Facts, n graph.Node, gr schema.GroupResource, instances []graph.Node) []finding.Blocker {
	var blockers []finding.Blocker
	for _, u := range f.Unlisted {
		if c := Unlisted(f, u); c != nil && u.GroupResource() == gr {
			because := say.Of(InstancesUnlisted)
			blockers = append(blockers, finding.Blocker{Symptom: finding.CrdConversion, Because: because, Cause: c},
				finding.Blocker{Because: because, Cause: &finding.Cause{
					Kind: finding.CrdConversion, At: n.Identity(), Verdict: finding.Stuck, Summary: say.Of(DefinitionKept), Decides: c.Decides,
					Evidence: append([]finding.Fact{c.Fact()}, ending(f, n)...),
					Ways:     nudge(n, say.Of(RetryNow).And(OnceListable)),
				}})
		}
	}
	if f.Age(n) <= rules.CollectorDelay {
		return blockers
	}
	for _, m := range instances {
		if m.BeingDeleted() {
			continue
		}
		// It asks no admission, so what that says to others does not matter
		// (apiextensions-apiserver/pkg/controller/finalizer, deleteInstances).
		r := f.Admission.TryDelete(m, "instance")
		if c := Unwritable(f, m, r.Refusal); c != nil {
			blockers = append(blockers, finding.Blocker{Symptom: finding.CrdInstances, Because: say.Of(InstanceKept, m.Identity()), Cause: c})
		}
	}
	return blockers
}

// Unwritable is the cause of a refusal of a write to an object of a type that cannot be converted or decoded, nil for others.
func Unwritable(f *rules.Facts, n graph.Node, r answer.Refusal) *finding.Cause {
	resource := n.Resource().GroupVersionResource
	switch r.Kind {
	case answer.ConversionFailed:
		return conversion(f, resource.GroupResource(), r.Message)
	case answer.Undecodable:
		return undecodable(f, resource, r.Message)
	}
	return nil
}
