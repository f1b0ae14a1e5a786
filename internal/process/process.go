// SPDX-License-Identifier: Apache-2.0

// Package process sets how Go runs a command, which lives for a second, keeps hardly a
// pointer, and waits for a server most of the time: when garbage is collected, on how
// many processors, in which pages long lists are, what the scheduler sees of reading them,
// and how much of the program is in memory. The defaults are made for servers. Whoever
// sets GOGC or GOMAXPROCS is obeyed.
package process

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

const (
	usual = 100
	// late lets the first collection wait for 16 MB, where 4 MB are usual
	// (runtime, mgcpacer.go, defaultHeapMinimum): most commands end before.
	late = 4 * usual
	// lessLate lets it wait for 10 MB: what there is at the end is hardly more then.
	lessLate = 5 * usual / 2
	// soon is for commands that keep more than what the lists leave.
	soon = usual / 2
	// often is for what makes much and throws it away.
	often = usual / 4
)

var sooner atomic.Bool

// afterFirst is the percentage that applies after the first collection.
func afterFirst() int {
	if sooner.Load() {
		return soon
	}
	return usual
}

// CollectLate lets the heap grow before it is first collected. From then on the
// usual applies, or what Spare says.
func CollectLate() {
	if isSet() {
		return
	}
	sooner.Store(false)
	debug.SetGCPercent(late)
	runtime.AddCleanup(new([64]byte), func(struct{}) {
		if percent := debug.SetGCPercent(afterFirst()); percent != late && percent != lessLate {
			debug.SetGCPercent(percent)
		}
	}, struct{}{})
}

// Spare is for a command that keeps whole objects beside the lists: of the code, what was needed
// to start leaves the process's memory, the first collection is less late, and from then on the heap
// grows by half of what is usual until the next.
func Spare() {
	dropCode()
	if isSet() {
		return
	}
	sooner.Store(true)
	switch percent := debug.SetGCPercent(soon); percent {
	case usual:
	case late:
		debug.SetGCPercent(lessLate)
	default:
		debug.SetGCPercent(percent)
	}
}

// CollectOften is for a time in which most of what is made is thrown away. The
// function that it returns ends it.
func CollectOften() (end func()) {
	if isSet() {
		return func() {}
	}
	before := debug.SetGCPercent(often)
	return func() { debug.SetGCPercent(min(before, afterFirst())) }
}

func isSet() bool { return os.Getenv("GOGC") != "" }

// OneProcessor has Go use one processor. An API server takes several times as long to make a
// list as it takes to read it, so that several lists at a time do not keep one busy, and nothing
// else is computed by several goroutines at once. With more, threads look for work where
// there is none, and collections use what seems idle: a tenth of all that a command takes.
func OneProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}
