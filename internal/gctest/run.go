// SPDX-License-Identifier: Apache-2.0

package gctest

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

//go:embed testdata/*.txt
var testdata embed.FS

// Scenarios returns the scenarios of the suite, by the name of their file.
func Scenarios(tb testing.TB) map[string][]Scenario {
	tb.Helper()
	files, err := testdata.ReadDir("testdata")
	if err != nil {
		tb.Fatal(err)
	}
	all := map[string][]Scenario{}
	for _, file := range files {
		text, err := testdata.ReadFile("testdata/" + file.Name())
		if err != nil {
			tb.Fatal(err)
		}
		scenarios, err := Parse(string(text))
		if err != nil {
			tb.Fatalf("testdata/%s: %v", file.Name(), err)
		}
		all[strings.TrimSuffix(file.Name(), ".txt")] = scenarios
	}
	return all
}

// World is where scenarios are played.
type World interface {
	// Lacks says which of the scenario's needs this world cannot meet, empty for
	// none.
	Lacks(s *Scenario) string
	// Play makes room for a scenario.
	Play(ctx context.Context, s *Scenario) (Play, error)
}

// Play is one scenario in a World. Errors of requests are those of the API
// server.
type Play interface {
	// Create creates objects, whose owner references may name each other.
	Create(ctx context.Context, objects []*Object) error
	// Delete and Patch are a user's requests. In a Patch nil leaves alone.
	Delete(ctx context.Context, p Path, options metav1.DeleteOptions) error
	Patch(ctx context.Context, p Path, owners *[]Owner, finalizers *[]string) error
	// Drop removes a definition and leaves its instances in storage.
	Drop(ctx context.Context, p Path) error
	// Collector reads what there is, and returns it with the server for one
	// Collector. The context ends with the Collector's work.
	Collector(ctx context.Context) (*graph.Graph, gc.Server, error)
	// CollectorIn is Collector for one that reads the namespace, with the owners
	// outside that have none.
	CollectorIn(ctx context.Context, namespace string) (*graph.Graph, gc.Server, error)
	// Options are those of Collectors. With one worker the order of its writes is
	// fixed, and held to the scenario.
	Options() gc.Options
	// Stage returns the stage on which the objects are.
	Stage() *Stage
	// States returns what is left.
	States(ctx context.Context) (map[Path]State, error)
}

// Result is how a play ended.
type Result struct {
	States map[Path]State
	// Reports are those of the Collectors, in order.
	Reports []*gc.Report
}

// Run plays a scenario in a world and fails the test when the end is none that
// the scenario allows.
func Run(t *testing.T, w World, s *Scenario) {
	t.Helper()
	if reason := w.Lacks(s); reason != "" {
		t.Skip(reason)
	}
	play, err := w.Play(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	result, err := Perform(t.Context(), play, s)
	if err != nil {
		t.Fatalf("%v\n%s", err, s)
	}
	if diff := s.Check(result.States); diff != "" {
		t.Errorf("what is left differs (- the scenario says, + this is so):\n%s\n%s%s", diff, s, stepsText(play, result))
	}
	if play.Options().Workers <= 1 {
		checkReports(t, play, s, result)
	}
}

// Perform plays a scenario to its end.
func Perform(ctx context.Context, play Play, s *Scenario) (*Result, error) {
	if err := Prepare(ctx, play, s); err != nil {
		return nil, err
	}
	result := &Result{}
	for _, a := range s.Actions {
		report, err := Do(ctx, play, s, a)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a, err)
		}
		if report != nil {
			result.Reports = append(result.Reports, report)
		}
	}
	var err error
	result.States, err = play.States(ctx)
	return result, err
}

