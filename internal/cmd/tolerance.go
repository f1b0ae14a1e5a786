// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strconv"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
)

// tolerance is the value of --allow-incomplete: what may be unreadable when
// something is to be changed. Its zero value tolerates nothing. It implements
// pflag.Value.
type tolerance struct{ change.Tolerance }

// String implements pflag.Value.
func (t *tolerance) String() string {
	if t.All || len(t.Names) == 0 {
		return strconv.FormatBool(t.All)
	}
	return strings.Join(t.Names, ",")
}

// Type implements pflag.Value.
func (t *tolerance) Type() string { return "GROUP" }

// Set implements pflag.Value. Without a value the flag is "true"; several flags
// add up.
func (t *tolerance) Set(value string) error {
	if all, err := strconv.ParseBool(value); err == nil {
		t.Tolerance = change.Tolerance{All: all}
		return nil
	}
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			t.Names = append(t.Names, name)
		}
	}
	return nil
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
