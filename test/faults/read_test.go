// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/test/differential/live"
)

// standing is a world that stays as it is, in which most things are that a command that
// reads has something to say about.
const standing = `== standing
objects
  deployment/web
  replicaset/web-1 < web!*
  configmap/settings < web-1!
  secret/shared < web-1! deployment/other
  deployment/other
  gadget/cluster
  widget/leaf < gadget/cluster!
  configmap/garbage < configmap/ghost{uid=nobody}
  configmap/wrong < web{name=elsewhere}
  secret/unresolvable < web{kind=Nothing}
  widget/held < leaf finalizers=example.com/hold deleting=Foreground
  configmap/below < held!
  widget/stuck finalizers=example.com/other deleting=Background
  configmap/circle < round!
  secret/round < circle!
`

// written returns the scenario of a text that has objects alone.
func written(text string) (*gctest.Scenario, error) {
	expect := "collect\nexpect\n"
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "  ") {
			expect += "  " + fields[0] + " intact\n"
		}
	}
	scenarios, err := gctest.Parse(text + expect)
	if err != nil {
		return nil, err
	}
	return &scenarios[0], nil
}

// TestReadsUnderFaults runs each command that reads while requests go wrong, and compares
// what it says with what it says without faults: it must be the same, or the command must
// say that something is missing, and then it may know less, but nothing else.
func TestReadsUnderFaults(t *testing.T) {
	w, err := newReadWorld(t)
	if err != nil {
		t.Fatal(err)
	}
	seeds(t, 24, 6, func(seed uint64) {
		c := &readCase{seed: seed, world: w, dir: t.TempDir(), rules: Draw(seed), words: w.commands[seed%uint64(len(w.commands))]}
		judge(t, seed, c.run(t.Context()), c)
	})
}

// readWorld is what all cases read, and what is said of it without faults.
type readWorld struct {
	*live.World
	kubeconfig string
	namespace  string
	commands   [][]string
	answers    map[string]func() (*said, error)
}

func newReadWorld(t *testing.T) (*readWorld, error) {
	cp, world := connect(t)
	scenario, err := written(standing)
	if err != nil {
		return nil, err
	}
	play, err := world.Play(t.Context(), scenario)
	if err == nil {
		err = gctest.Prepare(t.Context(), play, scenario)
	}
	if err != nil {
		return nil, err
	}
	namespace := play.Stage().Prefix
	in := func(args ...string) []string { return append(args, "-n", namespace, "-ojson") }
	w := &readWorld{World: world, kubeconfig: cp.Kubeconfig, namespace: namespace, answers: map[string]func() (*said, error){}, commands: [][]string{
		in("tree"), in("tree", "deployment/web"), in("tree", "configmap/settings", "--owners"), in("tree", "widget/leaf", "secret/shared"),
		in("graph"), in("graph", "widget/leaf", "--scope=cluster"), in("check", "--settle=0s"), in("check", "--settle=100ms"),
		in("explain-stuck"), in("explain-stuck", "widget/stuck", "configmap/below"), in("explain-stuck", "--probe=false"),
		{"tree", "-A", "-ojson"}, {"check", "-A", "-ojson", "--settle=0s"}, {"explain-stuck", "-A", "-ojson"},
		{"snapshot", "-n", namespace, "-o", "FILE"},
		in("delete", "deployment/web", "--dry-run=client"), in("delete", "gadget/"+namespace+"-cluster", "--dry-run=server", "--cascade=foreground"), in("collect", "--dry-run=client"),
	}}
	for _, words := range w.commands {
		for _, strict := range []bool{false, true} {
			file := filepath.Join(t.TempDir(), "snapshot")
			w.answers[key(words, strict)] = sync.OnceValues(func() (*said, error) { return w.rightly(t.Context(), file, words, strict) })
		}
	}
	return w, nil
}

// rightly returns what a command says without faults.
func (w *readWorld) rightly(ctx context.Context, file string, words []string, strict bool) (*said, error) {
	s, err := w.say(ctx, w.kubeconfig, file, words, strict)
	if err == nil && (!s.complete || len(s.claims) == 0) {
		err = fmt.Errorf("without faults there is no answer:\n%s", s)
	}
	return s, err
}

