// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
)

const autoscaler = `HorizontalPodAutoscaler/op/hpa {"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"widget-operator"},"minReplicas":3}}
`

var downscaled = strings.Replace(deployment(0), `"metadata":{`, `"metadata":{"annotations":{"downscaler/original-replicas":"2"},`, 1)

// seenLater is a webhook that rejects what is asked about two objects, of which a controller, if there is one, is seen to fail with the second.
var seenLater = alive + `ConfigMap/s/a deleted=30 finalizers=example.com/x
ConfigMap/s/b deleted=30 finalizers=example.com/x
` + validating("") + `
Event/s/e {"type":"Warning","message":"admission webhook \"w.example.com\" denied it","involvedObject":{"uid":"b"},"lastTimestamp":"2026-01-02T03:04:00Z"}
Service/x/hook {}
EndpointSlice/x/h {"metadata":{"labels":{"kubernetes.io/service-name":"hook"}},"endpoints":[{}]}
answer PATCH ConfigMap/s/a 403 admission webhook "w.example.com" denied the request: no
answer PATCH ConfigMap/s/b 403 admission webhook "w.example.com" denied the request: no
`

// TestChains: a chain ends with what is known of its cause in the end, and not when it was met.
func TestChains(t *testing.T) {
	report := parse(t, seenLater).report(t)
	for _, o := range report.Objects {
		if end := o.Chain[len(o.Chain)-1]; !end.Because.Equal(report.Causes[0].Summary) {
			t.Errorf("%s: %s, not %s", o.Object, end.Because, report.Causes[0].Summary)
		}
	}
}

