// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	gccmd "github.com/kubectl-gc/kubectl-gc/pkg/cmd"
	"github.com/kubectl-gc/kubectl-gc/pkg/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/render"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// stays is what a release of Helm leaves behind, and what others have beside it.
const stays = `
apiVersion: v1
kind: ConfigMap
metadata: {name: notes, namespace: shop, labels: {app.kubernetes.io/instance: web}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: used, namespace: shop, labels: {app.kubernetes.io/instance: web}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argued, namespace: shop, labels: {app.kubernetes.io/instance: web}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: adopted, namespace: shop, labels: {app.kubernetes.io/instance: web}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: again, namespace: shop, labels: {app.kubernetes.io/instance: web}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: unlabelled, namespace: shop, labels: {app.kubernetes.io/instance: web}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: bound, namespace: shop, labels: {app.kubernetes.io/instance: web}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: users, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: bound}
subjects: [{kind: User, name: anna, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other, namespace: shop}
spec:
  replicas: 0
  selector: {matchLabels: {app: other}}
  template: {metadata: {labels: {app: other}}, spec: {containers: [{name: other, image: registry.example.com/other, envFrom: [{configMapRef: {name: used}}]}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: alone, namespace: shop}
spec: {containers: [{name: alone, image: registry.example.com/other, args: [--settings=argued], env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: token, key: token, optional: true}}}]}], imagePullSecrets: [{name: pull}]}
---
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: shop, labels: {app.kubernetes.io/instance: web}}
---
apiVersion: v1
kind: Secret
metadata: {name: pull, namespace: shop, labels: {app.kubernetes.io/instance: web}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook}
webhooks:
- name: hook.example.com
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
  rules: [{apiGroups: [example.com], apiVersions: ['*'], operations: [CREATE], resources: ['*']}]
  clientConfig: {service: {namespace: shop, name: hook}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: shop-db}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Delete
  claimRef: {namespace: shop, name: data-db-0}
  hostPath: {path: /nowhere}
`

const calledService = `---
apiVersion: v1
kind: Service
metadata: {name: hook}
spec: {ports: [{port: 443}], selector: {app: web}}
`

const widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: one, namespace: shop}}"

// leavings is a cluster in which a release was planned, and what runs the plugin on it.
type leavings struct {
	*testing.T
	cp   *controlplane.ControlPlane
	plan string
}

func (l *leavings) file(name, text string) string {
	l.Helper()
	path := filepath.Join(filepath.Dir(l.plan), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.Fatal(err)
	}
	return path
}

// run runs uninstall with arguments and an input, in which it expects an exit code and words; words after ! must not be there.
func (l *leavings) run(code int, args, in string, wants ...string) string {
	l.Helper()
	var stdout, stderr bytes.Buffer
	argv := append([]string{"kubectl-gc", "uninstall"}, strings.Fields(args)...)
	got := gccmd.Run(l.Context(), append(argv, "--kubeconfig="+l.cp.Kubeconfig), genericiooptions.IOStreams{In: strings.NewReader(in), Out: &stdout, ErrOut: &stderr})
	text := stdout.String() + stderr.String()
	if got != code {
		l.Errorf("uninstall %s: exit code %d, want %d:\n%s", args, got, code, text)
	}
	for _, want := range wants {
		not := strings.HasPrefix(want, "!")
		if strings.Contains(text, strings.TrimPrefix(want, "!")) == not {
			l.Errorf("uninstall %s: want %q:\n%s", args, want, text)
		}
	}
	return stdout.String()
}

