// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"
)

// text writes a message as number=value and number(message), to be read.
func text(message []byte, nested ...protowire.Number) string {
	var out bytes.Buffer
	for f := (fields{message: message}); f.next(); {
		if out.Len() > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(string(rune('0' + f.number)))
		switch {
		case f.kind == protowire.BytesType && slices.Contains(nested, f.number):
			out.WriteString("(" + text(f.want(protowire.BytesType), nested...) + ")")
		case f.kind == protowire.BytesType:
			out.WriteString("=" + string(f.want(protowire.BytesType)))
		default:
			out.WriteString("=" + string(rune('0'+f.varint)))
		}
	}
	return out.String()
}

func bytesField(number protowire.Number, value ...byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

func varintField(number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), value)
}

func TestDrop(t *testing.T) {
	inner := slices.Concat(bytesField(1, 'a'), varintField(2, 3), bytesField(4, bytes.Repeat([]byte{'x'}, 200)...), bytesField(5, 'b'))
	message := slices.Concat(varintField(2, 1), bytesField(3, inner...), bytesField(1, 'c'), bytesField(3, bytesField(4, 'y')...), bytesField(9, 'd'))
	for _, test := range []struct {
		name string
		drop Drop
		want string
	}{
		{"nothing", nil, "2=1 3(1=a 2=3 4=" + string(bytes.Repeat([]byte{'x'}, 200)) + " 5=b) 1=c 3(4=y) 9=d"},
		{"the first", Drop{2: Whole}, "3(1=a 2=3 4=" + string(bytes.Repeat([]byte{'x'}, 200)) + " 5=b) 1=c 3(4=y) 9=d"},
		{"the last", Drop{9: Whole}, "2=1 3(1=a 2=3 4=" + string(bytes.Repeat([]byte{'x'}, 200)) + " 5=b) 1=c 3(4=y)"},
		{"each of several", Drop{3: Whole}, "2=1 1=c 9=d"},
		{"inside", Drop{3: {4: Whole}}, "2=1 3(1=a 2=3 5=b) 1=c 3() 9=d"},
		{"inside and beside", Drop{1: Whole, 3: {2: Whole, 4: Whole}}, "2=1 3(1=a 5=b) 3() 9=d"},
	} {
		rest, _ := test.drop.From(message, nil)
		if got := text(rest, 3); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// What is no message comes back as it is, and the buffer of one message is that of the next.
func TestDropOfAnything(t *testing.T) {
	drop := Drop{1: Whole, 2: {1: Whole, 2: {3: Whole}}}
	rapid.Check(t, func(t *rapid.T) {
		var buffer []byte
		for _, message := range rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 40), 1, 4).Draw(t, "messages") {
			before := bytes.Clone(message)
			var rest []byte
			rest, buffer = drop.From(message, buffer)
			f := fields{message: message}
			for f.next() {
			}
			if f.err != nil && !bytes.Equal(rest, before) {
				t.Fatalf("%x became %x", before, rest)
			}
			if !bytes.Equal(message, before) {
				t.Fatalf("%x was changed to %x", before, message)
			}
		}
	})
}

func TestHas(t *testing.T) {
	message := slices.Concat(varintField(2, 1), bytesField(3, varintField(4, 1)...), bytesField(3, bytesField(5, 'a')...))
	for _, test := range []struct {
		want bool
		path []protowire.Number
	}{
		{true, []protowire.Number{2}}, {true, []protowire.Number{3}}, {true, []protowire.Number{3, 4}}, {true, []protowire.Number{3, 5}},
		{false, []protowire.Number{1}}, {false, []protowire.Number{3, 6}}, {false, []protowire.Number{2, 1}}, {false, []protowire.Number{3, 5, 1}},
	} {
		if got := Has(message, test.path...); got != test.want {
			t.Errorf("%v: %t", test.path, got)
		}
	}
}
