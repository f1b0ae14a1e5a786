// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
)

// A screen keeps what is written, and says when something was.
type screen struct {
	mu      sync.Mutex
	text    strings.Builder
	written chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.written <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

// TestShowReading: nothing is shown of what ends soon, and a line that was shown is
// taken off.
func TestShowReading(t *testing.T) {
	const line = "reading: 7 objects"
	short := &screen{}
	showReading(short, time.Hour, func() string { return line })()
	if got := short.text.String(); got != "" {
		t.Errorf("it shows %q before the time", got)
	}
	long := &screen{written: make(chan struct{})}
	done := showReading(long, 0, func() string { return line })
	<-long.written
	done()
	got := long.text.String()
	if !strings.HasPrefix(got, "\r\x1b[K"+line) || !strings.HasSuffix(got, line+"\r\x1b[K") {
		t.Errorf("it shows %q", got)
	}
}

func TestReadingLine(t *testing.T) {
	var p cluster.Progress
	for width, want := range map[int]string{
		0:  "reading: 0 objects, 0 of 0 lists, ",
		80: "reading: 0 objects, 0 of 0 lists, ",
		20: "reading: 0 objects,",
	} {
		if got := readingLine(&p, width); got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
}
