// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/unstick"
)

// way is a remedy with an operation on the object of the name, or without one.
func way(risk explain.Risk, name string, but ...func(*explain.Remedy)) explain.Remedy {
	r := explain.Remedy{Risk: risk, Effect: "do " + name}
	if name != "" {
		r.Operation = new(remedy.DeleteOf(identity(name), metav1.DeleteOptions{}))
	}
	for _, change := range but {
		change(&r)
	}
	return r
}

func partial(r *explain.Remedy) { r.Partial = true }
func keeps(r *explain.Remedy)   { r.Keeps = true }

func kept(r *explain.Remedy) { r.Kept = explain.Disruptive }

func finalizes(r *explain.Remedy) {
	id := graph.Identity{Resource: graph.Resource{Kind: "Namespace"}, Name: "s", UID: "ns"}
	id.Resource.Version, id.Resource.Resource = "v1", "namespaces"
	r.Operation = &remedy.Op{Verb: remedy.Finalize, Object: id, Value: "example.com/x"}
}

// The least risky way out that a program can carry out is chosen, and never one that is not allowed.
func TestChoose(t *testing.T) {
	for name, test := range map[string]struct {
		remedies []explain.Remedy
		verdict  explain.Verdict
		allow    explain.Risk
		content  bool
		unread   bool
		options  unstick.Options
		want     string
	}{
		"the least risky":          {remedies: []explain.Remedy{way(explain.Safe, ""), way(explain.Disruptive, "b"), way(explain.Dangerous, "c")}, allow: explain.Dangerous, want: "2: b disruptive"},
		"not the riskier":          {remedies: []explain.Remedy{way(explain.Disruptive, "b")}, allow: explain.Safe, want: "NotAllowed needs disruptive"},
		"a person's":               {remedies: []explain.Remedy{way(explain.Safe, "")}, allow: explain.Dangerous, want: "Person"},
		"only a part of it":        {remedies: []explain.Remedy{way(explain.Safe, "a", partial)}, allow: explain.Dangerous, want: "Person"},
		"progress":                 {remedies: []explain.Remedy{way(explain.Safe, "a")}, verdict: explain.Progressing, allow: explain.Dangerous, want: "NotStuck"},
		"not certain":              {remedies: []explain.Remedy{way(explain.Safe, "a")}, verdict: explain.Unknown, allow: explain.Dangerous, want: "NotStuck"},
		"data is kept first":       {remedies: []explain.Remedy{way(explain.Safe, "v", keeps), way(explain.Dangerous, "c", kept)}, allow: explain.Disruptive, want: "1: v disruptive, then do c"},
		"nothing is kept for safe": {remedies: []explain.Remedy{way(explain.Safe, "v", keeps), way(explain.Dangerous, "c", kept)}, allow: explain.Safe, want: "NotAllowed needs disruptive"},
		"nothing can keep it":      {remedies: []explain.Remedy{way(explain.Dangerous, "c", kept)}, allow: explain.Disruptive, want: "NotAllowed needs dangerous"},
		"a namespace with content": {remedies: []explain.Remedy{way(explain.Dangerous, "", finalizes)}, content: true, allow: explain.Dangerous, want: "HasContent"},
		"a namespace without":      {remedies: []explain.Remedy{way(explain.Dangerous, "", finalizes)}, allow: explain.Dangerous, want: "1: s dangerous"},
		"a namespace of which not all was read": {
			remedies: []explain.Remedy{way(explain.Dangerous, "", finalizes)}, unread: true, allow: explain.Dangerous, want: "HasContent",
		},
		"of another cause":          {remedies: []explain.Remedy{way(explain.Safe, "a")}, options: unstick.Options{Only: []unstick.Filter{{ID: "other"}}}, allow: explain.Safe, want: "NotChosen"},
		"of this cause":             {remedies: []explain.Remedy{way(explain.Safe, "a")}, options: unstick.Options{Only: []unstick.Filter{{ID: "it", Object: "configmap/at"}}}, allow: explain.Safe, want: "1: a safe"},
		"one way for many objects":  {remedies: []explain.Remedy{way(explain.Safe, "a"), {Risk: explain.Safe, Effect: "do a", Action: explain.Action{Operation: new(remedy.DeleteOf(identity("b"), metav1.DeleteOptions{}))}}}, allow: explain.Safe, want: "1: a b safe"},
		"the same change only once": {remedies: []explain.Remedy{way(explain.Safe, "a"), way(explain.Safe, "a")}, allow: explain.Safe, want: "1: a safe"},
	} {
		c := &explain.Cause{Kind: explain.Kind{ID: "it"}, Object: identity("at"), Verdict: explain.Stuck, Remedies: test.remedies}
		if test.verdict != "" {
			c.Verdict = test.verdict
		}
		snapshot := &graph.Snapshot{}
		if test.content {
			snapshot.Add(graph.Object{Resource: &graph.Resource{GroupVersionResource: identity("x").Resource.GroupVersionResource, Kind: "ConfigMap", Namespaced: true}, Namespace: "s", Name: "x", UID: "x"})
		}
		if test.unread {
			snapshot.MarkUnlisted(graph.Unlisted{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1"}, Reason: graph.Forbidden})
		}
		l := &unstick.Look{Report: &explain.Report{Causes: []*explain.Cause{c}}, Graph: graph.New(snapshot)}
		options := test.options
		options.Allow = test.allow
		p := unstick.Choose(l, &options)
		if got := describe(&p.Choices[0]); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func describe(c *unstick.Choice) string {
	if len(c.Writes) == 0 {
		text := string(c.Reason)
		if c.Needs != "" {
			text += " needs " + string(c.Needs)
		}
		return text
	}
	text := fmt.Sprintf("%d:", c.Way)
	for _, w := range c.Writes {
		text += " " + w.Op.Object.Name
	}
	if text += " " + string(c.Risk); len(c.Writes[0].Then) > 0 {
		text += ", then " + c.Writes[0].Then[0].Effect
	}
	return text
}

// A change of an object that is denied to the caller waits until that is not so any more; one of another object does not.
func TestDeniedToTheCaller(t *testing.T) {
	change := func(name string) explain.Remedy {
		return explain.Remedy{Risk: explain.Safe, Effect: "do " + name, Action: explain.Action{Operation: new(remedy.PatchOf(identity(name), remedy.Remove("/metadata/finalizers/0")))}}
	}
	for _, test := range []struct {
		kind explain.Kind
		of   string
		want int
	}{{finding.AdmWebhookDeny, "held", 2}, {finding.AdmVapDeny, "held", 2}, {finding.AdmWebhookDead, "held", 0}, {finding.AdmWebhookDeny, "other", 0}} {
		guard := &explain.Cause{Kind: explain.Kind{ID: "guard"}, Object: identity("held"), Verdict: explain.Stuck, Remedies: []explain.Remedy{change(test.of)}}
		denial := &explain.Cause{Kind: test.kind, Object: identity("webhook"), Verdict: explain.Unknown}
		l := &unstick.Look{Graph: graph.New(&graph.Snapshot{}), Report: &explain.Report{
			Causes:  []*explain.Cause{guard, denial},
			Objects: []explain.Explanation{{Object: identity("held"), Verdict: explain.Stuck, Findings: []explain.Finding{{Cause: guard}, {Cause: denial}}}},
		}}
		if p := unstick.Choose(l, &unstick.Options{Allow: explain.Safe}); p.Choices[0].After != test.want || len(p.Choices[0].Writes) != 1 {
			t.Errorf("%s, a change of %s: after %d, want %d", test.kind.ID, test.of, p.Choices[0].After, test.want)
		}
	}
}

// Numbers mean what explain-stuck prints: a cause of several, a way out of a single one.
func TestResolve(t *testing.T) {
	one := &explain.Cause{Kind: explain.Kind{ID: "one"}, Remedies: []explain.Remedy{way(explain.Safe, ""), way(explain.Dangerous, "a")}}
	two := &explain.Cause{Kind: explain.Kind{ID: "two"}, Remedies: []explain.Remedy{way(explain.Safe, "b")}}
	for _, test := range []struct {
		causes []*explain.Cause
		pick   unstick.Pick
		want   string
	}{
		{[]*explain.Cause{one}, unstick.Pick{Way: 2}, "one 1"},
		{[]*explain.Cause{one}, unstick.Pick{Way: 1}, "way out 1 is for a person: do "},
		{[]*explain.Cause{one}, unstick.Pick{Way: 3}, "there is no way out 3: there are 2"},
		{[]*explain.Cause{one, two}, unstick.Pick{Way: 2}, "two 0"},
		{[]*explain.Cause{one, two}, unstick.Pick{Way: 3}, "there is no cause 3: there are 2"},
		{[]*explain.Cause{one, two}, unstick.Pick{Cause: 1, Way: 2}, "one 1"},
		{[]*explain.Cause{one, two}, unstick.Pick{Cause: 2, Way: 2}, "there is no way out 2: there is only 1"},
	} {
		picked, err := unstick.Resolve(&explain.Report{Causes: test.causes}, []unstick.Pick{test.pick})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("%s %d", picked[0].ID, len(picked[0].Changes))
		} else if !errors.As(err, new(*unstick.NoPickError)) {
			t.Error(err)
		}
		if got != test.want {
			t.Errorf("%+v of %d: %s, want %s", test.pick, len(test.causes), got, test.want)
		}
	}
}

// Of two causes of one object, the other is not chosen.
func TestTwins(t *testing.T) {
	at := func(name string) *explain.Cause {
		return &explain.Cause{Kind: explain.Kind{ID: "it"}, Object: identity("at"), Verdict: explain.Stuck, Summary: name, Remedies: []explain.Remedy{way(explain.Safe, name)}}
	}
	report := &explain.Report{Causes: []*explain.Cause{at("a"), at("b")}}
	for _, pick := range []unstick.Pick{{Way: 2}, {Cause: 2, Way: 1}} {
		picked, err := unstick.Resolve(report, []unstick.Pick{pick})
		if err != nil {
			t.Fatal(err)
		}
		p := unstick.Choose(&unstick.Look{Report: report, Graph: graph.New(&graph.Snapshot{})}, &unstick.Options{Allow: explain.Safe, Picked: picked})
		if first, second := describe(&p.Choices[0]), describe(&p.Choices[1]); first != "NotChosen" || second != "1: b safe" {
			t.Errorf("%+v: %s, %s", pick, first, second)
		}
	}
}

// What can be put back is put back, and what cannot is said.
func TestUndo(t *testing.T) {
	finalizer := remedy.PatchOf(identity("a"), remedy.Test("/metadata/finalizers/0", "x/y"), remedy.Remove("/metadata/finalizers/0"))
	reference := remedy.PatchOf(identity("a"), remedy.Test("/metadata/ownerReferences/0/uid", "uid-b"), remedy.Remove("/metadata/ownerReferences/0"))
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "b", UID: "uid-b"}
	kinds := func(schema.GroupVersionKind) (graph.Resource, error) { return identity("a").Resource, nil }
	for name, test := range map[string]struct {
		op   remedy.Op
		then func(w *world)
		want string
	}{
		"a finalizer":                 {finalizer, func(*world) {}, `add /metadata/finalizers/- x/y`},
		"the only finalizer":          {finalizer, func(w *world) { w.objects["a"].SetFinalizers(nil) }, `add /metadata/finalizers [x/y]`},
		"a reference":                 {reference, func(*world) {}, `add /metadata/ownerReferences [map[apiVersion:v1 kind:ConfigMap name:b uid:uid-b]]`},
		"a reference to what is gone": {reference, func(w *world) { delete(w.objects, "b") }, "Ownerless"},
		"a reference to its heir":     {reference, func(w *world) { w.objects["b"].SetUID("other") }, "Ownerless"},
		"it is there again":           {finalizer, func(w *world) { w.objects["a"].SetFinalizers([]string{"x/z", "x/y"}) }, "Undone"},
		"it is being deleted":         {finalizer, func(w *world) { w.objects["a"].SetDeletionTimestamp(new(metav1.Now())) }, "Terminating"},
		"it is gone":                  {finalizer, func(w *world) { delete(w.objects, "a") }, "Gone"},
		"another has its name":        {finalizer, func(w *world) { w.objects["a"].SetUID("other") }, "Gone"},
		"a workload":                  {remedy.ScaleOf(identity("a"), remedy.Replicas{Current: 3}), func(*world) {}, "scale 0 3"},
		"a workload as it was left":   {remedy.ScaleOf(identity("a"), remedy.Replicas{Current: 3}), scaled(0), "scale 0 3"},
		"a workload that was scaled":  {remedy.ScaleOf(identity("a"), remedy.Replicas{Current: 3}), scaled(5), "Changed"},
		"a workload as it was before": {remedy.ScaleOf(identity("a"), remedy.Replicas{Current: 3}), scaled(3), "Undone"},
		"a policy":                    {remedy.RetainOf(identity("a"), "Delete"), reclaims("Recycle"), "Changed"},
		"a deletion":                  {remedy.DeleteOf(identity("a"), metav1.DeleteOptions{}), func(w *world) { delete(w.objects, "a") }, "Gone"},
		"a saved deletion":            {remedy.DeleteOf(identity("a"), metav1.DeleteOptions{}).Saved("1"), func(w *world) { delete(w.objects, "a") }, "restore a"},
		"a saved one that came back":  {remedy.DeleteOf(identity("a"), metav1.DeleteOptions{}).Saved("1"), func(*world) {}, "Exists"},
		"a restart":                   {remedy.Op{Verb: remedy.Restart, Object: identity("a")}, func(*world) {}, "Final"},
	} {
		w := newWorld("a=x/y,x/z", "b")
		w.objects["a"].SetOwnerReferences([]metav1.OwnerReference{owner})
		e := w.edges(t)
		j := journal(t)
		before, err := w.read(t.Context(), identity("a"))
		if err != nil {
			t.Fatal(err)
		}
		if err := unstick.Keep(j, &unstick.Write{Op: test.op, Remedy: &explain.Remedy{}, Cause: &explain.Cause{}}, before); err != nil {
			t.Fatal(err)
		}
		if test.op.Verb == remedy.Patch {
			w.objects["a"].SetFinalizers([]string{"x/z"})
			w.objects["a"].SetOwnerReferences(nil)
		}
		test.then(w)
		recorded, err := unstick.ReadJournal(j.Dir)
		if err != nil {
			t.Fatal(err)
		}
		reversals := recorded.Undo(t.Context(), &unstick.Reading{Read: e.Read, Resource: kinds})
		if len(reversals) != 1 {
			t.Fatalf("%s: %+v", name, reversals)
		}
		if got := undone(&reversals[0]); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func scaled(replicas int64) func(*world) {
	return func(w *world) { w.objects["a"].Object["spec"] = map[string]any{"replicas": replicas} }
}

func reclaims(policy string) func(*world) {
	return func(w *world) {
		w.objects["a"].Object["spec"] = map[string]any{"persistentVolumeReclaimPolicy": policy}
	}
}

func undone(v *unstick.Reversal) string {
	switch op := v.Op; {
	case op == nil:
		return string(v.Obstacle)
	case op.Verb == remedy.Patch:
		var parts []string
		for _, s := range op.Patch {
			if s.Op != "test" {
				parts = append(parts, fmt.Sprint(s.Op, " ", s.Path, " ", s.Value))
			}
		}
		return strings.Join(parts, ", ")
	case op.Verb == remedy.Scale:
		return fmt.Sprint("scale ", op.Replicas.Current, " ", op.Replicas.Wanted)
	default:
		return string(op.Verb) + " " + op.Manifest["metadata"].(map[string]any)["name"].(string)
	}
}

// The same change for two causes is made once, and what follows either of them is agreed to with it.
func TestShared(t *testing.T) {
	causes := []*explain.Cause{}
	for _, name := range []string{"a", "b"} {
		causes = append(causes, &explain.Cause{
			Kind: explain.Kind{ID: name}, Object: identity(name), Verdict: explain.Stuck,
			Remedies: []explain.Remedy{way(explain.Safe, "v", keeps), way(explain.Dangerous, name, kept)},
		})
	}
	p := unstick.Choose(&unstick.Look{Report: &explain.Report{Causes: causes}, Graph: graph.New(&graph.Snapshot{})}, &unstick.Options{Allow: explain.Disruptive})
	writes := p.Writes()
	if len(writes) != 1 || len(writes[0].Then) != 2 {
		t.Errorf("%+v", writes)
	}
	for i := range p.Choices {
		if len(p.Choices[i].Writes) != 1 || p.Choices[i].Reason != "" {
			t.Errorf("%s: %+v", p.Choices[i].Cause.ID, p.Choices[i])
		}
	}
}

// A digest is for the versions that were read; the status of a workload may change, but not its number of replicas.
func TestDigest(t *testing.T) {
	digest := func(version string, op remedy.Op) string {
		snapshot := &graph.Snapshot{}
		o := graph.Object{Resource: new(identity("x").Resource), Namespace: "s", Name: "x", UID: "uid-x", ResourceVersion: version}
		snapshot.Add(o)
		return unstick.DigestOf(graph.New(snapshot), op)
	}
	id := identity("x")
	deleted, scaled := remedy.DeleteOf(id, metav1.DeleteOptions{}), remedy.ScaleOf(id, remedy.Replicas{Current: 2})
	if digest("1", deleted) == digest("2", deleted) {
		t.Error("the same for another version of what is deleted")
	}
	if digest("1", scaled) != digest("2", scaled) {
		t.Error("another for another version of what is scaled")
	}
	if digest("1", scaled) == digest("1", remedy.ScaleOf(id, remedy.Replicas{Current: 3})) {
		t.Error("the same for another number of replicas")
	}
	replaced := func(old string) remedy.Op {
		return remedy.PatchOf(id, remedy.Replace("/spec/conversion", "None")).TakenBack(map[string]any{"spec": map[string]any{"conversion": old}})
	}
	if digest("1", replaced("Webhook")) != digest("2", replaced("Webhook")) {
		t.Error("another for another version of what is patched")
	}
	if digest("1", replaced("Webhook")) == digest("1", replaced("Other")) {
		t.Error("the same for another value that is replaced")
	}
}
