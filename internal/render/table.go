// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"io"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kubectl-gc/kubectl-gc/internal/draw"
)

// Style is how text looks on the place it is written to.
type Style struct {
	Color   bool
	Unicode bool
	// Width is how many characters a line of the terminal has, 0 when there is none.
	Width int
}

type color int

// Colours, the more alarming the later.
const (
	noColor color = iota
	faint
	bold
	green
	yellow
	red
)

var escapes = [...]string{"", "\x1b[2m", "\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[31m"}

func (s Style) paint(text string, c color) string {
	if !s.Color || c == noColor || text == "" {
		return text
	}
	return escapes[c] + text + "\x1b[0m"
}

// drawing holds what a tree is drawn with.
type drawing struct {
	inner, last branchDrawing
	cycle       string
}

type branchDrawing struct{ lead, under string }

var (
	unicodeDrawing = drawing{branchDrawing{"├─", "│ "}, branchDrawing{"└─", "  "}, "↺ "}
	asciiDrawing   = drawing{branchDrawing{"|-", "| "}, branchDrawing{"`-", "  "}, "^ "}
)

func (s Style) drawing() *drawing {
	if s.Unicode {
		return &unicodeDrawing
	}
	return &asciiDrawing
}

// cell is a text in a table. The lead is drawn before it without colour.
type cell struct {
	lead  string
	text  string
	color color
	// under is drawn before the text when it goes below its row.
	under string
}

func (c cell) width() int { return utf8.RuneCountInString(c.lead) + utf8.RuneCountInString(c.text) }

// printable returns the cell as it is written.
func (c cell) printable() cell {
	c.text = printable(c.text)
	return c
}

// printable escapes control characters: names in owner references and messages
// are free text, and must not be able to drive the terminal.
func printable(s string) string { return draw.Escape(s, drivesTerminal) }

// drivesTerminal holds for control characters and for those that change the
// direction or the joining of text.
func drivesTerminal(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

func plain(texts ...string) []cell {
	cells := make([]cell, len(texts))
	for i, text := range texts {
		cells[i].text = text
	}
	return cells
}

// table is a header and rows of the same length.
type table struct {
	style  Style
	header []cell
	// rows are gone over twice, so that they need not be in memory all at once.
	rows iter.Seq[[]cell]
	// bare leaves the header out.
	bare bool
	// fitting says what is given up on a terminal that is too narrow, nil for nothing.
	fitting *fitting
	// ended is called when a row is written, with its number, or -1 for the header; nil for nothing.
	ended func(row int)
}

// write prints the table with columns as wide as their widest cell. Columns
// that are empty in every row but the header are left out.
func (t *table) write(w io.Writer) error {
	columns := make([]column, len(t.header))
	for k, c := range t.header {
		columns[k].width = c.width()
	}
	for row := range t.rows {
		for k, c := range row {
			columns[k].take(c.printable())
		}
	}
	below := -1
	if t.fitting != nil && t.style.Width > 0 && t.fitting.fit(columns, t.style.Width) {
		below = t.fitting.below
	}
	out := bufio.NewWriter(w)
	if !t.bare {
		if err := t.writeRow(out, t.header, columns, below); err != nil {
			return err
		}
		if err := t.end(out, -1); err != nil {
			return err
		}
	}
	number := 0
	for row := range t.rows {
		if err := t.writeRow(out, row, columns, below); err != nil {
			return err
		}
		if below >= 0 {
			t.writeBelow(out, row[below])
		}
		if err := t.end(out, number); err != nil {
			return err
		}
		number++
	}
	return out.Flush()
}

// end says that a row is written.
func (t *table) end(out *bufio.Writer, row int) error {
	if t.ended == nil {
		return nil
	}
	if err := out.Flush(); err != nil {
		return err
	}
	t.ended(row)
	return nil
}

type column struct {
	width int
	used  bool
	// first is the text of the first cell, and uniform says that all have it.
	first   string
	seen    bool
	uniform bool
}

// take notes a cell of the column.
func (c *column) take(cell cell) {
	if !c.seen {
		c.seen, c.first, c.uniform = true, cell.text, true
	}
	c.width = max(c.width, cell.width())
	c.used = c.used || cell.width() > 0
	c.uniform = c.uniform && cell.text == c.first
}

// writeBelow writes a cell below its row.
func (t *table) writeBelow(out *bufio.Writer, c cell) {
	c = c.printable()
	if c.text == "" {
		return
	}
	indent := c.under + "    "
	for _, line := range wrap(c.text, t.style.Width, utf8.RuneCountInString(indent), indent) {
		_, _ = out.WriteString(indent + t.style.paint(strings.TrimPrefix(line, indent), c.color) + "\n") // Flush has the error
	}
}

func (t *table) writeRow(out *bufio.Writer, row []cell, columns []column, below int) error {
	line, pad := strings.Builder{}, 0
	for k, c := range row {
		if !columns[k].used || k == below {
			continue
		}
		c = c.printable()
		if c.width() > 0 {
			line.WriteString(strings.Repeat(" ", pad))
			line.WriteString(c.lead)
			line.WriteString(t.style.paint(c.text, c.color))
			pad = 0
		}
		pad += columns[k].width - c.width() + gap
	}
	line.WriteByte('\n')
	_, err := out.WriteString(line.String())
	return err
}
