// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain"
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

// refusedContent is a namespace that its controller cannot empty.
func refusedContent(message string) string {
	return `Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionContentFailure","status":"True","message":"` + message + `","lastTransitionTime":"2026-01-02T03:00:00Z"}]}}
ConfigMap/s/a
` + strings.Replace(denying, "PATCH", "DELETE", 1)
}

// past is a pod whose containers have ended, 45 seconds after its grace period.
const past = `Pod/s/p deleted=55 grace=10 {"spec":{"nodeName":"n"},"status":{"containerStatuses":[{"name":"c","state":{"terminated":{}}}]}}` + "\n"

// hookOf is a webhook that nothing serves, about an operation.
func hookOf(resource, operation string) string {
	return strings.NewReplacer(`"configmaps"`, resource, "UPDATE", operation).Replace(validating(""))
}

// mayNot are the answers to whoever has no rights to pods.
const mayNot = `answer PATCH-status Pod/s/p 403 pods "p" is forbidden: User "u" cannot patch resource "pods/status"
answer DELETE Pod/s/p 403 pods "p" is forbidden: User "u" cannot delete resource "pods"
`

// policy is one that asks nobody who they are.
const policy = `ValidatingAdmissionPolicy/p {"spec":{"validations":[{"expression":"false"}]}}` + "\n"

func validating(more string) string {
	return "ValidatingWebhookConfiguration/w " + strings.ReplaceAll(webhook, "MORE", more)
}

// other is a mutating configuration with the same webhook, but for a detail.
func other(detail, instead string) string {
	return strings.ReplaceAll("MutatingWebhookConfiguration/m "+strings.ReplaceAll(webhook, "MORE", ""), detail, instead)
}

