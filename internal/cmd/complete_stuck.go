// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// completionLists are asked for at once when objects of several types could
// complete a word.
const completionLists = 8

// completeTerminating completes TYPE NAME and TYPE/NAME arguments. Objects that
// are being deleted come first, even before a type was named.
func (g *globals) completeTerminating(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return g.complete(cmd, func(ctx context.Context, s *session) completed {
		kind, lead, isName := named(args, word)
		if isName {
			terminating, others := partition(s.firstPage(ctx, kind))
			values := slices.Concat(sorted(names(terminating, lead)), sorted(names(others, lead)))
			return completed{matching(values, args, word), cobra.ShellCompDirectiveKeepOrder}
		}
		c := s.completeTypes(word, len(args) > 0)
		c.values = append(matching(s.terminating(ctx, word), args, word), sorted(c.values)...)
		c.directive |= cobra.ShellCompDirectiveKeepOrder
		return c
	})
}

// terminating returns the objects that are being deleted, as TYPE/NAME in
// order, of the types that start with the prefix: those of the namespace and
// those that have none.
func (s *session) terminating(ctx context.Context, prefix string) []string {
	var types []*graph.Resource
	for _, resource := range s.reader.Resources() {
		if strings.HasPrefix(resource.GroupResource().String(), prefix) {
			types = append(types, resource)
		}
	}
	found := make([][]string, len(types))
	var group errgroup.Group
	group.SetLimit(completionLists)
	for i, resource := range types {
		group.Go(func() error {
			// What cannot be read does not complete anything.
			objects, _ := s.reader.Page(ctx, *resource, s.namespace, completionLimit)
			terminating, _ := partition(objects)
			found[i] = names(terminating, resource.GroupResource().String()+"/")
			return nil
		})
	}
	_ = group.Wait() // no function fails
	return sorted(slices.Concat(found...))
}

// partition splits objects into those that are being deleted and the others.
func partition(objects []graph.Object) (terminating, others []graph.Object) {
	for i := range objects {
		if objects[i].BeingDeleted() {
			terminating = append(terminating, objects[i])
		} else {
			others = append(others, objects[i])
		}
	}
	return terminating, others
}

func sorted(values []string) []string {
	slices.Sort(values)
	return values
}
