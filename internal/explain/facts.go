// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// facts are what can be known of objects without following them to their blockers.
type facts struct {
	Input
	evidence *evidence.Reader
	finder   *controllers.Finder
	reviewer *admission.Reviewer
	rules    *rules.Facts
}

// patience is Input.Wait for an answer that counts.
func (f *facts) patience() func(context.Context, time.Duration) {
	if f.Wait == nil {
		return nil
	}
	return func(ctx context.Context, d time.Duration) {
		if len(f.evidence.Missed()) == 0 {
			f.Wait(ctx, d)
		}
	}
}

// mostFinalizers is the number of finalizers of one object that are examined. No object needs as many, but a user who
// can write an object can give it tens of thousands.
const mostFinalizers = 100

// finalizers returns the finalizers of an object, the first if there are very many.
func (f *facts) finalizers(n graph.Node) []string {
	all := n.Object().Finalizers
	if len(all) <= mostFinalizers {
		return all
	}
	f.evidence.NoteOpen(say.Of(unexamined, n.Identity(), mostFinalizers, len(all)))
	return all[:mostFinalizers]
}
