// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/jsonpath"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/draw"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// maxStatuses is the number of printed nodes up to which --status=auto asks
// for READY and STATUS, a request for each.
const maxStatuses = 500

// treeOptions are what the command line of tree says.
type treeOptions struct {
	*globals
	targets
	owners, dependents, both bool
	depth                    int
	scope                    string
	types, excludeTypes      []string
	status                   string
	isolated                 bool
	watch                    bool
	noHeaders, showLabels    bool
	labelColumns             []string
	sortBy                   string
	sortPath                 *jsonpath.JSONPath // nil for the order of the tree
	columns                  []userColumn
	several                  several
	output                   output[*treeAnswer]
}

const treeLong = `Show what owns what, as the garbage collector sees it.

For named objects the tree shows both directions: the owners above and
everything that depends on them below; --owners or --dependents shows one.
Without arguments it shows every object of the namespace (-A: of the cluster)
that owns something or is owned.

Columns: REFERENCE is the state of the owner reference to the object above:
Solid, Dangling, WaitingForDependentsDeletion or Unknown, with the reason;
BLOCKS is its blockOwnerDeletion ("-" when unset). An owner that only
references name is virtual. An object with several owners is shown once, under
its controller; DETAILS names the others.

A namespaced owner can only have dependents in its own namespace, so only that
one is read. --scope=cluster reads everything, and so finds references from
other namespaces that will be treated as dangling.

` + exitCodeHelp

// treeExample has NAME where the program's name goes.
const treeExample = `  # What owns and what depends on a Deployment
  NAME tree deployment/web

  # Everything in a namespace that owns or is owned
  NAME tree -n shop

  # The owners of a pod, and nothing else
  NAME tree pod/web-5d4f8c7b9-abcde --owners

  # Only ReplicaSets and Pods, two levels deep
  NAME tree deployment/web --depth=2 --types=replicasets.apps,pods

  # A flat list, the oldest first
  NAME tree -n shop -o custom-columns=KIND:.kind,OBJECT:.metadata.name --sort-by=.metadata.creationTimestamp

  # A picture
  NAME tree deployment/web -o dot | dot -Tsvg > web.svg`

func newTree(g *globals) *cobra.Command {
	o := &treeOptions{globals: g}
	cmd := &cobra.Command{
		Use:               "tree [TYPE NAME | TYPE/NAME ... | TYPE] [-l SELECTOR] [-f FILE]",
		Short:             "Show what owns what, with the state of every owner reference",
		Long:              treeLong,
		Example:           g.example(treeExample),
		ValidArgsFunction: g.completeObjects,
		RunE:              runs(o, &o.args),
	}
	flags := cmd.Flags()
	o.addTargetFlags(flags)
	flags.BoolVar(&o.owners, "owners", false, "Show owners only")
	flags.BoolVar(&o.dependents, "dependents", false, "Show dependents only")
	flags.BoolVar(&o.both, "both", false, "Show owners and dependents (the default for named objects)")
	flags.IntVar(&o.depth, "depth", -1, "Levels of dependents to show below the named objects; -1 shows all")
	flags.StringVar(&o.scope, "scope", "auto", `Where to look for dependents: "auto" (the namespace of a namespaced object) or "cluster"`)
	flags.StringSliceVar(&o.types, "types", nil, "Show only these types and what leads to them: globs on kind, resource or resource.group")
	flags.StringSliceVar(&o.excludeTypes, "exclude-types", nil, "Do not show these types unless they lead to others")
	flags.StringVar(&o.status, "status", "auto",
		fmt.Sprintf(`Ask for READY and STATUS: "auto" (up to %d objects), "always" or "never"`, maxStatuses))
	flags.BoolVar(&o.isolated, "isolated", false, "Without arguments: show objects that neither own nor are owned, too")
	o.output = newOutput(
		func(a *treeAnswer) runtime.Object { return render.NewGraph(a.graph.Snapshot(), a.forest) },
		format[*treeAnswer]{"", o.writeTree(false)},
		format[*treeAnswer]{"wide", o.writeTree(true)},
		format[*treeAnswer]{"name", o.writeNames},
		format[*treeAnswer]{columnsFormat, o.writeColumns},
		format[*treeAnswer]{columnsFileFormat, o.writeColumns},
		format[*treeAnswer]{"dot", func(w io.Writer, _ render.Style, a *treeAnswer) error {
			return draw.DOT(w, draw.Ownership(a.selection))
		}},
	)
	o.output.addFlags(g, cmd)
	o.several.addFlags(g, cmd)
	flags.BoolVarP(&o.watch, "watch", "w", false, "Draw the tree again when something in it changes")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Leave the line with the names of the columns out")
	flags.BoolVar(&o.showLabels, "show-labels", false, "Add a column with all labels")
	flags.StringSliceVarP(&o.labelColumns, "label-columns", "L", nil, "Add columns with these labels, separated by commas")
	flags.StringVar(&o.sortBy, "sort-by", "", "Order -o name and -o custom-columns by this JSONPath, as .metadata.creationTimestamp")
	cmd.MarkFlagsMutuallyExclusive("owners", "dependents", "both")
	g.completeValues(cmd, map[string][]string{
		"scope": {"auto", "cluster"}, "status": {"auto", "always", "never"},
	})
	g.completeTypes(cmd, "types", "exclude-types")
	return cmd
}

