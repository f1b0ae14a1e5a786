// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"sync"

	"github.com/kubectl-gc/kubectl-gc/test/debian"
)

// needed are the programs that a node runs, and packages the Debian packages
// that have those which a machine may lack.
var (
	needed   = []string{"containerd", "ctr", "containerd-shim-runc-v2", "runc", "nsenter", "mount"}
	packages = []string{"containerd", "runc"}
)

// Missing says why the machine cannot run nodes, empty when it can.
func Missing() string {
	if os.Geteuid() != 0 {
		return "a node needs root"
	}
	if _, err := programs(); err != nil {
		return "a node cannot run here: " + err.Error()
	}
	return ""
}

// programs looks for the programs once.
var programs = sync.OnceValues(func() (debian.Programs, error) { return debian.Find("node", needed, packages) })
