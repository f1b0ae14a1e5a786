// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-gc/kubectl-gc/test/cluster"
)

// start starts a control plane for a test.
func start(t *testing.T, options cluster.Options) (*cluster.ControlPlane, kubernetes.Interface) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	binaries, err := cluster.Build(t.Context(), "", os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	options.Binaries = binaries
	cp, err := cluster.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(cp.Dir); err == nil {
			t.Errorf("closing leaves %s behind", cp.Dir)
		}
	})
	return cp, client(t, cp.Kubeconfig)
}

func client(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// must fails the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually fails the test unless the condition holds within a minute.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute: not %s", what)
		}
	}
}

// createOwnedConfigMap creates a ConfigMap "owner" and one that it owns.
func createOwnedConfigMap(t *testing.T, c kubernetes.Interface) {
	t.Helper()
	maps := c.CoreV1().ConfigMaps("default")
	owner, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:            "dependent",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
	}}, metav1.CreateOptions{})
	must(t, err)
}

// exists reports whether a ConfigMap exists.
func exists(t *testing.T, c kubernetes.Interface, name string) bool {
	t.Helper()
	_, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// TestTwoAtATime runs a control plane with and one without the garbage
// collector side by side.
func TestTwoAtATime(t *testing.T) {
	collecting, with := start(t, cluster.Options{Controllers: cluster.ControllersGC})
	idle, without := start(t, cluster.Options{})
	if collecting.Server == idle.Server || collecting.Dir == idle.Dir {
		t.Fatalf("two control planes share the server %s or the directory %s", idle.Server, idle.Dir)
	}
	for _, c := range []kubernetes.Interface{with, without} {
		createOwnedConfigMap(t, c)
		must(t, c.CoreV1().ConfigMaps("default").Delete(t.Context(), "owner", metav1.DeleteOptions{}))
	}
	eventually(t, "collected", func() bool { return !exists(t, with, "dependent") })
	if !exists(t, without, "dependent") {
		t.Error("without controllers the dependent is collected, too")
	}
	if pids := idle.PIDs(); len(pids) != 2 || pids[cluster.Etcd] == 0 || pids[cluster.APIServer] == 0 {
		t.Errorf("without controllers the processes are %v, want etcd and the API server", pids)
	}
}

func TestRestart(t *testing.T) {
	cp, c := start(t, cluster.Options{})
	createOwnedConfigMap(t, c)
	must(t, cp.Kill(cluster.APIServer))
	if err := cp.Stop(cluster.APIServer); err == nil {
		t.Error("stopping the API server after killing it does not fail")
	}
	if _, err := c.Discovery().ServerVersion(); err == nil {
		t.Error("the killed API server answers")
	}
	must(t, cp.Start(t.Context(), cluster.APIServer))
	if err := cp.Start(t.Context(), cluster.APIServer); err == nil {
		t.Error("starting the API server twice does not fail")
	}
	must(t, cp.Kill(cluster.Etcd))
	must(t, cp.Start(t.Context(), cluster.Etcd))
	eventually(t, "there again", func() bool {
		_, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), "dependent", metav1.GetOptions{})
		return err == nil
	})
	if err := cp.Kill("scheduler"); err == nil || !strings.Contains(err.Error(), "etcd, apiserver") {
		t.Errorf("killing an unknown component: got %v, want an error that lists the known ones", err)
	}
}

