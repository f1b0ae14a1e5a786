// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// reviewer asks about a cluster. Without answers nothing may be asked.
func reviewer(t *testing.T, cluster string) (*admission.Reviewer, []graph.Node, *evidence.Reader) {
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
			a, nodes, _ := reviewer(t, held+"answer PATCH ConfigMap/s/a "+c.answer)
			if got := a.TryRemoval(nodes[0], "example.com/x"); got.Kind != c.want || got.Name != c.name {
				t.Errorf("got %d %q, want %d %q", got.Kind, got.Name, c.want, c.name)
			}
		})
	}
}

// Who may not ask gets no answer, and that is none: nothing is known to be against
// the write.
func TestNobodyIsAsked(t *testing.T) {
	a, nodes, _ := reviewer(t, held)
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
	a, nodes, reader := reviewer(t, cluster.String()+"answer PATCH * 403 quota")
	refused := 0
	for _, n := range nodes {
		if r := a.TryRemoval(n, "example.com/x"); r.Kind == answer.Refused {
			refused++
		}
	}
	if unread := reader.Unread(); refused != 10 || len(unread) != 1 || !strings.Contains(unread[0].String(), "10 were asked about") {
		t.Errorf("%d asked about, and said of the others: %q", refused, unread)
	}
}

// prober counts what it is asked, and answers when it may.
type prober struct {
	admission.Prober
	mu   sync.Mutex
	sent []string
	may  chan struct{}
}

func (p *prober) TryPatch(ctx context.Context, resource schema.GroupVersionResource, namespace, name, subresource string, patch []byte) (*unstructured.Unstructured, error) {
	p.mu.Lock()
	p.sent = append(p.sent, name)
	p.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.may:
	}
	return p.Prober.TryPatch(ctx, resource, namespace, name, subresource, patch)
}

// count returns how many probes were sent, and whether one was twice.
func (p *prober) count() (n int, twice bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := slices.Compact(slices.Sorted(slices.Values(p.sent)))
	return len(p.sent), len(names) != len(p.sent)
}

// expecting returns an reviewer with its objects, some in each namespace, and what it asks.
func expecting(t *testing.T, objects, some int) (*admission.Reviewer, []graph.Node, *prober) {
	t.Helper()
	var cluster strings.Builder
	for i := range objects {
		fmt.Fprintf(&cluster, "ConfigMap/s%02d/a%02d finalizers=example.com/x\n", i/some, i)
	}
	world := explaintest.Parse(t, cluster.String()+fmt.Sprintf("answer PATCH ConfigMap/s%02d/a01 403 quota", 1/some))
	g := world.Graph()
	reader := evidence.New(t.Context(), evidence.Source{Cluster: world, Graph: g, Events: world.Events, Now: explaintest.Now})
	finder := controllers.New(reader, controllers.NewWorkloads(t.Context(), world), finalizers.Builtin(), func() []evidence.Fact { return nil })
	p := &prober{Prober: world, may: make(chan struct{})}
	nodes := slices.DeleteFunc(slices.SortedFunc(g.Nodes(), graph.Node.Compare), func(n graph.Node) bool { return len(n.Finalizers()) == 0 })
	return admission.New(t.Context(), p, reader, finder), nodes, p
}

func finalizersOf(nodes []graph.Node) iter.Seq2[graph.Node, string] {
	return func(yield func(graph.Node, string) bool) {
		for _, n := range nodes {
			for _, finalizer := range n.Finalizers() {
				if !yield(n, finalizer) {
					return
				}
			}
		}
	}
}

// Probes are sent before they are asked for, few at a time and each once; each gets the answer
// about its own object, and as many count as without.
func TestExpect(t *testing.T) { synctest.Test(t, testExpect) }

