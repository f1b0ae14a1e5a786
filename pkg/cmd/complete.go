// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
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

// completer connects to the cluster for a completion and calls f; without a
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
	slices.Sort(c.values)
	return c.values, c.directive | cobra.ShellCompDirectiveNoFileComp
}

// completeObjects completes TYPE NAME and TYPE/NAME arguments.
func (g *globals) completeObjects(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return g.complete(cmd, func(ctx context.Context, s *session) completed {
		kind, rest, slash := strings.Cut(word, "/")
		switch {
		case slash:
			return completed{values: s.completeNames(ctx, kind, rest, kind+"/")}
		case len(args) > 0 && !strings.Contains(args[0], "/"):
			return completed{values: s.completeNames(ctx, args[0], word, "")}
		}
		return completed{values: s.completeTypes(word)}
	})
}

// completeTypes returns the types whose names start with the prefix.
func (s *session) completeTypes(prefix string) []string {
	var types []string
	for _, resource := range s.reader.Resources() {
		if name := resource.GroupResource().String(); strings.HasPrefix(name, prefix) {
			types = append(types, name)
		}
	}
	return types
}

// completeNames returns the names of a type's objects that start with the
// prefix, each after lead.
func (s *session) completeNames(ctx context.Context, kind, prefix, lead string) []string {
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
	var names []string
	for _, o := range objects {
		if strings.HasPrefix(o.Name, prefix) {
			names = append(names, lead+o.Name)
		}
	}
	return names
}

// registerCompletions completes the values of the flags that every command
// has.
func (g *globals) registerCompletions(root *cobra.Command) {
	g.completeValues(root, map[string][]string{"color": {"auto", "always", "never"}})
	register(root, "namespace", func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return g.complete(cmd, func(ctx context.Context, s *session) completed {
			return completed{values: s.completeNames(ctx, "namespaces", word, "")}
		})
	})
	for flag, names := range map[string]func() []string{
		"context": g.contexts, "cluster": g.clusters, "user": g.users,
	} {
		register(root, flag, func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
			matching := slices.DeleteFunc(names(), func(name string) bool { return !strings.HasPrefix(name, word) })
			slices.Sort(matching)
			return matching, cobra.ShellCompDirectiveNoFileComp
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

// completeTypes completes flags that take types.
func (g *globals) completeTypes(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		register(cmd, flag, func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
			return g.complete(cmd, func(_ context.Context, s *session) completed {
				return completed{values: s.completeTypes(word)}
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
