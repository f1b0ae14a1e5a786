// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

// fluxCase is a Kustomization with others in its inventory. $N is a namespace of its own.
type fluxCase struct {
	name string
	// objects are made, in this order.
	objects []string
	// ask is what is asked, and do the commands of kubectl that do it; the usual ones are of the Kustomization apps.
	ask []string
	do  []string
	// stdin is the manifest of a release.
	stdin string
	// want are lines of the answer.
	want []string
	// stays: what might get stuck does.
	stays bool
	// guarded: --prepare has nothing to do, and says so.
	guarded bool
}

// ks is a Kustomization with an inventory, as kustomize-controller writes it. An entry may end with a version, as in @v2.
func ks(name, by, spec string, entries ...string) string {
	var inventory []string
	for _, e := range entries {
		id, version, _ := strings.Cut(e, "@")
		inventory = append(inventory, fmt.Sprintf(`{"id":%q,"v":%q}`, id, cmp.Or(version, "v1")))
	}
	return fmt.Sprintf(`{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization",%s,
		"spec":{"interval":"1h","path":"./","sourceRef":{"kind":"GitRepository","name":"none"},%s},"status":{"inventory":{"entries":[%s]}}}`,
		labelled(name, by, `,"finalizers":["finalizers.fluxcd.io"]`), spec, strings.Join(inventory, ","))
}

// labelled is the metadata of an object in the inventory of a Kustomization, empty for one in none.
func labelled(name, by, more string) string {
	labels := ""
	if by != "" {
		labels = fmt.Sprintf(`,"labels":{"kustomize.toolkit.fluxcd.io/name":%q,"kustomize.toolkit.fluxcd.io/namespace":"$N"}`, by)
	}
	return fmt.Sprintf(`"metadata":{"name":%q,"namespace":"$N"%s%s}`, name, labels, more)
}

func plain(apiVersion, kind, name, by, more string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,%s%s}`, apiVersion, kind, labelled(name, by, ""), more)
}

func settings(name, by string) string { return plain("v1", "ConfigMap", name, by, "") }

func account(by string) string { return plain("v1", "ServiceAccount", "deployer", by, "") }

func binding(by string) string {
	return plain("rbac.authorization.k8s.io/v1", "RoleBinding", "deploys", by, `,"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"admin"},
		"subjects":[{"kind":"ServiceAccount","name":"deployer","namespace":"$N"}]`)
}

const (
	inWeb     = "$N_web_kustomize.toolkit.fluxcd.io_Kustomization"
	inAccount = "$N_deployer__ServiceAccount"
	inBinding = "$N_deploys_rbac.authorization.k8s.io_RoleBinding"
	prunes    = `"prune":true`
	elsewhere = `,"kubeConfig":{"secretRef":{"name":"k"}}`
	asOther   = prunes + `,"serviceAccountName":"deployer"`
	// refuser has the deletion of ConfigMaps be refused.
	refuser = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"$N"},"webhooks":[{"name":"a.example.com",
		"admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Fail","namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"$N"}},
		"clientConfig":{"service":{"namespace":"$N","name":"gone"}},"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["DELETE"],"resources":["configmaps"]}]}]}`
)

