// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// hidden is in the values and in a Secret of the release, and must be in no output.
const hidden = "hunter2"

const released = `# Source: web/templates/all.yaml
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: ` + hidden + `}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}
data: {password: ` + hidden + `}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: odd, annotations: {helm.sh/resource-policy: delete}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: registry.example.com/web}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: registry.example.com/db}]}}
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`

const hooks = `
---
apiVersion: batch/v1
kind: Job
metadata: {name: cleanup, annotations: {helm.sh/hook: pre-delete}}
`

const delivered = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, finalizers: [finalizers.fluxcd.io]}
spec: {prune: true}
status: {inventory: {entries: [{id: shop_odd__ConfigMap, v: v1}, {id: shop_kept__ConfigMap, v: v1}]}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: loose}
status: {resources: [{version: v1, kind: ConfigMap, namespace: shop, name: odd}]}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: app, finalizers: [resources-finalizer.argocd.argoproj.io/background]}
status: {resources: [{version: v1, kind: ConfigMap, namespace: shop, name: odd}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: set, labels: {applyset.kubernetes.io/id: applyset-7fFB87CRhJ5TNi_w4TDPYDEGqjgqS1PzgLi-dyqcOv4-v1}, annotations: {applyset.kubernetes.io/tooling: kubectl/v1.36.3, applyset.kubernetes.io/contains-group-kinds: ConfigMap}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: member, labels: {applyset.kubernetes.io/part-of: applyset-7fFB87CRhJ5TNi_w4TDPYDEGqjgqS1PzgLi-dyqcOv4-v1}}
---
apiVersion: v1
kind: Service
metadata: {name: member, labels: {applyset.kubernetes.io/part-of: applyset-7fFB87CRhJ5TNi_w4TDPYDEGqjgqS1PzgLi-dyqcOv4-v1}}
spec: {ports: [{port: 80}]}
`

// record is a Secret with the record of a release, as Helm keeps it.
func record(t *testing.T, name string, revision int, manifest string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"name": name, "namespace": "shop", "version": revision, "manifest": manifest, "info": map[string]any{"status": "deployed"},
		"config": map[string]any{"password": hidden},
		"chart": map[string]any{"values": map[string]any{"password": hidden}, "files": []map[string]any{
			{"name": "README.md", "data": []byte("# " + hidden)},
			{"name": "crds/w.yaml", "data": []byte("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}}")},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("{apiVersion: v1, kind: Secret, type: helm.sh/release.v1, metadata: {name: sh.helm.release.v1.%s.v%d, namespace: shop, labels: {owner: helm}}, stringData: {release: %s}}",
		name, revision, base64.StdEncoding.EncodeToString(packed.Bytes()))
}

// TestUninstall says what a release's uninstallation takes away, from its record and without, and changes nothing.
func TestUninstall(t *testing.T) {
	parallel(t)
	cp := controlplane.Start(t, controlplane.Options{Controllers: "all", FakeNodes: 2, GraceCap: time.Second})
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	manifest, hooked := file("manifest.yaml", released), file("hooked.yaml", released+hooks)
	_, smaller, _ := strings.Cut(released, "\n---\n")
	smaller = file("smaller.yaml", smaller)
	odd := file("odd.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: odd}}")
	empty := file("empty.yaml", "")
	cp.Kubectl(t, "create", "namespace", "shop")
	cp.Kubectl(t, "-n", "shop", "apply", "-f", manifest)
	cp.Kubectl(t, "apply", "-f", file("crd.yaml", sealed))
	cp.Kubectl(t, "-n", "shop", "apply", "-f", file("one.yaml", record(t, "web", 9, "{apiVersion: v1, kind: ConfigMap, metadata: {name: old}}")))
	cp.Kubectl(t, "-n", "shop", "apply", "-f", file("two.yaml", record(t, "web", 10, released)))
	cp.Kubectl(t, "-n", "shop", "apply", "-f", file("gone.yaml", record(t, "gone", 1, "{apiVersion: gone.example.com/v1, kind: Thing, metadata: {name: t}}")))
	cp.Kubectl(t, "-n", "shop", "rollout", "status", "deployment/web", "--timeout=120s")
	cp.Kubectl(t, "-n", "shop", "rollout", "status", "statefulset/db", "--timeout=120s")
	cp.Kubectl(t, "create", "clusterrolebinding", "viewer", "--clusterrole=view", "--user=viewer")
	cp.Kubectl(t, "create", "clusterrole", "lister", "--verb=list", "--resource=secrets")
	cp.Kubectl(t, "create", "clusterrolebinding", "lister", "--clusterrole=lister", "--user=lister")
	cp.Kubectl(t, "create", "clusterrolebinding", "lister-view", "--clusterrole=view", "--user=lister")
	cp.Kubectl(t, "apply", "-f", file("flux.yaml", strings.NewReplacer("widgets.example.com", "kustomizations.kustomize.toolkit.fluxcd.io", "example.com", "kustomize.toolkit.fluxcd.io",
		"plural: widgets, singular: widget, kind: Widget", "plural: kustomizations, singular: kustomization, kind: Kustomization", "{type: object}", "{type: object, x-kubernetes-preserve-unknown-fields: true}").Replace(sealed)))
	cp.Kubectl(t, "apply", "-f", file("argo.yaml", strings.NewReplacer("widgets.example.com", "applications.argoproj.io", "example.com", "argoproj.io", "name: v1,", "name: v1alpha1,",
		"plural: widgets, singular: widget, kind: Widget", "plural: applications, singular: application, kind: Application", "{type: object}", "{type: object, x-kubernetes-preserve-unknown-fields: true}").Replace(sealed)))
	cp.Established(t, "crd/applications.argoproj.io")
	cp.Established(t, "crd/kustomizations.kustomize.toolkit.fluxcd.io")
	cp.Kubectl(t, "-n", "shop", "apply", "-f", file("delivered.yaml", delivered))
	snapshot := filepath.Join(dir, "shop.snapshot")
	run := func(args string) (string, string, int) {
		var stdout, stderr bytes.Buffer
		argv := append([]string{"kubectl-gc"}, strings.Fields(args)...)
		code := gccmd.Run(t.Context(), append(argv, "--kubeconfig="+cp.Kubeconfig), genericiooptions.IOStreams{In: strings.NewReader(released), Out: &stdout, ErrOut: &stderr})
		return stdout.String(), stderr.String(), code
	}
	if _, stderr, code := run("snapshot -o " + snapshot); code != 0 {
		t.Fatal(stderr)
	}
	pruned, stderr, _ := run("uninstall prune -n shop --by=none -o json " + manifest + " " + smaller)
	saved := file("pruned.json", pruned)
	if stderr != "" {
		t.Error(stderr)
	}
	before := cp.Kubectl(t, "-n", "shop", "get", "all,secrets,configmaps,pvc", "-o", "name")
	schema := strictSchema(t, "uninstallplan")
	for _, test := range []struct {
		code       int
		args, want string
	}{
		{0, "helm web -n shop", "deletes       1 ControllerRevision, 1 Deployment, 2 Pods, 1 ReplicaSet, 1 Secret, 1 StatefulSet"},
		{0, "helm web -n shop", "configmap/kept -n shop: helm.sh/resource-policy: keep"},
		{0, "helm web -n shop", `configmap/odd -n shop: helm.sh/resource-policy: "delete"`},
		{0, "helm web -n shop", "customresourcedefinition/widgets.example.com: in the chart's crds/"},
		{0, "helm web -n shop", "persistentvolumeclaim/data-db-0 -n shop: claim of statefulset/db -n shop"},
		{0, "helm web -n shop", "Next:         helm uninstall web -n shop"},
		{0, "helm web -n shop -o wide", "step 3        secret/login -n shop"},
		{0, "helm web -n shop -o name", "deployment.apps/web"},
		{0, "helm web -n shop -v=2", "requests"},
		{0, "helm web -n shop -f -", "1 Deployment"},
		{0, "helm web -n shop -f " + hooked, "job/cleanup -n shop: pre-delete hook: its effect is unknown"},
		{2, "helm web -n shop -f " + manifest + " --as=viewer", "secret/login -n shop: could not be read"},
		{0, "helm web -n shop --from " + snapshot + " -f " + manifest, "1 StatefulSet"},
		{0, "prune -n shop --by=none " + manifest + " " + smaller, "deletes       1 Secret"},
		{1, "prune -n shop " + manifest + " " + smaller, "kustomization/shop/app has 2"},
		{1, "prune -n shop " + manifest + " " + smaller, "say who prunes: --by=kustomization/shop/app, or --by=none for who leaves no marks"},
		{0, "prune -n shop " + odd + " " + empty, "PREVIEW  prune (any order, by kustomization/shop/app), 0 objects"},
		{0, "prune -n shop " + odd + " " + empty, "configmap/odd -n shop: does not have the labels of the Kustomization"},
		{1, "prune -n shop " + odd + " " + empty + " --prepare", "say who prunes: --by=kustomization/shop/app"},
		{0, "prune -n shop " + odd + " " + empty + " --prepare --by=Kustomization/shop/app", "Nothing can be prepared."},
		{2, "flux kustomization/app -n shop", "the controller that deletes what it deployed is down"},
		{2, "flux kustomization/app -n shop", "configmap/kept -n shop: does not have the labels of the Kustomization"},
		{2, "flux ks/app -n shop -o json", "NoController"},
		{1, "flux kustomization/none -n shop", "does not exist in namespace shop"},
		{1, "flux helmrelease/web -n shop", "the server has no helmreleases"},
		{0, "argocd loose -n shop", "configmap/odd -n shop: the tool's own object has no finalizer for it"},
		{0, "argocd loose -n shop -o json", "NoFinalizer"},
		{2, "argocd app -n shop", "the controller that deletes what it deployed is down"},
		{2, "argocd app -n shop -o json", "NoController"},
		{0, "applyset configmap/set -n shop", "deletes       1 ConfigMap"},
		{0, "applyset configmap/set -n shop -o json", "OutOfScope"},
		{2, "applyset login -n shop", "not the parent of an apply set"},
		{2, "helm gone -n shop", "thing/t: the API server has no Thing in gone.example.com/v1"},
		{1, "helm web -n shop --as=viewer", "is to list secrets in namespace shop; without it, give the manifest with -f: { helm get manifest web -n shop --kubeconfig="},
		{1, "helm web -n shop --as=lister", "is to get secrets in namespace shop"},
		{1, "helm web -n shop --from " + snapshot, "a snapshot has no data of Secrets"},
		{1, "helm web -n default", "no Secret of namespace default has a release"},
		{1, "helm web -n shop --dry-run", "--dry-run need --prepare"},
		{1, "helm web -n shop --yes", "need --prepare"},
		{0, "helm web -n shop --prepare", "Nothing can be prepared."},
		{1, "prune -n shop " + manifest + " " + smaller + " --remove-leftovers=" + saved, "Secret/shop/login still exists"},
		{1, "prune -n shop " + manifest + " " + hooked + " --remove-leftovers=" + saved, "have other objects than when " + saved + " was made"},
		{1, "prune -n shop " + manifest + " none.yaml --remove-leftovers=" + saved, "none.yaml"},
		{0, "helm web -n shop -o json", `"UninstallPlan"`},
		{0, "helm web -n shop -o yaml -f " + hooked, "HookRuns"},
		{0, "helm web -n shop -o json -f " + hooked, "HookMade"},
		{0, "helm web -n shop -o json --helm-version=4", "NotOwned"},
		{2, "helm web -n shop -o json -f " + manifest + " --as=viewer", "Unread"},
		{2, "helm gone -n shop -o json", "NoSuchKind"},
		{0, "prune -n shop --by=none -o json " + manifest + " " + smaller, "login"},
	} {
		stdout, stderr, code := run("uninstall " + test.args)
		if code != test.code || !strings.Contains(stdout+stderr, test.want) {
			t.Errorf("uninstall %s: exit code %d, want %d with %q:\n%s%s", test.args, code, test.code, test.want, stdout, stderr)
		}
		if strings.Contains(stdout+stderr, hidden) {
			t.Errorf("uninstall %s shows what is secret", test.args)
		}
		if tool, _, _ := strings.Cut(test.args, " "); code != 1 && slices.Contains([]string{"applyset", "argocd", "flux"}, tool) && !strings.Contains(test.args, "json") {
			from, _, codeFrom := run("uninstall " + test.args + " --from " + snapshot)
			if diff := cmp.Diff(somewhere.ReplaceAllString(stdout, ""), from); diff != "" || codeFrom != code {
				t.Errorf("uninstall %s --from a snapshot: exit code %d, want %d:\n%s", test.args, codeFrom, code, diff)
			}
		}
		if strings.Contains(test.args, "-o json") {
			document, err := jsonschema.UnmarshalJSON(strings.NewReader(stdout))
			if err == nil {
				err = schema.Validate(document)
			}
			if err != nil {
				t.Errorf("uninstall %s: %v", test.args, err)
			}
		}
	}
	if after := cp.Kubectl(t, "-n", "shop", "get", "all,secrets,configmaps,pvc", "-o", "name"); after != before {
		t.Errorf("something was changed: %s\n%s", before, after)
	}
}
