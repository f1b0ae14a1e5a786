// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/testworld"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/scenarios"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// TestScenarios runs the scenarios in testdata/*.txt. A file holds cases; a
// case says what was read from a cluster, then asks questions:
//
//	== title of the case
//	Secret/shop/a uid=s                       an object; Kind/name when cluster-scoped
//	Pod/shop/p uid=p owner=v1:Secret:a:s!     with owners, apiVersion:Kind:name:uid and flags:
//	                                          ! blocks, ~ says that it does not, * controls
//	Pod/shop/q uid=q deleting finalizers=x,y  being deleted; with finalizers
//	Ingress/shop/i uid=i as=extensions/v1beta1+networking.k8s.io/v1
//	                                          the same object read under two apiVersions, in this order
//	unlisted secrets Forbidden                could not be listed (or: in shop, or: the one shop/a)
//	unlisted group apps/v1 DiscoveryFailed    the server could not say what is in it
//	listed-in shop secrets                    listed in these namespaces only
//	absent secrets shop/a                     a GET said NotFound
//	state p: Solid, Dangling Absent           a question with its expected answer
//
// Everything that no line speaks of was listed everywhere. The questions are in
// the table below.
func TestScenarios(t *testing.T) { scenarios.Run(t, answer) }

// questions answer for a built scenario; args follow the question's name.
var questions = map[string]func(g *graph.Graph, args []string) string{
	"state":      func(g *graph.Graph, args []string) string { return stateText(node(g, args[0])) },
	"node":       func(g *graph.Graph, args []string) string { return nodeText(node(g, args[0])) },
	"owners":     func(g *graph.Graph, args []string) string { return ownersText(node(g, args[0])) },
	"dependents": func(g *graph.Graph, args []string) string { return uids(node(g, args[0]).Dependents()) },
	"blocking":   func(g *graph.Graph, args []string) string { return uids(node(g, args[0]).BlockingDependents()) },
	"cycles":     func(g *graph.Graph, _ []string) string { return cyclesText(g) },
	"path":       func(g *graph.Graph, args []string) string { return uids(g.Path(node(g, args[0]), node(g, args[1]))) },
	"undecided":  func(g *graph.Graph, _ []string) string { return undecidedText(g.Snapshot()) },
	"complete":   func(g *graph.Graph, _ []string) string { return strconv.FormatBool(g.Snapshot().Complete()) },
	"is-at":      func(g *graph.Graph, args []string) string { return isAtText(g, args[0], args[1], args[2]) },
	"covers":     func(g *graph.Graph, args []string) string { return coversText(g.Snapshot(), args[0], args[1]) },
	"forest":     func(g *graph.Graph, args []string) string { return forestText(selectNodes(g, args).Forest()) },
}

// answer returns the case with the code's answers behind the questions.
func answer(t *testing.T, body string) string {
	lines := strings.Split(body, "\n")
	sc := newScenario()
	for _, line := range lines {
		if err := sc.add(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	g := graph.New(sc.snapshot())
	for i, line := range lines {
		question, _, _ := strings.Cut(line, ":")
		words := strings.Fields(question)
		if len(words) == 0 || questions[words[0]] == nil {
			continue
		}
		lines[i] = strings.TrimSpace(question + ": " + questions[words[0]](g, words[1:]))
	}
	return strings.Join(lines, "\n")
}

// scenario is what the lines of a case say.
type scenario struct {
	testworld.World
	unlisted []graph.Unlisted
	listedIn map[schema.GroupResource][]string // only in these namespaces
	absent   []graph.Unlisted
}

func newScenario() *scenario {
	return &scenario{World: testworld.World{Types: testworld.Types(servedTypes)}, listedIn: map[schema.GroupResource][]string{}}
}

func (sc *scenario) add(line string) error {
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(line, "#") || questions[strings.TrimSuffix(words[0], ":")] != nil {
		return nil
	}
	switch words[0] {
	case "listed-in":
		for _, resource := range words[2:] {
			gr := schema.ParseGroupResource(resource)
			sc.listedIn[gr] = append(sc.listedIn[gr], words[1])
		}
		return nil
	case "absent":
		sc.absent = append(sc.absent, unlistedObject(words[1], words[2]))
		return nil
	case "unlisted":
		return sc.addUnlisted(words[1:])
	}
	_, err := sc.Add(words, nil)
	return err
}

func unlistedObject(resource, name string) graph.Unlisted {
	u := graph.Unlisted{GroupVersionResource: schema.ParseGroupResource(resource).WithVersion(""), Name: name}
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		u.Namespace, u.Name = namespace, name
	}
	return u
}

// addUnlisted understands "group GV REASON", "RESOURCE REASON", "RESOURCE in
// NAMESPACE REASON" and "RESOURCE NAMESPACE/NAME REASON".
func (sc *scenario) addUnlisted(words []string) error {
	reason := graph.UnlistedReason(words[len(words)-1])
	u := graph.Unlisted{}
	switch {
	case words[0] == "group":
		gv, err := schema.ParseGroupVersion(words[1])
		if err != nil {
			return err
		}
		u.GroupVersionResource = gv.WithResource("")
		sc.Types = slices.DeleteFunc(sc.Types, func(r graph.Resource) bool { return r.GroupVersion() == gv })
	case len(words) == 3:
		u = unlistedObject(words[0], words[1])
	default:
		u = unlistedObject(words[0], "")
		if len(words) == 4 {
			u.Namespace = words[2]
		}
		gr := u.GroupResource()
		sc.listedIn[gr] = slices.Clone(sc.listedIn[gr]) // in no namespace, unless a line says otherwise
	}
	u.Reason = reason
	sc.unlisted = append(sc.unlisted, u)
	return nil
}

func (sc *scenario) snapshot() *graph.Snapshot {
	s := &graph.Snapshot{Mapper: testworld.Mapper(sc.Types)}
	for _, o := range sc.Objects {
		s.Add(o)
	}
	for _, r := range sc.Types {
		if _, partly := sc.listedIn[r.GroupResource()]; !partly {
			s.MarkListed(r.GroupResource(), "", "")
		}
	}
	for gr, namespaces := range sc.listedIn {
		for _, namespace := range namespaces {
			s.MarkListed(gr, namespace, "")
		}
	}
	for _, a := range sc.absent {
		s.MarkAbsent(a.GroupResource(), a.Namespace, a.Name)
	}
	for _, u := range sc.unlisted {
		s.MarkUnlisted(u)
	}
	return s
}
