// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
)

// LiveLine is a line of a text that is drawn again and again, or several that belong together.
type LiveLine struct {
	// Key tells which line of another drawing this one is; empty for one that only its words tell.
	Key  string
	Text string
}

// headerKey begins the keys of the lines that name the cluster and the columns.
const headerKey = "header"

// LiveLines returns the lines of a text whose words alone tell them apart.
func LiveLines(text string) []LiveLine {
	var lines []LiveLine
	for line := range strings.Lines(text) {
		lines = append(lines, LiveLine{Text: strings.TrimSuffix(line, "\n")})
	}
	return lines
}

const (
	// liveMargin is the width of the marks before the lines.
	liveMargin = 2
	// liveHeader is the number of lines above those.
	liveHeader = 3
	// liveAbove is the number of lines that are shown above the first changed one.
	liveAbove = 2
)

// Live draws a text in place, under a header, and marks what the last change of it was.
type Live struct {
	Style Style
	// What is what the user watches, and Since when that began.
	What  string
	Since time.Time
	// Rows says that lines are rows: what appeared and vanished is marked, too.
	Rows bool

	lines   []keyed
	marks   map[string]string
	gone    []goneLine
	changed time.Time
}

// keyed is a line with a key that no other line of the drawing has, and what it says.
type keyed struct{ key, says, text string }

// goneLine is a line of an earlier drawing, and the key of the one before it.
type goneLine struct {
	after string
	keyed
}

// Room is the width that is left for the lines of a terminal of that width.
func (l *Live) Room(width int) int { return max(width-liveMargin, 0) }

// Update takes the lines of a new drawing.
func (l *Live) Update(at time.Time, lines []LiveLine) {
	first := l.lines == nil
	before := map[string]string{}
	for _, line := range l.lines {
		before[line.key] = line.says
	}
	old := l.lines
	l.lines = distinct(lines)
	if first {
		return
	}
	marks, now := map[string]string{}, map[string]bool{}
	for _, line := range l.lines {
		now[line.key] = true
		says, known := before[line.key]
		switch {
		case line.says == "":
		case !known && l.Rows:
			marks[line.key] = "+"
		case !known || says != line.says:
			marks[line.key] = "~"
		}
	}
	var gone []goneLine
	after := ""
	for _, line := range old {
		switch {
		case now[line.key]:
			after = line.key
		case line.says != "":
			gone = append(gone, goneLine{after, line})
		}
	}
	if len(marks)+len(gone) > 0 {
		l.marks, l.gone, l.changed = marks, gone, at
	}
}

var (
	// changing are the parts of a line that change by themselves, ages, and paint.
	changing = pattern.New(`\b(\d+(y|d|h|m|s))+\b *|` + "\x1b" + `\[[0-9;]*m`)
	paint    = pattern.New("\x1b" + `\[[0-9;]*m`)
	drawn    = pattern.New("[│├└─]+|\\|-|`-|[| ]+")
)

// Ageless returns a text without the parts that change by themselves.
func Ageless(text string) string { return changing().ReplaceAllString(text, "") }

// distinct gives each line a key of its own.
func distinct(lines []LiveLine) []keyed {
	all, seen := make([]keyed, len(lines)), map[string]int{}
	for i, line := range lines {
		says := strings.TrimSpace(drawn().ReplaceAllString(Ageless(line.Text), " "))
		key := line.Key
		if key == "" {
			key = "\x00" + says
		}
		seen[key]++
		if n := seen[key]; n > 1 {
			key = fmt.Sprintf("%s\x00%d", key, n)
		}
		all[i] = keyed{key, says, line.Text}
	}
	return all
}

// Draw returns the screen, from the first line to the last: the header, the lines as far as there is room, and notes. What
// clears the rest of a line is not in it.
func (l *Live) Draw(at time.Time, notes string, height int) []string {
	screen := []string{l.Style.paint(printable(l.What), bold) + "   (Ctrl-C ends)", l.times(at), ""}
	below := LiveLines(notes)
	room := height - liveHeader - len(below)
	body, marked := l.body()
	if height > 0 && len(body) > room {
		fixed := 0
		for fixed < len(l.lines) && strings.HasPrefix(l.lines[fixed].key, headerKey) {
			fixed++
		}
		body = window(body, marked, fixed, max(room, fixed+2))
	}
	screen = append(screen, body...)
	for _, line := range below {
		screen = append(screen, line.Text)
	}
	return screen
}

// times says since when, when, and what has changed.
func (l *Live) times(at time.Time) string {
	clock := func(t time.Time) string { return t.UTC().Format(time.TimeOnly) }
	text := fmt.Sprintf("since %s, now %s UTC", clock(l.Since), clock(at))
	if l.changed.IsZero() {
		return text
	}
	text += "; changed " + clock(l.changed)
	if !l.Rows {
		return text
	}
	count := map[string]int{"-": len(l.gone)}
	for _, mark := range l.marks {
		count[mark]++
	}
	var parts []string
	for _, c := range []struct{ mark, word string }{{"+", "new"}, {"-", "gone"}, {"~", "changed"}} {
		if n := count[c.mark]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, c.word))
		}
	}
	return text + ": " + strings.Join(parts, ", ")
}

// body returns the lines with their marks, and which have one.
func (l *Live) body() (body []string, marked []bool) {
	add := func(mark, text string) {
		for line := range strings.SplitSeq(text, "\n") {
			body, marked = append(body, l.mark(mark, line)), append(marked, mark != "")
		}
	}
	vanished := func(after string) {
		for _, g := range l.gone {
			if l.Rows && g.after == after {
				add("-", g.text)
			}
		}
	}
	vanished("")
	for _, line := range l.lines {
		add(l.marks[line.key], line.text)
		vanished(line.key)
	}
	return body, marked
}

// mark writes a line with its mark. What vanished loses its paint, and so has none but that of the mark.
func (l *Live) mark(mark, text string) string {
	if mark == "" {
		if text == "" {
			return ""
		}
		return strings.Repeat(" ", liveMargin) + text
	}
	c := map[string]color{"+": green, "-": red, "~": yellow}[mark]
	if mark == "-" {
		text = paint().ReplaceAllString(text, "")
	}
	if strings.ContainsRune(text, '\x1b') {
		return l.Style.paint(mark, c) + strings.Repeat(" ", liveMargin-utf8.RuneCountInString(mark)) + text
	}
	return l.Style.paint(mark+" "+text, c)
}

// window returns as many lines as there is room for, those that are fixed first, with the first that is marked, and what is
// left out as the last one.
func window(body []string, marked []bool, fixed, room int) []string {
	shown := room - fixed - 1
	start := fixed
	for i := fixed; i < len(body); i++ {
		if marked[i] {
			if i >= fixed+shown {
				start = min(i-liveAbove, len(body)-shown)
			}
			break
		}
	}
	start = max(start, fixed)
	end := min(start+shown, len(body))
	var parts []string
	if n := start - fixed; n > 0 {
		parts = append(parts, plural(n, "line")+" above")
	}
	if n := len(body) - end; n > 0 {
		parts = append(parts, plural(n, "line")+" below")
	}
	hidden := 0
	for i := fixed; i < len(body); i++ {
		if marked[i] && (i < start || i >= end) {
			hidden++
		}
	}
	text := "... " + strings.Join(parts, ", ")
	if hidden > 0 {
		text += fmt.Sprintf(", %d of them changed", hidden)
	}
	lines := append([]string{}, body[:fixed]...)
	return append(append(lines, body[start:end]...), text)
}
