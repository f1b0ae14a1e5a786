// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

const fin = "widgets.example.com/cleanup"

// The parts of an operator. Its Deployment wants one pod.
const (
	widget    = "Widget/s/w deleted=60 finalizers=" + fin + "\n"
	widgetCRD = "CustomResourceDefinition/widgets.example.com\n"
	account   = "ServiceAccount/op/widget-operator\n"
	roles     = `ClusterRole/widgets {"rules":[{"apiGroups":["example.com"],"resources":["widgets"],"verbs":["get","list","watch","update","patch"]}]}` + "\n" + binding
	binding   = `ClusterRoleBinding/widgets {"roleRef":{"kind":"ClusterRole","name":"widgets"},"subjects":[{"kind":"ServiceAccount","namespace":"op","name":"widget-operator"}]}` + "\n"
	readOnly  = `ClusterRole/widgets {"rules":[{"apiGroups":["example.com"],"resources":["widgets"],"verbs":["get","list","watch"]}]}` + "\n" + binding
	setter    = `"managedFields":[{"manager":"widget-operator","operation":"Update","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:finalizers":{"v:\"` + fin + `\"":{}}}}}]`
	byKubectl = `"managedFields":[{"manager":"kubectl-edit","operation":"Update","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:finalizers":{"v:\"FINALIZER\"":{}}}}}]`
	owned     = "Widget/s/w deleted=60 finalizers=" + fin + ` {"metadata":{` + setter + "}}\n"
)

// deployment wants so many pods.
func deployment(replicas int) string {
	return fmt.Sprintf(`Deployment/op/widget-operator {"metadata":{"generation":1},"spec":{"replicas":%d,"selector":{"matchLabels":{"app":"w"}},"template":{"metadata":{"labels":{"app":"w"}},"spec":{"serviceAccountName":"widget-operator","containers":[{"name":"manager","image":"registry.example.com/acme/widget-operator:v1"}]}}}}`, replicas) + "\n"
}

// pod is one of the operator, with a status.
func pod(status string) string {
	return `Pod/op/widget-operator-x {"metadata":{"labels":{"app":"w"}},"spec":{"nodeName":"n","serviceAccountName":"widget-operator"},"status":` + status + "}\n"
}

const (
	ready    = `{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"manager","state":{"running":{}}}]}`
	crashes  = `{"phase":"Running","conditions":[{"type":"Ready","status":"False"}],"containerStatuses":[{"name":"manager","restartCount":7,"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off"}},"lastState":{"terminated":{"exitCode":2,"reason":"Error"}}}]}`
	noPull   = `{"phase":"Pending","conditions":[{"type":"Ready","status":"False"}],"containerStatuses":[{"name":"manager","state":{"waiting":{"reason":"ImagePullBackOff"}}}]}`
	starting = `{"phase":"Pending","conditions":[{"type":"Ready","status":"False"}],"containerStatuses":[{"name":"manager","state":{"waiting":{"reason":"ContainerCreating"}}}]}`
)

// install is everything that an operator consists of but its pods.
var install = alive + node + widgetCRD + account + roles

// leaseOf is a lease that the operator's pod has renewed so many seconds ago.
func leaseOf(seconds string) string {
	return `Lease/op/a1b2.example.com {"spec":{"holderIdentity":"widget-operator-x_1","leaseDurationSeconds":15,"renewTime":"` + seconds + `"}}` + "\n"
}

const (
	renewed = "2026-01-02T03:04:00.000000Z"
	stale   = "2026-01-02T02:04:00.000000Z"
)

func person(kind, finalizer string) string {
	return kind + " deleted=60 finalizers=" + finalizer + ` {"metadata":{` + strings.ReplaceAll(byKubectl, "FINALIZER", finalizer) + "}}\n"
}

// status is a widget with a status, deleted so many seconds ago.
func status(deleted int, status string) string {
	return fmt.Sprintf("Widget/s/w deleted=%d finalizers=%s ", deleted, fin) + `{"metadata":{"generation":2,` + setter + `},"status":` + status + "}\n"
}

