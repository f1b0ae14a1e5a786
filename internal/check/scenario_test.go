// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kubectl-gc/kubectl-gc/internal/check"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/scenarios"
	"github.com/kubectl-gc/kubectl-gc/internal/testworld"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// TestScenarios runs the scenarios in testdata/*.txt. A case says what was read
// from a cluster, as those of pkg/graph do, and then what is found:
//
//	== title of the case
//	Secret/shop/a uid=s                       an object; Kind/name when cluster-scoped
//	Pod/shop/p uid=p owner=v1:Secret:a:s!     with owners, apiVersion:Kind:name:uid; ! blocks
//	Pod/shop/q uid=q deleting finalizers=x,y  being deleted; with finalizers
//	unlisted secrets                          could not be listed
//	only shop                                 objects of this namespace alone are checked
//	only p q                                  (or of several words: those with these UIDs)
//	partial                                   not everything was to be read
//	rules owner-cycle                         only findings of these rules
//	--                                        the findings follow
//	error owner-absent Pod/shop/p[0]: message
//	    the same in a few words (outcome)
//	    circle: the members of one
//	    effect: command                       the remedy
//	2 objects, 0 unchecked
func TestScenarios(t *testing.T) { scenarios.Run(t, answer) }

// answer returns the case with what is found.
func answer(t *testing.T, body string) string {
	given, _, ok := strings.Cut(body, "\n--\n")
	if !ok {
		t.Fatal("no line --")
	}
	s := newCluster()
	var options check.Options
	var rules []string
	for line := range strings.Lines(given) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0][0] == '#':
		case words[0] == "only":
			options.Select = only(words[1:])
		case words[0] == "partial":
			options.Partial = true
		case words[0] == "rules":
			rules = words[1:]
		case words[0] == "unlisted":
			s.unlist(words[1])
		default:
			if err := s.add(words); err != nil {
				t.Fatalf("%s: %v", strings.TrimSpace(line), err)
			}
		}
	}
	options.Kubectl, options.Plugin = "kubectl", "kubectl gc"
	report := check.Check(graph.New(s.snapshot()), options).Filtered(rules, check.Info)
	readable(t, report)
	found := text(report)
	return given + "\n--\n" + strings.TrimRight(found, "\n") + body[len(strings.TrimRight(body, "\n")):]
}

// readable fails unless the text of a report fits a terminal and ends with the next step.
func readable(t *testing.T, report *check.Report) {
	t.Helper()
	var out strings.Builder
	if err := render.CheckText(&out, render.Style{Width: 80}, nil, report); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("a line is too long: %s", line)
		}
	}
	if len(report.Findings) > 0 && !strings.HasSuffix(out.String(), "-o wide\n") {
		t.Errorf("the text does not end with the next step:\n%s", out.String())
	}
	for _, f := range report.Findings {
		if f.Problem == "" {
			t.Errorf("%s of %s has no problem", f.Rule, f.Object)
		}
	}
}

func only(words []string) func(graph.Node) bool {
	return func(n graph.Node) bool {
		if len(words) == 1 {
			return n.Namespace() == words[0]
		}
		for _, word := range words {
			if string(n.UID()) == word {
				return true
			}
		}
		return false
	}
}

var outcomes = map[check.Outcome]string{check.Never: " (never)", check.Unsure: " (unsure)", check.Orphaned: " (orphaned)", check.Deleted: " (deleted)"}

// text writes a report.
func text(r *check.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s %s[%d]: %s\n", f.Severity, f.Rule, f.Object, f.Index, f.Message())
		fmt.Fprintf(&b, "    %s\n", strings.TrimSpace(f.Problem+outcomes[f.Outcome]))
		if f.Members != nil {
			fmt.Fprintf(&b, "    circle:")
			for _, m := range f.Members {
				fmt.Fprintf(&b, " %s", m)
			}
			b.WriteByte('\n')
		}
		if f.Remedy != nil {
			fmt.Fprintf(&b, "    %s: %s\n", f.Remedy.Effect, f.Remedy.Command)
		}
	}
	fmt.Fprintf(&b, "%d objects, %d unchecked\n", r.Objects, r.Unchecked)
	return b.String()
}

// servedTypes are the types of the test cluster.
const servedTypes = `
v1             Pod                     pods                     namespaced
v1             Secret                  secrets                  namespaced
v1             ConfigMap               configmaps               namespaced
v1             Node                    nodes                    cluster
apps/v1        Deployment              deployments              namespaced
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers namespaced
example.com/v1 Widget                  widgets                  namespaced
example.com/v1 Gizmo                   gizmos                   cluster
`

var served = typesOf(servedTypes)

func typesOf(table string) []*graph.Resource {
	var all []*graph.Resource
	for _, r := range testworld.Types(table) {
		all = append(all, &r)
	}
	return all
}

// cluster is what was read.
type cluster struct {
	testworld.World
	unlisted map[string]bool // by resource
}

func newCluster() *cluster {
	return &cluster{World: testworld.World{Types: testworld.Types(servedTypes)}, unlisted: map[string]bool{}}
}

func (c *cluster) unlist(resource string) { c.unlisted[resource] = true }

// add understands "Kind/namespace/name uid=...".
func (c *cluster) add(words []string) error {
	_, err := c.Add(words, nil)
	return err
}

// snapshot returns what was read. An older version of autoscalers is served, too.
func (c *cluster) snapshot() *graph.Snapshot {
	older := testworld.Types("autoscaling/v1 HorizontalPodAutoscaler horizontalpodautoscalers namespaced")
	s := &graph.Snapshot{Mapper: testworld.Mapper(append(older, c.Types...))}
	for _, r := range c.Types {
		if c.unlisted[r.Resource] {
			s.MarkUnlisted(graph.Unlisted{GroupVersionResource: r.GroupVersionResource, Reason: graph.Forbidden})
		} else {
			s.MarkListed(r.GroupResource(), "", "")
		}
	}
	for _, o := range c.Objects {
		if !c.unlisted[o.Resource.Resource] {
			s.Add(o)
		}
	}
	return s
}
