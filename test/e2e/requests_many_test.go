// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

const (
	// many is how many there are of everything in the cluster of TestRequestsOfMany.
	many = 300
	// mostRequests is how many requests a command may send there. It is less than many, so that one for each of anything is
	// too many.
	mostRequests = 280
	// operator is the one controller for which many objects wait, and explainAll how its cause is read.
	operator   = "many-operator"
	explainAll = "explain-stuck -A -o json"
	// withStatus shows the READY of all Deployments.
	withStatus = "tree -n many deployments --status=always"
)

// manyArgs are commands that only read. manifest and kept are what a prune goes by.
func manyArgs(dir, manifest, kept string) []string {
	return []string{
		"tree -A -o name",
		"tree -n many",
		"tree -n many deployments",
		withStatus,
		"tree -A --status=always",
		"graph -A -o json",
		"snapshot --overwrite -o " + filepath.Join(dir, "many.snapshot"),
		"check -A --settle=0",
		"check -A --settle=1ms",
		"check -n many -o wide --settle=0",
		"explain-stuck -A",
		explainAll,
		"explain-stuck -n many",
		"explain-stuck -n many configmap/held-7",
		"explain-stuck -n many secrets",
		"explain-stuck -n many persistentvolumeclaims -o wide",
		"unstick -A --dry-run",
		"unstick -n many secrets --dry-run",
		"collect -A --dry-run",
		"delete namespace/many --dry-run",
		"delete -n many deployments --all --dry-run",
		"delete -n many persistentvolumeclaims --all --cascade=foreground --dry-run -o wide",
		"delete -n many pods --all --dry-run",
		"uninstall prune -n many " + manifest + " " + kept,
	}
}

// TestRequestsOfMany counts what each command that only reads asks of a cluster that has many of everything: workloads with
// their pods, claims in use with their volumes, objects that wait for one controller, causes, and wrong owners.
func TestRequestsOfMany(t *testing.T) {
	cp := controlplane.Start(t, controlplane.Options{})
	crowdOf(t, cp, many).fill(t)
	dir := t.TempDir()
	manifest, kept := manifestsOfMany(t, dir, many)
	counted := map[string]int{}
	for _, args := range manyArgs(dir, manifest, kept) {
		n, stdout := requestsOf(t, cp, args)
		counted[args] = n
		if n > mostRequests {
			t.Errorf("%s sent %d requests", args, n)
		}
		switch ready := strings.Count(stdout, " 0/0 "); {
		case args == explainAll:
			oneCauseOfMany(t, []byte(stdout))
		case args == withStatus && ready <= many:
			t.Errorf("%d Deployments with READY, want more than %d: %.500s", ready, many, stdout)
		}
	}
	if all, one := counted["explain-stuck -A"], counted["explain-stuck -n many"]; one > all+1 { // it asks first whether it takes all
		t.Errorf("explain-stuck sent %d requests about a namespace, and %d about all of them", one, all)
	}
	for _, args := range []string{withStatus, "explain-stuck -n many configmap/held-7"} {
		argv := append([]string{"kubectl-gc"}, strings.Fields(args)...)
		if difference := compareOffline(t.Context(), dir, append(argv, "--kubeconfig="+cp.Kubeconfig)); difference != "" {
			t.Error(difference)
		}
	}
}

// The requests hardly grow where the cluster grows tenfold, and what is asked about does not.
func TestRequestsOfGrowth(t *testing.T) {
	const few, times = 60, 9
	cp := controlplane.Start(t, controlplane.Options{})
	c := crowdOf(t, cp, few)
	c.fill(t)
	dir := t.TempDir()
	manifest, kept := manifestsOfMany(t, dir, few)
	commands := slices.DeleteFunc(manyArgs(dir, manifest, kept), func(args string) bool { // these are about everything, page by page
		return strings.HasPrefix(args, "snapshot") || args == "tree -A --status=always"
	})
	before := map[string]int{}
	for _, args := range commands {
		before[args], _ = requestsOf(t, cp, args)
	}
	c.grow(t, times)
	for _, args := range commands {
		if after, _ := requestsOf(t, cp, args); after-before[args] > max(1, before[args]/10) {
			t.Errorf("%s sent %d requests, and %d where there is ten times as much that it is not about", args, before[args], after)
		}
	}
}

