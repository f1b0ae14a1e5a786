// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestWithoutFlags(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.BoolP("yes", "y", false, "")
	flags.BoolP("interactive", "i", false, "")
	flags.BoolP("verbose", "v", false, "")
	flags.StringP("output", "o", "", "")
	flags.StringP("namespace", "n", "", "")
	flags.Duration("timeout", 0, "")
	flags.String("dry-run", "", "")
	flags.Lookup("dry-run").NoOptDefVal = "client"
	for given, want := range map[string]string{
		"uninstall helm web -n shop --prepare":                 "uninstall helm web -n shop --prepare", // no such flag
		"uninstall helm web --yes --timeout=40s -n shop":       "uninstall helm web -n shop",
		"uninstall helm web --timeout 40s -y -n -y":            "uninstall helm web -n -y",
		"uninstall helm web -o json --namespace --yes":         "uninstall helm web --namespace --yes",
		"uninstall --dry-run helm web -ojson -vy -yv -f -":     "uninstall helm web -v -v -f -",
		"uninstall --dry-run=server -y=true -yo json helm web": "uninstall helm web",
		"uninstall helm -ynshop -- --yes":                      "uninstall helm -nshop -- --yes",
		"uninstall helm -n":                                    "uninstall helm -n",
	} {
		if got := strings.Join(withoutFlags(strings.Fields(given), flags, ofThisRun), " "); got != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
}
