// SPDX-License-Identifier: Apache-2.0

package mention

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Target is an object that others may name.
type Target struct {
	graph.Identity
	// full are the ways to write the name with its namespace, entry is how Flux does in inventories, and subject is the name as that of a
	// user, or of a group.
	full           []string
	entry, subject string
	// word is in the keys of fields that name objects of the kind.
	word string
}

// To makes an object a target.
func To(id graph.Identity) *Target {
	t := &Target{Identity: id, word: words[id.Resource.Kind], entry: id.Namespace + "_" + id.Name + "_" +
		id.Resource.Group + "_" + id.Resource.Kind}
	if t.word == "" {
		t.word = strings.ToLower(id.Resource.Kind)
	}
	for _, between := range []string{"/", ":", "."} { // as a path, as a user, and as a host
		if id.Namespace != "" {
			t.full = append(t.full, id.Namespace+between+id.Name, id.Name+between+id.Namespace)
		}
	}
	switch {
	case id.Resource.GroupResource() == evidence.ServiceAccounts.GroupResource():
		t.subject = "system:serviceaccount:" + id.Namespace + ":" + id.Name
	case id.Resource.IsNamespace():
		t.subject = "system:serviceaccounts:" + id.Name
	}
	return t
}

// Surest returns the one of the names that is the surest to be the target's, nil if none is, and how sure that is.
func (t *Target) Surest(names iter.Seq[*Name]) (surest *Name, sure Sure) {
	for n := range names {
		if is := t.Named(n); is > sure {
			surest, sure = n, is
		}
	}
	return surest, sure
}

// Named says how sure it is that a name is the target's.
func (t *Target) Named(n *Name) Sure {
	if !strings.Contains(n.Text, t.Name) {
		return No
	}
	isFull := func(name string) bool { return Has(n.Text, name) }
	full, whole := slices.ContainsFunc(t.full, isFull), n.Text == t.Name
	far := n.from != "" && t.Namespace != "" && n.from != t.Namespace && !full && n.Namespace == "" // its namespace is not with the name
	switch {
	case t.subject != "" && n.Text == t.subject:
		return Stated
	case t.subject != "" && Has(n.Text, t.subject):
		return Text
	case n.Text == t.entry:
		return Stated
	case n.Sure < Stated && t.Resource.IsNamespace():
		return t.space(n)
	case n.of.spaces && !n.isKey:
		return No
	case n.Namespace != "" && n.Namespace != t.Namespace && t.Namespace != "", far && !stands(t.Namespace, n.object):
		return No
	}
	whole = whole || slices.Contains(t.full, n.Text)
	if n.Sure == Stated || n.isKey {
		switch {
		case !whole || !t.Means(n) && !t.may(n):
			return No
		case far, !t.Means(n):
			return Text
		}
		return n.Sure
	}
	if !full && !Has(n.Text, t.Name) {
		return No
	}
	key := strings.ToLower(n.key)
	switch about := strings.Contains(key, t.word) && (t.word != "service" || !strings.Contains(key, "serviceaccount")); {
	case n.of.core && !about:
		return No
	case !about, !whole, far && !t.beside(n.in):
		return Text
	case n.Kind == t.Resource.Kind:
		return max(n.Sure, Near)
	}
	return Near
}

// space says how sure it is that a name is that of the target, a namespace: the name alone says nothing, and beside another it says where
// that is. What it is about, an argument says itself, and a variable by its name.
func (t *Target) space(n *Name) Sure {
	called, beside := n.in["name"]
	about := strings.Contains(strings.ToLower(n.Path+" "+n.Text+" "+evidence.Text(called)), t.word)
	switch {
	case !about || !Has(n.Text, t.Name):
		return No
	case n.Text == t.Name && n.of.spaces && !n.isKey && !(beside && n.key == "namespace"):
		return Called
	}
	return Text
}

// Means reports whether all that is stated beside a name is so of the target.
func (t *Target) Means(n *Name) bool {
	r := &t.Resource
	switch {
	case n.Namespace != "" && t.Namespace != "" && n.Namespace != t.Namespace, n.Group != "" &&
		n.Group != cmp.Or(r.Group, "core") && n.Group != r.Group:
		return false
	case n.Sure < Stated, strings.EqualFold(n.Kind, r.Kind):
		return true
	}
	return slices.ContainsFunc(n.resources, func(resource string) bool {
		resource, _, _ = strings.Cut(resource, "/")
		return resource == r.Resource || resource == "*" || strings.EqualFold(resource, r.Kind)
	})
}

// may reports whether what is stated beside a name may mean the type of the target in a way of its own.
func (t *Target) may(n *Name) bool {
	r, like := &t.Resource, func(text string, name string) bool {
		return strings.Contains(strings.ToLower(text), strings.ToLower(name))
	}
	switch {
	case n.Namespace != "" && t.Namespace != "" && n.Namespace != t.Namespace, strings.Contains(n.Group, ".") && n.Group != r.Group:
		return false
	case n.Kind != "":
		return n.Kind == strings.ToLower(n.Kind) || like(n.Kind, r.Kind)
	}
	return slices.ContainsFunc(n.resources, func(text string) bool { return like(text, r.Resource) })
}

// beside reports whether a map has the namespace, as StorageClasses do that name the Secret of their driver.
func (t *Target) beside(in map[string]any) bool {
	for key, value := range in {
		if strings.HasSuffix(strings.ToLower(key), "namespace") && value == t.Namespace {
			return true
		}
	}
	return false
}

// stands reports whether a text anywhere in a value has a name.
func stands(name string, in any) bool {
	switch in := in.(type) {
	case string:
		return Has(in, name)
	case []any:
		return slices.ContainsFunc(in, func(each any) bool { return stands(name, each) })
	case map[string]any:
		for key, value := range in {
			if Has(key, name) || stands(name, value) {
				return true
			}
		}
	}
	return false
}

// Has reports whether a text has a name that is not a part of a longer one.
func Has(text, name string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], name)
		if at < 0 || name == "" {
			return false
		}
		start, end := from+at, from+at+len(name)
		before := start > 0 && (nameRune(text[start-1]) || text[start-1] == '.')
		after := end < len(text) &&
			(nameRune(text[end]) || text[end] == '.' && end+1 < len(text) && nameRune(text[end+1]) && !strings.HasPrefix(text[end:], ".svc"))
		if !before && !after {
			return true
		}
		from = start + 1
	}
}

func nameRune(c byte) bool {
	return c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
