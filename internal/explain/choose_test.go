// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// named makes another operator out of the lines of the first.
func named(name, lines string) string {
	return strings.NewReplacer("widget-operator", name, `"w"`, `"`+name+`"`, "ClusterRole/widgets", "ClusterRole/"+name, "ClusterRoleBinding/widgets", "ClusterRoleBinding/"+name, `"name":"widgets"`, `"name":"`+name+`"`).Replace(lines)
}

// running and stopped are an operator with rights on widgets.
func running(name string) string { return named(name, account+roles+deployment(1)+pod(ready)) }
func stopped(name string) string { return named(name, account+roles+deployment(0)) }

// heldBy is a lease that somebody has renewed at a time.
func heldBy(lease, holder, renewed string) string {
	return `Lease/op/` + lease + ` {"spec":{"holderIdentity":"` + holder + `","leaseDurationSeconds":15,"renewTime":"` + renewed + `"}}` + "\n"
}

const (
	base = alive + node + widgetCRD
	// byManager is set by what most operators call themselves.
	byManager  = "Widget/s/w deleted=60 finalizers=" + fin + ` {"metadata":{"managedFields":[{"manager":"manager","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:finalizers":{"v:\"` + fin + `\"":{}}}}}]}}` + "\n"
	otherFails = `{"conditions":[{"type":"Ready","status":"False","reason":"DeleteFailed","message":"AccessDenied","lastTransitionTime":"2026-01-02T02:30:00Z"}]}`
	former     = "widget-operator-68dc888597-zzzzz_1234"
	notReady   = `{"phase":"Running","conditions":[{"type":"Ready","status":"False"}],"containerStatuses":[{"name":"manager","state":{"running":{}}}]}`
)

// deletedPod is one of the operator that is being deleted.
func deletedPod(status string) string {
	return strings.Replace(pod(status), "-x {", "-x deleted=5 grace=600 {", 1)
}

// deletedOperator is its Deployment that is being deleted.
func deletedOperator() string {
	return strings.Replace(deployment(1), "-operator {", "-operator deleted=5 finalizers=foregroundDeletion {", 1)
}

