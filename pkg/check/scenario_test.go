// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/scenarios"
	"github.com/kubectl-gc/kubectl-gc/pkg/check"
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
	found := text(check.Check(graph.New(s.snapshot()), options).Filtered(rules, check.Info))
	return given + "\n--\n" + strings.TrimRight(found, "\n") + body[len(strings.TrimRight(body, "\n")):]
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

// text writes a report.
func text(r *check.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s %s[%d]: %s\n", f.Severity, f.Rule, f.Object, f.Index, f.Message())
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

// served are the types of the test cluster.
var served = []*graph.Resource{
	served1("v1", "Pod", "pods", true),
	served1("v1", "Secret", "secrets", true),
	served1("v1", "ConfigMap", "configmaps", true),
	served1("v1", "Node", "nodes", false),
	served1("apps/v1", "Deployment", "deployments", true),
	served1("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true),
	served1("example.com/v1", "Widget", "widgets", true),
	served1("example.com/v1", "Gizmo", "gizmos", false),
}

func served1(groupVersion, kind, plural string, namespaced bool) *graph.Resource {
	gv, err := schema.ParseGroupVersion(groupVersion)
	if err != nil {
		panic(err)
	}
	return &graph.Resource{GroupVersionResource: gv.WithResource(plural), Kind: kind, Namespaced: namespaced}
}

// cluster is what was read.
type cluster struct {
	objects  []graph.Object
	unlisted map[string]bool // by resource
}

func newCluster() *cluster { return &cluster{unlisted: map[string]bool{}} }

func (c *cluster) unlist(resource string) { c.unlisted[resource] = true }

// add understands "Kind/namespace/name uid=...".
func (c *cluster) add(words []string) error {
	parts := strings.Split(words[0], "/")
	o := graph.Object{Name: parts[len(parts)-1]}
	if len(parts) == 3 {
		o.Namespace = parts[1]
	}
	for _, r := range served {
		if r.Kind == parts[0] && r.Namespaced == (o.Namespace != "") {
			o.Resource = r
		}
	}
	if o.Resource == nil {
		return fmt.Errorf("no type %s of this scope", parts[0])
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "uid":
			o.UID = types.UID(value)
		case "owner":
			o.OwnerReferences = append(o.OwnerReferences, parseOwner(value))
		case "deleting":
			o.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
		case "finalizers":
			o.Finalizers = strings.Split(value, ",")
		default:
			return fmt.Errorf("unknown word %q", word)
		}
	}
	c.objects = append(c.objects, o)
	return nil
}

// parseOwner understands apiVersion:Kind:name:uid, with ! behind if it blocks.
func parseOwner(s string) metav1.OwnerReference {
	s, blocks := strings.CutSuffix(s, "!")
	f := strings.Split(s, ":")
	ref := metav1.OwnerReference{APIVersion: f[0], Kind: f[1], Name: f[2], UID: types.UID(f[3])}
	if blocks {
		ref.BlockOwnerDeletion = &blocks
	}
	return ref
}

// snapshot returns what was read. An older version of autoscalers is served,
// too.
func (c *cluster) snapshot() *graph.Snapshot {
	mapper := meta.NewDefaultRESTMapper(nil)
	s := &graph.Snapshot{Mapper: mapper}
	for _, r := range served {
		scope := meta.RESTScopeRoot
		if r.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.AddSpecific(r.GroupVersionKind(), r.GroupVersionResource, r.GroupVersion().WithResource(strings.ToLower(r.Kind)), scope)
		if r.Group == "autoscaling" {
			older := schema.GroupVersion{Group: r.Group, Version: "v1"}
			mapper.AddSpecific(older.WithKind(r.Kind), older.WithResource(r.Resource), older.WithResource(strings.ToLower(r.Kind)), scope)
		}
		if c.unlisted[r.Resource] {
			s.MarkUnlisted(graph.Unlisted{GroupVersionResource: r.GroupVersionResource, Reason: graph.Forbidden})
		} else {
			s.MarkListed(r.GroupResource(), "", "")
		}
	}
	for _, o := range c.objects {
		if !c.unlisted[o.Resource.Resource] {
			s.Add(o)
		}
	}
	return s
}
