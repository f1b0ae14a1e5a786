// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

// tree runs "kubectl gc tree" with -o json and returns the document.
func tree(t *testing.T, cp *controlplane.ControlPlane, args ...string) document {
	t.Helper()
	var stdout, stderr bytes.Buffer
	argv := append([]string{"kubectl-gc", "tree", "--kubeconfig=" + cp.Kubeconfig, "-o", "json"}, args...)
	if code := gccmd.Run(t.Context(), argv, genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}); code != 0 {
		t.Fatalf("%s: exit code %d: %s", strings.Join(argv, " "), code, stderr.String())
	}
	var d document
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// document is what the tests read of a Graph document, written down anew so
// that a change of the document is noticed.
type document struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Complete   bool     `json:"complete"`
	Roots      []string `json:"roots"`
	Nodes      []struct {
		Kind   string `json:"kind"`
		Name   string `json:"name"`
		UID    string `json:"uid"`
		Owners []struct {
			UID                string `json:"uid"`
			State              string `json:"state"`
			Controller         bool   `json:"controller"`
			BlockOwnerDeletion bool   `json:"blockOwnerDeletion"`
		} `json:"owners"`
	} `json:"nodes"`
}

func (d document) edges() []string {
	edges := []string{}
	for _, n := range d.Nodes {
		for _, o := range n.Owners {
			edges = append(edges, fmt.Sprintf("%s/%s %s -> %s controller=%t block=%t", n.Kind, n.Name, n.UID, o.UID, o.Controller, o.BlockOwnerDeletion))
		}
	}
	slices.Sort(edges)
	return edges
}

// TestEdgesAgainstKubectl compares the edges of a tree made by the real
// controllers with those that kubectl get says, rebuilt here from the objects.
func TestEdgesAgainstKubectl(t *testing.T) {
	parallel(t)
	cp := controlplane.Start(t, controlplane.Options{Controllers: "all", FakeNodes: 1})
	cp.Kubectl(t, "create", "deployment", "web", "--image=registry.example.com/web", "--replicas=5")
	// Its hour does not come between the two readings; a Job is made of it below.
	cp.Kubectl(t, "create", "cronjob", "tick", "--image=registry.example.com/tick", "--schedule=@yearly")
	cp.Kubectl(t, "create", "job", "now", "--from=cronjob/tick")
	cp.Kubectl(t, "expose", "deployment", "web", "--port=80")
	cp.Kubectl(t, "rollout", "status", "deployment/web", "--timeout=60s")
	cp.Kubectl(t, "wait", "--for=condition=Complete", "job/now", "--timeout=60s")
	cp.Kubectl(t, "set", "image", "deployment/web", "web=registry.example.com/web:2")
	cp.Kubectl(t, "rollout", "status", "deployment/web", "--timeout=60s")
	atRest(t, newClient(t, cp, ""))

	resources := strings.Fields(cp.Kubectl(t, "api-resources", "--namespaced", "--verbs=delete,list,watch", "-o", "name"))
	resources = slices.DeleteFunc(resources, func(r string) bool { return strings.HasPrefix(r, "events") })
	var list struct {
		Items []struct {
			Kind     string            `json:"kind"`
			Metadata metav1.ObjectMeta `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(cp.Kubectl(t, "get", strings.Join(resources, ","), "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	want := []string{}
	for _, item := range list.Items {
		for _, o := range item.Metadata.OwnerReferences {
			want = append(want, fmt.Sprintf("%s/%s %s -> %s controller=%t block=%t", item.Kind, item.Metadata.Name, item.Metadata.UID, o.UID,
				o.Controller != nil && *o.Controller, o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion))
		}
	}
	slices.Sort(want)
	if len(want) < 8 {
		t.Fatalf("the controllers made only %d owner references", len(want))
	}
	got := tree(t, cp)
	if diff := cmp.Diff(want, got.edges()); diff != "" {
		t.Errorf("edges differ (-kubectl get +kubectl gc tree):\n%s", diff)
	}
	for _, n := range got.Nodes {
		for _, o := range n.Owners {
			if o.State != "Solid" {
				t.Errorf("%s/%s: reference is %s, want Solid", n.Kind, n.Name, o.State)
			}
		}
	}
}

// atRest returns when no pod is being deleted: superseded pods go once the fake kubelet has ended them.
func atRest(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), pause, patience, true, func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), err
	})
	if err != nil {
		t.Fatalf("pods are still being deleted: %v", err)
	}
}

// TestSize shows an owner with 20,000 dependents and a chain of 1,000.
func TestSize(t *testing.T) {
	nightly.Only(t, "it fills a cluster")
	parallel(t)
	const wide, deep = 20_000, 1_000
	cp := controlplane.Start(t, controlplane.Options{})
	client := newClient(t, cp, "")
	create := func(name string, owner types.UID, ownerName string) types.UID {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if owner != "" {
			o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: ownerName, UID: owner}}
		}
		made, err := client.CoreV1().ConfigMaps("default").Create(context.Background(), o, metav1.CreateOptions{})
		if err != nil {
			t.Error(err)
			return ""
		}
		return made.UID
	}
	root := create("root", "", "")
	var group errgroup.Group
	group.SetLimit(16)
	for i := range wide {
		group.Go(func() error {
			create(fmt.Sprintf("wide-%05d", i), root, "root")
			return nil
		})
	}
	_ = group.Wait() // failures are reported by create
	owner, ownerName := root, "root"
	for i := range deep {
		name := fmt.Sprintf("deep-%04d", i)
		owner, ownerName = create(name, owner, ownerName), name
	}
	if got := len(tree(t, cp, "configmap/root").Nodes); got != 1+wide+deep {
		t.Errorf("tree of the root has %d nodes, want %d", got, 1+wide+deep)
	}
	if got := len(tree(t, cp, "configmap/"+ownerName).Nodes); got != 1+deep {
		t.Errorf("tree of the last in the chain has %d nodes, want %d", got, 1+deep)
	}
	if got := len(tree(t, cp, "configmap/root", "--depth=1").Nodes); got != 2+wide {
		t.Errorf("tree of the root, one level deep, has %d nodes, want %d", got, 2+wide)
	}

	// A cascade costs a delete for each object and one read of each owner.
	var stdout, stderr bytes.Buffer
	argv := []string{"kubectl-gc", "delete", "--kubeconfig=" + cp.Kubeconfig, "configmap/root", "--yes", "-o", "json", "-v=2"}
	if code := gccmd.Run(t.Context(), argv, genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}); code != 0 {
		t.Fatalf("delete: exit code %d: %s", code, stderr.String())
	}
	t.Log(stderr.String())
	if left := cp.Kubectl(t, "get", "configmaps", "-o", "name"); left != "" {
		t.Errorf("left after the delete: %.200s", left)
	}
	// The owner of the wide part, and every link of the chain.
	if want := fmt.Sprintf(" %d deletes, 0 patches, 1 watches;", 1+wide+deep); !strings.Contains(stderr.String(), want) {
		t.Errorf("requests: want%s got %s", want, stderr.String())
	}
}