// TestChoice looks at clusters in which more than one workload may be the
// controller. want is the explanation; says and never are texts of the cause's
// summary, evidence and remedies.
func TestChoice(t *testing.T) {
	const unknown, progressing = "Widget/s/w: Unknown fin-unknown@w*1\n", "Widget/s/w: Progressing fin-working@w*1\n"
	for _, c := range []struct{ name, cluster, want, says, never string }{
		{
			"two with the same rights, of which one runs", base + running("fan-a") + stopped("fan-b") + byManager, unknown,
			"unclear which of these is its controller: Deployment/op/fan-a (running), Deployment/op/fan-b (not running)", "is running, but has not",
		},
		{
			"the one that is called after the type does not run", base + stopped("widget-operator") + running("backup-agent") + byManager, unknown,
			"its controller is probably Deployment/op/widget-operator (not running), but it might be another one: Deployment/op/backup-agent (running)", "rollout restart",
		},
		{
			"the one that is called after the type runs", base + running("widget-operator") + stopped("backup-agent") + byManager, progressing,
			"Deployment/op/widget-operator is running", "",
		},
		{
			"the one that set it does not run", base + stopped("widget-operator") + running("backup-agent") + owned, unknown,
			"its controller is probably Deployment/op/widget-operator (not running)", "",
		},
		{
			"the one that set it runs", base + running("widget-operator") + stopped("widgets-controller") + owned, progressing, "Deployment/op/widget-operator is running", "",
		},
		{
			"one starts beside another that runs", base + running("fan-a") + named("fan-b", account+roles+deployment(1)+pod(starting)) + byManager, unknown, "fan-b (might not run)", "",
		},
		{"both run", base + running("fan-a") + running("fan-b") + byManager, unknown, "Deployment/op/fan-a (running), Deployment/op/fan-b (running)", ""},
		{
			"both run, and one fails for long", base + running("fan-a") + running("fan-b") + strings.ReplaceAll(status(3600, otherFails), `"manager":"widget-operator"`, `"manager":"manager"`),
			"Widget/s/w: Stuck fin-alive-failing@w*1\n", "Deployment/op/fan-a or Deployment/op/fan-b is running, but its cleanup has failed for 34m: ", "",
		},
		{
			"neither runs", base + stopped("fan-a") + stopped("fan-b") + byManager, unknown,
			"its controller might be Deployment/op/fan-a (not running), Deployment/op/fan-b (not running): the finalizer was set by \"manager\"", "",
		},
		{
			"neither runs, and who set it is not known", base + stopped("fan-a") + stopped("fan-b") + widget, unknown, "Deployment/op/fan-b (not running): only its RBAC rights hint at it", "",
		},
		{
			"one in the object's namespace does not run", base + running("fan-a") + strings.NewReplacer("/op/", "/s/", `"namespace":"op"`, `"namespace":"s"`).Replace(stopped("fan-b")) + byManager, unknown,
			"its controller is probably Deployment/s/fan-b (not running), but it might be another one: Deployment/op/fan-a (running)", "",
		},
		{
			"one without rights for the object does not run", base + running("fan-a") + strings.NewReplacer("ClusterRoleBinding/", "RoleBinding/t/").Replace(stopped("fan-b")) + "Namespace/t\n" + byManager, unknown,
			"its controller might be Deployment/op/fan-a (running): the finalizer was set by \"manager\"", "",
		},
		{
			"one that set it and lost its rights, beside a holder of rights", base + named("widget-operator", account+readOnly+deployment(1)+pod(ready)) + running("backup-agent") + owned, unknown, "RBAC does not allow it to change the object", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) { checkCause(t, parse(t, c.cluster), c.want, c.says, c.never) })
	}
}

// TestChoiceByWordOfFinalizer has a finalizer whose domain points at two groups.
func TestChoiceByWordOfFinalizer(t *testing.T) {
	group := func(name, lines string) string { return strings.ReplaceAll(lines, "example.com", name+".corp.example") }
	const both = "CustomResourceDefinition/zas.za.corp.example\nCustomResourceDefinition/zbs.zb.corp.example\n" +
		`ClusterRole/maps {"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["update"]}]}` + "\n" +
		`ClusterRoleBinding/maps {"roleRef":{"kind":"ClusterRole","name":"maps"},"subjects":[{"kind":"ServiceAccount","namespace":"op","name":"za-operator"},{"kind":"ServiceAccount","namespace":"op","name":"zb-operator"}]}` + "\n"
	operators := alive + node + both + group("za", running("za-operator")) + group("zb", stopped("zb-operator"))
	checkCause(t, parse(t, operators+"ConfigMap/s/w deleted=60 finalizers=corp.example/zb-cleanup\n"), "ConfigMap/s/w: Unknown fin-unknown@w*1\n",
		"its controller is probably Deployment/op/zb-operator (not running), but it might be another one: Deployment/op/za-operator (running)", "is running, but")
	checkCause(t, parse(t, operators+"ConfigMap/s/w deleted=60 finalizers=corp.example/za-cleanup\n"), "ConfigMap/s/w: Progressing fin-working@w*1\n", "Deployment/op/za-operator is running", "")
}