// TestEvidence holds what is shown beside the verdicts: why nothing can be told, and what the
// controller says that decides nothing.
func TestEvidence(t *testing.T) {
	impersonates := strings.Replace(readOnly, `"rules":[`, `"rules":[{"apiGroups":[""],"resources":["users"],"verbs":["impersonate"]},`, 1)
	everything := `ClusterRole/all {"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}
ClusterRoleBinding/all {"roleRef":{"kind":"ClusterRole","name":"all"},"subjects":[{"kind":"ServiceAccount","namespace":"op","name":"widget-operator"}]}
`
	for _, c := range []struct {
		name, cluster, id string
		want              explain.Evidence
	}{
		{"an account that may impersonate", alive + node + widgetCRD + account + impersonates + deployment(1) + pod(ready) + owned, "fin-unknown",
			evidence.At("Deployment/op/widget-operator", "candidate", "is allowed to impersonate others, so its rights are unknown")},
		{"what could remove it", alive + node + account + everything + deployment(1) + pod(ready) + "ConfigMap/s/a deleted=60 finalizers=acme.org/x", "fin-absent",
			evidence.At("Deployment/op/widget-operator", "candidate", "ClusterRoleBinding/all gives it ClusterRole/all, which allows it to change the object")},
		{"an instance older than its definition", alive + "CustomResourceDefinition/widgets.example.com made=100\nWidget/s/w made=1000 deleted=60 finalizers=" + fin, "fin-absent",
			evidence.At("CustomResourceDefinition/widgets.example.com", "metadata.creationTimestamp", "the definition was deleted and recreated")},
		{"a condition that waits", install + deployment(1) + pod(ready) + strings.TrimSuffix(owned, "}\n") +
			`,"status":{"conditions":[{"type":"Drained","status":"False","reason":"Draining","message":"3 nodes to go","lastTransitionTime":"2026-01-02T03:03:00Z"}]}}`, "fin-working",
			evidence.At("Widget/s/w", "status.conditions[Drained]", "3 nodes to go (for 65s)")},
		{"a message that is no failure", install + deployment(1) + pod(ready) + strings.TrimSuffix(owned, "}\n") + `,"status":{"message":"draining"}}`, "fin-working",
			evidence.At("Widget/s/w", "status.message", "draining")},
		{"what failed before the deletion", install + deployment(1) + pod(ready) + strings.TrimSuffix(owned, "}\n") +
			`,"status":{"conditions":[{"type":"Failed","status":"True","message":"no credentials","lastTransitionTime":"2026-01-02T02:00:00Z"}]}}`, "fin-working",
			evidence.At("Widget/s/w", "status.conditions[Failed]", "no credentials (for 64m)")},
		{"an event of a quarter of an hour ago", install + deployment(1) + pod(ready) + owned +
			`Event/s/e {"type":"Normal","reason":"Waiting","message":"for the volume","involvedObject":{"uid":"w"},"firstTimestamp":"2026-01-02T02:50:00Z","lastTimestamp":"2026-01-02T02:50:00Z"}`, "fin-working",
			evidence.At("Event about ", "message", "for the volume")},
		{"the replicas of an autoscaler", install + deployment(0) + autoscaler + owned, "fin-dead",
			evidence.At("HorizontalPodAutoscaler/op/hpa", "spec.minReplicas", "3; it scales Deployment/op/widget-operator")},
		{"autoscalers that cannot be read", install + deployment(0) + autoscaler + owned + "unreadable horizontalpodautoscalers", "fin-dead",
			evidence.At("horizontalpodautoscalers.autoscaling in namespace op", "", "refused by the test")},
		{"replicas of which nothing tells", install + deployment(0) + owned, "fin-dead",
			evidence.At("Deployment/op/widget-operator", "spec.replicas", "1 is assumed")},
		{"the replicas that a tool has kept", install + downscaled + owned, "fin-dead",
			evidence.At("Deployment/op/widget-operator", "metadata.annotations[downscaler/original-replicas]", "2, kept by kube-downscaler")},
		{"the controller's failure with the second object", seenLater, "adm-webhook-deny", evidence.At("Event about ", "message", "denied it")},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []explain.Evidence
			for _, cause := range parse(t, c.cluster).report(t).Causes {
				if cause.ID == c.id {
					all = append(all, cause.Evidence...)
				}
				if cause.ID == c.id && cause.Controller != nil {
					all = append(all, cause.Controller.Evidence...)
				}
			}
			is := func(e explain.Evidence) bool {
				return e.Source.String() == c.want.Source.String() && e.Path == c.want.Path && strings.Contains(e.Value.String(), c.want.Value.String())
			}
			if !slices.ContainsFunc(all, is) {
				t.Errorf("no %v among %v", c.want, all)
			}
		})
	}
}

// TestAutoscalersRead: autoscalers are listed once for the controllers of a namespace that are scaled to 0, and not where there are none.
func TestAutoscalersRead(t *testing.T) {
	requests := func(cluster string, want int) int {
		s := parse(t, cluster)
		dead := 0
		for _, c := range s.report(t).Causes {
			if c.ID == "fin-dead" {
				dead++
			}
		}
		if dead != want {
			t.Errorf("%d controllers do not work, want %d", dead, want)
		}
		return s.Requests
	}
	none := install + deployment(0) + owned
	two := none + `ClusterRole/configmaps {"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["update"]}]}` + "\n" +
		`ClusterRoleBinding/gizmos {"roleRef":{"kind":"ClusterRole","name":"configmaps"},"subjects":[{"kind":"ServiceAccount","namespace":"op","name":"gizmo-operator"}]}` + "\n" + strings.ReplaceAll(deployment(0), "widget-operator", "gizmo-operator") +
		`ConfigMap/s/c deleted=60 finalizers=gizmos.example.com/cleanup {"metadata":{"managedFields":[{"manager":"gizmo-operator","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:finalizers":{"v:\"gizmos.example.com/cleanup\"":{}}}}}]}}` + "\n"
	for i, cluster := range []string{none, two} {
		if without, with := requests(cluster, i+1), requests(cluster+autoscaler, i+1); with != without+1 {
			t.Errorf("%d controllers: %d requests with an autoscaler, %d without", i+1, with, without)
		}
	}
}
