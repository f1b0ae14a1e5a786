// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// copied is a copy of a layout on a cluster.
type copied struct {
	*arena
	layout    layout
	id        string
	authority *authority
}

// make makes the copy, and returns when its operators work and have set their
// finalizers, and what happened before the deletion has happened.
func (c *copied) make(ctx context.Context) error {
	base, types, operators, objects := c.manifests()
	for _, text := range []string{base, types} {
		if _, err := c.kubectl(ctx, text, "apply", "-f", "-"); err != nil {
			return err
		}
	}
	// A wait fails at once for a definition that has no conditions yet.
	if err := until(ctx, "the types are established", func() (bool, error) {
		_, err := c.kubectl(ctx, types, "wait", "--for=condition=Established", "--timeout=60s", "-f", "-")
		return err == nil, nil
	}); err != nil {
		return err
	}
	if operators != "" {
		if _, err := c.kubectl(ctx, operators, "apply", "-f", "-"); err != nil {
			return err
		}
	}
	if err := until(ctx, "the operators work", c.operatorsWork); err != nil {
		return err
	}
	if text := c.extensions(); text != "" {
		if _, err := c.kubectl(ctx, text, "apply", "-f", "-"); err != nil {
			return err
		}
	}
	if c.layout.api != "" {
		if _, err := c.kubectl(ctx, "", "wait", "--for=condition=Available", "--timeout=60s", c.expand("apiservice/v1.extension.$GROUP")); err != nil {
			return err
		}
	}
	if objects != "" {
		if err := until(ctx, "the objects are made", func() (bool, error) { // types and webhooks take a moment
			_, err := c.kubectl(ctx, objects, "apply", "-f", "-")
			return err == nil, err
		}); err != nil {
			return err
		}
	}
	if err := until(ctx, "the finalizers are set", func() (bool, error) { return c.finalized(ctx) }); err != nil {
		return err
	}
	return c.prepare(ctx)
}

// operatorsWork reports whether one of each namespace's operators works, for each.
func (c *copied) operatorsWork() (bool, error) {
	want := map[string]int{}
	for _, o := range c.layout.operators {
		want[c.expand(o.in)]++
	}
	for namespace, n := range want {
		if got := c.nodes.Working(namespace); got < n {
			return false, fmt.Errorf("%d of %d work in %s", got, n, namespace)
		}
	}
	return true, nil
}

// finalized reports whether every object has the finalizers that it will have.
func (c *copied) finalized(ctx context.Context) (bool, error) {
	for _, o := range c.layout.objects {
		served := slices.ContainsFunc(c.layout.operators, func(op operator) bool { return strings.Contains(op.serves, o.of) })
		if o.suspend || !served {
			continue
		}
		list, err := c.objects.Resource(schema.GroupVersionResource{Group: c.expand("$GROUP"), Version: "v1", Resource: o.of}).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, item := range list.Items {
			if !slices.Contains(item.GetFinalizers(), c.expand("$GROUP/cleanup")) {
				return false, fmt.Errorf("%s/%s has no finalizer", item.GetNamespace(), item.GetName())
			}
		}
	}
	return true, nil
}

// prepare does what happened before the deletion: commands of kubectl, and
//
//	scale OPERATOR N
//	crash OPERATOR: its pod ends again and again
//	own OWNER DEPENDENT: in the operators' namespace; control is own as its controller
func (c *copied) prepare(ctx context.Context) error {
	for _, text := range c.layout.before {
		words := strings.Fields(c.expand(text))
		var err error
		switch words[0] {
		case "kubectl":
			_, err = c.kubectl(ctx, "", words[1:]...)
		case "scale":
			_, err = c.kubectl(ctx, "", "-n", c.expand("$S"), "scale", "deployment/"+words[1]+"-"+c.id, "--replicas="+words[2])
		case "crash":
			patch := `[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--crash"}]`
			_, err = c.kubectl(ctx, "", "-n", c.expand("$S"), "patch", "deployment/"+words[1]+"-"+c.id, "--type=json", "-p", patch)
		case "own", "control":
			err = c.own(ctx, words[1], words[2], words[0] == "control")
		default:
			err = fmt.Errorf("before the deletion: no such thing as %q", text)
		}
		if err != nil {
			return err
		}
	}
	if len(c.layout.before) == 0 {
		return nil
	}
	return until(ctx, "the pods are as they will be", func() (bool, error) { return c.settled(ctx) })
}