// TestControllerIsNamed looks at what is said of a controller.
func TestControllerIsNamed(t *testing.T) {
	for _, c := range []struct {
		name, cluster, liveness, actor string
		remedies                       []string
	}{
		{"dead", install + deployment(0) + owned, controllers.Dead, "Deployment/op/widget-operator", []string{
			"safe kubectl -n op scale deployment/widget-operator --current-replicas=0 --replicas=1",
			`dangerous kubectl -n s patch widgets.v1.example.com/w --type=json -p '[{"op":"test","path":"/metadata/uid","value":"w"},{"op":"test","path":"/metadata/finalizers/0","value":"widgets.example.com/cleanup"},{"op":"remove","path":"/metadata/finalizers/0"}]'`,
		}},
		{"crashing", install + deployment(1) + pod(crashes) + owned, controllers.Dead, "Deployment/op/widget-operator", []string{
			"safe kubectl -n op logs pod/widget-operator-x --all-containers --previous",
			"safe kubectl -n op describe pod/widget-operator-x",
			`dangerous kubectl -n s patch widgets.v1.example.com/w --type=json -p '[{"op":"test","path":"/metadata/uid","value":"w"},{"op":"test","path":"/metadata/finalizers/0","value":"widgets.example.com/cleanup"},{"op":"remove","path":"/metadata/finalizers/0"}]'`,
		}},
		{"denied", alive + node + widgetCRD + account + readOnly + deployment(1) + pod(ready) + owned, controllers.Denied, "Deployment/op/widget-operator", []string{
			"safe kubectl auth can-i patch widgets.example.com/w --as=system:serviceaccount:op:widget-operator -n s",
			"safe kubectl -n op logs deployment/widget-operator --all-containers --since=1h | grep -iwE 'w|finaliz[a-z]*'",
		}},
		{"working", install + deployment(1) + pod(ready) + owned, controllers.Alive, "Deployment/op/widget-operator", []string{
			"safe kubectl -n op logs deployment/widget-operator --all-containers --since=1h | grep -iwE 'w|finaliz[a-z]*'",
		}},
		{"silent", install + deployment(1) + pod(ready) + status(3600, `{}`), controllers.Alive, "Deployment/op/widget-operator", []string{
			"safe kubectl -n op logs deployment/widget-operator --all-containers --since=1h | grep -iwE 'w|finaliz[a-z]*'",
			"disruptive kubectl -n op rollout restart deployment/widget-operator",
		}},
		{"absent", alive + widgetCRD + owned, controllers.Absent, "the controller of widgets.example.com/cleanup", []string{
			"safe ",
			`dangerous kubectl -n s patch widgets.v1.example.com/w --type=json -p '[{"op":"test","path":"/metadata/uid","value":"w"},{"op":"test","path":"/metadata/finalizers/0","value":"widgets.example.com/cleanup"},{"op":"remove","path":"/metadata/finalizers/0"}]'`,
		}},
		{"unknown", "unreadable deployments\n" + alive + widgetCRD + owned, controllers.Unsure, "the controller of widgets.example.com/cleanup", []string{
			"safe kubectl -n s get widgets.v1.example.com/w -o yaml --show-managed-fields",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			causes := parse(t, c.cluster).report(t).Causes
			if len(causes) != 1 || causes[0].Controller == nil {
				t.Fatalf("causes: %+v", causes)
			}
			if got := causes[0].Controller; got.Liveness != c.liveness || got.Name.String() != c.actor {
				t.Errorf("controller %q is %s, want %q %s", got.Name, got.Liveness, c.actor, c.liveness)
			}
			var got []string
			for _, r := range causes[0].Remedies {
				got = append(got, string(r.Risk)+" "+r.Command)
			}
			if diff := cmp.Diff(c.remedies, got); diff != "" {
				t.Errorf("remedies: -want +got:\n%s", diff)
			}
		})
	}
}

// tenant is an installation of the widgets' operator that serves its own namespace. Without a pod
// it is scaled to 0, without a Deployment only its rights are left.
func tenant(namespace string, parts ...string) string {
	account := "ServiceAccount/" + namespace + "/widget-operator\n" +
		"Role/" + namespace + `/widgets {"rules":[{"apiGroups":["example.com"],"resources":["widgets"],"verbs":["update"]}]}` + "\n" +
		"RoleBinding/" + namespace + `/widgets {"roleRef":{"kind":"Role","name":"widgets"},"subjects":[{"kind":"ServiceAccount","namespace":"` + namespace + `","name":"widget-operator"}]}` + "\n"
	return account + strings.ReplaceAll(strings.Join(parts, ""), "/op/", "/"+namespace+"/")
}

