// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// parseReferences reads "solid a b, waiting c, unknown d".
func parseReferences(t fatal, text string) References {
	var r References
	for part := range strings.SplitSeq(text, ",") {
		fields := strings.Fields(part)
		for _, name := range fields[1:] {
			ref := parseOwner(t, "configmap/"+name)
			switch fields[0] {
			case "solid":
				r.Solid = append(r.Solid, ref)
			case "dangling":
				r.Dangling = append(r.Dangling, ref)
			case "waiting":
				r.WaitingForDependentsDeletion = append(r.WaitingForDependentsDeletion, ref)
			case "unread":
				r.Unknown = append(r.Unknown, UnknownReference{ref, graph.UnlistedOwner, nil})
			case "unserved":
				r.Unknown = append(r.Unknown, UnknownReference{ref, graph.Unresolvable, nil})
			case "namespaced":
				r.Unknown = append(r.Unknown, UnknownReference{ref, graph.ClusterScopedDependent, nil})
			}
		}
	}
	return r
}

func formatDecision(d Decision) string {
	text := string(d.Action)
	if d.UnblockFirst {
		text += " after unblocking"
	}
	if d.Policy != "" {
		text += " " + string(d.Policy)
	}
	if d.Owners != nil {
		text += fmt.Sprint(" ", d.Owners)
	}
	return text + ": " + d.Reason
}

// What is done with an object, by what its references mean: semantics C.
func TestDecide(t *testing.T) {
	none, some, deleting := Dependents{}, Dependents{Any: true}, Dependents{Any: true, DeletingDependents: true}
	orphan, foreground := metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents
	for _, test := range []struct {
		rule, references, finalizers string
		dependents                   Dependents
		want                         string
	}{
		{"7: what is not known keeps", "unread a", "", some, "Keep: its owner ConfigMap/a could not be read"},
		{"7: beside anything", "dangling a, solid b, waiting c, unread d", "", deleting, "Keep: its owner ConfigMap/d could not be read"},
		{"7: not served", "dangling a, unserved b", "", some, "Keep: its owner ConfigMap/b has a kind that the server does not serve (v1)"},
		{"7: cluster-scoped dependent", "namespaced a, dangling b", orphan, some, "Keep: its owner ConfigMap/a is namespaced and it is not"},

		{"8: only solid", "solid a b", "", some, "Keep: owned by ConfigMap/a"},
		{"8: whatever the finalizers", "solid a", orphan, deleting, "Keep: owned by ConfigMap/a"},

		{"9: solid and dangling", "solid a, dangling b", "", some, "RemoveOwnerReferences [b]: kept by ConfigMap/a"},
		{"9: solid and waiting", "solid a, waiting b c", "", some, "RemoveOwnerReferences [b c]: kept by ConfigMap/a"},
		{"9: dangling first", "waiting w, solid a, dangling b", "", some, "RemoveOwnerReferences [b w]: kept by ConfigMap/a"},
		{"9, C4: by UID, even that of the solid one", "solid a, dangling a", "", none, "RemoveOwnerReferences [a]: kept by ConfigMap/a, whose reference is removed, too: another states the same UID"},

		{"10: waiting, with dependents", "waiting a", "", some, "Delete Foreground: its owner ConfigMap/a waits for its dependents' deletion"},
		{"10: and dangling", "dangling b, waiting a", "", some, "Delete Foreground: its owner ConfigMap/a waits for its dependents' deletion"},
		{"10, C2: a dependent in foreground deletion", "waiting a", "", deleting, "Delete after unblocking Foreground: its owner ConfigMap/a waits for its dependents' deletion"},
		{"10, C3: the finalizer orphan is ignored", "waiting a", orphan, some, "Delete Foreground: its owner ConfigMap/a waits for its dependents' deletion"},

		{"11: waiting, without dependents", "waiting a", "", none, "Delete Background: its owner ConfigMap/a waits for its dependents' deletion"},
		{"11, C3: then orphan counts", "waiting a", orphan, none, "Delete Orphan: its owner ConfigMap/a waits for its dependents' deletion"},
		{"11: only dangling", "dangling a b", "", some, "Delete Background: its owner ConfigMap/a does not exist"},
		{"11: no cycle guard", "dangling a", "", deleting, "Delete Background: its owner ConfigMap/a does not exist"},
		{"11: foreground by its finalizer", "dangling a", foreground, some, "Delete Foreground: its owner ConfigMap/a does not exist"},
		{"11: orphan by its finalizer", "dangling a", "x," + orphan, some, "Delete Orphan: its owner ConfigMap/a does not exist"},
		{"11: orphan before foreground", "dangling a", foreground + "," + orphan, some, "Delete Orphan: its owner ConfigMap/a does not exist"},
		{"11: other finalizers do not matter", "dangling a", "x", some, "Delete Background: its owner ConfigMap/a does not exist"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			o := graph.Object{Finalizers: strings.Split(test.finalizers, ",")}
			if got := formatDecision(Decide(&o, parseReferences(t, test.references), test.dependents)); got != test.want {
				t.Errorf("%s\n got %s\nwant %s", test.references, got, test.want)
			}
		})
	}
}

