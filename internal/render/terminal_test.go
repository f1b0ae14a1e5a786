// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// What is written as JSON, in whatever pieces, drives no terminal and means the same.
func TestJSONDrivesNoTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune{0x1b, 0x9b, 0x7f, 0x202e, 0xe0001, '\n', '"', '\\'}))).Draw(t, "text")
		document, err := json.MarshalIndent(map[string]string{text: text}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w := JSON(&out)
		for rest := document; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			if written, err := w.Write(rest[:n]); err != nil || written != n {
				t.Fatalf("%d of %d bytes, %v", written, n, err)
			}
			rest = rest[n:]
		}
		if strings.ContainsFunc(strings.ReplaceAll(out.String(), "\n", ""), drivesTerminal) || !utf8.Valid(out.Bytes()) {
			t.Errorf("written: %q", &out)
		}
		var want, got map[string]string
		if err := json.Unmarshal(document, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		for key, value := range want {
			if got[key] != value {
				t.Errorf("%q became %q", value, got[key])
			}
		}
	})
}

// A line stays one, whatever is in it.
func TestLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		if line := Line(text); strings.ContainsFunc(line, drivesTerminal) || strings.ContainsAny(line, "\n\u2028") {
			t.Errorf("%q became %q", text, line)
		}
	})
	if got, want := Line("no\nhint: run this\x1b[2J"), `no hint: run this\x1b[2J`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
