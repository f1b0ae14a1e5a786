// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// volumes is a cluster with volumes, of which each word is a NAME=POLICY,PHASE,DRIVER; that of the claim is there with it. The phase Lost
// is of one that is Bound to a claim that is gone. pods are its pods.
type volumes struct {
	evidence.Cluster
	graph *graph.Graph
	text  string
	pods  []*corev1.Pod
	set   map[string]any
	err   error
}

func (v volumes) EachTyped(_ context.Context, _ schema.GroupVersionResource, _, _ string, begin func(), yield func(runtime.Object) error) error {
	begin()
	for _, pod := range v.pods {
		if err := yield(pod); err != nil {
			return err
		}
	}
	return v.err
}

func (v volumes) List(_ context.Context, resource schema.GroupVersionResource, _ string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	if resource.Resource == "volumesnapshotcontents" {
		for _, name := range []string{"snap", "snap2", "other"} {
			o := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"driver": "of-" + name, "deletionPolicy": "Delete", "volumeSnapshotRef": map[string]any{"uid": "uid-" + name}}}}
			o.SetName("content-of-" + name)
			all = append(all, o)
		}
		return all, v.err
	}
	words := strings.Fields(v.text)
	if _, is := v.graph.Node("uid-claim"); is {
		words = append(words, "volume=Delete,Bound,a")
	}
	for _, word := range words {
		name, rest, _ := strings.Cut(word, "=")
		parts := strings.Split(rest, ",")
		o := unstructured.Unstructured{Object: map[string]any{
			"spec":   map[string]any{"persistentVolumeReclaimPolicy": parts[0], "csi": map[string]any{"driver": parts[2]}},
			"status": map[string]any{"phase": parts[1]},
		}}
		switch {
		case name == "volume":
			o.Object["spec"].(map[string]any)["claimRef"] = map[string]any{"uid": "uid-claim"}
		case parts[1] == "Lost":
			o.Object["spec"].(map[string]any)["claimRef"] = map[string]any{"uid": "uid-gone", "namespace": "t"}
			o.Object["status"].(map[string]any)["phase"] = "Bound"
		}
		o.SetName(name)
		o.SetUID(types.UID("uid-" + name))
		all = append(all, o)
	}
	return all, v.err
}

// kinds of the objects of these tests, by their words.
var kinds = map[string]*graph.Resource{
	"claim": {GroupVersionResource: evidence.Claims, Kind: "PersistentVolumeClaim", Namespaced: true},
	"cm":    {GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true},
	"snap":  {GroupVersionResource: schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}, Kind: "VolumeSnapshot", Namespaced: true},
	"set":   {GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, Kind: "StatefulSet", Namespaced: true},
	"cr":    {GroupVersionResource: schema.GroupVersionResource{Group: "x.io", Version: "v1", Resource: "widgets"}, Kind: "Widget", Namespaced: true},
	"pod":   {GroupVersionResource: evidence.Pods, Kind: "Pod", Namespaced: true},
	"pv":    {GroupVersionResource: evidence.Volumes, Kind: "PersistentVolume"},
	"root":  {GroupVersionResource: schema.GroupVersionResource{Group: "x.io", Version: "v1", Resource: "roots"}, Kind: "Root"},
	"node":  {GroupVersionResource: evidence.Nodes, Kind: "Node"},
	"ns":    {GroupVersionResource: evidence.Namespaces, Kind: "Namespace"},
	"va":    {GroupVersionResource: schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}, Kind: "VolumeAttachment"},
	"helm":  {GroupVersionResource: schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}, Kind: "HelmRelease", Namespaced: true},
	"app":   {GroupVersionResource: schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}, Kind: "Application", Namespaced: true},
}

