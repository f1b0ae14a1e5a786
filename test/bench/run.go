// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// bench is one run of everything.
type bench struct {
	dir    string // for binaries and kubeconfigs
	self   string
	plugin string
	// objects is the program that sends kubectl tree's requests.
	objects string
	rounds  int

	canned       []int
	goBenchmarks bool
	clusters     []int
	dependents   int
	kubectl      string // kubectl-tree, if there is one
	report       report
}

// sizes is a flag with numbers of objects.
type sizes []int

// String implements flag.Value.
func (s *sizes) String() string { return strings.Trim(fmt.Sprint(*s), "[]") }

// Set implements flag.Value.
func (s *sizes) Set(text string) error {
	*s = nil
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return err
		}
		*s = append(*s, n)
	}
	return nil
}

// run measures everything and writes the page.
func run(ctx context.Context, args []string) error {
	made, real := sizes{5_000, 50_000, 500_000, 1_000_000, 5_000_000}, sizes{50_000, 200_000}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	out := flags.String("out", "", "the page to write; standard output if empty")
	rounds := flags.Int("rounds", 5, "how often each thing is measured")
	dependents := flags.Int("dependents", 5_000, "dependents of the cascades; 0 leaves them out")
	inMemory := flags.Bool("in-memory", true, "run the Go benchmarks, too")
	kubectl := flags.String("kubectl-tree", "", "a kubectl-tree to compare with")
	flags.Var(&made, "made-up", "sizes of the made-up clusters")
	flags.Var(&real, "clusters", "sizes of the real clusters")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := &bench{rounds: *rounds, canned: made, goBenchmarks: *inMemory, clusters: real, dependents: *dependents, kubectl: *kubectl}
	var err error
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if err := b.build(ctx); err != nil {
		return err
	}
	b.report.describe(ctx, args)
	// What was measured before something failed is worth its time.
	var failed error
	for _, step := range []func(context.Context) error{b.startUp, b.madeUp, b.inMemory, b.real, b.cascades} {
		if failed = step(ctx); failed != nil {
			break
		}
	}
	if *out == "" {
		_, err = io.WriteString(os.Stdout, b.report.String())
	} else {
		err = os.WriteFile(*out, []byte(b.report.String()), 0o644)
	}
	return errors.Join(failed, err)
}

// build compiles the plugin as it is released, and the programs to compare with.
func (b *bench) build(ctx context.Context) error {
	b.self, b.plugin, b.objects = filepath.Join(b.dir, "bench"), filepath.Join(b.dir, "kubectl-gc"), filepath.Join(b.dir, "objects")
	for binary, pkg := range map[string]string{b.self: "./test/bench", b.plugin: "./cmd/kubectl-gc", b.objects: "./test/bench/objects"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, pkg) // as make build does
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("building %s: %w", pkg, err)
		}
	}
	return nil
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

// startUp measures --help.
func (b *bench) startUp(ctx context.Context) error {
	info, err := os.Stat(b.plugin)
	if err != nil {
		return err
	}
	results, err := measure(ctx, 4*b.rounds, contender{name: "help", args: []string{b.plugin, "--help"}, silent: true})
	if err != nil {
		return err
	}
	b.report.startUp(results["help"], info.Size())
	return nil
}

// The things that are compared.
const (
	ourGraph    = "graph"
	ourTree     = "kubectl gc tree -A -o name"
	ourCheck    = "kubectl gc check -A --settle=0 -o name"
	ourSettled  = "kubectl gc check -A"
	ourExplain  = "kubectl gc explain-stuck -A"
	ourCollect  = "kubectl gc collect -A --dry-run"
	ourSnapshot = "kubectl gc snapshot -o " + os.DevNull
	inPages     = "graph, in pages"
	bare        = "bare download"
	metadataAll = "client-go metadata client"
)

func (b *bench) contenders(kubeconfig string) []contender {
	client := func(name, command string) contender {
		return contender{name: name, args: []string{b.self, command, "-kubeconfig", kubeconfig}}
	}
	plugin := func(name string) contender {
		words := strings.Fields(strings.TrimPrefix(name, "kubectl gc "))
		return contender{name: name, args: slices.Concat([]string{b.plugin}, words, []string{"--kubeconfig", kubeconfig}), silent: true, finds: true}
	}
	return []contender{
		client(ourGraph, "graph"),
		client(bare, "download"),
		plugin(ourTree), plugin(ourCheck), plugin(ourSettled), plugin(ourExplain), plugin(ourCollect), plugin(ourSnapshot),
		client(metadataAll, "metadata"),
		{name: inPages, args: []string{b.self, "graph", "-in-pages", "-kubeconfig", kubeconfig}},
	}
}

