// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Stream reads values while they come in.
type Stream struct {
	in     io.Reader
	buffer []byte
	// at is where the next value begins, in the buffer.
	at  int
	err error
}

// NewStream returns a Stream.
func NewStream(in io.Reader) *Stream { return &Stream{in: in, buffer: make([]byte, 0, 64<<10)} }

// more reads more. It reports whether there was any.
func (s *Stream) more() bool {
	if s.err != nil {
		return false
	}
	if s.at > 0 && cap(s.buffer)-len(s.buffer) < cap(s.buffer)/2 {
		s.buffer = s.buffer[:copy(s.buffer, s.buffer[s.at:])]
		s.at = 0
	}
	if len(s.buffer) == cap(s.buffer) {
		s.buffer = append(make([]byte, 0, 2*cap(s.buffer)), s.buffer...)
	}
	for s.err == nil {
		var n int
		n, s.err = s.in.Read(s.buffer[len(s.buffer):cap(s.buffer)])
		if s.buffer = s.buffer[:len(s.buffer)+n]; n > 0 {
			return true
		}
	}
	return false
}

// broken is the error of a Stream that ended too early.
func (s *Stream) broken() error {
	if errors.Is(s.err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return s.err
}

// peek returns the next byte that is not blank; 0 at the end.
func (s *Stream) peek() byte {
	for {
		if s.at = blank(s.buffer, s.at); s.at < len(s.buffer) {
			return s.buffer[s.at]
		}
		if !s.more() {
			return 0
		}
	}
}

// Value returns the next value, as it is written. It is good until the next call.
func (s *Stream) Value() ([]byte, error) {
	if s.peek() == 0 {
		return nil, s.broken()
	}
	for {
		end, certain := ends(s.buffer, s.at)
		if !certain && s.more() {
			continue
		}
		value := s.buffer[s.at:end]
		if !certain && (s.err == nil || !errors.Is(s.err, io.EOF) || value[0] == '{' || value[0] == '[' || value[0] == '"') {
			return nil, s.broken()
		}
		if len(value) == 0 {
			return nil, fmt.Errorf("the server sent %c where a value was expected", s.buffer[s.at])
		}
		s.at = end
		return value, nil
	}
}

// next takes a byte, if it is the next one.
func (s *Stream) next(want byte) bool {
	if s.peek() == want {
		s.at++
		return true
	}
	return false
}

// opens takes a delimiter.
func (s *Stream) opens(want byte, of string) error {
	if s.next(want) {
		return nil
	}
	value, err := s.Value()
	if err == nil {
		err = json.Unmarshal(value, new(any)) // which says what is wrong
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("the server sent %s where %s", Said(value), of)
}

// Said is a value in an error: the beginning of one that has others in it, a string without its quotes.
func Said(value []byte) string {
	switch {
	case len(value) > 0 && (value[0] == '{' || value[0] == '['):
		return string(value[:1])
	case len(value) > 1 && value[0] == '"':
		return string(value[1 : len(value)-1])
	}
	return string(value)
}

// Fields calls each for the fields of the object that is all there is to read. It has to take the value.
func (s *Stream) Fields(each func(name string) error) error {
	if err := s.opens('{', "a list has {"); err != nil {
		return err
	}
	for first := true; !s.next('}'); first = false {
		if !first && !s.next(',') {
			return s.otherwise("a comma")
		}
		name, err := s.Value()
		if err != nil {
			return err
		}
		if field := Said(name); name[0] == '"' && s.peek() == ':' {
			s.at++
			if err := each(field); err != nil {
				return err
			}
			continue
		}
		return s.otherwise("a field")
	}
	if s.peek() != 0 {
		value, err := s.Value()
		if err != nil {
			return err
		}
		return fmt.Errorf("the server sent %s after the list", Said(value))
	}
	if !errors.Is(s.err, io.EOF) {
		return s.err
	}
	return nil
}

// otherwise is the error of what comes where something else was expected.
func (s *Stream) otherwise(expected string) error {
	if c := s.peek(); c != 0 {
		return fmt.Errorf("the server sent %c where %s was expected", c, expected)
	}
	return s.broken()
}

// Elements calls each for the elements of the list that is next, which are good until it returns, or not at all for null.
func (s *Stream) Elements(each func(value []byte) error) error {
	if s.peek() == 'n' {
		_, err := s.Value()
		return err
	}
	if err := s.opens('[', "a list has its objects"); err != nil {
		return err
	}
	for first := true; !s.next(']'); first = false {
		if !first && !s.next(',') {
			return s.otherwise("a comma")
		}
		value, err := s.Value()
		if err != nil {
			return err
		}
		if err := each(value); err != nil {
			return err
		}
	}
	return nil
}