func testExpect(t *testing.T) {
	a, nodes, p := expecting(t, 60, 1)
	done := a.Expect(finalizersOf(nodes))
	synctest.Wait() // until each that is sent hangs, and no more are
	if n, _ := p.count(); n != 8 {
		t.Errorf("%d sent before any was asked for", n)
	}
	close(p.may)
	// Where each is asked for when it was to be expected, no more are sent than count.
	if answered, sent := removeAll(t, a, nodes, p); answered != 40 || sent != 40 {
		t.Errorf("%d answered, %d sent: %q", answered, sent, p.sent)
	}
	done()

	a, nodes, p = expecting(t, 60, 1)
	close(p.may)
	done = a.Expect(finalizersOf(nodes))
	slices.Reverse(nodes)
	if answered, sent := removeAll(t, a, nodes, p); answered != 40 || sent > 48 {
		t.Errorf("%d answered, %d sent: %q", answered, sent, p.sent)
	}
	done()
}

// removeAll asks about all objects, and checks that the first 40 get their own answer.
func removeAll(t *testing.T, a *admission.Reviewer, nodes []graph.Node, p *prober) (answered, sent int) {
	t.Helper()
	for _, n := range nodes {
		want := answer.Accepted
		if answered == 40 {
			want = answer.NoAnswer
		} else if n.Name() == "a01" {
			want = answer.Refused
		}
		r := a.TryRemoval(n, "example.com/x")
		if r.Kind != want || r.About != n.Identity() {
			t.Errorf("%s: %+v", n.Name(), r)
		}
		if r.Kind != answer.NoAnswer {
			answered++
		}
	}
	sent, twice := p.count()
	if twice {
		t.Errorf("one was sent twice: %q", p.sent)
	}
	return answered, sent
}

// Who asks again is answered anew, what is alike is asked about twice, and what nobody asks
// for is taken back.
func TestExpectInVain(t *testing.T) { synctest.Test(t, testExpectInVain) }

func testExpectInVain(t *testing.T) {
	a, nodes, p := expecting(t, 5, 4)
	done := a.Expect(finalizersOf(slices.Concat(nodes, nodes)))
	synctest.Wait() // two of the first four, and the last, hang
	done()
	close(p.may)
	for _, n := range nodes {
		for range 2 {
			if r := a.TryRemoval(n, "example.com/x"); r.OK() == (n.Name() == "a01") {
				t.Errorf("%s: %+v", n.Name(), r)
			}
		}
	}
	if n, _ := p.count(); n != 3+10 {
		t.Errorf("%d sent: %q", n, p.sent)
	}
}

// Without a probe, a webhook that must allow the write and that nothing serves stands
// for its answer; one whose conditions decide does not.
func TestDeadWebhook(t *testing.T) {
	const hook = `ValidatingWebhookConfiguration/c {"webhooks":[{"name":"w.example.com","failurePolicy":%q,"clientConfig":{"service":{"namespace":"x","name":"gone"}},"rules":[{"operations":["UPDATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]%s}]}`
	const old = `{"operations":["UPDATE"],"apiGroups":[""],"apiVersions":["v1beta1"],"resources":["configmaps"]}`
	const custom = `{"operations":["UPDATE"],"apiGroups":["example.com"],"apiVersions":["v1beta1"],"resources":["widgets"]}`
	for _, c := range []struct {
		policy, more, operation string
		want                    bool
	}{
		{"Fail", "", "UPDATE", true},
		{"Fail", "", "DELETE", false},
		{"Fail", `,"matchPolicy":"Exact"`, "UPDATE", true},
		{"Fail", `,"matchPolicy":"Equivalent","rules":[` + old + `]`, "UPDATE", false}, // the server has no such version
		{"Fail", `,"matchPolicy":"Equivalent","rules":[` + custom + `]`, "UPDATE", true},
		{"Fail", `,"matchPolicy":"Exact","rules":[` + old + `]`, "UPDATE", false},
		{"Ignore", "", "UPDATE", false},
		{"Fail", `,"matchConditions":[{"name":"n","expression":"true"}]`, "UPDATE", false},
		{"Fail", `,"namespaceSelector":{"matchLabels":{"a":"b"}}`, "UPDATE", false},
	} {
		world := held
		if strings.Contains(c.more, "widgets") {
			world = "Widget/s/w finalizers=example.com/x\n"
		}
		a, nodes, _ := reviewer(t, world+fmt.Sprintf(hook, c.policy, c.more))
		found, uninstalled := false, true
		for _, s := range a.DeadWebhooks(nodes[0], c.operation, "") {
			found, uninstalled = true, uninstalled && s.Uninstalled
		}
		if found != c.want || !uninstalled {
			t.Errorf("%+v: found %v, uninstalled %v", c, found, uninstalled)
		}
	}
}