// own makes an object the owner of another, and waits until the garbage collector
// follows the type.
func (c *copied) own(ctx context.Context, owner, dependent string, controls bool) error {
	namespace := c.expand("$S")
	got, err := c.kubectl(ctx, "", "-n", namespace, "get", owner, "-o", "jsonpath={.apiVersion} {.kind} {.metadata.name} {.metadata.uid}")
	if err != nil {
		return err
	}
	w := strings.Fields(got)
	patch := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":%t,"blockOwnerDeletion":true}]}}`, w[0], w[1], w[2], w[3], controls)
	if _, err := c.kubectl(ctx, "", "-n", namespace, "patch", dependent, "--type=merge", "-p", patch); err != nil {
		return err
	}
	probe := fmt.Sprintf(c.expand("{apiVersion: $GROUP/v1, kind: Toy, metadata: {name: probe, namespace: $S, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: none, uid: %s}]}}"), c.id)
	if _, err := c.kubectl(ctx, probe, "apply", "-f", "-"); err != nil {
		return err
	}
	return until(ctx, "the garbage collector follows the type", func() (bool, error) {
		out, err := c.kubectl(ctx, "", "-n", namespace, "get", c.expand("toys.$GROUP"), "probe", "--ignore-not-found", "-o", "name")
		return err == nil && out == "", err
	})
}

// settled reports whether no pod of the copy is on its way, up or down.
func (c *copied) settled(ctx context.Context) (bool, error) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for _, namespace := range c.namespaces() {
		list, err := c.objects.Resource(pods).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, pod := range list.Items {
			text, err := json.Marshal(pod.Object)
			crashes, crashed := strings.Contains(string(text), `"--crash"`), strings.Contains(string(text), "CrashLoopBackOff")
			if err != nil || pod.GetDeletionTimestamp() != nil || crashes != crashed {
				return false, fmt.Errorf("pod %s is on its way", pod.GetName())
			}
		}
		deployments, err := c.kubectl(ctx, "", "-n", namespace, "get", "deployments", "-o",
			`jsonpath={range .items[*]}{.metadata.generation} {.status.observedGeneration} {.spec.replicas} 0{.status.replicas} {.status.conditions[?(@.type=="ReplicaFailure")].status};{end}`)
		if err != nil {
			return false, err
		}
		for text := range strings.SplitSeq(strings.TrimSuffix(deployments, ";"), ";") {
			w := strings.Fields(text)
			failing := len(w) == 5 // its pods cannot be created
			if len(w) > 0 && (len(w) < 4 || w[0] != w[1] || !failing && w[2] != or(strings.TrimPrefix(w[3], "0"), "0")) {
				return false, fmt.Errorf("a Deployment in %s is on its way: %s", namespace, deployments)
			}
		}
	}
	return true, nil
}

// args returns the arguments of the deletion, with a file where objects are given.
func (c *copied) args(ctx context.Context) ([]string, error) {
	words := strings.Fields(c.expand(c.layout.plan))
	if words[0] != "-f" {
		return words, nil
	}
	var text strings.Builder
	for _, word := range words[1:] {
		documents, err := c.documents(ctx, word)
		if err != nil {
			return nil, err
		}
		text.WriteString(documents)
	}
	file, err := os.CreateTemp(c.cp.Dir, c.id+"-*.yaml")
	if err != nil {
		return nil, err
	}
	_, err = file.WriteString(text.String())
	return []string{"-f", file.Name()}, errors.Join(err, file.Close())
}

// apiVersions are those of the kinds in files.
var apiVersions = map[string]string{
	"namespace": "v1 Namespace", "serviceaccount": "v1 ServiceAccount", "pod": "v1 Pod", "deployment": "apps/v1 Deployment", "replicaset": "apps/v1 ReplicaSet",
	"clusterrole": "rbac.authorization.k8s.io/v1 ClusterRole", "clusterrolebinding": "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
	"secret": "v1 Secret", "rolebinding": "rbac.authorization.k8s.io/v1 RoleBinding", "customresourcedefinition": "apiextensions.k8s.io/v1 CustomResourceDefinition",
	"validatingwebhookconfiguration": "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
}