// owned reads a world: each word is an object "KIND", "KIND=NAME", "KIND!" that is being deleted ("KIND%" with another finalizer), with
// ">OWNER" ("KIND+" with another of the same domain), with ">OWNER" for each owner; "t:" before it is for another namespace than s. The
// first is stuck. Of types in unlisted nothing was read, and nothing outside of s of those with a colon; those with "!" are forbidden.
func owned(text string, unlisted ...string) *unstick.Look {
	mapper := meta.NewDefaultRESTMapper(nil)
	snapshot := &graph.Snapshot{Mapper: mapper}
	for word, kind := range kinds {
		scope := meta.RESTScopeRoot
		if kind.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.AddSpecific(kind.GroupVersion().WithKind(kind.Kind), kind.GroupVersionResource, kind.GroupVersionResource, scope)
		snapshot.Types = append(snapshot.Types, kind)
		switch {
		case slices.Contains(unlisted, "!"+word):
			snapshot.MarkUnlisted(graph.Unlisted{GroupVersionResource: kind.GroupVersionResource, Reason: graph.Forbidden})
		case slices.Contains(unlisted, word):
		case slices.Contains(unlisted, "t:"+word):
			snapshot.MarkListed(kind.GroupResource(), "s", "1")
		default:
			snapshot.MarkListed(kind.GroupResource(), "", "1")
		}
	}
	var stuck graph.Identity
	for i, word := range strings.Fields(text) {
		parts := strings.Split(word, ">")
		name, deleted := strings.CutSuffix(parts[0], "!")
		name, other := strings.CutSuffix(name, "%")
		name, domain := strings.CutSuffix(name, "+")
		name, elsewhere := strings.CutPrefix(name, "t:")
		name, called, _ := strings.Cut(name, "=")
		o := graph.Object{Resource: kinds[strings.TrimRight(name, "2")], Name: cmp.Or(called, name), UID: types.UID("uid-" + name)}
		if o.Resource.Namespaced {
			o.Namespace = "s"
		}
		if elsewhere {
			o.Namespace = "t"
		}
		if deleted {
			o.DeletionTimestamp, o.Finalizers = new(metav1.Now()), []string{"x.io/hold"}
		} else if other {
			o.DeletionTimestamp, o.Finalizers = new(metav1.Now()), []string{"y.io/hold"}
		} else if domain {
			o.DeletionTimestamp, o.Finalizers = new(metav1.Now()), []string{"x.io/other"}
		}
		for _, owner := range parts[1:] {
			kind := kinds[strings.TrimRight(owner, "2")]
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner, UID: types.UID("uid-" + owner)})
		}
		if called == "of-helm" {
			o.Labels = map[string]string{"helm.toolkit.fluxcd.io/name": "helm", "helm.toolkit.fluxcd.io/namespace": "s"}
		}
		snapshot.Add(o)
		if i == 0 {
			stuck = o.Identity()
		}
	}
	op := remedy.PatchOf(stuck, remedy.Test("/metadata/finalizers/0", "x.io/hold"), remedy.Remove("/metadata/finalizers/0"))
	c := &explain.Cause{Object: stuck, Verdict: explain.Stuck, Remedies: []explain.Remedy{{Risk: explain.Safe, Effect: say.Plain("end it"), Action: explain.Action{Operation: &op}}}}
	report := &explain.Report{Causes: []*explain.Cause{c}, Objects: []explain.Explanation{{Object: stuck, Verdict: explain.Stuck, Findings: []explain.Finding{{Cause: c, Chain: []explain.Link{{Object: stuck, Finalizer: "x.io/hold"}}}}}}}
	for _, name := range []string{"s", "t"} {
		if strings.Contains(text, "ns="+name) {
			continue
		}
		n := graph.Object{Resource: kinds["ns"], Name: name, UID: types.UID("uid-" + name)}
		if name == "t" && slices.Contains(unlisted, "t!") {
			n.DeletionTimestamp = new(metav1.Now())
		}
		snapshot.Add(n)
	}
	return &unstick.Look{Report: report, Graph: graph.New(snapshot)}
}