func (o *treeOptions) validate() error {
	if err := o.validateTargets(); err != nil {
		return err
	}
	if _, err := o.style(o.Out); err != nil {
		return err
	}
	for _, pattern := range slices.Concat(o.types, o.excludeTypes) {
		if _, err := path.Match(pattern, ""); err != nil {
			return usageError{fmt.Errorf("invalid type pattern %q: %w", pattern, err)}
		}
	}
	switch {
	case o.scope != "auto" && o.scope != "cluster":
		return usageError{fmt.Errorf(`invalid --scope %q: must be "auto" or "cluster"`, o.scope)}
	case !slices.Contains([]string{"auto", "always", "never"}, o.status):
		return usageError{fmt.Errorf(`invalid --status %q: must be "auto", "always" or "never"`, o.status)}
	case o.depth < -1:
		return usageError{errors.New("--depth must not be less than -1")}
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return usageError{fmt.Errorf("invalid --selector: %w", err)}
	}
	return cmp.Or(o.validateColumns(), o.several.validate(o.globals, o.output.name == "" && !o.watch), o.output.validate(o.globals))
}

// validateColumns reads what is said of columns and of the order.
func (o *treeOptions) validateColumns() (err error) {
	if o.output.name, o.columns, err = columnsOf(o.output.name); err != nil {
		return err
	}
	isText := o.output.isText()
	isFlat := o.output.name == "name" || len(o.columns) > 0
	switch {
	case o.sortBy != "" && !isFlat:
		return usageError{errors.New("--sort-by orders a flat list: it requires -o name or -o custom-columns")}
	case (o.showLabels || len(o.labelColumns) > 0) && !isText:
		return usageError{errors.New("--show-labels and --label-columns add to the tree: they do not go with another -o than wide")}
	case o.watch && len(o.from) > 0:
		return usageError{errors.New("--watch does not go together with --from: nothing happens in a file")}
	case o.watch && !isText && !isFlat:
		return usageError{fmt.Errorf("--watch does not go together with -o %s", o.output.name)}
	case o.watch && (o.owners || o.fromFiles() && slices.Contains(o.targets.files.Filenames, "-")):
		return usageError{errors.New("--watch cannot be used with --owners, which lists nothing that could be watched, or with -f -")}
	}
	if o.sortBy != "" {
		o.sortPath, err = pathOf(o.sortBy)
	}
	return err
}

func (o *treeOptions) run(ctx context.Context) error {
	if o.watch {
		return o.follow(ctx)
	}
	if o.several.given() {
		return o.several.ask(ctx, o.globals, render.TreeColumns, o.standing)
	}
	s, err := o.connect(ctx, o.pageSize)
	if err != nil {
		return err
	}
	named, failed, err := o.found(ctx, s, o.ErrOut)
	if err != nil || o.given() && len(named) == 0 {
		return err
	}
	g, err := o.read(ctx, s, named)
	if err != nil {
		return err
	}
	snapshot := g.Snapshot()
	selection, err := o.selection(s, g, named)
	if err != nil {
		return err
	}
	if selection.Nodes.Len() == 0 && !o.given() {
		namespace := s.namespace
		if o.allNamespaces {
			namespace = ""
		}
		if err := o.emptyHanded(ctx, s, snapshot, namespace); err != nil {
			return err
		}
	}
	if err := o.print(ctx, s, g, selection); err != nil {
		return err
	}
	if err := o.finish(s, snapshot); err != nil {
		return errors.Join(failed, err)
	}
	return failed
}

