// SPDX-License-Identifier: Apache-2.0

package finalizers

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Load reads a catalogue, in YAML or JSON, of the form that the top of
// catalogue.yaml describes. Its error has every mistake, each with its place,
// as finalizers[3], the entry and the field.
func Load(r io.Reader) (*Catalogue, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading finalizers: %w", err)
	}
	if err := oneDocument(data); err != nil {
		return nil, err
	}
	var file any
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return nil, fmt.Errorf("parsing finalizers: %w", cmp.Or(errors.Unwrap(err), err))
	}
	l := loader{}
	l.group(file, nil, "")
	l.duplicates()
	if err := errors.Join(l.errs...); err != nil {
		return nil, err
	}
	return newCatalogue(l.entries), nil
}

// oneDocument refuses a second document in the file, which the parser would
// leave out without a word.
func oneDocument(data []byte) error {
	content := false
	for i, line := range bytes.Split(data, []byte("\n")) {
		line = bytes.TrimRight(line, " \t\r")
		switch {
		case len(line) == 0 || line[0] == '#' || line[0] == '%':
		case bytes.Equal(line, []byte("---")) || bytes.HasPrefix(line, []byte("--- ")):
			if content {
				return fmt.Errorf("line %d: a second document starts: all finalizers have to be in one", i+1)
			}
		default:
			content = true
		}
	}
	return nil
}

// list is the field that makes an entry a group.
const list = "finalizers"

// loader collects entries, where they are in the file, and mistakes.
type loader struct {
	entries []*entry
	places  []string
	errs    []error
}

func (l *loader) report(place, format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if place != "" {
		err = fmt.Errorf("%s: %w", place, err)
	}
	l.errs = append(l.errs, err)
}

// group reads the file, or an entry that has a list of entries.
func (l *loader) group(value any, inherited map[string]any, place string) {
	stated, _ := value.(map[string]any)
	members, ok := stated[list].([]any)
	if !ok {
		l.report(place, "want a mapping with a list %q", list)
		return
	}
	l.unknown(stated, place)
	if _, both := stated["finalizer"]; both {
		l.report(place, "finalizer: with a list %q it has to be in the entries of that", list)
	}
	if place != "" {
		place += "."
	}
	inherited = inherit(inherited, stated)
	for i, member := range members {
		l.member(member, inherited, place+list+"["+strconv.Itoa(i)+"]")
	}
}

// inherit returns what an entry in the group states by itself, before its own
// fields.
func inherit(inherited, stated map[string]any) map[string]any {
	all := maps.Clone(stated)
	for name, value := range inherited {
		if _, there := stated[name]; !there {
			all[name] = value
		}
	}
	delete(all, list)
	return all
}

// member reads an entry of a list, which may be a group.
func (l *loader) member(value any, inherited map[string]any, place string) {
	stated, ok := value.(map[string]any)
	if !ok {
		l.report(place, "want a mapping with the fields of an entry")
		return
	}
	if _, group := stated[list]; group {
		l.group(stated, inherited, place)
		return
	}
	if finalizer, ok := stated["finalizer"].(string); ok {
		place += " (" + finalizer + ")"
	}
	l.unknown(stated, place)
	l.entry(inherit(inherited, stated), place)
}

// unknown reports the fields that there are not.
func (l *loader) unknown(stated map[string]any, place string) {
	for _, name := range slices.Sorted(maps.Keys(stated)) {
		if name != list && !slices.ContainsFunc(fields, func(f fieldOf) bool { return f.name == name }) {
			l.report(place, "%s: no such field; there are %s and %s", name, fieldNames(), list)
		}
	}
}

func (l *loader) entry(stated map[string]any, place string) {
	e := &entry{Entry: Entry{Field: Metadata}}
	typed := true
	for _, f := range fields {
		if value := stated[f.name]; value != nil && !assign(f.in(&e.Entry), value) {
			l.report(place, "%s: want %s", f.name, f.want)
			typed = false
		}
	}
	if !typed {
		return
	}
	for _, err := range e.validate() {
		l.report(place, "%w", err)
	}
	l.entries, l.places = append(l.entries, e), append(l.places, place)
}

