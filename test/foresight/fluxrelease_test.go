// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

const (
	inRelease    = "$N_rel_helm.toolkit.fluxcd.io_HelmRelease@v2"
	asDeployer   = `,"serviceAccountName":"deployer"`
	releaseFinal = `,"finalizers":["finalizers.fluxcd.io"]`
	deployment   = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"$N"},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"d"}},
		"template":{"metadata":{"labels":{"app":"d"}},"spec":{"containers":[{"name":"c","image":"registry.example.com/d:v1"}]}}}}`
	preDelete = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"h","namespace":"$N","annotations":{"helm.sh/hook":"pre-delete"}},
		"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"registry.example.com/h:v1"}]}}}}`
)

// seedOfHook is an object that a hook makes.
const seedOfHook = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"seed","namespace":"$N","annotations":{"helm.sh/hook":"pre-delete"}}}`

// hook is one of pre-delete in the record of a release.
func hook(name, kind, manifest string) string {
	policies := ""
	if _, rest, has := strings.Cut(manifest, `"helm.sh/hook-delete-policy":"`); has {
		policy, _, _ := strings.Cut(rest, `"`)
		policies = fmt.Sprintf(`,"delete_policies":[%q]`, policy)
	}
	return fmt.Sprintf(`{"name":%q,"kind":%q,"path":"c/h.yaml","manifest":%q,"events":["pre-delete"]%s}`, name, kind, manifest, policies)
}

// and adds objects that are made before all others.
func (c fluxCase) and(objects ...string) fluxCase {
	c.objects = append(objects, c.objects...)
	return c
}

// notInstalled is the HelmRelease rel without a status.
var notInstalled = fmt.Sprintf(`{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease",%s,"spec":{"interval":"1h","chartRef":{"kind":"OCIRepository","name":"none"}}}`,
	labelled("rel", "", releaseFinal))

// hr is the HelmRelease rel, with a status that says that it is installed.
func hr(by, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease",%s,"spec":{"interval":"1h","chartRef":{"kind":"OCIRepository","name":"none"}%s},
		"status":{"storageNamespace":"$N","history":[{"name":"rel","namespace":"$N","version":1,"chartName":"c","chartVersion":"0.1.0","configDigest":"sha256:0","digest":"sha256:0",
		"status":"deployed","firstDeployed":"2026-01-01T00:00:00Z","lastDeployed":"2026-01-01T00:00:00Z"}]}}`, labelled("rel", by, releaseFinal), spec)
}

// record is that of the release rel, as Helm 3 keeps it. A deletion reads no digest of it (internal/reconcile/uninstall.go).
func record(namespace, status, hooks string, objects ...string) string {
	manifest := ""
	for _, o := range objects {
		manifest += "---\n" + o + "\n"
	}
	text := fmt.Sprintf(`{"name":"rel","namespace":"$N","version":1,"info":{"status":%q},"chart":{"metadata":{"name":"c","version":"0.1.0","apiVersion":"v2"}},
		"manifest":%q,"hooks":[%s]}`, status, manifest, hooks)
	encoded := base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(text, "$N", namespace)))
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","type":"helm.sh/release.v1","metadata":{"name":"sh.helm.release.v1.rel.v1","namespace":"$N",
		"labels":{"name":"rel","owner":"helm","status":%q,"version":"1"}},"stringData":{"release":%q}}`, status, encoded)
}

// release is a case of the HelmRelease rel, whose release has the ConfigMap a, and which is deleted itself unless it is in an inventory.
func release(name, by, spec string, more ...string) fluxCase {
	c := fluxCase{name: name, objects: slices.Concat([]string{record("flux-case-"+name, "deployed", "", settings("a", "")), settings("a", ""), hr(by, spec)}, more)}
	if by == "" {
		c.ask, c.do = []string{"flux", "helmrelease/rel", "-n", "$N"}, []string{"delete helmrelease/rel --wait=false"}
	}
	return c
}

// says adds lines of the answer to a case.
func (c fluxCase) says(lines ...string) fluxCase {
	c.want = lines
	return c
}

// sticks is says of a case in which that gets stuck which might.
func (c fluxCase) sticks(lines ...string) fluxCase {
	c.stays = true
	return c.says(lines...)
}

