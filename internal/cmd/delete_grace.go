// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// validateGrace finds flags that contradict each other (kubectl/pkg/cmd/delete/delete.go,
// Complete and Validate).
func (o *deleteOptions) validateGrace() error {
	switch {
	case o.now && o.gracePeriod != -1:
		return usageError{errors.New("--now and --grace-period cannot be specified together")}
	case o.force && o.gracePeriod > 0:
		return usageError{errors.New("--force and --grace-period greater than 0 cannot be specified together")}
	case o.force && o.now:
		return usageError{errors.New("--force and --now cannot be specified together")}
	}
	return nil
}

// seconds returns the grace period of the targets, nil when it is left to them.
// As with kubectl, nothing but --force makes it 0 (kubectl/pkg/cmd/delete/delete.go,
// Complete).
func (o *deleteOptions) seconds() *int64 {
	switch {
	case o.force:
		return new(int64(0))
	case o.now, o.gracePeriod == 0:
		return new(int64(1))
	case o.gracePeriod < 0:
		return nil
	}
	return &o.gracePeriod
}

// The warnings of a forced deletion. The first is kubectl's (kubectl/pkg/cmd/delete/delete.go,
// Validate).
const (
	immediate = "Immediate deletion does not wait for confirmation that the running resource has been terminated. " +
		"The resource may continue to run on the cluster indefinitely."
	twins = "%s: belongs to a StatefulSet, which recreates a removed pod: then two pods with the same identity " +
		"might run at the same time and damage their data. Use --force only for pods that have certainly ended."
	notForced = "--force applies only to the named objects: pods that are deleted with them, including those of StatefulSets, keep their grace periods."
)

// dangers says what the user must know of a forced deletion before agreeing to
// it.
func (o *deleteOptions) dangers(g *graph.Graph, targets []graph.Identity) []string {
	if !o.force {
		return nil
	}
	dangers := []string{immediate}
	ofSets := slices.DeleteFunc(slices.Clone(targets), func(id graph.Identity) bool {
		n, ok := g.Node(id.UID)
		return !ok || !isPod(n) || !ofStatefulSet(n)
	})
	if len(ofSets) > 0 {
		dangers = append(dangers, fmt.Sprintf(twins, render.NamesOf(ofSets)))
	}
	if o.cascade != "orphan" && podsGoWith(g, uids(targets)) {
		dangers = append(dangers, notForced)
	}
	return dangers
}

// podsGoWith reports whether the deletion of the targets concerns pods that are
// no targets.
func podsGoWith(g *graph.Graph, targets []types.UID) bool {
	named := sets.New(targets...)
	for n := range gc.Concerned(g, targets).All() {
		if isPod(n) && !named.Has(n.UID()) {
			return true
		}
	}
	return false
}

// isPod reports whether a node is a pod that was read.
func isPod(n graph.Node) bool {
	return !n.Virtual() && n.Resource().IsPod()
}

// ofStatefulSet reports whether a node refers to a StatefulSet as an owner. That
// may be gone: its successor of the same name takes the pods' names, too.
func ofStatefulSet(n graph.Node) bool {
	return slices.ContainsFunc(n.Owners(), func(r graph.Reference) bool {
		gv, err := schema.ParseGroupVersion(r.APIVersion)
		return err == nil && gv.Group == "apps" && r.Kind == "StatefulSet"
	})
}