// TestVersions compares rules with the versions of a definition, and with that in which an object is deleted.
func TestVersions(t *testing.T) {
	const world = `CustomResourceDefinition/widgets.example.com {"spec":{"versions":[{"name":"v1","served":true},{"name":"v1beta1","served":false}]}}
Widget/s/w uid=w finalizers=example.com/x
ValidatingWebhookConfiguration/c {"webhooks":[{"name":"w.example.com","failurePolicy":"Fail","matchPolicy":%q,"clientConfig":{"service":{"namespace":"x","name":"gone"}},"rules":[{"operations":["DELETE"],"apiGroups":["example.com"],"apiVersions":[%q],"resources":["widgets"]}]}]}`
	for _, c := range []struct {
		policy, rule, deleted string
		want                  bool
	}{
		{"Equivalent", "v1beta1", "", true}, {"Equivalent", "v9", "", false},
		{"Exact", "v1", "", true}, {"Exact", "v1beta1", "", false},
		{"Exact", "v1", "v1beta1", false}, {"Exact", "v1beta1", "v1beta1", true},
	} {
		a, nodes, _ := reviewer(t, fmt.Sprintf(world, c.policy, c.rule))
		a.Versions = map[types.UID]string{"w": c.deleted}
		found := false
		for range a.DeadWebhooks(nodes[0], "DELETE", "") {
			found = true
		}
		if found != c.want {
			t.Errorf("%+v: %v", c, found)
		}
	}
}

// Rules of a policy are about one version alone if its matchPolicy, or that of its binding, is Exact.
func TestExactPolicy(t *testing.T) {
	const of = `"resourceRules":[{"operations":["DELETE"],"apiGroups":[""],"apiVersions":[%q],"resources":["configmaps"]}]`
	for _, c := range []struct {
		policy, binding, want string
	}{
		{`"matchPolicy":"Exact",` + fmt.Sprintf(of, "v1"), `"matchPolicy":"Exact"`, "p"},
		{`"matchPolicy":"Exact",` + fmt.Sprintf(of, "v2"), ``, ""},
		{fmt.Sprintf(of, "v1"), `"matchPolicy":"Exact",` + fmt.Sprintf(of, "v1"), "p"},
		{fmt.Sprintf(of, "v2"), ``, ""}, // the server has no such version
		{fmt.Sprintf(of, "v2"), `"matchPolicy":"Exact",` + fmt.Sprintf(of, "v2"), ""},
	} {
		a, nodes, _ := reviewer(t, held+fmt.Sprintf(`ValidatingAdmissionPolicy/p {"spec":{"matchConstraints":{%s},"validations":[{"expression":"false"}]}}
ValidatingAdmissionPolicyBinding/b {"spec":{"policyName":"p","matchResources":{%s},"validationActions":["Deny"]}}`, c.policy, c.binding))
		there := func(types.UID, graph.Node) (bool, bool) { return true, true }
		if got, certain := a.Deniers("DELETE", "", there)(nodes[0]); got != c.want || certain != (c.want != "") {
			t.Errorf("%+v: %q, certain %v", c, got, certain)
		}
	}
}