// What the garbage collector deletes after what is freed is at stake: its data is kept first, and where that cannot be found out, the way
// out is dangerous.
func TestOwnedData(t *testing.T) {
	const kept, free, unsure = "1: volume safe, then end it", "1: ", "NotAllowed needs dangerous"
	for name, test := range map[string]struct {
		world    string
		unlisted []string
		err      error
		want     string
	}{
		"owned":                                     {world: "cr! claim>cr", want: kept},
		"owned from outside of namespaces":          {world: "root! claim>root", want: kept},
		"owned by a StatefulSet":                    {world: "set! claim>set", want: kept},
		"through another":                           {world: "cr! set>cr claim>set", want: kept},
		"through one outside":                       {world: "root! cr>root claim>cr", want: kept},
		"not owned":                                 {world: "cr! claim", want: free},
		"owned by another":                          {world: "cr! cr2 claim>cr2", want: free},
		"also owned by one that stays":              {world: "cr! cm claim>cr>cm", want: free},
		"through one that another owner keeps":      {world: "cr! cm set>cr>cm claim>set", want: free},
		"also owned by one that goes":               {world: "cr! cm! claim>cr>cm", want: kept},
		"also owned by one that goes with it":       {world: "cr! set>cr claim>cr>set", want: kept},
		"also owned by one that is gone":            {world: "cr! claim>cr>cm", want: kept},
		"being deleted itself":                      {world: "cr! claim!", want: kept},
		"in a namespace that is owned":              {world: "root! ns=t>root t:claim", want: kept},
		"the claims were not read":                  {world: "cr!", unlisted: []string{"claim"}, want: unsure},
		"its owner was not read":                    {world: "cr! claim>set", unlisted: []string{"set"}, want: unsure},
		"one of its owners was not read":            {world: "cr! claim>cr>set", unlisted: []string{"set"}, want: kept},
		"its owner was not read, but another stays": {world: "cr! cm claim>cm>set", unlisted: []string{"set"}, want: free},
		"the volumes could not be read":             {world: "cr! claim>cr", err: errors.New("no"), want: unsure},
		"volumes of others could not be read":       {world: "cr! claim", err: errors.New("no"), want: free},
	} {
		l := owned(test.world, test.unlisted...)
		l.FindStakes(t.Context(), volumes{graph: l.Graph, err: test.err})
		want := test.want
		if want == free {
			want += l.Report.Objects[0].Object.Name + " safe"
		}
		if got := describe(&unstick.Choose(l, &unstick.Options{Allow: explain.Disruptive}).Choices[0]); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// starting has the cause of a world end by what works for others as well: an operator is scaled up.
func starting(l *unstick.Look) *unstick.Look {
	deployments := graph.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment", Namespaced: true}
	op := remedy.ScaleOf(graph.Identity{Resource: deployments, Namespace: "s", Name: "operator", UID: "operator"}, remedy.Replicas{Wanted: 1})
	l.Report.Causes[0].Remedies = []explain.Remedy{{Risk: explain.Safe, Effect: say.Plain("start it"), Action: explain.Action{Operation: &op}}}
	l.Report.Causes[0].Controller = &explain.Controller{}
	return l
}

// A controller that is started works for all that waits for it, in all namespaces: the data of each claim that is being deleted is kept
// first, and what it frees besides is named. Where that cannot be found out, the way out is dangerous.
func TestReach(t *testing.T) {
	const kept, free, unsure = "1: volume safe, then start it", "1: operator safe", "NotAllowed needs dangerous"
	for name, test := range map[string]struct {
		world    string
		but      []string
		volumes  string
		driver   string
		err      error
		want     string
		wantLets string
	}{
		"a claim elsewhere":                            {world: "cr! t:claim!", want: kept, wantLets: "t/claim"},
		"a claim with another finalizer":               {world: "cr! t:claim%", want: kept},
		"a claim of a namespace that is being deleted": {world: "cr! t:claim", but: []string{"t!"}, want: kept},
		"a claim that another owns":                    {world: "cr! t:cr2! t:claim>cr2", want: kept, wantLets: "t/claim t/cr2"},
		"a claim that nobody has deleted":              {world: "cr! t:claim", want: free},
		"claims elsewhere were not read":               {world: "cr!", but: []string{"t:claim"}, want: unsure},
		"those of its type elsewhere were not read":    {world: "cr!", but: []string{"t:cr"}, want: unsure},
		"others elsewhere could not be read":           {world: "cr!", but: []string{"!cm"}, want: unsure},
		"the dependent of another of its type":         {world: "cr! t:cr2! t:cm>cr2", want: free, wantLets: "t/cm t/cr2"},
		"another finalizer of its domain":              {world: "cr! t:cm+", want: free, wantLets: "t/cm"},
		"the volumes could not be read":                {world: "cr! t:claim!", err: errors.New("no"), want: unsure},
		"another of its type":                          {world: "cr! t:cr2!", want: free, wantLets: "t/cr2"},
		"another type with its finalizer":              {world: "cr! t:cm!", want: free, wantLets: "t/cm"},
		"another finalizer":                            {world: "cr! t:cr2%", want: free},
		"a volume of no claim":                         {world: "cr!", volumes: "v=Delete,Released,a", want: free},
		"a volume of the driver":                       {world: "cr!", volumes: "v=Delete,Released,a", driver: "a", want: "1: v safe, then start it"},
		"volumes of all policies":                      {world: "cr!", volumes: "v=Recycle,Failed,a w=Retain,Released,a", driver: "a", want: "1: v safe, then start it"},
		"a volume of another driver":                   {world: "cr!", volumes: "v=Delete,Released,b", driver: "a", want: free},
		"a volume that is bound":                       {world: "cr!", volumes: "v=Delete,Bound,a", driver: "a", want: free},
		"a volume that is bound to what is gone":       {world: "cr!", volumes: "v=Delete,Lost,a", driver: "a", want: "1: v safe, then start it"},
		"a volume whose claim was not read":            {world: "cr!", but: []string{"t:claim"}, volumes: "v=Delete,Lost,a", driver: "a", want: unsure},
		"a claim whose driver is not known":            {world: "claim!", volumes: "v=Delete,Released,b", want: "1: volume safe, then start it"},
		"a snapshot":                                   {world: "snap!", want: "1: content-of-snap safe, then start it"},
		"a snapshot elsewhere":                         {world: "cr! t:snap2!", want: "1: content-of-snap2 safe, then start it", wantLets: "t/snap2"},
		"a snapshot that goes with its owner":          {world: "cr! snap>cr", want: "1: content-of-snap safe, then start it"},
		"the content of a snapshot that is gone":       {world: "cr!", driver: "of-other", want: "1: content-of-other safe, then start it"},
		"a snapshot of another controller":             {world: "cr! t:snap%", want: free},
		"contents of snapshots could not be read":      {world: "snap!", err: errors.New("no"), want: unsure},
		"volumes of a driver could not be read":        {world: "cr!", driver: "a", err: errors.New("no"), want: unsure},
	} {
		l := starting(owned(test.world, test.but...))
		l.Report.Causes[0].Driver = test.driver
		l.FindStakes(t.Context(), volumes{graph: l.Graph, text: test.volumes, err: test.err})
		choice := &unstick.Choose(l, &unstick.Options{Allow: explain.Disruptive}).Choices[0]
		if got := describe(choice); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		var lets []string
		for _, w := range choice.Writes {
			for _, id := range w.Lets {
				lets = append(lets, id.Namespace+"/"+id.Name)
			}
		}
		if got := strings.Join(lets, " "); got != test.wantLets {
			t.Errorf("%s: lets go %q, want %q", name, got, test.wantLets)
		}
	}
}

// What more a change frees by the time of its proof is asked about: nothing is sent for the old answer.
func TestReachGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("a=x/y")
		e, looks := w.edges(t), 0
		e.Look = func(context.Context) (*unstick.Look, error) {
			if looks++; looks < 2 {
				return starting(owned("cr!")), nil
			}
			return starting(owned("cr! t:cr2!")), nil
		}
		operator := starting(owned("cr!")).Report.Causes[0].Remedies[0].Operation.Object
		e.Read = func(context.Context, graph.Identity) (*unstructured.Unstructured, error) {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(0)}}}
			o.SetUID(operator.UID)
			return o, nil
		}
		w.refuse = func(q unstick.Question) bool { return len(q.Writes[0].Lets) > 0 }
		_, err := e.Run(t.Context(), nil, &unstick.Options{Allow: explain.Safe}, change.Beforehand{})
		if len(w.asked) != 2 || len(w.sent) > 0 || err == nil {
			t.Errorf("asked %d times, sent %v: %v", len(w.asked), w.sent, err)
		}
	})
}

