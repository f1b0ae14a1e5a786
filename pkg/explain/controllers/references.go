// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What specs and messages name: objects that a controller needs, and objects that use
// another.

// named is an object that a spec names.
type named struct {
	// path is where it does.
	path string
	// kind is stated, or what the name of the field says; group is empty if it is not
	// stated.
	kind, group string
	// stated: the field says that it is a reference, and not only a name.
	stated          bool
	namespace, name string
}

// namesIn returns the objects that a spec names: maps with a name whose kind stands
// beside it or in the name of the field, as in secretStoreRef, and fields like
// gatewayClassName.
func namesIn(path, key string, value any) []named {
	var all []named
	switch v := value.(type) {
	case map[string]any:
		if n, ok := referenceOf(path, key, v); ok {
			return []named{n}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, namesIn(path+"."+key, key, v[key])...)
		}
	case []any:
		for i := range v {
			all = append(all, namesIn(fmt.Sprintf("%s[%d]", path, i), key, v[i])...)
		}
	case string:
		if kind, ok := strings.CutSuffix(key, "Name"); ok && v != "" && kind != "" {
			all = append(all, named{path: path, kind: capital(kind), name: v})
		} else if kind := containerIn(key); kind != "" && v != "" {
			all = append(all, named{path: path, kind: kind, name: v, stated: true})
		}
	}
	return all
}

// containerIn returns the kind of what holds data for an object, if the name of a field ends with it, as githubConfigSecret
// does; empty otherwise.
func containerIn(key string) string {
	for _, kind := range []string{"Secret", "ConfigMap"} {
		if before, ends := strings.CutSuffix(key, kind); ends && before != "" {
			return kind
		}
	}
	return ""
}

var referenceKey = pattern.New(`(Ref|Refs|Reference|References)$`)

// referenceOf takes a map for a reference if it has a name and a kind, its own or that of the
// field. One that may be missing is none.
func referenceOf(path, key string, m map[string]any) (named, bool) {
	n := named{path: path, stated: true, kind: evidence.Text(m["kind"]), name: evidence.Text(m["name"]), namespace: evidence.Text(m["namespace"])}
	if optional, _ := m["optional"].(bool); optional || n.name == "" {
		return n, false
	}
	if n.group = evidence.Text(m["group"]) + evidence.Text(m["apiGroup"]); n.group == "" {
		gv, _ := schema.ParseGroupVersion(evidence.Text(m["apiVersion"]))
		n.group = gv.Group
	}
	if bare := referenceKey().ReplaceAllString(key, ""); n.kind == "" && bare != key {
		n.kind = capital(bare)
	}
	return n, n.kind != ""
}

