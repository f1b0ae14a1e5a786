// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
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

// TestPrepareTakenOver deletes nothing that somebody takes over right before its turn, or of which it could not be read whose it is.
func TestPrepareTakenOver(t *testing.T) {
	parallel(t)
	cp := controlplane.Start(t, controlplane.Options{Controllers: "all", FakeNodes: 2, GraceCap: time.Second})
	l := &leavings{t, cp, filepath.Join(t.TempDir(), "plan.json")}
	example := func(name string) string { return filepath.Join("..", "..", "docs", "examples", name) }
	cp.Kubectl(t, "apply", "-f", example("toy-operator.yaml"))
	cp.Established(t, "crd/toys.foresight.test")
	cp.Kubectl(t, "rollout", "status", "-n", "toy-system", "deployment/toy-operator", "--timeout=60s")
	cp.Kubectl(t, "apply", "-f", example("toys.yaml"), "-f", example("toy-release.yaml"))
	cp.Kubectl(t, "patch", "-n", "toy-system", "toy/ball", "toy/kite", "--field-manager=toy-operator", "--type=merge", "-p", `{"metadata":{"finalizers":["foresight.test/cleanup"]}}`)
	cp.Kubectl(t, "apply", "-f", l.file("kustomizations.yaml", kustomizations))
	cp.Established(t, "crd/kustomizations.kustomize.toolkit.fluxcd.io")
	cp.Kubectl(t, "apply", "-f", l.file("kustomization.yaml", kustomization))
	unread := func(next http.Handler) http.Handler {
		return faulty(next, "504", regexp.MustCompile(`GET .*/namespaces/toy-system/toys\?`))
	}
	var first sync.Once
	takenOver := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				first.Do(func() {
					cp.Kubectl(t, "label", "-n", "toy-system", "toy/ball", "toy/kite", "kustomize.toolkit.fluxcd.io/name=toys", "kustomize.toolkit.fluxcd.io/namespace=toy-system")
				})
			}
			next.ServeHTTP(w, r)
		})
	}
	for _, test := range []struct {
		wrap func(http.Handler) http.Handler
		want string
	}{
		{unread, "Nothing can be prepared: ask a user who is allowed to read everything"},
		{takenOver, "it has been changed since, and is not deleted first any more"},
	} {
		server, kubeconfig, err := proxied(cp.Kubeconfig, test.wrap)
		if err != nil {
			t.Fatal(err)
		}
		direct := cp.Kubeconfig
		cp.Kubeconfig = l.file("kubeconfig", string(kubeconfig))
		l.run(2, "uninstall helm toy -n toy-system --prepare --yes", "", test.want)
		cp.Kubeconfig = direct
		server.Close()
		if ending := cp.Kubectl(t, "get", "toys", "-n", "toy-system", "-o", "jsonpath={.items[*].metadata.deletionTimestamp}"); ending != "" {
			t.Fatalf("toys are being deleted: %s", ending)
		}
	}
}

const kustomizations = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kustomizations.kustomize.toolkit.fluxcd.io}
spec:
  group: kustomize.toolkit.fluxcd.io
  scope: Namespaced
  names: {kind: Kustomization, plural: kustomizations}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