// TestLeftovers removes what a release leaves behind, and nothing of which anything has come to depend.
func TestLeftovers(t *testing.T) {
	parallel(t)
	l := &leavings{t, controlplane.Start(t, controlplane.Options{Controllers: "all", FakeNodes: 2, GraceCap: time.Second}), filepath.Join(t.TempDir(), "plan.json")}
	released := l.file("released.yaml", released+calledService)
	l.deploy(released)
	const web = "helm web -n shop "
	l.run(0, web, "", "Leftovers:    save this plan now: kubectl gc uninstall helm web -n shop", " --output=json > plan.json; after the tool has run: kubectl gc", "--remove-leftovers=plan.json")
	l.run(0, web+"--prepare --yes --timeout=40s", "", "Leftovers: ", "!--prepare", "!--yes", "!--timeout")
	document := l.run(0, web+"-o json", "")
	l.file("plan.json", document)
	remove := web + "--remove-leftovers=" + l.plan + " "

	l.run(1, remove+"--yes", "", "error: removing what helm uninstall web -n shop left behind: ", " still exists", "hint: uninstall first, then remove the leftovers: helm uninstall web -n shop")
	l.uninstall()
	l.run(1, remove+"--yes", "", "a release of the name has the status unknown in Secret/shop/sh.helm.release.v1.web.v1")
	l.cp.Kubectl(t, "-n", "shop", "label", "secret/sh.helm.release.v1.web.v1", "status=uninstalling")
	l.run(1, remove+"--yes", "", "the uninstallation failed or is not finished")
	l.cp.Kubectl(t, "-n", "shop", "label", "--overwrite", "secret/sh.helm.release.v1.web.v1", "status=uninstalled")

	l.plans(document)
	l.run(1, "helm other -n shop --yes --remove-leftovers="+l.plan, "", "is the plan of helm uninstall web -n shop in namespace shop")
	l.run(1, web+"--yes --remove-leftovers="+released, "", "it is not an UninstallPlan")
	l.run(1, web+"--yes --remove-leftovers=", "", "needs the file of a plan")
	l.run(1, remove+"--prepare", "", "--prepare is for the time before")
	l.run(1, web+"--include=crd/x", "", "needs --remove-leftovers")
	l.run(1, remove+"--include=crd/x", "", "the plan has no such object")

	l.spoil()
	l.run(1, remove+"--yes --include=configmap/notes", "", "Service/shop/hook exists again: it was installed again, or something recreates it", "hint: save a plan of what is installed now")
	l.cp.Kubectl(t, "-n", "shop", "delete", "service/hook")
	l.cp.Kubectl(t, "-n", "shop", "wait", "--for=delete", "endpoints,endpointslices", "-l", "app=hook", "--timeout=60s")
	kept := []string{
		"configmap/adopted -n shop: changed since the plan; belongs to Release/shop/blog", "configmap/again -n shop: created again since the plan", "configmap/used -n shop: used by Deployment/shop/other", "secret/pull, secret/token -n shop: used by Pod/shop/alone",
		"configmap/unlabelled -n shop: changed since the plan; does not have the label app.kubernetes.io/instance=web any more", "role/bound -n shop: used by RoleBinding/shop/users",
		"configmap/kept", "customresourcedefinition/widgets.example.com: kept by the tool; deleted only when --include names it; its deletion deletes 1 instance: widget/one -n shop", "deleted only when --include names it", "persistentvolumeclaim/data-db-0 -n shop",
	}
	unnamed := "label app.kubernetes.io/instance=web; deleted only when --include names it"
	l.run(0, remove+"--yes", "", append(kept, "NOT KNOWN     configmap/argued -n shop: Pod/shop/alone has its name in spec.containers.args, and whether that is a use is not known", "configmap/notes -n shop: "+unnamed, "Nothing is deleted: name with --include")...)
	named := remove + "--include=configmap/notes,validatingwebhookconfiguration/hook "

	l.documents(remove, named)
	l.run(3, remove+"--yes --as=viewer", "", "Secret/shop/login was to be deleted, and whether it exists could not be read")
	l.run(0, named+"--dry-run", "", append(kept, "PREVIEW  delete what helm uninstall web -n shop left behind: configmap/notes -n shop", "!left  ", "ValidatingWebhookConfiguration/hook")...)
	l.run(2, remove+"--dry-run --include=configmap/notes,configmap/adopted", "", "PREVIEW  delete what helm uninstall web -n shop left behind: configmap/notes -n shop")
	l.run(1, named, "", "there is no terminal", "--confirm=sha256:")
	l.run(1, named+"--confirm=sha256:x", "", "it is not that of sha256:x any more")
	l.cp.Kubectl(t, "-n", "shop", "patch", "configmap/notes", "--type=merge", "-p", `{"data":{"a":"b"}}`)
	l.run(0, named+"--yes", "", append(kept, "Warning: changed since the plan: configmap/notes -n shop", "deleted: 1 ConfigMap, 1 ValidatingWebhookConfiguration", "Of what helm uninstall web -n shop left behind:", "!gone already")...)
	l.run(0, named+"--yes", "", "Nothing is deleted")

	l.run(2, remove+"--yes --include=configmap/adopted,role/bound", "", "configmap/adopted -n shop: changed since the plan; belongs to Release/shop/blog", "role/bound -n shop: used by")
	l.run(0, remove+"--yes --include=crd/widgets.example.com", "", "Warning: customresourcedefinition/widgets.example.com: its deletion deletes 1 instance: widget/one -n shop", "1 CustomResourceDefinition, 1 Widget")

	claim := remove + "-i --include=pvc/shop/data-db-0 "
	l.cp.Kubectl(t, "-n", "shop", "apply", "-f", l.file("stateful.yaml", stateful))
	l.run(1, claim, "", "StatefulSet/shop/db exists again: it was installed again")
	l.cp.Kubectl(t, "-n", "shop", "delete", "statefulset/db")
	l.run(1, claim, "y\n", "and DESTROY 1Gi on pv/shop-db?", "not confirmed")
	l.run(0, claim, "data-db-0\n", "1 PersistentVolumeClaim")

	l.cp.Kubectl(t, "-n", "shop", "label", "--overwrite", "secret/sh.helm.release.v1.web.v1", "status=deployed")
	l.run(1, remove+"--yes", "", "nothing is left behind of a release that is installed")
	want := "configmap/adopted configmap/again configmap/argued configmap/kept configmap/kube-root-ca.crt configmap/odd configmap/unlabelled configmap/used"
	if got := strings.Join(strings.Fields(l.cp.Kubectl(t, "-n", "shop", "get", "configmaps", "-o", "name")), " "); got != want {
		t.Errorf("left: %s, want %s", got, want)
	}
}

