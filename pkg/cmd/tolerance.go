// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// tolerance is the value of --allow-incomplete: what may be unreadable when
// something is to be changed. Its zero value tolerates nothing. It implements
// pflag.Value.
type tolerance struct {
	all bool
	// names are API groups, "core" for that without a name, and types as kubectl
	// writes them, RESOURCE or RESOURCE.GROUP.
	names []string
}

// coreGroup stands for the API group without a name.
const coreGroup = "core"

// String implements pflag.Value.
func (t *tolerance) String() string {
	if t.all || len(t.names) == 0 {
		return strconv.FormatBool(t.all)
	}
	return strings.Join(t.names, ",")
}

// Type implements pflag.Value.
func (t *tolerance) Type() string { return "GROUP" }

// Set implements pflag.Value. Without a value the flag is "true"; several flags
// add up.
func (t *tolerance) Set(value string) error {
	if all, err := strconv.ParseBool(value); err == nil {
		*t = tolerance{all: all}
		return nil
	}
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			t.names = append(t.names, name)
		}
	}
	return nil
}

// nameOf is what tolerates something that could not be read: its group when that
// could not even be asked for its types, otherwise the type.
func nameOf(u graph.Unlisted) string {
	if u.Resource != "" {
		return u.GroupResource().String()
	}
	return groupOf(u)
}

func groupOf(u graph.Unlisted) string {
	if u.Group == "" {
		return coreGroup
	}
	return u.Group
}

// intolerable returns the names of what could not be read and is not tolerated, in
// order.
func (t *tolerance) intolerable(unlisted []graph.Unlisted) []string {
	var names []string
	for _, u := range unlisted {
		if !t.all && !slices.Contains(t.names, groupOf(u)) && !slices.Contains(t.names, nameOf(u)) {
			names = append(names, nameOf(u))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// maxTolerated is the number of names up to which a hint proposes to tolerate just
// these.
const maxTolerated = 3

// hintToTolerate says how to go ahead without what could not be read.
func hintToTolerate(names []string) string {
	if len(names) > maxTolerated {
		return "--dry-run=client shows what is known; --allow-incomplete goes ahead with that"
	}
	return "--dry-run=client shows what is known; --allow-incomplete=" + strings.Join(names, ",") + " goes ahead with that"
}
