// SPDX-License-Identifier: Apache-2.0

// Package rawjson finds its way in JSON without decoding it. Of a text that is not valid it may find anything, but it ends.
package rawjson

import (
	"bytes"
	"encoding/json"
)

// Field returns the value of a field of an object, nil when there is none.
func Field(object []byte, name string) (found []byte) {
	Fields(object, func(field, value []byte) {
		if string(field) == name {
			found = value
		}
	})
	return found
}

// Fields calls each for the fields of an object, with their names as they are written. A value that is none has no fields.
func Fields(object []byte, each func(name, value []byte)) {
	if len(object) == 0 || object[0] != '{' {
		return
	}
	for at := blank(object, 1); at < len(object) && object[at] == '"'; {
		colon, _ := ends(object, at)
		name := object[at+1 : max(colon-1, at+1)]
		from := blank(object, blank(object, colon)+1)
		if from >= len(object) {
			return
		}
		to, _ := ends(object, from)
		each(name, object[from:to])
		at = blank(object, blank(object, to)+1)
	}
}

// Elements calls each for what is in a list.
func Elements(list []byte, each func(value []byte)) {
	if len(list) == 0 || list[0] != '[' {
		return
	}
	for at := blank(list, 1); at < len(list) && list[at] != ']'; {
		to, _ := ends(list, at)
		each(list[at:to])
		if at = blank(list, to); at < len(list) && list[at] == ',' {
			at = blank(list, at+1)
		} else {
			return
		}
	}
}

// String returns what a string says, which is empty for any other value.
func String(value []byte) (text string) {
	switch {
	case len(value) < 2 || value[0] != '"':
	case bytes.IndexByte(value, '\\') < 0:
		text = string(value[1 : len(value)-1])
	default:
		_ = json.Unmarshal(value, &text) // of one that is not valid, nothing
	}
	return text
}

// IsObject reports whether a value is an object.
func IsObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// IsNull reports whether there is no value, or it is null.
func IsNull(value []byte) bool { return len(value) == 0 || value[0] == 'n' }

// blank returns where something stands after blanks.
func blank(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// ends returns where a value ends that begins at a place, and whether it certainly does: the text may end before.
func ends(text []byte, at int) (end int, certain bool) {
	for depth := 0; at < len(text); {
		switch kinds[text[at]] {
		case other:
			at++
		case quote:
			if at, certain = stringEnds(text, at); depth == 0 || !certain {
				return at, certain
			}
		case opens:
			depth++
			at++
		case closes:
			if depth == 0 { // what encloses a number or a word
				return at, true
			}
			if at++; depth == 1 {
				return at, true
			}
			depth--
		case parts:
			if depth == 0 {
				return at, true
			}
			at++
		}
	}
	return len(text), false
}

// kind is what a byte does outside of strings.
type kind byte

const (
	other kind = iota
	quote
	opens
	closes
	parts
)

var kinds = [256]kind{'"': quote, '{': opens, '[': opens, '}': closes, ']': closes, ',': parts, ' ': parts, '\n': parts,
	'\t': parts, '\r': parts}

// stringEnds returns where a string ends, and whether it does. Most are short, and have no escapes.
func stringEnds(text []byte, at int) (end int, certain bool) {
	const short = 32
	for at++; at < len(text); {
		for near := min(at+short, len(text)); at < near; at++ {
			switch text[at] {
			case '"':
				return at + 1, true
			case '\\':
				at++
			}
		}
		far := bytes.IndexByte(text[min(at, len(text)):], '"')
		if far < 0 {
			break
		}
		escape := bytes.IndexByte(text[at:at+far], '\\')
		if escape < 0 {
			return at + far + 1, true
		}
		at += escape
	}
	return len(text), false
}
