// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/collector"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/definition"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Types that cannot be listed: apiextensions-apiserver/pkg/apiserver/conversion, and the
// storage transformers of the API server.

// Failed is an object that was asked for and could not be read.
type Failed struct {
	Object graph.Identity
	Err    error
}

// Unreadable reports whether an error says that the server cannot hand out an
// object because of what its type or its stored bytes are like, which Explain
// can explain.
func Unreadable(err error) bool {
	return err != nil && (answer.IsConversionFailure(err.Error()) || answer.IsUndecodable(err.Error()))
}

// unreadableObject explains an object that the server cannot hand out. In
// another version it may.
func (w *walker) unreadableObject(f Failed) Explanation {
	e := Explanation{Object: f.Object, Verdict: Unknown, Chain: []Link{{Object: f.Object, Because: say.Of(unreadable, f.Err)}}}
	found := definition.Unread(w.rules, f.Object.Resource.GroupVersionResource, f.Err.Error())
	if found == nil {
		return e
	}
	c := w.caused(found)
	o := definition.OtherVersion(w.rules, f.Object)
	if o != nil {
		e.Object.UID = o.GetUID()
		e.Chain[0].Object.UID = o.GetUID()
		if o.GetDeletionTimestamp() == nil {
			e.Verdict = NotTerminating
			return e
		}
		e.Since = o.GetDeletionTimestamp().Time
	}
	e.Verdict = c.Verdict
	way := append(slices.Clone(e.Chain), Link{Object: c.Object, Because: c.Summary})
	e.Findings = []Finding{{c, way}}
	if o != nil {
		if blind := collector.BlindTo(e.Object, o); blind != nil {
			e.Findings = append(e.Findings, Finding{w.caused(blind), e.Chain})
		}
	}
	e.Chain = way
	return e
}
