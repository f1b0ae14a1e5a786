// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// operated is what the changes of TestOperator are made of.
const operated = `
apiVersion: v1
kind: ConfigMap
metadata: {name: held, finalizers: [example.com/a, example.com/b]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  paused: true
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: v1
kind: Node
metadata: {name: worker}
---
apiVersion: v1
kind: Namespace
metadata: {name: going}
`

// Each change is made on the object that it was chosen for, and not when its guards do not hold; a dry run makes none. What
// takes it back makes the object again what it was.
func TestOperator(t *testing.T) {
	cp := controlplane.Start(t, controlplane.Options{})
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := dynamic.NewForConfigOrDie(config)
	operator, err := cluster.NewSender(config, &cluster.Stats{}, "kubectl-gc", false)
	if err != nil {
		t.Fatal(err)
	}
	trial, err := cluster.NewSender(config, &cluster.Stats{}, "kubectl-gc", true)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]graph.Identity{}
	resources := map[string]string{"ConfigMap": "configmaps", "Deployment": "deployments", "Node": "nodes", "Namespace": "namespaces"}
	at := func(id graph.Identity) dynamic.ResourceInterface {
		if id.Namespace == "" {
			return client.Resource(id.Resource.GroupVersionResource)
		}
		return client.Resource(id.Resource.GroupVersionResource).Namespace(id.Namespace)
	}
	for text := range strings.SplitSeq(operated, "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		gvk := object.GroupVersionKind()
		id := graph.Identity{Resource: graph.Resource{GroupVersionResource: gvk.GroupVersion().WithResource(resources[gvk.Kind]), Kind: gvk.Kind}, Name: object.GetName()}
		if gvk.Kind == "ConfigMap" || gvk.Kind == "Deployment" {
			id.Namespace, id.Resource.Namespaced = "default", true
		}
		made, err := at(id).Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		id.UID = made.GetUID()
		ids[object.GetName()] = id
	}
	held, web, worker, going := ids["held"], ids["web"], ids["worker"], ids["going"]
	name := func(resource schema.GroupVersionResource, kind, namespace, name string) graph.Identity {
		return graph.Identity{Resource: graph.Resource{GroupVersionResource: resource, Kind: kind, Namespaced: namespace != ""}, Namespace: namespace, Name: name}
	}
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	binding := name(rbac.WithResource("clusterrolebindings"), "ClusterRoleBinding", "", "kubectl-gc-x")
	account := name(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "ServiceAccount", "default", "again")
	const taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
	finalizer := remedy.PatchOf(held, remedy.Test("/metadata/finalizers/1", "example.com/b"), remedy.Remove("/metadata/finalizers/1"))
	for _, step := range []struct {
		op   remedy.Op
		path []string
		want string // what is at the path afterwards
		// twice: the guards hold once more.
		twice bool
	}{
		{op: finalizer, path: []string{"metadata", "finalizers"}, want: "[example.com/a]"},
		{op: remedy.ScaleOf(web, remedy.Replicas{Wanted: 2}), path: []string{"spec", "replicas"}, want: "2"},
		{op: remedy.ScaleOf(web, remedy.Replicas{Current: 2}), path: []string{"spec", "replicas"}, want: "0"},
		{op: remedy.Op{Verb: remedy.Resume, Object: web}, path: []string{"spec", "paused"}, want: "<nil>", twice: true},
		{op: remedy.Op{Verb: remedy.Restart, Object: web}, path: []string{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}, want: "20", twice: true},
		{op: remedy.Op{Verb: remedy.Annotate, Object: held, Value: "example.com/nudge"}, path: []string{"metadata", "annotations", "example.com/nudge"}, want: "20", twice: true},
		{op: remedy.TaintOf(worker, taint), path: []string{"spec", "taints"}, want: "out-of-service"},
		{op: *remedy.TaintOf(worker, taint).Back, path: []string{"metadata", "name"}, want: "worker"},
		{op: remedy.Op{Verb: remedy.Finalize, Object: going, Value: "kubernetes"}, path: []string{"spec", "finalizers"}, want: "<nil>"},
		{op: remedy.Op{Verb: remedy.Create, Object: account}, path: []string{"metadata", "name"}, want: "again"},
		{op: remedy.GrantOf(binding, remedy.Grant{ClusterRole: "view", Namespace: "default", ServiceAccount: "again"}), path: []string{"roleRef", "name"}, want: "view"},
		{op: remedy.DeleteOf(held, metav1.DeleteOptions{}), path: []string{"metadata", "deletionTimestamp"}, want: "20", twice: true},
	} {
		if step.op.Grant != nil {
			step.op.Mark = "this run"
		}
		what := string(step.op.Verb) + " " + step.op.Object.String()
		before, _ := at(step.op.Object).Get(t.Context(), step.op.Object.Name, metav1.GetOptions{})
		if err := trial.Do(t.Context(), &step.op); err != nil {
			t.Errorf("%s: a dry run: %v", what, err)
		}
		if now, _ := at(step.op.Object).Get(t.Context(), step.op.Object.Name, metav1.GetOptions{}); before != nil && now.GetResourceVersion() != before.GetResourceVersion() {
			t.Errorf("%s: a dry run changed it", what)
		}
		other := step.op
		if other.Object.UID = types.UID("nobody"); other.Verb != remedy.Create {
			if other.Verb == remedy.Patch {
				other.Patch = append([]remedy.Step{remedy.Test("/metadata/uid", "nobody")}, other.Patch[1:]...)
			}
			if other.Verb == remedy.Delete {
				other = remedy.DeleteOf(other.Object, metav1.DeleteOptions{})
			}
			if err := operator.Do(t.Context(), &other); !errors.Is(err, remedy.ErrChanged) {
				t.Errorf("%s: of another object of its name: %v", what, err)
			}
		}
		if err := operator.Do(t.Context(), &step.op); err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		now, err := at(step.op.Object).Get(t.Context(), step.op.Object.Name, metav1.GetOptions{})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if got := field(now, step.path); !strings.Contains(got, step.want) {
			t.Errorf("%s: %v is %s, want %s", what, step.path, got, step.want)
		}
		if err := operator.Do(t.Context(), &step.op); !step.twice && err == nil {
			t.Errorf("%s: a second time, when its guards do not hold any more", what)
		}
	}
}

// field returns what an object has at a path.
func field(o *unstructured.Unstructured, path []string) string {
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(strings.ReplaceAll(fmt.Sprint(value), "map[]", ""))
}
