// SPDX-License-Identifier: Apache-2.0

package deletiontest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/deletiontest"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/differential/live"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

const (
	// controllers are those of kube-controller-manager for which a Kit stands.
	controllers = "garbage-collector-controller,namespace-controller," +
		"persistentvolumeclaim-protection-controller,persistentvolume-protection-controller"
	// still is how long nothing changes when they are done, and stuck when they will not get further.
	still, stuck = 2 * time.Second, 20 * time.Second
)

// TestScenarios plays the conformance scenarios beside a Kit, and beside kube-controller-manager. They end the same way
// there, after each action.
func TestScenarios(t *testing.T) {
	cp := controlplane.Start(t, controlplane.Options{Controllers: controllers})
	control(t, cp.Stop)
	world, err := live.Connect(t.Context(), cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ours := prepare(t, world)
	t.Run("kit", func(t *testing.T) {
		kit := deletiontest.Start(t, world.Config)
		perform(t, ours, func(int) { kit.Settle() })
	})
	theirs := prepare(t, world)
	control(t, cp.Start)
	perform(t, theirs, func(phase int) { await(t, world, ours, theirs, phase) })
	for i, a := range ours {
		b := theirs[i]
		t.Run(a.name, func(t *testing.T) {
			switch diff, why := a.differs(b), otherwise[a.scenario.Name]; {
			case diff == "":
			case why != "":
				t.Logf("%s:\n%s", why, diff)
			default:
				t.Errorf("- beside kube-controller-manager, + beside the kit:\n%s\n%s", diff, a.scenario)
			}
		})
	}
}

const unblocked = "the DELETE after the unblocking patch conflicts, and often becomes Background"

// otherwise are the scenarios that may end otherwise, and why: docs/internals/preview.md lists it, or it is a race of
// kube-controller-manager.
var otherwise = map[string]string{
	"B3: a name that no object can have leads nowhere, and so proves nothing":           "what such a name asks for is an accident",
	"C2: a dependent in foreground deletion makes its owner let go of its own":          unblocked,
	"C2/C7: what comes after the reference is unblocked is a foreground deletion":       unblocked,
	"C2/D7: only references that block are unblocked, and the others stay as they are":  unblocked,
	"D4: dependents that come late":                                                     "decided about when their owner changes",
	"D5: also when that is a dependent itself":                                          "decided about while the owner waits, or after",
	"D6: and one that it orphans in the same moment, or later, is decided about before": "decided about before or after",
}

func control(t *testing.T, do func(component string) error) {
	t.Helper()
	if err := do("controller-manager"); err != nil {
		t.Fatal(err)
	}
}

type states = map[gctest.Path]gctest.State

// act is a scenario on stage.
type act struct {
	name     string
	scenario *gctest.Scenario
	play     gctest.Play
	// ends are what was left at first and after each action, and answers what is wrong with the answers.
	ends    []states
	answers []string
}

// differs says how an act went otherwise than with kube-controller-manager. Where the scenario has several ends both may
// have any of them.
func (a *act) differs(original *act) string {
	var diff string
	for phase, left := range original.ends {
		if diff += a.differsIn(phase, left); phase > 0 && a.answers[phase-1] != original.answers[phase-1] {
			diff += fmt.Sprintf("answer to action %d\n- %s\n+ %s\n", phase, original.answers[phase-1], a.answers[phase-1])
		}
	}
	last := len(a.ends) - 1
	if a.scenario.Check(a.ends[last]) == "" && a.scenario.Check(original.ends[last]) == "" {
		return ""
	}
	return diff
}

// differsIn compares what is left. blockOwnerDeletion of custom resources is not, which kube-controller-manager fails to
// set to false.
func (a *act) differsIn(phase int, original states) string {
	var diff strings.Builder
	for _, o := range a.scenario.Objects {
		ours, theirs := a.ends[phase][o.Path].String(), original[o.Path].String()
		if strings.ReplaceAll(ours, "~", "") != strings.ReplaceAll(theirs, "~", "") {
			fmt.Fprintf(&diff, "after %d actions\n- %s %s\n+ %s %s\n", phase, o.Path, theirs, o.Path, ours)
		}
	}
	return diff.String()
}

// prepare creates the objects of all scenarios, but of those about what kube-controller-manager does not know: waves,
// collections that are limited to a namespace, and pods on nodes, which need a kubelet.
func prepare(t *testing.T, world *live.World) []*act {
	t.Helper()
	var acts []*act
	all := gctest.Scenarios(t)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		for i := range all[file] {
			s := &all[file][i]
			if _, needsNamespaces := s.Needs["namespace-controller"]; !isPlain(s) || world.Lacks(s) != "" && !needsNamespaces {
				continue
			}
			acts = append(acts, &act{name: file + "/" + s.Name, scenario: s})
		}
	}
	t.Logf("%d scenarios", len(acts))
	each(t, acts, func(a *act) (err error) {
		if a.play, err = world.Play(t.Context(), a.scenario); err == nil {
			err = gctest.Prepare(t.Context(), a.play, a.scenario)
		}
		return err
	})
	return acts
}

