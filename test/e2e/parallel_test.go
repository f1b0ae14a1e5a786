// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"runtime"
	"strconv"
	"testing"
)

var (
	// clusters has a place for each test that calls parallel and may have control
	// planes at a time: as many as -parallel says. One takes about half a gigabyte
	// of memory, and some four seconds of a processor to start.
	clusters = make(chan struct{}, 3)
	// scripts has a place for each session that may run at a time.
	scripts = make(chan struct{}, 6*runtime.GOMAXPROCS(0))
)

// suite runs the tests of the package. These mostly wait: for Kubernetes' own
// periods, and for the times after which explain-stuck calls something stuck. So
// more of them run at a time than there are processors.
type suite struct{ *testing.M }

// Run implements testscript.TestingM. It replaces the limit of the testing
// package, which does not know how many control planes there are: a test that
// waits for its sessions does not count for it.
func (s suite) Run() int {
	flag.Parse()
	flag.Visit(func(f *flag.Flag) {
		if n, err := strconv.Atoi(f.Value.String()); f.Name == "test.parallel" && err == nil && n > 0 {
			clusters = make(chan struct{}, n)
		}
	})
	if err := flag.Set("test.parallel", "1000"); err != nil { // more than there are tests and sessions
		panic(err)
	}
	return s.M.Run()
}

// parallel lets a test with control planes of its own run beside others, once
// there is a place for it, which it keeps until its control planes have ended.
// Tests that count requests do without: they have the machine for themselves.
func parallel(t *testing.T) {
	t.Helper()
	t.Parallel()
	clusters <- struct{}{}
	t.Cleanup(func() { <-clusters })
}
