// SPDX-License-Identifier: Apache-2.0

// Command versions runs the tests that need a control plane against API servers and
// controller managers of other versions of Kubernetes, and writes what they say into
// docs/compatibility.md.
//
//	go run ./test/versions -versions "1.30.14 1.33.13" -out docs/compatibility.md
//
// What the tests say of a version is kept in a file for each below test/versions/results, so that the page has all that were ever run, each
// with its day. It builds the servers of a version that it has not built yet, which takes about five minutes each. A failed test fails the
// command, after the page is written.
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

// packages are those whose tests run against each version: the directory of their module, and arguments.
var packages = [][]string{
	{".", "./test/e2e"},
	{".", "./internal/cluster", "-run=TestConformance"},
	{".", "./test/differential", "-run=TestDifferential$|TestVanishingLive", "-cases=300"},
	{"deletiontest", ".", "-run=TestScenarios"},
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
	var failed []string
	for _, version := range versions {
		r, err := test(ctx, strings.TrimPrefix(version, "v"))
		if err == nil {
			err = r.save(resultsDir)
		}
		if err == nil {
			err = write(out)
		}
		if err != nil {
			return err
		}
		for _, name := range r.Failed {
			failed = append(failed, r.Version+" "+name)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// resultsDir has what the tests said of each version.
const resultsDir = "test/versions/results"

// write writes the page from all results.
func write(out string) error {
	results, err := load(resultsDir)
	if err != nil {
		return err
	}
	page := &page{Results: results}
	if page.Differences, err = differences("test/e2e/testdata"); err != nil || out == "" {
		return err
	}
	if err := os.WriteFile(out, []byte(page.String()), 0o644); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// test runs the tests against servers of a version.
func test(ctx context.Context, version string) (*result, error) {
	r := &result{Version: version, When: time.Now().UTC().Format(time.DateOnly), Skipped: map[string]string{}}
	for _, arguments := range packages {
		fmt.Fprintf(os.Stderr, "versions: Kubernetes %s: go test %s\n", version, strings.Join(arguments[1:], " "))
		command := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-count=1", "-timeout=60m"}, arguments[1:]...)...)
		command.Dir = arguments[0]
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
			return nil, fmt.Errorf("go test %s: %w", arguments[1], err)
		}
	}
	return r, nil
}