// standing is the tree of one of several clusters.
func (o *treeOptions) standing(ctx context.Context, there *globals) (render.Standing, error) {
	in := *o
	in.globals = there
	s, err := in.connect(ctx, in.pageSize)
	if err != nil {
		return render.Standing{}, err
	}
	named, failed, err := in.found(ctx, s, in.ErrOut)
	if err != nil || in.given() && len(named) == 0 {
		return render.Standing{}, cmp.Or(err, failed)
	}
	g, err := in.read(ctx, s, named)
	if err != nil {
		return render.Standing{}, err
	}
	selection, err := in.selection(s, g, named)
	if err != nil {
		return render.Standing{}, err
	}
	return render.TreeStanding(selection, in.statuses(ctx, s, selection)), errors.Join(failed, in.finish(s, g.Snapshot()))
}

// read reads what the answer needs. For the owners of a few objects no lists
// are needed, as long as every owner is where the references say: what lists
// would add is what is wrong with the others.
func (o *treeOptions) read(ctx context.Context, s *session, named []graph.Object) (*graph.Graph, error) {
	scope := o.snapshotScope(s, named)
	scope.OwnersOnly = o.owners && o.scope == "auto" && len(named) > 0 && len(named) <= maxOwnerReads
	if (o.given() || o.selector == "") && !o.showLabels && len(o.columns) == 0 && o.sortBy == "" {
		scope.Labels = append([]string{}, o.labelColumns...)
	}
	snapshot, err := s.reader.Snapshot(ctx, scope, named...)
	if err != nil {
		return nil, err
	}
	g := graph.New(snapshot)
	if !scope.OwnersOnly || snapshot.Complete() && everyOwnerFound(g) {
		return g, nil
	}
	scope.OwnersOnly = false
	if snapshot, err = s.reader.Snapshot(ctx, scope, named...); err != nil {
		return nil, err
	}
	return graph.New(snapshot), nil
}

// snapshotScope derives what must be read from what was asked for: dependents
// of a namespaced object are in its namespace, those of any other anywhere.
func (o *treeOptions) snapshotScope(s *session, named []graph.Object) cluster.Scope {
	if o.scope == "cluster" || o.allNamespaces {
		return cluster.Scope{}
	}
	if len(named) == 0 {
		return cluster.Scope{Namespace: s.namespace}
	}
	for _, n := range named {
		if n.Namespace == "" || n.Namespace != named[0].Namespace {
			return cluster.Scope{}
		}
	}
	return cluster.Scope{Namespace: named[0].Namespace}
}

// selection decides which nodes are shown.
func (o *treeOptions) selection(s *session, g *graph.Graph, named []graph.Object) (graph.Selection, error) {
	nodes, err := o.nodesIn(g, named)
	if err != nil {
		return graph.Selection{}, err
	}
	var sel graph.Selection
	switch {
	case !o.given() && o.selector == "":
		sel = o.everything(g, s)
	case o.owners:
		sel = graph.SelectOwners(nodes...)
	case o.dependents:
		sel = graph.SelectDependents(o.depth, nodes...)
	default:
		sel = graph.SelectBoth(o.depth, nodes...)
	}
	if len(o.types) == 0 && len(o.excludeTypes) == 0 {
		return sel, nil
	}
	return sel.Filter(o.matches), nil
}

// everything selects what owns or is owned, and with --isolated the rest.
func (o *treeOptions) everything(g *graph.Graph, s *session) graph.Selection {
	if o.scope == "cluster" && !o.allNamespaces {
		return o.namespaceInCluster(g, s.namespace)
	}
	count := 0
	for n := range g.Nodes() {
		if o.isRoot(n) {
			count++
		}
	}
	roots := make([]graph.Node, 0, count)
	for n := range g.Nodes() {
		if o.isRoot(n) {
			roots = append(roots, n)
		}
	}
	for _, cycle := range g.Cycles() {
		roots = append(roots, cycle[0])
	}
	sel := graph.SelectDependents(o.depth, roots...)
	sel.Named = nil
	return sel
}

// isRoot reports whether a tree of everything begins with the node, cycles apart.
func (o *treeOptions) isRoot(n graph.Node) bool {
	return !n.HasOwners() && (n.HasDependents() || o.isolated)
}

