// SPDX-License-Identifier: Apache-2.0

package cmd

import "errors"

// validateSteps refuses --steps where no preview is printed.
func (d *deletionOptions) validateSteps() error {
	if d.steps && d.dryRun == "none" {
		return usageError{errors.New("--steps shows the writes of a preview: it needs --dry-run")}
	}
	return nil
}
