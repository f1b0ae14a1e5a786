// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/testapi"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

var replayedFlag = flag.Int("replayed", 300, "how many cases TestPropertiesReplayed has")

// attempt is a change that a client has sent, when there were so many versions, and the answer.
type attempt struct {
	op   *remedy.Op
	seen int
	err  error
}

// What a run does depends on the answers that it gets, so a case ends on an API server as in memory when each change gets the same answer
// there and makes the same of its object: all that was sent in a case, and what others did, is done again on a real one.
func TestPropertiesReplayed(t *testing.T) {
	nightly.Only(t, "hundreds of cases on a control plane")
	cp := controlplane.Start(t, controlplane.Options{})
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := cluster.NewSender(config, &cluster.Stats{}, "kubectl-gc", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"s", "t", "ops"} {
		namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
		if _, err := client.Resource(served["ns"].GroupVersionResource).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	answered := map[string]int{}
	for seed := range *replayedFlag {
		s := scripts.Example(seed)
		p := (*play)(nil)
		synctest.Test(t, func(t *testing.T) {
			base, err := os.MkdirTemp("", "kubectl-gc-")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.RemoveAll(base) }()
			p = newPlay(s, base)
			p.run(t.Context())
		})
		r := &replay{t.Context(), client, sender, map[types.UID]types.UID{}, map[string]string{}, answered}
		if err := r.all(p); err != nil {
			t.Errorf("seed %d: %v\n%s\n%s", seed, err, s, strings.Join(p.lines, "\n"))
		}
		if err := r.clean(p); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%v", answered)
	for _, answer := range []string{"made", "changed"} {
		if answered[answer] == 0 {
			t.Errorf("no change of any case was answered by %q: %v", answer, answered)
		}
	}
}

// replay is a case on an API server.
type replay struct {
	ctx    context.Context
	client dynamic.Interface
	sender *cluster.Sender
	// uids are those of the API server by those in memory, versions the resourceVersions, by the object's UID and its version in memory.
	uids     map[types.UID]types.UID
	versions map[string]string
	answered map[string]int
}

// errBeyond says that others have done in memory what an API server lets nobody do.
var errBeyond = errors.New("an API server lets nobody do that")

// all does everything again, until others do what is impossible.
func (r *replay) all(p *play) error {
	history, next := p.server.History(0), 0
	others := func(until int) error {
		for ; next < until; next++ {
			if history[next].Op != nil {
				continue
			}
			if err := r.become(&history[next]); err != nil {
				return fmt.Errorf("others change %s: %w", history[next].Object().GetName(), err)
			}
		}
		return nil
	}
	for _, v := range history[:p.begun] { // with names that references can have
		if err := r.make(&v); err != nil {
			return err
		}
	}
	for _, a := range p.attempts {
		err := others(a.seen)
		if err == nil {
			err = r.send(&a, history)
		}
		if errors.Is(err, errBeyond) {
			r.answered["beyond"]++
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// send sends a change, and compares the answer and what it has made of the object.
func (r *replay) send(a *attempt, history []testapi.Version) error {
	op := r.translated(a.op)
	err := r.sender.Do(r.ctx, op)
	r.answered[answerOf(a.err)]++
	if got, want := answerOf(err), answerOf(a.err); got != want {
		return fmt.Errorf("%s: it is %s, in memory %s: %v, %v", sentence(a.op), got, want, err, a.err)
	}
	if a.seen == len(history) || history[a.seen].Op != a.op {
		return nil
	}
	if err := r.compare(&history[a.seen]); err != nil {
		return fmt.Errorf("%s: %w", sentence(a.op), err)
	}
	return nil
}

func answerOf(err error) string {
	switch {
	case err == nil:
		return "made"
	case errors.Is(err, remedy.ErrChanged):
		return "changed"
	case apierrors.IsInvalid(err):
		return "invalid"
	}
	return err.Error()
}

// translated is a change of the API server's objects.
func (r *replay) translated(op *remedy.Op) *remedy.Op {
	version := func(v string) string { return r.versions[string(op.Object.UID)+" "+v] }
	o := *op
	o.Version = version(op.Version)
	if op.Options != nil && op.Options.Preconditions != nil {
		if p := op.Options.Preconditions; p.ResourceVersion != nil {
			o.Options = op.Options.DeepCopy()
			o.Options.Preconditions.ResourceVersion = new(version(*p.ResourceVersion))
		}
	}
	o.Patch = slices.Clone(op.Patch)
	for i, step := range o.Patch {
		if step.Path == "/metadata/resourceVersion" {
			o.Patch[i].Value = version(fmt.Sprint(step.Value))
		}
	}
	var translated remedy.Op
	r.translate(&o, &translated)
	return &translated
}

// translate copies a value, with the API server's UIDs.
func (r *replay) translate(from, into any) {
	text := marshal(from)
	for _, uid := range slices.Sorted(maps.Keys(r.uids)) {
		text = strings.ReplaceAll(text, fmt.Sprintf("%q", uid), fmt.Sprintf("%q", r.uids[uid]))
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		panic(err)
	}
}

func (r *replay) at(id graph.Identity) dynamic.ResourceInterface {
	return r.client.Resource(id.Resource.GroupVersionResource).Namespace(id.Namespace)
}

// become has an object become what others make of it.
func (r *replay) become(v *testapi.Version) error {
	id := idOf(v.Object())
	if id.Resource.IsNamespace() {
		return nil
	}
	now, err := r.at(id).Get(r.ctx, id.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	switch {
	case v.After == nil && err != nil:
		return nil
	case v.After == nil:
		return r.remove(id, now)
	case err != nil:
		if err := r.make(v); err != nil {
			return err
		}
	case now.GetDeletionTimestamp() != nil && v.After.GetDeletionTimestamp() == nil:
		return errBeyond
	}
	if now, err = r.at(id).Get(r.ctx, id.Name, metav1.GetOptions{}); err != nil {
		return err
	}
	if policy := marks(v.After, now); policy != "" {
		if err := r.at(id).Delete(r.ctx, id.Name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			return err
		}
		if now, err = r.at(id).Get(r.ctx, id.Name, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	if now, err = r.at(id).Update(r.ctx, r.object(v.After, now), metav1.UpdateOptions{}); err != nil {
		return err
	}
	if v.After.GetDeletionTimestamp() != nil && now.GetDeletionTimestamp() == nil {
		if err := r.at(id).Delete(r.ctx, id.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return r.compare(v)
}

// make makes an object without owners, so that it has a UID.
func (r *replay) make(v *testapi.Version) error {
	id := idOf(v.Object())
	if id.Resource.IsNamespace() {
		return nil
	}
	object := r.object(v.After, nil)
	object.SetOwnerReferences(nil)
	now, err := r.at(id).Create(r.ctx, object, metav1.CreateOptions{})
	if err == nil {
		r.uids[v.After.GetUID()] = now.GetUID()
	}
	return err
}

// marks returns the policy with which an object is deleted that gets a finalizer of the garbage collector.
func marks(after, now *unstructured.Unstructured) metav1.DeletionPropagation {
	for finalizer, policy := range map[string]metav1.DeletionPropagation{metav1.FinalizerDeleteDependents: metav1.DeletePropagationForeground, metav1.FinalizerOrphanDependents: metav1.DeletePropagationOrphan} {
		if after.GetDeletionTimestamp() != nil && slices.Contains(after.GetFinalizers(), finalizer) && !slices.Contains(now.GetFinalizers(), finalizer) {
			return policy
		}
	}
	return ""
}

// remove removes an object, whatever its finalizers.
func (r *replay) remove(id graph.Identity, now *unstructured.Unstructured) error {
	if len(now.GetFinalizers()) > 0 {
		now.SetFinalizers(nil)
		if _, err := r.at(id).Update(r.ctx, now, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	err := r.at(id).Delete(r.ctx, id.Name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// needed is what the API server asks for in an object, and no case is about.
var needed = map[string]string{
	"PersistentVolume":                 `{"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/none"}}}`,
	"PersistentVolumeClaim":            `{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`,
	"Deployment":                       `{"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"none"}]}}}}`,
	"ValidatingAdmissionPolicyBinding": `{"spec":{"policyName":"none"}}`,
}

const neededOfHook = `{"sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/"},"rules":[{"apiGroups":["none.example.com"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["nothing"]}]}`

// object is an object in memory as it is written to the API server, which has it now. A label makes each a new version.
func (r *replay) object(o, now *unstructured.Unstructured) *unstructured.Unstructured {
	all := map[string]any{}
	r.translate(o.Object, &all)
	if more := needed[o.GetKind()]; more != "" {
		all = fill(all, more)
	}
	hooks, _, _ := unstructured.NestedSlice(all, "webhooks")
	for i := range hooks {
		hooks[i] = fill(hooks[i].(map[string]any), neededOfHook)
	}
	if len(hooks) > 0 {
		all["webhooks"] = hooks
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(marshal(all))); err != nil {
		panic(err)
	}
	object.SetResourceVersion("")
	object.SetUID("")
	object.SetDeletionTimestamp(nil)
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["version"] = o.GetResourceVersion()
	object.SetLabels(labels)
	if now == nil {
		object.SetFinalizers(slices.DeleteFunc(object.GetFinalizers(), graph.IsCollectorFinalizer))
		return object
	}
	object.SetResourceVersion(now.GetResourceVersion())
	object.SetUID(now.GetUID())
	return object
}

// fill returns a value with what it lacks.
func fill(value map[string]any, more string) map[string]any {
	var all map[string]any
	if err := json.Unmarshal([]byte(more), &all); err != nil {
		panic(err)
	}
	merge(all, value)
	return all
}

func merge(into, from map[string]any) {
	for key, value := range from {
		if m, is := value.(map[string]any); is {
			if at, is := into[key].(map[string]any); is {
				merge(at, m)
				continue
			}
		}
		into[key] = value
	}
}

// compare compares a version with what the API server has, as far as cases are about that, and takes note of the resourceVersion.
func (r *replay) compare(v *testapi.Version) error {
	id := idOf(v.Object())
	now, err := r.at(id).Get(r.ctx, id.Name, metav1.GetOptions{})
	switch {
	case v.After == nil && apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case v.After == nil:
		return fmt.Errorf("%s exists, and not in memory: %v", id.Name, now.GetFinalizers())
	}
	r.versions[string(v.After.GetUID())+" "+v.After.GetResourceVersion()] = now.GetResourceVersion()
	want := map[string]any{}
	r.translate(facts(v.After), &want)
	got := map[string]any{}
	r.translate(facts(now), &got)
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s (-in memory +there):\n%s", id.Name, diff)
	}
	return nil
}

// facts is what cases are about.
func facts(o *unstructured.Unstructured) map[string]any {
	all := map[string]any{"deleted": o.GetDeletionTimestamp() != nil, "finalizers": fmt.Sprint(o.GetFinalizers())}
	for i, ref := range o.GetOwnerReferences() {
		all[fmt.Sprint("owner ", i)] = []any{ref.Name, ref.UID, *ref.BlockOwnerDeletion}
	}
	for _, path := range []string{"spec.replicas", "spec.persistentVolumeReclaimPolicy", "spec.matchResources.namespaceSelector.matchExpressions"} {
		if value, found, _ := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...); found {
			all[path] = value
		}
	}
	hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	for i, each := range hooks {
		hook := each.(map[string]any)
		expressions, _, _ := unstructured.NestedSlice(hook, "namespaceSelector", "matchExpressions")
		all[fmt.Sprint("webhook ", i)] = []any{hook["name"], hook["failurePolicy"], len(expressions), marshal(expressions)}
	}
	return all
}

// clean removes all objects of a case.
func (r *replay) clean(p *play) error {
	for _, v := range p.server.History(0) {
		id := idOf(v.Object())
		if id.Resource.IsNamespace() {
			continue
		}
		if now, err := r.at(id).Get(r.ctx, id.Name, metav1.GetOptions{}); err == nil {
			if err := r.remove(id, now); err != nil {
				return err
			}
		}
	}
	return nil
}