// TestChoiceOfInstallations has a product that is installed twice, as the
// catalogue has it: in a place of its own, and in the object's namespace.
func TestChoiceOfInstallations(t *testing.T) {
	catalogue, err := finalizers.Load(strings.NewReader(`
finalizers:
- finalizer: widgets.example.com/cleanup
  product: Acme
  workloads: [{kind: Deployment, namespace: op, name: widget-operator}, {kind: Deployment, namespace: <namespace>, name: widget-operator}]
`))
	if err != nil {
		t.Fatal(err)
	}
	local := strings.NewReplacer("/op/", "/s/", `"namespace":"op"`, `"namespace":"s"`, "ClusterRole/widget-operator", "ClusterRole/local", "ClusterRoleBinding/widget-operator", "ClusterRoleBinding/local", `"kind":"ClusterRole","name":"widget-operator"`, `"kind":"ClusterRole","name":"local"`).Replace(stopped("widget-operator"))
	for _, c := range []struct{ name, cluster, want, says, never string }{
		{
			"one with rights everywhere runs", base + running("widget-operator") + local + widget, "Widget/s/w: Unknown fin-unknown@w*1\n",
			"its controller is probably Deployment/s/widget-operator (not running), but it might be another one: Deployment/op/widget-operator (running)", "is running, but",
		},
		{
			"one with rights elsewhere runs", base + strings.ReplaceAll(running("widget-operator"), "ClusterRoleBinding/widget-operator", "RoleBinding/op/widget-operator") + local + widget,
			"Widget/s/w: Stuck fin-dead@widget-operator*1\n", "Deployment/s/widget-operator", "fin-rbac",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parse(t, c.cluster)
			s.catalogue = finalizers.Builtin().Merge(catalogue)
			checkCause(t, s, c.want, c.says, c.never)
		})
	}
}

