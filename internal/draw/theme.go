// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strings"
)

// shade is what a tone looks like: the line around a node or of an edge, the
// ground within, and text.
type shade struct{ line, fill, text string }

// theme has the colours of a drawing on a light or on a dark ground.
type theme struct {
	ground, frame, frameLine, text, muted string
	shades                                map[Tone]shade
}

// tones are all tones, in a fixed order.
var tones = []Tone{Plain, Faint, Green, Blue, Purple, Amber, Red}

var light = theme{
	ground: "#ffffff", frame: "#f6f8fa", frameLine: "#d8dee4", text: "#1f2328", muted: "#59636e",
	shades: map[Tone]shade{
		Plain:  {"#afb8c1", "#ffffff", "#59636e"},
		Faint:  {"#8c959f", "#f6f8fa", "#59636e"},
		Green:  {"#2da44e", "#dafbe1", "#116329"},
		Blue:   {"#218bff", "#ddf4ff", "#0550ae"},
		Purple: {"#8250df", "#fbefff", "#6639ba"},
		Amber:  {"#bf8700", "#fff8c5", "#7d4e00"},
		Red:    {"#cf222e", "#ffebe9", "#a40e26"},
	},
}

var dark = theme{
	ground: "#0d1117", frame: "#151b23", frameLine: "#2f3742", text: "#e6edf3", muted: "#9198a1",
	shades: map[Tone]shade{
		Plain:  {"#59636e", "#1c232c", "#9198a1"},
		Faint:  {"#656d76", "#151b23", "#9198a1"},
		Green:  {"#3fb950", "#12261a", "#7ee787"},
		Blue:   {"#4493f8", "#10243f", "#79c0ff"},
		Purple: {"#ab7df8", "#251a3d", "#d2a8ff"},
		Amber:  {"#d29922", "#2e2411", "#e3b341"},
		Red:    {"#f85149", "#341a1d", "#ff9790"},
	},
}

// Fonts that most machines have, for text and for names.
const (
	textFont = `-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"Liberation Sans",sans-serif`
	nameFont = `ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace`
)

// rules are the CSS rules of the colours in a drawing.
func (t *theme) rules() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".ground{fill:%s}.frame{fill:%s;stroke:%s}.text,.name{fill:%s}.muted{fill:%s}\n", t.ground, t.frame,
		t.frameLine, t.text, t.muted)
	for _, tone := range tones {
		s := t.shades[tone]
		fmt.Fprintf(&b, ".n.%s rect{fill:%s;stroke:%s}.n.%s .kind,.note.%s{fill:%s}.e.%s{stroke:%s}.a.%s{fill:%s}\n",
			tone, s.fill, s.line, tone, tone, s.text, tone, s.line, tone, s.line)
	}
	return b.String()
}
