// SPDX-License-Identifier: Apache-2.0

package rawjson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/internal/rawjson"
)

// values are any that JSON has.
func values(depth int) *rapid.Generator[any] {
	text := rapid.StringOfN(rapid.RuneFrom([]rune(`ab"\{}[],: é`+"\n\x00")), 0, 80, -1)
	kinds := []*rapid.Generator[any]{text.AsAny(), rapid.Float64Range(-1e9, 1e9).AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil)}
	if depth > 0 {
		kinds = append(kinds, rapid.SliceOfN(values(depth-1), 0, 4).AsAny(), rapid.MapOfN(text, values(depth-1), 0, 4).AsAny())
	}
	return rapid.OneOf(kinds...)
}

// encoded is a value in JSON, with blanks or without.
func encoded(t *rapid.T, value any) []byte {
	text, err := json.Marshal(value)
	if err == nil && rapid.Bool().Draw(t, "blanks") {
		text, err = json.MarshalIndent(value, " ", "\t")
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A string says what decoding it says.
func TestString(t *testing.T) {
	for text, want := range map[string]string{`"a"`: "a", `"a\u0026b\"c"`: `a&b"c`, `""`: "", `1`: "", `"`: "", `{"a":1}`: "", ``: ""} {
		if got := rawjson.String([]byte(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// What is found is what decoding finds, by a stream as well, however it comes in.
func TestFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := map[string]any{"items": rapid.SliceOfN(values(3), 0, 5).Draw(t, "items"), "x": values(2).Draw(t, "x"), `q"uote`: nil}
		text := encoded(t, of)
		got, streamed := map[string]any{}, map[string]any{}
		decode := func(value []byte) (decoded any) {
			if err := json.Unmarshal(value, &decoded); err != nil {
				t.Fatalf("%s in %s: %v", value, text, err)
			}
			return decoded
		}
		list := func(values *[]any) func(value []byte) {
			return func(value []byte) { *values = append(*values, decode(value)) }
		}
		rawjson.Fields(text, func(name, value []byte) {
			items := []any{}
			if rawjson.Elements(value, list(&items)); value[0] == '[' && string(name) == "items" {
				got["items"] = items
				return
			}
			got[decode([]byte(`"`+string(name)+`"`)).(string)] = decode(rawjson.Field(text, string(name)))
		})
		in := rapid.SampledFrom([]func() *rawjson.Stream{
			func() *rawjson.Stream { return rawjson.NewStream(bytes.NewReader(text)) },
			func() *rawjson.Stream { return rawjson.NewStream(iotest.OneByteReader(bytes.NewReader(text))) },
			func() *rawjson.Stream { return rawjson.NewStream(iotest.DataErrReader(bytes.NewReader(text))) },
		}).Draw(t, "in")()
		if err := in.Fields(func(name string) error {
			if name == "items" {
				items := []any{}
				defer func() { streamed["items"] = items }()
				add := list(&items)
				return in.Elements(func(value []byte) error { add(value); return nil })
			}
			value, err := in.Value()
			if err == nil {
				streamed[decode([]byte(`"`+name+`"`)).(string)] = decode(value)
			}
			return err
		}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want := decode(text)
		if diff := cmp.Diff(want, any(got)) + cmp.Diff(want, any(streamed)); diff != "" {
			t.Fatalf("%s: (-want +got)\n%s", text, diff)
		}
	})
}

// What is no JSON, or ends early, is an error of a stream, and nothing loops or panics.
func TestBroken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := encoded(t, map[string]any{"a": values(2).Draw(t, "a"), "items": rapid.SliceOfN(values(2), 1, 3).Draw(t, "items")})
		text = text[:rapid.IntRange(0, len(text)-1).Draw(t, "cut")]
		rawjson.Fields(text, func(_, value []byte) { rawjson.Elements(value, func([]byte) {}) })
		in := rawjson.NewStream(bytes.NewReader(text))
		if err := in.Fields(func(name string) error {
			if name == "items" {
				return in.Elements(func([]byte) error { return nil })
			}
			_, err := in.Value()
			return err
		}); err == nil {
			t.Fatalf("no error in %q", text)
		}
	})
	for _, text := range []string{"", " ", "null", "[", "{", `{"`, `{"a"`, `{"a":`, `{"a" 1}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":}`, `{"a":,}`, "{}{}", "{} x", `{"a":]}`, "{,}", `{"a":1,}`, `"\`} {
		in := rawjson.NewStream(strings.NewReader(text))
		if err := in.Fields(func(string) error { _, err := in.Value(); return err }); err == nil {
			t.Errorf("no error in %q", text)
		}
		rawjson.Fields([]byte(text), func(_, _ []byte) {})
		rawjson.Elements([]byte(text), func([]byte) {})
	}
	if err := rawjson.NewStream(iotest.ErrReader(iotest.ErrTimeout)).Fields(nil); err != iotest.ErrTimeout { //nolint:errorlint // it is returned as it is
		t.Error(err)
	}
}
