// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/draw"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// readable is the number of objects up to which a picture shows each of them.
const readable = 100

// graphOptions are what the command line of graph says.
type graphOptions struct {
	*globals
	targets
	scope    string
	full     bool
	isolated bool
	open     bool
	output   output[*graphAnswer]
}

const graphLong = `Draw the ownership graph: of the namespace, with -A of the cluster, or of the
named objects with everything that is connected to them, owners and dependents,
and theirs.

Formats: dot (for Graphviz), svg (an image), html (a page to search and to fold,
which needs nothing else), mermaid (for web pages that draw it), graphml (for
programs that analyse graphs), and the documents of tree.

Without -o, on a terminal, the page is written to a file, whose name is printed;
--open opens it. Elsewhere, without -o, it is dot.

An edge leads from a dependent to its owner; its colour is the state of the
reference. Terminating objects and virtual owners have their own colours. The
objects of a namespace are in a frame.

A picture of more than 100 objects is a summary: equal dependents of one owner
are one node, as in "Pod x120". --full draws all of them. Documents and graphml
have all objects always.

` + exitCodeHelp

// graphExample has NAME where the program's name goes.
const graphExample = `  # Look at the namespace
  NAME graph --open

  # The same page, to a file of your choice
  NAME graph -o html > graph.html

  # What is connected to a Deployment, as an image
  NAME graph deployment/web -o svg > web.svg

  # The whole cluster, every object
  NAME graph -A --full -o html > cluster.html

  # A bitmap
  NAME graph -n shop -o dot | dot -Tpng > shop.png`

func newGraph(g *globals) *cobra.Command {
	o := &graphOptions{globals: g}
	cmd := &cobra.Command{
		Use:               "graph [TYPE NAME | TYPE/NAME ... | TYPE] [-l SELECTOR] [-f FILE]",
		Short:             "Draw the ownership graph, or a part of it",
		Long:              graphLong,
		Example:           g.example(graphExample),
		ValidArgsFunction: g.completeObjects,
		RunE:              runs(o, &o.args),
	}
	flags := cmd.Flags()
	o.addTargetFlags(flags)
	flags.StringVar(&o.scope, "scope", "auto",
		`Where to look for what is connected: "auto" (the namespace of a namespaced object, unless an owner is in none) or "cluster"`)
	flags.BoolVar(&o.full, "full", false, "Draw every object, however many there are")
	flags.BoolVar(&o.isolated, "isolated", false, "Without arguments: draw objects that neither own nor are owned, too")
	flags.BoolVar(&o.open, "open", false, "Write the page to a file and open it in the browser")
	o.output = newOutput(
		func(a *graphAnswer) runtime.Object { return render.NewGraph(a.graph.Snapshot(), a.selection.Forest()) },
		format[*graphAnswer]{"", o.draws(draw.DOT)},
		format[*graphAnswer]{"dot", o.draws(draw.DOT)},
		format[*graphAnswer]{"svg", o.draws(draw.SVG)},
		format[*graphAnswer]{"html", o.draws(draw.HTML)},
		format[*graphAnswer]{"mermaid", o.writeMermaid},
		format[*graphAnswer]{"graphml", func(w io.Writer, _ render.Style, a *graphAnswer) error {
			return draw.GraphML(w, draw.Ownership(a.selection))
		}},
	)
	o.output.addFlags(g, cmd)
	g.completeValues(cmd, map[string][]string{"scope": {"auto", "cluster"}})
	return cmd
}

func (o *graphOptions) validate() error {
	if err := o.validateTargets(); err != nil {
		return err
	}
	if o.scope != "auto" && o.scope != "cluster" {
		return usageError{fmt.Errorf(`invalid --scope %q: must be "auto" or "cluster"`, o.scope)}
	}
	if o.isolated && o.given() {
		return usageError{errors.New("--isolated takes no arguments: named objects are always drawn")}
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return usageError{fmt.Errorf("invalid --selector: %w", err)}
	}
	return cmp.Or(o.validatePage(), o.output.validate(o.globals))
}

// graphAnswer is what a picture is made of.
type graphAnswer struct {
	graph     *graph.Graph
	selection graph.Selection
	// title names the picture.
	title string
}

func (o *graphOptions) run(ctx context.Context) error {
	s, err := o.connect(ctx, o.pageSize)
	if err != nil {
		return err
	}
	named, failed, err := o.found(ctx, s, o.ErrOut)
	if err != nil || o.given() && len(named) == 0 {
		return err
	}
	a, err := o.answer(ctx, s, named)
	if err != nil {
		return err
	}
	if a.selection.Nodes.Len() == 0 {
		namespace := s.namespace
		if o.allNamespaces {
			namespace = ""
		}
		if err := o.emptyHanded(ctx, s, a.graph.Snapshot(), namespace); err != nil {
			return err
		}
		o.nothingShown(o.ErrOut)
	}
	if o.wantsPage() {
		err = o.writePage(ctx, a)
	} else {
		err = o.output.print(o.globals, a)
	}
	if err != nil {
		return err
	}
	return errors.Join(failed, o.finish(s, a.graph.Snapshot()))
}

