// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What was made or changed since the waves were made, and goes with one that is to come,
// keeps that one back: who made the waves did not know of it.
func TestUnforeseen(t *testing.T) {
	for _, test := range []struct{ name, script, outcomes string }{
		{"nothing", "", "configmap/a Deleted\nconfigmap/b Deleted\nconfigmap/c Deleted"},
		{"a finalizer more", "DELETE a: keep c", "configmap/a Deleted\nconfigmap/b Remaining: not deleted, because it would take along what was made or changed meanwhile: ConfigMap/shop/c\nconfigmap/c Untouched: its owner ConfigMap/b is still there"},
		{"one that went again", "DELETE a: keep c; free c", "configmap/a Deleted\nconfigmap/b Deleted\nconfigmap/c Deleted"},
		{"an object that is not concerned", "DELETE a: create configmap/d", "configmap/a Deleted\nconfigmap/b Deleted\nconfigmap/c Deleted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects := parseWorld(t, "configmap/a\nconfigmap/b\nconfigmap/c < configmap/b")
			f := newFake(t, objects, test.script)
			report, err := perform(t, f, graphOf(objects), "delete a then b Background", Options{
				Unforeseen: func(o *graph.Object) bool { return o.HasFinalizer("example.com/x") },
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(lines(test.outcomes), outcomes(report)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What goes early goes as long as it would go with what was named: not when it, or what owns
// it, was given another owner, or has lost all, nor when what it goes with is not chosen any more.
func TestEarly(t *testing.T) {
	const (
		first  = "DELETE configmap/z Background\n"
		rest   = "\nDELETE configmap/b Background\nDELETE configmap/m Background"
		went   = "configmap/a Deleted\nconfigmap/b Deleted\nconfigmap/m Deleted\nconfigmap/z Deleted"
		stayed = "configmap/a Remaining: not deleted, because its owners, or those of what owns it, are not those of the plan\n" +
			"configmap/b Remaining: not deleted, because what was to go before it is still there: ConfigMap/shop/a\n" +
			"configmap/m Untouched: its owner ConfigMap/b is still there\nconfigmap/z Deleted"
		unchosen = "configmap/a Remaining: not deleted, because this does not match the selector any more: ConfigMap/shop/b\n" +
			"configmap/b Remaining: not deleted, because this does not match the selector any more: ConfigMap/shop/b\n" +
			"configmap/m Untouched: its owner ConfigMap/b is still there\nconfigmap/z Deleted"
		unreached = "configmap/a Remaining: it was not reached\nconfigmap/b Remaining: it was not reached\n" +
			"configmap/m Untouched: its owner ConfigMap/b is still there\nconfigmap/z Deleted"
	)
	for _, test := range []struct {
		name, script, requests, outcomes string
		selected                         bool
		err                              error
	}{
		{name: "nothing has changed", requests: first + "DELETE configmap/a Background" + rest, outcomes: went},
		{
			name: "touched", script: "DELETE a: touch a",
			requests: first + "DELETE configmap/a Background\nGET configmap/a\nDELETE configmap/a Background" + rest, outcomes: went,
		},
		{
			name: "touched again and again", script: strings.Repeat("DELETE a: touch a\n", 4),
			requests: first + strings.Repeat("DELETE configmap/a Background\nGET configmap/a\n", 4) + "DELETE configmap/a Background" + rest, outcomes: went,
		},
		{name: "another owner before its turn", script: "DELETE z: own a < configmap/m configmap/k", requests: first, outcomes: stayed},
		{
			name: "another owner meanwhile", script: "DELETE a: own a < configmap/m configmap/k",
			requests: first + "DELETE configmap/a Background\nGET configmap/a", outcomes: stayed,
		},
		{name: "no owner any more", script: "DELETE z: own a", requests: first, outcomes: stayed},
		{name: "another owner of its owner", script: "DELETE z: own m < configmap/b configmap/k", requests: first, outcomes: stayed},
		{
			name: "somebody deletes it", script: "DELETE a: foreground a",
			requests: first + "DELETE configmap/a Background\nGET configmap/a\nGET configmap/a\nPATCH configmap/a drop finalizer foregroundDeletion" + rest, outcomes: went,
		},
		{
			name: "what it goes with changes and still matches", selected: true, script: "DELETE z: touch b",
			requests: first + "LIST configmap/b\nDELETE configmap/a Background\nLIST configmap/b" + rest, outcomes: went,
		},
		{
			name: "what it goes with does not match any more", selected: true, script: "DELETE z: touch b; deselect b",
			requests: first + "LIST configmap/b", outcomes: unchosen,
		},
		{
			name: "an interrupt while that is asked", selected: true, script: "DELETE z: touch b\nLIST b: cancel; late", err: context.Canceled,
			requests: first + "LIST configmap/b", outcomes: unreached,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects := parseWorld(t, "configmap/a < configmap/m\nconfigmap/m < configmap/b\nconfigmap/b\nconfigmap/k\nconfigmap/z")
			f := newFake(t, objects, test.script)
			g := graphOf(objects)
			targets := targetsOf(g, "z", "a", "b")
			targets[1].Early, targets[1].Wave, targets[2].Wave = true, 1, 2
			if test.selected {
				f.selects(targets[2:])
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f.cancel = cancel
			report, err := New(f, g, Options{}).Delete(ctx, targets, DeleteOptions{Policy: metav1.DeletePropagationBackground})
			if !errors.Is(err, test.err) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(lines(test.outcomes), outcomes(report)); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(lines(test.requests), f.log); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
