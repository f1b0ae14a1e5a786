// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package cluster

import "syscall"

// dieWithParent does nothing: only Linux can tie a child to its parent.
func dieWithParent(*syscall.SysProcAttr) {}
