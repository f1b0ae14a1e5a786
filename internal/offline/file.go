// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The limits of what a reader takes, so that no file makes it use much memory. What
// a Writer writes stays far below them.
const (
	// maxLine is the longest line; the largest objects of etcd are a tenth of it.
	maxLine = 16 << 20
	// maxMember is the text of a member of the gzip file.
	maxMember = maxLine + memberSize
	// maxRatio is how many times as much as the file its text may be, after the first
	// freeText bytes.
	maxRatio = 200
	freeText = 64 << 20
	// maxLists bounds the index.
	maxLists = 1 << 20
	// maxAnswers bounds what of answers is kept in memory.
	maxAnswers = 64 << 20
	// cachedText is how much text of members is kept: two for each of the lists that are
	// read at a time.
	cachedText = 2 << 20
)

// File is a snapshot that was opened: an index of its lists. The objects stay in the
// file. Its methods may be called by several goroutines at once.
type File struct {
	Header  Header
	Trailer Trailer

	in      io.ReaderAt
	size    int64
	key     Key
	answers map[string]*Answer
	lists   map[schema.GroupResource][]*list
	ones    map[one]*One
	// singles are the objects that were read by themselves, by what they are called.
	singles map[one][]spot

	mu    sync.Mutex
	cache []member
}

// list is a list in the index, with the places of its objects.
type list struct {
	List
	End
	chunks []chunk
}

// chunk is a run of objects of a list within a member.
type chunk struct {
	offset int64 // of the member in the file
	skip   int   // lines of the member before the first object
	count  int
	// first and last are the least and the greatest key.
	first, last string
}

// spot is where an object of a list is.
type spot struct {
	*list
	chunk, entry int
}

// key orders the objects of a list as etcd does.
func key(namespace, name string) string { return namespace + "/" + name }

// one names an object.
type one struct {
	resource        schema.GroupResource
	namespace, name string
	again           bool
}

// member is the text of a member, in lines.
type member struct {
	offset int64
	lines  [][]byte
	size   int
}

// Open reads a snapshot once, to its end, and makes the index. An error says why it is
// no complete snapshot that this program can read.
func Open(in io.ReaderAt, size int64) (*File, error) { return OpenRedacted(in, size, nil) }

// OpenRedacted is Open for a snapshot of which the key has the words: they are read as they were.
func OpenRedacted(in io.ReaderAt, size int64, key Key) (*File, error) {
	f := &File{in: in, size: size, key: key, answers: map[string]*Answer{}, lists: map[schema.GroupResource][]*list{}, ones: map[one]*One{}, singles: map[one][]spot{}}
	s := &scanner{file: f}
	if err := s.scan(); err != nil {
		return nil, err
	}
	return f, nil
}

// scanner makes the index.
type scanner struct {
	file    *File
	offset  int64 // of the member
	lines   int   // of the member so far
	first   bool  // a line was read
	list    *list
	seen    Trailer
	ended   bool
	answers int
	singles int
}

// ErrNewer is the error about a snapshot that a newer program wrote.
var ErrNewer = errors.New("it is of a newer format")

var (
	errTruncated = errors.New("it is truncated: its end is missing")
	errTooLarge  = errors.New("it unpacks to more than any snapshot: it may be made to exhaust memory")
)

// scan goes over the members.
func (s *scanner) scan() error {
	in := &counter{in: bufio.NewReaderSize(io.NewSectionReader(s.file.in, 0, s.file.size), 64<<10)}
	var text int64
	zip := &gzip.Reader{}
	for in.more() {
		s.offset, s.lines = in.read, 0
		if err := zip.Reset(in); err != nil {
			return corrupted(err)
		}
		zip.Multistream(false)
		limited := &io.LimitedReader{R: zip, N: maxMember + 1}
		err := eachLine(limited, func(text []byte) error { return s.line(s.file.key.plain(text)) })
		text += maxMember + 1 - limited.N
		switch {
		case limited.N == 0, text > freeText && text > maxRatio*s.file.size:
			return errTooLarge
		case err != nil:
			return err
		}
	}
	if !s.ended {
		return errTruncated
	}
	s.file.Trailer.Lists, s.file.Trailer.Objects = s.seen.Lists, s.seen.Objects
	return nil
}

