// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"cmp"
	"encoding/json"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// exemption is a value as a rule makes it: of Go's types, and not of those that JSON decodes to.
var exemption = map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []string{"s"}}

// What takes a change back is found by what was there, what the change has made, and what is there by now: by value, wherever that is.
func TestReverse(t *testing.T) {
	const (
		webhook  = `{"webhooks":[{"name":"w","failurePolicy":"Fail"}]}`
		selector = `{"webhooks":[{"name":"w","namespaceSelector":{"matchExpressions":[{"key":"theirs"}]}}]}`
		ours     = `{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["s"]}`
	)
	ignore := PatchOf(graph.Identity{}, Test("/webhooks/0/name", "w"), Replace("/webhooks/0/failurePolicy", "Ignore"))
	exempt := PatchOf(graph.Identity{}, Add("/webhooks/0/namespaceSelector/matchExpressions/-", exemption))
	first := PatchOf(graph.Identity{}, Add("/webhooks/0/namespaceSelector", map[string]any{"matchExpressions": []any{exemption}}))
	owner := PatchOf(graph.Identity{}, Test("/metadata/ownerReferences/0/uid", "a"), Remove("/metadata/ownerReferences/0"))
	unblock := PatchOf(graph.Identity{}, Replace("/metadata/ownerReferences/0/blockOwnerDeletion", false))
	for name, test := range map[string]struct {
		op                Op
		before, now, want string
		standing          Standing
	}{
		"as it was left":      {ignore, webhook, `{"webhooks":[{"name":"w","failurePolicy":"Ignore"}]}`, `[{"op":"test","path":"/webhooks/0/failurePolicy","value":"Ignore"},{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Fail"},{"op":"test","path":"/webhooks/0/name","value":"w"}]`, Made},
		"another before it":   {ignore, webhook, `{"webhooks":[{"name":"x","failurePolicy":"Ignore"},{"name":"w","failurePolicy":"Ignore"}]}`, `[{"op":"test","path":"/webhooks/1/failurePolicy","value":"Ignore"},{"op":"replace","path":"/webhooks/1/failurePolicy","value":"Fail"},{"op":"test","path":"/webhooks/1/name","value":"w"}]`, Made},
		"put back by a user":  {ignore, webhook, webhook, `null`, AsBefore},
		"the webhook is gone": {ignore, webhook, `{"webhooks":[]}`, `null`, AsBefore},
		"it has another name": {ignore, webhook, `{"webhooks":[{"name":"x","failurePolicy":"Ignore"}]}`, `null`, Altered},

		"an entry beside a guard's own":      {exempt, selector, `{"webhooks":[{"name":"w","namespaceSelector":{"matchExpressions":[{"key":"theirs"},` + ours + `]}}]}`, `[{"op":"test","path":"/webhooks/0/namespaceSelector/matchExpressions/1","value":` + ours + `},{"op":"remove","path":"/webhooks/0/namespaceSelector/matchExpressions/1"},{"op":"test","path":"/webhooks/0/name","value":"w"}]`, Made},
		"an entry moved":                     {exempt, selector, `{"webhooks":[{"name":"w","namespaceSelector":{"matchExpressions":[` + ours + `,{"key":"theirs"},{"key":"new"}]}}]}`, `[{"op":"test","path":"/webhooks/0/namespaceSelector/matchExpressions/0","value":` + ours + `},{"op":"remove","path":"/webhooks/0/namespaceSelector/matchExpressions/0"},{"op":"test","path":"/webhooks/0/name","value":"w"}]`, Made},
		"an entry that others edited":        {exempt, selector, `{"webhooks":[{"name":"w","namespaceSelector":{"matchExpressions":[{"key":"theirs"},{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["s","t"]}]}}]}`, `null`, Altered},
		"an entry of the same key beside it": {exempt, selector, `{"webhooks":[{"name":"w","namespaceSelector":{"matchExpressions":[{"key":"theirs"},` + ours + `,{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["t"]}]}}]}`, `[{"op":"test","path":"/webhooks/0/namespaceSelector/matchExpressions/1","value":` + ours + `},{"op":"remove","path":"/webhooks/0/namespaceSelector/matchExpressions/1"},{"op":"test","path":"/webhooks/0/name","value":"w"}]`, Made},
		"an entry of the same key alone":     {exempt, selector, `{"webhooks":[{"name":"w","namespaceSelector":{"matchExpressions":[{"key":"theirs"},{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["t"]}]}}]}`, `null`, AsBefore},
		"an entry that others removed":       {exempt, selector, selector, `null`, AsBefore},
		"a field that others added to":       {first, `{"webhooks":[{"name":"w"}]}`, `{"webhooks":[{"name":"w","namespaceSelector":{"matchExpressions":[` + ours + `],"matchLabels":{"a":"b"}}}]}`, `[{"op":"test","path":"/webhooks/0/namespaceSelector/matchExpressions","value":[` + ours + `]},{"op":"remove","path":"/webhooks/0/namespaceSelector/matchExpressions"},{"op":"test","path":"/webhooks/0/name","value":"w"}]`, Made},
		"a field that was not there":         {first, `{"webhooks":[{"name":"w","namespaceSelector":{}}]}`, `{"webhooks":[{"name":"w","namespaceSelector":{"matchExpressions":[` + ours + `]}}]}`, `[{"op":"test","path":"/webhooks/0/namespaceSelector","value":{"matchExpressions":[` + ours + `]}},{"op":"replace","path":"/webhooks/0/namespaceSelector","value":{}},{"op":"test","path":"/webhooks/0/name","value":"w"}]`, Made},
		"a value that others changed":        {ScaleOf(graph.Identity{}, Replicas{0, 2}), `{"spec":{"replicas":0}}`, `{"spec":{"replicas":5}}`, `null`, Altered},
		"a number":                           {ScaleOf(graph.Identity{}, Replicas{0, 2}), `{"spec":{"replicas":0}}`, `{"spec":{"replicas":2}}`, `[{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":0}]`, Made},
		"a reference, of two":                {owner, `{"metadata":{"ownerReferences":[{"uid":"a"},{"uid":"b"}]}}`, `{"metadata":{"ownerReferences":[{"uid":"b"}]}}`, `[{"op":"add","path":"/metadata/ownerReferences/-","value":{"uid":"a"}}]`, Made},
		"the last reference":                 {owner, `{"metadata":{"ownerReferences":[{"uid":"a"}]}}`, `{"metadata":{}}`, `[{"op":"add","path":"/metadata/ownerReferences","value":[{"uid":"a"}]}]`, Made},
		"a reference that exists again":      {owner, `{"metadata":{"ownerReferences":[{"uid":"a"}]}}`, `{"metadata":{"ownerReferences":[{"uid":"a"}]}}`, `null`, AsBefore},
		"a flag of a moved reference":        {unblock, `{"metadata":{"ownerReferences":[{"uid":"a","blockOwnerDeletion":true}]}}`, `{"metadata":{"ownerReferences":[{"uid":"b"},{"uid":"a","blockOwnerDeletion":false}]}}`, `[{"op":"test","path":"/metadata/ownerReferences/1/blockOwnerDeletion","value":false},{"op":"replace","path":"/metadata/ownerReferences/1/blockOwnerDeletion","value":true},{"op":"test","path":"/metadata/ownerReferences/1/uid","value":"a"}]`, Made},
		"a pause":                            {Op{Verb: Resume}, `{"spec":{"paused":true}}`, `{"spec":{}}`, `[{"op":"add","path":"/spec/paused","value":true}]`, Made},
		"a taint, with what is added":        {TaintOf(graph.Identity{}, "k=v:NoExecute"), `{"spec":{}}`, `{"spec":{"taints":[{"key":"k","value":"v","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"}]}}`, `[{"op":"test","path":"/spec/taints/0","value":{"effect":"NoExecute","key":"k","timeAdded":"2026-01-01T00:00:00Z","value":"v"}},{"op":"remove","path":"/spec/taints/0"}]`, Made},
		"an annotation with a slash":         {PatchOf(graph.Identity{}, Remove("/metadata/annotations/a~1b")), `{"metadata":{"annotations":{"a/b":"1"}}}`, `{"metadata":{"annotations":{"c":"2"}}}`, `[{"op":"add","path":"/metadata/annotations/a~1b","value":"1"}]`, Made},
		"a finalizer twice":                  {PatchOf(graph.Identity{}, Remove("/metadata/finalizers/1")), `{"metadata":{"finalizers":["x/y","x/y"]}}`, `{"metadata":{"finalizers":["x/y"]}}`, `[{"op":"add","path":"/metadata/finalizers/-","value":"x/y"}]`, Made},
		"an int beside a float":              {PatchOf(graph.Identity{}, Replace("/spec/a", 2.0)), `{"spec":{"a":1}}`, `{"spec":{"a":2}}`, `[{"op":"test","path":"/spec/a","value":2},{"op":"replace","path":"/spec/a","value":1}]`, Made},
		"a list that was there, emptied":     {exempt, selector, `{"webhooks":[{"name":"w"}]}`, `null`, AsBefore},
	} {
		var before, now map[string]any
		if err := cmp.Or(kjson.Unmarshal([]byte(test.before), &before), kjson.Unmarshal([]byte(test.now), &now)); err != nil {
			t.Fatal(err)
		}
		fields, err := test.op.Fields(before)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		steps, standing := Reverse(fields, before, now)
		if got, _ := json.Marshal(steps); string(got) != test.want || standing != test.standing {
			t.Errorf("%s: %s\n got %s\nwant %s", name, standing, got, test.want)
		}
	}
}

