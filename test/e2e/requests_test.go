// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// TestRequestsOfACascade counts what a cascade costs the API server, by its own
// audit log: done by the plugin where no controller runs, and by the
// garbage collector.
func TestRequestsOfACascade(t *testing.T) {
	const dependents = 500

	cp := controlplane.Start(t, controlplane.Options{AuditLog: true, Controllers: "gc"})
	const controllers = "kube-controller-manager/"
	if err := cp.Stop("controller-manager"); err != nil {
		t.Fatal(err)
	}
	fan(t, cp, dependents)
	var stdout, stderr bytes.Buffer
	began := time.Now()
	argv := []string{"kubectl-gc", "delete", "--kubeconfig=" + cp.Kubeconfig, "configmap/owner", "--cascade=foreground", "--yes", "-o", "name"}
	if code := gccmd.Run(t.Context(), argv, genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}); code != 0 {
		t.Fatalf("delete: exit code %d: %s", code, stderr.String())
	}
	took := time.Since(began)
	ours := cascadeRequests(t, cp, func(agent string) bool {
		return !slices.ContainsFunc([]string{"kube-apiserver/", controllers, "seed"}, func(other string) bool { return strings.HasPrefix(agent, other) })
	})

	if err := cp.Start("controller-manager"); err != nil {
		t.Fatal(err)
	}
	fan(t, cp, dependents)
	cp.Kubectl(t, "delete", "configmap", "owner", "--cascade=foreground", "--timeout=120s")
	theirs := cascadeRequests(t, cp, func(agent string) bool { return strings.HasPrefix(agent, controllers) })

	t.Logf("kubectl gc: %v", ours)
	t.Logf("kube-controller-manager: %v", theirs)
	want := map[string]int{
		"delete": 1 + dependents, // the owner, and each dependent
		"patch":  1,              // the owner's finalizer
		"watch":  1,
	}
	// The owner: once by its name, once to be sure that it is being deleted, and again when that proof is a second old.
	if most := 2 + int(took/time.Second); ours["get"] < 2 || ours["get"] > most {
		t.Errorf("kubectl gc sent %d get requests for ConfigMaps in %s, want from 2 to %d", ours["get"], took, most)
	}
	for verb, n := range want {
		if ours[verb] != n {
			t.Errorf("kubectl gc sent %d %s requests for ConfigMaps, want %d", ours[verb], verb, n)
		}
	}
	if theirs["get"] < dependents || theirs["delete"] < dependents {
		t.Errorf("the garbage collector sent %v, which is less than this test assumes of it", theirs)
	}
}

// fan creates an owner with dependents that block it.
func fan(t *testing.T, cp *controlplane.ControlPlane, dependents int) {
	t.Helper()
	client := newClient(t, cp, "seed")
	configMaps := client.CoreV1().ConfigMaps("default")
	owner, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	blocks := true
	var group errgroup.Group
	group.SetLimit(16)
	for i := range dependents {
		group.Go(func() error {
			_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("dependent-%04d", i),
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID, BlockOwnerDeletion: &blocks,
				}},
			}}, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// cascadeRequests counts the finished requests for ConfigMaps in the default
// namespace by verb, of the user agents that are wanted. Lists are not counted:
// both sides read what there is.
func cascadeRequests(t *testing.T, cp *controlplane.ControlPlane, wanted func(agent string) bool) map[string]int {
	t.Helper()
	cp.Logged(t)
	file, err := os.Open(cp.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	counts := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			Stage, Verb, UserAgent string
			ObjectRef              struct{ Resource, Namespace string }
		}
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatal(err)
		}
		started := entry.Verb == "watch" && entry.Stage == "ResponseStarted"
		if !started && (entry.Stage != "ResponseComplete" || entry.Verb == "watch") || entry.Verb == "list" ||
			entry.ObjectRef.Resource != "configmaps" || !slices.Contains([]string{"", "default"}, entry.ObjectRef.Namespace) || !wanted(entry.UserAgent) {
			continue
		}
		counts[entry.Verb]++
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return counts
}

// TestLongListIsNotReadFromEtcd counts the ConfigMaps that the API server reads
// from etcd for a tree of more of them than a page has. Its cache is the list as
// it is now and nothing else, as in a cluster at rest.
func TestLongListIsNotReadFromEtcd(t *testing.T) {
	controlplane.Needs(t, "1.34", "older servers count what they read from etcd by another name, and those below 1.33 read pages from there")
	if controlplane.Since("1.37") {
		t.Skip("an API server of 1.37 does not count the objects that it reads from etcd")
	}
	cp := controlplane.Start(t, controlplane.Options{APIServerArgs: []string{"--feature-gates=ListFromCacheSnapshot=false"}})
	const objects = 601
	fan(t, cp, objects-1)
	for _, test := range []struct {
		argv []string
		read int
	}{
		{[]string{"tree"}, 0},
		{[]string{"tree", "--chunk-size=500"}, objects - 500},
	} {
		before := readFromEtcd(t, cp, "configmaps")
		var stdout, stderr bytes.Buffer
		argv := append([]string{"kubectl-gc", "--kubeconfig=" + cp.Kubeconfig, "-o", "name"}, test.argv...)
		if code := gccmd.Run(t.Context(), argv, genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}); code != 0 {
			t.Fatalf("%s: exit code %d: %s", test.argv, code, stderr.String())
		}
		if n := strings.Count(stdout.String(), "configmap/"); n != objects {
			t.Errorf("%s: %d ConfigMaps, want %d", test.argv, n, objects)
		}
		if got := readFromEtcd(t, cp, "configmaps") - before; got != test.read {
			t.Errorf("%s: the API server read %d ConfigMaps from etcd, want %d", test.argv, got, test.read)
		}
	}
}

// readFromEtcd returns how many objects of a type the API server has read from
// etcd for lists.
func readFromEtcd(t *testing.T, cp *controlplane.ControlPlane, resource string) int {
	t.Helper()
	metric := fmt.Sprintf(`apiserver_storage_list_fetched_objects_total{group="",resource=%q} `, resource)
	for line := range strings.Lines(cp.Kubectl(t, "get", "--raw", "/metrics")) {
		if rest, found := strings.CutPrefix(line, metric); found {
			n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
	}
	t.Fatalf("the API server does not count what it reads of %s", resource)
	return 0
}
