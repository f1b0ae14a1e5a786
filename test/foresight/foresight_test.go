// SPDX-License-Identifier: Apache-2.0

package foresight

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

var (
	full   = flag.Bool("full", false, "all layouts, and the whole time before something is said to stay")
	only   = flag.String("layouts", "", "a regular expression for the names of layouts")
	page   = flag.String("page", "", "the file to write the table to")
	copies = flag.Int("copies", 10, "how many copies of layouts there are at a time")
)

// asPlugin is a variable that makes this program be kubectl-gc.
const asPlugin = "FORESIGHT_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		args := append([]string{"kubectl-gc"}, os.Args[1:]...)
		os.Exit(gccmd.Run(ctx, args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
	}
	// Operators that lose their rights say so all the time.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// TestLayouts deletes what each layout says, and compares what was said with what
// happened. What --order=safe leaves is compared with what is possible.
func TestLayouts(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	if other := controlplane.Other(); other != "" && !*full {
		t.Skip("the servers are " + other)
	}
	results := play(t, chosen(t), helpHas(t, "--order"))
	for _, r := range results {
		t.Run(r.layout.name, func(t *testing.T) { r.check(t) })
	}
	text := table(results)
	t.Log("\n" + text)
	if *page != "" {
		if err := os.WriteFile(*page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// shortest are the layouts of make test: in these all goes, which is quick to see.
var shortest = []string{"objects", "operator-namespace", "deployment-first"}

// chosen returns the layouts of this run.
func chosen(t *testing.T) []layout {
	t.Helper()
	names, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.DeleteFunc(slices.Clone(layouts), func(l layout) bool {
		return !names.MatchString(l.name) || !*full && *only == "" && !(l.short && (nightly.Is() || slices.Contains(shortest, l.name)))
	})
	if len(all) == 0 {
		t.Fatal("no layouts")
	}
	return all
}

// play runs the layouts beside each other, those that harm the whole cluster on
// control planes of their own.
func play(t *testing.T, all []layout, safe bool) []*result {
	t.Helper()
	log := &lines{}
	defer func() { t.Log("in the pods:\n" + log.String()) }()
	var wait sync.WaitGroup
	defer wait.Wait()
	authority, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	// Who reads a cluster while types vanish does not see everything, so the layouts in
	// which they do have a control plane of theirs.
	common := map[bool]*arena{}
	for _, l := range all {
		if own := l.removesType(); !l.alone && common[own] == nil {
			if common[own], err = newArena(t.Context(), log.add); err != nil {
				t.Fatal(err)
			}
			defer common[own].close()
		}
	}
	places, planes := make(chan struct{}, *copies), make(chan struct{}, 1)
	run := func(l layout, letter string, do func(context.Context, *copied)) {
		i := slices.IndexFunc(layouts, func(other layout) bool { return other.name == l.name })
		c := &copied{arena: common[l.removesType()], layout: l.defaults(), id: fmt.Sprintf("t%02d%s", i+1, letter), authority: authority}
		wait.Go(func() {
			place := places
			if l.alone {
				place = planes
			}
			place <- struct{}{}
			defer func() { <-place }()
			if l.alone {
				own, err := newArena(t.Context(), log.add)
				if err != nil {
					t.Error(err)
					return
				}
				defer own.close()
				c.arena = own
			}
			do(t.Context(), c)
			c.remove(t.Context())
		})
	}
	results := make([]*result, len(all))
	for i, l := range all {
		r := &result{layout: l}
		results[i] = r
		run(l, "k", func(ctx context.Context, c *copied) { r.usual, r.usualError = c.usual(ctx) })
		if safe {
			run(l, "s", func(ctx context.Context, c *copied) { r.safe, r.safeError = c.safe(ctx) })
		}
	}
	wait.Wait()
	return results
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.text) == 0 || l.text[len(l.text)-1] != line {
		l.text = append(l.text, line)
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.text, "\n")
}

// An outcome is what was said about a copy, and what was left of it.
type outcome struct {
	sayings []saying
	there   map[string]bool
	// late are those that were said to be deleted and took more than lastWord.
	late []ref
	// output and code are those of the deletion.
	output string
	code   int
}

// A result is what came out for a layout.
type result struct {
	layout                layout
	usual, safe           *outcome
	usualError, safeError error
}

// preview asks the plugin what would become of the copy. While types come and go
// beside it, not everything can be read; so it asks again for a while.
func (c *copied) preview(ctx context.Context, args []string) ([]saying, error) {
	var plan struct {
		Complete bool     `json:"complete"`
		Outcome  []saying `json:"outcome"`
	}
	for range 5 {
		stdout, stderr, code, err := c.plugin(ctx, append([]string{"delete", "--dry-run=client", "-o", "json"}, args...)...)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(stdout), &plan); err != nil || len(plan.Outcome) == 0 {
			return nil, fmt.Errorf("previewing: exit code %d: %w\n%s%s", code, err, stderr, stdout)
		}
		if plan.Complete {
			break
		}
		time.Sleep(pause)
	}
	return plan.Outcome, nil
}

// usual is what kubectl leaves.
func (c *copied) usual(ctx context.Context) (*outcome, error) {
	if err := c.make(ctx); err != nil {
		return nil, err
	}
	args, err := c.args(ctx)
	if err != nil {
		return nil, err
	}
	sayings, err := c.preview(ctx, args)
	if err != nil {
		return nil, err
	}
	output, err := c.kubectl(ctx, "", append([]string{"delete", "--wait=false"}, args...)...)
	o := &outcome{sayings: sayings, output: output}
	if err != nil { // a webhook may refuse it
		o.output, o.code = err.Error(), 1
	}
	return o, c.there(ctx, o, *full)
}

// safe is what --order=safe leaves.
func (c *copied) safe(ctx context.Context) (*outcome, error) {
	if err := c.make(ctx); err != nil {
		return nil, err
	}
	args, err := c.args(ctx)
	if err != nil {
		return nil, err
	}
	sayings, err := c.preview(ctx, args)
	if err != nil {
		return nil, err
	}
	stdout, stderr, code, err := c.untilBegun(ctx, append([]string{"delete", "--order=safe", "--yes", "--timeout=2m"}, args...)...)
	if err != nil {
		return nil, err
	}
	o := &outcome{sayings: sayings, output: stdout + stderr, code: code}
	return o, c.there(ctx, o, code == 0)
}

// untilBegun runs the plugin again, as people do, when it refuses to begin because
// something could not be read, up to three times: types come and go beside it.
func (c *copied) untilBegun(ctx context.Context, args ...string) (stdout, stderr string, code int, err error) {
	const times, pause = 3, 5 * time.Second
	for range times {
		stdout, stderr, code, err = c.plugin(ctx, args...)
		if err != nil || !strings.Contains(stderr, "refusing to change anything") {
			break
		}
		time.Sleep(pause)
	}
	return stdout, stderr, code, err
}

// check says what is wrong.
func (r *result) check(t *testing.T) {
	if r.usualError != nil {
		t.Error(r.usualError)
	}
	if r.usual != nil {
		j := judge(r.usual.sayings, r.usual.there)
		for _, s := range j.wrong {
			t.Errorf("%s was said to be deleted, and stayed: %s", s.Object, s.Reason)
		}
		for _, s := range j.unsaid {
			t.Errorf("%s was said to stay (%s), and went: %s", s.Object, s.Result, s.Reason)
		}
		for _, s := range j.alarms {
			t.Logf("false alarm: %s was said to remain, and went: %s", s.Object, s.Reason)
		}
		if r.usual.code != 0 {
			t.Log(r.usual.output)
		}
	}
	if r.safeError != nil {
		t.Error(r.safeError)
	}
	if r.safe != nil {
		r.checkSafe(t)
	}
}

// checkSafe says what is wrong with what --order=safe did.
func (r *result) checkSafe(t *testing.T) {
	remain := left(r.safe.sayings, r.safe.there)
	if done := remain == allGone; done != (r.safe.code == 0) {
		t.Errorf("--order=safe: exit code %d, and %s", r.safe.code, remain)
	}
	if r.layout.possible && remain != allGone {
		t.Errorf("--order=safe: an order exists in which all goes, and %s", remain)
	}
	for _, s := range r.safe.sayings {
		if r.layout.kept && slices.Contains(operatorKinds, s.Object.Kind) && !r.safe.there[s.Object.UID] {
			t.Errorf("--order=safe destroyed %s, though what needs it was not gone", s.Object)
		}
	}
	if t.Failed() {
		t.Logf("--order=safe: exit code %d\n%s", r.safe.code, r.safe.output)
	}
}

// operatorKinds are the kinds of what an operator consists of.
var operatorKinds = []string{"Deployment", "ServiceAccount", "Role", "RoleBinding", "CustomResourceDefinition", "Namespace"}