const kustomization = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: toys, namespace: toy-system}
status: {inventory: {entries: [{id: toy-system_other__ConfigMap, v: v1}]}}
`

func (l *leavings) file(name, text string) string {
	l.Helper()
	path := filepath.Join(filepath.Dir(l.plan), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.Fatal(err)
	}
	return path
}

// run runs the plugin with arguments and an input, in which it expects an exit code and words; words after ! must not be there.
func (l *leavings) run(code int, args, in string, wants ...string) string {
	l.Helper()
	var stdout, stderr bytes.Buffer
	argv := append([]string{"kubectl-gc"}, strings.Fields(args)...)
	got := gccmd.Run(l.Context(), append(argv, "--kubeconfig="+l.cp.Kubeconfig), genericiooptions.IOStreams{In: strings.NewReader(in), Out: &stdout, ErrOut: &stderr})
	text := stdout.String() + stderr.String()
	if got != code {
		l.Errorf("%s: exit code %d, want %d:\n%s", args, got, code, text)
	}
	for _, want := range wants {
		not := strings.HasPrefix(want, "!")
		if strings.Contains(text, strings.TrimPrefix(want, "!")) == not {
			l.Errorf("%s: want %q:\n%s", args, want, text)
		}
	}
	return stdout.String()
}

// TestLeftovers prints what a release leaves behind, and deletes of that nothing of which anything has come to depend.
func TestLeftovers(t *testing.T) {
	parallel(t)
	l := &leavings{t, controlplane.Start(t, controlplane.Options{Controllers: "all", FakeNodes: 2, GraceCap: time.Second}), filepath.Join(t.TempDir(), "plan.json")}
	released := l.file("released.yaml", released+calledService)
	l.deploy(released)
	const web = "uninstall helm web -n shop "
	l.run(0, web, "", "Leftovers:    save this plan now: kubectl gc uninstall helm web -n shop", " --output=json > plan.json; after the tool has run, print them: kubectl gc",
		"--remove-leftovers=plan.json > leftovers.yaml; then: kubectl gc delete", " -f leftovers.yaml")
	l.run(0, web+"--prepare --yes --timeout=40s", "", "Leftovers: ", "!--prepare", "!--yes", "!--timeout")
	document := l.run(0, web+"-o json", "")
	l.file("plan.json", document)
	list := web + "--remove-leftovers=" + l.plan + " "

	l.run(1, list, "", "error: listing what helm uninstall web -n shop left behind: ", " still exists", "hint: uninstall first, then list the leftovers: helm uninstall web -n shop")
	l.uninstall()
	l.run(1, list, "", "a release of the name has the status unknown in Secret/shop/sh.helm.release.v1.web.v1")
	l.cp.Kubectl(t, "-n", "shop", "label", "secret/sh.helm.release.v1.web.v1", "status=uninstalling")
	l.run(1, list, "", "the uninstallation failed or is not finished")
	l.cp.Kubectl(t, "-n", "shop", "label", "--overwrite", "secret/sh.helm.release.v1.web.v1", "status=uninstalled")

	l.plans(document)
	l.run(1, "uninstall helm other -n shop --remove-leftovers="+l.plan, "", "is the plan of helm uninstall web -n shop in namespace shop")
	l.run(1, web+"--remove-leftovers="+released, "", "it is not an UninstallPlan")
	l.run(1, web+"--remove-leftovers=", "", "needs the file of a plan")
	l.run(1, list+"--prepare", "", "--prepare is for the time before")
	l.run(1, list+"--yes", "", "need --prepare")
	l.run(1, list+"--from="+l.plan, "", "--remove-leftovers needs a cluster")

	l.spoil()
	l.run(1, list, "", "Service/shop/hook exists again: it was installed again, or something recreates it", "hint: save a plan of what is installed now")
	l.cp.Kubectl(t, "-n", "shop", "delete", "service/hook")
	l.cp.Kubectl(t, "-n", "shop", "wait", "--for=delete", "endpoints,endpointslices", "-l", "app=hook", "--timeout=60s")
	l.run(3, list+"--as=viewer", "", "Secret/shop/login was to be deleted, and whether it exists could not be read")

	file := l.listed(list)
	l.documents(list)
	l.deletes(file, list)

	l.cp.Kubectl(t, "-n", "shop", "apply", "-f", l.file("stateful.yaml", stateful))
	l.run(1, list, "", "StatefulSet/shop/db exists again: it was installed again")
	l.cp.Kubectl(t, "-n", "shop", "delete", "statefulset/db")
	l.cp.Kubectl(t, "-n", "shop", "label", "--overwrite", "secret/sh.helm.release.v1.web.v1", "status=deployed")
	l.run(1, list, "", "nothing is left behind of a release that is installed")
}

// listed prints the leftovers, and returns the file.
func (l *leavings) listed(list string) string {
	const label = "label app.kubernetes.io/instance=web"
	text := l.run(2, list, "",
		"# Left behind by: helm uninstall web -n shop\n", "# Plan:           "+l.plan+"\n", "# Cluster:        context ", ", server https://127.0.0.1:", ", UID ",
		"# Preview:        kubectl gc delete --kubeconfig="+l.cp.Kubeconfig+" -f FILE --dry-run\n", "# Delete:         kubectl gc delete --kubeconfig="+l.cp.Kubeconfig+" -f FILE\n",
		"# left: configmap/notes -n shop: "+label+"\n- {\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"notes\",\"namespace\":\"shop\",\"uid\":\"",
		"# left: validatingwebhookconfiguration/hook: calls service/hook -n shop, which is deleted\n- {",
		"# not known: configmap/argued -n shop: pod/alone -n shop has its name in spec.containers[0].args[0]: unclear whether that is a use\n# - {",
		"# kept: configmap/adopted -n shop: changed since the plan; belongs to release/blog -n shop\n# - {",
		"# kept: configmap/again -n shop: created again since the plan: it is another object\n# kept: ",
		"# kept: configmap/used -n shop: used by deployment/other -n shop\n# - {", "# kept: secret/pull -n shop: used by pod/alone -n shop\n", "# kept: secret/token -n shop: used by pod/alone -n shop\n",
		"# kept: configmap/unlabelled -n shop: changed since the plan; does not have the label app.kubernetes.io/instance=web any more\n",
		"# kept: role/bound -n shop: used by rolebinding/users -n shop\n", "# kept: configmap/kept -n shop: kept by the tool\n# - {",
		"# kept: customresourcedefinition/widgets.example.com: has instances; its deletion deletes 1 instance: widget/one -n shop\n# - {",
		"# kept: persistentvolumeclaim/data-db-0 -n shop: might hold data that its deletion destroys\n# - {",
	)
	var manifests struct {
		Kind  string
		Items []struct{ Metadata struct{ UID string } }
	}
	if err := yaml.Unmarshal([]byte(text), &manifests); err != nil || manifests.Kind != "List" || len(manifests.Items) != 2 || manifests.Items[0].Metadata.UID == "" {
		l.Errorf("%+v, %v:\n%s", manifests, err, text)
	}
	return l.file("leftovers.yaml", text)
}

// deletes deletes the objects of the file, and then one that was kept.
func (l *leavings) deletes(file, list string) {
	remove := "delete -f " + file + " "
	l.run(0, remove+"--dry-run", "", "PREVIEW  delete configmap/notes -n shop, validatingwebhookconfiguration/hook (background), 2 objects")
	l.run(1, remove, "", "there is no terminal", "--confirm=sha256:")
	again := l.file("again.yaml", strings.ReplaceAll(l.text(file), `"name":"notes"`, `"name":"again"`)) // with the UID of another
	l.run(1, "delete --yes -f "+again, "", "error: configmap/again -n shop has another UID than "+again+" says: it was created again")
	l.run(0, remove+"--yes", "", "deleted: 1 ConfigMap, 1 ValidatingWebhookConfiguration")
	l.run(1, remove+"--yes", "", `configmaps "notes" not found`)
	l.run(0, "delete --yes -f "+l.file("none.yaml", l.run(2, list, "", "!configmap/notes", "# kept: ")), "", "No resources found in the files.")

	claim := l.file("claim.yaml", regexp.MustCompile(`(?m)^# (- .*"data-db-0")`).ReplaceAllString(l.text(file), "$1"))
	l.run(1, "delete --ignore-not-found -i -f "+claim, "y\n", "DESTROY 1Gi on pv/shop-db", "not confirmed")
	l.run(0, "delete --ignore-not-found -i -f "+claim, "data-db-0\n", "1 PersistentVolumeClaim")
	want := "configmap/adopted configmap/again configmap/argued configmap/kept configmap/kube-root-ca.crt configmap/odd configmap/unlabelled configmap/used"
	if got := strings.Join(strings.Fields(l.cp.Kubectl(l.T, "-n", "shop", "get", "configmaps", "-o", "name")), " "); got != want {
		l.Errorf("left: %s, want %s", got, want)
	}

	l.cp.Kubectl(l.T, "-n", "shop", "delete", "deployment/other", "pod/alone", "rolebinding/users")
	l.cp.Kubectl(l.T, "-n", "shop", "delete", "configmap/adopted", "configmap/again", "configmap/argued", "configmap/unlabelled", "configmap/used", "secret/token")
	text := l.run(0, list, "", "# left: role/bound", "# left: secret/pull", "# kept: configmap/kept", "!# not known")
	l.run(0, "delete --yes -f "+l.file("rest.yaml", text), "", "deleted: 1 Role, 1 Secret")
	l.cp.Kubectl(l.T, "-n", "shop", "delete", "configmap/kept", "configmap/odd", "crd/widgets.example.com")
	text = l.run(0, list, "", "# Nothing is left: ", "!kind: List")
	l.run(0, "delete --yes -f "+l.file("nothing.yaml", text), "", "No resources found in the files.")
}

