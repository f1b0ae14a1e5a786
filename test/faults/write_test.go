// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/gctest"
	"github.com/kubectl-gc/kubectl-gc/test/differential/live"
)

// TestWritesUnderFaults runs delete and collect on a world while requests go wrong, then
// again while none do, and on another copy of the world alone. Both copies must end the
// same; while requests go wrong nothing may go that does not go without; and what the
// command says must be so.
func TestWritesUnderFaults(t *testing.T) {
	t.Parallel()
	cp, world := connect(t)
	seeds(t, 16, 8, func(seed uint64) {
		c := &writeCase{seed: seed, world: world, kubeconfig: cp.Kubeconfig, dir: t.TempDir()}
		judge(t, seed, c.run(t.Context()), c)
	})
}

// writeCase is a world, a command, and the faults of a seed.
type writeCase struct {
	seed       uint64
	world      *live.World
	kubeconfig string
	dir        string

	scenario *gctest.Scenario
	// args are the command, in which NS stands for the namespace.
	args  []string
	rules []Rule
	// strike runs the command and does something to it, instead of the rules. It returns
	// nil when the command was not left to its end.
	strike func(ctx context.Context, proxy *Proxy, play *live.Play, kubeconfig string) (*result, error)
	// happened is what the proxy did, said what the commands printed.
	happened []string
	said     []*result
}

// String tells the case.
func (c *writeCase) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", c.scenario)
	for _, rule := range c.rules {
		fmt.Fprintf(&b, "rule: %s\n", rule)
	}
	for _, line := range c.happened {
		fmt.Fprintf(&b, "%s\n", line)
	}
	for _, r := range c.said {
		fmt.Fprintf(&b, "%s", r)
	}
	return b.String()
}

// states are what is left of a world.
type states = map[gctest.Path]gctest.State

func (c *writeCase) run(ctx context.Context) error {
	r := rand.New(rand.NewPCG(c.seed, 1))
	c.scenario = drawWorld(r)
	c.args = drawCommand(r, c.scenario)
	if c.strike == nil {
		c.rules = Draw(c.seed)
	}
	alone, err := c.play(ctx)
	if err != nil {
		return err
	}
	defer discard(ctx, alone)
	faulty, err := c.play(ctx)
	if err != nil {
		return err
	}
	defer discard(ctx, faulty)
	reference, err := c.command(ctx, alone, c.kubeconfig)
	if err != nil {
		return err
	}
	want, err := alone.States(ctx)
	if err != nil {
		return err
	}
	if err := c.underFaults(ctx, faulty, reference, want); err != nil {
		return err
	}
	return c.again(ctx, alone, faulty, reference, want)
}

// play makes a copy of the world.
func (c *writeCase) play(ctx context.Context) (*live.Play, error) {
	play, err := c.world.Play(ctx, c.scenario)
	if err == nil {
		err = gctest.Prepare(ctx, play, c.scenario)
	}
	if err != nil {
		return nil, fmt.Errorf("making the world: %w", err)
	}
	return play.(*live.Play), nil
}

// discard takes a copy away, as far as that goes.
func discard(ctx context.Context, play *live.Play) {
	for _, o := range play.Stage().Scenario.Objects {
		none, now := []string{}, int64(0)
		_ = play.Patch(ctx, o.Path, nil, &none)
		_ = play.Delete(ctx, o.Path, metav1.DeleteOptions{GracePeriodSeconds: &now})
	}
}

// command runs the case's command on a copy.
func (c *writeCase) command(ctx context.Context, play *live.Play, kubeconfig string, more ...string) (*result, error) {
	r, err := run(ctx, kubeconfig, c.words(play, more...)...)
	if r != nil {
		c.said = append(c.said, r)
	}
	if err != nil {
		return nil, err
	}
	return r, r.manners()
}

// words are the command for a copy.
func (c *writeCase) words(play *live.Play, more ...string) []string {
	words := slices.Concat(c.args, more)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "NS", play.Stage().Prefix)
	}
	return words
}

