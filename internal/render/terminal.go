// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns text that others chose, such as the words of a server, as a part of a line
// on a terminal: control characters are escaped, and what would begin another line, which
// could look like one of this program's, is a space.
func Line(text string) string {
	return printable(strings.Join(strings.FieldsFunc(text,
		func(r rune) bool { return r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' }), " "))
}

// JSON returns a writer for documents in JSON that escapes in their strings what drives a
// terminal. encoding/json does that below U+0020 alone, and leaves alone U+009B, which is
// as good as an escape character. The document stays the same to whoever reads it.
func JSON(w io.Writer) io.Writer { return &jsonWriter{out: w} }

type jsonWriter struct {
	out io.Writer
	// begun are the first bytes of a character that has more.
	begun []byte
}

// Write implements io.Writer.
func (j *jsonWriter) Write(p []byte) (int, error) {
	text := append(j.begun, p...)
	j.begun = nil
	escaped := make([]byte, 0, len(text))
	for len(text) > 0 {
		if text[0] >= utf8.RuneSelf && !utf8.FullRune(text) {
			j.begun = text
			break
		}
		r, n := utf8.DecodeRune(text)
		// Below the space there is only what separates tokens.
		if r > ' ' && drivesTerminal(r) {
			escaped = append(escaped, escape(r)...)
		} else {
			escaped = append(escaped, text[:n]...)
		}
		text = text[n:]
	}
	if _, err := j.out.Write(escaped); err != nil {
		return 0, err
	}
	return len(p), nil
}

// escape writes a character as JSON does where it must.
func escape(r rune) string {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
