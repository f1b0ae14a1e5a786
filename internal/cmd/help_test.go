// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestHelp: the help of every command fits a terminal, but for examples, which are to be copied, and how it is called. It has
// examples before flags, and each flag once.
func TestHelp(t *testing.T) {
	root := Command("kubectl-gc")
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				visit(c)
			}
		}
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.HelpFunc()(cmd, nil)
		text := out.String()
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > helpWidth && !strings.HasPrefix(line, "  kubectl gc") && !strings.Contains(cmd.Example, line) &&
				(cmd.Parent() == nil || cmd.Parent().Name() != "completion") { // whose texts are cobra's
				t.Errorf("%s: too long: %s", cmd.CommandPath(), line)
			}
		}
		examples, output := strings.Index(text, "Examples:"), strings.Index(text, "\nOutput:")
		if examples < 0 != (cmd.Example == "") || output >= 0 && examples > output {
			t.Errorf("%s: examples are at %d, flags at %d", cmd.CommandPath(), examples, output)
		}
		if !cmd.HasParent() {
			return
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if n := strings.Count(text, " --"+flag.Name+" "); n == 0 && flag.Name != "help" && !flag.Hidden && flag.NoOptDefVal == "" {
				t.Errorf("%s: --%s is not shown", cmd.CommandPath(), flag.Name)
			}
		})
	}
	visit(root)
}

// TestOptions: the flags that help leaves out are those that options shows.
func TestOptions(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	if code := Run(t.Context(), []string{"kubectl-gc", "options"}, streams); code != exitDone {
		t.Fatalf("exit code %d", code)
	}
	for _, flag := range []string{"--kubeconfig", "--context", "--as", "--token", "--v", "--request-timeout"} {
		if !strings.Contains(out.String(), " "+flag+" ") {
			t.Errorf("%s is not shown:\n%s", flag, out.String())
		}
	}
}

// TestFlagGroups: a group names no flag that does not exist.
func TestFlagGroups(t *testing.T) {
	known := map[string]bool{}
	root := Command("kubectl-gc")
	add := func(flag *pflag.Flag) { known[flag.Name] = true }
	root.PersistentFlags().VisitAll(add)
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(add)
		for _, c := range cmd.Commands() {
			c.Flags().VisitAll(add)
		}
	}
	for _, group := range flagGroups {
		for _, name := range group.flags {
			if !known[name] {
				t.Errorf("%s: no command has --%s", group.title, name)
			}
		}
	}
}