// plans reads plans that were changed, in both formats.
func (l *leavings) plans(document string) {
	const web = "helm web -n shop --yes --remove-leftovers="
	changed := l.file("changed.json", regexp.MustCompile(`"result": "Deleted"`).ReplaceAllString(document, `"result": "Unchanged"`))
	l.run(1, web+changed, "", "it was changed since it was saved", "hint: before the tool runs, save the plan")
	l.run(1, web+l.file("emptied.json", regexp.MustCompile(`"digest": "[^"]*",`).ReplaceAllString(document, "")), "", "it was changed since it was saved")
	l.run(1, web+l.file("field.json", strings.Replace(document, "{", `{"foo": "bar",`, 1)), "", "it has fields that an UninstallPlan does not have")
	l.run(1, web+l.file("twice.json", document+document), "", "it has more than one document")
	sealed := l.sealed(document, func(*render.UninstallPlan) {})
	text, err := os.ReadFile(sealed)
	if err != nil {
		l.Fatal(err)
	}
	l.run(1, web+l.file("twice.yaml", string(text)+"\n---\nfoo: bar\n"), "", "it has more than one document")
	l.run(1, web+l.sealed(document, func(d *render.UninstallPlan) { d.Cluster = "x" }), "", "the plan is of another cluster")
	l.run(1, web+l.sealed(document, func(d *render.UninstallPlan) { d.Barriers, d.Outcome = nil, nil }), "", "nothing shows that the tool has run")
	l.run(0, web+l.sealed(document, func(*render.UninstallPlan) {})+" --dry-run", "", "configmap/kept, configmap/odd -n shop")

	twice := l.sealed(document, func(d *render.UninstallPlan) {
		other := d.Kept[slices.IndexFunc(d.Kept, func(k render.KeptObject) bool { return k.Object.Name == "kept" })]
		other.Object.Namespace, other.Object.UID = "elsewhere", "x"
		d.Kept = append(d.Kept, other)
	})
	l.run(1, web+twice+" --include=configmap/kept", "", "the plan has configmap/kept -n elsewhere, configmap/kept -n shop; write TYPE/NAMESPACE/NAME")
	l.run(0, web+twice+" --include=configmap/elsewhere/kept", "", "gone already  configmap/kept -n elsewhere", "configmap/kept, configmap/odd -n shop")
}