func capital(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// references are what objects name, and who names them. It owns how often a GET was made for that.
type references struct {
	evidence *evidence.Reader
	proved   int // the objects of which a GET has proved that they do not exist
}

// typeOf returns the type of what an object names: of the group that is stated, else of its own,
// else of the core, else the only one of a class that is called so; false when none of these is served.
func (f *references) typeOf(n graph.Node, o named) (*graph.Resource, bool) {
	groups := []string{o.group}
	if o.group == "" {
		groups = []string{n.Resource().Group, ""}
	}
	for _, group := range groups {
		for _, r := range f.evidence.Types() {
			if r.Group == group && r.Kind == o.kind {
				return r, true
			}
		}
	}
	var classes []*graph.Resource
	for _, r := range f.evidence.Types() {
		if o.group == "" && strings.HasSuffix(o.kind, "Class") && r.Kind == o.kind {
			classes = append(classes, r)
		}
	}
	if len(classes) != 1 {
		return nil, false
	}
	return classes[0], true
}

// refers reports whether what an object names by a field like clusterName is a reference: to a class, or to one of its own API.
func (o *named) refers(n graph.Node, r *graph.Resource) bool {
	own := r.Group == n.Resource().Group && !graph.BuiltinGroup(r.Group)
	return o.stated || own || strings.HasSuffix(o.kind, "Class")
}

// Lack is an object that is named somewhere and provably does not exist.
type Lack struct {
	Object   graph.Identity
	Evidence evidence.Fact
}

// Lacks returns the objects that the spec of an object refers to and that do not exist.
func (f *references) Lacks(n graph.Node, full *unstructured.Unstructured) []Lack {
	var lacks []Lack
	if _, remote, _ := unstructured.NestedMap(full.Object, "spec", "kubeConfig"); remote { // what it names is in another cluster
		return nil
	}
	for _, o := range namesIn("spec", "spec", full.Object["spec"]) {
		r, served := f.typeOf(n, o)
		if !served || !o.refers(n, r) || o.kind == n.Resource().Kind && o.name == n.Name() {
			continue
		}
		if id := identityIn(r, o.namespace, o.name, n); f.isAbsent(id) {
			lacks = append(lacks, Lack{id, evidence.Field(n, o.path, id.String()+" does not exist")})
		}
	}
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
	if id.Resource.Namespaced && id.Namespace == "" || len(f.evidence.Named(r, id.Namespace, id.Name)) > 0 || !f.evidence.Covers(r, id.Namespace, id.Name) {
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
// (k8s.io/apimachinery/pkg/api/errors, NewNotFound), or a controller's with a kind, maybe as JSON within a text.
var notFoundText = pattern.New(`([A-Za-z0-9.-]+) \\?"([^"\\]+)\\?" not found(?: in (?:the )?namespace "?([a-z0-9-]+))?`)

// MissingIn returns the object that a message says is not found, if that is so, or else one that is there by now.
func (f *references) MissingIn(n graph.Node, message string) (lack *Lack, again *graph.Node) {
	for _, found := range notFoundText().FindAllStringSubmatch(message, -1) {
		stated := schema.ParseGroupResource(found[1])
		for _, r := range f.evidence.Types() {
			if kind := (schema.GroupResource{Group: r.Group, Resource: r.Kind}); r.GroupResource() != stated && kind != stated && r.Kind != found[1] || madeByControllers(r) {
				continue
			}
			namespace, name, qualified := strings.Cut(found[2], "/")
			if !qualified {
				namespace, name = found[3], found[2]
			}
			id := identityIn(r, namespace, name, n)
			if f.isAbsent(id) {
				return &Lack{id, evidence.Fact{Source: id.String(), Value: "does not exist"}}, nil
			}
			if there := f.evidence.Named(r.GroupResource(), id.Namespace, id.Name); len(there) > 0 && again == nil {
				again = &there[0]
			}
		}
	}
	return nil, again
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
	for _, r := range f.userTypes(n, s) {
		namespace := n.Namespace() // empty for an object that all namespaces may use
		mentioning, err := f.evidence.Mentioning(r.GroupVersionResource, namespace, n.Name())
		if err != nil {
			u.Unread = append(u.Unread, r.GroupResource().String())
			continue
		}
		for i := range mentioning {
			if user, uses := f.uses(r, &mentioning[i], n, s); uses {
				u.By = append(u.By, user)
			}
		}
	}
	graph.SortByIdentity(u.By, func(u *User) graph.Identity { return u.Identity() })
	for _, relation := range relations(s) {
		if len(u.Unread) == 0 && !slices.Contains(u.Of, relation.resource) {
			u.Of = append(u.Of, relation.resource)
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
		if len(types) < maxUserTypes && !slices.Contains(types, r) && (f.evidence.Count(r.GroupResource()) > 0 || !f.evidence.Covers(r.GroupResource(), "", "")) {
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

// uses reports whether an object uses n, by a relation of the catalogue or by a reference.
func (f *references) uses(r *graph.Resource, o *unstructured.Unstructured, n graph.Node, s *Search) (User, bool) {
	found := f.evidence.Named(r.GroupResource(), o.GetNamespace(), o.GetName())
	over, _ := evidence.ConditionOf(o, "Finished") // as a Workload of Kueue, which gives back its quota and keeps the name of its queue
	if len(found) == 0 || found[0].UID() == n.UID() || over.Status == "True" {
		return User{}, false
	}
	user := User{Node: found[0]}
	for _, relation := range relations(s) {
		if relation.resource != r.GroupResource().String() {
			continue
		}
		for path, at := range valuesAt(o.Object, "", strings.Split(relation.field, ".")) {
			if at.name == n.Name() && at.means(n) {
				user.Evidence, user.Stated = evidence.Field(user.Node, path, at.name), true
				return user, true
			}
		}
	}
	for _, ref := range namesIn("spec", "spec", o.Object["spec"]) {
		if ref.name == n.Name() && ref.kind != "" && ref.means(n) {
			user.Evidence = evidence.Field(user.Node, ref.path, ref.kind+" "+ref.name)
			return user, true
		}
	}
	return User{}, false
}

// means reports whether what is stated besides the name is of an object.
func (o *named) means(n graph.Node) bool {
	elsewhere := o.namespace != "" && n.Namespace() != "" && o.namespace != n.Namespace()
	return !elsewhere && (o.kind == "" || o.kind == n.Resource().Kind) && (o.group == "" || o.group == n.Resource().Group)
}

// NamedAt goes over the names that an object has at a path of fields, with the kind that is stated beside each, empty for none.
func NamedAt(o *unstructured.Unstructured, path string) iter.Seq2[string, string] {
	return func(yield func(name, kind string) bool) {
		for _, at := range valuesAt(o.Object, "", strings.Split(path, ".")) {
			if !yield(at.name, at.kind) {
				return
			}
		}
	}
}

// valuesAt goes over the names at a path of fields, through lists, with the kind and group that stand
// beside them.
func valuesAt(value any, path string, fields []string) iter.Seq2[string, named] {
	return func(yield func(path string, at named) bool) { goOverValues(value, path, fields, yield) }
}

// goOverValues is valuesAt; it reports whether to go on.
func goOverValues(value any, path string, fields []string, yield func(path string, at named) bool) bool {
	switch v := value.(type) {
	case map[string]any:
		if len(fields) == 0 {
			return true
		}
		inner := strings.TrimPrefix(path+"."+fields[0], ".")
		if name, isName := v[fields[0]].(string); isName && len(fields) == 1 {
			at, _ := referenceOf(inner, fields[0], v)
			at.name = name
			return yield(inner, at)
		}
		return goOverValues(v[fields[0]], inner, fields[1:], yield)
	case []any:
		for i := range v {
			if !goOverValues(v[i], fmt.Sprintf("%s[%d]", path, i), fields, yield) {
				return false
			}
		}
	}
	return true
}

// Waits reports whether the controller of the finalizer waits until others do not use its object
// any more.
func (s *Search) Waits() bool { return len(s.Known) > 0 && s.Known[0].WhileUsed != "" }
