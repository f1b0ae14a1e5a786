// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/internal/testapi"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// served are the types of a case. All namespaced objects but the operator are in s.
var served = map[string]*graph.Resource{
	"cm":     kinds["cm"],
	"claim":  kinds["claim"],
	"volume": {GroupVersionResource: evidence.Volumes, Kind: "PersistentVolume"},
	"hooks":  {GroupVersionResource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}, Kind: "ValidatingWebhookConfiguration"},
	"policy": {GroupVersionResource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}, Kind: "ValidatingAdmissionPolicyBinding"},
	"deploy": {GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment", Namespaced: true},
	"ns":     {GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"},
}

// elsewhere are the objects of a case that are in another namespace, which nobody asks for.
var elsewhere []string

// refTo names an object of a case by its type and name; the operator is in a namespace of its own.
func refTo(kind, name string) graph.Identity {
	id := graph.Identity{Resource: *served[kind], Name: name, UID: types.UID("uid-" + name)}
	if id.Resource.Namespaced {
		id.Namespace = "s"
	}
	switch {
	case kind == "deploy":
		id.Namespace = "ops"
	case slices.Contains(elsewhere, name):
		id.Namespace = "t"
	}
	return id
}

// idOf is the identity of an object that a server has.
func idOf(o *unstructured.Unstructured) graph.Identity {
	for _, r := range served {
		if r.Kind == o.GetKind() {
			return graph.Identity{Resource: *r, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
		}
	}
	panic("no type: " + o.GetKind())
}

// things are the objects of a case, drawn as text so that a case can be read.
type things struct {
	// Objects are NAME[!POLICY] f=FINALIZER,... o=OWNER,... for a ConfigMap, or, with a volume, for a claim.
	Objects []thing
	// Hooks are the webhooks that refuse all writes in s, with the selectors that they have; Policy is the binding of a policy that does.
	Hooks  []string
	Policy string
	// Exempts: the namespace is exempted from webhooks, instead of letting failures pass.
	Exempts bool
	// Replicas are those of the controller of x/a, -1 for none.
	Replicas int64
}

type thing struct {
	Name, Deleted, Volume, Phase string
	Finalizers, Owners           []string
	Blocks                       bool
}

func (t thing) kind() string {
	if t.Volume != "" {
		return "claim"
	}
	return "cm"
}

var (
	selectors = []string{"none", "empty", "theirs"}
	thingGen  = rapid.Custom(func(t *rapid.T) thing {
		return thing{
			Deleted:    rapid.SampledFrom([]string{"now", "", "foreground", "orphan"}).Draw(t, "deleted"),
			Finalizers: rapid.SampledFrom([][]string{{"x/a"}, {"x/b"}, {}, {"x/a", "x/b"}, {"x/b", "x/a"}}).Draw(t, "finalizers"),
			Owners:     rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "gone"}), 0, 2, rapid.ID).Draw(t, "owners"),
			Blocks:     rapid.Bool().Draw(t, "blocks"),
		}
	})
	drawThing = func(t *rapid.T, name string) thing {
		o := thingGen.Draw(t, name)
		o.Name = name
		return o
	}
	thingsGen = rapid.Custom(func(t *rapid.T) things {
		w := things{
			Hooks:    rapid.SliceOfN(rapid.SampledFrom(selectors), 0, 2).Draw(t, "hooks"),
			Policy:   rapid.SampledFrom([]string{"", "", "none", "empty", "theirs"}).Draw(t, "policy"),
			Exempts:  rapid.Bool().Draw(t, "exempts"),
			Replicas: rapid.SampledFrom([]int64{0, -1, 0, 2}).Draw(t, "replicas"),
		}
		names := []string{"a", "b", "c", "d"}
		for _, name := range names[:rapid.IntRange(1, 4).Draw(t, "objects")] {
			w.Objects = append(w.Objects, drawThing(t, name))
		}
		names = append([]string{"p", "q"}, elsewhere...)
		for _, name := range names[:rapid.IntRange(0, len(names)).Draw(t, "claims")] {
			o := drawThing(t, name)
			o.Volume = rapid.SampledFrom([]string{"Delete", "Retain", "Delete"}).Draw(t, "volume")
			o.Phase = rapid.SampledFrom([]string{"Bound", "Bound", "Failed"}).Draw(t, "phase")
			w.Objects = append(w.Objects, o)
		}
		return w
	})
)