// corrupted says what an error of the decompressor means.
func corrupted(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errTruncated
	case errors.Is(err, bufio.ErrTooLong):
		return errTooLarge
	}
	return fmt.Errorf("it is corrupted: %w", err)
}

// counter counts what is read, so that the place of the next member is known: the
// decompressor takes single bytes, and none too many.
type counter struct {
	in   *bufio.Reader
	read int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.read += int64(n)
	return n, err
}

// ReadByte implements io.ByteReader.
func (c *counter) ReadByte() (byte, error) {
	b, err := c.in.ReadByte()
	if err == nil {
		c.read++
	}
	return b, err
}

func (c *counter) more() bool {
	_, err := c.in.Peek(1)
	return err == nil
}

// eachLine calls each for the lines of a text; what it gets is valid until it returns.
func eachLine(in io.Reader, each func([]byte) error) error {
	sticky := &failing{in: in}
	lines := bufio.NewScanner(sticky)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		if sticky.err != nil { // what is left before it is part of a line
			return corrupted(sticky.err)
		}
		if err := each(lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return corrupted(err)
	}
	return nil
}

// failing remembers what a reader failed with.
type failing struct {
	in  io.Reader
	err error
}

// Read implements io.Reader.
func (f *failing) Read(p []byte) (int, error) {
	n, err := f.in.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// line takes a line into the index.
func (s *scanner) line(text []byte) error {
	defer func() { s.lines++ }()
	switch {
	case s.ended:
		return errors.New("it is corrupted: something follows its end")
	case !s.first:
		s.first = true
		return s.file.Header.parse(text)
	case s.list != nil && bytes.HasPrefix(text, []byte(`{"object":`)):
		return s.object(text)
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("it is corrupted: %w", err)
	}
	return s.other(&l, len(text))
}

// other takes a line that is no object.
func (s *scanner) other(l *line, length int) error {
	f := s.file
	switch {
	case l.Answer != nil:
		if s.answers += length; s.answers > maxAnswers {
			return errTooLarge
		}
		f.answers[l.Answer.Path] = l.Answer
	case l.One != nil:
		if len(f.ones) == maxLists {
			return errTooLarge
		}
		f.ones[one{schema.GroupResource{Group: l.One.Group, Resource: l.One.Resource}, l.One.Namespace, l.One.Name, l.One.Again}] = l.One
	case l.List != nil && s.list == nil:
		if s.seen.Lists == maxLists {
			return errTooLarge
		}
		s.list = &list{List: *l.List}
	case l.End != nil && s.list != nil:
		return s.end(l.End)
	case l.Trailer != nil && s.list == nil:
		if l.Trailer.Lists != s.seen.Lists || l.Trailer.Objects != s.seen.Objects {
			return fmt.Errorf("it is corrupted: it has %d objects in %d lists, and says that these are %d in %d", s.seen.Objects, s.seen.Lists, l.Trailer.Objects, l.Trailer.Lists)
		}
		f.Trailer, s.ended = *l.Trailer, true
	default:
		return errors.New("it is corrupted: a line is not where it belongs, or of an unknown kind")
	}
	return nil
}

// end takes the end of the list.
func (s *scanner) end(e *End) error {
	l := s.list
	count := 0
	for _, c := range l.chunks {
		count += c.count
	}
	if count != e.Objects {
		return fmt.Errorf("it is corrupted: the list of %s has %d objects, and says %d", l.GroupResource(), count, e.Objects)
	}
	l.End = *e
	s.list = nil
	s.seen.Lists++
	s.file.lists[l.GroupResource()] = append(s.file.lists[l.GroupResource()], l)
	return nil
}

// object takes an object into the chunk at hand.
func (s *scanner) object(text []byte) error {
	var view struct {
		Object struct {
			Metadata struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
			} `json:"metadata"`
		} `json:"object"`
	}
	if err := json.Unmarshal(text, &view); err != nil {
		return fmt.Errorf("it is corrupted: an object of %s: %w", s.list.GroupResource(), err)
	}
	m := &view.Object.Metadata
	k := key(m.Namespace, m.Name)
	s.seen.Objects++
	l := s.list
	if n := len(l.chunks); n == 0 || l.chunks[n-1].offset != s.offset {
		l.chunks = append(l.chunks, chunk{offset: s.offset, skip: s.lines, first: strings.Clone(k), last: strings.Clone(k)})
	}
	c := &l.chunks[len(l.chunks)-1]
	if l.Single {
		if s.singles++; s.singles > maxLists {
			return errTooLarge
		}
		at := one{l.GroupResource(), m.Namespace, m.Name, l.Again}
		s.file.singles[at] = append(s.file.singles[at], spot{l, len(l.chunks) - 1, c.count})
	}
	c.count++
	if k < c.first {
		c.first = strings.Clone(k)
	}
	if k > c.last {
		c.last = strings.Clone(k)
	}
	return nil
}

