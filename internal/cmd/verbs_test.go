// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/testworld"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// TestVerbs: each verb is sent, said, has a command and is in the schemas. What is not played in memory is not modelled there
// (simulator.Server.Do), which is safe.
func TestVerbs(t *testing.T) {
	const taint = "key=value:NoExecute"
	of := func(kind, apiVersion, namespace, name string) graph.Identity {
		w := testworld.World{Types: testworld.Served()}
		resource, err := w.Type(kind, apiVersion)
		if err != nil {
			t.Fatal(err)
		}
		return graph.Identity{Resource: *resource, Namespace: namespace, Name: name, UID: "u"}
	}
	web, node, namespace := of("Deployment", "apps/v1", "s", "web"), of("Node", "v1", "", "n"), of("Namespace", "v1", "", "s")
	at := "/apis/apps/v1/namespaces/s/deployments"
	samples := map[remedy.Verb]struct {
		op      remedy.Op
		request string // that makes it; empty for none
		only    bool   // it is only what takes another change back
	}{
		remedy.Delete:   {op: remedy.DeleteOf(web, metav1.DeleteOptions{}), request: "DELETE " + at + "/web"},
		remedy.Patch:    {op: remedy.PatchOf(web, remedy.Remove("/metadata/finalizers/0")), request: "PATCH " + at + "/web"},
		remedy.Scale:    {op: remedy.ScaleOf(web, remedy.Replicas{Wanted: 1}), request: "PATCH " + at + "/web"},
		remedy.Restart:  {op: remedy.Op{Verb: remedy.Restart, Object: web}, request: "PATCH " + at + "/web"},
		remedy.Resume:   {op: remedy.Op{Verb: remedy.Resume, Object: web}, request: "PATCH " + at + "/web"},
		remedy.Annotate: {op: remedy.Op{Verb: remedy.Annotate, Object: web, Value: "a"}, request: "PATCH " + at + "/web"},
		remedy.Create:   {op: remedy.Op{Verb: remedy.Create, Object: namespace}, request: "POST /api/v1/namespaces"},
		remedy.Restore:  {op: remedy.Op{Verb: remedy.Restore, Object: web, Manifest: map[string]any{}}, request: "POST " + at, only: true},
		remedy.Finalize: {op: remedy.Op{Verb: remedy.Finalize, Object: namespace, Value: "a"}, request: "PUT /api/v1/namespaces/s/finalize"},
		remedy.Taint:    {op: remedy.TaintOf(node, taint), request: "PUT /api/v1/nodes/n"},
		remedy.Untaint:  {op: *remedy.TaintOf(node, taint).Back, request: "PUT /api/v1/nodes/n", only: true},
		remedy.Collect:  {op: remedy.Op{Verb: remedy.Collect, Object: namespace}},
	}
	request, taints := "", "[]"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method != http.MethodGet:
			request = r.Method + " " + r.URL.Path
			fmt.Fprint(w, "{}")
		case strings.Contains(r.URL.Path, "nodes"):
			fmt.Fprintf(w, `{"kind":"Node","apiVersion":"v1","metadata":{"uid":"u"},"spec":{"taints":%s}}`, taints)
		default:
			fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"uid":"u"},"spec":{"finalizers":["a"]}}`)
		}
	}))
	t.Cleanup(server.Close)
	sender, err := cluster.NewSender(&rest.Config{Host: server.URL}, &cluster.Stats{}, remedy.FieldManager, false)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile("../../docs/schema/unstickplan.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range verbs(t) {
		sample := samples[verb]
		if sample.op.Verb != verb || !sample.op.Complete() {
			t.Errorf("%s: there is no change of it in this test that has all that it needs", verb)
			continue
		}
		request = ""
		if taints = "[]"; verb == remedy.Untaint {
			taints = `[{"key":"key","value":"value","effect":"NoExecute"}]`
		}
		if err := sender.Do(t.Context(), &sample.op); request != sample.request || err != nil && sample.request != "" {
			t.Errorf("%s: sent as %q, want %q: %v", verb, request, sample.request, err)
		}
		if render.Change(&sample.op) == "" || sample.op.Command(remedy.Programs{Kubectl: "kubectl", Plugin: "kubectl gc"}) == "" {
			t.Errorf("%s: says %q and has the command %q", verb, render.Change(&sample.op), sample.op.Command(remedy.Programs{Kubectl: "kubectl"}))
		}
		if !sample.only && !strings.Contains(string(schema), strconv.Quote(string(verb))) {
			t.Errorf("%s is not in the schema of plans", verb)
		}
	}
}

// verbs reads the constants of the type from their declaration.
func verbs(t *testing.T) (verbs []remedy.Verb) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../pkg/remedy/op.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if of, named := spec.Type.(*ast.Ident); named && of.Name == "Verb" {
			for _, value := range spec.Values {
				verb, err := strconv.Unquote(value.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				verbs = append(verbs, remedy.Verb(verb))
			}
		}
		return true
	})
	if len(verbs) == 0 {
		t.Fatal("no verbs found")
	}
	return verbs
}
