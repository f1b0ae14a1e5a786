// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

var (
	undoWorlds = flag.Int("worlds", 0, "how many worlds TestUndoWorlds makes")
	undoSeed   = flag.Uint64("worlds-seed", 0, "the seed of those worlds; 0 for 1, and for another each time in the long form")
)

// TestUndoWorlds makes random worlds, deletes some of what is in them with a backup, and takes that back: all is as it was but for
// UIDs, and the garbage collector of the cluster leaves it there.
func TestUndoWorlds(t *testing.T) {
	parallel(t)
	// kube-controller-manager ends when a busy machine keeps it from renewing its lease for ten seconds.
	cp := controlplane.Start(t, controlplane.Options{Controllers: "all", ControllerManagerArgs: []string{"--leader-elect-lease-duration=90s", "--leader-elect-renew-deadline=80s"}})
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(identity, []byte(key.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	seed := cmp.Or(*undoSeed, 1)
	if nightly.Is() && *undoSeed == 0 {
		seed = uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
	}
	t.Logf("seed %d", seed)
	places := make(chan struct{}, 12) // a busy API server answers no more requests in time than it can
	for n := range cmp.Or(*undoWorlds, nightly.Of(12, 100)) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			w := &undoWorld{T: t, Rand: rand.New(rand.NewPCG(seed, uint64(n))), cp: cp, client: client, name: fmt.Sprintf("undo-%d", n), recipient: key.Recipient().String(), identity: identity} //nolint:gosec // of a test
			w.run()
		})
	}
}

// undoWorld is one of the worlds, in a namespace.
type undoWorld struct {
	*testing.T
	*rand.Rand
	cp                        *controlplane.ControlPlane
	client                    dynamic.Interface
	name, recipient, identity string
	made                      []*unstructured.Unstructured
	said                      bytes.Buffer
}

// undoTypes are the types of a world, of which the objects with names of chance are not compared.
var undoTypes = map[string]schema.GroupVersionResource{
	"ConfigMap": {Version: "v1", Resource: "configmaps"}, "Secret": {Version: "v1", Resource: "secrets"}, "Service": {Version: "v1", Resource: "services"},
	"ServiceAccount": {Version: "v1", Resource: "serviceaccounts"}, "Deployment": {Group: "apps", Version: "v1", Resource: "deployments"},
	"StatefulSet": {Group: "apps", Version: "v1", Resource: "statefulsets"}, "Job": {Group: "batch", Version: "v1", Resource: "jobs"},
	"PersistentVolumeClaim": {Version: "v1", Resource: "persistentvolumeclaims"}, "ReplicaSet": {Group: "apps", Version: "v1", Resource: "replicasets"},
}

// undoSpecs are what objects of the types have.
var undoSpecs = map[string]string{
	"ConfigMap": `{"data":{"a":"b"}}`, "Secret": `{"data":{"a":"Yg=="},"type":"Opaque"}`, "Service": `{"spec":{"ports":[{"port":80}],"selector":{"app":"x"}}}`,
	"ServiceAccount":        `{}`,
	"Deployment":            `{"spec":{"replicas":1,"selector":{"matchLabels":{"app":"NAME"}},"template":{"metadata":{"labels":{"app":"NAME"}},"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"registry.test/c"}]}}}}`,
	"StatefulSet":           `{"spec":{"replicas":1,"serviceName":"x","selector":{"matchLabels":{"app":"NAME"}},"template":{"metadata":{"labels":{"app":"NAME"}},"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"registry.test/c"}]}}}}`,
	"Job":                   `{"spec":{"suspend":true,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"registry.test/c"}]}}}}`,
	"PersistentVolumeClaim": `{"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"undo","volumeName":"NAMESPACE-NAME","resources":{"requests":{"storage":"1Gi"}}}}`,
}

func (w *undoWorld) run() {
	ctx := w.Context()
	w.create(ctx, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", "Namespace", w.name, `{}`, nil)
	w.made = nil
	for i := range 4 + w.IntN(7) {
		w.draw(ctx, i)
	}
	before := w.settled(ctx)
	backup := w.TempDir()
	ended := w.finalize(ctx)
	args := []string{"delete", "namespace/" + w.name}
	if w.IntN(4) > 0 {
		args = []string{"delete", "-n", w.name, "--cascade=" + []string{"background", "foreground", "orphan"}[w.IntN(3)]}
		for _, n := range w.Perm(len(w.made))[:1+w.IntN(2)] {
			args = append(args, strings.ToLower(w.made[n].GetKind())+"/"+w.made[n].GetName())
		}
	}
	w.gc(ctx, append(args, "--backup="+backup, "--backup-secrets", "--backup-recipient="+w.recipient, "--yes", "--timeout=2m")...)
	w.gone(ctx)
	ended()
	runs, err := filepath.Glob(filepath.Join(backup, "*"))
	if err != nil || len(runs) != 1 {
		w.Fatalf("%s\njournals: %v, %v", &w.said, runs, err)
	}
	w.gc(ctx, "undo", runs[0], "--backup="+backup, "--backup-identity="+w.identity, "--yes")
	end := time.Now().Add(time.Minute)
	after := w.state(ctx)
	for ; !gocmp.Equal(before, after) && time.Now().Before(end); after = w.state(ctx) {
		time.Sleep(300 * time.Millisecond)
	}
	time.Sleep(nightly.Of(2*time.Second, 20*time.Second)) // the garbage collector would begin at once
	if diff := gocmp.Diff(before, w.state(ctx)); diff != "" {
		w.Errorf("%s\n(-before +after)\n%s", &w.said, diff)
	}
	w.gc(ctx, "check", "-n", w.name, "--settle=0")
}

// draw makes an object, whose owners are some of those before it.
func (w *undoWorld) draw(ctx context.Context, i int) {
	kinds := slices.Sorted(func(yield func(string) bool) {
		for kind := range undoSpecs {
			if !yield(kind) {
				return
			}
		}
	})
	kind, name := kinds[w.IntN(len(kinds))], fmt.Sprintf("o%d", i)
	spec := strings.NewReplacer("NAMESPACE", w.name, "NAME", name).Replace(undoSpecs[kind])
	if kind == "PersistentVolumeClaim" {
		w.create(ctx, schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}, "", "PersistentVolume", w.name+"-"+name,
			`{"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"storageClassName":"undo","persistentVolumeReclaimPolicy":"Retain","hostPath":{"path":"/undo"}}}`, nil)
	}
	w.create(ctx, undoTypes[kind], w.name, kind, name, spec, func(o *unstructured.Unstructured) {
		var refs []metav1.OwnerReference
		for _, n := range w.Perm(len(w.made))[:min(len(w.made), w.IntN(3))] {
			owner := w.made[n]
			refs = append(refs, metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()})
			if w.IntN(2) == 0 {
				refs[len(refs)-1].BlockOwnerDeletion = new(true)
			}
		}
		o.SetOwnerReferences(refs)
		if w.IntN(4) == 0 {
			o.SetFinalizers(append(o.GetFinalizers(), "undo.test/toy"))
		}
	})
}

