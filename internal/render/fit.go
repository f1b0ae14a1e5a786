// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
)

// gap is between two columns.
const gap = 3

// fitting says what a table gives up so that its lines fit the terminal: nothing is
// to wrap in the middle of a name.
type fitting struct {
	// same is the column that goes first if it says the same in every row. drop are
	// columns in the order in which they go. Neither counts where it is negative.
	same int
	drop []int
	// below is the column whose text goes below its row before others are dropped.
	below int
}

// fit leaves columns out until the lines are no wider than width. It reports
// whether the column below goes below. How much is given up is no matter of the
// order of the rows.
func (f *fitting) fit(columns []column, width int) (below bool) {
	wide := func() bool {
		total := -gap
		for k, c := range columns {
			if c.used && (k != f.below || !below) {
				total += c.width + gap
			}
		}
		return total > width
	}
	if wide() && columns[f.same].uniform {
		columns[f.same].used = false
	}
	below = wide() && columns[f.below].used
	for _, k := range f.drop {
		if !wide() {
			return below
		}
		columns[k].used = false
	}
	return below
}

// flow ends a line of which so many characters are written. What does not fit the
// terminal goes on in lines with the indent.
func (s Style) flow(w io.Writer, text string, begun int, indent string) {
	if s.Width <= 0 {
		fmt.Fprintln(w, text)
		return
	}
	for _, line := range wrap(text, s.Width, begun, indent) {
		fmt.Fprintln(w, line)
	}
}

// wrap breaks a text between words into lines of at most width runes, as long as no
// word is longer. The lines after the first begin with indent, and the first is as if
// it began with so many runes already.
func wrap(text string, width, begun int, indent string) []string {
	var lines []string
	line, free := strings.Builder{}, width-begun
	for word := range strings.SplitSeq(text, " ") {
		long := utf8.RuneCountInString(word)
		switch {
		case line.Len() == 0 && len(lines) == 0:
		case long+1 > free:
			lines = append(lines, line.String())
			line.Reset()
			line.WriteString(indent)
			free = width - utf8.RuneCountInString(indent)
		default:
			line.WriteByte(' ')
			free--
		}
		line.WriteString(word)
		free -= long
	}
	return append(lines, line.String())
}

// cut ends a line where the terminal does, behind a word unless that is long.
func (s Style) cut(line string) string {
	if s.Width <= 0 || utf8.RuneCountInString(line) <= s.Width {
		return line
	}
	end := "..."
	if s.Unicode {
		end = "…"
	}
	runes := []rune(line)
	room := s.Width - utf8.RuneCountInString(end)
	if last := strings.LastIndexByte(string(runes[:room]), ' '); runes[room] != ' ' && last > room*3/4 {
		return strings.TrimRight(string(runes[:room])[:last], " ,;:") + end
	}
	return strings.TrimRight(string(runes[:room]), " ,;:") + end
}

// where writes, in one line behind so many spaces, which cluster an answer is about; nothing for nil.
func (s Style) where(w io.Writer, indent int, where *answer.Where) {
	if where != nil {
		fmt.Fprintln(w, s.cut(strings.Repeat(" ", indent)+printable(where.String())))
	}
}
