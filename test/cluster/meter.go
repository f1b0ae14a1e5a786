// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	// meterInterval is the time between two progress lines of a build.
	meterInterval = 15 * time.Second
	// meterTail is how many lines of the go command an error quotes.
	meterTail = 20
)

// A meter reads what go build -v prints, one line a package, and reports the
// count from time to time. It is safe for concurrent use.
type meter struct {
	out   io.Writer
	begin time.Time
	quit  chan struct{}
	ended sync.WaitGroup

	mu       sync.Mutex
	rest     []byte   // an incomplete line
	last     []string // the last lines, for an error
	compiled int
	total    int // 0 while unknown
}

// newMeter returns a meter that reports to out until stop is called.
func newMeter(out io.Writer) *meter {
	m := &meter{out: out, begin: time.Now(), quit: make(chan struct{})}
	m.ended.Go(m.report)
	return m
}

// Write takes output of the go command. It never fails.
func (m *meter) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rest = append(m.rest, p...)
	for {
		line, rest, found := bytes.Cut(m.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		m.rest = rest
		m.line(string(line))
	}
}

// line counts a line that is an import path; "go: downloading ..." and
// compiler errors have spaces.
func (m *meter) line(line string) {
	if !strings.ContainsRune(line, ' ') {
		m.compiled++
	}
	m.last = append(m.last, line)
	if len(m.last) > meterTail {
		m.last = m.last[1:]
	}
}

// setTotal says how many packages there are. Those in the Go build cache are
// part of it but are never printed, so a build may end short of the total.
func (m *meter) setTotal(total int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total = total
}

// tail returns the last lines of the go command.
func (m *meter) tail() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(append(m.last, string(m.rest)), "\n")
}

// stop ends the reports.
func (m *meter) stop() {
	close(m.quit)
	m.ended.Wait()
}

func (m *meter) report() {
	ticker := time.NewTicker(meterInterval)
	defer ticker.Stop()
	for {
		select {
		case <-m.quit:
			return
		case <-ticker.C:
			fmt.Fprintln(m.out, m.status())
		}
	}
}

// status returns one progress line.
func (m *meter) status() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	elapsed := time.Since(m.begin).Round(time.Second)
	switch {
	case m.compiled == 0:
		return fmt.Sprintf("control plane: downloading modules, %s", elapsed)
	case m.total == 0:
		return fmt.Sprintf("control plane: compiled %d packages, %s", m.compiled, elapsed)
	default:
		return fmt.Sprintf("control plane: compiled %d of at most %d packages, %s", m.compiled, m.total, elapsed)
	}
}