// Prepare creates the objects and deletes those that are terminating at the
// start.
func Prepare(ctx context.Context, play Play, s *Scenario) error {
	var now []*Object
	for i := range s.Objects {
		if !s.Objects[i].Later {
			now = append(now, &s.Objects[i])
		}
	}
	if err := play.Create(ctx, now); err != nil {
		return fmt.Errorf("creating the objects: %w", err)
	}
	for _, o := range now {
		if o.Deleting == "" {
			continue
		}
		if err := play.Delete(ctx, o.Path, deleteOptions(o.Deleting)); err != nil {
			return fmt.Errorf("deleting %s before the first action: %w", o.Path, err)
		}
	}
	return nil
}

func deleteOptions(policy string) metav1.DeleteOptions {
	if policy == "default" || policy == "" {
		return metav1.DeleteOptions{}
	}
	p := metav1.DeletionPropagation(policy)
	return metav1.DeleteOptions{PropagationPolicy: &p}
}

// Do does one action.
func Do(ctx context.Context, play Play, s *Scenario, a Action) (*gc.Report, error) {
	switch a.Verb {
	case Delete, Collect:
		return runCollector(ctx, play, a)
	case UserDelete:
		return nil, answered(a, play.Delete(ctx, a.Paths[0], a.userOptions()))
	case UserPatch:
		return nil, answered(a, play.Patch(ctx, a.Paths[0], a.Owners, a.Finalizers))
	case UserDrop:
		return nil, answered(a, play.Drop(ctx, a.Paths[0]))
	}
	return nil, play.Create(ctx, []*Object{s.Object(a.Paths[0])})
}

func runCollector(ctx context.Context, play Play, a Action) (*gc.Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, server, err := CollectorFor(ctx, play, a)
	if err != nil {
		return nil, err
	}
	if len(a.Then)+len(a.Early) == 0 {
		return Act(ctx, gc.New(server, g, play.Options()), play.Stage(), a)
	}
	return gc.InWaves(ctx, g, a.waves(play.Stage()), a.deleteOptions(), func(ctx context.Context, wave int) (*gc.Collector, error) {
		if wave > 0 {
			if g, server, err = CollectorFor(ctx, play, a); err != nil {
				return nil, err
			}
		}
		return gc.New(server, g, play.Options()), nil
	})
}

// CollectorFor reads what there is, as far as the action has it read.
func CollectorFor(ctx context.Context, play Play, a Action) (*graph.Graph, gc.Server, error) {
	if a.Only {
		return play.CollectorIn(ctx, play.Stage().Namespace(a.In))
	}
	return play.Collector(ctx)
}

// Act has the Collector do the action, which is one of its own, in one wave.
func Act(ctx context.Context, collector *gc.Collector, stage *Stage, a Action) (*gc.Report, error) {
	if a.Verb == Collect {
		return collector.Collect(ctx, stage.Namespace(a.In))
	}
	return collector.Delete(ctx, a.waves(stage)[0].Targets, a.deleteOptions())
}

func (a *Action) deleteOptions() gc.DeleteOptions {
	return gc.DeleteOptions{Policy: a.Policy, GracePeriodSeconds: a.Grace}
}

// waves returns the waves of a delete.
func (a *Action) waves(stage *Stage) []gc.Wave {
	waves := []gc.Wave{{}}
	for i, p := range a.Paths {
		if slices.Contains(a.Then, i) {
			waves = append(waves, gc.Wave{})
		}
		wave := &waves[len(waves)-1]
		if slices.Contains(a.Early, i) {
			wave.Ahead = append(wave.Ahead, stage.Identity(p))
		} else {
			wave.Targets = append(wave.Targets, gc.Target{Identity: stage.Identity(p)})
		}
	}
	return waves
}

func (a *Action) userOptions() metav1.DeleteOptions {
	options := deleteOptions(string(a.Policy))
	options.GracePeriodSeconds = a.Grace
	options.OrphanDependents = a.OrphanDependents //nolint:staticcheck // SA1019: deprecated, and served
	if a.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if a.OtherUID || a.OtherVersion {
		options.Preconditions = &metav1.Preconditions{}
	}
	if a.OtherUID {
		uid := nobody("other")
		options.Preconditions.UID = &uid
	}
	if a.OtherVersion {
		version := "1"
		options.Preconditions.ResourceVersion = &version
	}
	return options
}

