// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// completionTimeout bounds what the user waits for after pressing the
// completion key. A cluster that cannot be reached completes to nothing.
const completionTimeout = 2 * time.Second

// completionLimit is the number of names read to complete one.
const completionLimit = 500

// completed is what a completion function of cobra returns.
type completed struct {
	values    []string
	directive cobra.ShellCompDirective
}

// complete connects to the cluster for a completion and calls f; without a
// cluster there are no values.
func (g *globals) complete(cmd *cobra.Command, f func(context.Context, *session) completed) ([]string, cobra.ShellCompDirective) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	s, err := g.connect(ctx, completionLimit)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c := f(ctx, s)
	if c.directive&cobra.ShellCompDirectiveKeepOrder == 0 {
		slices.Sort(c.values)
	}
	return c.values, c.directive | cobra.ShellCompDirectiveNoFileComp
}

// completeObjects completes TYPE NAME and TYPE/NAME arguments.
func (g *globals) completeObjects(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return g.complete(cmd, func(ctx context.Context, s *session) completed {
		kind, lead, isName := named(args, word)
		if !isName {
			return s.completeTypes(word, len(args) > 0)
		}
		return completed{values: matching(names(s.firstPage(ctx, kind), lead), args, word)}
	})
}

// completeOne completes the only argument of a command with what the cluster has.
func (g *globals) completeOne(of func(context.Context, *session) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return g.complete(cmd, func(ctx context.Context, s *session) completed {
			return completed{values: matching(of(ctx, s), nil, word)}
		})
	}
}

// named reports whether the word is the name of an object, and if so of which
// type and what stands before the name in the word.
func named(args []string, word string) (kind, lead string, isName bool) {
	if kind, _, slash := strings.Cut(word, "/"); slash {
		return kind, kind + "/", true
	}
	if len(args) > 0 && !strings.Contains(args[0], "/") {
		return args[0], "", true
	}
	return "", "", false
}

// matching returns the values that start with the word, without those that
// were given before.
func matching(values, given []string, word string) []string {
	return slices.DeleteFunc(values, func(value string) bool {
		return !strings.HasPrefix(value, word) || slices.Contains(given, value)
	})
}

// completeTypes returns the types whose names start with the prefix. After an
// argument of the form TYPE/NAME others must have it, too.
func (s *session) completeTypes(prefix string, slash bool) completed {
	c := completed{}
	for _, resource := range s.reader.Resources() {
		if name := resource.GroupResource().String(); strings.HasPrefix(name, prefix) {
			c.values = append(c.values, name)
		}
	}
	if slash {
		c.directive = cobra.ShellCompDirectiveNoSpace
		for i := range c.values {
			c.values[i] += "/"
		}
	}
	return c
}

// firstPage returns objects of a type, in any form that kubectl takes. None are
// returned for what cannot be read.
func (s *session) firstPage(ctx context.Context, kind string) []graph.Object {
	mapper, err := s.ToRESTMapper()
	if err != nil {
		return nil
	}
	gvk, err := mapper.KindFor(schema.ParseGroupResource(kind).WithVersion(""))
	if err != nil {
		return nil
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil
	}
	objects, err := s.reader.Page(ctx, graph.ResourceOf(mapping), s.namespace, completionLimit)
	if err != nil {
		return nil
	}
	return objects
}

// names returns the names of objects, each after lead.
func names(objects []graph.Object, lead string) []string {
	var names []string
	for i := range objects {
		names = append(names, lead+objects[i].Name)
	}
	return names
}

