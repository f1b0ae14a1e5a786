// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// way is a remedy with an operation on the object of the name, or without one.
func way(risk explain.Risk, name string, but ...func(*explain.Remedy)) explain.Remedy {
	r := explain.Remedy{Risk: risk, Effect: say.Plain("do " + name)}
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
		"data is kept first":       {remedies: []explain.Remedy{way(explain.Safe, "v", keeps), way(explain.Dangerous, "c", kept)}, allow: explain.Disruptive, want: "2: v disruptive, then do c"},
		"nothing is kept for safe": {remedies: []explain.Remedy{way(explain.Safe, "v", keeps), way(explain.Dangerous, "c", kept)}, allow: explain.Safe, want: "NotAllowed needs disruptive"},
		"nothing can keep it":      {remedies: []explain.Remedy{way(explain.Dangerous, "c", kept)}, allow: explain.Disruptive, want: "NotAllowed needs dangerous"},
		"a namespace with content": {remedies: []explain.Remedy{way(explain.Dangerous, "", finalizes)}, content: true, allow: explain.Dangerous, want: "HasContent"},
		"a namespace without":      {remedies: []explain.Remedy{way(explain.Dangerous, "", finalizes)}, allow: explain.Dangerous, want: "1: s dangerous"},
		"a namespace of which not all was read": {
			remedies: []explain.Remedy{way(explain.Dangerous, "", finalizes)}, unread: true, allow: explain.Dangerous, want: "HasContent",
		},
		"of another cause":          {remedies: []explain.Remedy{way(explain.Safe, "a")}, options: unstick.Options{Picked: []unstick.Picked{{Name: unstick.Name{ID: "other"}}}}, allow: explain.Safe, want: "NotChosen"},
		"of this cause":             {remedies: []explain.Remedy{way(explain.Safe, "a")}, options: unstick.Options{Picked: []unstick.Picked{{Name: unstick.Name{ID: "it", Object: "configmap/at"}}}}, allow: explain.Safe, want: "1: a safe"},
		"one way for many objects":  {remedies: []explain.Remedy{way(explain.Safe, "a"), {Risk: explain.Safe, Effect: say.Plain("do a"), Action: explain.Action{Operation: new(remedy.DeleteOf(identity("b"), metav1.DeleteOptions{}))}}}, allow: explain.Safe, want: "1: a b safe"},
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
		text += ", then " + c.Writes[0].Then[0].Effect.String()
	}
	return text
}

// A change of an object that is denied to the caller waits until that is not so any more; one of another object does not.
func TestDeniedToTheCaller(t *testing.T) {
	change := func(name string) explain.Remedy {
		return explain.Remedy{Risk: explain.Safe, Effect: say.Plain("do " + name), Action: explain.Action{Operation: new(remedy.PatchOf(identity(name), remedy.Remove("/metadata/finalizers/0")))}}
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

// What denies a change is not passed where the change itself is riskier than what is allowed.
func TestPassedForNothing(t *testing.T) {
	change := explain.Remedy{Risk: explain.Dangerous, Effect: say.Plain("do it"), Action: explain.Action{Operation: new(remedy.PatchOf(identity("held"), remedy.Remove("/metadata/finalizers/0")))}}
	guard := &explain.Cause{Kind: explain.Kind{ID: "guard"}, Object: identity("held"), Verdict: explain.Stuck, Remedies: []explain.Remedy{change}}
	denial := &explain.Cause{Kind: finding.AdmWebhookDeny, Object: identity("webhook"), Verdict: explain.Stuck, Remedies: []explain.Remedy{way(explain.Disruptive, "exempt")}}
	l := &unstick.Look{Graph: graph.New(&graph.Snapshot{}), Report: &explain.Report{
		Causes:  []*explain.Cause{denial, guard},
		Objects: []explain.Explanation{{Object: identity("held"), Verdict: explain.Stuck, Findings: []explain.Finding{{Cause: guard}, {Cause: denial}}}},
	}}
	for allow, want := range map[explain.Risk]int{explain.Disruptive: 0, explain.Dangerous: 2} {
		if p := unstick.Choose(l, &unstick.Options{Allow: allow}); len(p.Writes()) != want || p.Choices[0].Needs != "" != (want == 0) {
			t.Errorf("%s: %d changes, %+v", allow, len(p.Writes()), p.Choices[0])
		}
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