// The controller flag plays no part (B6), and an object with anything unknown
// is never written to (B1).
func TestDecideProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(of string) (refs []metav1.OwnerReference) {
			for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 2).Draw(t, of) {
				ref := parseOwner(t, "configmap/"+name)
				ref.Controller = new(rapid.Bool().Draw(t, "controller"))
				refs = append(refs, ref)
			}
			return refs
		}
		refs := References{Solid: draw("solid"), Dangling: draw("dangling"), WaitingForDependentsDeletion: draw("waiting")}
		for _, ref := range draw("unknown") {
			refs.Unknown = append(refs.Unknown, UnknownReference{ref, graph.UnlistedOwner, nil})
		}
		dead := len(refs.Dangling) + len(refs.WaitingForDependentsDeletion)
		if len(refs.Solid)+len(refs.Unknown)+dead == 0 {
			t.Skip("no references, no decision")
		}
		d := Decide(&graph.Object{}, refs, Dependents{Any: rapid.Bool().Draw(t, "dependents")})
		want := ActionDelete
		switch {
		case len(refs.Unknown) > 0, len(refs.Solid) > 0 && dead == 0:
			want = ActionKeep
		case len(refs.Solid) > 0:
			want = ActionRemoveOwnerReferences
		}
		if d.Action != want || d.Reason == "" || (d.Policy != "") != (want == ActionDelete) || len(d.Owners) > 0 != (want == ActionRemoveOwnerReferences) {
			t.Fatalf("got %s, want %s", formatDecision(d), want)
		}
	})
}

var errBroken = errors.New("broken")

// stubOwners is a graph.OwnerLookup that notes what it is asked. It answers by the
// name of the owner.
type stubOwners struct {
	mapper meta.RESTMapper
	ref    metav1.OwnerReference
	asked  *[]string
}

func (l stubOwners) Resolve(apiVersion, kind string) (*meta.RESTMapping, error) {
	*l.asked = append(*l.asked, "resolve "+kind)
	if kind == "unread" {
		return nil, graph.ErrUnlisted
	}
	return l.mapper.RESTMapping(schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind(), schema.FromAPIVersionAndKind(apiVersion, kind).Version)
}

func (l stubOwners) Lookup(resource schema.GroupVersionResource, namespace, name string) (*graph.FoundOwner, error) {
	*l.asked = append(*l.asked, fmt.Sprintf("get %s %s/%s", resource.Resource, namespace, name))
	switch name {
	case "absent":
		return nil, nil
	case "broken":
		return nil, errBroken
	case "other":
		return &graph.FoundOwner{UID: "another", DeletingDependents: true}, nil
	case "waiting":
		return &graph.FoundOwner{UID: l.ref.UID, DeletingDependents: true}, nil
	}
	return &graph.FoundOwner{UID: l.ref.UID}, nil
}

// What one reference means, and what is asked to find out: semantics B2, in its
// order. The first rule that applies spares the questions of the others.
func TestClassify(t *testing.T) {
	const remembered = "remembered"
	for _, test := range []struct {
		rule, owner, namespace string
		want, asked            string
	}{
		{"1, 2: memory comes first", "configmap/solid@" + remembered, "shop", "dangling", ""},
		{"1, 2: even for a kind that is not served", "gadget/solid@" + remembered, "shop", "dangling", ""},
		{"1, 2: even for a cluster-scoped dependent", "configmap/solid@" + remembered, "", "dangling", ""},
		{"3: kind not served", "gadget/solid", "shop", "unknown Unresolvable", "resolve gadget"},
		{"3: version not served", "v9/configmap/solid", "shop", "unknown Unresolvable", "resolve ConfigMap"},
		{"3: discovery failed", "unread/solid", "shop", "unknown Unlisted", "resolve unread"},
		{"4: cluster-scoped dependent, before the owner is asked for", "configmap/absent", "", "unknown ClusterScopedDependent", "resolve ConfigMap"},
		{"5: not there", "configmap/absent", "shop", "dangling", "resolve ConfigMap; get configmaps shop/absent"},
		{"6: any other error", "configmap/broken", "shop", "unknown Unlisted", "resolve ConfigMap; get configmaps shop/broken"},
		{"7: another UID, though that one is waiting", "configmap/other", "shop", "dangling", "resolve ConfigMap; get configmaps shop/other"},
		{"8: waiting", "configmap/waiting", "shop", "waiting", "resolve ConfigMap; get configmaps shop/waiting"},
		{"9: solid", "configmap/solid", "shop", "solid", "resolve ConfigMap; get configmaps shop/solid"},
		{"B3: a cluster-scoped owner has no namespace", "node/solid", "shop", "solid", "resolve Node; get nodes /solid"},
		{"B3: of a cluster-scoped dependent", "node/waiting", "", "waiting", "resolve Node; get nodes /waiting"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var asked []string
			r := Classify([]metav1.OwnerReference{parseOwner(t, test.owner)}, test.namespace,
				func(ref metav1.OwnerReference) bool { return ref.UID == remembered },
				func(ref metav1.OwnerReference) graph.OwnerLookup { return stubOwners{servedMapper(), ref, &asked} })
			if got := formatReferences(r); got != test.want || strings.Join(asked, "; ") != test.asked {
				t.Errorf("got %s, asked %q; want %s, %q", got, asked, test.want, test.asked)
			}
		})
	}
}

