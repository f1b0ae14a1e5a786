// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// How fast a run was is said where it wrote enough for that to mean something.
func TestPace(t *testing.T) {
	for _, test := range []struct {
		writes int
		took   time.Duration
		want   string
	}{
		{0, 100 * time.Millisecond, "0 writes in 0.1 s"},
		{1, 85200 * time.Millisecond, "1 write in 85.2 s"},
		{20, 85 * time.Second, "20 writes in 85.0 s"},
		{500, 2 * time.Second, "500 writes in 2.0 s (250 a second)"},
	} {
		if got := pace(test.writes, test.took); got != test.want {
			t.Errorf("%d writes in %s: got %q, want %q", test.writes, test.took, got, test.want)
		}
	}
}

// An answer leaves the line of the question behind it, also when it is none.
func TestAnswer(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	silent, _ := io.Pipe()
	for name, test := range map[string]struct {
		ctx           context.Context
		in            io.Reader
		answer, shown string
		err           error
	}{
		"an answer":     {t.Context(), strings.NewReader("yes\nmore"), "yes\n", "Go on? ", nil},
		"end of input":  {t.Context(), strings.NewReader(""), "", "Go on? \n", nil},
		"a broken line": {t.Context(), strings.NewReader("y"), "y", "Go on? \n", nil},
		"Ctrl-C":        {interrupted, silent, "", "Go on? \n", context.Canceled},
	} {
		var shown bytes.Buffer
		g := &globals{IOStreams: genericiooptions.IOStreams{In: test.in, ErrOut: &shown}}
		answer, err := g.ask(test.ctx, "Go on? ", false)
		if answer != test.answer || !errors.Is(err, test.err) || shown.String() != test.shown {
			t.Errorf("%s: got %q, %v, and shown was %q", name, answer, err, shown.String())
		}
	}
}

// A command that names several objects is told what it needs when one of them has gone.
func TestAgain(t *testing.T) {
	const plain = "Run the same command again to resume."
	const named = "Run the same command again to resume, with --ignore-not-found if something that it names is gone by then."
	for _, test := range []struct {
		targets   int
		demanding bool
		want      string
	}{{0, false, plain}, {1, true, plain}, {2, false, plain}, {2, true, named}} {
		told := &telling{demanding: test.demanding}
		j := &change.Job{Job: preview.Job{Targets: make([]graph.Identity, test.targets)}}
		if got := told.again(j, &gc.Report{}); got != test.want {
			t.Errorf("%d targets, demanding %t: got %q, want %q", test.targets, test.demanding, got, test.want)
		}
	}
}

// What the same command would not find again is shown by collect.
func TestAgainByCollect(t *testing.T) {
	configMaps := &graph.Resource{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("configmaps"), Kind: "ConfigMap", Namespaced: true}
	object := func(name string, finalizers ...string) graph.Object {
		o := graph.Object{Resource: configMaps, Namespace: "shop", Name: name, UID: types.UID(name), Finalizers: finalizers}
		if finalizers != nil {
			o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		return o
	}
	owned := func(o graph.Object, owner string) graph.Object {
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: types.UID(owner)}}
		return o
	}
	s := &graph.Snapshot{}
	s.Add(object("a"))
	a := object("a")
	j := &change.Job{Graph: graph.New(s), Job: preview.Job{Targets: []graph.Identity{a.Identity()}}}
	const collect, plain = "'kubectl gc collect -n shop --dry-run=client'", "Run the same command again to resume."
	for name, test := range map[string]struct {
		owner gc.Result
		left  graph.Object
		want  string
	}{
		"its owner is there":                {gc.Remaining, owned(object("d"), "a"), plain},
		"its owner is gone":                 {gc.Deleted, owned(object("d"), "a"), "The remaining objects (1) have lost their owners: " + collect + " shows how they are deleted."},
		"it orphans":                        {gc.Deleted, owned(object("d", metav1.FinalizerOrphanDependents), "a"), "The remaining objects (1) have lost their owners: " + collect + " shows how they are deleted."},
		"a controller has to let it go":     {gc.Deleted, owned(object("d", "example.com/x"), "a"), plain},
		"an owner that nothing is known of": {gc.Deleted, owned(object("d"), "b"), plain},
	} {
		report := &gc.Report{Outcomes: []gc.Outcome{{Object: object("a"), Result: test.owner}, {Object: test.left, Result: gc.Remaining}}}
		if test.owner == gc.Remaining {
			report.Outcomes[0].Object = object("a", "example.com/x")
		}
		told := &telling{deletionOptions: &deletionOptions{globals: &globals{name: "kubectl gc"}}}
		if got := told.again(j, report); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// What is asked says what is done, where, and what that destroys.
func TestQuestionText(t *testing.T) {
	destroyed := []foresight.Loss{{Volume: "shop-db", Size: "5Gi"}}
	what := "delete pvc/db -n shop" + (&answer.Where{Context: "prod-eu", Server: "https://10.0.0.1"}).In()
	for _, test := range []struct {
		q    change.Question
		want string
	}{
		{change.Question{}, "Delete pvc/db -n shop in context prod-eu? (y/N): "},
		{change.Question{Name: "db", Destroyed: destroyed}, `Delete pvc/db -n shop in context prod-eu and DESTROY 5Gi on pv/shop-db? Type "db" to continue: `},
		{change.Question{Name: "db", Destroyed: slices.Repeat(destroyed, 5)},
			`Delete pvc/db -n shop in context prod-eu and DESTROY 25Gi in 5 volumes? Type "db" to continue: `},
		{change.Question{Name: "kube-system", System: true}, `Delete pvc/db -n shop in context prod-eu? It belongs to the system. Type "kube-system" to continue: `},
	} {
		if got := questionText(what, &test.q); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