func (w *undoWorld) create(ctx context.Context, resource schema.GroupVersionResource, namespace, kind, name, body string, more func(*unstructured.Unstructured)) {
	w.Helper()
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(body), &o.Object); err != nil {
		w.Fatal(err)
	}
	o.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
	o.SetName(name)
	if more != nil {
		more(o)
	}
	var made *unstructured.Unstructured
	var err error
	if namespace == "" {
		made, err = w.client.Resource(resource).Create(ctx, o, metav1.CreateOptions{})
	} else {
		made, err = w.client.Resource(resource).Namespace(namespace).Create(ctx, o, metav1.CreateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
	if namespace != "" {
		w.made = append(w.made, made)
	}
}

// gc runs a command, of which all is shown when the case fails.
func (w *undoWorld) gc(ctx context.Context, args ...string) {
	fmt.Fprintf(&w.said, "$ kubectl gc %s\n", strings.Join(args, " "))
	code := gccmd.Run(ctx, append([]string{"kubectl-gc", args[0], "--kubeconfig=" + w.cp.Kubeconfig}, args[1:]...), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &w.said, ErrOut: &w.said})
	if fmt.Fprintf(&w.said, "exit code %d\n", code); code != 0 && args[0] != "delete" {
		w.Errorf("%s", &w.said)
	}
}

// finalize removes the finalizers of objects that are being deleted, as their controllers would, until what it returns is called.
func (w *undoWorld) finalize(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
			for _, o := range w.all(ctx) {
				if o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), "undo.test/toy") {
					o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == "undo.test/toy" }))
					_, _ = w.client.Resource(undoTypes[o.GetKind()]).Namespace(w.name).Update(ctx, &o, metav1.UpdateOptions{}) // again next time
				}
			}
		}
	}()
	return func() { cancel(); <-done }
}

// all are the objects of the namespace, but for those that every namespace has.
func (w *undoWorld) all(ctx context.Context) []unstructured.Unstructured {
	var all []unstructured.Unstructured
	for kind, resource := range undoTypes {
		list, err := w.client.Resource(resource).Namespace(w.name).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for _, o := range list.Items {
			if o.GetName() != "kube-root-ca.crt" && o.GetName() != "default" {
				o.SetKind(kind)
				o.SetAPIVersion(resource.GroupVersion().String())
				all = append(all, o)
			}
		}
	}
	return all
}

// state is what there is, by kind and name, with owners in the place of UIDs.
func (w *undoWorld) state(ctx context.Context) map[string]any {
	state, names := map[string]any{}, map[types.UID]string{}
	all := w.all(ctx)
	for i := range all {
		names[all[i].GetUID()] = all[i].GetKind() + "/" + all[i].GetName()
	}
	for i := range all {
		o := &all[i]
		var owners []string
		for _, ref := range o.GetOwnerReferences() {
			text, _ := json.Marshal([]any{names[ref.UID], ref.Controller, ref.BlockOwnerDeletion})
			owners = append(owners, string(text))
		}
		spec, _, _ := unstructured.NestedMap(o.Object, "spec")
		if o.GetKind() == "Job" {
			unstructured.RemoveNestedField(spec, "selector")
			unstructured.RemoveNestedField(spec, "template", "metadata", "labels")
		}
		finalizers := o.GetFinalizers()
		slices.Sort(finalizers)
		state[o.GetKind()+"/"+o.GetName()] = map[string]any{
			"owners": owners, "finalizers": finalizers, "spec": spec, "data": o.Object["data"], "deleted": o.GetDeletionTimestamp() != nil,
		}
	}
	return state
}

// settled is the state when its controllers have made what they make.
func (w *undoWorld) settled(ctx context.Context) map[string]any {
	state := w.state(ctx)
	for same := 0; same < 5; time.Sleep(300 * time.Millisecond) {
		now := w.state(ctx)
		if same++; !gocmp.Equal(state, now) {
			state, same = now, 0
		}
	}
	return state
}

// gone waits until nothing is being deleted any more.
func (w *undoWorld) gone(ctx context.Context) {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		going := slices.ContainsFunc(w.all(ctx), func(o unstructured.Unstructured) bool { return o.GetDeletionTimestamp() != nil })
		ns, err := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, w.name, metav1.GetOptions{})
		if !going && (err != nil || ns.GetDeletionTimestamp() == nil) {
			return
		}
	}
	w.Fatalf("%s\nnot all is gone", &w.said)
}
