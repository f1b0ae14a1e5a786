// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width that help is wrapped at.
const helpWidth = 80

// flagGroups are the groups of flags in help, in their order. What no group names is about what to do.
var flagGroups = []struct {
	title string
	flags []string
}{
	{"What to select", []string{
		"all-namespaces", "namespace", "selector", "field-selector", "filename", "recursive", "kustomize", "from", "all", "scope",
		"owners", "dependents", "both", "depth", "types", "exclude-types", "isolated", "rule", "severity", "baseline", "older-than",
		"cause", "ignore-not-found",
	}},
	{"What to do", nil},
	{"Output", []string{
		"output", "template", "color", "steps", "full", "open", "status", "no-headers", "show-labels", "label-columns", "sort-by",
		"overwrite", "client", "no-descriptions",
	}},
	{"Safety", []string{"dry-run", "confirm", "yes", "interactive", "strict", "allow-incomplete", "probe", "redact", "redact-key"}},
}

// everyday are the flags of all commands that help shows with those of the command; options has the others.
var everyday = []string{"namespace", "from", "color", "strict"}

// addHelp makes help begin with examples and group the flags, and adds the command that shows those of all commands.
func (g *globals) addHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { g.writeHelp(cmd.OutOrStdout(), cmd) })
	root.AddCommand(&cobra.Command{
		Use: "options", Short: "Show the flags that every command has", Hidden: true,
		Args:              func(_ *cobra.Command, args []string) error { return noArguments(args) },
		ValidArgsFunction: cobra.NoFileCompletions,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(g.Out, "Flags that every command has:\n%s", cmd.Root().PersistentFlags().FlagUsagesWrapped(helpWidth))
		},
	})
}

// writeHelp writes the help of a command: what it is for, examples, how it is called, the rest of its text, and its flags.
func (g *globals) writeHelp(w io.Writer, cmd *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
	fmt.Fprintln(w, first)
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	fmt.Fprintln(w, "\nUsage:")
	if cmd.Runnable() && cmd.HasParent() {
		fmt.Fprintln(w, "  "+cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s [command]\n\nCommands:\n", cmd.CommandPath())
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-*s %s\n", cmd.Commands()[0].NamePadding(), c.Name(), c.Short)
			}
		}
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintln(w, "\nOther names: "+strings.Join(cmd.Aliases, ", "))
	}
	if rest != "" {
		fmt.Fprintln(w, "\n"+rest)
	}
	if cmd.HasParent() {
		writeFlags(w, cmd)
	} else {
		fmt.Fprintf(w, "\nUse \"%s [command] --help\" for more about a command.\n", cmd.CommandPath())
	}
	fmt.Fprintf(w, "\nConnection, impersonation and logging: %s options\n", g.name)
}

// writeFlags writes the flags of a command in their groups.
func writeFlags(w io.Writer, cmd *cobra.Command) {
	for i, group := range flagGroups {
		flags := pflag.NewFlagSet(group.title, pflag.ContinueOnError)
		flags.SortFlags = true
		add := func(flag *pflag.Flag) {
			if flagGroupOf(flag.Name) == i {
				flags.AddFlag(flag)
			}
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.Name != "help" {
				add(flag)
			}
		})
		for _, name := range everyday {
			if flag := cmd.InheritedFlags().Lookup(name); flag != nil {
				add(flag)
			}
		}
		if flags.HasAvailableFlags() {
			fmt.Fprintf(w, "\n%s:\n%s", group.title, flags.FlagUsagesWrapped(helpWidth))
		}
	}
}

// flagGroupOf returns the number of the group of a flag.
func flagGroupOf(name string) int {
	others := 0
	for i, group := range flagGroups {
		if slices.Contains(group.flags, name) {
			return i
		}
		if group.flags == nil {
			others = i
		}
	}
	return others
}
