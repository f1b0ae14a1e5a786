// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// podRun is a shell script that runs a program as a container sees it: with the
// files of a service account where client-go looks for them, in a mount
// namespace of its own. Its arguments are the directory with the files and the
// program's command line.
const podRun = `set -e
mount -t tmpfs tmpfs /var/run/
mkdir -p /var/run/secrets/kubernetes.io
cp -R "$1" /var/run/secrets/kubernetes.io/serviceaccount
shift
exec "$@"`

// TestInCluster applies the manifests in deploy to a real API server, and runs
// what their containers run: with the same arguments, the service account's
// rights and no kubeconfig.
func TestInCluster(t *testing.T) {
	parallel(t)
	cp := controlplane.Start(t, controlplane.Options{})
	for _, test := range []struct {
		manifest, namespace, account string
		prepare                      func(t *testing.T)
		code                         int
		output                       string
	}{
		{
			"explain-stuck", "kubectl-gc", "explain-stuck",
			func(t *testing.T) { // an object that owns itself, in foreground deletion
				cp.Kubectl(t, "create", "configmap", "own")
				uid := cp.Kubectl(t, "get", "configmap", "own", "-o", "jsonpath={.metadata.uid}")
				cp.Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: own, namespace: default, ownerReferences: ["+
					"{apiVersion: v1, kind: ConfigMap, name: own, uid: "+uid+", blockOwnerDeletion: true}]}}")
				cp.Kubectl(t, "delete", "configmap", "own", "--cascade=foreground", "--wait=false")
			},
			2, `configmap/own -n default, deleting for `,
		},
		{
			"check", "kubectl-gc", "check",
			func(t *testing.T) {
				cp.Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: coupon, namespace: default, ownerReferences: ["+
					"{apiVersion: coupons.example.com/v1, kind: Coupon, name: spring, uid: 22222222-2222-2222-2222-222222222222}]}}")
			},
			2, `error +configmap/coupon -n default +no kind Coupon in coupons.example.com/v1`,
		},
		{
			"collect", "shop", "collect",
			func(t *testing.T) {
				cp.Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: lost, namespace: shop, ownerReferences: ["+
					"{apiVersion: apps/v1, kind: Deployment, name: web, uid: 11111111-1111-1111-1111-111111111111}]}}")
			},
			0, `deleted: 1 ConfigMap`,
		},
		{
			"predelete", "shop", "predelete",
			func(t *testing.T) {
				cp.Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: price-list, namespace: shop, labels: {app.kubernetes.io/part-of: shop}}}")
			},
			0, `deletes       1 ConfigMap`,
		},
		{
			"predelete", "shop", "predelete",
			func(t *testing.T) {
				cp.Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: invoice, namespace: shop, finalizers: [shop.example.com/archive],"+
					" labels: {app.kubernetes.io/part-of: shop}}}")
			},
			2, `STUCK         configmap/`,
		},
	} {
		t.Run(test.manifest+" "+test.output, func(t *testing.T) {
			cp.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+test.namespace+"}}")
			cp.Kubectl(t, "label", "--overwrite", "namespace", test.namespace,
				"pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted")
			text := read(t, "deploy/"+test.manifest+".yaml")
			checkManifest(t, cp, text)
			cp.Apply(t, text)
			test.prepare(t)
			output, code := runInPod(t, cp, test.namespace, test.account, arguments(t, text))
			if code != test.code || !regexp.MustCompile(test.output).MatchString(output) {
				t.Errorf("exit code %d, want %d, and output with %s:\n%s", code, test.code, test.output, output)
			}
			cp.Kubectl(t, "delete", "--wait=false", "-f", filepath.Join(root, "deploy", test.manifest+".yaml"))
		})
	}
}

// checkManifest has the API server check the objects strictly, without storing
// them. It must not even warn, as it does of pods that it would not admit.
func checkManifest(t *testing.T, cp *controlplane.ControlPlane, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(cp.Bin, "kubectl"), "create", "--dry-run=server", "--validate=strict", "-f", "-")
	cmd.Env, cmd.Stdin = cp.Environ(), strings.NewReader(text)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("kubectl create --dry-run=server: %v\n%s", err, &stderr)
	}
}

// arguments returns those of the only container of the manifest's Job or
// CronJob.
func arguments(t *testing.T, text string) []string {
	t.Helper()
	documents := strings.Split(text, "\n---\n")
	last := []byte(documents[len(documents)-1])
	var spec corev1.PodSpec
	if strings.Contains(string(last), "kind: CronJob") {
		var job batchv1.CronJob
		if err := yaml.UnmarshalStrict(last, &job); err != nil {
			t.Fatal(err)
		}
		spec = job.Spec.JobTemplate.Spec.Template.Spec
	} else {
		var job batchv1.Job
		if err := yaml.UnmarshalStrict(last, &job); err != nil {
			t.Fatal(err)
		}
		spec = job.Spec.Template.Spec
	}
	if len(spec.Containers) != 1 || len(spec.Containers[0].Args) == 0 {
		t.Fatalf("want one container with arguments: %v", spec.Containers)
	}
	return spec.Containers[0].Args
}

// runInPod runs the plugin as if in a pod of the service account, and returns
// its output and exit code.
func runInPod(t *testing.T, cp *controlplane.ControlPlane, namespace, account string, args []string) (string, int) {
	t.Helper()
	if runtime.GOOS != "linux" || exec.Command("unshare", "--map-root-user", "--mount", "true").Run() != nil {
		t.Skip("needs Linux and the right to make user and mount namespaces")
	}
	config, err := clientcmd.LoadFromFile(cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cluster := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	ca := cluster.CertificateAuthorityData
	if len(ca) == 0 {
		if ca, err = os.ReadFile(cluster.CertificateAuthority); err != nil {
			t.Fatal(err)
		}
	}
	files := t.TempDir()
	token := cp.Kubectl(t, "create", "token", account, "-n", namespace)
	for name, content := range map[string]string{"token": strings.TrimSpace(token), "ca.crt": string(ca), "namespace": namespace} {
		if err := os.WriteFile(filepath.Join(files, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server, err := url.Parse(cp.Server)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", append([]string{"--map-root-user", "--mount", "sh", "-c", podRun, "sh", files, "kubectl-gc"}, args...)...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), // has kubectl-gc
		"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port(),
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}
