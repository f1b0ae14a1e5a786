// SPDX-License-Identifier: Apache-2.0

// Package process sets how Go runs a command, which lives for a second and waits for a server
// most of the time. Whoever sets GOGC or GOMAXPROCS is obeyed.
package process

import (
	"os"
	"runtime"
	"runtime/debug"
)

// Tune has Go use one processor, since with more its threads look for work where there is none: an
// API server takes several times as long to make a list as it takes to read it. And the first
// garbage collection waits for 16 MB, where 4 MB are usual: most commands end before.
func Tune() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		runtime.AddCleanup(new([64]byte), func(struct{}) { debug.SetGCPercent(100) }, struct{}{})
	}
}
