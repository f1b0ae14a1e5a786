// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// targets are the objects that a command is about, named as kubectl takes
// them.
type targets struct {
	args          []string
	files         resource.FilenameOptions
	selector      string
	fieldSelector string
	allNamespaces bool
	pageSize      int64
}

func (t *targets) addTargetFlags(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&t.files.Filenames, "filename", "f", nil, "Take the objects from a file, a directory or a URL")
	flags.BoolVarP(&t.files.Recursive, "recursive", "R", false, "Follow the directory of -f into its subdirectories")
	flags.StringVarP(&t.files.Kustomize, "kustomize", "k", "", "Take the objects from a kustomization directory")
	flags.StringVarP(&t.selector, "selector", "l", "", "Take the objects that match the label selector")
	flags.StringVar(&t.fieldSelector, "field-selector", "", "Take the objects of the named types that match the field selector")
	flags.BoolVarP(&t.allNamespaces, "all-namespaces", "A", false, "Take objects from all namespaces")
	addPageSize(flags, &t.pageSize)
}

// addPageSize adds the flag for the size of pages.
func addPageSize(flags *pflag.FlagSet, size *int64) {
	flags.Int64Var(size, "chunk-size", cluster.AutoPageSize, "Number of objects to ask for at once; 0 asks for all. "+
		"Without the flag, a list is read at once if the server has it in its cache, otherwise in pages of 500 and more")
	flags.Lookup("chunk-size").DefValue = strconv.Itoa(cluster.DefaultPageSize)
}

func validatePageSize(size int64) error {
	if size < 0 && size != cluster.AutoPageSize {
		return usageError{errors.New("--chunk-size must not be negative")}
	}
	return nil
}

// fromFiles reports whether files say which objects are meant.
func (t *targets) fromFiles() bool { return len(t.files.Filenames) > 0 || t.files.Kustomize != "" }

// given reports whether types, objects or files were named.
func (t *targets) given() bool {
	return len(t.args) > 0 || t.fromFiles()
}

// named reports whether the arguments name objects, as TYPE/NAME or TYPE NAME,
// rather than types alone.
func (t *targets) named() bool {
	return len(t.args) > 1 || len(t.args) == 1 && strings.Contains(t.args[0], "/")
}

// validateTargets finds combinations of flags that make no sense.
func (t *targets) validateTargets() error {
	switch {
	case t.fieldSelector != "" && (len(t.args) == 0 || t.named()):
		return usageError{errors.New("--field-selector needs a type and no name")}
	}
	return cmp.Or(validateNames(t.args), validatePageSize(t.pageSize))
}

// validateNames finds arguments of which some, and not all, are TYPE/NAME. The
// resource builder finds them as well, and then speaks of a command that there is
// not (cli-runtime/pkg/resource/builder.go, hasCombinedTypeArgs).
func validateNames(args []string) error {
	combined := slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "/") })
	if !combined {
		return nil
	}
	for _, arg := range args {
		kind, name, _ := strings.Cut(arg, "/")
		if kind == "" || name == "" || strings.Contains(name, "/") || strings.Contains(arg, ",") {
			return usageError{fmt.Errorf("%q is not TYPE/NAME: where one argument has that form, all must have it", arg)}
		}
	}
	return nil
}

// resolve finds the objects. Those that were found are returned beside the
// errors of the others.
func (t *targets) resolve(ctx context.Context, s *session) ([]graph.Object, error) {
	var found []graph.Object
	var errs []error
	err := t.builder(s).Do().Visit(func(info *resource.Info, err error) error {
		stated := err == nil && t.fromFiles() && info.Namespace != ""
		if err == nil && t.fromFiles() {
			err = t.place(s, info)
		}
		if err == nil {
			var objects []graph.Object
			objects, err = t.objects(ctx, s, info, stated)
			found = append(found, objects...)
		}
		if err != nil {
			errs = append(errs, err)
		}
		return ctx.Err()
	})
	if err != nil {
		errs = append(errs, hintTypes(err, s.reader.Resources(), nil))
	}
	return unique(found), utilerrors.NewAggregate(errs)
}

// builder returns what finds the objects. Those of files come with the namespace
// that the file states, and no other.
func (t *targets) builder(s *session) *resource.Builder {
	chunk := t.pageSize
	if chunk == cluster.AutoPageSize {
		chunk = cluster.DefaultPageSize
	}
	builder := resource.NewBuilder(s).Unstructured().ContinueOnError().
		NamespaceParam(s.namespace).AllNamespaces(t.allNamespaces).
		FilenameParam(false, &t.files). // place requires the namespace
		LabelSelectorParam(t.selector).FieldSelectorParam(t.fieldSelector).
		RequestChunksOf(chunk).RequireObject(false).
		ResourceTypeOrNameArgs(true, t.args...)
	switch {
	case t.fromFiles():
		return builder.Flatten() // a file may hold lists
	case t.named():
		return builder.DefaultNamespace()
	}
	return builder.DefaultNamespace().TransformRequests(func(r *rest.Request) {
		r.SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
	})
}

