// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// asker asks about a cluster. Without answers nothing may be asked.
func asker(t *testing.T, cluster string) (*admission.Asker, []graph.Node, *evidence.Reader) {
	t.Helper()
	world := explaintest.Parse(t, cluster)
	g := world.Graph()
	reader := evidence.New(t.Context(), evidence.Source{Cluster: world, Graph: g, Events: world.Events, Now: explaintest.Now})
	finder := controllers.New(reader, controllers.NewWorkloads(t.Context(), world), finalizers.Builtin(), func() []evidence.Fact { return nil })
	var prober admission.Prober
	if len(world.Answers) > 0 {
		prober = world
	}
	var held []graph.Node
	for n := range g.Nodes() {
		if n.HasFinalizer("example.com/x") {
			held = append(held, n)
		}
	}
	return admission.New(t.Context(), prober, reader, finder), held, reader
}

const held = "ConfigMap/s/a finalizers=example.com/x\n"

// What a refusal says is told apart by the words of the API server.
func TestTryRemoval(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   answer.Kind
		name   string
	}{
		{"kept", answer.KeepsFinalizer, ""},
		{`500 failed calling webhook "w.example.com": no endpoints`, answer.WebhookFailed, "w.example.com"},
		{`403 admission webhook "w.example.com" denied the request: no`, answer.WebhookDenied, "w.example.com"},
		{`422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, answer.PolicyDenied, "p"},
		{`403 configmaps "a" is forbidden: User "u" cannot patch resource`, answer.NoAnswer, ""},
		{`403 configmaps "a" is forbidden: quota`, answer.Refused, ""},
		{`422 spec.size: must be positive`, answer.Invalid, ""},
		{`422 metadata.uid: changed`, answer.NoAnswer, ""},
		{`500 unable to transform key "x"`, answer.Undecodable, ""},
		{`500 conversion webhook for example.com/v1, Kind=Widget failed`, answer.ConversionFailed, ""},
		{`the connection was lost`, answer.NoAnswer, ""},
	} {
		t.Run(c.answer, func(t *testing.T) {
			a, nodes, _ := asker(t, held+"answer PATCH ConfigMap/s/a "+c.answer)
			if got := a.TryRemoval(nodes[0], "example.com/x"); got.Kind != c.want || got.Name != c.name {
				t.Errorf("got %d %q, want %d %q", got.Kind, got.Name, c.want, c.name)
			}
		})
	}
}

// Who may not ask gets no answer, and that is none: nothing is known to be against
// the write.
func TestNobodyIsAsked(t *testing.T) {
	a, nodes, _ := asker(t, held)
	if got := a.TryDelete(nodes[0], ""); got.Kind != answer.NoAnswer || !got.OK() {
		t.Errorf("got %+v", got)
	}
}

// Many objects do not use up the probes of a run, and what was not asked is said.
func TestProbesAreFew(t *testing.T) {
	var cluster strings.Builder
	for i := range 100 {
		fmt.Fprintf(&cluster, "ConfigMap/s/a%d finalizers=example.com/x\n", i)
	}
	a, nodes, reader := asker(t, cluster.String()+"answer PATCH * 403 quota")
	refused := 0
	for _, n := range nodes {
		if r := a.TryRemoval(n, "example.com/x"); r.Kind == answer.Refused {
			refused++
		}
	}
	if unread := reader.Unread(); refused != 10 || len(unread) != 1 || !strings.Contains(unread[0], "10 were asked about") {
		t.Errorf("%d asked about, and said of the others: %q", refused, unread)
	}
}

// Without a probe, a webhook that must allow the write and that nothing serves stands
// for its answer; one whose conditions decide does not.
func TestDeadWebhook(t *testing.T) {
	const hook = `ValidatingWebhookConfiguration/c {"webhooks":[{"name":"w.example.com","failurePolicy":%q,"clientConfig":{"service":{"namespace":"x","name":"gone"}},"rules":[{"operations":["UPDATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]%s}]}`
	for _, c := range []struct {
		policy, more, operation string
		want                    bool
	}{
		{"Fail", "", "UPDATE", true},
		{"Fail", "", "DELETE", false},
		{"Ignore", "", "UPDATE", false},
		{"Fail", `,"matchConditions":[{"name":"n","expression":"true"}]`, "UPDATE", false},
		{"Fail", `,"namespaceSelector":{"matchLabels":{"a":"b"}}`, "UPDATE", false},
	} {
		a, nodes, _ := asker(t, held+fmt.Sprintf(hook, c.policy, c.more))
		found, uninstalled := false, true
		for _, s := range a.DeadWebhooks(nodes[0], c.operation, "") {
			found, uninstalled = true, uninstalled && s.Uninstalled
		}
		if found != c.want || !uninstalled {
			t.Errorf("%+v: found %v, uninstalled %v", c, found, uninstalled)
		}
	}
}