// registerCompletions completes the values of the flags that every command
// has.
func (g *globals) registerCompletions(root *cobra.Command) {
	g.completeValues(root, map[string][]string{"color": {"auto", "always", "never"}})
	register(root, "namespace", func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return g.complete(cmd, func(ctx context.Context, s *session) completed {
			return completed{values: matching(names(s.firstPage(ctx, "namespaces"), ""), nil, word)}
		})
	})
	for flag, names := range map[string]func() []string{
		"context": g.contexts, "cluster": g.clusters, "user": g.users,
	} {
		register(root, flag, func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
			values := matching(names(), nil, word)
			slices.Sort(values)
			return values, cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// completionLong says how kubectl and the shells come to complete the plugin.
// PROGRAM stands where the program's file name goes, NAME where the plugin's.
const completionLong = `Write a script with which a shell completes PROGRAM.

For the plugin, NAME, no script is needed in a shell in which kubectl
itself completes: kubectl 1.26 and later run kubectl_complete-PLUGIN from the
PATH. Where only PROGRAM was installed, as krew does, link it under
that name:

  ln -s PROGRAM "${KREW_ROOT:-$HOME/.krew}/bin/kubectl_complete-PLUGIN"

Types, objects, namespaces and contexts come from the cluster and the
kubeconfig. A cluster that does not answer within two seconds completes to
nothing.`

// addCompletion adds the commands that write completion scripts.
func addCompletion(root *cobra.Command, program, name string) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		if plugin, ok := strings.CutPrefix(program, "kubectl-"); ok {
			cmd.Long = strings.NewReplacer("PROGRAM", program, "NAME", name, "PLUGIN", plugin).Replace(completionLong)
		}
		// Without these, cobra answers any other word with the help, and success.
		cmd.Args, cmd.DisableFlagsInUseLine = knownShell, true
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
}

// knownShell accepts no arguments: the shells are commands of their own.
func knownShell(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var shells []string
	for _, shell := range cmd.Commands() {
		shells = append(shells, shell.Name())
	}
	return usageError{fmt.Errorf("unknown shell %q: must be one of %s", args[0], strings.Join(shells, ", "))}
}

// fileFlags are the flags whose values are files; the shell completes those.
var fileFlags = []string{"kubeconfig", "certificate-authority", "client-certificate", "client-key", "filename", "template", "finalizers",
	"from", "baseline", "redact-key", "output"}

// directoryFlags are the flags whose values are directories.
var directoryFlags = []string{"cache-dir", "kustomize"}

// completeOthers keeps the shell from offering files for the flags of all
// commands whose values nobody can foresee. It comes after all other
// registrations.
func completeOthers(root *cobra.Command) {
	for _, cmd := range append(root.Commands(), root) {
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if _, done := cmd.GetFlagCompletionFunc(flag.Name); done || slices.Contains(fileFlags, flag.Name) {
				return
			}
			directive := cobra.ShellCompDirectiveNoFileComp
			if slices.Contains(directoryFlags, flag.Name) {
				directive = cobra.ShellCompDirectiveFilterDirs
			}
			register(cmd, flag.Name, cobra.FixedCompletions(nil, directive))
		})
	}
}

func (g *globals) contexts() []string { return g.kubeconfigNames("contexts") }
func (g *globals) clusters() []string { return g.kubeconfigNames("clusters") }
func (g *globals) users() []string    { return g.kubeconfigNames("users") }

// kubeconfigNames returns the names in one section of the kubeconfig.
func (g *globals) kubeconfigNames(section string) []string {
	config, err := g.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil
	}
	var names []string
	switch section {
	case "contexts":
		for name := range config.Contexts {
			names = append(names, name)
		}
	case "clusters":
		for name := range config.Clusters {
			names = append(names, name)
		}
	case "users":
		for name := range config.AuthInfos {
			names = append(names, name)
		}
	}
	return names
}

// completeValues completes flags that take one of a few words.
func (g *globals) completeValues(cmd *cobra.Command, values map[string][]string) {
	for flag, words := range values {
		register(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}

// completeTypes completes flags that take types, separated by commas.
func (g *globals) completeTypes(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		register(cmd, flag, func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
			return g.complete(cmd, func(_ context.Context, s *session) completed {
				before := word[:strings.LastIndex(word, ",")+1]
				c := s.completeTypes(strings.TrimPrefix(word, before), false)
				for i := range c.values {
					c.values[i] = before + c.values[i]
				}
				return c
			})
		})
	}
}

// register panics for a flag that does not exist: a mistake in this package.
func register(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}