// duplicates reports entries for the same finalizer and kind.
func (l *loader) duplicates() {
	type key struct {
		finalizer string
		field     Field
	}
	seen := map[key][]int{}
	for i, e := range l.entries {
		k := key{e.Finalizer, e.Field}
		for _, j := range seen[k] {
			if kind, shared := sharedKind(e.Kinds, l.entries[j].Kinds); shared {
				l.report(l.places[i], "finalizer: %s for %s already", l.places[j], kind)
			}
		}
		seen[k] = append(seen[k], i)
	}
}

// sharedKind returns a kind that is in both lists, of which an empty one has
// all.
func sharedKind(a, b []string) (string, bool) {
	if len(a) == 0 || len(b) == 0 {
		return "any kind", len(a) == len(b)
	}
	for _, kind := range a {
		if slices.Contains(b, kind) {
			return kind, true
		}
	}
	return "", false
}

// fieldOf is a field of an entry: its name in a file, what it holds, and where
// that goes.
type fieldOf struct {
	name, want string
	in         func(*Entry) any
}

const workloadsWant = "a list of mappings of kind, namespace and name to text"

var fields = []fieldOf{
	{"finalizer", "text", func(e *Entry) any { return &e.Finalizer }},
	{"field", "text", func(e *Entry) any { return &e.Field }},
	{"kinds", "a list of text", func(e *Entry) any { return &e.Kinds }},
	{"product", "text", func(e *Entry) any { return &e.Product }},
	{"controller", "text", func(e *Entry) any { return &e.Controller }},
	{"builtin", "text", func(e *Entry) any { return &e.Builtin }},
	{"workloads", workloadsWant, func(e *Entry) any { return &e.Workloads }},
	{"helpers", workloadsWant, func(e *Entry) any { return &e.Helpers }},
	{"leases", "a list of mappings of namespace and name to text", func(e *Entry) any { return &e.Leases }},
	{"offCluster", "text", func(e *Entry) any { return &e.OffCluster }},
	{"place", "text", func(e *Entry) any { return &e.Place }},
	{"names", "text", func(e *Entry) any { return &e.Names }},
	{"waitsFor", "text", func(e *Entry) any { return &e.WaitsFor }},
	{"whileUsed", "text", func(e *Entry) any { return &e.WhileUsed }},
	{"users", "a list of text", func(e *Entry) any { return &e.Users }},
	{"creates", "text", func(e *Entry) any { return &e.Creates }},
	{"leaks", "text", func(e *Entry) any { return &e.Leaks }},
	{"harmless", "true or false", func(e *Entry) any { return &e.Harmless }},
	{"note", "text", func(e *Entry) any { return &e.Note }},
	{"examples", "a list of text", func(e *Entry) any { return &e.Examples }},
	{"source", "text", func(e *Entry) any { return &e.Source }},
}

func fieldNames() string {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// assign puts a value of the file into a field of an entry, if it is of its
// type.
func assign(field, value any) bool {
	switch field := field.(type) {
	case *string:
		return set(field, value)
	case *Field:
		return set((*string)(field), value)
	case *Use:
		return set((*string)(field), value)
	case *Component:
		return set((*string)(field), value)
	case *bool:
		return set(field, value)
	case *[]string:
		return setList(field, value, set)
	case *[]Workload:
		return setList(field, value, func(w *Workload, value any) bool {
			return setNamed(value, map[string]*string{"kind": &w.Kind, "namespace": &w.Namespace, "name": &w.Name})
		})
	case *[]Lease:
		return setList(field, value, func(l *Lease, value any) bool {
			return setNamed(value, map[string]*string{"namespace": &l.Namespace, "name": &l.Name})
		})
	default:
		return false
	}
}

func set[T any](field *T, value any) bool {
	typed, ok := value.(T)
	*field = typed
	return ok
}

func setList[T any](field *[]T, value any, set func(*T, any) bool) bool {
	values, ok := value.([]any)
	*field = make([]T, len(values))
	for i, value := range values {
		ok = ok && set(&(*field)[i], value)
	}
	return ok
}

func setNamed(value any, fields map[string]*string) bool {
	values, ok := value.(map[string]any)
	for name, value := range values {
		field, known := fields[name]
		ok = ok && known && set(field, value)
	}
	return ok
}