var fluxCases = []fluxCase{
	{name: "deep", objects: []string{
		ks("apps", "", prunes, inWeb, "$N_own__ConfigMap"), ks("web", "apps", prunes, "$N_a__ConfigMap", "$N_c_kustomize.toolkit.fluxcd.io_Kustomization"), ks("c", "web", prunes, "$N_b__ConfigMap"),
		settings("own", "apps"), settings("a", "web"), settings("b", "c"), settings("foreign", ""),
	}},
	{name: "cycle", objects: []string{ks("apps", "web", prunes, inWeb), ks("web", "apps", prunes, "$N_apps_kustomize.toolkit.fluxcd.io_Kustomization", "$N_a__ConfigMap"), settings("a", "web")}},
	{name: "two-inventories", objects: []string{ks("apps", "", prunes, inWeb, "$N_a__ConfigMap"), ks("web", "apps", prunes, "$N_a__ConfigMap"), settings("a", "web")}},
	{name: "suspended", objects: []string{ks("apps", "", prunes, inWeb), ks("web", "apps", prunes+`,"suspend":true`, "$N_a__ConfigMap"), settings("a", "web")}},
	{name: "without-prune", objects: []string{ks("apps", "", prunes, inWeb), ks("web", "apps", `"prune":false`, "$N_a__ConfigMap"), settings("a", "web")}},
	{name: "orphan", objects: []string{ks("apps", "", prunes, inWeb), ks("web", "apps", prunes+`,"deletionPolicy":"Orphan"`, "$N_a__ConfigMap"), settings("a", "web")}},
	{name: "no-account", objects: []string{ks("apps", "", prunes, inWeb), ks("web", "apps", asOther, "$N_a__ConfigMap"), settings("a", "web")},
		want: []string{"keeps         configmap/a -n $N: Flux would delete it as serviceaccount/deployer -n $N, which does not exist"}},
	{name: "own-account-gone", objects: []string{ks("apps", "", asOther, "$N_a__ConfigMap"), settings("a", "apps")},
		want: []string{"keeps         configmap/a -n $N: Flux would delete it as serviceaccount/deployer -n $N, which does not exist"}},
	{name: "own-account-without-rights", stays: true, objects: []string{ks("apps", "", asOther, "$N_a__ConfigMap"), account(""), settings("a", "apps")},
		want: []string{"kustomization/apps -n $N: Flux deletes as serviceaccount/deployer -n $N, to which no binding gives rights"}},
	{name: "without-rights", stays: true, objects: []string{ks("apps", "", prunes, inWeb), ks("web", "apps", asOther, "$N_a__ConfigMap"), account(""), settings("a", "web")},
		want: []string{"kustomization/web -n $N: Flux deletes as serviceaccount/deployer -n $N, to which no binding gives rights"}},
	{name: "version-not-served", stays: true, objects: []string{ks("apps", "", prunes, inWeb+"@v9", "$N_own__ConfigMap"), ks("web", "apps", prunes, "$N_a__ConfigMap"), settings("a", "web"), settings("own", "apps")},
		want: []string{"MIGHT STICK   kustomization/apps -n $N: the API server has no Kustomization in kustomize.toolkit.fluxcd.io/v9"}},
	{name: "type-not-served", stays: true, objects: []string{ks("apps", "", prunes, "$N_x_example.com_Gizmo", "$N_own__ConfigMap"), settings("own", "apps")},
		want: []string{"MIGHT STICK   kustomization/apps -n $N: the API server has no Gizmo in example.com/v1"}},
	{name: "account-goes", objects: []string{ks("apps", "", prunes, inWeb, inAccount, inBinding), ks("web", "apps", asOther, "$N_a__ConfigMap"), account("apps"), binding("apps"), settings("a", "web")},
		want: []string{"MIGHT STICK   configmap/a -n $N: kept if serviceaccount/deployer -n $N is gone"}},
	{name: "rights-go", guarded: true, objects: []string{ks("apps", "", prunes, inWeb, inBinding), ks("web", "apps", asOther, "$N_a__ConfigMap"), account(""), binding("apps"), settings("a", "web")},
		want: []string{"MIGHT STICK   kustomization/web -n $N: unless this object is deleted first", "uninstall flux kustomization/web -n $N shows it"}},
	{name: "refused", objects: []string{ks("apps", "", prunes, "$N_a__ConfigMap", "$N_s__Secret"), settings("a", "apps"), plain("v1", "Secret", "s", "apps", ""), refuser},
		want: []string{"STUCK         kustomization/apps -n $N: not deleted before configmap/a -n $N is gone"}},
	{name: "own-rights-go", objects: []string{ks("apps", "", prunes, inWeb), ks("web", "apps", asOther, "$N_a__ConfigMap", inBinding, inAccount), account("web"), binding("web"), settings("a", "web")},
		want: []string{"itself before the end (step 4)"}},
	{name: "own-rights-of-the-outer-go", objects: []string{ks("apps", "", asOther, "$N_a__ConfigMap", inBinding, inAccount), account("apps"), binding("apps"), settings("a", "apps")},
		want: []string{"itself before the end (step 3)"}},
	{name: "kubeconfig-goes", objects: []string{
		ks("apps", "", prunes, inWeb, "$N_k__Secret"), ks("web", "apps", prunes+`,"kubeConfig":{"secretRef":{"name":"k"}}`, "$N_a__ConfigMap"), plain("v1", "Secret", "k", "apps", ""), settings("a", "web"),
	}, want: []string{"MIGHT STICK   kustomization/web -n $N: unless this object is deleted first"}},
	{name: "kubeconfig-absent", objects: []string{ks("apps", "", prunes+elsewhere, "$N_a__ConfigMap"), settings("a", "apps")}, want: []string{"STUCK         kustomization/apps -n $N"}},
	{name: "kubeconfig-absent-suspended", objects: []string{ks("apps", "", prunes+elsewhere+`,"suspend":true`, "$N_a__ConfigMap"), settings("a", "apps")}},
	{name: "kubeconfig-absent-without-prune", objects: []string{ks("apps", "", `"prune":false`+elsewhere, "$N_a__ConfigMap"), settings("a", "apps")}},
	{name: "kubeconfig-absent-orphan", objects: []string{ks("apps", "", prunes+elsewhere+`,"deletionPolicy":"Orphan"`, "$N_a__ConfigMap"), settings("a", "apps")}},
	{name: "kubeconfig-absent-no-account", objects: []string{ks("apps", "", asOther+elsewhere, "$N_a__ConfigMap"), settings("a", "apps")}},
	{name: "kubeconfig-absent-never-applied", objects: []string{strings.Replace(ks("apps", "", prunes+elsewhere), `"inventory":{"entries":[]}`, `"observedGeneration":1`, 1)}},
	{name: "kubeconfig-goes-suspended", objects: []string{ks("apps", "", prunes, inWeb, "$N_k__Secret"), ks("web", "apps", prunes+elsewhere+`,"suspend":true`, "$N_a__ConfigMap"), plain("v1", "Secret", "k", "apps", ""), settings("a", "web")}},
	{name: "rights-go-suspended", objects: []string{ks("apps", "", prunes, inWeb, inBinding), ks("web", "apps", asOther+`,"suspend":true`, "$N_a__ConfigMap"), account(""), binding("apps"), settings("a", "web")}},
	{name: "kubeconfig-of-a-map-absent", objects: []string{ks("apps", "", prunes+`,"kubeConfig":{"configMapRef":{"name":"k"}}`, "$N_a__ConfigMap"), settings("a", "apps")}, want: []string{"STUCK         kustomization/apps -n $N"}},
	{name: "waits-in-vain", objects: []string{ks("apps", "", prunes+`,"timeout":"5s","deletionPolicy":"WaitForTermination"`, "$N_a__ConfigMap"), strings.Replace(settings("a", "apps"), `"name":"a"`, `"name":"a","finalizers":["example.com/nobody"]`, 1)}, want: []string{"STUCK         configmap/a"}},
	{name: "no-account-suspended", objects: []string{ks("apps", "", asOther+`,"suspend":true`, "$N_a__ConfigMap"), settings("a", "apps")}, want: []string{"keeps         configmap/a -n $N: the Kustomization is suspended"}},
	{name: "chart-takes-rights", objects: []string{ks("web", "", asOther, "$N_a__ConfigMap"), account(""), binding(""), settings("a", "web")},
		ask: []string{"helm", "boot", "-n", "$N", "-f", "-"}, stdin: binding("") + "\n---\n" + ks("web", "", asOther), do: []string{"delete rolebinding/deploys", "delete kustomization/web --wait=false"},
		want: []string{"STUCK         kustomization/web -n $N"}},
	{name: "chart-takes-account", objects: []string{ks("web", "", asOther, "$N_a__ConfigMap"), account(""), binding(""), settings("a", "web")},
		ask: []string{"helm", "boot", "-n", "$N", "-f", "-"}, stdin: account("") + "\n---\n" + ks("web", "", asOther), do: []string{"delete serviceaccount/deployer", "delete kustomization/web --wait=false"},
		want: []string{"keeps         configmap/a -n $N: Flux would delete it as"}},
}