// key is what an answer is remembered by.
func key(words []string, strict bool) string { return fmt.Sprint(words, strict) }

// readCase is a command and the faults of a seed.
type readCase struct {
	seed     uint64
	world    *readWorld
	dir      string
	words    []string
	rules    []Rule
	happened []string
	said     *said
}

// String tells the case.
func (c *readCase) String() string {
	var b strings.Builder
	for _, rule := range c.rules {
		fmt.Fprintf(&b, "rule: %s\n", rule)
	}
	for _, line := range c.happened {
		fmt.Fprintf(&b, "%s\n", line)
	}
	if c.said != nil {
		fmt.Fprintf(&b, "%s", c.said)
	}
	return b.String()
}

// said is what a command said.
type said struct {
	*result
	// claims are what it says of the cluster: about what, and what.
	claims map[string]string
	// complete: it does not say that something is missing.
	complete bool
}

func (c *readCase) run(ctx context.Context) error {
	proxy, err := Start(c.world.Config, Options{TLS: c.seed%2 == 0}, c.rules...)
	if err != nil {
		return err
	}
	defer proxy.Close()
	kubeconfig := filepath.Join(c.dir, "kubeconfig")
	if err := proxy.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	strict := c.seed/2%2 == 0
	want, err := c.world.answers[key(c.words, strict)]()
	if err != nil {
		return err
	}
	c.said, err = c.world.say(ctx, kubeconfig, filepath.Join(c.dir, "snapshot"), c.words, strict, hurried)
	c.happened = proxy.Log()
	if err != nil {
		return err
	}
	return c.wrong(want, strict)
}

// wrong returns what was said that is not so, or not as it is to be said.
func (c *readCase) wrong(want *said, strict bool) error {
	asked := slices.Contains(c.words, "--dry-run=server") && c.said.code == 2 && strings.Contains(c.said.stderr, "The server ")
	switch got := c.said; {
	case got.code == 1, got.code == 3 && got.stdout == "":
		return nil // it said that it could not
	case got.complete && strings.Contains(strings.Join(c.words, " "), "--dry-run") && (got.code == want.code || got.code == 3 || asked):
		return unsure(got.claims, want.claims)
	case got.complete && got.code != want.code && !asked:
		return fmt.Errorf("exit code %d; without faults %d", got.code, want.code)
	case got.complete:
		return compare(got.claims, want.claims)
	case strict && got.code != 3 && !asked:
		return fmt.Errorf("exit code %d, though the answer is incomplete", got.code)
	case !strings.Contains(got.stderr+got.stdout, "incomplete") && !strings.Contains(got.stderr, "warning: "):
		return errors.New("the answer is incomplete, and nobody is told")
	}
	return weaker(c.said.claims, want.claims)
}

// say runs a command and reads what it says. A snapshot is read by tree.
func (w *readWorld) say(ctx context.Context, kubeconfig, file string, words []string, strict bool, more ...string) (*said, error) {
	words = slices.Concat(words, more)
	if strict {
		words = append(words, "--strict")
	}
	for i := range words {
		words[i] = strings.Replace(words[i], "FILE", file, 1)
	}
	r, err := run(ctx, kubeconfig, words...)
	s := &said{result: r}
	if err == nil {
		err = r.manners()
	}
	if err != nil || r.code == 1 || r.code == 3 && r.stdout == "" && words[0] != "snapshot" {
		return s, err
	}
	text := r.stdout
	if words[0] == "snapshot" {
		back, err := run(ctx, kubeconfig, "tree", "--isolated", "-n", w.namespace, "-ojson", "--from="+file)
		if err != nil {
			return s, err
		}
		if err := back.manners(); err != nil || back.code != 0 {
			return s, fmt.Errorf("what snapshot wrote cannot be read: %w\n%s", err, back)
		}
		text = back.stdout
	}
	s.claims, s.complete, err = claims(text)
	if err != nil {
		err = fmt.Errorf("the document cannot be read: %w", err)
	}
	return s, err
}

