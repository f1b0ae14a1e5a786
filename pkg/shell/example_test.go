// SPDX-License-Identifier: Apache-2.0

package shell_test

import (
	"fmt"

	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// A word is quoted where a shell would read it otherwise.
func ExampleCommand() {
	fmt.Println(shell.Command([]string{"kubectl", "get", "pods", "-l", "app in (a,b)"}))
	// Output: kubectl get pods -l 'app in (a,b)'
}
