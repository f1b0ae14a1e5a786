// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// nearest returns the candidate that a word was most likely meant to be, empty when
// none is near: at most a third of its letters are wrong, missing, too many or
// exchanged with their neighbours, or it is the beginning. Of the equally near the
// first in the alphabet is returned.
func nearest(word string, candidates []string) string {
	best, least := "", (len(word)+2)/3+1
	for _, candidate := range slices.Sorted(slices.Values(candidates)) {
		if len(word) > 2 && strings.HasPrefix(candidate, word) {
			return candidate
		}
		if d := distance(strings.ToLower(word), strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance is the number of letters to change, insert, drop or exchange with the
// next one to make one word of the other (the optimal string alignment distance).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// didYouMean is the hint for a word, empty when nothing is near it.
func didYouMean(word string, candidates []string) string {
	if near := nearest(word, candidates); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}

// suggested puts a hint about a word before that of the usage.
func suggested(err error, word string, candidates []string) error {
	if hint := didYouMean(word, candidates); hint != "" {
		return hintedError{usageError{err}, hint}
	}
	return usageError{err}
}

// commandNames returns the names of the commands that help shows.
func commandNames(root *cobra.Command) []string {
	var names []string
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() || cmd.Name() == "help" {
			names = append(names, cmd.Name())
		}
	}
	return names
}

// flagError adds to an error about an unknown flag which one may have been meant. Without a command it is that of one which is not known.
func flagError(cmd *cobra.Command, err error, argv []string) error {
	if !cmd.HasParent() && len(argv) > 0 && !strings.HasPrefix(argv[0], "-") {
		return suggested(fmt.Errorf("unknown command %q", argv[0]), argv[0], commandNames(cmd))
	}
	unknown, is := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !is {
		return usageError{err}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return suggested(err, "--"+unknown, names)
}

// unknownType finds the type in the server's and the resource builder's words.
var unknownType = pattern.New(`the server doesn't have a resource type "([^"]+)"`)

// hintTypes adds to an error about a type that the server does not have which one may
// have been meant, of those that it has: by their plurals, short names and kinds.
func hintTypes(err error, resources []*graph.Resource, shortNames []string) error {
	match := unknownType().FindStringSubmatch(err.Error())
	if match == nil {
		return err
	}
	names := sets.New(shortNames...)
	for _, r := range resources {
		names.Insert(r.Resource, strings.ToLower(r.Kind))
		if r.Group != "" {
			names.Insert(r.GroupResource().String())
		}
	}
	const listed = "kubectl api-resources lists the types that the server has"
	if hint := didYouMean(match[1], names.UnsortedList()); hint != "" {
		return hintedError{err, hint + " " + listed}
	}
	return err
}
