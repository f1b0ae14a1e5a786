// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/process"
)

func percent() int {
	now := debug.SetGCPercent(-1)
	debug.SetGCPercent(now)
	return now
}

// becomes waits for what a cleanup does some time after a collection.
func becomes(t *testing.T, want int) {
	t.Helper()
	for range 1000 {
		runtime.GC()
		if percent() == want {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("the collector runs at %d %% of growth, not at %d", percent(), want)
}

func TestFirstCollectionIsLate(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	process.CollectLate()
	if got := percent(); got <= 100 {
		t.Errorf("before the first collection: %d %%", got)
	}
	becomes(t, 100)
}

// A time of frequent collections is not ended by the first of them.
func TestOften(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	process.CollectLate()
	end := process.CollectOften()
	if got := percent(); got >= 100 {
		t.Fatalf("while much is thrown away: %d %%", got)
	}
	often := percent()
	for range 3 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	if got := percent(); got != often {
		t.Errorf("after collections: %d %%, not %d", got, often)
	}
	end()
	if got := percent(); got != 100 {
		t.Errorf("after the end: %d %%", got)
	}
}

// What Spare says applies from the first collection on, also when that is over, and
// never in the place of what is more.
func TestSoonAfterTheFirst(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	process.CollectLate()
	process.Spare()
	if got := percent(); got <= 100 {
		t.Errorf("before the first collection: %d %%", got)
	}
	becomes(t, 50)
	end := process.CollectOften()
	often := percent()
	if process.Spare(); percent() != often || often >= 50 {
		t.Errorf("while much is thrown away: %d %%, then %d", often, percent())
	}
	end()
	if got := percent(); got != 50 {
		t.Errorf("after that: %d %%", got)
	}
	debug.SetGCPercent(100)
	if process.Spare(); percent() != 50 {
		t.Errorf("after the first collection: %d %%", percent())
	}
}

func TestUserDecides(t *testing.T) {
	t.Setenv("GOGC", "70")
	defer debug.SetGCPercent(debug.SetGCPercent(70))
	process.CollectLate()
	process.Spare()
	defer process.CollectOften()()
	if got := percent(); got != 70 {
		t.Errorf("GOGC=70 became %d", got)
	}
}

func TestOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	t.Setenv("GOMAXPROCS", "2")
	if process.OneProcessor(); runtime.GOMAXPROCS(0) != 2 {
		t.Error("what the user has set does not count")
	}
	t.Setenv("GOMAXPROCS", "")
	if process.OneProcessor(); runtime.GOMAXPROCS(0) != 1 {
		t.Errorf("%d processors", runtime.GOMAXPROCS(0))
	}
}