// server makes it.
func (w *things) server() *testapi.Server {
	s := testapi.New()
	s.Put(refTo("ns", "s"), map[string]any{})
	if w.Replicas >= 0 {
		s.Put(refTo("deploy", "ctl"), map[string]any{"spec": map[string]any{"replicas": w.Replicas}})
	}
	var hooks []any
	for i, selector := range w.Hooks {
		hook := map[string]any{"name": fmt.Sprintf("w%d.example.com", i), "failurePolicy": "Fail"}
		addSelector(hook, selector)
		hooks = append(hooks, hook)
	}
	if len(hooks) > 0 {
		s.Put(refTo("hooks", "g"), map[string]any{"webhooks": hooks})
	}
	if w.Policy != "" {
		spec := map[string]any{"validationActions": []any{"Deny"}}
		if w.Policy != "none" {
			resources := map[string]any{}
			addSelector(resources, w.Policy)
			spec["matchResources"] = resources
		}
		s.Put(refTo("policy", "binding"), map[string]any{"spec": spec})
	}
	for _, o := range w.Objects {
		o.put(s)
	}
	s.Reclaims = true
	return s
}

func addSelector(of map[string]any, selector string) {
	switch selector {
	case "empty":
		of["namespaceSelector"] = map[string]any{}
	case "theirs":
		of["namespaceSelector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": "theirs", "operator": "DoesNotExist"}}}
	}
}

func (t thing) put(s *testapi.Server) {
	m := map[string]any{}
	finalizers := slices.Clone(t.Finalizers)
	if t.Deleted != "" {
		m["deletionTimestamp"] = "2026-01-02T03:04:05Z"
		if kind := map[string]string{"foreground": metav1.FinalizerDeleteDependents, "orphan": metav1.FinalizerOrphanDependents}[t.Deleted]; kind != "" {
			finalizers = append(finalizers, kind)
		}
		if len(finalizers) == 0 {
			finalizers = []string{"x/b"}
		}
	}
	var list, owners []any
	for _, f := range finalizers {
		list = append(list, f)
	}
	for _, owner := range t.Owners {
		if owner != t.Name && refTo(t.kind(), t.Name).Namespace == "s" {
			owners = append(owners, ownerRef(owner, t.Blocks))
		}
	}
	m["finalizers"], m["ownerReferences"] = list, owners
	object := map[string]any{"metadata": m}
	if t.Volume != "" {
		object["spec"] = map[string]any{"volumeName": "v" + t.Name}
		s.Put(refTo("volume", "v"+t.Name), map[string]any{
			"spec":   map[string]any{"persistentVolumeReclaimPolicy": t.Volume, "claimRef": map[string]any{"namespace": refTo("claim", t.Name).Namespace, "name": t.Name, "uid": "uid-" + t.Name}},
			"status": map[string]any{"phase": t.Phase},
		})
	}
	s.Put(refTo(t.kind(), t.Name), object)
}

func ownerRef(name string, blocks bool) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": "uid-" + name, "blockOwnerDeletion": blocks}
}

// guard is an object that refuses writes in s, with the paths of what in it does.
type guard struct {
	graph.Identity
	paths []string
}

