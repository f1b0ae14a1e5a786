// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestSilentWatches: watches that are open and tell nothing. Somebody makes a dependent, of a type that had no objects,
// while the owner's deletion is carried out, or has the owner orphan the rest of its dependents. Nothing that is to be kept is
// lost, and what is not finished is not said to be.
func TestSilentWatches(t *testing.T) {
	t.Parallel() // it mostly waits
	_, world := connect(t)
	client, err := kubernetes.NewForConfig(world.Config)
	if err != nil {
		t.Fatal(err)
	}
	const late = `^PATCH |^DELETE [^?]*/configmaps/dependent`
	for _, c := range []silentCase{
		{name: "orphan", dependents: 2, args: []string{"--cascade=orphan"}, when: late, do: (*silentCase).makeLate, check: func(c *silentCase) error {
			secret, err := c.client.CoreV1().Secrets(c.namespace).Get(c.ctx, "late", metav1.GetOptions{})
			_, there := c.client.CoreV1().ConfigMaps(c.namespace).Get(c.ctx, "own", metav1.GetOptions{})
			if err != nil || there != nil && len(secret.OwnerReferences) > 0 || there == nil && c.code != 2 {
				return fmt.Errorf("exit %d, %s, owner: %v, owned by %v", c.code, fmt.Sprint(err), fmt.Sprint(there), secret.OwnerReferences)
			}
			return nil
		}},
		{name: "foreground", dependents: 2, args: []string{"--cascade=foreground"}, when: late, do: (*silentCase).makeLate, check: func(c *silentCase) error {
			secret, err := c.client.CoreV1().Secrets(c.namespace).Get(c.ctx, "late", metav1.GetOptions{})
			if err != nil || secret.DeletionTimestamp == nil || c.code != 2 {
				return fmt.Errorf("exit %d, %s: a dependent that a finalizer holds has to be deleted, and its owner to wait for it: %v", c.code, fmt.Sprint(err), secret.ObjectMeta)
			}
			return nil
		}},
		{name: "orphaned amid a foreground deletion", dependents: 40, args: []string{"--cascade=foreground", "--concurrency=1"}, when: `^DELETE [^?]*/configmaps/dependent`, do: (*silentCase).orphan, check: func(c *silentCase) error {
			left, err := c.client.CoreV1().ConfigMaps(c.namespace).List(c.ctx, metav1.ListOptions{LabelSelector: "dependent"})
			if err != nil || len(left.Items) < 20 {
				return fmt.Errorf("%s: of 40 dependents %d are left", fmt.Sprint(err), len(left.Items))
			}
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.ctx, c.client = t.Context(), client
			c.run(t)
		})
	}
}

// silentCase is one in which watches tell nothing.
type silentCase struct {
	name       string
	dependents int
	args       []string
	// when matches the first request before which do is done; check says what is wrong in the end.
	when  string
	do    func(*silentCase)
	check func(*silentCase) error

	ctx       context.Context //nolint:containedctx // of the test
	client    kubernetes.Interface
	namespace string
	owner     metav1.OwnerReference
	failed    error
	code      int
}

func (c *silentCase) run(t *testing.T) {
	namespace, err := c.client.CoreV1().Namespaces().Create(c.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "silent-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.namespace = namespace.Name
	own, err := c.client.CoreV1().ConfigMaps(c.namespace).Create(c.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "own"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.owner = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "own", UID: own.UID, BlockOwnerDeletion: new(true)}
	for i := range c.dependents {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("dependent-%02d", i), Labels: map[string]string{"dependent": ""}, OwnerReferences: []metav1.OwnerReference{c.owner},
		}}
		if _, err := c.client.CoreV1().ConfigMaps(c.namespace).Create(c.ctx, o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	_, world := connect(t)
	proxy, err := Start(world.Config, Options{},
		Rule{URI: regexp.MustCompile(`^GET .*watch=`), Fault: LateEvents(25 * time.Second)},
		Rule{URI: regexp.MustCompile(c.when), Fault: Meanwhile("somebody", false, func() { c.do(c) }), Times: 1},
		Rule{URI: regexp.MustCompile(`^DELETE `), Fault: Latency(100 * time.Millisecond)},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := proxy.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	r, err := run(c.ctx, kubeconfig, append([]string{"delete", "configmap/own", "-n", c.namespace, "--yes"}, c.args...)...)
	if err != nil {
		t.Fatal(err)
	}
	c.code = r.code
	if c.failed != nil {
		t.Fatal(c.failed)
	}
	if err := c.check(c); err != nil {
		t.Errorf("%v\n%s", err, r)
	}
}

// makeLate makes a dependent that blocks the owner.
func (c *silentCase) makeLate() {
	o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "late", OwnerReferences: []metav1.OwnerReference{c.owner}, Finalizers: []string{"example.com/hold"}}}
	_, c.failed = c.client.CoreV1().Secrets(c.namespace).Create(c.ctx, o, metav1.CreateOptions{})
}

// orphan has the owner keep the dependents that are left.
func (c *silentCase) orphan() {
	policy := metav1.DeletePropagationOrphan
	c.failed = c.client.CoreV1().ConfigMaps(c.namespace).Delete(c.ctx, "own", metav1.DeleteOptions{PropagationPolicy: &policy})
}