// madeUp measures made-up clusters.
func (b *bench) madeUp(ctx context.Context) error {
	for _, n := range b.canned {
		progress("a made-up cluster of %d objects", n)
		if err := b.madeUpOf(ctx, n); err != nil {
			return fmt.Errorf("a made-up cluster of %d objects: %w", n, err)
		}
	}
	return nil
}

func (b *bench) madeUpOf(ctx context.Context, n int) error {
	kubeconfig, stop, err := b.serve(ctx, n)
	if err != nil {
		return err
	}
	defer stop()
	contenders := b.contenders(kubeconfig)
	contenders = contenders[:2]
	results, err := measure(ctx, b.rounds, contenders...)
	if err != nil {
		return err
	}
	for _, s := range results[ourGraph] {
		if s.Answer.Findings > 0 {
			return fmt.Errorf("%d owner references are wrong", s.Answer.Findings)
		}
	}
	contenders[0].args = append(contenders[0].args, "-heap")
	heap, err := contenders[0].run(ctx)
	if err != nil {
		return err
	}
	b.report.madeUp(results, heap.Answer)
	return nil
}

// serve starts a made-up cluster, in a process of its own.
func (b *bench) serve(ctx context.Context, n int) (kubeconfigPath string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, b.self, "serve", "-objects", strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		kubeconfigPath = filepath.Join(b.dir, "made-up")
		err = os.WriteFile(kubeconfigPath, kubeconfig(strings.TrimSpace(url)), 0o600)
	}
	if err != nil {
		stop()
		return "", nil, err
	}
	return kubeconfigPath, stop, nil
}

// profile writes profiles of the CPU and of the memory that reading a made-up
// cluster takes.
func profile(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("profile", flag.ContinueOnError)
	dir := flags.String("dir", ".", "where the profiles go")
	objects := flags.Int("objects", 1_000_000, "the size of the cluster")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := &bench{}
	var err error
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	kubeconfig, stop, err := b.serve(ctx, *objects)
	if err != nil {
		return err
	}
	defer stop()
	return graphClient(ctx, []string{
		"-kubeconfig", kubeconfig, "-cpuprofile", filepath.Join(*dir, "cpu.pprof"), "-memprofile", filepath.Join(*dir, "mem.pprof"),
	})
}

// real measures real API servers, one for each size.
func (b *bench) real(ctx context.Context) error {
	for _, n := range b.clusters {
		if err := b.realOf(ctx, n); err != nil {
			return fmt.Errorf("a cluster of %d objects: %w", n, err)
		}
	}
	return nil
}

// filled starts a control plane with that many objects, at rest.
func (b *bench) filled(ctx context.Context, n int) (cp *controlplane.ControlPlane, err error) {
	progress("a cluster of %d objects", n)
	options := controlplane.Options{
		Controllers: "ttl-after-finished-controller", ControllerManagerArgs: []string{"--leader-elect=true"}, // it works, and changes nothing
		APIServerArgs: []string{"--etcd-compaction-interval=" + compaction.String(), "--profiling=true"},
	}
	if cp, err = runFor(ctx, n, options); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, cp.Close())
		}
	}()
	fill := contender{args: slices.Concat([]string{b.self, "populate", "-kubeconfig", cp.Kubeconfig, "-objects", strconv.Itoa(n)}, ugly(n)), silent: true}
	if n > many { // to create them takes an hour
		fill.args = append(fill.args, "-apiserver="+strconv.Itoa(cp.PIDs["apiserver"]))
	}
	took, err := fill.run(ctx)
	if err != nil {
		return nil, err
	}
	progress("filled in %s", took.Wall.Round(time.Second))
	return cp, untilAtRest(ctx)
}

