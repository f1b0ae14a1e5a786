// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

const finalizer = "widgets.example.com/cleanup"

// operator works, and what it works on is a Widget that nobody has deleted yet.
const operator = `
lease kube-system/kube-controller-manager 5
Node/n {"status":{"conditions":[{"type":"Ready","status":"True"}]}}
lease kube-node-lease/n 5
CustomResourceDefinition/widgets.example.com
ServiceAccount/op/widget-operator
ClusterRole/widgets {"rules":[{"apiGroups":["example.com"],"resources":["widgets"],"verbs":["update","patch"]}]}
ClusterRoleBinding/bound {"roleRef":{"kind":"ClusterRole","name":"widgets"},"subjects":[{"kind":"ServiceAccount","namespace":"op","name":"widget-operator"}]}
Deployment/op/operator {"spec":{"replicas":1,"selector":{"matchLabels":{"app":"w"}},"template":{"metadata":{"labels":{"app":"w"}},"spec":{"serviceAccountName":"widget-operator","containers":[{"name":"c","image":"x/widget-operator:v1"}]}}}}
Pod/op/operator-x {"metadata":{"labels":{"app":"w"}},"spec":{"nodeName":"n","serviceAccountName":"widget-operator"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"c","state":{"running":{}}}]}}
Widget/s/w finalizers=widgets.example.com/cleanup {"metadata":{"managedFields":[{"manager":"widget-operator","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:finalizers":{"v:\"widgets.example.com/cleanup\"":{}}}}}]}}
`

// without says how things stand about the Widget's finalizer when some objects, by
// their UIDs, are gone.
func without(t *testing.T, cluster string, gone ...types.UID) (controllers.Situation, *controllers.Answer) {
	t.Helper()
	world := explaintest.Parse(t, cluster)
	g := world.Graph()
	reader := evidence.New(t.Context(), evidence.Source{
		Cluster: world, Graph: g, Events: world.Events, Now: explaintest.Now,
		Gone: func(uid types.UID) bool { return slices.Contains(gone, uid) },
	})
	finder := controllers.New(reader, controllers.NewWorkloads(t.Context(), world), finalizers.Builtin(), func() []evidence.Fact { return nil })
	var widget graph.Node
	for n := range g.Nodes() {
		if n.Name() == "w" {
			widget = n
		}
	}
	a := finder.Find(widget, finalizer, finalizers.Metadata)
	return a.Is, a
}

// Who removes a finalizer is asked of the cluster as it is, and as it will be without
// what is about to go.
func TestFindWithoutWhatGoes(t *testing.T) {
	for _, c := range []struct {
		name string
		gone []types.UID
		want controllers.Situation
	}{
		{"as it is", nil, controllers.Served},
		{"something else goes", []types.UID{"n"}, controllers.Served},
		{"its workload goes, and its account could be used elsewhere", []types.UID{"operator", "operator-x"}, controllers.Unclear},
		{"its workload goes with its account", []types.UID{"operator", "operator-x", "widget-operator"}, controllers.NoController},
		{"its pod goes, and another comes", []types.UID{"operator-x"}, controllers.Unclear},
		{"its account goes", []types.UID{"widget-operator"}, controllers.Unserved},
		{"its rights go", []types.UID{"widgets"}, controllers.NotAllowed},
		{"the binding of its rights goes, and nothing but its name is left", []types.UID{"bound"}, controllers.Unclear},
		{"its namespace goes with all of it", []types.UID{"op", "operator", "operator-x", "widget-operator"}, controllers.NamespaceGone},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, a := without(t, operator, c.gone...); got != c.want {
				t.Errorf("got %d, want %d: %s", got, c.want, a.Why)
			}
		})
	}
}

// What cannot be read is never absent: with a gap in the view nothing is unclaimed.
func TestFindInPartialView(t *testing.T) {
	for _, gap := range []string{"unreadable deployments", "unreadable clusterroles", "unlisted leases", "unlisted namespaces", "unlisted customresourcedefinitions"} {
		t.Run(gap, func(t *testing.T) {
			if got, _ := without(t, operator+gap+"\n", "operator", "operator-x", "widget-operator"); got != controllers.Unclear {
				t.Errorf("got %d, want %d", got, controllers.Unclear)
			}
		})
	}
	if got, a := without(t, strings.Replace(operator, `"Ready","status":"True"}],"containerStatuses"`, `"Ready","status":"False"}],"containerStatuses"`, 1)); got != controllers.Unclear || !strings.Contains(a.Why.String(), "not ready") {
		t.Errorf("a pod that is not ready: got %d: %s", got, a.Why)
	}
}

// A role is not said to give more than it does.
func TestGrantsAreSaid(t *testing.T) {
	for rule, want := range map[string]string{
		`{"apiGroups":["example.com"],"resources":["widgets"],"verbs":["update","patch"]}`: "gives ServiceAccount/op/widget-operator update,patch of widgets",
		`{"apiGroups":["example.com"],"resources":["*"],"verbs":["*"]}`:                    "gives ServiceAccount/op/widget-operator all verbs of everything in example.com",
		`{"apiGroups":["","example.com"],"resources":["*"],"verbs":["patch"]}`:             "gives ServiceAccount/op/widget-operator patch of everything in the core group, example.com",
	} {
		cluster := strings.Replace(operator, `{"apiGroups":["example.com"],"resources":["widgets"],"verbs":["update","patch"]}`, rule, 1)
		_, a := without(t, cluster)
		said := func(f evidence.Fact) bool { return strings.HasSuffix(f.Value.String(), want) }
		if a.By == nil || !slices.ContainsFunc(a.By.Signs, said) {
			t.Errorf("%s is not said of %s", want, rule)
		}
	}
}
