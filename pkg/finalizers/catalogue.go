// SPDX-License-Identifier: Apache-2.0

package finalizers

import (
	"cmp"
	_ "embed" // for the catalogue
	"iter"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	expression "github.com/kubectl-gc/kubectl-gc/internal/pattern"
)

//go:embed catalogue.yaml
var builtinData string

var builtin struct {
	once      sync.Once
	catalogue *Catalogue
}

// Builtin returns what the program knows by itself. The first call parses it.
func Builtin() *Catalogue {
	builtin.once.Do(func() {
		c, err := Load(strings.NewReader(builtinData))
		if err != nil {
			panic("the built-in catalogue of finalizers: " + err.Error())
		}
		builtin.catalogue = c
	})
	return builtin.catalogue
}

// Catalogue is a set of entries. Nothing changes it once it is made, so it may
// be used from many goroutines. The zero value is empty.
type Catalogue struct {
	entries []*entry
	// exact has the entries that name one finalizer, by that.
	exact map[string][]*entry
	forms []*entry
}

// entry is an Entry with what Find needs.
type entry struct {
	Entry
	// form is nil for an entry that names one finalizer.
	form *pattern
	// layer is 0 for the entries that were merged in last.
	layer int
}

// Match is an entry that a finalizer fits. It proves nothing about a
// controller.
type Match struct {
	// Entry is the entry, with the placeholders in the names of its workloads,
	// helpers and leases filled in, but for ObjectNamespace.
	Entry
	// Exact: the entry names this finalizer, and not only its form.
	Exact bool
	// KindFits: the entry says that it is put on objects of this kind.
	KindFits bool
}

func newCatalogue(entries []*entry) *Catalogue {
	c := &Catalogue{entries: entries, exact: map[string][]*entry{}}
	for _, e := range entries {
		if e.form != nil {
			c.forms = append(c.forms, e)
		} else {
			c.exact[e.Finalizer] = append(c.exact[e.Finalizer], e)
		}
	}
	return c
}

// Len returns the number of entries.
func (c *Catalogue) Len() int { return len(c.entries) }

// Entries returns the entries in the order of their file, those that were
// merged in last first.
func (c *Catalogue) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, e := range c.entries {
			if !yield(e.Entry) {
				return
			}
		}
	}
}

// Merge returns a catalogue with the entries of both, those of the user first
// where both fit a finalizer equally well. An entry of the user takes the place
// of one for the same finalizer, or form, whose kinds it covers.
func (c *Catalogue) Merge(user *Catalogue) *Catalogue {
	merged := slices.Clone(user.entries)
	below := 0
	for _, e := range user.entries {
		below = max(below, e.layer+1)
	}
	for _, e := range c.entries {
		if !slices.ContainsFunc(user.entries, func(u *entry) bool { return u.covers(e) }) {
			lower := *e
			lower.layer += below
			merged = append(merged, &lower)
		}
	}
	return newCatalogue(merged)
}

// covers reports whether the entry is for the same finalizer, and put on every
// kind that the other is put on.
func (e *entry) covers(other *entry) bool {
	if e.Finalizer != other.Finalizer || e.Field != other.Field {
		return false
	}
	if len(e.Kinds) == 0 {
		return true
	}
	for _, kind := range other.Kinds {
		if !slices.ContainsFunc(e.Kinds, func(pattern string) bool { return glob(pattern, kind) }) {
			return false
		}
	}
	return len(other.Kinds) > 0
}

// Find returns the entries that the finalizer of an object of the kind fits:
// those that name it before those that know its form; among these, those that
// are put on the kind before others; then the form with most characters of its
// own. It depends on nothing else, in particular not on the order of entries.
// A kind that is not known may be empty.
//
// It does not ask where the finalizer sits: see Entry.Field.
func (c *Catalogue) Find(finalizer string, kind schema.GroupKind) []Match {
	var candidates []candidate
	for _, e := range c.exact[finalizer] {
		candidates = append(candidates, e.candidate(nil, true, kind))
	}
	for _, e := range c.forms {
		if values, own, ok := e.form.match(finalizer, kind); ok {
			candidates = append(candidates, e.candidate(values, own, kind))
		}
	}
	slices.SortFunc(candidates, compare)
	matches := make([]Match, len(candidates))
	for i, found := range candidates {
		matches[i] = found.Match
	}
	return matches
}

// candidate is a match with the entry that it comes from.
type candidate struct {
	Match
	from *entry
}

func (e *entry) candidate(values map[string]string, own bool, kind schema.GroupKind) candidate {
	m := Match{Entry: e.Entry, Exact: e.form == nil, KindFits: own && e.isPutOn(kind)}
	if len(values) > 0 {
		m.fill(values)
	}
	return candidate{m, e}
}

// fill puts the values of the placeholders in their place.
func (m *Match) fill(values map[string]string) {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, "<"+name+">", value)
	}
	filled := strings.NewReplacer(pairs...).Replace
	m.Names = filled(m.Names)
	m.replace(filled)
}

// fieldOfObject matches a field of the object in a name, which has a dot.
var fieldOfObject = expression.New(`<([^<>]*\.[^<>]*)>`)

// For returns the match for one object, with what its fields hold in the place of their names, and "*" for those that hold nothing.
// The fields are asked for when there are any.
func (m Match) For(field func(path string) string) Match {
	if named := func(w Workload) bool { return fieldOfObject().MatchString(w.Name) }; slices.ContainsFunc(m.Workloads, named) {
		m.replace(func(name string) string {
			return fieldOfObject().ReplaceAllStringFunc(name, func(of string) string { return cmp.Or(field(of[1:len(of)-1]), "*") })
		})
	}
	return m
}

// replace changes the names and namespaces of workloads and leases.
func (m *Match) replace(filled func(string) string) {
	fillWorkloads := func(list []Workload) []Workload {
		list = slices.Clone(list)
		for i := range list {
			list[i].Namespace, list[i].Name = filled(list[i].Namespace), filled(list[i].Name)
		}
		return list
	}
	m.Workloads, m.Helpers = fillWorkloads(m.Workloads), fillWorkloads(m.Helpers)
	m.Leases = slices.Clone(m.Leases)
	for i := range m.Leases {
		m.Leases[i].Namespace, m.Leases[i].Name = filled(m.Leases[i].Namespace), filled(m.Leases[i].Name)
	}
}

// compare orders matches, the best first.
func compare(a, b candidate) int {
	return cmp.Or(
		first(a.Exact, b.Exact),
		first(a.KindFits, b.KindFits),
		cmp.Compare(b.from.literals(), a.from.literals()),
		cmp.Compare(a.from.layer, b.from.layer),
		cmp.Compare(a.Finalizer, b.Finalizer),
		cmp.Compare(a.Field, b.Field),
		slices.Compare(a.Kinds, b.Kinds),
	)
}

// first orders what holds before what does not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

func (e *entry) literals() int {
	if e.form == nil {
		return 0
	}
	return e.form.literals
}

// Domain returns the domain in the name of a finalizer: what is before the
// slash or, without one, all of it. The group of a custom resource that its
// controller serves may be the domain or end it, as ceph.rook.io ends
// cephcluster.ceph.rook.io; nothing says that it does. Domain returns "" for a
// name in which no group can be, as for profile-finalizer.
func Domain(finalizer string) string {
	domain, _, _ := strings.Cut(finalizer, "/")
	if !strings.Contains(domain, ".") || len(validation.IsDNS1123Subdomain(domain)) > 0 {
		return ""
	}
	return domain
}
