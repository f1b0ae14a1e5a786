// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Columns that the user chooses, and the order of flat lists. kubectl's own code for
// both is in its command get, which would add 2.5 MB and 20 ms to every start; what is
// needed of it is little.

// The formats whose columns the user chooses.
const (
	columnsFormat     = "custom-columns"
	columnsFileFormat = "custom-columns-file"
)

// userColumn is a column that the user has chosen.
type userColumn struct {
	header string
	value  *jsonpath.JSONPath
}

// columnsOf reads the columns that a value of -o names, if it is of such a format,
// which it returns: NAME:PATH,... or a file with the names in its first line and the
// paths in the second, as kubectl takes them.
func columnsOf(output string) (format string, columns []userColumn, err error) {
	format, spec, given := strings.Cut(output, "=")
	if format != columnsFormat && format != columnsFileFormat {
		return output, nil, nil
	}
	if !given || spec == "" {
		return format, nil, usageError{fmt.Errorf("-o %s needs a value, as in -o %s=NAME:.metadata.name", format, columnsFormat)}
	}
	if format == columnsFileFormat {
		if spec, err = columnsFile(spec); err != nil {
			return format, nil, err
		}
	}
	for part := range strings.SplitSeq(spec, ",") {
		header, path, ok := strings.Cut(part, ":")
		if !ok || header == "" || path == "" {
			return format, nil, usageError{fmt.Errorf("invalid column %q: it must be HEADER:PATH", part)}
		}
		value, err := pathOf(path)
		if err != nil {
			return format, nil, err
		}
		columns = append(columns, userColumn{header, value})
	}
	return format, columns, nil
}

// columnsFile turns the two lines of a file into what -o custom-columns= takes.
func columnsFile(name string) (string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("reading columns: %w", err)
	}
	headers, paths, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	names, values := strings.Fields(headers), strings.Fields(paths)
	if len(names) == 0 || len(names) != len(values) {
		return "", usageError{fmt.Errorf("columns of %s: the first line must have the headers, and the second as many paths", name)}
	}
	for i := range names {
		names[i] += ":" + values[i]
	}
	return strings.Join(names, ","), nil
}

// pathOf reads a JSONPath as kubectl's columns have it: braces and the first point may
// be left out.
func pathOf(text string) (*jsonpath.JSONPath, error) {
	inner := strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}")
	inner = strings.TrimPrefix(inner, ".")
	path := jsonpath.New("column").AllowMissingKeys(true)
	if err := path.Parse("{." + inner + "}"); err != nil {
		return nil, usageError{fmt.Errorf("invalid path %q: %w", text, err)}
	}
	return path, nil
}

// none stands for what an object does not have.
const none = "<none>"

// valueAt returns what a path finds in an object.
func valueAt(path *jsonpath.JSONPath, object map[string]any) string {
	results, err := path.FindResults(object)
	if err != nil {
		return none
	}
	var values []string
	for _, result := range results {
		for _, v := range result {
			if v.IsValid() && v.CanInterface() && v.Interface() != nil {
				values = append(values, fmt.Sprint(v.Interface()))
			}
		}
	}
	if len(values) == 0 {
		return none
	}
	return strings.Join(values, ",")
}

// listed is a node as a path sees it: an object with its kind and metadata. Nothing
// else was read.
func listed(n graph.Node) (map[string]any, error) {
	object := &metav1.PartialObjectMetadata{ObjectMeta: n.Object().Metadata()}
	object.SetGroupVersionKind(n.Identity().Resource.GroupVersionKind())
	return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
}

// flat is a list of objects without the order of a tree, and without missing owners.
type flat struct {
	nodes   []graph.Node
	objects []map[string]any
}

// flatten lists the nodes of a tree in its order, or by what sortBy finds in them.
func flattened(forest graph.Forest, sortBy *jsonpath.JSONPath) (*flat, error) {
	f := &flat{}
	for n := range forest.Placed() {
		if n.Virtual() {
			continue
		}
		object, err := listed(n)
		if err != nil {
			return nil, err
		}
		f.nodes, f.objects = append(f.nodes, n), append(f.objects, object)
	}
	if sortBy == nil {
		return f, nil
	}
	keys, order := make([]string, len(f.nodes)), make([]int, len(f.nodes))
	for i := range f.objects {
		keys[i], order[i] = valueAt(sortBy, f.objects[i]), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareValues(keys[a], keys[b]) })
	sorted := &flat{}
	for _, i := range order {
		sorted.nodes, sorted.objects = append(sorted.nodes, f.nodes[i]), append(sorted.objects, f.objects[i])
	}
	return sorted, nil
}

// compareValues orders what objects do not have first, then numbers by their size, and
// all else by its letters, as times are written to be.
func compareValues(a, b string) int {
	if a == none || b == none {
		return cmp.Compare(btoi(a != none), btoi(b != none))
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// writeColumns writes a table with the columns, as kubectl get does.
func writeColumns(w io.Writer, style render.Style, columns []userColumn, headers bool, f *flat) error {
	var names []string
	for _, c := range columns {
		names = append(names, c.header)
	}
	var rows [][]string
	for _, object := range f.objects {
		var values []string
		for _, c := range columns {
			values = append(values, valueAt(c.value, object))
		}
		rows = append(rows, values)
	}
	return render.Columns(w, style, names, headers, rows)
}
