// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/mention"
	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What specs and messages name: objects that a controller needs, and objects that use
// another.

// references are what objects name, and who names them. It owns how often a GET was made for that.
type references struct {
	evidence *evidence.Reader
	mentions mention.Reader
	proved   int // the objects of which a GET has proved that they do not exist
}

// typeOf returns the type of what an object names, nil when none that is served is it for certain: the nearest that is the only one as
// near.
func (f *references) typeOf(n graph.Node, o *mention.Name) (nearest *graph.Resource) {
	least := anywhere + 1
	for _, r := range f.evidence.Types() {
		switch d := distanceOf(n, r, o); {
		case d < least:
			nearest, least = r, d
		case d == least && d > own && nearest != nil && r.Kind+r.Group != nearest.Kind+nearest.Group:
			nearest = nil
		}
	}
	return nearest
}

// distance is how far the type of what an object names is from its own.
type distance int

const (
	// own is the group that is stated, else that of the object; core is Kubernetes' own; kin is the one of which the object's is a part, as
	// aws.upbound.io of s3.aws.upbound.io, or another part of that.
	own distance = iota
	core
	kin
	// suffixed is a kind of the object's group that ends with what the field says, as AtlasProject does of projectRef.
	suffixed
	anywhere
)

func distanceOf(n graph.Node, r *graph.Resource, o *mention.Name) distance {
	group := n.Resource().Group
	_, family, _ := strings.Cut(group, ".")
	akin := family == r.Group || strings.Count(family, ".") > 1 && strings.HasSuffix(r.Group, "."+family)
	switch {
	case o.Kind == "" || !strings.HasSuffix(r.Kind, o.Kind) || o.Group != "" && o.Group != r.Group:
	case r.Kind != o.Kind && o.Sure == mention.Field && r.Group == group && !graph.BuiltinGroup(group):
		return suffixed
	case r.Kind != o.Kind:
	case o.Group != "" || r.Group == group:
		return own
	case r.Group == "":
		return core
	case akin:
		return kin
	case strings.HasSuffix(o.Kind, "Class"): // others are called after many things
		return anywhere
	}
	return anywhere + 1
}

// refers reports whether what an object names by a field like clusterName is a reference: to a class, or to one of its own API.
func refers(o *mention.Name, n graph.Node, r *graph.Resource) bool {
	own := r.Group == n.Resource().Group && !graph.BuiltinGroup(r.Group)
	return o.Sure >= mention.Field || o.Sure == mention.Called && (own || strings.HasSuffix(o.Kind, "Class"))
}

// Lack is an object that is named somewhere and provably does not exist.
type Lack struct {
	Object   graph.Identity
	Evidence evidence.Fact
}

// Needed reports whether a clean-up may need such an object, and does not remove it itself.
func (l *Lack) Needed() bool { return needed().MatchString(l.Object.Resource.Kind) }

// Lacks returns the objects that the spec of an object refers to and that do not exist, those of a product before Kubernetes' own: without
// its project, a user needs no password.
func (f *references) Lacks(n graph.Node, full *unstructured.Unstructured) []Lack {
	var lacks []Lack
	if _, remote, _ := unstructured.NestedMap(full.Object, "spec", "kubeConfig"); remote { // what it names is in another cluster
		return nil
	}
	for o := range f.mentions.In(full) {
		r := f.typeOf(n, o)
		if r == nil || !o.InSpec() || o.Foreign || o.Optional || !refers(o, n, r) || o.Kind == n.Resource().Kind && o.Text == n.Name() {
			continue
		}
		if id := identityIn(r, o.Namespace, o.Text, n); f.isAbsent(id) {
			lacks = append(lacks, Lack{id, evidence.Field(n, o.Path, id.String()+" does not exist")})
		}
	}
	slices.SortStableFunc(lacks, func(a, b Lack) int { return cmp.Compare(b.Object.Resource.Group, a.Object.Resource.Group) })
	return lacks
}

// identityIn is an object of the type, in the namespace of the node if none is stated.
func identityIn(r *graph.Resource, namespace, name string, n graph.Node) graph.Identity {
	switch {
	case !r.Namespaced:
		namespace = ""
	case namespace == "":
		namespace = n.Namespace()
	}
	return graph.Identity{Resource: *r, Namespace: namespace, Name: name}
}

