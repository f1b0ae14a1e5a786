// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// Field is a value that a change changes: what was at a JSON pointer (RFC 6901) into the object as it was before, and what
// the change makes of it; nil is for nothing.
type Field struct {
	Path    string
	Was, Is any
}

// Standing says how an object stands to a change that was made to it.
type Standing string

// The standings.
const (
	// AsBefore: all that was changed is as it was before.
	AsBefore Standing = "AsBefore"
	// Made: some of what the change made is there.
	Made Standing = "Made"
	// Altered: what the change made is neither there nor as it was before: others have changed it.
	Altered Standing = "Altered"
)

// Fields returns what a change changes of an object that is as it is before. The values are as JSON has them. The error is ErrChanged
// when its tests do not hold. It is empty for what makes or deletes an object, and for what sets a time.
func (o *Op) Fields(before map[string]any) ([]Field, error) {
	list := func(path string, change func([]any) []any) []Field {
		was, _ := At(before, path)
		entries, _ := was.([]any)
		return []Field{{path, was, change(slices.Clone(entries))}}
	}
	switch o.Verb {
	case Scale:
		return []Field{{"/spec/replicas", o.Replicas.Current, o.Replicas.Wanted}}, nil
	case Resume:
		return []Field{{"/spec/paused", true, nil}}, nil
	case Taint:
		t := ParseTaint(o.Value)
		entry := map[string]any{"key": t.Key, "effect": t.Effect}
		if t.Value != "" {
			entry["value"] = t.Value
		}
		return list("/spec/taints", func(all []any) []any { return append(all, entry) }), nil
	case Untaint:
		return list("/spec/taints", func(all []any) []any { return slices.DeleteFunc(all, ParseTaint(o.Value).Is) }), nil
	case Finalize:
		return list("/spec/finalizers", func(all []any) []any { return slices.DeleteFunc(all, func(f any) bool { return f == any(o.Value) }) }),
			nil
	case Patch:
		return patched(before, o.Patch)
	}
	return nil, nil
}

// patched returns the fields that a JSON patch changes. An entry that it adds to a list, or removes, is a change of the list.
func patched(before map[string]any, steps []Step) ([]Field, error) {
	steps = slices.DeleteFunc(slices.Clone(steps),
		func(s Step) bool { return s.Path == "/metadata/uid" || s.Path == "/metadata/resourceVersion" })
	after, err := apply(before, steps)
	if err != nil {
		return nil, err
	}
	var fields []Field
	for _, s := range steps {
		if s.Op == "test" {
			continue
		}
		path := strings.TrimSuffix(s.Path, "/-")
		cut := strings.LastIndexByte(path, '/')
		if above, _ := At(before, path[:cut]); asList(above) != nil && s.Op != "replace" {
			path = path[:cut]
		}
		if !slices.ContainsFunc(fields, func(f Field) bool { return path == f.Path || strings.HasPrefix(path, f.Path+"/") }) {
			was, _ := At(before, path)
			is, _ := At(after, path)
			fields = append(fields, Field{path, was, is})
		}
	}
	return fields, nil
}

// apply returns an object with a JSON patch.
func apply(object map[string]any, steps []Step) (map[string]any, error) {
	document, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	words, err := json.Marshal(steps)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(words)
	if err != nil {
		return nil, err
	}
	if document, err = patch.Apply(document); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrChanged, err)
	}
	var after map[string]any
	return after, kjson.Unmarshal(document, &after)
}

// Reverse returns the steps that take fields of a change back from an object as it is now, and how that stands to the change. Entries of
// lists are found by their names or values, wherever they are by now, and what others have added or changed beside them is kept. The steps
// test all that they replace; the resourceVersion is for Op.At. When it is Altered they are for the rest, which others have not changed.
func Reverse(fields []Field, before, now map[string]any) ([]Step, Standing) {
	b := &reversal{before: before, now: now}
	for _, f := range slices.Backward(fields) {
		b.field(f)
	}
	switch {
	case b.altered:
		return b.steps, Altered
	case len(b.steps) == 0:
		return nil, AsBefore
	}
	return b.steps, Made
}

type reversal struct {
	before, now map[string]any
	steps       []Step
	altered     bool
}

// field reverses one field, wherever it is by now.
func (r *reversal) field(f Field) {
	path, names := "", []Step{}
	var before, now any = r.before, r.now
	for _, key := range strings.Split(f.Path, "/")[1:] {
		was, _ := At(before, "/"+key)
		if entries, isList := now.([]any); isList {
			at := indexOf(entries, was, key)
			if at < 0 { // it is gone with its entry, or that was renamed
				r.altered = r.altered || slices.ContainsFunc(entries, func(e any) bool { return indexOf(asList(before), e, "") < 0 })
				return
			}
			key = strconv.Itoa(at)
			if name, named := nameOf(was); named {
				names = append(names, Test(path+"/"+key+"/"+name, was.(map[string]any)[name]))
			}
		}
		now, _ = At(now, "/"+key)
		before, path = was, path+"/"+key
	}
	steps := len(r.steps)
	if r.value(path, f.Was, f.Is, now); len(r.steps) > steps {
		r.steps = append(r.steps, names...)
	}
}

