// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// The answers to the questions of the scenarios: one line each, objects by UID.

func node(g *graph.Graph, uid string) graph.Node {
	n, ok := g.Node(types.UID(uid))
	if !ok {
		panic("no node " + uid)
	}
	return n
}

// uids lists nodes in the order given, "none" when there are none.
func uids(nodes []graph.Node) string {
	if len(nodes) == 0 {
		return "none"
	}
	return strings.Join(uidList(nodes), " ")
}

func uidList(nodes []graph.Node) []string {
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = string(n.Identity().UID)
	}
	return list
}

// stateText gives the state of every owner reference, in their order.
func stateText(n graph.Node) string {
	var states []string
	for _, ref := range n.Owners() {
		states = append(states, strings.TrimSpace(ref.State.String()+" "+ref.Reason.String()))
	}
	return strings.Join(states, ", ")
}

func ownersText(n graph.Node) string {
	var owners []graph.Node
	for _, ref := range n.Owners() {
		owners = append(owners, ref.Owner)
	}
	return uids(owners)
}

func nodeText(n graph.Node) string {
	words := []string{n.Identity().String(), n.Identity().Resource.GroupVersion().String()}
	for _, flag := range []struct {
		word string
		set  bool
	}{{"virtual", n.Virtual()}, {"beingDeleted", n.BeingDeleted()}, {"deletingDependents", n.DeletingDependents()}} {
		if flag.set {
			words = append(words, flag.word)
		}
	}
	return strings.Join(words, " ")
}

func cyclesText(g *graph.Graph) string {
	var cycles []string
	for _, cycle := range g.Cycles() {
		cycles = append(cycles, strings.Join(uidList(cycle), " "))
	}
	if len(cycles) == 0 {
		return "none"
	}
	return strings.Join(cycles, "; ")
}

func undecidedText(s *graph.Snapshot) string {
	var all []string
	for _, u := range s.Undecided() {
		name := u.Name
		if u.Namespace != "" {
			name = u.Namespace + "/" + name
		}
		all = append(all, u.Resource.GroupResource().String()+" "+name)
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// coversText says whether the object is known to be absent if nobody added it.
func coversText(s *graph.Snapshot, resource, name string) string {
	o := unlistedObject(resource, name)
	return strconv.FormatBool(s.Covers(o.GroupResource(), o.Namespace, o.Name))
}

// isAtText says whether a GET of the place would answer with the object.
func isAtText(g *graph.Graph, uid, resource, name string) string {
	at := unlistedObject(resource, name)
	return strconv.FormatBool(g.Snapshot().IsAt(node(g, uid).Object(), at.GroupResource(), at.Namespace, at.Name))
}

// selectNodes understands "all" and "owners|dependents|both UID ..." with the
// words depth=N and keep=KIND.
func selectNodes(g *graph.Graph, args []string) graph.Selection {
	depth, keep := -1, ""
	var named []graph.Node
	for _, arg := range args[1:] {
		if d, ok := strings.CutPrefix(arg, "depth="); ok {
			depth, _ = strconv.Atoi(d)
		} else if k, ok := strings.CutPrefix(arg, "keep="); ok {
			keep = k
		} else {
			named = append(named, node(g, arg))
		}
	}
	var sel graph.Selection
	switch args[0] {
	case "all":
		sel = graph.Selection{}
		for n := range g.Nodes() {
			sel.Nodes.Add(n)
		}
	case "owners":
		sel = graph.SelectOwners(named...)
	case "dependents":
		sel = graph.SelectDependents(depth, named...)
	case "both":
		sel = graph.SelectBoth(depth, named...)
	}
	if keep == "" {
		return sel
	}
	return sel.Filter(func(n graph.Node) bool { return n.Identity().Resource.Kind == keep })
}

// branch is a line of a forest with those below it.
type branch struct {
	*graph.Branch
	Dependents []*branch
}

// trees puts the lines of a forest below one another.
func trees(forest graph.Forest) []*branch {
	top := &branch{}
	way := []*branch{top} // to the last line
	for b := range forest.Branches() {
		way = way[:b.Depth+1]
		above := way[b.Depth]
		way = append(way, &branch{Branch: b})
		above.Dependents = append(above.Dependents, way[b.Depth+1])
	}
	return top.Dependents
}

// forestText writes a branch as owner(dependent dependent), a line that closes
// a cycle as ^node, and dependents that the depth cut off as +number.
func forestText(forest graph.Forest) string {
	var texts []string
	for _, b := range trees(forest) {
		texts = append(texts, branchText(b))
	}
	return cmp.Or(strings.Join(texts, " "), "none")
}

func branchText(b *branch) string {
	text := string(b.Node.Identity().UID)
	if b.Cycle {
		text = "^" + text
	}
	var below []string
	for _, d := range b.Dependents {
		below = append(below, branchText(d))
	}
	if b.Hidden > 0 {
		below = append(below, fmt.Sprintf("+%d", b.Hidden))
	}
	if len(below) == 0 {
		return text
	}
	return text + "(" + strings.Join(below, " ") + ")"
}

// dump describes a graph completely and in an order of its own.
func dump(g *graph.Graph) []string {
	var lines []string
	for n := range g.Nodes() {
		dependents := slices.Sorted(slices.Values(uidList(n.Dependents())))
		blocking := slices.Sorted(slices.Values(uidList(n.BlockingDependents())))
		lines = append(lines, fmt.Sprintf("%s %s owners=%s states=%s dependents=%v blocking=%v",
			n.Identity().UID, nodeText(n), ownersText(n), stateText(n), dependents, blocking))
	}
	slices.Sort(lines)
	return append(lines, "cycles: "+cyclesText(g), "undecided: "+undecidedText(g.Snapshot()))
}
