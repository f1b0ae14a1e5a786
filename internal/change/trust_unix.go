// SPDX-License-Identifier: Apache-2.0

//go:build unix

package change

import (
	"io/fs"
	"os"
	"syscall"
)

// modes: the modes of files say who may write to them.
const modes = true

// owned reports whether a file belongs to this user.
func owned(info fs.FileInfo) bool {
	stat, is := info.Sys().(*syscall.Stat_t)
	return is && int(stat.Uid) == os.Geteuid()
}
