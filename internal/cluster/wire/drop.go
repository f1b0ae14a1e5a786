// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Drop says by their numbers which fields to leave out of a message: Whole leaves out all of
// a field, any other those of the message that is in it. Nothing is said of the others: they
// stay as they are.
type Drop []Drop

// Whole leaves out a field.
var Whole = Drop{}

// From returns the message without the fields, and uses the buffer for it, which it returns
// as well, as it has grown. What is no message comes back as it is.
func (d Drop) From(message, buffer []byte) (rest, grown []byte) {
	rest, ok := d.appendTo(buffer[:0], message)
	if !ok {
		return message, rest
	}
	return rest, rest
}

// appendTo appends what is left of the message.
func (d Drop) appendTo(out, message []byte) (longer []byte, ok bool) {
	f := fields{message: message}
	kept := 0 // what is to be copied begins here
	for begin := 0; f.next(); begin = f.at {
		if int(f.number) >= len(d) || d[f.number] == nil {
			continue
		}
		inside := d[f.number]
		out = append(out, message[kept:begin]...)
		kept = f.at
		if len(inside) == 0 {
			continue
		}
		if f.kind != protowire.BytesType {
			return out, false
		}
		out = protowire.AppendTag(out, f.number, f.kind)
		at := len(out)
		if out, ok = inside.appendTo(out, message[f.from:f.to]); !ok {
			return out, false
		}
		var length [binary.MaxVarintLen64]byte
		n := binary.PutUvarint(length[:], uint64(len(out)-at))
		out = slices.Insert(out, at, length[:n]...)
	}
	return append(out, message[kept:]...), f.err == nil
}

// Has reports whether a message has a field, whose number is the last of the path, in the message that the ones before lead to.
func Has(message []byte, path ...protowire.Number) bool {
	for f := (fields{message: message}); f.next(); {
		if f.number == path[0] && (len(path) == 1 || Has(f.want(protowire.BytesType), path[1:]...)) {
			return true
		}
	}
	return false
}
