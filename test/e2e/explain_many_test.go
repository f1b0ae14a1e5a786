// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	gccmd "github.com/kubectl-gc/kubectl-gc/pkg/cmd"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

// TestExplainMany explains 2,000 objects that wait for one controller, in one
// pass: what is asked of the server grows by pages of lists alone.
func TestExplainMany(t *testing.T) {
	nightly.Only(t, "it fills a cluster")
	cp := controlplane.Start(t, controlplane.Options{})
	client := newClient(t, cp, "many-operator") // the manager in managed fields
	labels := map[string]string{"app": "many-operator"}
	operator := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "many-operator"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "registry.test/many-operator"}}},
			},
		},
	}
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), operator, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	terminating(t, client, 0, 20)
	few := explainAll(t, cp, 20)
	terminating(t, client, 20, 2000)
	many := explainAll(t, cp, 2000)
	const pages, probes = 2000/500 + 1, 40
	if many > few+2*pages+probes {
		t.Errorf("%d requests for 20 objects, %d for 2,000", few, many)
	}
}

// terminating makes ConfigMaps, in ten namespaces, with a finalizer, and deletes
// them.
func terminating(t *testing.T, client kubernetes.Interface, from, to int) {
	t.Helper()
	for i := range 10 {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("many-%d", i)}}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil && from == 0 {
			t.Fatal(err)
		}
	}
	var group errgroup.Group
	group.SetLimit(16)
	for i := from; i < to; i++ {
		group.Go(func() error {
			configMaps := client.CoreV1().ConfigMaps(fmt.Sprintf("many-%d", i%10))
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("object-%04d", i), Finalizers: []string{"many.test/cleanup"}}}
			if _, err := configMaps.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
				return err
			}
			return configMaps.Delete(t.Context(), o.Name, metav1.DeleteOptions{})
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// explainAll explains everything, checks that one cause holds up so many objects, and
// returns the number of requests.
func explainAll(t *testing.T, cp *controlplane.ControlPlane, objects int) int {
	t.Helper()
	var stdout, stderr bytes.Buffer
	argv := []string{"kubectl-gc", "explain-stuck", "--kubeconfig=" + cp.Kubeconfig, "-A", "-o", "json", "-v=2"}
	if code := gccmd.Run(t.Context(), argv, genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}); code != 2 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	var report struct {
		Objects []struct {
			Verdict string
			Causes  []struct {
				ID       string
				Blocks   int
				Object   struct{ Name string }
				Remedies []any
				Evidence []any
			}
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Objects) != objects {
		t.Errorf("%d objects are explained, want %d", len(report.Objects), objects)
	}
	for _, o := range report.Objects {
		if len(o.Causes) != 1 || o.Verdict != "Stuck" {
			t.Fatalf("%+v", o)
		}
		c := o.Causes[0]
		if c.ID != "fin-dead" || c.Object.Name != "many-operator" || c.Blocks != objects || len(c.Remedies) > 10 || len(c.Evidence) > 40 {
			t.Fatalf("%s at %s holds up %d objects, with %d remedies and %d pieces of evidence", c.ID, c.Object.Name, c.Blocks, len(c.Remedies), len(c.Evidence))
		}
	}
	match := regexp.MustCompile(`(\d+) requests: `).FindStringSubmatch(stderr.String())
	if match == nil {
		t.Fatalf("no number of requests in %q", stderr.String())
	}
	t.Log(stderr.String())
	n, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
