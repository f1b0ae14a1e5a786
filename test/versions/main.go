// SPDX-License-Identifier: Apache-2.0

// Command versions runs the tests that need a control plane against API servers and
// controller managers of other versions of Kubernetes, and writes what they say into
// docs/compatibility.md.
//
//	go run ./test/versions -versions "1.30.14 1.33.13" -out docs/compatibility.md
//
// It builds the servers of a version that it has not built yet, which takes about five
// minutes each. A failed test fails the command, after the page is written.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"
)

// versionEnv is VersionEnv of module test/cluster.
const versionEnv = "KUBECTL_GC_TEST_KUBERNETES"

// packages are those whose tests run against each version, with their arguments.
var packages = [][]string{
	{"./test/e2e"},
	{"./pkg/cluster", "-run=TestConformance"},
	{"./test/differential", "-run=TestDifferential$|TestVanishingLive", "-cases=300"},
}

func main() {
	versions := flag.String("versions", "", "`versions` of kube-apiserver and kube-controller-manager, separated by spaces")
	out := flag.String("out", "", "`file` to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, strings.Fields(*versions), *out); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, versions []string, out string) error {
	if len(versions) == 0 {
		return fmt.Errorf("no versions: name them with -versions, as in 1.30.14")
	}
	page := &page{When: time.Now().UTC().Format(time.DateOnly)}
	for _, version := range versions {
		r, err := test(ctx, strings.TrimPrefix(version, "v"))
		if err != nil {
			return err
		}
		page.Results = append(page.Results, r)
	}
	var err error
	if page.Differences, err = differences("test/e2e/testdata"); err != nil {
		return err
	}
	if out != "" {
		if err := os.WriteFile(out, []byte(page.String()), 0o644); err != nil {
			return fmt.Errorf("writing the page: %w", err)
		}
	}
	for _, r := range page.Results {
		if len(r.Failed) > 0 {
			return fmt.Errorf("Kubernetes %s: %d failed: %s", r.Version, len(r.Failed), strings.Join(r.Failed, ", "))
		}
	}
	return nil
}

// test runs the tests against servers of a version.
func test(ctx context.Context, version string) (*result, error) {
	r := &result{Version: version, Skipped: map[string]string{}}
	for _, arguments := range packages {
		fmt.Fprintf(os.Stderr, "versions: Kubernetes %s: go test %s\n", version, strings.Join(arguments, " "))
		command := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-count=1", "-timeout=60m"}, arguments...)...)
		command.Env = append(os.Environ(), versionEnv+"="+version)
		command.Stderr = os.Stderr
		stdout, err := command.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := command.Start(); err != nil {
			return nil, fmt.Errorf("starting go test: %w", err)
		}
		if err := r.read(stdout); err != nil {
			return nil, err
		}
		if err := command.Wait(); err != nil && len(r.Failed) == 0 {
			return nil, fmt.Errorf("go test %s: %w", arguments[0], err)
		}
	}
	return r, nil
}