func (l *leavings) text(file string) string {
	l.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		l.Fatal(err)
	}
	return string(text)
}

// plans reads plans that were changed, in both formats.
func (l *leavings) plans(document string) {
	const web = "uninstall helm web -n shop --remove-leftovers="
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
	l.run(2, web+l.sealed(document, func(*render.UninstallPlan) {}), "", "# kept: configmap/odd -n shop: kept by the tool")
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
func (l *leavings) documents(list string) {
	l.Helper()
	var d struct {
		Cluster   string
		Leftovers []struct {
			Object                 struct{ Name, UID string }
			State, Reason, Belongs string
		}
	}
	text := l.run(2, list+"-o json", "")
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = strictSchema(l.T, "leftoversreport").Validate(document)
	}
	if failed := json.Unmarshal([]byte(text), &d); err != nil || failed != nil || d.Cluster == "" {
		l.Errorf("%v, %v\n%s", err, failed, text)
	}
	states := map[string]string{}
	for _, o := range d.Leftovers {
		states[o.Object.Name] = o.State + " " + o.Reason
	}
	for name, want := range map[string]string{"notes": "Removable ", "argued": "Unknown NamedBy", "kept": "Kept KeptByTool", "again": "Kept Replaced", "data-db-0": "Kept Data"} {
		if states[name] != want {
			l.Errorf("%s: %s, want %s\n%s", name, states[name], want, text)
		}
	}
	l.run(2, list+"-o name", "", "configmap/notes\n", "validatingwebhookconfiguration.admissionregistration.k8s.io/hook\n")
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
	l.cp.Established(l.T, "crd/widgets.example.com")
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
	cp.Established(t, "crd/toys.foresight.test")
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
