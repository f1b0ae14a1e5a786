// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
)

// hold is a finalizer that nobody removes.
const hold = "example.com/hold"

var policies = []metav1.DeletionPropagation{
	metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan,
}

// scenarios draws small worlds in which most things that can be wrong with an
// owner reference are, and in which they are followed by a pass of collection
// and two deletions. Before these there may be collections that are limited to a
// namespace.
var scenarios = rapid.Custom(func(t *rapid.T) gctest.Scenario {
	s := gctest.Scenario{Name: "generated", Needs: map[string]string{}}
	// The order of names is that of the engine's first look.
	names := rapid.Permutation([]string{"a", "b", "c", "d", "e", "f", "g"}).Draw(t, "names")
	scattered := chance(t, 30, "scattered")
	for i := range rapid.IntRange(2, len(names)).Draw(t, "objects") {
		s.Objects = append(s.Objects, drawObject(t, names[i], scattered, i == 0))
	}
	for i := range s.Objects {
		s.Objects[i].Owners = drawOwners(t, &s, i)
	}
	if chance(t, 25, "by namespace") {
		for range rapid.IntRange(1, 4).Draw(t, "collections") {
			s.Actions = append(s.Actions, gctest.Action{
				Verb: gctest.Collect, In: rapid.SampledFrom(append(elsewhere, gctest.Here)).Draw(t, "in"), Only: chance(t, 35, "only"),
			})
		}
	}
	s.Actions = append(s.Actions, gctest.Action{Verb: gctest.Collect})
	for range rapid.IntRange(1, 2).Draw(t, "deletions") {
		s.Actions = append(s.Actions, gctest.Action{
			Verb:   gctest.Delete,
			Paths:  []gctest.Path{rapid.SampledFrom(s.Objects).Draw(t, "target").Path},
			Policy: rapid.SampledFrom(policies).Draw(t, "policy"),
		})
	}
	return s
})

// drawKinds holds kinds as often as they are to be drawn.
var drawKinds = []string{
	"configmap", "configmap", "configmap", "configmap", "secret", "secret", "pod",
	"widget", "widget", "widget", "gadget", "gadget", "clusterrole",
}

// clusterKinds are those of drawKinds that have no namespace.
var clusterKinds = []string{"gadget", "clusterrole"}

// elsewhere are the namespaces beside the scenario's own.
var elsewhere = []string{"other", "third"}

// drawObject draws an object without owners. Of scattered ones most are in other
// namespaces, and the first, which is the owner of many, is in none.
func drawObject(t *rapid.T, name string, scattered, first bool) gctest.Object {
	drawn, away := drawKinds, 15
	if scattered && first {
		drawn = clusterKinds
	}
	if scattered {
		away = 60
	}
	o := gctest.Object{Path: gctest.Path{Kind: rapid.SampledFrom(drawn).Draw(t, "kind"), Name: name}}
	if !slices.Contains(clusterKinds, o.Kind) && chance(t, away, "elsewhere") {
		o.Namespace = rapid.SampledFrom(elsewhere).Draw(t, "namespace")
	}
	held := 20
	if chance(t, 17, "deleting") {
		held = 55
		o.Deleting = string(rapid.SampledFrom(append(policies, "default")).Draw(t, "begun"))
	}
	if chance(t, held, "held") {
		o.Finalizers = append(o.Finalizers, hold)
	}
	if chance(t, 12, "marked") {
		o.Finalizers = append(o.Finalizers,
			rapid.SampledFrom([]string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}).Draw(t, "mark"))
	}
	return o
}

// chance is true in so many cases of a hundred.
func chance(t *rapid.T, percent int, label string) bool {
	return rapid.IntRange(0, 99).Draw(t, label) >= 100-percent
}

// drawOwners draws the owners of the i-th object: mostly earlier objects, and
// now and then itself or one that comes later, which makes circles.
func drawOwners(t *rapid.T, s *gctest.Scenario, i int) []gctest.Owner {
	var owners []gctest.Owner
	for range rapid.SampledFrom([]int{1, 1, 1, 0, 2, 2, 3}).Draw(t, "owners") {
		last := i - 1
		if i == 0 || chance(t, 20, "anyone") {
			last = len(s.Objects) - 1
		}
		of := s.Objects[rapid.IntRange(0, last).Draw(t, "owner")].Path
		if of == s.Objects[i].Path && !chance(t, 20, "itself") {
			continue
		}
		owner := drawOwner(t, s, of)
		if !slices.ContainsFunc(owners, func(other gctest.Owner) bool {
			return same(owner, other) || confused(s.Objects[i].Kind, owner, other)
		}) {
			owners = append(owners, owner)
		}
	}
	return owners
}

// same reports whether two references are equal, or lead to the same owner. The
// garbage collector reads the owner for each of those, and may find it in
// different states.
func same(a, b gctest.Owner) bool {
	a.Block, b.Block = gctest.Unset, gctest.Unset
	return a == b || a.Of == b.Of && leads(a) && leads(b)
}

// confused reports whether unblocking two references of an object damages them:
// a strategic merge patch, which the garbage collector sends for built-in kinds
// and the engine does not, takes one for the other when both have the same UID.
func confused(kind string, a, b gctest.Owner) bool {
	custom := kind == "widget" || kind == "gadget"
	return !custom && a.UIDPath() == b.UIDPath() && (a.Block == gctest.Blocks || b.Block == gctest.Blocks)
}

// leads reports whether a reference leads to the object whose UID it has.
func leads(o gctest.Owner) bool {
	return o.Name == "" && o.UID == "" && (o.APIVersion == "" || o.Kind == "")
}

// impossibleNames are names that are no segment of a path, and that the API server
// accepts in an owner reference all the same.
var impossibleNames = []string{"own%x", ".", "..", "a/b"}

func drawOwner(t *rapid.T, s *gctest.Scenario, of gctest.Path) gctest.Owner {
	o := gctest.Owner{Of: of, Block: rapid.SampledFrom([]gctest.Block{
		gctest.Blocks, gctest.Blocks, gctest.Blocks, gctest.Unset, gctest.DoesNotBlock,
	}).Draw(t, "block")}
	switch rapid.IntRange(0, 99).Draw(t, "mistake") {
	case 99, 98:
		o.Name = "ghost"
	case 97, 96:
		if of.Kind != "secret" {
			o.APIVersion, o.Kind = "v1", "Secret"
		}
	case 95, 94:
		o.UID = "nobody"
	case 93, 92:
		if uid := rapid.SampledFrom(s.Objects).Draw(t, "uid").Path; uid != of {
			o.UID = uid.String()
		}
	case 91:
		o.Kind = "Nothing" // is retried for ever, at the cost of others, and so kept rare
	case 90, 89:
		if of.Kind != "gadget" {
			o.APIVersion, o.Kind = "example.com/v1", "Gadget"
		}
	case 88, 87, 86, 85, 84, 83, 82, 81:
		if of.Kind == "widget" {
			o.APIVersion = "example.com/v1beta1"
		}
	case 80, 79:
		if of.Kind == "configmap" {
			o.Kind = "configmap" // in lower case it is found all the same
		}
	case 78, 77:
		o.Name = rapid.SampledFrom(impossibleNames).Draw(t, "impossible name")
	}
	return o
}
