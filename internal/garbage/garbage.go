// SPDX-License-Identifier: Apache-2.0

// Package garbage sets when Go's garbage collector runs. A command lives for a
// second, and what it keeps hardly has a pointer; the defaults are made for
// servers. Whoever sets GOGC is obeyed.
package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	usual = 100
	// late lets the first collection wait for 16 MB, where 4 MB are usual
	// (runtime, mgcpacer.go, defaultHeapMinimum): most commands end before.
	late = 4 * usual
	// often is for what makes much and throws it away.
	often = usual / 4
)

// CollectLate lets the heap grow before it is first collected. From then on the
// usual applies.
func CollectLate() {
	if isSet() {
		return
	}
	debug.SetGCPercent(late)
	runtime.AddCleanup(new([64]byte), func(struct{}) {
		if percent := debug.SetGCPercent(usual); percent != late {
			debug.SetGCPercent(percent)
		}
	}, struct{}{})
}

// CollectOften is for a time in which most of what is made is thrown away. The
// function that it returns ends it.
func CollectOften() (end func()) {
	if isSet() {
		return func() {}
	}
	before := debug.SetGCPercent(often)
	return func() { debug.SetGCPercent(min(before, usual)) }
}

func isSet() bool { return os.Getenv("GOGC") != "" }