func guards(s *testapi.Server) []guard {
	var all []guard
	if g := s.Object(refTo("hooks", "g")); g != nil {
		hooks, _, _ := unstructured.NestedSlice(g.Object, "webhooks")
		var paths []string
		for i, each := range hooks {
			if hook := each.(map[string]any); hook["failurePolicy"] == "Fail" && !exempted(hook) {
				paths = append(paths, fmt.Sprint("/webhooks/", i))
			}
		}
		if len(paths) > 0 {
			all = append(all, guard{idOf(g), paths})
		}
	}
	if b := s.Object(refTo("policy", "binding")); b != nil {
		spec, _ := b.Object["spec"].(map[string]any)
		if resources, _ := spec["matchResources"].(map[string]any); !exempted(resources) {
			all = append(all, guard{idOf(b), []string{"/spec/matchResources"}})
		}
	}
	return all
}

// exempted reports whether a selector does not match s.
func exempted(holder map[string]any) bool {
	expressions, _, _ := unstructured.NestedSlice(holder, "namespaceSelector", "matchExpressions")
	return slices.ContainsFunc(expressions, func(e any) bool {
		expression := e.(map[string]any)
		values, _ := expression["values"].([]any)
		return expression["key"] == "kubernetes.io/metadata.name" && expression["operator"] == "NotIn" && slices.Contains(values, any("s"))
	})
}

// observed is what a look has read.
type observed struct {
	evidence.Cluster
	server *testapi.Server
}

func (o observed) List(_ context.Context, resource schema.GroupVersionResource, _ string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, each := range o.server.Objects() {
		if idOf(each).Resource.GroupVersionResource == resource {
			all = append(all, *each)
		}
	}
	return all, nil
}

// snapshotOf is the metadata of all objects but those of a type that could not be listed.
func snapshotOf(s *testapi.Server, unlisted string) *graph.Snapshot {
	mapper := meta.NewDefaultRESTMapper(nil)
	snapshot := &graph.Snapshot{Mapper: mapper}
	for word, r := range served {
		scope := meta.RESTScopeRoot
		if r.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.AddSpecific(r.GroupVersion().WithKind(r.Kind), r.GroupVersionResource, r.GroupVersionResource, scope)
		snapshot.Types = append(snapshot.Types, r)
		if word != unlisted {
			snapshot.MarkListed(r.GroupResource(), "", "1")
		} else {
			snapshot.MarkUnlisted(graph.Unlisted{GroupVersionResource: r.GroupVersionResource, Reason: graph.Forbidden})
		}
	}
	for _, o := range s.Objects() {
		if o.GetKind() != unlistedKind(unlisted) {
			snapshot.Add(metadataOf(o))
		}
	}
	return snapshot
}

func unlistedKind(word string) string {
	if r := served[word]; r != nil {
		return r.Kind
	}
	return ""
}

func metadataOf(o *unstructured.Unstructured) graph.Object {
	id := idOf(o)
	return graph.NewObject(served[wordOf(id)], o)
}

func wordOf(id graph.Identity) string {
	for word, r := range served {
		if r.GroupVersionResource == id.Resource.GroupVersionResource {
			return word
		}
	}
	return ""
}

// explaining makes an explanation of what there is, as the rules of explain would.
type explaining struct {
	*things
	server *testapi.Server
	report *explain.Report
	causes map[string]*explain.Cause
	graph  *graph.Graph
	work   sets
}

type sets map[types.UID]bool

// explained is what a look finds out.
func (w *things) explained(ctx context.Context, s *testapi.Server, unlisted string) *unstick.Look {
	e := &explaining{things: w, server: s, report: &explain.Report{Now: time.Now()}, causes: map[string]*explain.Cause{}, work: sets{}}
	e.graph = graph.New(snapshotOf(s, unlisted))
	l := &unstick.Look{Report: e.report, Graph: e.graph}
	if pending, err := gc.New(simulator.New(e.graph.Snapshot(), simulator.Options{Now: e.report.Now}), e.graph, gc.Options{SeesAll: true}).Collect(ctx, ""); err == nil {
		l.Pending = pending.Steps
	}
	for i := range l.Pending {
		e.work[l.Pending[i].Object.UID] = true
	}
	for n := range e.graph.Nodes() {
		if n.BeingDeleted() && n.Namespace() == "s" {
			x := explain.Explanation{Object: n.Identity()}
			e.follow(n, nil, &x, sets{})
			x.Verdict = explain.Unknown
			for _, f := range x.Findings {
				if x.Verdict == explain.Unknown || f.Cause.Verdict == explain.Stuck {
					x.Verdict = f.Cause.Verdict
				}
			}
			e.report.Objects = append(e.report.Objects, x)
		}
	}
	l.FindStakes(ctx, observed{server: s})
	return l
}

