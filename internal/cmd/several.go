// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
)

// mostAsked is the number of clusters that are asked at a time.
const mostAsked = 8

// several are the flags with which several clusters are asked, and answered about in one table.
type several struct {
	contexts    []string
	allContexts bool
}

func (s *several) addFlags(g *globals, cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&s.contexts, "contexts", nil,
		"Ask the clusters of these contexts side by side, and answer with one table, the worst first")
	cmd.Flags().BoolVar(&s.allContexts, "all-contexts", false, "Do that with all contexts of the kubeconfig")
	register(cmd, "contexts", func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		return completeList(g.kubeconfigNames("contexts"))(cmd, args, word)
	})
}

func (s *several) given() bool { return s.allContexts || len(s.contexts) > 0 }

// validate finds what makes no sense with several clusters; table says that the answer is a table.
func (s *several) validate(g *globals, table bool) error {
	chosen := func(flag *string) bool { return flag != nil && *flag != "" }
	c := g.config
	switch {
	case !s.given():
		return nil
	case s.allContexts && len(s.contexts) > 0:
		return usageError{errors.New("--contexts and --all-contexts exclude each other")}
	case len(g.from) > 0:
		return usageError{errors.New("--contexts asks clusters, and --from reads a file")}
	case !table:
		return usageError{errors.New("--contexts answers with one table: it goes neither with -o nor with --watch")}
	case slices.ContainsFunc([]*string{c.Context, c.ClusterName, c.AuthInfoName, c.APIServer, c.BearerToken}, chosen):
		return usageError{errors.New("--contexts chooses the clusters: it does not go together with --context, --cluster, --user, --server and --token")}
	}
	return nil
}

// asked returns the contexts that are asked.
func (s *several) asked(g *globals) ([]string, error) {
	raw, err := g.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, kubeconfigError(err)
	}
	if s.allContexts {
		return slices.Sorted(maps.Keys(raw.Contexts)), nil
	}
	for _, name := range s.contexts {
		if raw.Contexts[name] == nil {
			return nil, suggested(fmt.Errorf("the kubeconfig has no context %q", name), name, slices.Sorted(maps.Keys(raw.Contexts)))
		}
	}
	return s.contexts, nil
}

// ask asks each cluster, some at a time, and writes the table. A cluster that cannot be asked is a line of it.
func (s *several) ask(ctx context.Context, g *globals, columns []string,
	ask func(context.Context, *globals) (render.Standing, error)) error {
	names, err := s.asked(g)
	if err != nil {
		return err
	}
	style, err := g.style(g.Out)
	if err != nil {
		return err
	}
	all, notes := make([]render.Standing, len(names)), make([]bytes.Buffer, len(names))
	var group errgroup.Group
	group.SetLimit(mostAsked)
	for i, name := range names {
		group.Go(func() error {
			there := g.in(name)
			there.ErrOut = &notes[i]
			standing, err := ask(ctx, there)
			if standing.Context = name; err != nil {
				standing.Failed = render.Line(message(err))
			}
			all[i] = standing
			return nil
		})
	}
	_ = group.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := render.Standings(g.Out, style, columns, all); err != nil {
		return err
	}
	failed, wrong := 0, false
	for i := range all {
		for line := range strings.Lines(notes[i].String()) {
			fmt.Fprintf(g.ErrOut, "%s: %s", render.Line(names[i]), line)
		}
		if wrong = wrong || all[i].Wrong; all[i].Failed != "" {
			failed++
		}
	}
	switch {
	case wrong:
		return errRemaining
	case failed > 0:
		return fmt.Errorf("%d of %s could not be asked", failed, counted(len(all), "context"))
	}
	return nil
}

// in is the same command in another context.
func (g *globals) in(name string) *globals {
	there, c := *g, g.config
	config := genericclioptions.NewConfigFlags(true)
	config.KubeConfig, config.Namespace, config.Timeout = c.KubeConfig, c.Namespace, c.Timeout
	config.Impersonate, config.ImpersonateUID, config.ImpersonateGroup, config.Insecure = c.Impersonate, c.ImpersonateUID,
		c.ImpersonateGroup, c.Insecure
	config.Context = &name
	there.config, there.stats, there.where = config, cluster.NewStats(), nil
	return &there
}
