// SPDX-License-Identifier: Apache-2.0

// Package say holds what is said to users as values: words with their arguments. They become strings where they
// are rendered, and nothing else reads them. So what must be told apart is compared by its words, not by its English.
package say

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Word is a sentence, or a part of one. Its value is its English format, as fmt.Sprintf takes it. Each is a constant in the
// words.go of the package whose subject it is. It is an alias, and functions that take a word declare it as a string, so that
// go vet checks the formats.
type Word = string

// Text is what is said: words with their arguments, which may be texts. The zero value says nothing. A Text is not changed
// once it is made, so several goroutines may read it.
type Text struct{ parts []part }

type part struct {
	word Word
	args []any
}

// Of returns the text of a word with its arguments.
func Of(w string, args ...any) Text {
	if false {
		_ = fmt.Sprintf(w, args...) // for go vet: what calls this calls fmt.Sprintf
	}
	return Text{[]part{{w, args}}}
}

// Plain returns the text of a value of the cluster, such as a name or a server's message. It has no word. That of an empty
// string says nothing, and that of a text is the text.
func Plain(value any) Text {
	if value == "" {
		return Text{}
	}
	if t, is := value.(Text); is {
		return t
	}
	return Text{[]part{{args: []any{value}}}}
}

// Then returns the text with another after it.
func (t Text) Then(more Text) Text {
	return Text{append(t.parts[:len(t.parts):len(t.parts)], more.parts...)}
}

// And returns the text with a word after it.
func (t Text) And(w string, args ...any) Text {
	if false {
		_ = fmt.Sprintf(w, args...) // for go vet, as in Of
	}
	return t.Then(Text{[]part{{w, args}}})
}

// Join returns texts that say something as one, with a separator between them.
func Join(separator string, texts ...Text) Text {
	var joined Text
	for _, t := range texts {
		if !joined.IsZero() && !t.IsZero() {
			joined.parts = append(joined.parts, Plain(separator).parts...)
		}
		joined.parts = append(joined.parts, t.parts...)
	}
	return joined
}

// IsZero reports whether the text says nothing.
func (t Text) IsZero() bool { return len(t.parts) == 0 }

// Find returns where the first of some words is in the text, outside of its arguments, and its arguments; -1 without one.
func (t Text) Find(words ...Word) (at int, args []any) {
	for i, p := range t.parts {
		if slices.Contains(words, p.word) {
			return i, p.args
		}
	}
	return -1, nil
}

// Len returns the number of words and values of the text, outside of their arguments.
func (t Text) Len() int { return len(t.parts) }

// Has reports whether a word is one of the text, outside of its arguments.
func (t Text) Has(w Word) bool {
	at, _ := t.Find(w)
	return at >= 0
}

// Words returns the words of the text, and those of its arguments.
func (t Text) Words() (all []Word) {
	for _, p := range t.parts {
		if p.word != "" {
			all = append(all, p.word)
		}
		for _, arg := range p.args {
			if inner, is := arg.(Text); is {
				all = append(all, inner.Words()...)
			}
		}
	}
	return all
}

// Splice returns the text with another in the place of its words from one position up to another.
func (t Text) Splice(from, to int, with Text) Text {
	return Text{slices.Concat(t.parts[:from], with.parts, t.parts[to:])}
}

// Equal reports whether two texts have the same words and arguments.
func (t Text) Equal(other Text) bool { return reflect.DeepEqual(t, other) }

// String returns the text in English.
func (t Text) String() string { return t.With(func(arg any) any { return arg }) }

// With returns the text in English, with its arguments and theirs as they are written here.
func (t Text) With(written func(arg any) any) string {
	var b strings.Builder
	for _, p := range t.parts {
		args := make([]any, len(p.args))
		for i, arg := range p.args {
			if inner, is := arg.(Text); is {
				arg = inner.With(written)
			}
			args[i] = written(arg)
		}
		if p.word == "" {
			fmt.Fprint(&b, args...)
		} else {
			fmt.Fprintf(&b, p.word, args...)
		}
	}
	return b.String()
}

// MarshalJSON writes the text as a string.
func (t Text) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }
