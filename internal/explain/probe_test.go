// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// named returns the objects that are not being deleted and that an answer
// names: they are asked for, too.
func (s *scenario) named(g *graph.Graph) []types.UID {
	var uids []types.UID
	for n := range g.Nodes() {
		if _, asked := s.Answers["ASK "+n.Identity().String()]; asked && !n.BeingDeleted() {
			uids = append(uids, n.Object().UID)
		}
	}
	return uids
}

const (
	held    = "ConfigMap/s/a deleted=60 finalizers=example.com/x\n"
	webhook = `{"webhooks":[{"name":"w.example.com","failurePolicy":"Fail","clientConfig":{"service":{"namespace":"x","name":"hook"}},` +
		`"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["UPDATE"],"resources":["configmaps"]}]MORE}]}` + "\n"
	denying = `answer PATCH ConfigMap/s/a 403 admission webhook "w.example.com" denied the request: no` + "\n"
	calling = `500 Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: no route` + "\n"
)

// policy is one that asks nobody who they are.
const policy = `ValidatingAdmissionPolicy/p {"spec":{"validations":[{"expression":"false"}]}}` + "\n"

func validating(more string) string {
	return "ValidatingWebhookConfiguration/w " + strings.ReplaceAll(webhook, "MORE", more)
}

// other is a mutating configuration with the same webhook, but for a detail.
func other(detail, instead string) string {
	return strings.ReplaceAll("MutatingWebhookConfiguration/m "+strings.ReplaceAll(webhook, "MORE", ""), detail, instead)
}

// TestProbesAreBounded asks about some of many objects that are alike, and says
// of no other that its write was refused.
func TestProbesAreBounded(t *testing.T) {
	var cluster strings.Builder
	cluster.WriteString(alive + policy + "answer PATCH * 422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no\n")
	for i := range 1000 {
		cluster.WriteString("ConfigMap/s/c" + strconv.Itoa(i) + " deleted=60 finalizers=example.com/x\n")
	}
	s := parse(t, cluster.String())
	report := s.report(t)
	ids := []string{}
	for _, c := range report.Causes {
		ids = append(ids, c.ID+" "+strconv.Itoa(c.Blocks))
	}
	if diff := cmp.Diff([]string{"adm-vap-deny 10", "fin-absent 1000"}, ids); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"whether a PATCH of more configmaps would be accepted: 10 were asked about"}, evidence.Gaps(report.Unread)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s.Requests > 40 {
		t.Errorf("%d requests for 1000 objects that are alike", s.Requests)
	}
}

// All namespaces of what is blocked are exempted; the words name some.
func TestManyExempted(t *testing.T) {
	var cluster strings.Builder
	cluster.WriteString(alive + validating(""))
	for i := range 12 {
		fmt.Fprintf(&cluster, "ConfigMap/s%02d/a%[1]d deleted=60 finalizers=example.com/x\nanswer PATCH ConfigMap/s%02[1]d/a%[1]d %[2]s\n", i, calling)
	}
	for _, c := range parse(t, cluster.String()).report(t).Causes {
		for _, r := range c.Remedies {
			if len(r.In) > 0 && (len(r.In) != 12 || !strings.Contains(r.Command, `"s11"`) || !strings.HasSuffix(r.Effect.String(), ", s09 and 2 more from the webhook")) {
				t.Errorf("%s in %v: %s", r.Effect, r.In, r.Command)
			} else if len(r.In) > 0 {
				return
			}
		}
	}
	t.Error("nothing is exempted")
}

// TestRemediesOfRefusals holds the guards that the commands carry.
func TestRemediesOfRefusals(t *testing.T) {
	s := parse(t, alive+held+validating(`,"namespaceSelector":{"matchLabels":{}}`)+"Service/x/hook {\"spec\":{}}\nanswer PATCH ConfigMap/s/a "+calling)
	var commands []string
	for _, r := range s.report(t).Causes[0].Remedies {
		if r.Temporary {
			commands = append(commands, r.Command)
		}
	}
	const save = "{ test -s validatingwebhookconfigurations-w-1.yaml || " +
		"kubectl get validatingwebhookconfigurations.v1.admissionregistration.k8s.io/w -o yaml > validatingwebhookconfigurations-w-1.yaml; } && " +
		"kubectl patch validatingwebhookconfigurations.v1.admissionregistration.k8s.io/w --type=json -p "
	const guard = `'[{"op":"test","path":"/metadata/uid","value":"w"},{"op":"test","path":"/webhooks/0/name","value":"w.example.com"},`
	want := []string{
		save + guard + `{"op":"add","path":"/webhooks/0/namespaceSelector/matchExpressions","value":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["s"]}]}]'`,
		save + guard + `{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]'`,
	}
	if diff := cmp.Diff(want, commands); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if slices.ContainsFunc(s.report(t).Causes[0].Remedies, func(r explain.Remedy) bool { return r.Effect.IsZero() }) {
		t.Error("a remedy does not say what it does")
	}
}

