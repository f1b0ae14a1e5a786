// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/collector"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/definition"
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
	e := Explanation{Object: f.Object, Verdict: Unknown, Chain: []Link{{Object: f.Object, Because: fmt.Sprintf(unreadable, f.Err)}}}
	found := definition.Unread(w.rules, f.Object.Resource.GroupVersionResource, f.Err.Error())
	if found == nil {
		return e
	}
	c := w.caused(found)
	o := otherVersion(w.evidence, f.Object)
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
		e.Findings = append(e.Findings, w.inOtherVersion(e, o)...)
	}
	e.Chain = way
	return e
}

// otherVersion reads an object in one of the versions in which it can be read,
// nil when there is none.
func otherVersion(facts *evidence.Reader, id graph.Identity) *unstructured.Unstructured {
	whole, err := facts.Get(evidence.CRDs, "", id.Resource.GroupResource().String())
	if err != nil {
		return nil
	}
	for _, resource := range definition.Served(whole) {
		if o, err := facts.Anew(resource, id.Namespace, id.Name); err == nil {
			return o
		}
	}
	return nil
}

// inOtherVersion is what can be done about an object in the version in which it
// can be read.
func (w *walker) inOtherVersion(e Explanation, o *unstructured.Unstructured) []Finding {
	id := e.Object
	id.Resource.Version = o.GroupVersionKind().Version
	if !slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		return nil
	}
	end := collector.AtOnce
	if len(o.GetFinalizers()) > 1 {
		end = collector.OnceFinalized
	}
	why := finding.At(id.String(), "apiVersion", fmt.Sprintf(readableIn, o.GetAPIVersion()))
	return []Finding{{w.caused(collector.Blind(id, end, why)), e.Chain}}
}