// A change that is taken back at once leaves the object as it was, and one that is made among others' changes leaves these.
func TestReverseRoundTrip(t *testing.T) {
	entry := func(name string) map[string]any { return map[string]any{"name": name, "policy": "Fail"} }
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}`), 1, 5, rapid.ID).Draw(t, "names")
		var webhooks, finalizers []any
		for _, name := range names {
			webhooks, finalizers = append(webhooks, entry(name)), append(finalizers, "x/"+name)
		}
		before := map[string]any{"webhooks": webhooks, "metadata": map[string]any{"finalizers": finalizers}}
		steps := []Step{Test("/metadata/uid", "")}
		at := func(label string) string {
			return []string{"0", "1", "2", "3", "4"}[rapid.IntRange(0, len(names)-1).Draw(t, label)]
		}
		if rapid.Bool().Draw(t, "webhook") {
			steps = append(steps, Replace("/webhooks/"+at("which")+"/policy", "Ignore"))
		}
		if rapid.Bool().Draw(t, "finalizer") {
			steps = append(steps, Remove("/metadata/finalizers/"+at("of")))
		}
		if len(steps) == 1 {
			steps = append(steps, Add("/metadata/finalizers/-", "ours/x"))
		}
		op := Op{Verb: Patch, Patch: steps}
		fields, err := op.Fields(before)
		if err != nil {
			t.Fatal(err)
		}
		after, err := apply(before, steps[1:])
		if err != nil {
			t.Fatal(err)
		}
		theirs := rapid.Bool().Draw(t, "theirs")
		if theirs { // others put entries before all
			after["webhooks"] = append([]any{entry("zzzz")}, asList(after["webhooks"])...)
		}
		back, standing := Reverse(fields, before, after)
		if standing != Made {
			t.Fatalf("%s: %v", standing, fields)
		}
		if after, err = apply(after, back); err != nil {
			t.Fatal(err)
		}
		if _, standing := Reverse(fields, before, after); standing != AsBefore {
			t.Fatalf("taken back, and %s", standing)
		}
		if left := minus(asList(after["webhooks"]), webhooks); len(left) != map[bool]int{true: 1}[theirs] {
			t.Fatalf("others' entries: %v", left)
		}
	})
}
