// SPDX-License-Identifier: Apache-2.0

package cmd

import "errors"

// validateInteractive finds flags that contradict --interactive
// (kubectl/pkg/cmd/delete/delete.go, Validate).
func (d *deletion) validateInteractive() error {
	switch {
	case d.interactive && (d.yes || d.confirm != ""):
		return usageError{errors.New("--interactive asks, and --yes and --confirm are answers: one of them goes")}
	case d.interactive && d.dryRun != "none":
		return usageError{errors.New("--interactive goes without --dry-run, which asks nothing")}
	}
	return nil
}

// mayAsk reports whether there is somebody to ask: a terminal, or with --interactive
// whoever writes to standard input, as kubectl has it. What belongs to the system is
// agreed to on a terminal alone.
func (d *deletion) mayAsk(q question) bool {
	return isTerminal(d.In) || d.interactive && !q.system
}
