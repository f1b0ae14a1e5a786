// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Inverse returns the operations that take back what a JSON patch does to an object, as
// it was before: each is guarded by a test of what the patch has made. It is false for a
// patch of which that cannot be told.
func Inverse(object map[string]any, operations []Step) ([]Step, bool) {
	var back []Step
	for _, o := range operations {
		var undo []Step
		list, toEnd := strings.CutSuffix(o.Path, "/-")
		was, there := At(object, o.Path)
		switch {
		case o.Op == "test":
			undo = []Step{o}
			if slices.ContainsFunc(operations, func(other Step) bool { return other.Op != "test" && other.Path == o.Path }) {
				continue // it is about what is changed
			}
		case o.Op == "add" && toEnd:
			entries, ok := At(object, list)
			before, isList := entries.([]any)
			if !ok || !isList {
				return nil, false
			}
			path := fmt.Sprintf("%s/%d", list, len(before))
			undo = []Step{Test(path, o.Value), Remove(path)}
		case o.Op == "add" && !there:
			undo = []Step{Test(o.Path, o.Value), Remove(o.Path)}
		case (o.Op == "add" || o.Op == "replace") && there:
			undo = []Step{Test(o.Path, o.Value), Replace(o.Path, was)}
		case o.Op == "replace": // of a field that has its default
			undo = []Step{Test(o.Path, o.Value), Remove(o.Path)}
		default:
			return nil, false
		}
		back = append(undo, back...)
	}
	return back, len(back) > 0
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// At returns what is at a JSON pointer (RFC 6901).
func At(value any, pointer string) (any, bool) {
	for _, key := range strings.Split(pointer, "/")[1:] {
		switch v := value.(type) {
		case map[string]any:
			inner, ok := v[unescape.Replace(key)]
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
