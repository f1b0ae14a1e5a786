// SPDX-License-Identifier: Apache-2.0

// Package nightly tells tests apart: make test has a short form of everything, make
// nightly the rest, which takes an hour. A test that is short in one and long in the
// other asks Of; one that is in the latter alone calls Only.
package nightly

import (
	"os"
	"testing"
)

// Env names the environment variable with which the long form runs.
const Env = "KUBECTL_GC_NIGHTLY"

// Is reports whether the long form runs.
func Is() bool { return os.Getenv(Env) != "" }

// Of returns the first in the short form, the second in the long one.
func Of[T any](short, long T) T {
	if Is() {
		return long
	}
	return short
}

// Only skips a test in the short form. why says what takes long.
func Only(tb testing.TB, why string) {
	tb.Helper()
	if !Is() {
		tb.Skip("in make nightly: " + why)
	}
}
