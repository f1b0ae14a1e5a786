// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// again is the command of this run with the flags that it has, but for some, and with more. What this run has read from standard input,
// it wants again.
func (g *globals) again(without []string, more ...string) string {
	command := g.name + " " + shell.Command(wordsOf(g.ran, g.ranWith, without, more...))
	if slices.Contains(wordsOf(g.ran, g.ranWith, without), "-") {
		command += " < INPUT"
	}
	return command
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

// helmFlags are those of Helm for the flags of kubectl that it calls otherwise.
var helmFlags = map[string]string{
	"context": "kube-context", "server": "kube-apiserver", "token": "kube-token", "as": "kube-as-user", "as-group": "kube-as-group",
	"certificate-authority": "kube-ca-file", "insecure-skip-tls-verify": "kube-insecure-skip-tls-verify",
	"tls-server-name": "kube-tls-server-name",
}

// commandOf is the command of another tool, on the cluster of this run and as its user, but for the flags without. What that has no flag
// for, it refuses.
func (g *globals) commandOf(words []string, without ...string) string {
	if len(words) == 0 {
		return ""
	}
	words = slices.Clone(words)
	g.ran.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(connecting, f.Name) || slices.Contains(without, f.Name) {
			return
		}
		long := *f
		long.Shorthand = ""
		for _, word := range wordsOfFlag(&long) {
			if name := helmFlags[f.Name]; words[0] == "helm" && name != "" {
				word = "--" + name + strings.TrimPrefix(word, "--"+f.Name)
			}
			words = append(words, word)
		}
	})
	return shell.Command(words)
}

// connecting are the flags that say which cluster is meant, and who asks it.
var connecting = []string{
	"kubeconfig", "context", "cluster", "user", "server", "token", "as", "as-group", "as-uid", "as-user-extra", "certificate-authority",
	"client-certificate", "client-key", "insecure-skip-tls-verify", "tls-server-name",
}
