// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/test/debian"
)

// TestAlerting has Prometheus' and Alertmanager's own tools check the examples for
// them, and say who hears of which alert.
func TestAlerting(t *testing.T) {
	parallel(t)
	programs, err := debian.Find("alerting", []string{"promtool", "amtool"}, []string{"prometheus", "prometheus-alertmanager"})
	if err != nil {
		t.Skipf("needs promtool and amtool: %v", err)
	}
	run := func(words ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "env", words...) // finds the program in the new PATH
		cmd.Dir, cmd.Env = root+"/docs/examples", programs.Environ()
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v\n%s%s", strings.Join(words, " "), err, out, &stderr)
		}
		return strings.TrimSpace(string(out))
	}
	run("promtool", "check", "rules", "alerts.yaml")
	run("promtool", "test", "rules", "../../test/e2e/testdata/alerts_test.yaml")
	run("amtool", "check-config", "alertmanager.yaml")
	for alert, want := range map[string]string{
		"alertname=DeletionStuck namespace=shop":      "shop",
		"alertname=DeletionStuck namespace=shop-eu":   "shop",
		"alertname=DeletionStuck namespace=warehouse": "cluster",
		"alertname=DeletionStuck":                     "cluster",
		"alertname=GarbageCollectorBehind":            "cluster",
	} {
		words := append([]string{"amtool", "config", "routes", "test", "--config.file=alertmanager.yaml"}, strings.Fields(alert)...)
		if got := run(words...); got != want {
			t.Errorf("%s goes to %q, want %q", alert, got, want)
		}
	}
}