var probeCases = []struct{ name, cluster, want string }{
	{"a webhook without a backend", alive + held + validating("") + "answer PATCH ConfigMap/s/a " + calling,
		"ConfigMap/s/a: Stuck adm-webhook-dead@w*1 fin-absent@a*1\n"},
	{"a webhook whose configuration cannot be read", alive + held + "unreadable validatingwebhookconfigurations\nanswer PATCH ConfigMap/s/a " + calling,
		"ConfigMap/s/a: Stuck adm-webhook-dead@a*1 fin-unknown@a*1\n"},
	{"a webhook that says no", alive + held + validating("") + denying,
		"ConfigMap/s/a: Stuck fin-absent@a*1 adm-webhook-deny@w*1\n"},
	{"a webhook that says no to the controller, too", alive + held + validating("") + denying +
		`Event/s/e {"type":"Warning","message":"cannot clean up: admission webhook \"w.example.com\" denied the request: no","involvedObject":{"uid":"a"},"lastTimestamp":"2026-01-02T03:04:00Z"}`,
		"ConfigMap/s/a: Stuck adm-webhook-deny@w*1 fin-absent@a*1\n"},
	{"a webhook that has said no before the deletion", alive + held + validating("") + denying +
		`Event/s/e {"type":"Warning","message":"admission webhook \"w.example.com\" denied the request: no","involvedObject":{"uid":"a"},"lastTimestamp":"2026-01-02T03:01:00Z"}`,
		"ConfigMap/s/a: Stuck fin-absent@a*1 adm-webhook-deny@w*1\n"},
	{"a webhook that says no, of which the status tells", install + deployment(1) + pod(ready) + strings.Replace(validating(""), "/w ", "/v ", 1) + strings.Replace(denying, "ConfigMap/s/a", "Widget/s/w", 1) +
		"APIService/v1.example.com {}\n" + status(60, `{"reason":"admission webhook \"w.example.com\" denied the request: no"}`),
		"Widget/s/w: Stuck adm-webhook-deny@v*1 fin-alive-failing@w*1\n"},
	{"a webhook that is only for others, and a pod in its grace period", alive + node + validating("") + strings.Replace(denying, "ConfigMap/s/a", "PersistentVolumeClaim/s/c", 1) + `
PersistentVolumeClaim/s/c deleted=5 finalizers=kubernetes.io/pvc-protection
Pod/s/p deleted=5 grace=60 {"spec":{"nodeName":"n","volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"c"}}]}}`,
		"PersistentVolumeClaim/s/c: Progressing pod-grace@p*2\nPod/s/p: Progressing pod-grace@p*2\n"},
	{"a webhook whose name two configurations have, of which one is asked", alive + held + validating("") + other(`"UPDATE"`, `"CREATE"`) + "answer PATCH ConfigMap/s/a " + calling,
		"ConfigMap/s/a: Stuck adm-webhook-dead@w*1 fin-absent@a*1\n"},
	{"a webhook whose name two configurations have, of which one is served", alive + held + validating("") + other(`"name":"hook"`, `"name":"fine"`) + "answer PATCH ConfigMap/s/a " + calling +
		`Service/x/fine {"spec":{"selector":{"a":"b"}}}
EndpointSlice/x/fine {"metadata":{"labels":{"kubernetes.io/service-name":"fine"}},"endpoints":[{}]}`,
		"ConfigMap/s/a: Stuck adm-webhook-dead@w*1 fin-absent@a*1\n"},
	{"a webhook whose name two configurations have, and both may be meant", alive + held + validating("") + other("", "") + "answer PATCH ConfigMap/s/a " + calling,
		"ConfigMap/s/a: Stuck adm-webhook-dead@a*1 fin-absent@a*1\n"},
	{"a webhook that asks who it is", alive + held + validating(`,"matchConditions":[{"name":"n","expression":"request.userInfo.username != 'x'"}]`) + denying,
		"ConfigMap/s/a: Stuck fin-absent@a*1 adm-webhook-deny@w*1\n"},
	{"a policy that says no", alive + held + policy + `
answer PATCH ConfigMap/s/a 422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no` + "\n",
		"ConfigMap/s/a: Stuck adm-vap-deny@p*1 fin-absent@a*1\n"},
	{"a policy that asks who it is", alive + held + `ValidatingAdmissionPolicy/p {"spec":{"validations":[{"expression":"request.userInfo.username == 'x'"}]}}
answer PATCH ConfigMap/s/a 422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no` + "\n",
		"ConfigMap/s/a: Stuck fin-absent@a*1 adm-vap-deny@p*1\n"},
	{"a policy that says no to people, and a controller that works", install + deployment(1) + pod(ready) + owned +
		"answer PATCH Widget/s/w 422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no\nAPIService/v1.example.com\n",
		"Widget/s/w: Progressing fin-working@w*1\n"},
	{"the finalizer comes back", alive + held + "MutatingWebhookConfiguration/m " + strings.ReplaceAll(webhook, "MORE", "") + "answer PATCH ConfigMap/s/a kept\n",
		"ConfigMap/s/a: Stuck adm-mutating-readd@m*1 fin-absent@a*1\n"},
	{"the finalizer comes back, and two may do it", alive + held + "MutatingWebhookConfiguration/m " + strings.ReplaceAll(webhook, "MORE", "") +
		"MutatingWebhookConfiguration/n " + strings.ReplaceAll(webhook, "MORE", "") + "answer PATCH ConfigMap/s/a kept\n",
		"ConfigMap/s/a: Stuck adm-mutating-readd@a*1 fin-absent@a*1\n"},
	{"an object that is not valid any more", alive + held + "answer PATCH ConfigMap/s/a 422 spec.size: Required value\n",
		"ConfigMap/s/a: Stuck val-schema-tightened@a*1 fin-absent@a*1\n"},
	{"an object that changed meanwhile", alive + held + "answer PATCH ConfigMap/s/a 422 metadata.uid: immutable\n",
		"ConfigMap/s/a: Stuck fin-absent@a*1\n"},
	{"another refusal", alive + held + "answer PATCH ConfigMap/s/a 403 configmaps is forbidden: by a plugin\n",
		"ConfigMap/s/a: Stuck fin-absent@a*1 adm-refused@a*1\n"},
	{"a policy that cannot be read", alive + held + "answer PATCH ConfigMap/s/a 422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no\n",
		"ConfigMap/s/a: Stuck fin-absent@a*1 adm-vap-deny@p*1\n"},
	{"no right to ask", alive + held + `answer PATCH ConfigMap/s/a 403 User "u" cannot patch resource "configmaps"` + "\n",
		"ConfigMap/s/a: Stuck fin-absent@a*1\n"},
	{"no right to ask, and a webhook that is provably dead", alive + held + validating("") + `answer PATCH ConfigMap/s/a 403 User "u" cannot patch resource "configmaps"` + "\n",
		"ConfigMap/s/a: Stuck adm-webhook-dead@w*1 fin-absent@a*1\n"},
	{"a webhook that is asked about other namespaces", alive + held + validating(`,"namespaceSelector":{"matchLabels":{"a":"b"}}`) +
		`answer PATCH ConfigMap/s/a 403 User "u" cannot patch resource "configmaps"` + "\n",
		"ConfigMap/s/a: Stuck fin-absent@a*1\n"},
	{"a webhook that is asked about other objects", alive + held + validating(`,"objectSelector":{"matchLabels":{"a":"b"}}`) +
		`answer PATCH ConfigMap/s/a 403 User "u" cannot patch resource "configmaps"` + "\n",
		"ConfigMap/s/a: Stuck fin-absent@a*1\n"},
	{"a webhook that may be asked", alive + held + validating(`,"matchConditions":[{"name":"n","expression":"object.x"}]`) +
		`answer PATCH ConfigMap/s/a 403 User "u" cannot patch resource "configmaps"` + "\n",
		"ConfigMap/s/a: Stuck fin-absent@a*1\n"},
	{"a webhook that no dry run reaches", alive + held + validating("") + `answer PATCH ConfigMap/s/a 400 admission webhook "w.example.com" does not support dry run` + "\n",
		"ConfigMap/s/a: Stuck adm-webhook-dead@w*1 fin-absent@a*1\n"},
	{"a dependent that may not be deleted", alive + policy + `
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion
ConfigMap/s/b owners=ConfigMap/a!
answer DELETE ConfigMap/s/b 422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
		"ConfigMap/s/a: Stuck adm-vap-deny@p*1 gc-fg-denied@b*1\n"},
	{"a dependent that may not be released", alive + policy + `
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion
ConfigMap/s/o
ConfigMap/s/b owners=ConfigMap/a!,ConfigMap/o
answer PATCH ConfigMap/s/b 422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
		"ConfigMap/s/a: Stuck adm-vap-deny@p*1 gc-fg-denied@b*1\n"},
	{"a dependent that you may not delete", alive + `
ConfigMap/s/a deleted=20 finalizers=foregroundDeletion
ConfigMap/s/b owners=ConfigMap/a!
answer DELETE ConfigMap/s/b 403 configmaps is forbidden: by a plugin`,
		"ConfigMap/s/a: Unknown adm-refused@b*1 gc-fg-denied@b*1\n"},
	{"a dependent that you may not release", alive + `
ConfigMap/s/a deleted=20 finalizers=foregroundDeletion
ConfigMap/s/k
ConfigMap/s/b owners=ConfigMap/a!,ConfigMap/k
answer PATCH ConfigMap/s/b 403 configmaps "b" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>`,
		"ConfigMap/s/a: Pending\n"},
	{"a dependent that is looked at too early", alive + policy + `
ConfigMap/s/a deleted=6 finalizers=foregroundDeletion
ConfigMap/s/b owners=ConfigMap/a!
answer DELETE ConfigMap/s/b 422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
		"ConfigMap/s/a: Pending\n"},
	{"an owner that may not be updated", alive + policy + `
ConfigMap/s/a deleted=20 finalizers=foregroundDeletion
answer PATCH ConfigMap/s/a 422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
		"ConfigMap/s/a: Stuck adm-vap-deny@p*1\n"},
	{"an orphan that may not be updated", alive + policy + `
ConfigMap/s/a deleted=20 finalizers=orphan
ConfigMap/s/b owners=ConfigMap/a
answer PATCH ConfigMap/s/b 422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
		"ConfigMap/s/a: Stuck adm-vap-deny@p*1 gc-orphan-pending@a*1\n"},
	{"content that may not be deleted", alive + policy + `
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionContentFailure","status":"True","reason":"ContentDeletionFailed","message":"denied","lastTransitionTime":"2026-01-02T03:00:00Z"}]}}
ConfigMap/s/a
ConfigMap/s/b
answer DELETE ConfigMap/s/b 422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
		"Namespace/s: Stuck adm-vap-deny@p*1\n"},
	{"content that you may not delete", alive + validating("") + refusedContent("denied"),
		"Namespace/s: Stuck ns-content-failure@s*1 adm-webhook-deny@w*1\n"},
	{"content that the namespace controller may not delete", alive + validating("") + refusedContent(`admission webhook \"w.example.com\" denied the request: no`),
		"Namespace/s: Stuck adm-webhook-deny@w*1\n"},
	{"instances that may not be deleted", alive + policy + `
CustomResourceDefinition/widgets.example.com deleted=60 finalizers=customresourcecleanup.apiextensions.k8s.io
APIService/v1.example.com {"spec":{"group":"example.com"}}
Widget/s/w
answer DELETE Widget/s/w 422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
		"CustomResourceDefinition/widgets.example.com: Stuck adm-vap-deny@p*1\n"},
	{"an aggregated API is never asked", alive + `
APIService/v1.example.com {"spec":{"group":"example.com","service":{"namespace":"x","name":"y"}}}
Widget/s/w deleted=60 finalizers=example.com/x
answer PATCH * 422 spec.size: Required value`,
		"Widget/s/w: Stuck fin-operator-in-ns@w*1\n"},
	{"a kubelet that may not write", alive + node + policy + `
Pod/s/q deleted=300 grace=10 {"spec":{"nodeName":"n"},"status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}}
answer PATCH-status Pod/s/q 422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
		"Pod/s/q: Stuck adm-vap-deny@p*1 pod-kubelet-kill@q*1\n"},
	{"a kubelet that is asked about, and a webhook for writes that it does not send", alive + node + past + hookOf(`"pods"`, "UPDATE") + mayNot,
		"Pod/s/p: Progressing pod-grace@p*1\n"},
	{"a webhook for the status of pods", alive + node + past + hookOf(`"pods/status"`, "UPDATE") + mayNot,
		"Pod/s/p: Stuck adm-webhook-dead@w*1 pod-grace@p*1\n"},
	{"a webhook for the deletion of pods", alive + node + past + hookOf(`"pods"`, "DELETE") + mayNot,
		"Pod/s/p: Stuck adm-webhook-dead@w*1 pod-grace@p*1\n"},
	{"a webhook for all that there is of pods", alive + node + past + hookOf(`"pods/*"`, "*") + mayNot,
		"Pod/s/p: Stuck adm-webhook-dead@w*1 pod-grace@p*1\n"},
	{"what nobody deletes is not stuck", alive + `
ConfigMap/s/a
answer ASK ConfigMap/s/a
answer DELETE ConfigMap/s/a 422 : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
		"ConfigMap/s/a: NotTerminating not-terminating@a*0\n"},
	{"a namespace that cannot be deleted", alive + `
Namespace/kube-system
answer ASK Namespace/kube-system
answer DELETE Namespace/kube-system 403 namespaces "kube-system" is forbidden: this namespace may not be deleted`,
		"Namespace/kube-system: NotTerminating ns-protected@kube-system*0\n"},
	{"a conversion that fails", alive + `
CustomResourceDefinition/widgets.example.com {"spec":{"group":"example.com","names":{"plural":"widgets"},"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"namespace":"x","name":"y"}}}}}}
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionContentFailure","status":"True","message":"x"}]}}
failed widgets conversion webhook for example.com/v1, Kind=Widget failed`,
		"Namespace/s: Stuck val-conversion-dead@widgets.example.com*1\n"},
	{"a conversion that fails, and its definition", alive + `
CustomResourceDefinition/widgets.example.com deleted=60 finalizers=customresourcecleanup.apiextensions.k8s.io {"spec":{"group":"example.com","names":{"plural":"widgets"}}}
failed widgets conversion webhook for example.com/v1, Kind=Widget failed`,
		"CustomResourceDefinition/widgets.example.com: Stuck val-conversion-dead@widgets.example.com*1 crd-conversion@widgets.example.com*1\n"},
	{"stored bytes that cannot be read", alive + `
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionContentFailure","status":"True","message":"x"}]}}
failed widgets Internal error occurred: unable to transform key "/registry/x": no matching prefix found`,
		"Namespace/s: Stuck val-unreadable@*1\n"},
	{"a type that went away meanwhile", alive + `
failed widgets the server could not find the requested resource
ConfigMap/s/a deleted=6 finalizers=foregroundDeletion`, "ConfigMap/s/a: Pending\n"},
	{"a type that is there, and is not found", alive + `
CustomResourceDefinition/widgets.example.com
failed widgets the server could not find the requested resource
ConfigMap/s/a deleted=6 finalizers=foregroundDeletion`, "ConfigMap/s/a: Unknown gc-fg-blocking@a*1\n"},
	{"a garbage collector that is blind", alive + `
failed widgets conversion webhook for example.com/v1, Kind=Widget failed
Widget/s/w deleted=60 finalizers=foregroundDeletion`,
		"Widget/s/w: Stuck val-conversion-dead@widgets.example.com*1 gc-blind@w*1\n"},
	{"a definition that fails without a list that does", alive + `
failed gadgets conversion webhook for example.com/v1, Kind=Gadget failed
CustomResourceDefinition/gadgets.example.com {"spec":{"group":"example.com","names":{"plural":"gadgets"},"versions":[{"name":"v1","served":true}],"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"namespace":"x","name":"y"}}}}}}
CustomResourceDefinition/widgets.example.com {"spec":{"group":"example.com","names":{"plural":"widgets"},"conversion":{"strategy":"None"}}}
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionContentFailure","status":"True","message":"storage is (re)initializing"}]}}
ConfigMap/s/a`, "Namespace/s: Stuck val-conversion-dead@gadgets.example.com*1\n"},
}

func TestProbes(t *testing.T) {
	for _, c := range probeCases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, parse(t, c.cluster).explained(t)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
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
	if diff := cmp.Diff([]string{"whether a PATCH of more configmaps would be accepted: 10 were asked about"}, report.Unread); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s.Requests > 40 {
		t.Errorf("%d requests for 1000 objects that are alike", s.Requests)
	}
}

// TestRemediesOfRefusals holds the guards that the commands carry.
func TestRemediesOfRefusals(t *testing.T) {
	s := parse(t, alive+held+validating(`,"namespaceSelector":{"matchLabels":{}}`)+"answer PATCH ConfigMap/s/a "+calling)
	var commands []string
	for _, r := range s.report(t).Causes[0].Remedies {
		if r.Risk == explain.Disruptive {
			commands = append(commands, r.Command)
		}
	}
	const save = "{ test -s validatingwebhookconfigurations-w-1.yaml || " +
		"kubectl get validatingwebhookconfigurations.v1.admissionregistration.k8s.io/w -o yaml > validatingwebhookconfigurations-w-1.yaml; } && " +
		"kubectl patch validatingwebhookconfigurations.v1.admissionregistration.k8s.io/w --type=json -p "
	const guard = `'[{"op":"test","path":"/metadata/uid","value":"w"},{"op":"test","path":"/webhooks/0/name","value":"w.example.com"},`
	want := []string{
		save + guard + `{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]'`,
		save + guard + `{"op":"add","path":"/webhooks/0/namespaceSelector/matchExpressions","value":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["s"]}]}]'`,
	}
	if diff := cmp.Diff(want, commands); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if slices.ContainsFunc(s.report(t).Causes[0].Remedies, func(r explain.Remedy) bool { return r.Effect == "" }) {
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
				got = append(got, cause.Evidence[0].Source)
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