// follow adds what blocks a node, and what blocks those that it waits for.
func (e *explaining) follow(n graph.Node, chain []explain.Link, x *explain.Explanation, seen sets) {
	if seen[n.UID()] {
		return
	}
	seen[n.UID()] = true
	add := func(finalizer string, c *explain.Cause) {
		link := explain.Link{Object: n.Identity(), Finalizer: finalizer}
		x.Findings = append(x.Findings, explain.Finding{Cause: c, Chain: append(slices.Clone(chain), link)})
	}
	for _, g := range guards(e.server) {
		add("", e.refusal(g.Identity, g.paths))
	}
	whole := e.server.Object(n.Identity())
	for _, f := range n.Finalizers() {
		switch {
		case !graph.IsCollectorFinalizer(f):
			add(f, e.finalizer(n, whole, f))
		case e.pending(n):
			add(f, e.cause("gc-absent", finding.Waits, graph.Identity{}, explain.Stuck, func() []explain.Remedy {
				op := remedy.Op{Verb: remedy.Collect, Object: graph.Identity{Namespace: "s"}}
				return []explain.Remedy{{Risk: explain.Safe, Effect: say.Plain("collect"), Action: explain.Action{Operation: &op}}}
			}))
		}
	}
	if slices.Contains(n.Finalizers(), metav1.FinalizerDeleteDependents) {
		for _, d := range n.Dependents() {
			if d.BeingDeleted() {
				e.follow(d, append(slices.Clone(chain), explain.Link{Object: n.Identity()}), x, seen)
			}
		}
	}
}

// pending reports whether the garbage collector has something to do for an owner.
func (e *explaining) pending(n graph.Node) bool {
	return e.work[n.UID()] || slices.ContainsFunc(n.Dependents(), func(d graph.Node) bool { return e.work[d.UID()] })
}

func (e *explaining) cause(id string, class finding.Class, at graph.Identity, verdict explain.Verdict, ways func() []explain.Remedy) *explain.Cause {
	key := fmt.Sprint(id, at, verdict)
	if e.causes[key] == nil {
		c := &explain.Cause{Kind: explain.Kind{ID: id, Class: class}, Object: at, Verdict: verdict, Remedies: ways()}
		e.causes[key], e.report.Causes = c, append(e.report.Causes, c)
	}
	return e.causes[key]
}

// refusal is a webhook or policy that refuses writes.
func (e *explaining) refusal(guard graph.Identity, paths []string) *explain.Cause {
	return e.cause("adm-webhook-dead", finding.Refusal, guard, explain.Stuck, func() []explain.Remedy {
		whole := e.server.Object(guard)
		var steps []remedy.Step
		for _, path := range paths {
			if hook, is := remedy.At(whole.Object, path+"/name"); is {
				steps = append(steps, remedy.Test(path+"/name", hook))
			}
			if e.Exempts || guard.Resource.Kind != served["hooks"].Kind {
				steps = append(steps, adding(whole.Object, path+"/namespaceSelector/matchExpressions/-", map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []string{"s"}}))
			} else {
				steps = append(steps, remedy.Replace(path+"/failurePolicy", "Ignore"))
			}
		}
		op := remedy.PatchOf(guard, steps...).TakenBack(whole.Object)
		return []explain.Remedy{{Risk: explain.Disruptive, Effect: say.Plain("pass"), Temporary: true, Action: explain.Action{Operation: &op}}}
	})
}

