// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Baseline is what an earlier report found. It knows objects and owners by their
// names: one that is made again with the same mistake is no news.
type Baseline struct {
	worst map[known]Severity
}

// known is what makes a finding the same as one of another day.
type known struct {
	rule            string
	object          schema.GroupKind
	namespace, name string
	owner           schema.GroupKind
	ownerName       string
	// members are those of a circle, which has no one object.
	members string
}

// NewBaseline makes a baseline of findings. Of these it needs the rule, the
// severity, the object, the reference and the members.
func NewBaseline(findings []Finding) *Baseline {
	b := &Baseline{worst: map[known]Severity{}}
	for i := range findings {
		f := &findings[i]
		b.worst[f.known()] = max(b.worst[f.known()], f.Severity)
	}
	return b
}

func (f *Finding) known() known {
	if f.Members != nil {
		names := make([]string, len(f.Members))
		for i, m := range f.Members {
			names[i] = m.Resource.Group + "/" + m.String()
		}
		slices.Sort(names)
		return known{rule: f.Rule, members: strings.Join(names, "\n")}
	}
	return known{
		rule: f.Rule, object: kindOf(f.Object), namespace: f.Object.Namespace, name: f.Object.Name,
		owner: schema.FromAPIVersionAndKind(f.Reference.APIVersion, f.Reference.Kind).GroupKind(), ownerName: f.Reference.Name,
	}
}

func kindOf(id graph.Identity) schema.GroupKind { return id.Resource.GroupVersionKind().GroupKind() }

// Has reports whether the baseline has the finding, and not as a milder one.
func (b *Baseline) Has(f *Finding) bool {
	worst, has := b.worst[f.known()]
	return has && worst >= f.Severity
}

// New returns the report without the findings that the baseline has.
func (r *Report) New(b *Baseline) *Report {
	return r.without(b.Has)
}

// OlderThan returns the report without the findings about objects that were not
// made before the time. An object of which that is not known is taken to be old.
func (r *Report) OlderThan(t time.Time) *Report {
	return r.without(func(f *Finding) bool { return !f.Created.IsZero() && !f.Created.Before(t) })
}

func (r *Report) without(unwanted func(*Finding) bool) *Report {
	rest := *r
	rest.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return unwanted(&f) })
	return &rest
}