// isAbsent reports whether an object provably does not exist: it was not listed, and is not there
// by now. When very many are asked about, the list is proof enough.
func (f *references) isAbsent(id graph.Identity) bool {
	r := id.Resource.GroupResource()
	if id.Resource.Namespaced && id.Namespace == "" || len(f.evidence.Named(r, id.Namespace, id.Name)) > 0 ||
		!f.evidence.Covers(r, id.Namespace, id.Name) {
		return false
	}
	if f.proved++; f.proved > maxProofs {
		return true
	}
	_, err := f.evidence.Get(id.Resource.GroupVersionResource, id.Namespace, id.Name)
	return apierrors.IsNotFound(err)
}

// maxProofs bounds the objects that are read one by one.
const maxProofs = 20

// notFoundText is an API server's word about an object that is not there
// (k8s.io/apimachinery/pkg/api/errors, NewNotFound), or a controller's with a kind, maybe as JSON within a text, or without quotes where
// a namespace is before the name.
var notFoundText = pattern.New(`([A-Za-z0-9.-]+) (?:\\?"([^"\\]+)\\?"|([a-z0-9-]+/[a-z0-9.-]+)) (?:(?:is|was) )?not found(?: in (?:the )?namespace "?([a-z0-9-]+))?`)

// MissingIn returns the object that a message says is not found, if that is so, or else one that is there by now.
func (f *references) MissingIn(n graph.Node, message string) (lack *Lack, again *graph.Node) {
	for _, found := range notFoundText().FindAllStringSubmatch(message, -1) {
		stated, text, beside := schema.ParseGroupResource(found[1]), cmp.Or(found[2], found[3]), found[4]
		for _, r := range f.evidence.Types() {
			if kind := (schema.GroupResource{Group: r.Group, Resource: r.Kind}); r.GroupResource() != stated && kind != stated &&
				!strings.EqualFold(r.Kind, found[1]) || madeByControllers(r) {
				continue
			}
			namespace, name, qualified := strings.Cut(text, "/")
			if !qualified {
				namespace, name = beside, text
			}
			id := identityIn(r, cmp.Or(namespace, f.namespaceOf(n, r, name)), name, n)
			if f.isAbsent(id) {
				return &Lack{id, evidence.At(id, "", "does not exist")}, nil
			}
			if there := f.evidence.Named(r.GroupResource(), id.Namespace, id.Name); len(there) > 0 && again == nil {
				again = &there[0]
			}
		}
	}
	return nil, again
}

// namespaceOf returns the namespace that the spec of an object states beside the name of another, empty for none.
func (f *references) namespaceOf(n graph.Node, r *graph.Resource, name string) string {
	if full, err := f.evidence.Whole(n); err == nil {
		for o := range f.mentions.In(full) {
			if o.Text == name && o.Namespace != "" && o.InSpec() && f.typeOf(n, o) == r {
				return o.Namespace
			}
		}
	}
	return ""
}

// madeByControllers reports whether objects of the type are mostly those that a controller makes itself,
// and misses when it has removed them.
func madeByControllers(r *graph.Resource) bool {
	return r.IsPod() || slices.Contains([]string{"apps", "batch", "policy", "autoscaling"}, r.Group)
}

// User is an object that uses another.
type User struct {
	graph.Node
	Evidence evidence.Fact
	// Stated: the catalogue says that such an object does by this field.
	Stated bool
}

// Usage is who uses an object.
type Usage struct {
	By []User
	// Unread are the types of which that could not be read.
	Unread []string
	// Of are the types of which the catalogue says that they do, where all that do are known.
	Of []string
}