// adding is the step that adds a value, with what has to be there for it and is not.
func adding(o map[string]any, path string, value any) remedy.Step {
	at := strings.LastIndex(path, "/")
	if have, is := remedy.At(o, path[:at]); is && have != nil {
		return remedy.Add(path, value)
	}
	if key := path[at+1:]; key != "-" {
		return adding(o, path[:at], map[string]any{key: value})
	}
	return adding(o, path[:at], []any{value})
}

// finalizer is what a finalizer waits for: a controller that works, one that is scaled to nothing, or none.
func (e *explaining) finalizer(n graph.Node, whole *unstructured.Unstructured, f string) *explain.Cause {
	at, ways := n.Identity(), []explain.Remedy{}
	operator := e.server.Object(refTo("deploy", "ctl"))
	if f == "x/a" && operator != nil {
		replicas, _, _ := unstructured.NestedInt64(operator.Object, "spec", "replicas")
		if text(whole, "status", "phase") == "draining" {
			return e.cause("fin-slow "+f, finding.Waits, at, explain.Progressing, func() []explain.Remedy { return nil })
		}
		at = idOf(operator)
		if replicas > 0 {
			return e.cause("fin-slow "+f, finding.Waits, at, explain.Progressing, func() []explain.Remedy { return nil })
		}
		op := remedy.ScaleOf(at, remedy.Replicas{Current: replicas, Wanted: 1})
		ways = []explain.Remedy{{Risk: explain.Safe, Effect: say.Plain("scale"), Action: explain.Action{Operation: &op}}}
	} else if text(whole, "status", "phase") == "draining" {
		return e.cause("fin-slow "+f, finding.Waits, at, explain.Progressing, func() []explain.Remedy { return nil })
	}
	c := e.cause("fin-dead "+f, finding.Waits, at, explain.Stuck, func() []explain.Remedy { return ways })
	c.Remedies = append(c.Remedies, e.removal(n, whole, f, c)...)
	return c
}

// removal are the ways to take a finalizer off by hand, once for each object, with what keeps data before.
func (e *explaining) removal(n graph.Node, whole *unstructured.Unstructured, f string, c *explain.Cause) []explain.Remedy {
	index := slices.Index(n.Finalizers(), f)
	path := fmt.Sprint("/metadata/finalizers/", index)
	op := remedy.PatchOf(n.Identity(), remedy.Test(path, f), remedy.Remove(path))
	if slices.ContainsFunc(c.Remedies, func(r explain.Remedy) bool { return r.Operation.Key() == op.Key() }) {
		return nil
	}
	op = op.TakenBack(whole.Object)
	way := explain.Remedy{Risk: explain.Dangerous, Effect: say.Plain("remove " + f), Action: explain.Action{Operation: &op}}
	volume := e.server.Object(refTo("volume", "v"+n.Object().Name))
	policy := text(volume, "spec", "persistentVolumeReclaimPolicy")
	if n.Resource().Kind != "PersistentVolumeClaim" || volume == nil || policy == "Retain" || text(volume, "spec", "claimRef", "uid") != string(n.UID()) {
		return []explain.Remedy{way}
	}
	way.Effect = way.Effect.Then(say.Plain(" and the data"))
	way.Loss = []remedy.Loss{{Kind: remedy.LosesData, Object: idOf(volume)}}
	if policy != "Delete" {
		return []explain.Remedy{way}
	}
	way.Kept = explain.Disruptive
	keep := remedy.RetainOf(idOf(volume), policy)
	return []explain.Remedy{{Risk: explain.Safe, Keeps: true, Effect: say.Plain("keep the data of " + volume.GetName()), Action: explain.Action{Operation: &keep}}, way}
}

// plain is a value as JSON has it.
func plain(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var out any
	if err := kjson.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return out
}

// text is a field of an object, which may be nil.
func text(o *unstructured.Unstructured, path ...string) string {
	if o == nil {
		return ""
	}
	return evidence.Nested(o, path...)
}
