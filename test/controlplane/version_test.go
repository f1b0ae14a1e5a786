// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"strings"
	"testing"
)

// The version that the tests are written for is that of the control plane's module.
func TestUsual(t *testing.T) {
	mod, err := os.ReadFile("../cluster/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "\tk8s.io/kubernetes v"+usual+" ") {
		t.Errorf("test/cluster/go.mod has another version than %s", usual)
	}
}

func TestSince(t *testing.T) {
	for _, test := range []struct {
		servers, version string
		want             bool
	}{
		{"", "1.36", true}, {"", "1.37", false}, {"1.30.14", "1.30", true}, {"v1.30.14", "1.33", false}, {"1.37.0", "1.37", true},
	} {
		t.Setenv(versionEnv, test.servers)
		if Since(test.version) != test.want {
			t.Errorf("%q since %s: %v", test.servers, test.version, !test.want)
		}
	}
}