// namespaceInCluster selects what owns or is owned in the namespace, with what
// is connected to it elsewhere.
func (o *treeOptions) namespaceInCluster(g *graph.Graph, namespace string) graph.Selection {
	var nodes []graph.Node
	for n := range g.Nodes() {
		if !n.Virtual() && n.Namespace() == namespace && (o.isolated || n.HasDependents() || n.HasOwners()) {
			nodes = append(nodes, n)
		}
	}
	sel := graph.SelectBoth(o.depth, nodes...)
	sel.Named = nil
	return sel
}

// matches reports whether --types and --exclude-types let a node be printed.
func (o *treeOptions) matches(n graph.Node) bool {
	resource := n.Identity().Resource
	names := []string{
		strings.ToLower(resource.Kind), resource.Resource,
		resource.GroupResource().String(), strings.ToLower(resource.Kind) + "." + resource.Group,
	}
	match := func(pattern string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			ok, _ := path.Match(strings.ToLower(pattern), name)
			return ok
		})
	}
	return (len(o.types) == 0 || slices.ContainsFunc(o.types, match)) && !slices.ContainsFunc(o.excludeTypes, match)
}

// treeAnswer is what a tree is drawn of.
type treeAnswer struct {
	ctx       context.Context // for READY and STATUS, which are asked for when all else is known
	session   *session
	graph     *graph.Graph
	selection graph.Selection
	forest    graph.Forest
}

// print writes the answer in the format asked for.
func (o *treeOptions) print(ctx context.Context, s *session, g *graph.Graph, sel graph.Selection) error {
	return o.output.print(o.globals, &treeAnswer{ctx, s, g, sel, sel.Forest()})
}

// writeTree returns the function that draws a tree as text.
func (o *treeOptions) writeTree(wide bool) func(io.Writer, render.Style, *treeAnswer) error {
	return func(w io.Writer, style render.Style, a *treeAnswer) error {
		if len(a.forest.Roots) == 0 {
			o.nothingShown(o.ErrOut)
			return nil
		}
		return o.table(wide, style, a).Write(w, a.forest)
	}
}

// table returns what draws a tree as text.
func (o *treeOptions) table(wide bool, style render.Style, a *treeAnswer) *render.Tree {
	return &render.Tree{
		Style: style, Where: o.where, Wide: wide, NoHeaders: o.noHeaders, ShowLabels: o.showLabels, LabelColumns: o.labelColumns,
		Now: a.session.now(), Named: graph.NewSet(a.selection.Named...), Statuses: o.statuses(a.ctx, a.session, a.selection),
	}
}

// writeNames writes the objects as kubectl's -o name does, in the order asked for.
func (o *treeOptions) writeNames(w io.Writer, _ render.Style, a *treeAnswer) error {
	if o.sortPath == nil {
		return render.Names(w, a.forest)
	}
	f, err := flattened(a.forest, o.sortPath)
	if err != nil {
		return err
	}
	return render.NodeNames(w, slices.Values(f.nodes))
}

// writeColumns writes the columns that were asked for.
func (o *treeOptions) writeColumns(w io.Writer, style render.Style, a *treeAnswer) error {
	f, err := flattened(a.forest, o.sortPath)
	if err != nil || len(f.nodes) == 0 {
		return err
	}
	return writeColumns(w, style, o.columns, !o.noHeaders, f)
}

// statuses asks for READY and STATUS of the printed objects.
func (o *treeOptions) statuses(ctx context.Context, s *session, sel graph.Selection) map[types.UID]render.Status {
	if o.status == "never" {
		return nil
	}
	if o.status == "auto" && sel.Nodes.Len() > maxStatuses {
		fmt.Fprintf(o.ErrOut, "READY and STATUS are not shown for more than %d objects; --status=always asks for them.\n", maxStatuses)
		return nil
	}
	var objects []*graph.Object
	for _, n := range sel.Nodes.Sorted() {
		if !n.Virtual() {
			objects = append(objects, n.Object())
		}
	}
	found, failures := s.reader.Statuses(ctx, objects)
	for _, resource := range slices.Sorted(maps.Keys(failures)) {
		fmt.Fprintf(o.ErrOut, "warning: could not read the status of %s: %s\n", resource, render.Line(failures[resource].Error()))
	}
	statuses := map[types.UID]render.Status{}
	for uid, status := range found {
		statuses[uid] = render.Status(status)
	}
	return statuses
}