// object is a node, or what something is said of.
type object struct {
	Kind, Namespace, Name, UID string
	Virtual, BeingDeleted      bool
	Finalizers                 []string
	Owners                     []struct{ Name, UID, State, Reason string }
}

// claims reads a document: what it says of each object, and whether it is complete.
func claims(text string) (map[string]string, bool, error) {
	var d struct {
		Complete bool
		Nodes    []object
		Findings []struct {
			Rule           string
			Object         object
			OwnerReference struct{ Index int }
		}
		Objects []struct {
			Object  object
			Verdict string
			Causes  []struct {
				ID, Verdict string
				Object      object
			}
		}
		Steps []struct {
			Action string
			Object object
		}
		Outcome []struct {
			Object object
			Result string
		}
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return nil, false, err
	}
	all := map[string]string{}
	for _, n := range d.Nodes {
		if !n.Virtual {
			all["object "+n.Kind+"/"+n.Name] = fmt.Sprintf("%t %v", n.BeingDeleted, n.Finalizers)
		}
		for i, o := range n.Owners {
			all[fmt.Sprintf("owner %d of %s/%s", i, n.Kind, n.Name)] = strings.TrimSpace(o.State + " " + o.Reason)
		}
	}
	for _, f := range d.Findings {
		all[fmt.Sprintf("finding %s %s/%s %d", f.Rule, f.Object.Kind, f.Object.Name, f.OwnerReference.Index)] = "is so"
	}
	for _, o := range d.Objects {
		all["verdict on "+o.Object.Kind+"/"+o.Object.Name] = o.Verdict
		for _, cause := range o.Causes {
			if cause.ID != "gc-absent" { // which is said after some time
				all[fmt.Sprintf("cause %s in %s of %s/%s", cause.ID, cause.Object.Name, o.Object.Kind, o.Object.Name)] = cause.Verdict
			}
		}
	}
	for _, s := range d.Steps {
		all[fmt.Sprintf("step %s %s/%s", s.Action, s.Object.Kind, s.Object.Name)] = "is taken"
	}
	for _, o := range d.Outcome {
		all[fmt.Sprintf("outcome of %s/%s", o.Object.Kind, o.Object.Name)] = o.Result
	}
	return all, d.Complete, nil
}

// compare returns how two answers differ.
func compare(got, want map[string]string) error {
	var b strings.Builder
	for _, about := range slices.Sorted(maps.Keys(want)) {
		if g, said := got[about]; !said {
			fmt.Fprintf(&b, "%s: %s, and nothing is said\n", about, want[about])
		} else if g != want[about] {
			fmt.Fprintf(&b, "%s: %s, not %s\n", about, want[about], g)
		}
	}
	for _, about := range slices.Sorted(maps.Keys(got)) {
		if _, said := want[about]; !said {
			fmt.Fprintf(&b, "%s: %s, which is not so\n", about, got[about])
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return fmt.Errorf("the answer is wrong, and is said to be complete or right:\n%s", &b)
}

// unsure returns what a preview says that is not so, or does not say. An object of which
// something could not be read may be called unknown, though every list is complete.
func unsure(got, want map[string]string) error {
	excused := maps.Clone(got)
	for about, what := range got {
		if right, is := want[about]; is && strings.HasPrefix(what, "Unknown") {
			excused[about] = right
		}
	}
	return compare(excused, want)
}

// weaker returns what an incomplete answer says that is not so. It may say less, call
// unknown what it could not find out, and leave alone what it is not sure of.
func weaker(got, want map[string]string) error {
	vague := func(what string) bool {
		return strings.HasPrefix(what, "Unknown") || what == "Remaining" || what == "Untouched"
	}
	known := map[string]string{}
	for about, what := range want {
		if g, said := got[about]; said && !vague(g) {
			known[about] = what
		}
	}
	sure := maps.Clone(got)
	maps.DeleteFunc(sure, func(_, what string) bool { return vague(what) })
	return compare(sure, known)
}