// underFaults runs the command through a proxy, and holds what it did and said to what
// it does without faults.
func (c *writeCase) underFaults(ctx context.Context, play *live.Play, reference *result, want states) error {
	proxy, err := Start(c.world.Config, Options{TLS: c.seed%2 == 0}, c.rules...)
	if err != nil {
		return err
	}
	defer proxy.Close()
	kubeconfig := filepath.Join(c.dir, "kubeconfig")
	if err := proxy.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	before, err := play.States(ctx)
	if err != nil {
		return err
	}
	strike := c.strike
	if strike == nil {
		strike = func(ctx context.Context, _ *Proxy, play *live.Play, kubeconfig string) (*result, error) {
			return c.command(ctx, play, kubeconfig, hurried)
		}
	}
	r, err := strike(ctx, proxy, play, kubeconfig)
	c.happened = proxy.Log()
	if err != nil {
		return err
	}
	after, err := play.States(ctx)
	if err != nil {
		return err
	}
	if r == nil {
		return c.trespasses(after, want)
	}
	return errors.Join(c.trespasses(after, want), c.lies(play, r, reference, before, after, want))
}

// trespasses returns what was changed that is not changed without faults.
func (c *writeCase) trespasses(after, want states) error {
	for _, o := range c.scenario.Objects {
		got, want := after[o.Path], want[o.Path]
		if got.Fate == gctest.Gone && want.Fate != gctest.Gone || got.Fate == gctest.Terminating && want.Fate == gctest.Intact {
			return fmt.Errorf("%s is %s; without faults it is %s", o.Path, got, want)
		}
		for _, owner := range o.Declared().Owners {
			if got.Fate == gctest.Intact && want.Fate == gctest.Intact && has(want.Owners, owner) && !has(got.Owners, owner) {
				return fmt.Errorf("%s lost its owner %s: it is %s; without faults it is %s", o.Path, owner, got, want)
			}
		}
	}
	return nil
}

// has reports whether a reference is among others, whatever it says of blocking.
func has(owners []string, owner string) bool {
	return slices.ContainsFunc(owners, func(o string) bool { return strings.TrimRight(o, "!~") == strings.TrimRight(owner, "!~") })
}

// lies returns what the command said that is not so.
func (c *writeCase) lies(play *live.Play, r, reference *result, before, after, want states) error {
	switch {
	case r.code == 0 && reference.code != 0:
		return fmt.Errorf("exit code 0; without faults it is %d", reference.code)
	case r.code == 0 && !equal(after, want):
		return fmt.Errorf("exit code 0, and it is not done:\n%s", differences(after, want))
	case r.code == 3 && !equal(before, after):
		return fmt.Errorf("exit code 3, and something was changed:\n%s", differences(after, before))
	case r.code == 1 && !equal(before, after) && r.stdout == "":
		return fmt.Errorf("exit code 1, and not a word of what was changed:\n%s", differences(after, before))
	}
	return c.liesInDocument(play, r, after)
}

