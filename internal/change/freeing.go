// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/restore"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// The reasons for which no other object is revived.
var (
	errContent = errors.New("what is in it is being deleted with it: save what is left with kubectl get -o yaml")
	errUnfit   = errors.New("it cannot be recreated as it was: save it with kubectl get -o yaml, and create it when it is gone")
	errNotSeen = errors.New("it was not found among what was read")
)

// free adds what lets an object go that is neither a claim nor a volume: its dependents are orphaned, which stops the deletion of those
// that are left, and its finalizers are removed, of which nobody acts on any.
func (r *Revival) free(report *explain.Report, g *graph.Graph, id graph.Identity, o *unstructured.Unstructured,
	revived sets.Set[types.UID]) error {
	n, known := g.Node(id.UID)
	switch {
	case id.Resource.IsNamespace() || id.Resource.IsCRD():
		return errContent
	case !restore.Fit(id.Resource):
		return errUnfit
	case !known:
		return errNotSeen
	}
	if spot := g.Snapshot().BlindSpot(id.Namespace); spot != "" {
		return fmt.Errorf("what depends on it is not known: %s", spot)
	}
	own := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), graph.IsCollectorFinalizer)
	for _, finalizer := range own {
		if why := attended(report, id, finalizer); why != nil {
			return why
		}
	}
	if manager := since(o); manager != "" && len(own) > 0 {
		return fmt.Errorf("%s has changed it since it was deleted, and may have begun to clean up", manager)
	}
	r.add(remedy.DeleteOf(id, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}), explain.Disruptive)
	if len(own) > 0 { // when the garbage collector's are gone
		r.add(remedy.PatchOf(id, remedy.Unfinalize(own, func(string) bool { return true })...), explain.Dangerous)
	}
	for _, d := range n.Dependents() {
		switch {
		case revived.Has(d.UID()), slices.ContainsFunc(r.Orphans, func(o graph.Object) bool { return o.UID == d.UID() }):
		case d.BeingDeleted():
			r.Going = append(r.Going, d.Identity())
		default:
			r.Orphans = append(r.Orphans, *d.Object())
		}
	}
	return nil
}

// Frees reports whether a change lets go what is neither claim nor volume.
func (r *Revival) Frees(c *Change) bool {
	return slices.ContainsFunc(r.Objects, func(id graph.Identity) bool { return id.UID == c.Op.Object.UID && !stores(id.Resource) })
}

// Within reports whether a revival does nothing to objects that another one does not.
func (r *Revival) Within(agreed *Revival) bool {
	return !slices.ContainsFunc(r.Changes, func(c Change) bool {
		return !slices.ContainsFunc(agreed.Changes, func(a Change) bool { return a.Op.Key() == c.Op.Key() })
	})
}

// gone is a cluster as it is when objects have gone.
type gone struct {
	restore.Cluster
	objects []graph.Identity
}

func (g gone) Find(id graph.Identity) (*unstructured.Unstructured, error) {
	if slices.ContainsFunc(g.objects, func(o graph.Identity) bool { return o.Unidentified() == id.Unidentified() }) {
		return nil, nil
	}
	return g.Cluster.Find(id)
}

// Recreatable returns why what is let go would not be recreated, by the plan for that (claims and volumes have their own), and by what the
// server says to dry runs. A server that accepts an object but for its name, which it still has, has checked all the rest
// (pkg/registry/generic/registry/store.go, Create).
func (w *Writer) Recreatable(ctx context.Context, r *Revival, try func(context.Context, *remedy.Op) error) error {
	var saved []restore.Saved
	var objects []graph.Identity
	for n, id := range r.Objects {
		if !stores(id.Resource) {
			saved, objects = append(saved, restore.Saved{Object: id, Manifest: undeleted(r.Kept[n])}), append(objects, id)
		}
	}
	plan := restore.Of(saved, gone{w.there(ctx, saved), objects}, nil)
	for _, i := range plan.Items {
		if !i.Writes() {
			return fmt.Errorf("%s would not be recreated: %s", i.Object, i.Reason)
		}
	}
	tries := plan.Tries()
	for n, id := range r.Objects {
		if stores(id.Resource) {
			kept := restore.Item{Saved: restore.Saved{Object: id, Manifest: undeleted(r.Kept[n])}}
			tries = append(tries, remedy.Op{Verb: remedy.Restore, Object: id, Manifest: kept.Content(nil).Object})
		}
	}
	for _, op := range tries {
		unallocated(op.Manifest)
		if err := try(ctx, &op); err != nil && !apierrors.IsAlreadyExists(err) && !full(err) {
			return fmt.Errorf("%s would not be recreated: %w", op.Object, err)
		}
	}
	if err := r.tries(ctx, try); err != nil {
		return err
	}
	asked := map[place]bool{} // whether one may be patched holds for all of them
	for i := range r.Orphans {
		id := r.Orphans[i].Identity()
		if asked[placeOf(id)] {
			continue
		}
		asked[placeOf(id)] = true
		op := remedy.PatchOf(id, remedy.Test("/metadata/uid", id.UID))
		if err := try(ctx, &op); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s would not be linked to what is recreated: %w", id, err)
		}
	}
	return nil
}