// TestLife looks at controllers that seem to run.
func TestLife(t *testing.T) {
	const dead, unknown, progressing = "Widget/s/w: Stuck fin-dead@widget-operator*1\n", "Widget/s/w: Unknown fin-unknown@w*1\n", "Widget/s/w: Progressing fin-working@w*1\n"
	noAccount := base + roles + deployment(1) + pod(ready) + owned
	operator := install + deployment(1) + pod(ready) + owned
	for _, c := range []struct{ name, cluster, want, says, never string }{
		{"its account is gone", noAccount, dead, "its account ServiceAccount/op/widget-operator does not exist, so the API server rejects its requests", "is running, but"},
		{"its account is gone, and its lease is fresh", noAccount + leaseOf(renewed), unknown, "it has renewed its lease, but its account ServiceAccount/op/widget-operator no longer exists", ""},
		{
			"its account was made again", base + strings.TrimSpace(account) + " made=60\n" + roles + deployment(1) + strings.Replace(pod(ready), `"metadata":{`, `"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z",`, 1) + owned, unknown,
			"its account ServiceAccount/op/widget-operator was recreated after its pod", "create serviceaccount",
		},
		{"its account was made again long ago", base + strings.TrimSpace(account) + " made=7200\n" + roles + deployment(1) + strings.Replace(pod(ready), `"metadata":{`, `"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z",`, 1) + owned, progressing, "", ""},
		{"unclear whether its account is gone", "unlisted serviceaccounts\n" + noAccount, progressing, "", ""},
		{"its account is gone, and it uses another", strings.Replace(noAccount, `"name":"manager",`, `"name":"manager","args":["--kubeconfig=/etc/remote"],`, 1), progressing, "", ""},

		{"its lease expired with a former pod", operator + heldBy("a1b2", former, stale), unknown, "a pod of it is ready, but its lease is not renewed", "is running, but"},
		{"its lease expired with a former pod, and it has another", operator + heldBy("a1b2", former, stale) + leaseOf(renewed), progressing, "", ""},
		{"a former pod has just had its lease", operator + heldBy("a1b2", former, renewed), progressing, "", ""},
		{"a lease that is called after it is a stranger's", operator + heldBy("widget-operator-leader", "some-laptop_1234", renewed), unknown, "its lease is renewed by some-laptop_1234, which is no pod of it", "logs deployment"},
		{"a lease of the domain is a stranger's", operator + heldBy("8f3c2.example.com", "some-laptop_1234", renewed), unknown, "kubectl -n op get lease/8f3c2.example.com -o yaml", "is running, but"},
		{"a lease of the domain expired with a stranger", operator + heldBy("8f3c2.example.com", "some-laptop_1234", stale), unknown, "its lease is not renewed", "is running, but"},
		{"a lease of the domain is nobody's", operator + heldBy("8f3c2.example.com", "", stale), unknown, "it has no holder", "is running, but"},
		{"a lease of the domain is held by who does not say who it is", operator + heldBy("8f3c2.example.com", "3c7e1c1e-5e0a-4a4e-8a9f-1f2e3d4c5b6a", renewed), progressing, "", ""},
		{"a lease of the domain is held by its node", strings.Replace(operator, `"phase":"Running"`, `"phase":"Running","hostIP":"10.0.0.7"`, 1) + heldBy("8f3c2.example.com", "10.0.0.7_1234", renewed), progressing, "", ""},
		{"a lease of the domain is held by its node's host", strings.Replace(operator, `"nodeName":"n"`, `"nodeName":"n.example.net"`, 1) + "lease kube-node-lease/n.example.net 5\n" + heldBy("8f3c2.example.com", "n_1234", renewed), progressing, "", ""},
		{"another's lease in the same namespace", operator + heldBy("other", "some-laptop_1234", renewed), progressing, "", ""},
		{"scaled to 0, while a stranger leads", install + deployment(0) + owned + heldBy("widget-operator-leader", "some-laptop_1234", renewed), unknown, "its lease is renewed by some-laptop_1234", "scale deployment"},
		{"scaled to 0, and its lease is a former pod's", install + deployment(0) + owned + heldBy("widget-operator-leader", former, stale), dead, "", ""},

		{"it is being deleted, and its pod ends", install + deletedOperator() + deletedPod(ready) + owned, unknown, "it is being deleted: its pod widget-operator-x is being deleted, and is not replaced", "is running, but"},
		{"it is being deleted, and its pod has stopped", install + deletedOperator() + deletedPod(notReady) + owned, dead, "it is being deleted: its pod widget-operator-x is being deleted, and is not replaced", ""},
		{"it is being deleted, and has no pods", install + deletedOperator() + owned, dead, "it is being deleted, and has no pods any more", ""},
		{"it is being deleted, and its pod is not", install + deletedOperator() + pod(ready) + owned, unknown, "it is being deleted, while its pod widget-operator-x is ready", "is running, but"},
		{"its pod is being deleted", install + deployment(1) + deletedPod(ready) + owned, unknown, "its pod widget-operator-x is being deleted", "no other comes"},
		{"its pod is being deleted beside another", install + deployment(1) + deletedPod(ready) + strings.ReplaceAll(pod(ready), "widget-operator-x", "widget-operator-y") + owned, progressing, "", ""},
		{"a pod without a workload is being deleted", base + account + roles + deletedPod(notReady) + owned, "Widget/s/w: Stuck fin-dead@widget-operator-x*1\n", "its pod widget-operator-x is being deleted, and is not replaced", "rollout"},
		{
			"a pod of another kind of workload is being deleted", base + account + roles + strings.Replace(deletedPod(notReady), `"labels"`, `"ownerReferences":[{"apiVersion":"apps.example.org/v1","kind":"CloneSet","name":"c","uid":"c","controller":true}],"labels"`, 1) + owned,
			unknown, "its pod widget-operator-x is being deleted", "no other comes",
		},
		{"scaled to 0, and its pod has stopped", install + deployment(0) + deletedPod(notReady) + owned, dead, "it is scaled to 0", ""},
	} {
		t.Run(c.name, func(t *testing.T) { checkCause(t, parse(t, c.cluster), c.want, c.says, c.never) })
	}
}

