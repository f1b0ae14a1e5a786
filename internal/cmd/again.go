// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// again is the command of this run with the flags that it has, but for some, and with more.
func (g *globals) again(without []string, more ...string) string {
	return g.name + " " + shell.Command(wordsOf(g.ran, g.ranWith, without, more...))
}

// wordsOf are the words of a command after the program's: its names, its arguments, and the flags that were set, in the order of the
// user. The value of --token, and of --server with a password, is left out: terminals and logs are read by others.
func wordsOf(cmd *cobra.Command, args, without []string, more ...string) []string {
	words := strings.Fields(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()))
	var flags []string
	sorted := cmd.Flags().SortFlags
	cmd.Flags().SortFlags = false
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(without, f.Name) {
			flags = append(flags, wordsOfFlag(f)...)
		}
	})
	cmd.Flags().SortFlags = sorted
	flags = append(flags, more...)
	if slices.ContainsFunc(args, func(arg string) bool { return len(arg) > 1 && strings.HasPrefix(arg, "-") }) {
		return slices.Concat(words, flags, []string{"--"}, args)
	}
	return slices.Concat(words, args, flags)
}

// wordsOfFlag are a flag with its value, once for each of several.
func wordsOfFlag(f *pflag.Flag) (words []string) {
	values := []string{f.Value.String()}
	if several, is := f.Value.(pflag.SliceValue); is {
		values = several.GetSlice()
	}
	for _, value := range values {
		switch {
		case f.Name == "token", f.Name == "server" && strings.Contains(value, "@"): // which has a password
			words = append(words, "--"+f.Name+"=...")
		case f.NoOptDefVal != "" && value == f.NoOptDefVal:
			words = append(words, "--"+f.Name)
		case f.NoOptDefVal == "" && f.Shorthand != "" && f.Shorthand != f.Name && value != "":
			words = append(words, "-"+f.Shorthand, value)
		default:
			words = append(words, "--"+f.Name+"="+value)
		}
	}
	return words
}
