// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The instances of a CustomResourceDefinition:
// apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go.

// crdDelay is how long the API server may take to notice that a
// CustomResourceDefinition has no instances any more.
const crdDelay = 75 * time.Second

// instances is the finalizer of a CustomResourceDefinition: the API server deletes its instances first.
func (w *walker) instances(n graph.Node) []hold {
	gr := schema.ParseGroupResource(n.Name())
	all, untouched := slices.Collect(w.evidence.Instances(gr)), 0
	var holds []hold
	for _, m := range all {
		if m.BeingDeleted() {
			holds = append(holds, hold{symptom: finding.CrdInstances, because: fmt.Sprintf(waitsForInstances, count(len(all), "instance")), next: &m})
		} else {
			untouched++
		}
	}
	unseen := !w.evidence.Covers(gr, "", "")
	if refused := w.instancesRefused(n, gr); len(refused) > 0 {
		holds = append(holds, refused...)
	} else if unseen || untouched > 0 || len(all) == 0 {
		holds = append(holds, hold{symptom: finding.CrdInstances, because: toDeleteInstances, cause: w.instancesLeft(n, untouched, unseen)})
	}
	return holds
}

// instancesLeft is a CustomResourceDefinition at which it is the API server's turn, or whose instances are not known.
func (w *walker) instancesLeft(n graph.Node, untouched int, unseen bool) *Cause {
	return w.cause(finding.CrdInstances, n.Identity(), "", func(c *Cause) {
		c.Evidence = []Evidence{evidence.Field(n, "metadata.finalizers", crdCleanup)}
		if full, err := w.evidence.Whole(n); err == nil {
			if condition, ok := evidence.ConditionOf(full, "Terminating"); ok {
				c.Evidence = append(c.Evidence, condition.Fact(n.Identity().String()))
			}
		}
		if c.Summary = fmt.Sprintf(instancesRemain, untouched); untouched == 0 {
			c.Summary = instancesDeleted
		}
		switch until := evidence.Requested(n.Object()).Add(crdDelay); {
		case unseen:
			c.Summary = crdUnlisted
		case w.evidence.Now.After(until):
			c.Summary += tooLong
		default:
			c.Verdict, c.Until = Progressing, until
		}
		c.Remedies = []Remedy{w.nudge(n, "")}
	})
}
