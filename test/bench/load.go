// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// loaded is how much there is in the cluster of load.
type loaded struct{ namespaces, types, objects, dependents, terminating int }

// load runs commands on a crowded cluster, as a user to whom API Priority and Fairness
// applies, and looks at what they take and how long another such user waits meanwhile.
func load(ctx context.Context, args []string) (err error) {
	var size loaded
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.IntVar(&size.namespaces, "namespaces", 2_000, "how many namespaces there are")
	flags.IntVar(&size.types, "types", 200, "how many types are defined")
	flags.IntVar(&size.objects, "objects", 100_000, "how many objects there are, about")
	flags.IntVar(&size.dependents, "dependents", 50_000, "how many dependents one more owner has")
	flags.IntVar(&size.terminating, "terminating", 10_000, "how many objects are in deletion for ever")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := &bench{}
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if err := b.build(ctx); err != nil {
		return err
	}
	const operator, bystander = "operator", "bystander"
	cp, err := controlplane.Run(ctx, controlplane.Options{
		APIServerArgs: []string{"--service-cluster-ip-range=10.0.0.0/16"}, // for all the Services in deletion
		Users:         []controlplane.User{{Name: operator}, {Name: bystander}},
	}, os.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	if err := b.fill(ctx, cp, size); err != nil {
		return err
	}
	for _, user := range []string{operator, bystander} {
		if err := allow(ctx, cp, user); err != nil {
			return err
		}
	}
	return b.burden(ctx, cp, cp.Users[operator], cp.Users[bystander], os.Stdout)
}

// fill makes what is in the cluster.
func (b *bench) fill(ctx context.Context, cp *controlplane.ControlPlane, size loaded) error {
	for _, more := range [][]string{
		{"-objects", strconv.Itoa(size.objects), "-namespaces", strconv.Itoa(size.namespaces), "-types", strconv.Itoa(size.types), "-wrong", strconv.Itoa(size.objects / 300), "-terminating", strconv.Itoa(size.terminating)},
		{"-dependents", strconv.Itoa(size.dependents)},
	} {
		progress("populate %s", strings.Join(more, " "))
		c := contender{args: slices.Concat([]string{b.self, "populate", "-kubeconfig", cp.Kubeconfig}, more), silent: true}
		if _, err := c.run(ctx); err != nil {
			return err
		}
	}
	return untilAtRest(ctx)
}

// allow lets a user do everything, as an ordinary user: those of the group
// system:masters API Priority and Fairness does not touch.
func allow(ctx context.Context, cp *controlplane.ControlPlane, user string) error {
	c, err := newCreator(cp.Kubeconfig)
	if err != nil {
		return err
	}
	_, err = c.create(ctx, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"metadata":{"name":"load-`+user+`"},`+
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},`+
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"`+user+`"}]}`)
	return err
}

// burden runs the commands and writes a table.
func (b *bench) burden(ctx context.Context, cp *controlplane.ControlPlane, operator, bystander string, out io.Writer) error {
	fmt.Fprintln(out, "| command | wall s | CPU s | peak RSS MB | requests | MB received | API server CPU s | refused (429) | another user's GET, ms, median (longest) |")
	fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|---:|---|")
	idle, err := waits(ctx, bystander, func() error { time.Sleep(10 * time.Second); return nil })
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| nothing | | | | | | | | %s |\n", idle)
	for _, line := range []string{
		"tree -n default configmap/owner -o name", "tree -A -o name", "check -A --settle=0 -o name", "explain-stuck -A", "explain-stuck -A -o json",
		"graph -A -o json", "snapshot --overwrite -o " + filepath.Join(b.dir, "load.snapshot"), "collect -A --dry-run", "delete -n default configmap/owner --dry-run",
		"delete -n default configmap/owner --cascade=foreground --yes -o name",
	} {
		progress("kubectl gc %s", line)
		settle(ctx, cp.PIDs["apiserver"])
		row, err := b.weigh(ctx, cp, operator, bystander, strings.Fields(line))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| `%s` | %s |\n", strings.ReplaceAll(line, b.dir+"/", ""), row)
	}
	return nil
}

var spoken = regexp.MustCompile(`(\d+) requests: .*; ([0-9.]+) kB received`)

// weigh runs one command, and returns its row of the table.
func (b *bench) weigh(ctx context.Context, cp *controlplane.ControlPlane, operator, bystander string, words []string) (string, error) {
	refused, err := refusals(ctx, cp.Kubeconfig)
	if err != nil {
		return "", err
	}
	server := cpuOf(cp.PIDs["apiserver"])
	c := contender{args: slices.Concat([]string{b.plugin}, words, []string{"--kubeconfig", operator, "-v=2"}), silent: true, finds: true}
	var sample Sample
	other, err := waits(ctx, bystander, func() (err error) {
		sample, err = c.run(ctx)
		return err
	})
	if err != nil {
		return "", err
	}
	server = cpuOf(cp.PIDs["apiserver"]) - server
	more, err := refusals(ctx, cp.Kubeconfig)
	if err != nil {
		return "", err
	}
	said := spoken.FindStringSubmatch(sample.Said)
	if said == nil {
		return "", fmt.Errorf("%s does not say what it asked for:\n%s", strings.Join(words, " "), sample.Said)
	}
	kB, err := strconv.ParseFloat(said[2], 64)
	return fmt.Sprintf("%s | %s | %s | %s | %s | %s | %d | %s", number(sample.Wall.Seconds()), number(sample.CPU.Seconds()),
		number(float64(sample.RSS)/1e6), said[1], number(kB/1e3), number(server.Seconds()), int(more-refused), other), err
}

// waits has another user get one small object again and again while do runs, and says how
// long he waits for it.
func waits(ctx context.Context, kubeconfig string, do func() error) (string, error) {
	const pause = 20 * time.Millisecond
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", err
	}
	config.QPS = -1
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	done, asked := make(chan struct{}), make(chan error, 1)
	var took []float64
	go func() {
		for {
			began := time.Now()
			if err := client.RESTClient().Get().AbsPath("/api/v1/namespaces/default").Do(ctx).Error(); err != nil {
				asked <- fmt.Errorf("another user is refused: %w", err)
				return
			}
			took = append(took, float64(time.Since(began).Microseconds())/1e3)
			select {
			case <-done:
				asked <- nil
				return
			case <-time.After(pause):
			}
		}
	}()
	failed := do()
	close(done)
	if err := errors.Join(failed, <-asked); err != nil {
		return "", err
	}
	s := newStat(took)
	return fmt.Sprintf("%s (%s)", number(s.median), number(s.max)), nil
}

// refusals is how many requests API Priority and Fairness has refused.
func refusals(ctx context.Context, kubeconfig string) (float64, error) {
	metrics, err := ask(ctx, kubeconfig, "/metrics")
	if err != nil {
		return 0, err
	}
	var all float64
	lines := bufio.NewScanner(bytes.NewReader(metrics))
	lines.Buffer(nil, len(metrics)+1)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "} ")
		if strings.HasPrefix(name, "apiserver_flowcontrol_rejected_requests_total{") {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			all += n
		}
	}
	return all, lines.Err()
}
