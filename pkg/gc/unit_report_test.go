// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// What is said of each object in the end.
func TestOutcomes(t *testing.T) {
	for _, s := range []session{
		{
			name: "everything that can become of an object",
			world: `configmap/a
				configmap/deleted < configmap/a
				configmap/kept < configmap/a secret/k
				configmap/unknown < configmap/a gadget/g
				configmap/below < configmap/kept
				configmap/held finalizers=x,y < configmap/a
				configmap/none
				secret/k`,
			do: "delete a Background",
			outcomes: `configmap/a Deleted
				configmap/below Untouched: its owner ConfigMap/kept is still there
				configmap/deleted Deleted
				configmap/held Remaining: finalizer x, y
				configmap/kept OwnerReferenceRemoved: kept by Secret/k
				configmap/unknown Unknown: its owner gadget/g has a kind that the server does not serve ()`,
		},
		{
			name: "several blocking dependents",
			world: `configmap/a
				configmap/b finalizers=x < configmap/a!
				configmap/c finalizers=x < configmap/a!`,
			do: "delete a Foreground",
			outcomes: `configmap/a Remaining: 2 blocking dependents must go first [ConfigMap/shop/b] [ConfigMap/shop/c]
				configmap/b Remaining: finalizer x
				configmap/c Remaining: finalizer x`,
		},
		{
			name:     "a pod in its grace period",
			world:    "pod/p deleting grace=30 finalizers=x",
			do:       "delete p Background",
			outcomes: "pod/p Remaining: finalizer x; its kubelet must end it",
		},
		{
			name:     "without a grace period nobody has to",
			world:    "pod/p deleting grace=0 finalizers=x",
			do:       "delete p Background",
			outcomes: "pod/p Remaining: finalizer x",
		},
		{
			name: "one of several owners lost, and the others gone: nothing keeps it",
			world: `configmap/a
				configmap/k
				configmap/b < configmap/a configmap/k`,
			do:     "delete a Background",
			script: "answer PATCH b: remove k",
			outcomes: `configmap/a Deleted
				configmap/b Remaining: nothing keeps it, but it was not reached`,
		},
		{
			name:  "orphaned, though somebody else did it",
			world: "configmap/a\nconfigmap/b < configmap/a",
			do:    "delete a Orphan",
			script: `PATCH b: own b
				GET b: touch b`,
			outcomes: `configmap/a Deleted
				configmap/b Orphaned`,
		},
		{
			name: "a collection speaks of what it had to look at",
			world: `configmap/a
				configmap/b < configmap/a
				configmap/c < configmap/gone configmap/a
				configmap/d deleting finalizers=x
				configmap/e deleting finalizers=orphan
				configmap/f < configmap/e`,
			do: "collect",
			outcomes: `configmap/c OwnerReferenceRemoved: kept by ConfigMap/a
				configmap/e Deleted
				configmap/f Orphaned`,
		},
		{
			name:     "a target that is not there at all",
			world:    "configmap/a",
			do:       "delete nobody Background",
			requests: " ",
			outcomes: " ",
		},
	} {
		t.Run(s.name, s.test)
	}
}

// A failed write is forgiven when a later one succeeds.
func TestForgiven(t *testing.T) {
	s := session{
		world: `configmap/a
			configmap/b < configmap/a!`,
		do:     "delete a Foreground",
		script: "DELETE b: 500",
		requests: `DELETE configmap/a Foreground
			GET configmap/a
			DELETE configmap/b Background
			DELETE configmap/b Background
			PATCH configmap/a drop finalizer foregroundDeletion`,
		outcomes: "configmap/a Deleted\nconfigmap/b Deleted",
	}
	s.test(t)
}

