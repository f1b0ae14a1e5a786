// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
)

// progressInterval is how often the progress line is written again.
const progressInterval = 200 * time.Millisecond

// progress shows a run as it goes: a line that is written over on a terminal,
// a line for every write elsewhere. It keeps the events for the report.
type progress struct {
	out   io.Writer // nil when every write is not to be shown
	line  io.Writer // nil without a terminal
	start time.Time
	stop  chan struct{}
	ticks sync.WaitGroup

	mu         sync.Mutex
	events     []render.Event
	refused    int
	unanswered int
}

func newProgress(d *deletionOptions) *progress {
	p := &progress{start: time.Now(), stop: make(chan struct{})}
	switch {
	case isTerminal(d.ErrOut):
		p.line = d.ErrOut
		p.ticks.Go(p.tick)
	case d.output.isText():
		p.out = d.Out
	}
	return p
}

// tick writes the progress line until the end.
func (p *progress) tick() {
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.mu.Lock()
			fmt.Fprintf(p.line, "\r\x1b[K%s, %d refused, %d not answered, %s",
				counted(len(p.events), "write"), p.refused, p.unanswered, time.Since(p.start).Round(time.Second))
			p.mu.Unlock()
		}
	}
}

// wrote shows a write and keeps it.
func (p *progress) wrote(step gc.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, render.NewEvent(metav1.Now(), step))
	switch {
	case answer.Indeterminate(step.Err):
		p.unanswered++
	case step.Err != nil:
		p.refused++
	}
	if p.out != nil {
		fmt.Fprintln(p.out, render.EventLine(step))
	}
}

// end takes the progress line off the terminal and says how fast it went.
func (p *progress) end(w io.Writer) {
	close(p.stop)
	p.ticks.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line != nil {
		fmt.Fprint(p.line, "\r\x1b[K")
	}
	fmt.Fprintln(w, pace(len(p.events), time.Since(p.start)))
}

// pace says how many writes were made in which time, and how many that is a
// second where there were enough for that to mean something.
func pace(writes int, took time.Duration) string {
	text := fmt.Sprintf("%s in %.1f s", counted(writes, "write"), took.Seconds())
	if each := float64(writes) / took.Seconds(); writes > 10 && each >= 1 {
		text += fmt.Sprintf(" (%.0f a second)", each)
	}
	return text
}

// readingDelay is how long lists take before they are spoken of.
const readingDelay = time.Second

// reading returns what shows on a terminal what is being read, once that takes
// long; nil without a terminal.
func (g *globals) reading() func(*cluster.Progress) func() {
	if !isTerminal(g.ErrOut) {
		return nil
	}
	out := g.ErrOut // which is another one while a screen is shown
	return func(p *cluster.Progress) func() {
		return showReading(out, readingDelay, func() string { return readingLine(p, widthOf(out)) })
	}
}

// showReading writes a line over itself, from after the delay until the function
// that it returns is called, which takes it off.
func showReading(w io.Writer, delay time.Duration, line func() string) (done func()) {
	stop := make(chan struct{})
	var ticks sync.WaitGroup
	ticks.Go(func() {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		for shown := false; ; shown = true {
			select {
			case <-stop:
				if shown {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			case <-timer.C:
				fmt.Fprint(w, "\r\x1b[K"+line())
				timer.Reset(progressInterval)
			}
		}
	})
	return func() {
		close(stop)
		ticks.Wait()
	}
}

// readingLine says what is being read, and how much has been, in a line that does
// not wrap in a terminal of the width; 0 is for an unknown one.
func readingLine(p *cluster.Progress, width int) string {
	done, all := p.Lists()
	text := fmt.Sprintf("reading: %s, %d of %d lists, %s", counted(p.Objects(), "object"), done, all, p.Resource())
	if width > 0 && len(text) >= width {
		text = text[:width-1]
	}
	return text
}

// readLine reads a line from the terminal, unless the context ends first.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type answer struct {
		line string
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		read <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case a := <-read:
		if errors.Is(a.err, io.EOF) {
			a.err = nil // an answer without an end of line, or none
		}
		return a.line, a.err
	}
}
