// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/process"
)

// code returns how much of the test's code is in memory, in kB.
func code(t *testing.T) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = f.Close() }()
	for lines, mine := bufio.NewScanner(f), false; lines.Scan(); {
		text := lines.Text()
		if strings.HasSuffix(text, self) {
			mine = strings.Contains(text, " r-xp ")
		}
		var kB int
		if _, err := fmt.Sscanf(text, "Rss: %d", &kB); err == nil && mine {
			return kB
		}
	}
	t.Fatal("no code is mapped")
	return 0
}

// What was needed to start is not in memory any more, and can be used again.
func TestSpareDropsCode(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	before := code(t)
	process.Spare()
	if after := code(t); after >= before {
		t.Errorf("%d kB of code are in memory, %d before", after, before)
	}
}