// value has what is at a path become what was there, as far as the change has changed it and others have not.
func (r *reversal) value(path string, was, is, now any) {
	switch {
	case Same(now, was):
		return
	case Same(now, is) && (empty(was) || asList(is) == nil):
		r.set(path, now, was)
		return
	}
	wasMap, isMap, nowMap := asMap(was), asMap(is), asMap(now)
	wasList, isList, nowList := asList(was), asList(is), asList(now)
	switch {
	case len(nowMap) > 0 && len(wasMap)+len(isMap) > 0 && len(wasList)+len(isList) == 0:
		for _, key := range slices.Sorted(maps.Keys(union(wasMap, isMap))) {
			if !Same(wasMap[key], isMap[key]) {
				r.value(path+"/"+escape.Replace(key), wasMap[key], isMap[key], nowMap[key])
			}
		}
	case len(nowMap) == 0 && len(wasList)+len(isList) > 0:
		r.entries(path, wasList, isList, nowList)
	default:
		r.altered = true
	}
}

// entries removes from a list what was added to it, and adds at its end what was removed.
func (r *reversal) entries(path string, was, is, now []any) {
	added, removed := minus(is, was), minus(was, is)
	left := slices.Clone(now)
	for i := len(now) - 1; i >= 0; i-- {
		at := slices.IndexFunc(added, func(a any) bool { return covers(now[i], a) })
		if at < 0 {
			continue
		}
		entry := path + "/" + strconv.Itoa(i)
		r.steps = append(r.steps, Test(entry, now[i]), Remove(entry))
		added, left = slices.Delete(added, at, at+1), slices.Delete(left, i, i+1)
	}
	foreign := minus(left, was)
	for _, a := range added { // an entry that others have edited
		if name, named := nameOf(a); named {
			r.altered = r.altered ||
				slices.ContainsFunc(foreign, func(entry any) bool { return asMap(entry)[name] == asMap(a)[name] && alike(entry, a) })
		}
	}
	missing := minus(removed, minus(left, minus(was, removed)))
	switch {
	case len(missing) == 0:
	case len(now) == 0:
		r.steps = append(r.steps, Add(path, missing))
	default:
		for _, entry := range missing {
			r.steps = append(r.steps, Add(path+"/-", entry))
		}
	}
}

// alike reports whether one of two entries of a name may be the other, edited: of requirements of a label selector, which may have a key
// in common, those that have a value in common.
func alike(entry, other any) bool {
	values := asList(asMap(other)["values"])
	return len(values) == 0 || len(minus(values, asList(asMap(entry)["values"]))) < len(values)
}

// set has a path get a value, or with nil none.
func (r *reversal) set(path string, now, value any) {
	if now != nil {
		r.steps = append(r.steps, Test(path, now))
	}
	switch {
	case value == nil:
		r.steps = append(r.steps, Remove(path))
	case now == nil:
		r.steps = append(r.steps, Add(path, value))
	default:
		r.steps = append(r.steps, Replace(path, value))
	}
}

// Same reports whether values are the same in JSON. Nothing, null and what is empty are.
func Same(a, b any) bool {
	if empty(a) && empty(b) {
		return true
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

func empty(v any) bool {
	if v == nil {
		return true
	}
	switch value := reflect.ValueOf(v); value.Kind() {
	case reflect.Slice, reflect.Map:
		return value.Len() == 0
	}
	return false
}

// covers reports whether a value has all that another has: the API server adds defaults.
func covers(have, wanted any) bool {
	fields, isMap := wanted.(map[string]any)
	if !isMap {
		return Same(have, wanted)
	}
	for key, value := range fields {
		if !covers(asMap(have)[key], value) {
			return false
		}
	}
	return true
}

// minus returns the entries of a list that another does not have, each as often as it has more of it.
func minus(list, other []any) []any {
	other = slices.Clone(other)
	var left []any
	for _, entry := range list {
		if at := slices.IndexFunc(other, func(o any) bool { return Same(o, entry) }); at >= 0 {
			other = slices.Delete(other, at, at+1)
		} else {
			left = append(left, entry)
		}
	}
	return left
}

// indexOf returns where an entry of a list is by now: by its value, by its name, or, if it has none, where it was; -1 for nowhere.
func indexOf(entries []any, was any, key string) int {
	if at := slices.IndexFunc(entries, func(e any) bool { return Same(e, was) }); at >= 0 {
		return at
	}
	if name, named := nameOf(was); named {
		return slices.IndexFunc(entries, func(e any) bool { return asMap(e)[name] == asMap(was)[name] })
	}
	at, err := strconv.Atoi(key)
	if err != nil || at < 0 || at >= len(entries) {
		return -1
	}
	return at
}

// nameOf returns the field by which an entry of a list is told from others.
func nameOf(entry any) (field string, ok bool) {
	for _, field := range []string{"uid", "name", "key"} {
		if text, is := asMap(entry)[field].(string); is && text != "" {
			return field, true
		}
	}
	return "", false
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return all
}

var (
	// Unescape makes a key of a part of a JSON pointer.
	Unescape = strings.NewReplacer("~1", "/", "~0", "~")
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
)

// At returns what is at a JSON pointer (RFC 6901).
func At(value any, pointer string) (any, bool) {
	for _, key := range strings.Split(pointer, "/")[1:] {
		switch v := value.(type) {
		case map[string]any:
			inner, ok := v[Unescape.Replace(key)]
			if !ok {
				return nil, false
			}
			value = inner
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// Within reports whether all of a value is in another: each field of a map, and each entry of a list in its place.
func Within(part, whole any) bool {
	switch p := part.(type) {
	case map[string]any:
		w, _ := whole.(map[string]any)
		for key, value := range p {
			if !Within(value, w[key]) {
				return false
			}
		}
		return true
	case []any:
		w, _ := whole.([]any)
		return slices.EqualFunc(p, w, Within)
	}
	return Same(part, whole)
}