func (b *bench) realOf(ctx context.Context, n int) (err error) {
	cp, err := b.filled(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	contenders := b.contenders(cp.Kubeconfig)
	if n > many { // they would take minutes each, and one of them gigabytes
		contenders = slices.DeleteFunc(contenders, func(c contender) bool { return c.name == metadataAll || c.name == inPages })
		for i := range contenders {
			if contenders[i].name != bare { // which waits as long as it takes
				contenders[i].args = append(contenders[i].args, "--request-timeout="+patience)
			}
		}
	}
	results, server, err := b.onRested(ctx, cp, b.rounds*times(n), contenders)
	if err != nil {
		return err
	}
	b.report.real(results, server)
	if err := b.root(ctx, cp, n); err != nil {
		return err
	}
	if n > many {
		return nil // the API server takes nearly as long for the list of pods as a request may
	}
	return b.far(ctx, cp, n)
}

// times is how many times as often runs are measured that are over in a second or two: of five of
// those it may be three that the server is slow for.
func times(objects int) int {
	const few = 100_000
	switch {
	case objects < few:
		return 3
	case objects < many:
		return 2
	}
	return 1
}

// many is how many objects take more than what etcd and the API server have by default.
const many = 500_000

// patience is how long a request may take where there are that many: the list of the pods
// takes most of the minute that servers and clients give it otherwise.
const patience = "5m"

// runFor starts a control plane for that many objects. For very many of them etcd gets more
// room than 2 GB, and Go programs are told to collect their garbage before the API server has
// twice the memory that its cache takes. Every five minutes it compares this with etcd, which
// would take minutes then.
func runFor(ctx context.Context, objects int, options controlplane.Options) (*controlplane.ControlPlane, error) {
	const etcdBytes, serverBytes = 8 << 10, 17 << 10 // for each object
	if objects > many {
		options.APIServerArgs = append(slices.Clone(options.APIServerArgs),
			"--feature-gates=DetectCacheInconsistency=false", "--request-timeout="+patience)
		for name, each := range map[string]int{"ETCD_QUOTA_BACKEND_BYTES": etcdBytes, "GOMEMLIMIT": serverBytes} {
			if os.Getenv(name) != "" {
				continue // somebody knows better
			}
			if err := os.Setenv(name, strconv.Itoa(objects*each)); err != nil {
				return nil, err
			}
			defer func() { _ = os.Unsetenv(name) }() // what is measured does not have it
		}
	}
	return controlplane.Run(ctx, options, os.Stderr)
}

// onRested measures contenders as measure does, each when the API server has collected its
// garbage, and in another order each time: else its collector would always meet the same. It
// also returns the seconds of CPU that the API server took.
func (b *bench) onRested(ctx context.Context, cp *controlplane.ControlPlane, rounds int, contenders []contender) (map[string]Samples, map[string][]float64, error) {
	results, server := map[string]Samples{}, map[string][]float64{}
	contenders = slices.Clone(contenders)
	for round := range rounds + 1 {
		rand.Shuffle(len(contenders), func(i, j int) { contenders[i], contenders[j] = contenders[j], contenders[i] })
		for _, c := range contenders {
			if err := collected(ctx, cp); err != nil {
				return nil, nil, err
			}
			before := cpuOf(cp.PIDs["apiserver"])
			sample, err := c.run(ctx)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", c.name, err)
			}
			if round > 0 {
				results[c.name] = append(results[c.name], sample)
				server[c.name] = append(server[c.name], (cpuOf(cp.PIDs["apiserver"]) - before).Seconds())
			}
		}
	}
	return results, server, nil
}

// ugly returns how a cluster of that many objects is spoilt: as those are that have been
// in use for years.
func ugly(objects int) []string {
	const types, wrongOf, terminatingOf, garbageOf = 60, 300, 700, 140
	return []string{
		"-types", strconv.Itoa(types), "-wrong", strconv.Itoa(max(1, objects/wrongOf)), "-terminating", strconv.Itoa(max(len(stuckKinds), objects/terminatingOf)),
		"-garbage", strconv.Itoa(objects / garbageOf),
	}
}

// compaction is how often etcd is compacted, to what there was that long before
// (apiserver/pkg/storage/etcd3/compact.go).
const compaction = 30 * time.Second

// untilAtRest waits until etcd has been compacted to what there is now, and the API
// server has noticed (cacher/compactor.go), as in a cluster in which nothing has
// happened for some minutes.
func untilAtRest(ctx context.Context) error {
	const notices = 20 * time.Second
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(2*compaction + notices):
		return nil
	}
}

// collected has the API server collect its garbage, and waits until it is idle. To
// go over gigabytes takes it seconds, in which it answers slowly; left alone it
// does so at every third or fourth reading of a large cluster.
func collected(ctx context.Context, cp *controlplane.ControlPlane) error {
	if _, err := ask(ctx, cp.Kubeconfig, "/debug/pprof/heap?gc=1"); err != nil {
		return err
	}
	settle(ctx, cp.PIDs["apiserver"])
	return nil
}

// settle waits until a process has done what it still had to do, such as
// collecting its garbage, but not for ever.
func settle(ctx context.Context, pid int) {
	const window, idle = 300 * time.Millisecond, 20 * time.Millisecond
	for range 20 {
		before := cpuOf(pid)
		select {
		case <-ctx.Done():
			return
		case <-time.After(window):
		}
		if cpuOf(pid)-before <= idle {
			return
		}
	}
}

