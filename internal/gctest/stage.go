// SPDX-License-Identifier: Apache-2.0

package gctest

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Stage is where a scenario is played: it knows what the scenario's objects are
// called there. Several scenarios may share a cluster.
type Stage struct {
	Scenario *Scenario
	// Prefix is the name of the scenario's namespace, and stands before every
	// other name that must be the scenario's alone.
	Prefix string
	// UIDs are those of the objects that were created.
	UIDs map[Path]types.UID
}

// NewStage returns a stage without objects.
func NewStage(s *Scenario, prefix string) *Stage {
	return &Stage{Scenario: s, Prefix: prefix, UIDs: map[Path]types.UID{}}
}

// Group is the group of the kinds that the scenario itself defines.
func (s *Stage) Group() string { return s.Prefix + "." + CustomGroup }

// Kinds returns every kind that the scenario may use.
func (s *Stage) Kinds() []Kind { return append(slices.Clone(kinds), s.OwnKinds()...) }

// OwnKinds returns the kinds that the scenario itself defines.
func (s *Stage) OwnKinds() []Kind {
	var own []Kind
	for _, o := range s.Scenario.Objects {
		if o.Kind == "crd" {
			own = append(own, ownKind(o.Name, s.Group(), !o.ClusterScoped))
		}
	}
	return own
}

// Kind returns the kind with the word.
func (s *Stage) Kind(word string) Kind {
	all := s.Kinds()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Word == word })
	if i < 0 {
		return Kind{Word: word, Resource: graph.Resource{Kind: word}}
	}
	return all[i]
}

// kind looks for a kind before there is a stage.
func (s *Scenario) kind(word string) (Kind, error) {
	if k := NewStage(s, "x").Kind(word); k.Version != "" {
		return k, nil
	}
	return Kind{}, fmt.Errorf("unknown kind %q", word)
}

