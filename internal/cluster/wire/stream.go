// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// bufferSize is how much is read ahead. Nearly every object fits into it.
const bufferSize = 256 << 10

// longest is the length of the longest part that is taken into memory: an object, which
// in etcd has 1.5 MB unless it was told otherwise.
const longest = 64 << 20

// endless is the length of a message that ends with the body.
const endless = math.MaxUint64

var errWireType = errors.New("a field has the wrong wire type")

// stream reads the fields of a message that need not be in memory.
type stream struct {
	in *bufio.Reader
	// left is what the message still has.
	left uint64
	// large holds a field that does not fit into the buffer.
	large bytes.Buffer
}

// ReadByte implements io.ByteReader. It ends with the message.
func (s *stream) ReadByte() (byte, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	b, err := s.in.ReadByte()
	if err == nil && s.left != endless {
		s.left--
	}
	return b, s.broken(err)
}

// broken returns the error for a body that ends inside a message.
func (s *stream) broken(err error) error {
	if errors.Is(err, io.EOF) && s.left != endless {
		return io.ErrUnexpectedEOF
	}
	return err
}

// field reads up to the value of the next length-delimited field, over all
// others. At the end of the message the error is io.EOF.
func (s *stream) field() (number protowire.Number, length uint64, err error) {
	if number, length, ok := s.shortField(); ok {
		return number, length, nil
	}
	for {
		tag, err := binary.ReadUvarint(s)
		if err != nil {
			return 0, 0, err
		}
		number, kind := protowire.DecodeTag(tag)
		if number < protowire.MinValidNumber {
			return 0, 0, fmt.Errorf("a field has the number %d", number)
		}
		if kind == protowire.EndGroupType || kind > protowire.Fixed32Type {
			return 0, 0, errWireType
		}
		switch kind {
		case protowire.BytesType, protowire.VarintType:
			length, err = binary.ReadUvarint(s)
			if err == nil && kind == protowire.BytesType && length > s.left {
				err = io.ErrUnexpectedEOF
			}
		default:
			err = s.skipValue(kind)
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil || kind == protowire.BytesType {
			return number, length, err
		}
	}
}

// shortField reads up to the value of the next field if it is length-delimited, of
// a number below 16, shorter than 16 kB, and its tag and length are in the buffer:
// as nearly all objects of a list are.
func (s *stream) shortField() (number protowire.Number, length uint64, ok bool) {
	const head = 3 // the tag and two bytes of length
	if s.in.Buffered() < head || s.left < head {
		return 0, 0, false
	}
	data, _ := s.in.Peek(head) // it is in the buffer
	number, kind := protowire.DecodeTag(uint64(data[0]))
	if data[0] >= 0x80 || kind != protowire.BytesType || number < protowire.MinValidNumber {
		return 0, 0, false
	}
	length, n := uvarint(data[1:])
	if n < 0 || length > s.left-uint64(1+n) {
		return 0, 0, false
	}
	s.take(uint64(1 + n))
	_, _ = s.in.Discard(1 + n)
	return number, length, true
}

// skipValue reads over the value of a field that is of no interest. A group ends
// with the end mark of the same depth; what is in it is not checked further, as
// in client-go's decoder (apimachinery, generated.pb.go, skipGenerated).
func (s *stream) skipValue(kind protowire.Type) error {
	for depth := 0; ; {
		var n uint64
		var err error
		switch kind {
		case protowire.VarintType:
			_, err = binary.ReadUvarint(s)
		case protowire.BytesType:
			n, err = binary.ReadUvarint(s)
		case protowire.Fixed32Type:
			n = 4
		case protowire.Fixed64Type:
			n = 8
		case protowire.StartGroupType:
			depth++
		case protowire.EndGroupType:
			depth--
		}
		if err == nil {
			err = s.skip(n)
		}
		if err != nil || depth == 0 {
			return err
		}
		tag, err := binary.ReadUvarint(s)
		if err != nil {
			return err
		}
		if _, kind = protowire.DecodeTag(tag); kind > protowire.Fixed32Type {
			return errWireType
		}
	}
}

// skip reads over bytes of the message.
func (s *stream) skip(n uint64) error {
	if n > s.left {
		return io.ErrUnexpectedEOF
	}
	s.take(n)
	for n > 0 {
		step := int(min(n, math.MaxInt32))
		if _, err := s.in.Discard(step); err != nil {
			return ended(err)
		}
		n -= uint64(step)
	}
	return nil
}

func (s *stream) take(n uint64) {
	if s.left != endless {
		s.left -= n
	}
}

// next returns the next bytes of the message. They are valid until the stream
// is read again. However long the message claims to be, no more memory is used
// than has come in.
func (s *stream) next(n uint64) ([]byte, error) {
	if n > s.left {
		return nil, io.ErrUnexpectedEOF
	}
	if n > longest {
		return nil, fmt.Errorf("a part of it has %d bytes, and no object so many", n)
	}
	s.take(n)
	if n <= uint64(s.in.Size()) {
		data, err := s.in.Peek(int(n))
		if err != nil {
			return nil, ended(err)
		}
		_, err = s.in.Discard(int(n)) // what was peeked at stays in place until the next read
		return data, err
	}
	s.large.Reset()
	if _, err := io.CopyN(&s.large, s.in, int64(n)); err != nil {
		return nil, ended(err)
	}
	return s.large.Bytes(), nil
}

// decode hands the next bytes of the message to a function.
func (s *stream) decode(n uint64, message func([]byte) error) error {
	data, err := s.next(n)
	if err != nil {
		return err
	}
	return message(data)
}

// ended returns the error for a body that ends too early.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// fields goes over the fields of a message in memory. It keeps places instead of slices:
// most fields are passed over, and never looked at.
//
//	for f := (fields{message: message}); f.next(); {
type fields struct {
	message []byte
	at      int // where the next field begins
	number  protowire.Number
	kind    protowire.Type
	// from and to are where the field's bytes are, or varint is its value, if its type is
	// one of these.
	from, to int
	varint   uint64
	err      error
}

// next goes to the next field. It is false at the end, and with an error.
func (f *fields) next() bool {
	rest := f.message[f.at:]
	const head = 4 // a tag and a length, of two bytes at most, as most are
	if len(rest) < head || f.err != nil {
		return f.any()
	}
	tag, n := uint(rest[0]), 1
	if tag >= 0x80 {
		tag, n = tag&0x7f|uint(rest[1])<<7, 2
	}
	length := uint(rest[n])
	n++
	if length >= 0x80 {
		length = length&0x7f | uint(rest[n])<<7
		n++
	}
	const long = 0x80 << 7 // there is a third byte
	if protowire.Type(tag&7) != protowire.BytesType || tag>>3 == 0 || tag >= long || length >= long || length > uint(len(rest)-n) {
		return f.any()
	}
	f.number, f.kind = protowire.Number(tag>>3), protowire.BytesType
	f.from = f.at + n
	f.to = f.from + int(length)
	f.at = f.to
	return true
}

// any is next for fields of every kind.
func (f *fields) any() bool {
	rest := f.message[f.at:]
	if f.err != nil || len(rest) == 0 {
		return false
	}
	tag, n := protowire.ConsumeVarint(rest)
	if n < 0 {
		return f.fails(n)
	}
	f.number, f.kind = protowire.DecodeTag(tag)
	if f.number < protowire.MinValidNumber {
		return f.fails(-1)
	}
	f.at += n
	rest = rest[n:]
	switch f.kind {
	case protowire.BytesType:
		var value []byte
		value, n = protowire.ConsumeBytes(rest)
		f.from = f.at + n - len(value)
	case protowire.VarintType:
		f.varint, n = protowire.ConsumeVarint(rest)
	default:
		n = protowire.ConsumeFieldValue(f.number, f.kind, rest)
	}
	if n < 0 {
		return f.fails(n)
	}
	f.at += n
	f.to = f.at
	return true
}

// fails notes an error of protowire.
func (f *fields) fails(n int) bool {
	f.err = protowire.ParseError(n)
	return false
}

// uvarint is protowire.ConsumeVarint with a short way for two bytes.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 1 && b[0] >= 0x80 && b[1] < 0x80 {
		return uint64(b[0]&0x7f) | uint64(b[1])<<7, 2
	}
	return protowire.ConsumeVarint(b)
}

// want makes it an error when the field's type is another, and returns its bytes if it has
// any.
func (f *fields) want(kind protowire.Type) []byte {
	if f.kind != kind && f.err == nil {
		f.err = errWireType
	}
	if f.kind != protowire.BytesType {
		return nil
	}
	return f.message[f.from:f.to]
}