// nodesIn returns the nodes that the arguments, or a selector alone, name.
func (t *targets) nodesIn(g *graph.Graph, named []graph.Object) ([]graph.Node, error) {
	var nodes []graph.Node
	for _, object := range nodesOf(named) {
		if n, ok := g.Node(object.UID); ok {
			nodes = append(nodes, n)
		}
	}
	if t.given() || t.selector == "" {
		return nodes, nil
	}
	selector, err := labels.Parse(t.selector)
	if err != nil {
		return nil, err
	}
	for n := range g.Nodes() {
		if !n.Virtual() && selector.Matches(labels.Set(n.Object().Labels)) {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// found returns the objects that the arguments lead to, none where none are given, and what of them could not be read.
// The error ends the command, and so does it that arguments lead to none.
func (t *targets) found(ctx context.Context, s *session, w io.Writer) (named []graph.Object, failed, err error) {
	if !t.given() {
		return nil, nil, nil
	}
	named, failed = t.resolve(ctx, s)
	switch {
	case len(named) > 0:
		return named, failed, nil
	case failed != nil:
		return nil, nil, failed
	}
	where := " in namespace " + s.namespace
	if t.allNamespaces {
		where = ""
	}
	fmt.Fprintf(w, "No resources found%s.\n", where)
	return nil, nil, nil
}

// nothingShown says why an answer has no objects.
func (t *targets) nothingShown(w io.Writer) {
	if t.selector != "" {
		fmt.Fprintln(w, "No object here matches the selector.")
		return
	}
	fmt.Fprintln(w, "No object here owns another or is owned.")
}

// place puts an object of a file that states no namespace into the current one.
// A namespace of the command line is a guard: an object that states another is
// refused, not looked for in either (cli-runtime, pkg/resource,
// RequireNamespace).
func (t *targets) place(s *session, info *resource.Info) error {
	switch {
	case !info.Namespaced() || info.Namespace == s.namespace:
	case info.Namespace == "":
		info.Namespace = s.namespace
	case s.enforced && !t.allNamespaces:
		return hintedError{
			fmt.Errorf("the namespace from the provided object %q does not match the namespace %q", info.Namespace, s.namespace),
			fmt.Sprintf("--namespace=%s names that of the object; without -n each object is looked up in the namespace that its file states",
				info.Namespace),
		}
	}
	return nil
}

// objects returns what the builder found: the items of a list that the server
// sent, or one named object, whose metadata is still to be read. A file that states
// a UID names that object alone. stated says that a file has its namespace.
func (t *targets) objects(ctx context.Context, s *session, info *resource.Info, stated bool) ([]graph.Object, error) {
	kind := s.reader.Resource(info.Mapping)
	if list, ok := info.Object.(runtime.Unstructured); ok && list.IsList() {
		var objects []graph.Object
		err := meta.EachListItem(list, func(item runtime.Object) error {
			accessor, err := meta.Accessor(item)
			if err == nil {
				objects = append(objects, graph.NewObject(kind, accessor))
			}
			return err
		})
		return objects, err
	}
	uid := statedUID(info)
	o, err := s.reader.Get(ctx, *kind, info.Namespace, info.Name)
	if err != nil {
		err = fmt.Errorf("reading %s/%s: %w", kind.Resource, info.Name, err)
		if answer.NoSuchObject(err, kind.GroupResource(), info.Name) {
			err = missingError{err, kind, info.Namespace, info.Name, uid, stated, alike(s.reader.Resources(), kind)}
		} else {
			err = unreadError{err, identified(kind, info.Namespace, info.Name)}
		}
		return nil, err
	}
	if o.Name != info.Name || kind.Namespaced && o.Namespace != info.Namespace {
		return nil, fmt.Errorf("reading %s/%s: the server answers with %s", kind.Resource, info.Name, o.Identity())
	}
	if uid != "" && uid != o.UID {
		err := hintedError{anotherUID(o.Identity(), info.Source), "without its uid, the file means whatever has the name"}
		return nil, missingError{err, kind, info.Namespace, info.Name, uid, stated, nil}
	}
	return []graph.Object{o}, nil
}

// statedUID is the UID that a file states, empty when there is none.
func statedUID(info *resource.Info) types.UID {
	if o, err := meta.Accessor(info.Object); err == nil {
		return o.GetUID()
	}
	return ""
}

// anotherUID is the error about an object that is not the one of a file, though it has its name.
func anotherUID(id graph.Identity, file string) error {
	if file == "STDIN" { // cli-runtime/pkg/resource/visitor.go, constSTDINstr
		file = calledFile("-")
	}
	return fmt.Errorf("%s has another UID than %s says: it was created again", render.NamesOf([]graph.Identity{id}), file)
}

// missingError says which named object does not exist.
type missingError struct {
	error
	kind            *graph.Resource
	namespace, name string
	// uid is that of a file, empty when none states it.
	uid types.UID
	// stated: its namespace is that of a file, where -n names no other.
	stated bool
	// alike are the types of other groups that have the same plural.
	alike []string
}

// alike returns the types of other groups that have the same plural, as TYPE.GROUP.
func alike(resources []*graph.Resource, kind *graph.Resource) []string {
	var types []string
	for _, r := range resources {
		if r.Resource == kind.Resource && r.Group != kind.Group {
			types = append(types, r.GroupResource().String())
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// missing returns the errors about objects that do not exist.
func missing(err error) []missingError {
	var all []missingError
	for _, e := range flatten(err) {
		var m missingError
		if errors.As(e, &m) {
			all = append(all, m)
		}
	}
	return all
}

// Unwrap returns the server's error.
func (e missingError) Unwrap() error { return e.error }

// names reports whether an object that does not exist any more is the one that was named.
func (e missingError) names(id graph.Identity) bool {
	return id.Resource.GroupResource() == e.kind.GroupResource() && id.Name == e.name && id.Namespace == e.namespace &&
		(e.uid == "" || e.uid == id.UID)
}

// hint points at the namespace, and at the types that have the same name.
func (e missingError) hint() string {
	var parts []string
	switch {
	case !e.kind.Namespaced:
	case e.stated:
		parts = append(parts, fmt.Sprintf("its file says namespace %q", e.namespace))
	default:
		parts = append(parts, fmt.Sprintf("the namespace is %q; -n names another", e.namespace))
	}
	if len(e.alike) > 0 {
		parts = append(parts, fmt.Sprintf("%s is in several API groups: this is %s, and %s", e.kind.Resource, e.kind.GroupResource(),
			plurally(len(e.alike), "another type is ", "other types are ")+strings.Join(e.alike, ", ")))
	}
	return strings.Join(parts, "; ")
}

// plurally chooses between two words.
func plurally(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

var namespaces = graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}

// missingNamespace returns an error when the namespace at hand does not exist.
// That it could not be read is none: the lists of its objects were.
func missingNamespace(ctx context.Context, s *session) error {
	if _, err := s.reader.Get(ctx, namespaces, "", s.namespace); !answer.NoSuchObject(err, namespaces.GroupResource(), s.namespace) {
		return nil
	}
	return hintedError{
		fmt.Errorf("the namespace %q does not exist", s.namespace),
		"-n names another one, and -A means all",
	}
}

// unique drops objects that were named twice: by the same resource, in whatever
// version, and the same namespace and name. Their UIDs do not say that: some
// aggregated APIs show several objects under one.
func unique(objects []graph.Object) []graph.Object {
	type place struct {
		resource        schema.GroupResource
		namespace, name string
	}
	return distinct(objects, func(o *graph.Object) place { return place{o.Resource.GroupResource(), o.Namespace, o.Name} })
}

// nodesOf drops objects that are the same node of a graph: another group serves
// them, too.
func nodesOf(objects []graph.Object) []graph.Object {
	return distinct(objects, func(o *graph.Object) types.UID { return o.UID })
}

// distinct keeps the first of the objects that have the same key.
func distinct[K comparable](objects []graph.Object, key func(*graph.Object) K) []graph.Object {
	seen := map[K]bool{}
	var kept []graph.Object
	for i := range objects {
		if k := key(&objects[i]); !seen[k] {
			seen[k] = true
			kept = append(kept, objects[i])
		}
	}
	return kept
}

// maxOwnerReads is the number of named objects up to which their owners are
// read one by one instead of listed.
const maxOwnerReads = 20

// everyOwnerFound reports whether all references lead to the objects that they
// state.
func everyOwnerFound(g *graph.Graph) bool {
	for n := range g.Nodes() {
		for _, ref := range n.Owners() {
			if ref.State != graph.Solid && ref.State != graph.WaitingForDependentsDeletion {
				return false
			}
		}
	}
	return true
}