func TestStartFails(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	binaries, err := cluster.Build(t.Context(), "", os.Stderr)
	must(t, err)
	t.Setenv("TMPDIR", t.TempDir())
	for name, test := range map[string]struct {
		options cluster.Options
		want    string
	}{
		"flag":  {cluster.Options{APIServerArgs: []string{"--no-such-flag=1"}}, "unknown flag: --no-such-flag"},
		"users": {cluster.Options{Users: []cluster.User{{Name: "a"}, {Name: "a"}}}, `two users called "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Binaries = binaries
			if _, err := cluster.Start(t.Context(), test.options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that says %q", err, test.want)
			}
		})
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("a failed start leaves %v behind (error %v)", left, err)
	}
}

// TestAll tests what needs the controllers, on one control plane.
func TestAll(t *testing.T) {
	cp, c := start(t, cluster.Options{
		Controllers: cluster.ControllersAll,
		FakeNodes:   2,
		Users:       []cluster.User{{Name: "system:serviceaccount:default:robot", Groups: []string{"robots"}}},
		AuditLog:    true,
	})
	t.Run("lease", func(t *testing.T) { testLease(t, c) })
	t.Run("users", func(t *testing.T) { testUsers(t, cp) })
	t.Run("deployment", func(t *testing.T) { testDeployment(t, c) })
	t.Run("job", func(t *testing.T) { testJob(t, c) })
	t.Run("daemonset", func(t *testing.T) { testDaemonSet(t, c) })
	t.Run("finalizer", func(t *testing.T) { testFinalizer(t, c) })
	t.Run("dead kubelet", func(t *testing.T) { testDeadKubelet(t, cp, c) })
	t.Run("audit log", func(t *testing.T) {
		log, err := os.ReadFile(cp.AuditLog)
		must(t, err)
		for _, user := range []string{"admin", "system:kube-controller-manager", "fake-kubelet"} {
			if !strings.Contains(string(log), `"username":"`+user+`"`) {
				t.Errorf("the audit log has no request of %s", user)
			}
		}
	})
}

func testLease(t *testing.T, c kubernetes.Interface) {
	eventually(t, "the lease of the controller manager is held", func() bool {
		lease, err := c.CoordinationV1().Leases("kube-system").Get(t.Context(), "kube-controller-manager", metav1.GetOptions{})
		return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != ""
	})
	eventually(t, "the lease of the node is renewed", func() bool {
		lease, err := c.CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "node-2", metav1.GetOptions{})
		return err == nil && lease.Spec.RenewTime != nil
	})
}

func testUsers(t *testing.T, cp *cluster.ControlPlane) {
	kubeconfig := cp.Users["system:serviceaccount:default:robot"]
	if filepath.Dir(kubeconfig) != cp.Dir {
		t.Errorf("the kubeconfig is %q, want a file in %s", kubeconfig, cp.Dir)
	}
	_, err := client(t, kubeconfig).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:default:robot") {
		t.Errorf("a request without permission: got %v, want an error that it is forbidden to the user", err)
	}
}

// template returns a pod template with a grace period in seconds.
func template(name string, grace int64, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			RestartPolicy:                 restart,
			Containers:                    []corev1.Container{{Name: "main", Image: "none"}},
		},
	}
}

func pods(t *testing.T, c kubernetes.Interface, app string) []corev1.Pod {
	t.Helper()
	list, err := c.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	must(t, err)
	return list.Items
}

func testDeployment(t *testing.T, c kubernetes.Interface) {
	deployments := c.AppsV1().Deployments("default")
	replicas := int32(2)
	_, err := deployments.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: template("web", 2, corev1.RestartPolicyAlways),
		},
	}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "two replicas are available", func() bool {
		d, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 2
	})
	nodes := map[string]bool{}
	for _, pod := range pods(t, c, "web") {
		nodes[pod.Spec.NodeName] = true
	}
	if len(nodes) != 2 {
		t.Errorf("two pods are on the nodes %v, want two nodes", nodes)
	}
	policy := metav1.DeletePropagationForeground
	begin := time.Now()
	must(t, deployments.Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: &policy}))
	eventually(t, "a pod shows that its deletion was seen", func() bool {
		for _, pod := range pods(t, c, "web") {
			if pod.DeletionTimestamp != nil && pod.Status.ObservedGeneration == pod.Generation {
				return pod.Status.Phase == corev1.PodRunning
			}
		}
		return false
	})
	eventually(t, "the deployment is gone", func() bool {
		_, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if left := pods(t, c, "web"); len(left) > 0 {
		t.Errorf("a foreground deletion is over with %d pods left", len(left))
	}
	if took := time.Since(begin); took < 2*time.Second {
		t.Errorf("the deletion took %s, less than the grace period of 2s", took)
	}
}

func testJob(t *testing.T, c kubernetes.Interface) {
	_, err := c.BatchV1().Jobs("default").Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "work"},
		Spec:       batchv1.JobSpec{Template: template("work", 0, corev1.RestartPolicyNever)},
	}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "the job has succeeded", func() bool {
		job, err := c.BatchV1().Jobs("default").Get(t.Context(), "work", metav1.GetOptions{})
		return err == nil && job.Status.Succeeded == 1
	})
}

func testDaemonSet(t *testing.T, c kubernetes.Interface) {
	_, err := c.AppsV1().DaemonSets("default").Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: template("agent", 0, corev1.RestartPolicyAlways),
		},
	}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "an agent is ready on each node", func() bool {
		d, err := c.AppsV1().DaemonSets("default").Get(t.Context(), "agent", metav1.GetOptions{})
		return err == nil && d.Status.NumberReady == 2 && d.Status.NumberMisscheduled == 0
	})
}

// createPod creates a pod and waits until it runs.
func createPod(t *testing.T, c kubernetes.Interface, name string, finalizers ...string) {
	t.Helper()
	pod := template(name, 1, corev1.RestartPolicyAlways)
	_, err := c.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pod.Labels, Finalizers: finalizers},
		Spec:       pod.Spec,
	}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "the pod runs", func() bool {
		pod, err := c.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	})
}

// testFinalizer tests what the kubelet leaves of a pod with a finalizer.
func testFinalizer(t *testing.T, c kubernetes.Interface) {
	api := c.CoreV1().Pods("default")
	createPod(t, c, "held", "example.com/hold")
	must(t, api.Delete(t.Context(), "held", metav1.DeleteOptions{}))
	var pod *corev1.Pod
	eventually(t, "the kubelet has finished with the pod", func() bool {
		var err error
		pod, err = api.Get(t.Context(), "held", metav1.GetOptions{})
		must(t, err)
		return *pod.DeletionGracePeriodSeconds == 0
	})
	if pod.Status.Phase != corev1.PodSucceeded || pod.Status.ContainerStatuses[0].State.Terminated == nil {
		t.Errorf("the pod has phase %s and containers %+v, want Succeeded and terminated", pod.Status.Phase, pod.Status.ContainerStatuses)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status != corev1.ConditionFalse {
			t.Error("the pod is still Ready")
		}
	}
	pod.Finalizers = nil
	_, err := api.Update(t.Context(), pod, metav1.UpdateOptions{})
	must(t, err)
	eventually(t, "the pod is gone", func() bool { return len(pods(t, c, "held")) == 0 })
}

// testDeadKubelet tests that a pod stays while the kubelet is away.
func testDeadKubelet(t *testing.T, cp *cluster.ControlPlane, c kubernetes.Interface) {
	createPod(t, c, "lost")
	must(t, cp.Kill(cluster.Kubelet))
	must(t, c.CoreV1().Pods("default").Delete(t.Context(), "lost", metav1.DeleteOptions{}))
	time.Sleep(2 * time.Second) // in which it would end: its grace period is a second
	left := pods(t, c, "lost")
	if len(left) != 1 || left[0].Status.ObservedGeneration == left[0].Generation {
		t.Errorf("without a kubelet the pods are %+v, want one whose deletion was not seen", left)
	}
	must(t, cp.Start(t.Context(), cluster.Kubelet))
	eventually(t, "the pod is gone", func() bool { return len(pods(t, c, "lost")) == 0 })
}

// TestCancelledStart tests that a start that is given up leaves nothing.
func TestCancelledStart(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	binaries, err := cluster.Build(t.Context(), "", os.Stderr)
	must(t, err)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := cluster.Start(ctx, cluster.Options{Binaries: binaries}); err == nil {
		t.Error("a start that was given up does not fail")
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("a start that was given up leaves %v behind (error %v)", left, err)
	}
}