// TestTenants: where a product is installed in each namespace, with rights in that alone, nobody
// is blamed for what is another's.
func TestTenants(t *testing.T) {
	cluster := alive + node + widgetCRD + owned
	many := cluster
	for _, namespace := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "s"} {
		many += tenant(namespace, deployment(1), pod(ready))
	}
	unset := strings.ReplaceAll(cluster, "widget-operator", "manager")
	elsewhere := "Role/c/widgets " + `{"rules":[{"apiGroups":["example.com"],"resources":["widgets"],"verbs":["update"]}]}` + "\n" +
		"RoleBinding/c/widgets " + `{"roleRef":{"kind":"Role","name":"widgets"},"subjects":[{"kind":"ServiceAccount","namespace":"b","name":"widget-operator"}]}` + "\n"
	denied := strings.ReplaceAll(account+deployment(1)+pod(ready), "/op/", "/b/")
	for _, c := range []struct{ name, cluster, want string }{
		{"its own works, the last of many", many, "Progressing fin-working Deployment/s/widget-operator is running"},
		{"its own does not run", cluster + tenant("s", deployment(0)) + tenant("b", deployment(1), pod(ready)), "Stuck fin-dead the controller is down"},
		{"its own is gone, its rights are left", cluster + tenant("s") + tenant("b", deployment(1), pod(ready)), "Unknown fin-unknown have run as ServiceAccount/s/widget-operator, which has the right to change the object, but no workload runs as that; Deployment/b/widget-operator (running)"},
		{"its own is gone, another does not run", cluster + tenant("s") + tenant("b", deployment(0)), "Unknown fin-unknown Deployment/b/widget-operator (not running)"},
		{"its own is gone with all", cluster + tenant("b", deployment(1), pod(ready)), "Unknown fin-unknown Deployment/b/widget-operator (running)"},
		{"its own is gone with all, another does not run", cluster + tenant("b", deployment(0)), "Unknown fin-unknown Deployment/b/widget-operator (not running)"},
		{"the name of who set it is anybody's", unset + tenant("b", deployment(0)), "Unknown fin-unknown Deployment/b/widget-operator (not running)"},
		{"another serves several namespaces, and has its own", cluster + tenant("s") + elsewhere + tenant("b", deployment(1), pod(ready)), "Unknown fin-unknown Deployment/b/widget-operator (running)"},
		{"its own is gone with all, another may only read", cluster + strings.ReplaceAll(tenant("b", deployment(1), pod(ready)), "update", "get"), "Unknown fin-unknown Deployment/b/widget-operator (running) has no right to such objects in s"},
		{"its own is gone with all, another has lost its rights, a third has its own", cluster + denied + tenant("c", deployment(1), pod(ready)), "Unknown fin-unknown Deployment/c/widget-operator (running) has no right to such objects in s"},
		{"the only one has no rights", cluster + denied, "Unknown fin-unknown Deployment/b/widget-operator (running) has the name of its controller, but RBAC gives it no right"},
		{"one serves several namespaces, and lacks a right in this", cluster + elsewhere + tenant("b", deployment(1), pod(ready)), "Stuck fin-rbac Deployment/b/widget-operator is running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			report := parse(t, c.cluster).report(t)
			got := fmt.Sprintf("%s %s %s", report.Objects[0].Verdict, report.Causes[0].ID, report.Causes[0].Summary)
			words := strings.SplitAfterN(c.want, " ", 3)
			if !strings.HasPrefix(got, words[0]+words[1]) || !strings.Contains(got, words[2]) {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// TestAbsenceNeedsEverything lets one read after another fail: nothing is called
// absent then.
func TestAbsenceNeedsEverything(t *testing.T) {
	for _, object := range []string{widgetCRD + owned, person("ConfigMap/s/c", "acme.org/hold"), widgetCRD + roles + "no namespace op\n" + owned} {
		if got := parse(t, alive+object).explained(t); !strings.Contains(got, "Stuck fin-") {
			t.Fatalf("everything can be read: %s", got)
		}
		for _, failure := range []string{
			"unreadable deployments", "unreadable statefulsets", "unreadable daemonsets",
			"unreadable clusterroles", "unreadable clusterrolebindings", "unreadable roles", "unreadable rolebindings",
			"unreadable validatingwebhookconfigurations", "unreadable mutatingwebhookconfigurations",
			"unlisted customresourcedefinitions", "unlisted leases", "unlisted namespaces",
		} {
			t.Run(failure, func(t *testing.T) {
				if got := parse(t, failure+"\n"+alive+object).explained(t); !strings.Contains(got, "Unknown fin-unknown") || strings.Contains(got, "Stuck") {
					t.Errorf("%s\n%s", got, object)
				}
			})
		}
	}
}

// TestUserCatalogue looks for what the user's catalogue names.
func TestUserCatalogue(t *testing.T) {
	const text = `
finalizers:
- finalizer: acme.org/x
  product: Acme
  workloads: [{kind: Deployment, namespace: op, name: widget-operator}]
  helpers: [{kind: StatefulSet, name: store}]
`
	catalogue, err := finalizers.Load(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	const object = "ConfigMap/s/c deleted=60 finalizers=acme.org/x\n"
	rights := `ClusterRole/maps {"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["patch"]}]}` + "\n" + strings.ReplaceAll(binding, `"name":"widgets"}`, `"name":"maps"}`)
	running := alive + node + account + deployment(1) + pod(ready) + rights + object
	for _, c := range []struct{ name, cluster, want string }{
		{"gone", alive + object, "ConfigMap/s/c: Stuck fin-absent@c*1\n"},
		{"works", running, "ConfigMap/s/c: Progressing fin-working@c*1\n"},
		{"down", alive + account + deployment(0) + rights + object, "ConfigMap/s/c: Stuck fin-dead@widget-operator*1\n"},
		{"what it needs is down", running + `StatefulSet/op/store {"spec":{"replicas":0,"selector":{"matchLabels":{"app":"s"}}}}`, "ConfigMap/s/c: Stuck fin-dead@store*1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parse(t, c.cluster)
			s.catalogue = finalizers.Builtin().Merge(catalogue)
			if diff := cmp.Diff(c.want, s.explained(t)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestLiveControllerIsNeverDead puts a controller that works, known by any sign,
// among others that do not and whatever cannot be read. Nothing may say that it
// is dead, absent, or without rights.
func TestLiveControllerIsNeverDead(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pick := func(name string, options ...string) string { return rapid.SampledFrom(options).Draw(rt, name) }
		cluster := node + widgetCRD + account + deployment(1) + pod(ready) +
			pick("manager", alive, "", "lease kube-system/kube-controller-manager 600\n") +
			pick("lease", "", leaseOf(renewed)) +
			pick("unreadable", "", "unreadable deployments\n", "unreadable clusterroles\n", "unreadable rolebindings\n", "unreadable statefulsets\n", "unreadable pods\n", "unlisted leases\n", "unlisted customresourcedefinitions\n")
		all := `ClusterRole/widgets {"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}` + "\n" + binding
		cluster += pick("rights", roles, all)
		finalizer := pick("finalizer", fin, "example.com/x", "cleanup", "acme.org/x")
		cluster += "Widget/s/w deleted=" + pick("age", "5", "60", "3600") + " finalizers=" + finalizer
		switch pick("setter", "nobody", "controller", "other") {
		case "controller":
			cluster += ` {"metadata":{` + strings.ReplaceAll(setter, fin, finalizer) + "}}"
		case "other":
			cluster += ` {"metadata":{` + strings.ReplaceAll(strings.ReplaceAll(setter, fin, finalizer), `"manager":"widget-operator"`, `"manager":"manager"`) + "}}"
		}
		cluster += "\n"
		for i := range rapid.IntRange(0, 2).Draw(rt, "others") {
			name := fmt.Sprintf("other-%d", i)
			cluster += strings.ReplaceAll(strings.ReplaceAll(deployment(0), "widget-operator", name), `"w"`, `"`+name+`"`)
			cluster += pick("rights of others", "", strings.NewReplacer("ClusterRole/widgets", "ClusterRole/"+name, "ClusterRoleBinding/widgets", "ClusterRoleBinding/"+name, `"name":"widgets"`, `"name":"`+name+`"`, "widget-operator", name).Replace(roles))
		}
		got := parse(t, cluster).explained(t)
		for _, id := range []string{"fin-dead", "fin-absent", "fin-operator-in-ns", "fin-rbac"} {
			if strings.Contains(got, id) {
				rt.Fatalf("%s\n%s", got, cluster)
			}
		}
	})
}

// TestManyObjects explains 2,000 objects of a controller: what is asked of the
// cluster does not grow with them.
func TestManyObjects(t *testing.T) {
	for _, c := range []struct {
		name, operator string
		id             string
	}{
		{"dead", deployment(0), "fin-dead"},
		{"working", deployment(1) + pod(ready), "fin-working"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ask := func(objects int) (int, *explain.Report) {
				var cluster strings.Builder
				cluster.WriteString(install + c.operator)
				for i := range objects {
					fmt.Fprintf(&cluster, "Widget/s%d/w%d deleted=60 finalizers=%s {\"metadata\":{%s}}\n", i%10, i, fin, setter)
				}
				s := parse(t, cluster.String())
				report := s.report(t)
				return s.Requests, report
			}
			few, _ := ask(100)
			many, report := ask(2000)
			if many > few {
				t.Errorf("%d requests for 100 objects, %d for 2,000", few, many)
			}
			if many > 80 {
				t.Errorf("%d requests", many)
			}
			if len(report.Causes) != 1 || report.Causes[0].ID != c.id || report.Causes[0].Blocks != 2000 {
				t.Fatalf("causes: %+v", report.Causes)
			}
			if n := len(report.Causes[0].Remedies) + len(report.Causes[0].Evidence); n > 40 {
				t.Errorf("%d remedies and pieces of evidence", n)
			}
		})
	}
}

// TestLaggingClock looks at leases whose holders' clocks lag by an hour: those
// that are renewed meanwhile are fresh, and one pause does for all of them.
func TestLaggingClock(t *testing.T) {
	lagging := install + deployment(1) + pod(ready) + leaseOf(stale) + owned + "Node/m {\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}\n" +
		"lease kube-node-lease/m 3600\n" + `Pod/s/p deleted=300 grace=30 {"spec":{"nodeName":"m"},"status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}}` + "\n"
	for _, c := range []struct {
		name   string
		renews bool
		want   string
	}{
		{"renewed", true, "Pod/s/p: Stuck pod-kubelet-kill@p*1\nWidget/s/w: Progressing fin-working@w*1\n"},
		{"not renewed", false, "Pod/s/p: Stuck pod-node-notready@m*1\nWidget/s/w: Stuck fin-dead@widget-operator*1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, waited := parse(t, lagging), time.Duration(0)
			s.wait = func(d time.Duration) {
				waited += d
				for key, o := range s.Whole {
					if strings.HasPrefix(key, "leases/") && c.renews {
						later := o.DeepCopy()
						_ = unstructured.SetNestedField(later.Object, fmt.Sprintf("2026-01-02T02:05:%02d.000000Z", int(waited.Seconds())), "spec", "renewTime")
						s.Whole[key] = later
					}
				}
			}
			if diff := cmp.Diff(c.want, s.explained(t)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if waited == 0 || waited > 20*time.Second {
				t.Errorf("waited for %s", waited)
			}
		})
	}
}

// TestReleasedLease looks twice at the lease that a kube-controller-manager left
// when it ended in order: the next takes it, or nobody does.
func TestReleasedLease(t *testing.T) {
	const released = `Lease/kube-system/kube-controller-manager {"spec":{"holderIdentity":"","leaseDurationSeconds":1,"renewTime":"2026-01-02T03:04:00.000000Z"}}` + "\n" +
		"ConfigMap/s/a deleted=300 finalizers=foregroundDeletion\n"
	for name, c := range map[string]struct {
		taken    bool
		evidence string
	}{
		"taken":  {true, "it has no holder, but was taken since"},
		"nobody": {false, "it has no holder"},
	} {
		t.Run(name, func(t *testing.T) {
			s, waited := parse(t, released), time.Duration(0)
			s.wait = func(d time.Duration) {
				waited += d
				for key, o := range s.Whole {
					if strings.HasPrefix(key, "leases/") && c.taken {
						later := o.DeepCopy()
						_ = unstructured.SetNestedField(later.Object, "next_1", "spec", "holderIdentity")
						s.Whole[key] = later
					}
				}
			}
			report := s.report(t)
			if len(report.Causes) != 1 || len(report.Causes[0].Evidence) == 0 || report.Causes[0].Evidence[0].Value.String() != c.evidence {
				t.Errorf("causes: %+v", report.Causes)
			}
			if stuck := report.Causes[0].Verdict == explain.Stuck; stuck == c.taken || waited == 0 {
				t.Errorf("stuck: %t, after %s", stuck, waited)
			}
		})
	}
}