var sent = regexp.MustCompile(`(\d+) requests: .*`)

// requestsOf runs a command, and returns how many requests it sent and what it wrote.
func requestsOf(t *testing.T, cp *controlplane.ControlPlane, args string) (int, string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	argv := append([]string{"kubectl-gc"}, strings.Fields(args)...)
	code := gccmd.Run(t.Context(), append(argv, "--kubeconfig="+cp.Kubeconfig, "-v=2"), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
	said := sent.FindStringSubmatch(stderr.String())
	if code == 1 || said == nil {
		t.Errorf("%s: exit code %d: %.2000s", args, code, stderr.String())
		return 0, ""
	}
	n, err := strconv.Atoi(said[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s", args, said[0])
	return n, stdout.String()
}

// oneCauseOfMany checks that all objects that wait for one controller share one cause, which does not grow with them.
func oneCauseOfMany(t *testing.T, report []byte) {
	t.Helper()
	type cause struct {
		ID                 string
		Blocks             int
		Object             struct{ Name string }
		Remedies, Evidence []any
	}
	var read struct{ Objects []struct{ Causes []cause } }
	if err := json.Unmarshal(report, &read); err != nil {
		t.Fatal(err)
	}
	waiting := 0
	for _, o := range read.Objects {
		for _, c := range o.Causes {
			if c.ID != "fin-dead" || c.Object.Name != operator {
				continue
			}
			if waiting++; c.Blocks != many || len(c.Remedies) > 10 || len(c.Evidence) > 40 {
				t.Fatalf("%s at %s holds up %d objects, with %d remedies and %d pieces of evidence", c.ID, c.Object.Name, c.Blocks, len(c.Remedies), len(c.Evidence))
			}
		}
	}
	if waiting != many {
		t.Errorf("%d objects wait for the operator, want %d", waiting, many)
	}
}

// manifestsOfMany writes a manifest that names every Deployment and half of the objects that are stuck, and one that keeps one of the
// others.
func manifestsOfMany(t *testing.T, dir string, size int) (manifest, kept string) {
	t.Helper()
	manifest, kept = filepath.Join(dir, "old.yaml"), filepath.Join(dir, "new.yaml")
	for path, text := range map[string]string{manifest: manifestOfMany(size), kept: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held-0, namespace: many}\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return manifest, kept
}

func manifestOfMany(size int) string {
	var b strings.Builder
	for i := range size {
		fmt.Fprintf(&b, "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app-%d, namespace: many}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: one-%d, namespace: many}\n", i, i)
	}
	return b.String()
}

// crowd makes a cluster with many of everything.
type crowd struct {
	kubernetes.Interface
	// another has another name in managed fields.
	another kubernetes.Interface
	ctx     context.Context
	// size is how many there are of everything.
	size int
}

func crowdOf(t *testing.T, cp *controlplane.ControlPlane, size int) crowd {
	return crowd{newClient(t, cp, operator), newClient(t, cp, "another"), t.Context(), size}
}

func (c crowd) fill(t *testing.T) {
	t.Helper()
	if _, err := c.CoreV1().Namespaces().Create(c.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "many"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().ServiceAccounts("many").Create(c.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.operate(); err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	group.SetLimit(16)
	for i := range c.size {
		group.Go(func() error { return c.workload(i) })
		group.Go(func() error { return c.stuck(i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// operate makes the operator, which may change Secrets.
func (c crowd) operate() error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: operator}}
	if _, err := c.CoreV1().ServiceAccounts("many").Create(c.ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	role := &rbacv1.Role{ObjectMeta: account.ObjectMeta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "update", "patch"}}}}
	if _, err := c.RbacV1().Roles("many").Create(c.ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := c.RbacV1().RoleBindings("many").Create(c.ctx, &rbacv1.RoleBinding{
		ObjectMeta: account.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: operator},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "many", Name: operator}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	d := deploymentOf(account.ObjectMeta)
	d.Spec.Template.Spec.ServiceAccountName = operator
	_, err := c.AppsV1().Deployments("many").Create(c.ctx, d, metav1.CreateOptions{})
	return err
}

// grow makes so many times as many objects as fill, in other namespaces, with which all is well.
func (c crowd) grow(t *testing.T, times int) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for n := range times {
		namespace := fmt.Sprintf("well-%d", n)
		if _, err := c.CoreV1().Namespaces().Create(c.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for i := range c.size {
			group.Go(func() error { return c.well(namespace, fmt.Sprintf("app-%d", i)) })
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// well makes an owner with dependents, and some objects that have none.
func (c crowd) well(namespace, name string) error {
	owner, err := c.CoreV1().Secrets(namespace).Create(c.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for i := range 3 {
		under := metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("Secret"))}}
		if _, err := c.CoreV1().ConfigMaps(namespace).Create(c.ctx, &corev1.ConfigMap{ObjectMeta: under}, metav1.CreateOptions{}); err != nil {
			return err
		}
		if _, err := c.CoreV1().PersistentVolumeClaims(namespace).Create(c.ctx, &corev1.PersistentVolumeClaim{ObjectMeta: under, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}, metav1.CreateOptions{}); err != nil {
			return err
		}
		if _, err := c.AppsV1().Deployments(namespace).Create(c.ctx, deploymentOf(under), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// workload makes a Deployment with what its controllers make, a claim that its pod uses, of which the deletion was requested,
// and an object that the volume owns.
func (c crowd) workload(i int) error {
	name, of := fmt.Sprintf("app-%d", i), c.AppsV1()
	d, err := c.deployment(name)
	if err != nil {
		return err
	}
	set, err := of.ReplicaSets("many").Create(c.ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: d.Spec.Template.Labels, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}},
		Spec:       appsv1.ReplicaSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume, err := c.CoreV1().PersistentVolumes().Create(c.ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{Capacity: size, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/many"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	under := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "under-" + name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(volume, corev1.SchemeGroupVersion.WithKind("PersistentVolume"))}}}
	if _, err := c.CoreV1().ConfigMaps("many").Create(c.ctx, under, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := c.CoreV1().PersistentVolumeClaims("many").Create(c.ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"kubernetes.io/pvc-protection"}},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: name, AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	pod := d.Spec.Template.Spec.DeepCopy()
	pod.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	if _, err := c.CoreV1().Pods("many").Create(c.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: d.Spec.Template.Labels, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}},
		Spec:       *pod,
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return c.CoreV1().PersistentVolumeClaims("many").Delete(c.ctx, name, metav1.DeleteOptions{})
}

// deployment makes one that is scaled to 0.
func (c crowd) deployment(name string) (*appsv1.Deployment, error) {
	return c.AppsV1().Deployments("many").Create(c.ctx, deploymentOf(metav1.ObjectMeta{Name: name}), metav1.CreateOptions{})
}

func deploymentOf(meta metav1.ObjectMeta) *appsv1.Deployment {
	labels := map[string]string{"app": meta.Name}
	return &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "registry.test/" + meta.Name}}},
		}},
	}
}

// stuck makes an object that waits for one controller, one that is a cause of its own, and one whose owner does not exist.
func (c crowd) stuck(i int) error {
	one := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("one-%d", i), Finalizers: []string{"many.test/cleanup"}}}
	if _, err := c.CoreV1().Secrets("many").Create(c.ctx, one, metav1.CreateOptions{}); err != nil {
		return err
	}
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("held-%d", i), Finalizers: []string{fmt.Sprintf("held-%d.test/cleanup", i)}}}
	if _, err := c.another.CoreV1().ConfigMaps("many").Create(c.ctx, held, metav1.CreateOptions{}); err != nil {
		return err
	}
	lost := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("lost-%d", i), OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprintf("owner-%d", i), UID: types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))},
	}}}
	if _, err := c.CoreV1().ConfigMaps("many").Create(c.ctx, lost, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := c.CoreV1().Secrets("many").Delete(c.ctx, one.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return c.CoreV1().ConfigMaps("many").Delete(c.ctx, held.Name, metav1.DeleteOptions{})
}
