// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
)

// consenting are the flags by which a change is previewed, agreed to and bounded.
type consenting struct {
	dryRun  string
	yes     bool
	confirm string
	timeout time.Duration
	flags   *pflag.FlagSet
}

// dryRuns are the values of --dry-run.
var dryRuns = []string{"none", "client", "server"}

// addDryRun adds --dry-run, which says what "client" shows and asks the server about.
func (c *consenting) addDryRun(what string) {
	c.flags.StringVar(&c.dryRun, "dry-run", "none", what)
	c.flags.Lookup("dry-run").NoOptDefVal = "client"
}

// validateConsent finds values that make no sense.
func (c *consenting) validateConsent(g *globals) error {
	switch {
	case !slices.Contains(dryRuns, c.dryRun):
		return usageError{fmt.Errorf(`invalid --dry-run %q: must be "none", "client" or "server"`, c.dryRun)}
	case c.confirm == "" && c.flags.Changed("confirm"): // an empty variable of a script
		return usageError{errors.New("--confirm needs the digest of a dry run")}
	case len(g.from) > 0 && c.dryRun != "client":
		return usageError{errors.New("--from requires --dry-run=client: a file cannot be changed, or asked")}
	case c.timeout < 0:
		return usageError{errors.New("--timeout must not be negative")}
	}
	return nil
}

// beforehand is what the flags agree to.
func (c *consenting) beforehand() change.Beforehand {
	return change.Beforehand{Yes: c.yes, Digest: c.confirm}
}

// ask asks a question and returns the line that is the answer. What is written after it begins a line, also when the user gave none, or
// the answer is not shown.
func (g *globals) ask(ctx context.Context, question string, unseen bool) (string, error) {
	fmt.Fprint(g.ErrOut, question)
	answer, err := readLine(ctx, g.In)
	if !strings.HasSuffix(answer, "\n") || unseen {
		fmt.Fprintln(g.ErrOut)
	}
	return answer, err
}
