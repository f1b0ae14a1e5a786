// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
)

// What a terminal is told (ECMA-48, and xterm's private modes): the other screen, without the cursor, and lines that end
// where it does; and the way back.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// liveScreen shows an answer that changes in place. What is written to standard error meanwhile stands below it.
type liveScreen struct {
	*globals
	live   render.Live
	errOut io.Writer
	notes  bytes.Buffer
	// last is the last answer.
	last []render.LiveLine
}

// newScreen returns a screen for an answer that is shown again, nil where there is no terminal that can do it. rows says that
// its lines are.
func (g *globals) newScreen(rows bool) *liveScreen {
	if !isTerminal(g.Out) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &liveScreen{
		globals: g, errOut: g.ErrOut,
		live: render.Live{What: strings.Join(append([]string{g.name}, g.argv...), " "), Since: time.Now(), Rows: rows},
	}
}

// begin says that an answer is about to be written, and returns the style for it.
func (s *liveScreen) begin() (render.Style, error) {
	if isTerminal(s.errOut) {
		s.ErrOut = &s.notes
	}
	s.notes.Reset()
	style, err := s.style(s.Out)
	s.live.Style = style
	style.Width = s.live.Room(style.Width)
	return style, err
}

// show draws the answer.
func (s *liveScreen) show(lines []render.LiveLine) {
	if s.last == nil { // nothing was drawn yet
		fmt.Fprint(s.Out, enterScreen)
	}
	s.last = append([]render.LiveLine{}, lines...)
	s.live.Update(time.Now(), lines)
	s.draw()
}

// draw draws the last answer again, with what was said since.
func (s *liveScreen) draw() {
	if s == nil || s.last == nil {
		return
	}
	height := heightOf(s.Out)
	lines := s.live.Draw(time.Now(), s.notes.String(), height)
	if len(lines) < height {
		lines = append(lines, "") // for what is being read, while it is
	}
	fmt.Fprint(s.Out, home+strings.Join(lines, clearLine+"\n")+clearLine+clearBelow)
}

// noted reports whether what is written to standard error stands below the answer.
func (s *liveScreen) noted() bool { return s.ErrOut == io.Writer(&s.notes) }

// close goes back to the screen that was there before, and leaves the last answer on it.
func (s *liveScreen) close() {
	if s == nil {
		return
	}
	s.ErrOut = s.errOut
	if s.last != nil {
		fmt.Fprint(s.Out, leaveScreen)
		for _, line := range s.last {
			fmt.Fprintln(s.Out, line.Text)
		}
	}
	_, _ = s.errOut.Write(s.notes.Bytes()) // nothing can be done about it
}

// heightOf returns how many lines a terminal has, 0 for what is none.
func heightOf(stream any) int {
	file, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	_, height, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return height
}