// answered returns an error unless the request was answered as the action says.
func answered(a Action, err error) error {
	var status apierrors.APIStatus
	switch {
	case a.Status == 0:
		return err
	case err == nil:
		return fmt.Errorf("the request succeeded")
	case !errors.As(err, &status) || int(status.Status().Code) != a.Status:
		return fmt.Errorf("the request was answered otherwise: %w", err)
	}
	return nil
}

// Check compares an end with those that the scenario allows. It returns how it
// differs from the nearest, empty when it is one of them. Objects of which
// nothing is expected do not count.
func (s *Scenario) Check(states map[Path]State) string {
	best, fewest := "", -1
	for _, end := range s.Alternatives() {
		diff := s.diff(end, states)
		if lines := strings.Count(diff, "\n"); fewest < 0 || lines < fewest {
			best, fewest = diff, lines
		}
	}
	return best
}

func (s *Scenario) diff(want, got map[Path]State) string {
	var b strings.Builder
	for _, o := range s.Objects {
		state, expected := want[o.Path]
		if w, g := state.String(), got[o.Path].String(); expected && w != g {
			fmt.Fprintf(&b, "- %s %s\n+ %s %s\n", o.Path, w, o.Path, g)
		}
	}
	return b.String()
}

// checkReports holds the steps and outcomes to the scenario.
func checkReports(t *testing.T, play Play, s *Scenario, result *Result) {
	t.Helper()
	steps := result.Steps(play.Stage())
	if s.Steps != nil && !slices.Equal(s.Steps, steps) {
		t.Errorf("the steps differ\nthe scenario says:\n  %s\nthese were made:\n  %s",
			strings.Join(s.Steps, "\n  "), strings.Join(steps, "\n  "))
	}
	for _, want := range s.Outcomes {
		got, found := result.outcome(play.Stage().UIDs[want.Path])
		if !found || got.Result != want.Result || !want.isReason(got.Reason.String()) {
			t.Errorf("%s: the report says %s %q, and the scenario %s %q", want.Path, got.Result, got.Reason, want.Result, want.Reason)
		}
	}
}

// isReason compares reasons. The scenario may leave the reason out, or with "..." its end.
func (o Outcome) isReason(reason string) bool {
	start, open := strings.CutSuffix(o.Reason, "...")
	return o.Reason == "" || reason == o.Reason || open && strings.HasPrefix(reason, strings.TrimSpace(start))
}

// outcome returns what the last Collector that speaks of the object says of it.
func (r *Result) outcome(uid types.UID) (gc.Outcome, bool) {
	for _, report := range slices.Backward(r.Reports) {
		for _, o := range report.Outcomes {
			if o.Object.UID == uid {
				return o, true
			}
		}
	}
	return gc.Outcome{}, false
}

// Steps returns the Collectors' writes as scenarios write them.
func (r *Result) Steps(stage *Stage) []string {
	var steps []string
	for _, report := range r.Reports {
		for _, step := range report.Steps {
			steps = append(steps, stage.stepText(step))
		}
	}
	return steps
}

func (s *Stage) stepText(step gc.Step) string {
	words := []string{string(step.Action), s.pathOf(step.Object.UID).String()}
	switch step.Action {
	case gc.ActionDelete:
		words = append(words, string(*step.Options.PropagationPolicy))
	case gc.ActionRemoveFinalizer:
		words = append(words, step.Patch.RemoveFinalizer)
	}
	if step.Err != nil {
		words = append(words, "refused")
	}
	return strings.Join(words, " ")
}

func (s *Stage) pathOf(uid types.UID) Path {
	for p, u := range s.UIDs {
		if u == uid {
			return p
		}
	}
	return Path{Kind: "uid", Name: string(uid)}
}

func stepsText(play Play, result *Result) string {
	return "writes\n  " + strings.Join(result.Steps(play.Stage()), "\n  ") + "\n"
}