// cpuOf returns the CPU time of a process, of which Linux counts hundredths of
// a second; 0 elsewhere.
func cpuOf(pid int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// root measures the tree of one Deployment.
func (b *bench) root(ctx context.Context, cp *controlplane.ControlPlane, n int) error {
	target := []string{"-n", "team-00000", "--kubeconfig", cp.Kubeconfig}
	tree := func(name string, command ...string) contender {
		return contender{name: name, args: slices.Concat(command, []string{"deployment", "app-00000000"}, target), silent: true}
	}
	contenders := []contender{
		tree("kubectl gc tree", b.plugin, "tree"),
		tree("kubectl gc tree --status=never", b.plugin, "tree", "--status=never"),
		{name: "requests of kubectl tree", args: slices.Concat([]string{b.objects}, target, []string{"app-00000000"})},
	}
	if b.kubectl != "" {
		contenders = append(contenders, tree("kubectl tree", b.kubectl))
	}
	if err := collected(ctx, cp); err != nil {
		return err
	}
	results, err := measure(ctx, 2*b.rounds, contenders...)
	if err != nil {
		return err
	}
	b.report.root(n, contenders, results)
	return nil
}

// far measures the same server from far away.
func (b *bench) far(ctx context.Context, cp *controlplane.ControlPlane, n int) error {
	kubeconfig, stop, err := farAway(ctx, cp.Kubeconfig, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	all := b.contenders(kubeconfig)
	contenders := []contender{
		{name: "kubectl gc tree", args: []string{b.plugin, "tree", "deployment", "app-00000000", "-n", "team-00000", "--kubeconfig", kubeconfig}, silent: true},
	}
	for _, name := range []string{ourTree, ourGraph, inPages, ourExplain, bare} {
		contenders = append(contenders, all[slices.IndexFunc(all, func(c contender) bool { return c.name == name })])
	}
	results, _, err := b.onRested(ctx, cp, b.rounds, contenders)
	if err != nil {
		return err
	}
	b.report.far(n, contenders, results)
	return nil
}

// cascades measures the deletion of an owner with many dependents: by the
// plugin, by bare DELETEs, and by the garbage collector.
func (b *bench) cascades(ctx context.Context) error {
	if b.dependents == 0 {
		return nil
	}
	results, asked := map[string]Samples{}, map[string]string{}
	rounds := max(1, b.rounds/2)
	for _, c := range []struct {
		name, controllers string
		rounds            int
		args              func(kubeconfig string) []string
		silent            bool
	}{
		{"kubectl gc delete", "none", rounds, func(kubeconfig string) []string {
			return []string{b.plugin, "delete", "configmap/owner", "--yes", "-o", "name", "--kubeconfig", kubeconfig}
		}, true},
		{"bare DELETEs", "none", rounds, func(kubeconfig string) []string {
			return []string{b.self, "delete", "-kubeconfig", kubeconfig}
		}, false},
		{"kube-controller-manager", "gc", 1, func(kubeconfig string) []string {
			return []string{b.self, "delete", "-wait", "-kubeconfig", kubeconfig}
		}, false},
	} {
		progress("a cascade over %d dependents: %s", b.dependents, c.name)
		samples, requests, err := b.cascade(ctx, c.controllers, c.rounds, c.silent, c.args)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		results[c.name], asked[c.name] = samples, requests
	}
	b.report.cascades(b.dependents, results, asked)
	return nil
}

// cascade measures one way, on a control plane of its own. It also returns what
// was asked of the API server in the last round.
func (b *bench) cascade(
	ctx context.Context, controllers string, rounds int, silent bool, args func(string) []string,
) (samples Samples, asked string, err error) {
	cp, err := controlplane.Run(ctx, controlplane.Options{Controllers: controllers}, os.Stderr)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	for range rounds {
		fill := contender{args: []string{b.self, "populate", "-kubeconfig", cp.Kubeconfig, "-dependents", strconv.Itoa(b.dependents)}, silent: true}
		if _, err := fill.run(ctx); err != nil {
			return nil, "", err
		}
		before, err := requestsOf(ctx, cp.Kubeconfig)
		if err != nil {
			return nil, "", err
		}
		c := contender{args: args(cp.Kubeconfig), silent: silent}
		sample, err := c.run(ctx)
		if err != nil {
			return nil, "", err
		}
		after, err := requestsOf(ctx, cp.Kubeconfig)
		if err != nil {
			return nil, "", err
		}
		samples, asked = append(samples, sample), after.since(before)
	}
	return samples, asked, nil
}