// Steps are the writes with the answers, in order.
func TestSteps(t *testing.T) {
	objects := parseWorld(t, `configmap/a
		configmap/b < configmap/a!
		configmap/c < configmap/a configmap/k
		configmap/k`)
	f := newFake(t, objects, "DELETE b: always 403")
	var observed []Step
	r, err := perform(t, f, graphOf(objects), "delete a Foreground", Options{Observer: func(s Step) { observed = append(observed, s) }})
	if err != nil {
		t.Fatal(err)
	}
	format := func(steps []Step) []string {
		var lines []string
		for _, s := range steps {
			line := string(s.Action) + " " + short(&s.Object) + "@" + s.Object.ResourceVersion
			if s.Action == ActionDelete {
				line += " " + string(*s.Options.PropagationPolicy) + " of " + string(*s.Options.Preconditions.UID) + "@" + *s.Options.Preconditions.ResourceVersion
			} else {
				line += " " + formatPatch(s.Patch)
			}
			if s.Err != nil {
				line += ": " + s.Err.Error()
			}
			lines = append(lines, line+" ("+s.Reason+")")
		}
		return lines
	}
	want := lines(`Delete configmap/a@1 Foreground of a@1 (named by the user)
		Delete configmap/b@1 Background of b@1: things "b" is forbidden: not for you (its owner ConfigMap/a waits for its dependents' deletion)
		RemoveOwnerReferences configmap/c@1 drop owners [a] (kept by ConfigMap/k)
		Delete configmap/b@1 Background of b@1: things "b" is forbidden: not for you (its owner ConfigMap/a waits for its dependents' deletion)`)
	if diff := cmp.Diff(want, format(r.Steps)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(format(r.Steps), format(observed)); diff != "" {
		t.Errorf("observed (-reported +observed):\n%s", diff)
	}
	var remaining []string
	for _, o := range r.Remaining() {
		remaining = append(remaining, o.Object.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, remaining); diff != "" {
		t.Errorf("remaining (-want +got):\n%s", diff)
	}
}

// The grace period is for the targets alone.
func TestGracePeriod(t *testing.T) {
	objects := parseWorld(t, "pod/p\nconfigmap/b < pod/p")
	var periods []string
	observer := func(s Step) {
		period := short(&s.Object) + " default"
		if g := s.Options.GracePeriodSeconds; g != nil {
			period = short(&s.Object) + " given"
		}
		periods = append(periods, period)
	}
	_, err := New(newFake(t, objects, ""), graphOf(objects), Options{Observer: observer}).
		Delete(t.Context(), targetsOf("p"), DeleteOptions{Policy: "Background", GracePeriodSeconds: new(int64(3))})
	if diff := cmp.Diff([]string{"pod/p given", "configmap/b default"}, periods); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// Whom a deletion concerns.
func TestConcerned(t *testing.T) {
	const world = `namespace/shop
		namespace/other
		crd/widgets.example.com
		configmap/a
		configmap/b < configmap/a
		configmap/c < configmap/b node/n
		other:configmap/d < node/c
		other:widget/w
		widget/v
		configmap/x < widget/v
		node/n
		configmap/y < secret/gone
		configmap/waits deleting finalizers=foregroundDeletion
		configmap/blocks < configmap/waits!
		configmap/waiter deleting finalizers=foregroundDeletion
		configmap/e < configmap/waiter!
		configmap/f < configmap/waiter`
	for _, test := range []struct{ targets, want string }{
		{"a", "a b c d"},
		{"c n", "c d n"},
		{"gone", "gone y"},
		{"nobody", ""},
		{"other", "d other w"},
		{"widgets.example.com", "v w widgets.example.com x"},
		{"blocks", "blocks waits"},
		{"e", "e f waiter"},
		{"f", "f"},
	} {
		var targets []types.UID
		for _, name := range strings.Fields(test.targets) {
			targets = append(targets, types.UID(name))
		}
		var got []string
		for n := range Concerned(graphOf(parseWorld(t, world)), targets).All() {
			got = append(got, string(n.Object().UID))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s concerns %s, want %s", test.targets, got, test.want)
		}
	}
}