// answer reads the cluster, first the namespace alone when that may be enough.
// What is connected to objects of a namespace is there, too, unless something in
// no namespace connects it, whose dependents may be anywhere.
func (o *graphOptions) answer(ctx context.Context, s *session, named []graph.Object) (*graphAnswer, error) {
	scope := o.snapshotScope(s, named)
	for {
		snapshot, err := s.reader.Snapshot(ctx, scope, named...)
		if err != nil {
			return nil, err
		}
		a := &graphAnswer{graph: graph.New(snapshot)}
		if a.selection, err = o.selection(s, a.graph, named); err != nil {
			return nil, err
		}
		a.title = o.title(s, a.selection.Named)
		if scope.Namespace == "" || len(a.selection.Named) == 0 || !leaves(a.selection.Nodes) {
			return a, nil
		}
		scope.Namespace = ""
	}
}

// leaves reports whether an object that is in no namespace is among the nodes.
func leaves(nodes graph.Set) bool {
	for n := range nodes.All() {
		if n.Namespace() == "" && !n.Virtual() {
			return true
		}
	}
	return false
}

// snapshotScope is the namespace of what was asked for, or the cluster.
func (o *graphOptions) snapshotScope(s *session, named []graph.Object) cluster.Scope {
	scope := cluster.Scope{Namespace: s.namespace}
	if len(named) > 0 {
		scope.Namespace = named[0].Namespace
	}
	elsewhere := func(n graph.Object) bool { return n.Namespace != scope.Namespace }
	if o.scope == "cluster" || o.allNamespaces || slices.ContainsFunc(named, elsewhere) {
		scope.Namespace = ""
	}
	if o.given() || o.selector == "" {
		scope.Labels = []string{}
	}
	return scope
}

// selection decides what is drawn: what is connected to the named objects, or to
// those of the namespace.
func (o *graphOptions) selection(s *session, g *graph.Graph, named []graph.Object) (graph.Selection, error) {
	nodes, err := o.nodesIn(g, named)
	if err != nil {
		return graph.Selection{}, err
	}
	if o.given() || o.selector != "" {
		return graph.Selection{Nodes: graph.Component(nodes...), Named: nodes}, nil
	}
	for n := range g.Nodes() {
		here := o.allNamespaces || n.Namespace() == s.namespace
		if here && (o.isolated && !n.Virtual() || n.HasOwners() || n.HasDependents()) {
			nodes = append(nodes, n)
		}
	}
	if !o.allNamespaces {
		return graph.Selection{Nodes: graph.Component(nodes...)}, nil
	}
	return graph.Selection{Nodes: graph.NewSet(nodes...)}, nil
}

// title says what the picture shows.
func (o *graphOptions) title(s *session, named []graph.Node) string {
	switch {
	case len(named) > 0:
		ids := make([]graph.Identity, len(named))
		for i, n := range named {
			ids[i] = n.Identity()
		}
		return "Ownership of " + render.NamesOf(ids)
	case o.allNamespaces:
		return "Ownership in the cluster"
	}
	return "Ownership in namespace " + s.namespace
}

// draws returns the format of a way to draw.
func (o *graphOptions) draws(write func(io.Writer, *draw.Picture) error) func(io.Writer, render.Style, *graphAnswer) error {
	return func(w io.Writer, _ render.Style, a *graphAnswer) error {
		return write(w, o.picture(a))
	}
}

// picture makes the picture of an answer, a summary of it when it is large.
func (o *graphOptions) picture(a *graphAnswer) *draw.Picture {
	p := draw.Ownership(a.selection)
	p.Title = a.title
	objects, references := len(p.Nodes), len(p.Edges)
	if objects > readable && !o.full {
		p = p.Summary()
	}
	p.Subtitle = counted(objects, "object") + o.where.In() + ", " + counted(references, "reference")
	if drawn := len(p.Nodes); drawn < objects {
		p.Subtitle += fmt.Sprintf("; equal dependents of one owner are drawn as one node, %d in all", drawn)
		fmt.Fprintf(o.ErrOut, "%d objects are drawn as %d nodes; --full draws each.\n", objects, drawn)
	}
	p.Notes = incomplete(a.graph.Snapshot())
	return p
}

// incomplete says in a picture that something could not be read: it may leave the
// terminal and its warnings behind.
func incomplete(s *graph.Snapshot) []string {
	if s.Complete() {
		return nil
	}
	var types []string
	for _, u := range s.Unlisted() {
		name := u.GroupResource().String()
		if u.Resource == "" {
			name = u.GroupVersion().String()
		}
		if !slices.Contains(types, name) {
			types = append(types, name)
		}
	}
	const most = 8
	text := strings.Join(types[:min(len(types), most)], ", ")
	if more := len(types) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return []string{"Incomplete: could not read " + text + "."}
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// writeMermaid warns of what Mermaid refuses unless it is told otherwise.
func (o *graphOptions) writeMermaid(w io.Writer, _ render.Style, a *graphAnswer) error {
	p := o.picture(a)
	var text strings.Builder
	if err := draw.Mermaid(&text, p); err != nil {
		return err
	}
	if len(p.Edges) > draw.MermaidEdges || text.Len() > draw.MermaidBytes {
		fmt.Fprintf(o.ErrOut,
			"warning: with %d edges in %d bytes this is more than Mermaid draws by default (maxEdges %d, maxTextSize %d); svg and html have no limit\n",
			len(p.Edges), text.Len(), draw.MermaidEdges, draw.MermaidBytes)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