func formatReferences(r References) string {
	var parts []string
	parts = append(parts, slices.Repeat([]string{"solid"}, len(r.Solid))...)
	parts = append(parts, slices.Repeat([]string{"dangling"}, len(r.Dangling))...)
	parts = append(parts, slices.Repeat([]string{"waiting"}, len(r.WaitingForDependentsDeletion))...)
	for _, u := range r.Unknown {
		parts = append(parts, "unknown "+u.Reason.String())
	}
	return strings.Join(parts, ", ")
}

// Every reference is classified, in order, also behind one that nobody knows.
func TestClassifyAll(t *testing.T) {
	var refs []metav1.OwnerReference
	for _, owner := range []string{"configmap/solid@1", "configmap/broken@2", "configmap/absent@3", "configmap/waiting@4", "configmap/solid@5", "configmap/absent@6"} {
		refs = append(refs, parseOwner(t, owner))
	}
	var asked []string
	got := Classify(refs, "shop", func(metav1.OwnerReference) bool { return false },
		func(ref metav1.OwnerReference) graph.OwnerLookup { return stubOwners{servedMapper(), ref, &asked} })
	want := References{
		Solid: []metav1.OwnerReference{refs[0], refs[4]}, Dangling: []metav1.OwnerReference{refs[2], refs[5]},
		WaitingForDependentsDeletion: refs[3:4], Unknown: []UnknownReference{{refs[1], graph.UnlistedOwner, errBroken}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPatchOwnerReferences(t *testing.T) {
	for _, test := range []struct {
		name  string
		patch Patch
		want  string
	}{
		{"drops every reference with the UID", Patch{RemoveOwners: []types.UID{"a"}}, "b! c"},
		{"several", Patch{RemoveOwners: []types.UID{"a", "c", "nobody"}}, "b!"},
		{"all", Patch{RemoveOwners: []types.UID{"a", "b", "c"}}, ""},
		{"unblocks those that block, and no others", Patch{Unblock: true}, "a~ b~ a~ c"},
		{"leaves them alone otherwise", Patch{RemoveFinalizer: "a"}, "a~ b! a! c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := parseWorld(t, "pod/p < configmap/a~ configmap/b! secret/a! configmap/c")[0]
			before := parseWorld(t, "pod/p < configmap/a~ configmap/b! secret/a! configmap/c")[0]
			got := test.patch.OwnerReferences(o.OwnerReferences)
			if formatOwners(got) != test.want {
				t.Errorf("got %s, want %s", formatOwners(got), test.want)
			}
			for i := range got {
				got[i].Name = "overwritten"
			}
			if diff := cmp.Diff(before, o); diff != "" {
				t.Errorf("the references it was given changed:\n%s", diff)
			}
		})
	}
}

func TestPatchFinalizers(t *testing.T) {
	for _, test := range []struct{ remove, from, want string }{
		{"a", "a b", "b"},
		{"b", "a b c b", "a c"},
		{"x", "a b", "a b"},
		{"a", "a", ""},
		{"", "a b", "a b"},
	} {
		from := strings.Fields(test.from)
		got := Patch{RemoveFinalizer: test.remove}.Finalizers(from)
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s without %s: got %s, want %s", test.from, test.remove, got, test.want)
		}
		for i := range got {
			got[i] = "overwritten"
		}
		if strings.Join(from, " ") != test.from {
			t.Errorf("%s without %s: the list it was given changed to %s", test.from, test.remove, from)
		}
	}
	if got := (Patch{RemoveFinalizer: "a"}).Finalizers([]string{"a"}); got != nil {
		t.Errorf("the last one leaves %#v, want nil: a merge patch needs null", got)
	}
}