// liesInDocument compares the document of a run with what is.
func (c *writeCase) liesInDocument(play *live.Play, r *result, after states) error {
	if !slices.Contains(c.args, "-ojson") || r.stdout == "" {
		return nil
	}
	var report struct {
		Kind    string `json:"kind"`
		Outcome []struct {
			Object struct {
				UID types.UID `json:"uid"`
			} `json:"object"`
			Result string `json:"result"`
		} `json:"outcome"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		return fmt.Errorf("the document cannot be read: %w", err)
	}
	paths := map[types.UID]gctest.Path{}
	for path, uid := range play.Stage().UIDs {
		paths[uid] = path
	}
	for _, o := range report.Outcome {
		path, known := paths[o.Object.UID]
		if state := after[path]; known && o.Result == "Deleted" && state.Fate != gctest.Gone {
			return fmt.Errorf("%s is said to be deleted, and is %s", path, state)
		}
	}
	return nil
}

// again repeats the command without faults.
func (c *writeCase) again(ctx context.Context, alone, faulty *live.Play, reference *result, want states) error {
	r, err := c.command(ctx, faulty, c.kubeconfig)
	if err != nil {
		return err
	}
	gone := r.code == 1 && strings.Contains(r.stderr, "not found") || r.code == 0 && (strings.Contains(r.stderr, "No resources found") || strings.Contains(r.stderr, "Nothing to do"))
	if r.code != reference.code && !gone {
		return fmt.Errorf("again it ends with %d, without faults with %d", r.code, reference.code)
	}
	// Nothing leads from a name that is gone to what is left, nor from --all, which does not
	// match any more what was deleted: that is for collect (docs/delete-reference.md, "After an
	// interruption"). So is what the answer says is.
	if gone || slices.Contains(c.args, "--all") || forCollect.MatchString(r.stdout+r.stderr) {
		for _, play := range []*live.Play{alone, faulty} {
			collection := *c
			collection.args = []string{"collect", "-n", "NS", "--yes", "--wait=false"}
			_, err := collection.command(ctx, play, c.kubeconfig)
			c.said = collection.said
			if err != nil {
				return err
			}
		}
		if want, err = alone.States(ctx); err != nil {
			return err
		}
	}
	after, err := faulty.States(ctx)
	if err != nil {
		return err
	}
	if !equal(after, want) {
		return fmt.Errorf("again it ends otherwise than without faults:\n%s", differences(after, want))
	}
	return nil
}

// forCollect is said by an answer that leaves the rest to collect.
var forCollect = regexp.MustCompile("gc collect|only collect finishes")

// equal compares what is left. What references say of blocking does not count: a
// dependent that was to be deleted may have been unblocked before.
func equal(a, b states) bool { return differences(a, b) == "" }

func differences(got, want states) string {
	var b strings.Builder
	plain := strings.NewReplacer("!", "", "~", "")
	for _, path := range slices.SortedFunc(maps.Keys(want), func(a, b gctest.Path) int { return strings.Compare(a.String(), b.String()) }) {
		if g, w := got[path].String(), want[path].String(); plain.Replace(g) != plain.Replace(w) {
			fmt.Fprintf(&b, "%s is %s, not %s\n", path, g, w)
		}
	}
	return b.String()
}

// drawWorld draws objects of which some own others, some of these shared with owners
// that stay, some held by a finalizer, and a few without any owner left.
func drawWorld(r *rand.Rand) *gctest.Scenario {
	s := &gctest.Scenario{Name: "drawn", Needs: map[string]string{}}
	kinds := []string{"configmap", "configmap", "secret", "widget", "widget", "deployment"}
	for i := range 4 + r.IntN(8) {
		o := gctest.Object{Path: gctest.Path{Kind: kinds[r.IntN(len(kinds))], Name: string(rune('a' + i))}}
		if r.IntN(10) == 0 {
			o.Finalizers = []string{"example.com/hold"}
		}
		if i > 0 {
			o.Owners = drawOwners(r, s.Objects)
		}
		s.Objects = append(s.Objects, o)
	}
	return s
}

// drawOwners draws owners among the objects so far, or one that does not exist.
func drawOwners(r *rand.Rand, among []gctest.Object) []gctest.Owner {
	blocks := []gctest.Block{gctest.Blocks, gctest.Blocks, gctest.Unset, gctest.DoesNotBlock}
	var owners []gctest.Owner
	for range []int{0, 1, 1, 1, 1, 2, 2}[r.IntN(7)] {
		owner := gctest.Owner{Of: among[r.IntN(len(among))].Path, Block: blocks[r.IntN(len(blocks))]}
		if r.IntN(15) == 0 {
			owner.Name, owner.UID = "ghost", "nobody" // with its name, a repeated command would take it for what a named object left
		}
		if !slices.ContainsFunc(owners, func(o gctest.Owner) bool { return o.Of == owner.Of }) {
			owners = append(owners, owner)
		}
	}
	return owners
}

// drawCommand draws what is done to a world.
func drawCommand(r *rand.Rand, s *gctest.Scenario) []string {
	args := []string{"-n", "NS", "--yes"}
	switch r.IntN(6) {
	case 0:
		args = append([]string{"collect"}, args...)
	case 1:
		args = append([]string{"delete", "configmaps", "--all"}, args...)
	default:
		args = append([]string{"delete", s.Objects[r.IntN(min(3, len(s.Objects)))].Path.String()}, args...)
		if r.IntN(4) == 0 {
			args = append(args, "--order=safe")
		}
	}
	if args[0] == "delete" {
		args = append(args, "--cascade="+[]string{"background", "background", "foreground", "foreground", "orphan"}[r.IntN(5)])
	}
	if r.IntN(6) == 0 {
		args = append(args, "--timeout=20s")
	} else {
		args = append(args, "--wait=false")
	}
	if r.IntN(3) > 0 {
		args = append(args, "-ojson")
	}
	return args
}
