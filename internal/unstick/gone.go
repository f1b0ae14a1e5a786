// SPDX-License-Identifier: Apache-2.0

package unstick

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// freedBy finds out which of the objects that were being deleted are gone, by a look that has met those that are left. What a look does not
// meet is asked for: it may be among what could not be listed.
func (r *run) freedBy(ctx context.Context, l *Look, left sets.Set[types.UID]) {
	r.unseen, r.report.Freed = nil, nil
	var missed []graph.Identity
	for uid, id := range r.objects {
		switch {
		case left.Has(uid) || r.gone.Has(uid):
		case l.absent(id):
			r.gone.Insert(uid)
		default:
			missed = append(missed, id)
		}
	}
	slices.SortFunc(missed, graph.Identity.Compare)
	errs := make([]error, len(missed))
	parallel(len(missed), func(i int) { errs[i] = r.absence(ctx, missed[i]) })
	for i, id := range missed {
		if errs[i] == nil {
			r.gone.Insert(id.UID)
		}
	}
	r.unseen = errors.Join(errs...)
	for uid := range r.gone {
		r.report.Freed = append(r.report.Freed, r.objects[uid])
	}
	slices.SortFunc(r.report.Freed, graph.Identity.Compare)
}

// absent reports whether a look proves that an object does not exist: all of its kind were read, or its name was asked for.
func (l *Look) absent(id graph.Identity) bool {
	snapshot := l.Graph.Snapshot()
	if _, there := snapshot.Object(id.UID); there {
		return false
	}
	return snapshot.Covers(id.Resource.GroupResource(), id.Namespace, id.Name) ||
		slices.ContainsFunc(l.Report.Objects, func(o explain.Explanation) bool {
			named := o.Object.Resource.GroupResource() == id.Resource.GroupResource() && o.Object.Namespace == id.Namespace &&
				o.Object.Name == id.Name
			return named && (o.Verdict == explain.NotFound || o.Object.UID != id.UID)
		})
}

// absence asks for an object; it returns nil when the API server says that it does not exist, and otherwise why that is not known.
func (r *run) absence(ctx context.Context, id graph.Identity) error {
	current, err := r.Read(ctx, id)
	switch {
	case change.IsGone(id, current, err):
		return nil
	case err == nil:
		return fmt.Errorf("%s: %w", id, errMissed)
	}
	return fmt.Errorf("reading %s: %w", id, err)
}

// errMissed says that an object exists which an explanation does not have.
var errMissed = errors.New("it still exists, but was not among what was explained")