// sources are the types that the controllers watch beside their own, as far as they need them.
const sources = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]ss.source.toolkit.fluxcd.io}, spec: {
  group: source.toolkit.fluxcd.io, scope: Namespaced, names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]ss, singular: %[1]s},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}
---
`

// aboutController is by what the plugin sees that the controller $C works.
const aboutController = `{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: $C, namespace: flux-system}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: $C}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin},
  subjects: [{kind: ServiceAccount, name: $C, namespace: flux-system}]}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: $C, namespace: flux-system}, spec: {selector: {matchLabels: {app: $C}}, template: {metadata: {labels: {app: $C}},
  spec: {serviceAccountName: $C, containers: [{name: manager, image: "registry.example.com/fluxcd/$C:v1"}]}}}}
`

// TestFlux deletes Kustomizations with others in their inventories, and HelmReleases, while the real kustomize-controller and
// helm-controller work, and compares what becomes of all with what was said before.
func TestFlux(t *testing.T) {
	if *charts == "" {
		nightly.Only(t, "the controllers of Flux are compiled")
	}
	a, err := newArena(t.Context(), func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	types := ""
	for kind, plural := range map[string]string{"GitRepository": "gitrepositories", "OCIRepository": "ocirepositories", "Bucket": "buckets", "ExternalArtifact": "externalartifacts", "HelmChart": "helmcharts"} {
		types += fmt.Sprintf(sources, strings.TrimSuffix(plural, "s"), kind)
	}
	if _, err := a.kubectl(t.Context(), types, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	runController(t, a, "kustomize-controller")
	t.Run("kustomize-controller", func(t *testing.T) {
		for _, c := range fluxCases {
			t.Run(c.name, func(t *testing.T) { c.compare(t, a) })
		}
	})
	t.Run("helm-controller", func(t *testing.T) {
		runController(t, a, "helm-controller")
		for _, c := range helmCases {
			t.Run(c.name, func(t *testing.T) { c.compare(t, a) })
		}
	})
	t.Run("bootstrap", func(t *testing.T) { // when no other needs the controller
		if _, err := a.kubectl(t.Context(), "", "-n", "flux-system", "label", "deployment/kustomize-controller", "kustomize.toolkit.fluxcd.io/name=apps", "kustomize.toolkit.fluxcd.io/namespace=flux-case-bootstrap"); err != nil {
			t.Fatal(err)
		}
		(&fluxCase{name: "bootstrap", guarded: true, objects: []string{
			ks("apps", "", prunes, "flux-system_kustomize-controller_apps_Deployment", "$N_a__ConfigMap"), settings("a", "apps"),
		}, want: []string{"MIGHT STICK   kustomization/apps -n $N", "is the uninstallation itself"}}).compare(t, a)
	})
}

// runController compiles a controller of Flux, and runs it until the test ends.
func runController(t *testing.T, a *arena, name string) {
	t.Helper()
	ctx, program, module, in := t.Context(), filepath.Join(a.cp.Dir, name), "github.com/fluxcd/"+name, "../flux/"+name
	if out, err := exec.CommandContext(ctx, "go", "-C", in, "build", "-o", program, module).CombinedOutput(); err != nil {
		t.Skipf("%s cannot be compiled here: %v: %s", name, err, out)
	}
	out, err := exec.CommandContext(ctx, "go", "-C", in, "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"apply", "-f", filepath.Join(strings.TrimSpace(string(out)), "config/crd/bases")}, {"apply", "-f", "-"},
		{"wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"}, {"rollout", "status", "-n", "flux-system", "deployment/" + name, "--timeout=60s"},
	} {
		if _, err := a.kubectl(ctx, strings.ReplaceAll(aboutController, "$C", name), args...); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program, "--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0")
	cmd.Env, cmd.Stdout, cmd.Stderr = append(a.cp.Environ(), "RUNTIME_NAMESPACE=flux-system"), log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("%s", text)
		}
	})
}

// compare makes the objects of a case, asks, does what was asked about, and compares.
func (c *fluxCase) compare(t *testing.T, a *arena) {
	t.Parallel()
	ctx, namespace := t.Context(), "flux-case-"+c.name
	expand := func(text string) string { return strings.ReplaceAll(text, "$N", namespace) }
	kubectl := func(stdin string, args ...string) {
		t.Helper()
		if out, err := a.kubectl(ctx, expand(stdin), append(args, "-n", namespace)...); err != nil {
			t.Fatal(out, err)
		}
	}
	kubectl("", "create", "namespace", namespace)
	for _, o := range c.objects { // status is a subresource
		kubectl(o, "create", "-f", "-")
		if strings.Contains(o, `"status":{`) {
			kubectl(o, "patch", "-f", "-", "--subresource=status", "--type=merge", "-p", expand(o)) // the controller may write it, too
		}
	}
	ask, do := c.ask, c.do
	if ask == nil {
		ask, do = []string{"flux", "kustomization/apps", "-n", "$N"}, []string{"delete kustomization/apps --wait=false"}
	}
	args := append([]string{"uninstall"}, strings.Fields(expand(strings.Join(ask, " ")))...)
	if c.guarded {
		text, stderr, code, err := a.plugin(ctx, append(args, "--prepare", "--yes")...)
		t.Logf("%s%s", stderr, text)
		if refused := strings.Contains(stderr, "Nothing can be prepared: "); err != nil || !refused || code == 0 {
			t.Errorf("--prepare: exit code %d: %v", code, err)
		}
		for _, o := range c.objects {
			kubectl(o, "get", "-f", "-") // is there
		}
	}
	text, plan := answer(ctx, t, a, expand(c.stdin), args)
	for _, line := range c.want {
		if !strings.Contains(text, expand(line)) {
			t.Errorf("the preview does not say: %s", expand(line))
		}
	}
	before, err := a.there(ctx, namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range do {
		kubectl("", strings.Fields(command)...)
	}
	c.judge(t, a, namespace, before, plan)
}

// answer asks the plugin, for a person and for a program.
func answer(ctx context.Context, t *testing.T, a *arena, stdin string, args []string) (string, *uninstallPlan) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, stderr, _ := a.command(ctx, program, stdin, append(args, "-o", "wide"))
	t.Logf("%s%s", text, stderr)
	document, _, _ := a.command(ctx, program, stdin, append(args, "-o", "json"))
	plan := new(uninstallPlan)
	if err := json.Unmarshal([]byte(document), plan); err != nil {
		t.Fatal(err)
	}
	return text, plan
}

// judge waits until what was said to go is gone and nothing goes any more, and says what is otherwise then.
func (c *fluxCase) judge(t *testing.T, a *arena, namespace string, before map[string]node, plan *uninstallPlan) {
	ctx, last, unchanged := t.Context(), 0, time.Now()
	var now map[string]node
	is := func(object ref) bool { _, is := now[object.UID]; return is }
	err := until(ctx, "all is gone that was said to go", func() (bool, error) {
		var err error
		if now, err = a.there(ctx, namespace); err != nil {
			return false, err
		}
		if len(now) != last {
			last, unchanged = len(now), time.Now()
		}
		var there error
		for _, s := range plan.Outcome {
			if s.Result == "Deleted" && is(s.Object) {
				there = errors.Join(there, fmt.Errorf("said to go, and is there: %s", s.Object))
			}
		}
		return there == nil && time.Since(unchanged) > 8*time.Second, there
	})
	if err != nil {
		t.Error(err)
	}
	said := map[string]bool{}
	for _, s := range plan.Outcome {
		said[s.Object.UID] = true
		switch {
		case s.Result == "Remaining" && !is(s.Object):
			t.Errorf("said to be stuck, and is gone: %s: %s", s.Object, s.Reason)
		case s.Result == "Unknown" && c.stays && !is(s.Object):
			t.Errorf("said that it might get stuck, and is gone: %s", s.Object)
		case s.Result == "Unknown":
			t.Logf("said not to be known, and there: %v: %s", is(s.Object), s.Object)
		}
	}
	for _, k := range slices.Concat(plan.Kept, plan.Left) {
		if said[k.Object.UID] = true; k.Object.UID != "" && !is(k.Object) {
			t.Errorf("said to stay, and is gone: %s", k.Object)
		}
	}
	for uid, n := range before {
		if _, is := now[uid]; !is && !said[uid] && !strings.HasPrefix(n.Name, "sh.helm.release.v1.") {
			t.Errorf("is gone, and nothing was said of it: %s", n)
		}
	}
}

// there has the objects of a namespace, by their UIDs.
func (a *arena) there(ctx context.Context, namespace string) (map[string]node, error) {
	stdout, stderr, _, err := a.plugin(ctx, "graph", "-n", namespace, "--isolated", "-o", "json")
	var graph struct{ Nodes []node }
	if err == nil {
		err = json.Unmarshal([]byte(stdout), &graph)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cluster: %w: %s", err, stderr)
	}
	now := map[string]node{}
	for _, n := range graph.Nodes {
		if !n.Virtual {
			now[n.UID] = n
		}
	}
	return now, nil
}