// sealed is the file of a plan, in YAML, that was changed by who can say of it that it was not.
func (l *leavings) sealed(document string, change func(*render.UninstallPlan)) string {
	l.Helper()
	var d render.UninstallPlan
	if err := json.Unmarshal([]byte(document), &d); err != nil {
		l.Fatal(err)
	}
	change(&d)
	d.Digest = ""
	d.Digest = preview.Checksum(d)
	text, err := yaml.Marshal(&d)
	if err != nil {
		l.Fatal(err)
	}
	return l.file("sealed.yaml", string(text))
}

// documents holds what programs are told to the schemas.
func (l *leavings) documents(remove, named string) {
	l.Helper()
	for _, test := range []struct {
		args, state, deletion string
	}{
		{remove, "Kept", ""}, {named + "--dry-run", "Removable", "DeletionPlan"}, {named + "--dry-run=server", "Removable", "DeletionPlan"},
	} {
		var d struct {
			Leftovers []struct {
				Object struct{ Name string }
				State  string
			}
			Deletion struct{ Kind string }
		}
		text := l.run(0, test.args+" -o json", "")
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err == nil {
			err = strictSchema(l.T, "leftoversreport").Validate(document)
		}
		if failed := json.Unmarshal([]byte(text), &d); err != nil || failed != nil {
			l.Errorf("%s: %v, %v\n%s", test.args, err, failed, text)
		}
		for _, o := range d.Leftovers {
			if o.Object.Name == "notes" && o.State != test.state {
				l.Errorf("%s: %+v", test.args, o)
			}
		}
		if d.Deletion.Kind != test.deletion {
			l.Errorf("%s: %s, want %q", test.args, d.Deletion.Kind, test.deletion)
		}
	}
	l.run(0, remove+"-o name", "", "configmap/notes\n", "validatingwebhookconfiguration.admissionregistration.k8s.io/hook\n")
}