// tries returns why the server would not take the changes that let objects go.
func (r *Revival) tries(ctx context.Context, try func(context.Context, *remedy.Op) error) error {
	var ops []remedy.Op
	for i := range r.Changes {
		if op := r.Changes[i].Op; i < r.Secured || op.Verb == remedy.Scale { // others need these
			ops = append(ops, op)
		}
	}
	for n, id := range r.Objects {
		if stores(id.Resource) {
			continue
		}
		ops = append(ops, remedy.DeleteOf(id, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}))
		if steps := remedy.Unfinalize(r.Kept[n].GetFinalizers(), func(f string) bool { return !graph.IsCollectorFinalizer(f) }); len(steps) > 0 {
			ops = append(ops, remedy.PatchOf(id, steps...))
		}
	}
	for _, op := range ops {
		if err := try(ctx, &op); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("%s would not be changed: %w", op.Object, err)
		}
	}
	return nil
}

// full reports whether a quota has no room for an object only as long as the same is there, which is in what is used
// (k8s.io/apiserver, plugin/resourcequota/controller.go, CheckRequest: "exceeded quota: Q, requested: A=1, used: A=2, limited: A=2").
func full(err error) bool {
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: ") {
		return false
	}
	_, text, _ := strings.Cut(err.Error(), ", used: ")
	used, limited, _ := strings.Cut(text, ", limited: ")
	are := map[string]resource.Quantity{}
	for one := range strings.SplitSeq(used, ",") {
		name, value, _ := strings.Cut(one, "=")
		are[name], _ = resource.ParseQuantity(value)
	}
	for one := range strings.SplitSeq(limited, ",") {
		name, value, _ := strings.Cut(one, "=")
		limit, err := resource.ParseQuantity(value)
		if is := are[name]; err != nil || is.Cmp(limit) > 0 {
			return false
		}
	}
	return true
}

// unallocated takes out of a Service what it still has, so that nothing else could have it.
func unallocated(o map[string]any) {
	if o["kind"] != "Service" {
		return
	}
	for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
		unstructured.RemoveNestedField(o, "spec", field)
	}
	ports, _, _ := unstructured.NestedSlice(o, "spec", "ports")
	for i := range ports {
		if port, is := ports[i].(map[string]any); is {
			delete(port, "nodePort")
		}
	}
	_ = unstructured.SetNestedSlice(o, ports, "spec", "ports") // it was one
}

// attended returns why a finalizer is not removed: a controller acts on it, or it is not known that none does, or could begin to. Of a
// finalizer that nobody removes the explanation offers to remove it.
func attended(report *explain.Report, id graph.Identity, finalizer string) error {
	nobody := []explain.Kind{finding.FinAbsent, finding.FinDead, finding.FinManual, finding.FinInNamespace}
	removes := func(r explain.Remedy) bool {
		return r.Operation != nil && r.Operation.Object.UID == id.UID && slices.ContainsFunc(r.Operation.Patch, func(s remedy.Step) bool {
			return s.Op == "test" && s.Value == finalizer
		})
	}
	why := fmt.Errorf("unclear whether a controller acts on its finalizer %s", finalizer)
	for i := range report.Objects {
		if report.Objects[i].Object.UID != id.UID {
			continue
		}
		for _, f := range report.Objects[i].Findings {
			of := slices.ContainsFunc(f.Chain, func(l explain.Link) bool { return l.Object.UID == id.UID && l.Finalizer == finalizer })
			switch proved := f.Cause.Verdict == explain.Stuck && slices.Contains(nobody, f.Cause.Kind); {
			case of && !proved:
				return errors.New(f.Cause.Summary.String())
			case proved && slices.ContainsFunc(f.Cause.Remedies, removes):
				why = nil
			}
		}
	}
	return why
}

// since returns who has written an object since it was deleted, but for kube-controller-manager, which removes its own finalizers and
// counts what is left, and this program; empty for nobody.
func since(o *unstructured.Unstructured) string {
	for _, m := range o.GetManagedFields() {
		if created := o.GetCreationTimestamp(); m.Time != nil && !m.Time.Before(o.GetDeletionTimestamp()) && !m.Time.Equal(&created) &&
			m.Manager != "kube-controller-manager" && m.Manager != "kubectl-gc" {
			return m.Manager
		}
	}
	return ""
}