// What is freed besides is agreed to: a plan that frees more is another.
func TestReachDigest(t *testing.T) {
	one := unstick.Choose(starting(owned("cr!")), &unstick.Options{Allow: explain.Safe})
	two := unstick.Choose(starting(owned("cr! t:cr2!")), &unstick.Options{Allow: explain.Safe})
	if one.Digest == two.Digest || len(one.Writes()) != 1 || one.Writes()[0].Op.Key() != two.Writes()[0].Op.Key() {
		t.Errorf("%+v\n%+v", one, two)
	}
}

// A taint evicts the pods of its node that do not tolerate it for good, in all namespaces, and deletes those that are being deleted: they
// are named with what goes after them, and their data is kept first. Where they cannot be read, that is not known.
func TestEvicted(t *testing.T) {
	nodes := graph.Resource{GroupVersionResource: evidence.Nodes, Kind: "Node"}
	op := remedy.TaintOf(graph.Identity{Resource: nodes, Name: "node", UID: "n"}, "out=down:NoExecute")
	hour := int64(3600)
	for name, test := range map[string]struct {
		world, node string
		but         []string
		tolerations []corev1.Toleration
		err         error
		want        string
	}{
		"what attaches a volume to it": {world: "pod! pv va", node: "m", want: "1: pv dangerous, then taint it [PersistentVolume/pv VolumeAttachment/va]"},
		"one that is alive":            {world: "pod! t:pod2 t:claim>pod2", node: "node", want: "1: volume dangerous, then taint it [PersistentVolumeClaim/t/claim Pod/t/pod2]"},
		"one with a dependent":         {world: "pod! t:pod2 t:cm>pod2", node: "node", want: "1: node dangerous [ConfigMap/t/cm Pod/t/pod2]"},
		"a dependent that is kept":     {world: "pod! t:pod2 t:cm t:claim>pod2>cm", node: "node", want: "1: node dangerous [Pod/t/pod2]"},
		"one of another node":          {world: "pod! t:pod2 t:claim>pod2", node: "m", want: "1: node dangerous []"},
		"one that tolerates it":        {world: "pod! t:pod2 t:claim>pod2", node: "node", tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, want: "1: node dangerous []"},
		"for a while":                  {world: "pod! t:pod2", node: "node", tolerations: []corev1.Toleration{{Key: "out", Value: "down", TolerationSeconds: &hour}}, want: "1: node dangerous [Pod/t/pod2]"},
		"one that tolerates another":   {world: "pod! t:pod2", node: "node", tolerations: []corev1.Toleration{{Key: "out", Value: "up"}}, want: "1: node dangerous [Pod/t/pod2]"},
		"one that is being deleted":    {world: "pod! t:pod2!", node: "node", tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, want: "1: node dangerous [Pod/t/pod2]"},
		"pods could not be read":       {world: "pod!", node: "node", err: errors.New("no"), want: "1: node dangerous [] unsure"},
		"pods elsewhere were not read": {world: "pod!", node: "node", want: "1: node dangerous [] unsure"},
		"those of another type":        {world: "pod!", node: "m", but: []string{"!cm"}, want: "1: node dangerous [] unsure"},
	} {
		l := owned(test.world, test.but...)
		l.Report.Causes[0].Remedies = []explain.Remedy{{Risk: explain.Dangerous, Temporary: true, Effect: say.Plain("taint it"), Action: explain.Action{Operation: &op}}}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid-pod2"}, Spec: corev1.PodSpec{NodeName: test.node, Tolerations: test.tolerations}}
		if strings.Contains(test.world, "pod2!") {
			pod.DeletionTimestamp = new(metav1.Now())
		}
		l.FindStakes(t.Context(), volumes{graph: l.Graph, pods: []*corev1.Pod{pod}, set: attached, text: strings.Repeat("pv=Delete,Lost,a", strings.Count(test.world, " pv")), err: test.err})
		choice := &unstick.Choose(l, &unstick.Options{Allow: explain.Dangerous}).Choices[0]
		got := describe(choice) + fmt.Sprint(" ", choice.Writes[0].Lets)
		if choice.Unsure {
			got += " unsure"
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func (v volumes) Read(_ context.Context, _ schema.GroupVersionResource, _, name string) (*unstructured.Unstructured, error) {
	o := unstructured.Unstructured{Object: v.set}
	if named, is := v.set[name].(map[string]any); is {
		o.Object = named
	}
	if o.Object != nil {
		o.SetUID(types.UID("uid-" + name))
	}
	return &o, v.err
}

// A workload that is made smaller, or anew, deletes the claims that its pods own, and those that a StatefulSet deletes with them: they are
// named, and their data is kept first. Where the StatefulSet or the claims could not be read, that is not known.
func TestEnded(t *testing.T) {
	smaller, anew := remedy.Replicas{Current: 3, Wanted: 1}, remedy.Replicas{}
	set := func(retention, template string) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": "set"}, "spec": map[string]any{
			"persistentVolumeClaimRetentionPolicy": map[string]any{"whenScaled": retention},
			"volumeClaimTemplates":                 []any{map[string]any{"metadata": map[string]any{"name": template}}},
		}}
	}
	const kept, none = "1: volume disruptive, then scale it [PersistentVolumeClaim/t/claim]", "1: set disruptive []"
	for name, test := range map[string]struct {
		world string
		to    remedy.Replicas
		set   map[string]any
		but   []string
		err   error
		want  string
	}{
		"of its pod":                    {world: "cr! t:set t:pod>set t:claim>pod", to: smaller, want: kept},
		"of its pod, which is new":      {world: "cr! t:set t:pod>set t:claim>pod", to: anew, want: "1: volume disruptive, then scale it [ConfigMap/t/cm PersistentVolumeClaim/t/claim]"},
		"of a pod of another":           {world: "cr! t:set t:pod t:claim>pod", to: smaller, want: none},
		"kept by another":               {world: "cr! t:set t:cm t:pod>set t:claim>pod>cm", to: smaller, want: none},
		"its own":                       {world: "cr! t:set t:claim>set", to: smaller, want: none},
		"that it deletes":               {world: "cr! t:set t:claim=c-set-1", set: set("Delete", "c"), to: smaller, want: "1: volume disruptive, then scale it [PersistentVolumeClaim/t/c-set-1]"},
		"that it keeps":                 {world: "cr! t:set t:claim=c-set-1", set: set("Retain", "c"), to: smaller, want: none},
		"of another template":           {world: "cr! t:set t:claim=c-set-1", set: set("Delete", "other"), to: smaller, want: none},
		"of a pod that stays":           {world: "cr! t:set t:claim=c-set-1", set: set("Delete", "c"), to: remedy.Replicas{Current: 3, Wanted: 2}, want: none},
		"of a namesake":                 {world: "cr! t:set claim=c-set-1", set: set("Delete", "c"), to: smaller, want: none},
		"it is not read":                {world: "cr! t:set", to: smaller, err: errors.New("no"), want: "NotAllowed"},
		"the claims are not read there": {world: "cr! t:set", to: smaller, but: []string{"t:claim"}, want: "NotAllowed"},
	} {
		world := test.world
		if test.to == anew {
			world += " t:cm>pod"
		}
		l := owned(world, test.but...)
		workload, _ := l.Graph.Node("uid-set")
		op := remedy.ScaleOf(workload.Identity(), test.to)
		if test.to == anew {
			op = remedy.Op{Verb: remedy.Restart, Object: workload.Identity()}
		}
		l.Report.Causes[0].Remedies = []explain.Remedy{{Risk: explain.Disruptive, Effect: say.Plain("scale it"), Action: explain.Action{Operation: &op}}}
		if test.set == nil {
			test.set = set("Retain", "none")
		}
		l.FindStakes(t.Context(), volumes{graph: l.Graph, set: test.set, err: test.err})
		choice := &unstick.Choose(l, &unstick.Options{Allow: explain.Disruptive}).Choices[0]
		got := string(choice.Reason)
		if len(choice.Writes) > 0 {
			got = describe(choice) + fmt.Sprint(" ", choice.Writes[0].Lets)
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// attached is a volume without a claim, and what attaches it to a node.
var attached = map[string]any{
	"va": map[string]any{"spec": map[string]any{"nodeName": "node", "source": map[string]any{"persistentVolumeName": "pv"}}},
	"pv": map[string]any{"spec": map[string]any{"claimRef": map[string]any{"uid": "uid-gone"}}},
}

// Once an object is freed, others delete more: the pods of a node, those that a StatefulSet that was made smaller ends next, and what a
// tool's own object has deployed, if its controller acts. They are named, and their data is kept first.
func TestAfterwards(t *testing.T) {
	set := map[string]any{"metadata": map[string]any{"name": "set"}, "spec": map[string]any{
		"replicas": int64(1), "persistentVolumeClaimRetentionPolicy": map[string]any{"whenScaled": "Delete"},
		"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "c"}}},
	}}
	app := map[string]any{"status": map[string]any{"resources": []any{map[string]any{"version": "v1", "kind": "PersistentVolumeClaim", "namespace": "t", "name": "claim"}}}}
	child := map[string]any{"group": "argoproj.io", "version": "v1alpha1", "kind": "Application", "namespace": "t", "name": "app2"}
	apps := map[string]any{"app": map[string]any{"status": map[string]any{"resources": []any{child}}}, "app2": app}
	prunes := func(automated map[string]any) map[string]any {
		resource := map[string]any{"version": "v1", "kind": "PersistentVolumeClaim", "namespace": "t", "name": "claim", "requiresPruning": true}
		return map[string]any{"app": map[string]any{}, "app2": map[string]any{
			"spec": map[string]any{"syncPolicy": map[string]any{"automated": automated}}, "status": map[string]any{"resources": []any{resource}},
		}}
	}
	for name, test := range map[string]struct {
		world  string
		object map[string]any
		start  bool
		err    error
		want   string
	}{
		"the pods of a node":               {world: "node! t:pod t:claim>pod", want: "1: volume dangerous, then end it [PersistentVolumeClaim/t/claim Pod/t/pod]"},
		"of a node that it owns":           {world: "root! node>root t:pod t:claim>pod", want: "1: volume dangerous, then end it [PersistentVolumeClaim/t/claim Pod/t/pod]"},
		"what was deployed by that":        {world: "app! t:app2% t:claim", object: apps, start: true, want: "1: volume dangerous, then start it [Application/t/app2 PersistentVolumeClaim/t/claim]"},
		"pods could not be read":           {world: "node!", err: errors.New("no"), want: "1: node dangerous [] unsure"},
		"the next of a StatefulSet":        {world: "pod=set-2!>set set pod2=set-1>set claim=c-set-1", object: set, want: "1: volume dangerous, then end it [PersistentVolumeClaim/s/c-set-1 Pod/s/set-1]"},
		"one that stays":                   {world: "pod=set-2!>set set pod2=set-0>set claim=c-set-0", object: set, want: "1: set-2 dangerous []"},
		"the set could not be read":        {world: "pod=set-2!>set set", err: errors.New("no"), want: "1: set-2 dangerous [] unsure"},
		"what was deployed":                {world: "app! t:claim", object: app, start: true, want: "1: volume dangerous, then start it [PersistentVolumeClaim/t/claim]"},
		"its finalizer is removed instead": {world: "app! t:claim", object: app, want: "1: app dangerous []"},
		"what another prunes then":         {world: "app! t:app2 t:claim", object: prunes(map[string]any{"prune": true}), start: true, want: "1: volume dangerous, then start it [PersistentVolumeClaim/t/claim]"},
		"what another does not prune":      {world: "app! t:app2 t:claim", object: prunes(map[string]any{"prune": true, "enabled": false}), start: true, want: "1: operator dangerous []"},
		"that of a HelmRelease, too":       {world: "helm! t:claim=of-helm", object: map[string]any{}, want: "1: helm dangerous []"},
		"what a HelmRelease has deployed":  {world: "helm! t:claim=of-helm", object: map[string]any{}, start: true, want: "1: volume dangerous, then start it [PersistentVolumeClaim/t/of-helm]"},
		"a volume that is attached to it":  {world: "node! t:pod va pv", object: attached, want: "1: pv dangerous, then end it [PersistentVolume/pv Pod/t/pod VolumeAttachment/va]"},
		"attached to another":              {world: "node=other! va pv", object: attached, want: "1: other dangerous []"},
	} {
		l := owned(test.world)
		if test.start {
			l = starting(l)
		}
		l.Report.Causes[0].Remedies[0].Risk = explain.Dangerous
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid-pod"}, Spec: corev1.PodSpec{NodeName: "node"}}
		l.FindStakes(t.Context(), volumes{graph: l.Graph, pods: []*corev1.Pod{pod}, set: test.object, text: strings.Repeat("pv=Delete,Lost,a", strings.Count(test.world, " pv")), err: test.err})
		choice := &unstick.Choose(l, &unstick.Options{Allow: explain.Dangerous}).Choices[0]
		got := describe(choice)
		if len(choice.Writes) > 0 {
			got += fmt.Sprint(" ", choice.Writes[0].Lets)
		}
		if choice.Unsure {
			got += " unsure"
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// Where what refuses is passed in a namespace that stays, and covers a claim there or what is above it, whether its data is lost nobody
// knows.
func TestLiveData(t *testing.T) {
	for world, want := range map[string]string{
		"cr! t:claim":                            "NotAllowed",
		"cr! t:set t:claim>set":                  "NotAllowed",
		"cr! t:cm t:claim>cm":                    "1: content-of-other safe, then start it",
		"cr! t:set t:cm>set t:pod>cm claim2>pod": "1: content-of-other safe, then start it", // of which the volume is kept
		"in s: cr! t:claim":                      "1: operator safe",
		"cr! t:set t:cm t:claim=c-set-0>cm":      "NotAllowed",
		"cr! ns=t t:cm t:claim>cm":               "NotAllowed",
		"cr!":                                    "1: content-of-other safe, then start it",
	} {
		objects, one := strings.CutPrefix(world, "in s: ")
		l := starting(owned(objects))
		c := l.Report.Causes[0]
		if one {
			c.Remedies[0].In = []string{"s"}
		}
		c.Kind, c.Waits = finding.AdmWebhookDead, func(graph.Node) bool { return false }
		c.Covers = func(n graph.Node) bool {
			return n.Resource().Kind == "StatefulSet" || n.Resource().IsNamespace() && n.UID() == "uid-ns" || n.Resource().Kind == "PersistentVolumeClaim" && len(n.Owners()) == 0
		}
		l.FindStakes(t.Context(), volumes{graph: l.Graph})
		choice := &unstick.Choose(l, &unstick.Options{Allow: explain.Safe}).Choices[0]
		got := string(choice.Reason)
		if len(choice.Writes) > 0 {
			got = describe(choice)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", world, got, want)
		}
	}
}

// A webhook that is passed over lets go what it covers: what is being deleted, and the contents of namespaces that are, and volumes that
// wait to be reclaimed.
func TestReachOfRefusals(t *testing.T) {
	for world, want := range map[string]string{
		"in s: cr! t:cm! cm2!":   "1: operator safe [ConfigMap/s/cm2]",
		"cr! t:cr2! t:cm cm2":    "1: content-of-other safe, then start it [ConfigMap/t/cm]", // of which unclear whether it is covered
		"cr! t:claim t:cm":       "1: volume content-of-other safe, then start it [ConfigMap/t/cm]",
		"cr! t:cr2! t:claim>cr2": "1: content-of-other safe, then start it []",
		"cr! cm! claim>cm":       "1: volume content-of-other safe, then start it [ConfigMap/s/cm PersistentVolumeClaim/s/claim]",
		"cr! pv pv2":             "1: pv content-of-other safe, then start it []",
		"in s: cr! pv pv2":       "1: operator safe []",
	} {
		objects, one := strings.CutPrefix(world, "in s: ")
		l := starting(owned(objects, strings.Repeat("t!", strings.Count(objects, "t:cm"))))
		c := l.Report.Causes[0]
		if one {
			c.Remedies[0].In = []string{"s"}
		}
		c.Kind, c.Waits = finding.AdmWebhookDead, func(n graph.Node) bool {
			return n.Resource().Kind == "ConfigMap" || n.Name() == "pv"
		}
		l.FindStakes(t.Context(), volumes{graph: l.Graph, text: strings.Repeat("pv=Delete,Lost,a pv2=Delete,Released,b", strings.Count(world, "pv "))})
		choice := &unstick.Choose(l, &unstick.Options{Allow: explain.Safe}).Choices[0]
		if got := describe(choice) + fmt.Sprint(" ", choice.Writes[0].Lets); got != want {
			t.Errorf("%s: %s, want %s", world, got, want)
		}
	}
}