// UsersOf returns the objects that use one whose finalizer waits until nobody does: those that the
// catalogue says, and those of its own API, and others that its controller serves, whose spec names
// it by kind and name.
//
// They are looked for of a few objects with a finalizer: each takes a list for each type.
func (f *references) UsersOf(n graph.Node, s *Search) (u Usage) {
	if s.asked++; s.asked > maxUsed {
		return u
	}
	target := mention.To(n.Identity())
	for _, r := range f.userTypes(n, s) {
		namespace := n.Namespace() // empty for an object that all namespaces may use
		mentioning, err := f.evidence.Mentioning(r.GroupVersionResource, namespace, n.Name())
		if err != nil {
			u.Unread = append(u.Unread, r.GroupResource().String())
			continue
		}
		for i := range mentioning {
			if user, uses := f.uses(r, &mentioning[i], target, s); uses {
				u.By = append(u.By, user)
			}
		}
	}
	graph.SortByIdentity(u.By, func(u *User) graph.Identity { return u.Identity() })
	where := ""
	if n.Namespace() != "" {
		where = inItsNamespace
	}
	for _, relation := range relations(s) {
		if of := relation.resource + where; len(u.Unread) == 0 && !slices.Contains(u.Of, of) {
			u.Of = append(u.Of, of)
		}
	}
	return u
}

const (
	// maxUserTypes bounds the types that are read for the users of an object, and maxUsed
	// the objects with one finalizer for which they are.
	maxUserTypes = 12
	maxUsed      = 10
)

// userTypes are the types whose objects may use those of n's.
func (f *references) userTypes(n graph.Node, s *Search) []*graph.Resource {
	var types []*graph.Resource
	add := func(r *graph.Resource) {
		if len(types) < maxUserTypes && !slices.Contains(types, r) && (f.evidence.Count(r.GroupResource()) > 0 ||
			!f.evidence.Covers(r.GroupResource(), "", "")) {
			types = append(types, r)
		}
	}
	for _, relation := range relations(s) {
		for _, r := range f.evidence.Types() {
			if r.GroupResource().String() == relation.resource {
				add(r)
			}
		}
	}
	own := n.Resource().Group
	for _, r := range f.evidence.Types() {
		product := slices.ContainsFunc(s.groups, func(g schema.GroupResource) bool { return g.Group == r.Group })
		if r.GroupResource() != n.Resource().GroupResource() && (r.Group == own && !graph.BuiltinGroup(own) || product) {
			add(r)
		}
	}
	return types
}

// relation is a field by which objects of a type use the one with the finalizer.
type relation struct{ resource, field string }

// relations are those that the catalogue states.
func relations(s *Search) []relation {
	var all []relation
	for _, m := range s.Known {
		for _, stated := range m.Users {
			resource, field, _ := strings.Cut(stated, " ")
			all = append(all, relation{resource, field})
		}
	}
	return all
}

// uses reports whether an object uses the target, by a relation of the catalogue or by a reference.
func (f *references) uses(r *graph.Resource, o *unstructured.Unstructured, t *mention.Target, s *Search) (user User, uses bool) {
	found := f.evidence.Named(r.GroupResource(), o.GetNamespace(), o.GetName())
	over, _ := evidence.ConditionOf(o, "Finished") // as a Workload of Kueue, which gives back its quota and keeps the name of its queue
	if len(found) == 0 || found[0].UID() == t.UID || over.Status == "True" {
		return user, false
	}
	user.Node = found[0]
	for n := range f.mentions.In(o) {
		switch relates := func(known relation) bool { return known == relation{r.GroupResource().String(), n.Field()} }; {
		case n.Text != t.Name || !t.Means(n):
		case slices.ContainsFunc(relations(s), relates):
			user.Evidence, user.Stated = evidence.Field(user.Node, n.Path, n.Text), true
			return user, true
		case !uses && n.InSpec() && t.Named(n) >= mention.Called:
			user.Evidence, uses = evidence.Field(user.Node, n.Path, n.Kind+" "+n.Text), true
		}
	}
	return user, uses
}

// whileUsed is the end of a finalizer that says itself that it stays while its object is used.
var whileUsed = pattern.New(`(?i)\bin-?use$`)

// Waits reports whether the controller of the finalizer waits until others do not use its object
// any more.
func (s *Search) Waits() bool {
	return len(s.Known) > 0 && s.Known[0].WhileUsed != "" || len(s.Known) == 0 && s.own && whileUsed().MatchString(s.Finalizer)
}