// parse reads the header.
func (h *Header) parse(text []byte) error {
	if err := json.Unmarshal(text, h); err != nil || h.Kind != Kind || !strings.HasPrefix(h.APIVersion, "kubectl-gc/") {
		return errors.New("it is no snapshot: its first line does not say so")
	}
	if h.Format > Format || h.APIVersion != APIVersion {
		return fmt.Errorf("%w (%s, %d) than this program knows (%s, %d)", ErrNewer, h.APIVersion, h.Format, APIVersion, Format)
	}
	return nil
}

// entries calls each for the objects of a chunk, from the one with that number on,
// until it returns false.
func (f *File) entries(c *chunk, from int, each func(i int, text []byte) bool) error {
	m, err := f.member(c.offset)
	if err != nil {
		return err
	}
	if c.skip+c.count > len(m.lines) {
		return errors.New("the snapshot has changed since it was opened")
	}
	for i := from; i < c.count; i++ {
		if !each(i, m.lines[c.skip+i]) {
			break
		}
	}
	return nil
}

// member returns the text of the member at the offset.
func (f *File) member(offset int64) (member, error) {
	f.mu.Lock()
	for i, m := range f.cache {
		if m.offset == offset {
			copy(f.cache[1:i+1], f.cache[:i])
			f.cache[0] = m
			f.mu.Unlock()
			return m, nil
		}
	}
	f.mu.Unlock()
	m, err := f.unpack(offset)
	if err != nil {
		return m, fmt.Errorf("reading the snapshot: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	kept, size := []member{m}, m.size
	for _, other := range f.cache {
		if size += other.size; size <= cachedText {
			kept = append(kept, other)
		}
	}
	f.cache = kept
	return m, nil
}

// unpackers are decompressors that are at rest.
var unpackers = sync.Pool{New: func() any { return &unpacker{in: bufio.NewReader(nil)} }}

type unpacker struct {
	in  *bufio.Reader
	zip gzip.Reader
}

func (f *File) unpack(offset int64) (member, error) {
	u := unpackers.Get().(*unpacker)
	defer unpackers.Put(u)
	m := member{offset: offset}
	u.in.Reset(io.NewSectionReader(f.in, offset, f.size-offset))
	if err := u.zip.Reset(u.in); err != nil {
		return m, corrupted(err)
	}
	u.zip.Multistream(false)
	text, err := io.ReadAll(io.LimitReader(&u.zip, maxMember))
	if err != nil {
		return m, corrupted(err)
	}
	text = f.key.plain(text)
	m.size = len(text)
	m.lines = bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	return m, nil
}