// TestProbesNameWhatWasAsked takes the answer about an object for that about
// another only where it does not depend on the object.
func TestProbesNameWhatWasAsked(t *testing.T) {
	var cluster strings.Builder
	cluster.WriteString(alive)
	for i := range 5 {
		cluster.WriteString("ConfigMap/s/c" + strconv.Itoa(i) + " deleted=60 finalizers=example.com/x\n")
	}
	all := []string{"a dry-run PATCH of ConfigMap/s/c0", "a dry-run PATCH of ConfigMap/s/c1"}
	for name, c := range map[string]struct {
		more, id string
		want     []string
	}{
		"some are invalid": {
			"answer PATCH ConfigMap/s/c0 422 spec.size: Required value\nanswer PATCH ConfigMap/s/c1 422 spec.size: Required value\n",
			"val-schema-tightened", all,
		},
		"the last is refused": {
			"answer PATCH ConfigMap/s/c4 422 spec.size: Required value\n",
			"val-schema-tightened", []string{"a dry-run PATCH of ConfigMap/s/c4"},
		},
		"a webhook that cannot be called": {
			validating("") + "answer PATCH ConfigMap/s/c0 " + calling + "answer PATCH ConfigMap/s/c1 " + calling,
			"adm-webhook-dead", all[:1],
		},
	} {
		var got []string
		blocks := 0
		for _, cause := range parse(t, cluster.String()+c.more).report(t).Causes {
			if cause.ID == c.id {
				blocks += cause.Blocks
				got = append(got, cause.Evidence[0].Source.String())
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if shared := c.id == "adm-webhook-dead"; shared && blocks != 5 || !shared && blocks != len(c.want) {
			t.Errorf("%s: %d objects are held up", name, blocks)
		}
	}
}

// TestRemediesSpareDeletions offers a condition that a DELETE, whose object is
// null, does not fail at.
func TestRemediesSpareDeletions(t *testing.T) {
	report := parse(t, alive+held+other("", "")+"answer PATCH ConfigMap/s/a kept\n").report(t)
	const want = `"expression":"object == null || !has(object.metadata.deletionTimestamp)"`
	if !slices.ContainsFunc(report.Causes[0].Remedies, func(r explain.Remedy) bool { return strings.Contains(r.Command, want) }) {
		t.Errorf("no remedy with %s: %v", want, report.Causes[0].Remedies)
	}
}

// TestRemediesStartWhatIsIdle scales up what is still scaled to nothing, and
// nothing else.
func TestRemediesStartWhatIsIdle(t *testing.T) {
	report := parse(t, alive+held+validating("")+"answer PATCH ConfigMap/s/a "+calling+`
Service/x/hook {"spec":{"selector":{"app":"h"}}}
Deployment/x/hook {"spec":{"replicas":0,"selector":{"matchLabels":{"app":"h"}},"template":{"metadata":{"labels":{"app":"h"}},"spec":{"containers":[{"name":"c"}]}}}}`).report(t)
	const want = "kubectl -n x scale deployment/hook --current-replicas=0 --replicas=1"
	if got := report.Causes[0].Remedies[0].Command; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestManyTakeNoRequestEach: what is asked beyond metadata of one of very many objects is not asked of
// each.
func TestManyTakeNoRequestEach(t *testing.T) {
	const many = 500
	for _, c := range []struct {
		name, cluster string
		each          func(i string) string
	}{
		{"claims in use, with volumes", alive + node, func(i string) string {
			return `PersistentVolumeClaim/s/c` + i + ` deleted=60 finalizers=kubernetes.io/pvc-protection {"spec":{"volumeName":"v` + i + `"},"status":{"phase":"Bound"}}
PersistentVolume/v` + i + ` {"spec":{"capacity":{"storage":"5Gi"},"persistentVolumeReclaimPolicy":"Delete"}}
Pod/s/p` + i + ` {"spec":{"nodeName":"n","volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"c` + i + `"}}]},"status":{"phase":"Running"}}
`
		}},
		{"references that lead nowhere", install + deployment(1) + pod(ready), func(i string) string {
			return `Widget/s/w` + i + ` deleted=60 finalizers=` + fin + ` {"spec":{"secretRef":{"name":"x` + i + `"}}}` + "\n"
		}},
		{"messages about what is missing", install + deployment(1) + pod(ready), func(i string) string {
			return `Widget/s/w` + i + ` deleted=700 finalizers=` + fin + ` {"status":{"conditions":[{"type":"Ready","status":"False","reason":"ReconcileError","message":"secrets \"x` + i + `\" not found","lastTransitionTime":"2026-01-02T03:00:00Z"}]}}` + "\n"
		}},
		{"classes that are used", alive, func(i string) string {
			return "GatewayClass/c" + i + " deleted=60 finalizers=gateway-exists-finalizer.gateway.networking.k8s.io\n" +
				`Gateway/s/g` + i + ` {"spec":{"gatewayClassName":"c` + i + `"}}` + "\n"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var cluster strings.Builder
			cluster.WriteString(c.cluster)
			for i := range many {
				cluster.WriteString(c.each(strconv.Itoa(i)))
			}
			s := parse(t, cluster.String())
			s.report(t)
			if s.Requests > many/2 {
				t.Errorf("%d requests for %d objects", s.Requests, many)
			}
		})
	}
}