// TestDeniedByName looks at what is said of rules for objects by their names.
func TestDeniedByName(t *testing.T) {
	denied := base + account + strings.Replace(roles, `"verbs"`, `"resourceNames":["v"],"verbs"`, 1) + deployment(1) + pod(ready) + owned
	const want = "Widget/s/w: Stuck fin-rbac@widget-operator*1\n"
	checkCause(t, parse(t, denied), want, "RBAC allows it nothing; ClusterRole/widgets allows get, list, watch, update, patch only for those named v", "and neither update nor patch;")
	checkCause(t, parse(t, denied), want, "auth can-i patch widgets.example.com/w --as", "")
	mayRead := strings.ReplaceAll(readOnly, "widgets {", "readers {")
	mayRead = strings.ReplaceAll(strings.ReplaceAll(mayRead, "ClusterRoleBinding/widgets", "ClusterRoleBinding/readers"), `"name":"widgets"}`, `"name":"readers"}`)
	checkCause(t, parse(t, denied+mayRead), want,
		"RBAC allows it get, list, watch (ClusterRole/readers), and neither update nor patch; ClusterRole/widgets allows get, list, watch, update, patch only for those named v", "")
}

// TestSearched looks at what is said of lists that were refused.
func TestSearched(t *testing.T) {
	const object = "ConfigMap/s/w deleted=60 finalizers=acme.org/x\n"
	for _, c := range []struct{ name, cluster, says string }{
		{"all", base + object, "no API group of its domain, 0 workloads, 0 rules of RBAC, 1 lease"},
		{
			"nothing", "unreadable deployments\nunreadable statefulsets\nunreadable daemonsets\nunreadable clusterroles\nunreadable roles\nunreadable clusterrolebindings\nunreadable rolebindings\n" +
				"unlisted leases\nunlisted customresourcedefinitions\n" + object,
			"API groups unknown (customresourcedefinitions.apiextensions.k8s.io could not be read), " +
				"workloads unknown (deployments.apps, statefulsets.apps, daemonsets.apps could not be read), " +
				"rules of RBAC unknown (clusterroles.rbac.authorization.k8s.io, roles.rbac.authorization.k8s.io, clusterrolebindings.rbac.authorization.k8s.io, rolebindings.rbac.authorization.k8s.io could not be read), " +
				"leases unknown (leases.coordination.k8s.io could not be read)",
		},
		{"some", "unreadable statefulsets\n" + base + deployment(1) + object, "1 workload (statefulsets.apps could not be read)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			causes := parse(t, c.cluster).report(t).Causes
			if len(causes) != 1 || !strings.Contains(said(causes[0]), c.says) {
				t.Errorf("want %q in %s", c.says, said(causes[0]))
			}
		})
	}
}

// said is everything that a cause says.
func said(c *explain.Cause) string {
	var b strings.Builder
	b.WriteString(c.ID + " " + c.Object.String() + "\n" + c.Summary.String() + "\n")
	facts := c.Evidence
	if c.Controller != nil {
		b.WriteString(c.Controller.Name.String() + " " + c.Controller.Liveness + "\n")
		facts = append(facts[:len(facts):len(facts)], c.Controller.Evidence...)
	}
	for _, e := range facts {
		b.WriteString(e.Key() + "\n")
	}
	for _, r := range c.Remedies {
		b.WriteString(string(r.Risk) + " " + r.Command + " " + r.Effect.String() + "\n")
	}
	return b.String()
}

// checkCause compares the explanation of the widget, or of the ConfigMap, and
// what its first cause says.
func checkCause(t *testing.T, s *scenario, want, says, never string) {
	t.Helper()
	var explained, got string
	for line := range strings.Lines(s.explained(t)) {
		if strings.Contains(line, "/s/w: ") {
			explained += line
		}
	}
	if diff := cmp.Diff(want, explained); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, o := range s.report(t).Objects {
		if o.Object.Name == "w" && len(o.Findings) > 0 {
			got = said(o.Findings[0].Cause)
		}
	}
	if got == "" || !strings.Contains(got, says) || never != "" && strings.Contains(got, never) {
		t.Errorf("want %q and not %q in\n%s", says, never, got)
	}
}