// has replaces the objects of a case's release, and its hooks.
func (c fluxCase) has(hooks string, objects ...string) fluxCase {
	c.objects = slices.Concat([]string{record("flux-case-"+c.name, "deployed", hooks, objects...)}, objects, c.objects[2:])
	return c
}

// without leaves out the first objects of a case.
func (c fluxCase) without(n int, more ...string) fluxCase {
	c.objects = append(slices.Clone(more), c.objects[n:]...)
	return c
}

// helmCases are of HelmReleases, alone and in inventories.
var helmCases = []fluxCase{
	release("release", "", ""),
	release("release-suspended", "", `,"suspend":true`).says("the HelmRelease is suspended"),
	release("release-keeps-history", "", `,"uninstall":{"keepHistory":true}`),
	release("release-without-hooks", "", `,"uninstall":{"disableHooks":true}`).has(hook("h", "Job", preDelete), settings("a", "")),
	release("release-with-hooks", "", "").has(hook("h", "Job", preDelete)+","+hook("seed", "ConfigMap", seedOfHook), settings("a", "")).and(settings("seed", "")).
		says("keeps         job/h, configmap/seed -n $N: a hook, which the uninstallation creates and does not delete", "pre-delete hook"),
	release("release-hook-exists", "", "").has(hook("seed", "ConfigMap", strings.Replace(seedOfHook, `"pre-delete"`, `"pre-delete","helm.sh/hook-delete-policy":"hook-failed"`, 1)), settings("a", "")).
		and(settings("seed", "")).sticks("NO DELETES", "MIGHT STICK   helmrelease/rel"),
	release("release-foreground", "", `,"uninstall":{"deletionPropagation":"foreground"}`).has("", deployment),
	release("release-orphans", "", `,"uninstall":{"deletionPropagation":"orphan"}`).has("", deployment),
	release("release-unrecorded", "", "").without(1).says("the release of the HelmRelease has no record any more"),
	release("release-uninstalled", "", "").without(1, record("flux-case-release-uninstalled", "uninstalled", "", settings("a", ""))).says("it is uninstalled already, and only its history is kept"),
	release("release-not-installed", "", "").without(3, settings("a", ""), notInstalled).says("the HelmRelease has no release by its status"),
	release("release-without-account", "", asDeployer).says("keeps         configmap/a -n $N: Flux would delete it as serviceaccount/deployer -n $N, which does not exist"),
	release("release-without-rights", "", asDeployer, account("")).sticks("helmrelease/rel -n $N: Flux deletes as serviceaccount/deployer -n $N, to which no binding gives rights"),
	release("release-with-rights", "", asDeployer, account(""), binding("")),
	release("nested", "apps", "", ks("apps", "", prunes, inRelease, "$N_own__ConfigMap"), settings("own", "apps")),
	release("nested-deep", "web", "", ks("apps", "", prunes, inWeb), ks("web", "apps", prunes, inRelease)),
	release("nested-suspended", "apps", `,"suspend":true`, ks("apps", "", prunes, inRelease)).says("the HelmRelease is suspended"),
	release("nested-unrecorded", "apps", "", ks("apps", "", prunes, inRelease)).without(1).says("the release of the HelmRelease has no record any more"),
	release("nested-without-rights", "apps", asDeployer, ks("apps", "", prunes, inRelease), account("none")).sticks("helmrelease/rel -n $N: Flux deletes as serviceaccount/deployer -n $N, to which no binding gives rights"),
	release("nested-no-account", "apps", asDeployer, ks("apps", "", prunes, inRelease)).says("keeps         configmap/a -n $N: Flux would delete it as"),
	release("nested-account-goes", "apps", asDeployer, ks("apps", "", prunes, inRelease, inAccount, inBinding), account("apps"), binding("apps")).says("MIGHT STICK   configmap/a -n $N: kept if"),
	release("nested-rights-go", "apps", asDeployer, ks("apps", "", prunes, inRelease, inBinding), account("none"), binding("apps")).says("MIGHT STICK   helmrelease/rel -n $N: unless this object is deleted first"),
}