// Namespaces returns the names of all namespaces in which the scenario has
// objects, its own first.
func (s *Stage) Namespaces() []string {
	names := []string{s.Prefix}
	for _, o := range s.Scenario.Objects {
		if name := s.NamespaceOf(o.Path); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// NamespaceOf returns the namespace of an object, empty when it has none.
func (s *Stage) NamespaceOf(p Path) string {
	switch {
	case !s.Kind(p.Kind).Namespaced:
		return ""
	case p.Namespace == "":
		return s.Prefix
	}
	return s.Namespace(p.Namespace)
}

// Namespace returns the name of the namespace that an Action or a Path calls so;
// empty stays empty.
func (s *Stage) Namespace(in string) string {
	switch in {
	case "":
		return ""
	case Here:
		return s.Prefix
	}
	return s.Prefix + "-" + in
}

// NameOf returns the name of an object.
func (s *Stage) NameOf(p Path) string {
	return s.nameAs(s.Kind(p.Kind).Resource, p.Name)
}

// nameAs returns the name of an object of the resource. One that no object can
// have stays what it is.
func (s *Stage) nameAs(r graph.Resource, name string) string {
	switch {
	case r.Namespaced || r.Version == "" || !graph.ValidName(name):
		return name
	case r.GroupVersionResource.Resource == "customresourcedefinitions":
		return name + "." + s.Group()
	}
	return s.Prefix + "-" + name
}

// Identity returns the identity of an object that was created.
func (s *Stage) Identity(p Path) graph.Identity {
	return graph.Identity{Resource: s.Kind(p.Kind).Resource, Namespace: s.NamespaceOf(p), Name: s.NameOf(p), UID: s.UIDs[p]}
}

// uid returns the UID that an owner reference states: an object's, or one of
// nobody.
func (s *Stage) uid(o Owner) types.UID {
	if o.OfNobody() {
		return nobody(s.Prefix + o.UID)
	}
	of := o.UIDPath()
	if uid, ok := s.UIDs[of]; ok {
		return uid
	}
	return nobody(s.Prefix + of.String())
}

// OfNobody reports whether the reference states the UID of no object.
func (o Owner) OfNobody() bool { return strings.HasPrefix(o.UID, "nobody") }

// UIDPath returns the object whose UID the reference states.
func (o Owner) UIDPath() Path {
	if o.UID == "" {
		return o.Of
	}
	return pathOf(o.UID)
}

// nobody makes a UID that no object has.
func nobody(seed string) types.UID {
	h := fnv.New64a()
	h.Write([]byte(seed))
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", h.Sum64()&0xffffffffffff))
}

// OwnerReference returns a reference as it is written to the API.
func (s *Stage) OwnerReference(o Owner) metav1.OwnerReference {
	r := s.Kind(o.Of.Kind).Resource
	ref := metav1.OwnerReference{APIVersion: r.GroupVersion().String(), Kind: r.Kind, UID: s.uid(o)}
	if o.APIVersion != "" {
		ref.APIVersion = strings.Replace(o.APIVersion, "GROUP", s.Group(), 1)
	}
	if o.Kind != "" {
		ref.Kind = o.Kind
	}
	name := o.Of.Name
	if o.Name != "" {
		name = o.Name
	}
	ref.Name = name
	for _, k := range s.Kinds() {
		if k.Kind == ref.Kind {
			ref.Name = s.nameAs(k.Resource, name)
		}
	}
	yes, no := true, false
	ref.BlockOwnerDeletion = map[Block]*bool{Blocks: &yes, DoesNotBlock: &no}[o.Block]
	if o.Controller {
		ref.Controller = &yes
	}
	return ref
}

// OwnerReferences returns references as they are written to the API.
func (s *Stage) OwnerReferences(owners []Owner) []metav1.OwnerReference {
	var refs []metav1.OwnerReference
	for _, o := range owners {
		refs = append(refs, s.OwnerReference(o))
	}
	return refs
}

// Manifest returns an object as it is created, without owner references: those
// are added when all UIDs are known.
func (s *Stage) Manifest(o *Object) *unstructured.Unstructured {
	k := s.Kind(o.Kind)
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for field, value := range k.Spec {
		u.Object[field] = value
	}
	if o.Kind == "crd" {
		u.Object = s.Kind(strings.TrimSuffix(o.Name, "s")).Definition()
	}
	u = u.DeepCopy()
	u.SetGroupVersionKind(k.GroupVersionKind())
	u.SetNamespace(s.NamespaceOf(o.Path))
	u.SetName(s.NameOf(o.Path))
	u.SetFinalizers(o.Finalizers)
	if o.Kind == "event" {
		u.Object["involvedObject"] = map[string]any{"namespace": u.GetNamespace()}
	}
	if o.Node != "" {
		_ = unstructured.SetNestedField(u.Object, s.Prefix+"-"+o.Node, "spec", "nodeName")
	}
	if o.Grace != nil {
		_ = unstructured.SetNestedField(u.Object, *o.Grace, "spec", "terminationGracePeriodSeconds")
	}
	return u
}

// StateOf returns what is left of an object in the scenario's words; actual is
// nil when it is gone.
func (s *Stage) StateOf(o *Object, actual *graph.Object) State {
	if actual == nil {
		return State{Fate: Gone}
	}
	state := State{Finalizers: slices.Sorted(slices.Values(actual.Finalizers))}
	if actual.BeingDeleted() {
		state.Fate = Terminating
	}
	for _, ref := range actual.OwnerReferences {
		state.Owners = append(state.Owners, s.ownerText(o, ref))
	}
	return state
}

// ownerText finds the reference among those that the object may have, whatever
// became of blockOwnerDeletion.
func (s *Stage) ownerText(o *Object, actual metav1.OwnerReference) string {
	candidates := slices.Clone(o.Owners)
	for _, a := range s.Scenario.Actions {
		if a.Owners != nil && slices.Contains(a.Paths, o.Path) {
			candidates = append(candidates, *a.Owners...)
		}
	}
	for _, other := range s.Scenario.Objects {
		candidates = append(candidates, Owner{Of: other.Path})
	}
	for _, owner := range candidates {
		ref := s.OwnerReference(owner)
		if ref.UID != actual.UID || ref.Name != actual.Name || ref.Kind != actual.Kind || ref.APIVersion != actual.APIVersion {
			continue
		}
		owner.Block = Unset
		if block := actual.BlockOwnerDeletion; block != nil {
			owner.Block = map[bool]Block{true: Blocks, false: DoesNotBlock}[*block]
		}
		return owner.String()
	}
	return fmt.Sprintf("%s:%s:%s:%s", actual.APIVersion, actual.Kind, actual.Name, actual.UID)
}