func isPlain(s *gctest.Scenario) bool {
	defines := func(o gctest.Object) bool { return o.Kind == "crd" }
	if !nightly.Is() && controlplane.Other() == "" && (len(s.Actions) > 1 || slices.ContainsFunc(s.Objects, defines)) {
		return false // the short form
	}
	if slices.ContainsFunc(s.Objects, func(o gctest.Object) bool { return o.Node != "" }) {
		return false
	}
	for _, a := range s.Actions {
		if len(a.Then)+len(a.Early) > 0 || a.In != "" {
			return false
		}
	}
	return true
}

// perform does the actions of all scenarios, one of each at a time, and lets the controllers come to rest before the first and after each.
func perform(t *testing.T, acts []*act, rest func(phase int)) {
	t.Helper()
	longest := 0
	for _, a := range acts {
		longest = max(longest, len(a.scenario.Actions))
	}
	for phase := range longest + 1 {
		present := within(acts, phase)
		if phase > 0 {
			each(t, present, func(a *act) error {
				a.answers = append(a.answers, a.do(t.Context(), a.scenario.Actions[phase-1]))
				return nil
			})
		}
		begun := time.Now()
		rest(phase)
		t.Logf("after %d actions at rest in %s", phase, time.Since(begun).Round(time.Second/10))
		each(t, present, func(a *act) error {
			states, err := a.play.States(t.Context())
			a.ends = append(a.ends, states)
			return err
		})
	}
}

// within returns the acts that have an action in the phase.
func within(acts []*act, phase int) []*act {
	var present []*act
	for _, a := range acts {
		if phase <= len(a.scenario.Actions) {
			present = append(present, a)
		}
	}
	return present
}

// do does an action as a user: the controllers are there anyway. It returns what is wrong with the answer.
func (a *act) do(ctx context.Context, action gctest.Action) string {
	switch action.Verb {
	case gctest.Collect:
		return ""
	case gctest.Delete:
		for _, p := range action.Paths {
			err := a.play.Delete(ctx, p, metav1.DeleteOptions{PropagationPolicy: &action.Policy, GracePeriodSeconds: action.Grace})
			if err != nil && !apierrors.IsNotFound(err) {
				return err.Error()
			}
		}
		return ""
	}
	if _, err := gctest.Do(ctx, a.play, a.scenario, action); err != nil {
		return string(apierrors.ReasonForError(err)) + " is not what it says"
	}
	return ""
}

// await waits until kube-controller-manager has done what the Kit did, or nothing has changed for long. It has begun when
// an object is gone that was made for that.
func await(t *testing.T, world *live.World, ours, theirs []*act, phase int) {
	t.Helper()
	canary, err := world.Client.Resource(configMaps).Namespace("default").Create(t.Context(), newCanary(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var before map[types.UID]string
	for changed := time.Now(); ; time.Sleep(still / 4) {
		snapshot, err := world.Reader.Snapshot(t.Context(), cluster.Scope{})
		if err != nil {
			t.Fatal(err)
		}
		now := map[types.UID]string{}
		for o := range snapshot.Objects() {
			if kind := o.Resource.Kind; kind != "Lease" && kind != "Event" { // those that kube-controller-manager itself writes
				now[o.UID] = o.ResourceVersion
			}
		}
		if !maps.Equal(before, now) {
			before, changed = now, time.Now()
			continue
		}
		_, waits := now[canary.GetUID()]
		switch rested := time.Since(changed); {
		case waits && rested > 3*stuck:
			t.Fatal("kube-controller-manager does not collect")
		case !waits && (rested > stuck || rested > still && alike(t, ours, theirs, phase)):
			return
		}
	}
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// newCanary returns an object whose owner does not exist.
func newCanary() *unstructured.Unstructured {
	canary := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	canary.SetGenerateName("canary-")
	canary.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "nobody", UID: "nobody"}})
	return canary
}

func indexes[T any](all []T) (is []int) {
	for i := range all {
		is = append(is, i)
	}
	return is
}

// alike reports whether all is as it was beside the Kit, or otherwise right.
func alike(t *testing.T, ours, theirs []*act, phase int) bool {
	t.Helper()
	var different atomic.Int32
	each(t, indexes(ours), func(i int) error {
		if phase >= len(ours[i].ends) || otherwise[ours[i].scenario.Name] != "" {
			return nil
		}
		left, err := theirs[i].play.States(t.Context())
		if err == nil && ours[i].differsIn(phase, left) != "" && ours[i].scenario.Check(left) != "" {
			different.Add(1)
		}
		return err
	})
	return different.Load() == 0
}