// stateful is the StatefulSet again, without a pod.
const stateful = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 0
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: registry.example.com/db}]}}
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`

// deploy makes the release and what is beside it.
func (l *leavings) deploy(released string) {
	l.cp.Kubectl(l.T, "create", "namespace", "shop")
	l.cp.Kubectl(l.T, "apply", "-f", l.file("crd.yaml", sealed))
	l.cp.Kubectl(l.T, "-n", "shop", "apply", "-f", released)
	l.cp.Kubectl(l.T, "apply", "-f", l.file("stays.yaml", stays))
	text, err := os.ReadFile(released)
	if err != nil {
		l.Fatal(err)
	}
	l.cp.Kubectl(l.T, "-n", "shop", "apply", "-f", l.file("record.yaml", record(l.T, "web", 1, string(text))))
	l.cp.Kubectl(l.T, "wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=60s")
	l.cp.Kubectl(l.T, "apply", "-f", l.file("widget.yaml", widget))
	l.cp.Kubectl(l.T, "-n", "shop", "rollout", "status", "deployment/web", "--timeout=120s")
	l.cp.Kubectl(l.T, "-n", "shop", "rollout", "status", "statefulset/db", "--timeout=120s")
	l.cp.Kubectl(l.T, "-n", "shop", "wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data-db-0", "--timeout=60s")
	l.cp.Kubectl(l.T, "create", "clusterrolebinding", "viewer", "--clusterrole=view", "--user=viewer")
}

// uninstall deletes what Helm would delete, but the record.
func (l *leavings) uninstall() {
	l.cp.Kubectl(l.T, "-n", "shop", "delete", "--wait", "deployment/web", "statefulset/db", "service/hook", "secret/login")
	l.cp.Kubectl(l.T, "-n", "shop", "wait", "--for=delete", "pods,replicasets,controllerrevisions,endpointslices,endpoints", "-l", "app in (web,db)", "--timeout=60s")
}

// spoil changes the cluster after the uninstallation.
func (l *leavings) spoil() {
	l.cp.Kubectl(l.T, "-n", "shop", "delete", "configmap/again")
	l.cp.Kubectl(l.T, "-n", "shop", "create", "configmap", "again")
	l.cp.Kubectl(l.T, "-n", "shop", "annotate", "configmap/adopted", "meta.helm.sh/release-name=blog", "meta.helm.sh/release-namespace=shop")
	l.cp.Kubectl(l.T, "-n", "shop", "label", "configmap/unlabelled", "app.kubernetes.io/instance-")
	l.cp.Kubectl(l.T, "-n", "shop", "apply", "-f", l.file("service.yaml", strings.TrimPrefix(calledService, "---\n")))
}

// hurried is a user who answers after something has happened.
type hurried struct {
	happens func()
	answer  string
}

func (h *hurried) Read(into []byte) (int, error) {
	if h.answer == "" {
		return 0, io.EOF
	}
	h.happens()
	n := copy(into, h.answer)
	h.answer = ""
	return n, nil
}

// TestPrepareAgain prepares nothing for a tool that has run, or is to keep things, while the user was asked.
func TestPrepareAgain(t *testing.T) {
	parallel(t)
	cp := controlplane.Start(t, controlplane.Options{Controllers: "all", FakeNodes: 2, GraceCap: time.Second})
	l := &leavings{t, cp, filepath.Join(t.TempDir(), "plan.json")}
	example := func(name string) string { return filepath.Join("..", "..", "docs", "examples", name) }
	cp.Kubectl(t, "apply", "-f", example("toy-operator.yaml"))
	cp.Kubectl(t, "wait", "--for=condition=Established", "crd/toys.foresight.test", "--timeout=60s")
	cp.Kubectl(t, "rollout", "status", "-n", "toy-system", "deployment/toy-operator", "--timeout=60s")
	cp.Kubectl(t, "apply", "-f", example("toys.yaml"), "-f", example("toy-release.yaml"))
	cp.Kubectl(t, "patch", "-n", "toy-system", "toy/ball", "toy/kite", "--field-manager=toy-operator", "--type=merge", "-p", `{"metadata":{"finalizers":["foresight.test/cleanup"]}}`)
	manifest, err := os.ReadFile(example("toy-manifest.yaml")) // without the definition
	if err != nil {
		t.Fatal(err)
	}
	keeps := l.file("keeps.yaml", strings.ReplaceAll(record(t, "toy", 2, string(manifest)), "namespace: shop", "namespace: toy-system"))
	for _, test := range []struct {
		happens func()
		code    int
		want    string
	}{
		{func() { cp.Kubectl(t, "apply", "-f", keeps) }, 2, "Nothing was changed: the chosen objects are gone, or not chosen any more."},
		{func() { cp.Kubectl(t, "delete", "secrets", "-n", "toy-system", "-l", "owner=helm") }, 1, "has a release"},
	} {
		var stdout, stderr bytes.Buffer
		argv := strings.Fields("kubectl-gc uninstall helm toy -n toy-system --prepare -i --kubeconfig=" + cp.Kubeconfig)
		code := gccmd.Run(t.Context(), argv, genericiooptions.IOStreams{In: &hurried{test.happens, "y\n"}, Out: &stdout, ErrOut: &stderr})
		if code != test.code || !strings.Contains(stderr.String(), test.want) {
			t.Errorf("exit code %d, want %d with %q:\n%s%s", code, test.code, test.want, &stdout, &stderr)
		}
		if ending := cp.Kubectl(t, "get", "toys", "-n", "toy-system", "-o", "jsonpath={.items[*].metadata.deletionTimestamp}"); ending != "" {
			t.Fatalf("toys are being deleted: %s", ending)
		}
		cp.Kubectl(t, "delete", "secrets", "-n", "toy-system", "-l", "owner=helm")
		cp.Kubectl(t, "apply", "-f", example("toy-release.yaml"))
	}
}