// documents returns manifests of KIND/NAME, KIND/NAMESPACE/NAME, pods/NAMESPACE/LABEL,
// replicasets/NAMESPACE/LABEL, or leader/NAMESPACE/LEASE, which is the pod with the lease.
func (c *copied) documents(ctx context.Context, word string) (string, error) {
	parts := strings.Split(word, "/")
	kind, name, namespace := parts[0], parts[len(parts)-1], ""
	if len(parts) == 3 {
		namespace = parts[1]
	}
	names := []string{name}
	switch kind {
	case "leader":
		out, err := c.kubectl(ctx, "", "-n", namespace, "get", "lease", name, "-o", "jsonpath={.spec.holderIdentity}")
		if err != nil {
			return "", err
		}
		kind, names = "pod", []string{out}
	case "pods", "replicasets":
		out, err := c.kubectl(ctx, "", "-n", namespace, "get", kind, "-l", name, "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil {
			return "", err
		}
		kind, names = strings.TrimSuffix(kind, "s"), strings.Fields(out)
	}
	version := strings.Fields(apiVersions[kind])
	if kind == "toy" {
		version = []string{c.expand("$GROUP/v1"), "Toy"}
	}
	text := ""
	for _, name := range names {
		meta := "name: " + name
		if namespace != "" {
			meta += ", namespace: " + namespace
		}
		text += document("{apiVersion: %s, kind: %s, metadata: {%s}}", version[0], version[1], meta)
	}
	return text, nil
}

// there returns the UIDs of the objects of a preview that are there, and sets those
// that were said to be deleted and went late. It waits for what is to go as long as
// lastWord says; for what is said to be deleted as long as readiness says after that: a namespace
// controller that has met an error backs off for up to a minute. In the short form it
// waits for nothing else.
func (c *copied) there(ctx context.Context, o *outcome, full bool) error {
	start := time.Now()
	o.there = map[string]bool{}
	for _, s := range o.sayings {
		o.there[s.Object.UID] = true
	}
	for {
		late, waiting, promised := time.Since(start) > lastWord, false, false
		for _, s := range o.sayings {
			if !o.there[s.Object.UID] {
				continue
			}
			is, err := c.exists(ctx, s.Object)
			if err != nil {
				return err
			}
			o.there[s.Object.UID] = is
			waiting = waiting || is && s.goes()
			promised = promised || is && s.Result == "Deleted"
			if late && !is && s.Result == "Deleted" {
				o.late = append(o.late, s.Object)
			}
		}
		if !promised && (!waiting || !full || late) || time.Since(start) > lastWord+readiness {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// exists reports whether an object is there. One that cannot be read is not gone.
func (c *copied) exists(ctx context.Context, o ref) (bool, error) {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		return false, err
	}
	got, err := c.objects.Resource(gv.WithResource(o.Resource)).Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return true, ctx.Err()
	}
	return string(got.GetUID()) == o.UID, nil
}

// remove takes the copy away as nobody should: what holds it is taken off. It is for
// the sake of the copies that follow, and what fails is left. So are the types: one that
// vanishes disturbs whoever reads a cluster.
func (c *copied) remove(ctx context.Context) {
	run := func(args ...string) { _, _ = c.kubectl(ctx, "", args...) }
	for _, o := range c.layout.operators {
		run("delete", "--ignore-not-found", "validatingwebhookconfiguration/"+o.name+"-"+c.id)
	}
	if c.layout.conversion != "" { // otherwise nobody can read the objects
		run("patch", c.expand("$TOYS"), "--type=merge", "-p", `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
	}
	for _, resource := range []string{"toys", "gadgets"} {
		gvr := schema.GroupVersionResource{Group: c.expand("$GROUP"), Version: "v1", Resource: resource}
		list, err := c.objects.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		run(append([]string{"delete", "--wait=false", "--ignore-not-found", "namespace"}, c.namespaces()...)...)
		for _, item := range list.Items {
			_, _ = c.objects.Resource(gvr).Namespace(item.GetNamespace()).Patch(ctx, item.GetName(), "application/merge-patch+json",
				[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
	}
	run(append([]string{"delete", "--wait=false", "--ignore-not-found", "namespace"}, c.namespaces()...)...)
	for _, o := range c.layout.operators {
		run("delete", "--ignore-not-found", "clusterrole/"+o.name+"-"+c.id, "clusterrolebinding/"+o.name+"-"+c.id)
	}
	run("delete", "--ignore-not-found", "clusterrole/shared-"+c.id)
}
