// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// versionEnv is VersionEnv of module test/cluster.
const versionEnv = "KUBECTL_GC_TEST_KUBERNETES"

// Other returns the version of the servers when it is not the one that the tests are
// written for, as in 1.30.14, and otherwise nothing.
func Other() string { return strings.TrimPrefix(os.Getenv(versionEnv), "v") }

// usual is the version that the tests are written for: that of module test/cluster.
const usual = "1.36.3"

// Since reports whether the servers have at least the version, as in 1.34.
func Since(v string) bool {
	return version.MustParseGeneric(cmp.Or(Other(), usual)).AtLeast(version.MustParseGeneric(v))
}

// Needs skips a test that the servers are too old for, and says why.
func Needs(tb testing.TB, v, reason string) {
	tb.Helper()
	if !Since(v) {
		tb.Skipf("needs Kubernetes %s: %s", v, reason)
	}
}
