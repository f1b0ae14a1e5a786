// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/testworld"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// kindsOf are the types of objects by the start of their line, for all that are no ConfigMaps.
var kindsOf = map[string]*graph.Resource{
	"Pod/": resourceOf("", "pods", "Pod", true), "PersistentVolumeClaim/": resourceOf("", "persistentvolumeclaims", "PersistentVolumeClaim", true),
}

// world reads objects, one a line: NAME, or KIND/NAME, then its finalizers, then < and its owners,
// of which those with ! are blocked.
func world(text string) *graph.Graph {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(planConfigMaps.GroupVersionKind(), planConfigMaps.GroupVersionResource, planConfigMaps.GroupVersionResource, meta.RESTScopeNamespace)
	s := &graph.Snapshot{Mapper: mapper}
	s.MarkListed(planConfigMaps.GroupResource(), "", "1")
	for line := range strings.Lines(text) {
		words, owners, _ := strings.Cut(strings.TrimSpace(line), "<")
		fields := strings.Fields(words)
		if len(fields) == 0 {
			continue
		}
		resource, name := planConfigMaps, fields[0]
		for kind, of := range kindsOf {
			if rest, is := strings.CutPrefix(name, kind); is {
				resource, name = of, rest
			}
		}
		name, ending := strings.CutSuffix(name, "%")
		o := graph.Object{Resource: resource, Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: "1", Finalizers: fields[1:]}
		if ending {
			o.DeletionTimestamp = &metav1.Time{Time: now}
		}
		for _, owner := range strings.Fields(owners) {
			name, blocks := strings.CutSuffix(owner, "!")
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
				APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: types.UID(name), BlockOwnerDeletion: &blocks,
			})
		}
		s.Add(o)
	}
	return graph.New(s)
}

