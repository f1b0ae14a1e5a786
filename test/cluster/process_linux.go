// SPDX-License-Identifier: Apache-2.0

package cluster

import "syscall"

// dieWithParent makes the kernel kill the child when the thread that starts it
// ends, which includes the sudden death of this process.
func dieWithParent(attr *syscall.SysProcAttr) {
	attr.Pdeathsig = syscall.SIGKILL
}