// What the simulation is not sure of makes outcomes Unknown, and so does waiting for
// nothing but that.
func TestOutcomes(t *testing.T) {
	const foreign, builtIn = "example.com/x", "kubernetes.io/pvc-protection"
	for name, test := range map[string]struct {
		world   string
		policy  metav1.DeletionPropagation
		manager bool
		want    string
	}{
		"a foreign finalizer": {
			"a " + foreign, metav1.DeletePropagationBackground, true,
			"a Unknown: finalizer example.com/x; unclear whether a controller removes the finalizer example.com/x",
		},
		"and who waits for it": {
			"a\nb " + foreign + " < a!", metav1.DeletePropagationForeground, true,
			"a Unknown: a blocking dependent must be deleted first [b]\n" +
				"b Unknown: finalizer example.com/x; unclear whether a controller removes the finalizer example.com/x",
		},
		"one of kube-controller-manager": {
			"Pod/a batch.kubernetes.io/job-tracking", metav1.DeletePropagationBackground, true, "a Unknown: its kubelet must end it; the pod could not be read",
		},
		"which is not known to work": {
			"Pod/a batch.kubernetes.io/job-tracking", metav1.DeletePropagationBackground, false,
			"a Unknown: finalizer batch.kubernetes.io/job-tracking; its kubelet must end it; " +
				"unclear whether a controller removes the finalizer batch.kubernetes.io/job-tracking; the pod could not be read",
		},
		"of another kind": {
			"a " + builtIn, metav1.DeletePropagationBackground, true,
			"a Unknown: finalizer kubernetes.io/pvc-protection; unclear whether a controller removes the finalizer kubernetes.io/pvc-protection",
		},
		"whose condition cannot be seen": {
			"PersistentVolumeClaim/a " + builtIn, metav1.DeletePropagationBackground, true,
			"a Unknown: finalizer kubernetes.io/pvc-protection; unclear whether a pod uses the claim",
		},
		"what follows an owner that may remain": {
			"a " + foreign + "\nb < a\nc < b", metav1.DeletePropagationBackground, true,
			"a Unknown: finalizer example.com/x; unclear whether a controller removes the finalizer example.com/x\n" +
				"b Unknown: deleted if its owner ConfigMap/a is\nc Unknown: deleted if its owner ConfigMap/b is",
		},
		"which has another owner": {
			"a " + foreign + "\nkeeper\nb < a keeper", metav1.DeletePropagationBackground, true,
			"a Unknown: finalizer example.com/x; unclear whether a controller removes the finalizer example.com/x\n" +
				"b Untouched: its owner ConfigMap/a still exists",
		},
		"which is going, too": {
			"a\nc% " + foreign + "\nd < a c\ne < a d", metav1.DeletePropagationBackground, true,
			"a Deleted: \nd Unknown: deleted if its owner ConfigMap/c is\ne Unknown: deleted if its owner ConfigMap/d is",
		},
		"which goes with one that is": {
			"a\nc% " + foreign + "\nb < c\nd < a b", metav1.DeletePropagationBackground, true, "a Deleted: \nd Unknown: deleted if its owner ConfigMap/b is",
		},
		"a ring that nothing keeps but itself": {
			"a\nb < c\nc < b\nd < a b", metav1.DeletePropagationBackground, true, "a Deleted: \nd OwnerReferenceRemoved: kept by ConfigMap/b",
		},
		"a dependent whose other owner does not exist": {
			"a\nb < a gone\nc < b", metav1.DeletePropagationOrphan, true,
			"a Deleted: \nb Unknown: it is garbage then: its other owner ConfigMap/gone does not exist, and the garbage collector deletes it\nc Unknown: deleted if its owner ConfigMap/b is",
		},
		"dependents": {"a\nb < a\nc < b", metav1.DeletePropagationOrphan, false, "a Deleted: \nb Orphaned: \nc Untouched: its owner ConfigMap/b still exists"},
	} {
		g := world(test.world)
		target, _ := g.Node("a")
		job := &Job{Policy: test.policy, Targets: []graph.Identity{target.Identity()}}
		p, err := Make(t.Context(), job, World{Graph: g, Now: now, ControllerManager: test.manager})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range p.Report.Outcomes {
			line := fmt.Sprintf("%s %s: %s", o.Object.Name, o.Result, o.Reason)
			if len(o.WaitingFor) > 0 {
				line += fmt.Sprint(" [", o.WaitingFor[0].Name, "]")
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(test.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A pass of collection in a namespace concerns what is there, and what is being
// deleted elsewhere.
func TestConcerned(t *testing.T) {
	g := world("a\nb < a")
	names := func(j *Job) []string {
		var names []string
		for n := range j.Concerned(g) {
			names = append(names, n.Name())
		}
		return names
	}
	b, _ := g.Node("b")
	for _, test := range []struct {
		job  Job
		want []string
	}{
		{Job{}, []string{"a", "b"}},
		{Job{Namespace: "shop"}, []string{"a", "b"}},
		{Job{Namespace: "other"}, nil},
		{Job{Targets: []graph.Identity{b.Identity()}}, []string{"b"}},
	} {
		if got := names(&test.job); !slices.Equal(got, test.want) {
			t.Errorf("%+v: got %v", test.job, got)
		}
	}
}

// What a namespace holds is never said to stay: who empties it is not known, or is kept
// from it for the time being, and that keeps nothing.
func TestNamespaceIsEmptied(t *testing.T) {
	for name, test := range map[string]struct {
		world   string
		manager bool
		want    string
	}{
		"nobody is known to empty it": {
			"ConfigMap/shop/a\nConfigMap/shop/b owner=ConfigMap/a", false,
			"ConfigMap/shop/a Unknown: deleted with Namespace/shop, once the namespace controller handles it\n" +
				"ConfigMap/shop/b Unknown: deleted with Namespace/shop, once the namespace controller handles it",
		},
		"a pod is held, before which nothing else goes": {
			"ConfigMap/shop/a\nPod/shop/p finalizers=example.com/x", true,
			"ConfigMap/shop/a Unknown: deleted with Namespace/shop, once the namespace controller handles it\n" +
				"Pod/shop/p Unknown: finalizer example.com/x; unclear whether a controller removes the finalizer example.com/x",
		},
		"it is emptied": {"ConfigMap/shop/a", true, "ConfigMap/shop/a Deleted: "},
	} {
		w := testworld.World{Types: testworld.Served(), UID: testworld.Path}
		for line := range strings.Lines("Namespace/shop\n" + test.world) {
			if _, err := w.Add(strings.Fields(line), nil); err != nil {
				t.Fatal(err)
			}
		}
		s := &graph.Snapshot{Mapper: testworld.Mapper(w.Types), Facts: graph.Facts{
			Pods:       map[types.UID]graph.PodFacts{"Pod/shop/p": {Phase: "Succeeded"}},
			Namespaces: map[types.UID]graph.NamespaceFacts{"Namespace/shop": {Finalizers: []string{"kubernetes"}}},
		}}
		for _, r := range w.Types {
			s.MarkListed(r.GroupResource(), "", "")
		}
		for _, o := range w.Objects {
			s.Add(o)
		}
		target := w.Objects[0].Identity()
		job := &Job{Policy: metav1.DeletePropagationBackground, Targets: []graph.Identity{target}}
		p, err := Make(t.Context(), job, World{Graph: graph.New(s), Now: now, ControllerManager: test.manager})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range p.Report.Outcomes {
			if !o.Object.Resource.IsNamespace() {
				got = append(got, fmt.Sprintf("%s %s: %s", o.Object.Identity(), o.Result, o.Reason))
			}
		}
		if diff := cmp.Diff(test.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A pod that somebody else deleted before, and that has still time to end, is waited for like
// those that the job deletes, whatever their time; not by a job that orphans its owner.
func TestInGraceBefore(t *testing.T) {
	const background, foreground, orphan = metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan
	const passedBy = "Pod/shop/old Untouched: its owner ReplicaSet/r still exists; it was being deleted before"
	const silent = "Pod/shop/old Remaining: its kubelet must end it; node n does not report"
	for _, test := range []struct {
		policy  metav1.DeletionPropagation // empty for a collection, where the ReplicaSet is in foreground deletion
		reports bool
		takes   time.Duration
		want    string
	}{
		{background, true, 92 * time.Second, "Pod/shop/old Deleted: "},
		{foreground, true, 92 * time.Second, "Pod/shop/old Deleted: "},
		{"", true, 92 * time.Second, "Pod/shop/old Deleted: "},
		{background, false, 0, silent},
		{"", false, 0, silent},
		{orphan, true, 0, passedBy},
		{orphan, false, 0, passedBy},
	} {
		replicaSet := "ReplicaSet/shop/r owner=Deployment/d"
		if test.policy == "" {
			replicaSet += " deleted=1 finalizers=foregroundDeletion"
		}
		g := grace(t, test.reports, "Deployment/shop/d", replicaSet, "Pod/shop/old owner=ReplicaSet/r! deleted=-90")
		job := &Job{Policy: test.policy}
		if d, _ := g.Node("Deployment/shop/d"); test.policy != "" {
			job.Targets = []graph.Identity{d.Identity()}
		}
		p, err := Make(t.Context(), job, World{Graph: g, Now: now, ControllerManager: true})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(p.Report.Outcomes, func(o gc.Outcome) bool { return o.Object.Name == "old" })
		got := fmt.Sprintf("%s %s: %s", p.Report.Outcomes[i].Object.Identity(), p.Report.Outcomes[i].Result, p.Report.Outcomes[i].Reason)
		if got != test.want || p.Takes != test.takes {
			t.Errorf("%q, kubelet %t: %s, in %s; want %s, in %s", test.policy, test.reports, got, p.Takes, test.want, test.takes)
		}
	}
}

// grace makes a graph of objects of which the last is a pod in a grace period of 100 seconds, on a
// node that reports or not.
func grace(t *testing.T, reports bool, objects ...string) *graph.Graph {
	w := testworld.World{Now: now, UID: testworld.Path, Types: testworld.Types(`
v1 Pod pods namespaced
apps/v1 Deployment deployments namespaced
apps/v1 ReplicaSet replicasets namespaced`)}
	for _, line := range objects {
		if _, err := w.Add(strings.Fields(line), nil); err != nil {
			t.Fatal(err)
		}
	}
	pod := &w.Objects[len(w.Objects)-1]
	pod.DeletionGracePeriodSeconds = new(int64(100))
	s := &graph.Snapshot{Mapper: testworld.Mapper(w.Types), Facts: graph.Facts{
		Pods:  map[types.UID]graph.PodFacts{pod.UID: {NodeName: "n", Phase: "Running"}},
		Nodes: map[string]bool{"n": reports},
	}}
	for _, r := range w.Types {
		s.MarkListed(r.GroupResource(), "", "")
	}
	for _, o := range w.Objects {
		s.Add(o)
	}
	return graph.New(s)
}

// A collection has to know more than metadata of what may go: what has references that
// are not solid, what is being deleted, and all that goes with these; of pods that own
// something, too, and of every pod when a node goes.
func TestDecisive(t *testing.T) {
	const world = `
Namespace/shop
Namespace/closed deleting finalizers=example.com/x
ConfigMap/closed/inside
ConfigMap/shop/garbage owner=ConfigMap/absent
Pod/shop/follows owner=ConfigMap/garbage
ConfigMap/shop/fine
Pod/shop/kept owner=ConfigMap/fine
Pod/shop/alone
Pod/shop/owns
ConfigMap/shop/owned owner=Pod/owns`
	decisive := func(text, namespace string) string {
		w := testworld.World{Types: testworld.Served(), UID: testworld.Path}
		for line := range strings.Lines(strings.TrimSpace(text)) {
			if _, err := w.Add(strings.Fields(line), nil); err != nil {
				t.Fatal(err)
			}
		}
		s := &graph.Snapshot{Mapper: testworld.Mapper(w.Types)}
		for _, r := range w.Types {
			s.MarkListed(r.GroupResource(), "", "")
		}
		for _, o := range w.Objects {
			s.Add(o)
		}
		var names []string
		for n := range (&Job{Namespace: namespace}).Decisive(graph.New(s)) {
			names = append(names, n.Name())
		}
		return strings.Join(names, " ")
	}
	for _, test := range []struct{ more, namespace, want string }{
		{"", "", "inside garbage closed follows owns"},
		{"", "shop", "garbage closed follows owns"},
		{"\nNode/n owner=Node/absent", "", "inside garbage closed n alone follows kept owns"},
	} {
		if got := decisive(world+test.more, test.namespace); got != test.want {
			t.Errorf("%q: got %s, want %s", test.more, got, test.want)
		}
	}
}
