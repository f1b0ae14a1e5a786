// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The limits of what a reader takes, so that no file makes it use much memory. What
// a Writer writes stays far below them.
const (
	// maxLine is the longest line; the largest objects of etcd are a tenth of it.
	maxLine = 16 << 20
	// maxMember is the text of a member.
	maxMember = maxLine + memberSize
	// maxIndex is that of the index.
	maxIndex = 128 << 20
	// maxRatio is how many times as much as the file its text may be, after the first
	// freeText bytes.
	maxRatio = 200
	freeText = 64 << 20
	// cachedText is how much text of members is kept: two for each of the lists that are
	// read at a time.
	cachedText = 2 << 20
)

// File is a snapshot that was opened: its index. The objects stay in the
// file. Its methods may be called by several goroutines at once.
type File struct {
	Header  Header
	Trailer Trailer

	members []*zip.File // the last is the index
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
	Chunks []chunk `json:"chunks,omitempty"`
}

// chunk is a run of objects of a list within a member. An object that was read by itself has one of its own.
type chunk struct {
	// In is the number of the member, At the number of the first line.
	In      int `json:"in"`
	At      int `json:"at"`
	Objects int `json:"objects"`
	// First and Last are the least and the greatest key.
	First string `json:"first"`
	Last  string `json:"last"`
}

// spot is where an object of a list is.
type spot struct {
	*list
	chunk int
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
	number int
	lines  [][]byte
	size   int
}

// Open reads the index of a snapshot. An error says why it is
// no complete snapshot that this program can read.
func Open(in io.ReaderAt, size int64) (*File, error) { return OpenRedacted(in, size, nil) }

// OpenRedacted is Open for a snapshot of which the key has the words: they are read as they were.
func OpenRedacted(in io.ReaderAt, size int64, key Key) (*File, error) {
	f := &File{key: key, answers: map[string]*Answer{}, lists: map[schema.GroupResource][]*list{}, ones: map[one]*One{},
		singles: map[one][]spot{}}
	var magic [2]byte
	if _, err := in.ReadAt(magic[:], 0); err == nil && magic == gzipMagic {
		return nil, errOld
	}
	directory, err := zip.NewReader(in, size)
	if err != nil {
		return nil, corrupted(err)
	}
	f.members = directory.File
	var text uint64
	for _, m := range f.members {
		text += min(m.UncompressedSize64, math.MaxInt64/(1+uint64(len(f.members))))
	}
	if text > freeText && text/maxRatio > uint64(size) {
		return nil, errTooLarge
	}
	if err := f.index(); err != nil {
		return nil, err
	}
	return f, nil
}

// ErrNewer is the error about a snapshot that a newer program wrote.
var ErrNewer = errors.New("it is of a newer format")

var (
	errOld       = errors.New("it is in the gzip form of earlier versions, which this one does not read: take a new snapshot")
	errTruncated = errors.New("it is truncated: its end is missing")
	errTooLarge  = errors.New("it unpacks to more than any snapshot: it may be made to exhaust memory")
	errLines     = errors.New("it is corrupted: a line of its index is not where it belongs, or of an unknown kind")
)

// corrupted says what an error of the decompressor means.
func corrupted(err error) error {
	if errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return fmt.Errorf("it is corrupted: %w", err)
}

// index reads the index.
func (f *File) index() error {
	at := len(f.members) - 1
	if at < 0 || f.members[at].Name != indexName {
		return errors.New("it is no snapshot: it has no index at its end")
	}
	text, err := unpack(f.members[at], maxIndex)
	if err != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimSuffix(f.key.plain(text), []byte("\n")), []byte("\n"))
	if err := f.Header.parse(lines[0]); err != nil {
		return err
	}
	var seen Trailer
	for i, text := range lines[1:] {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("it is corrupted: %w", err)
		}
		switch last := i == len(lines)-2; {
		case last != (l.Trailer != nil):
			return errLines
		case last:
			f.Trailer = *l.Trailer
		case l.List != nil:
			if err := f.add(l.List); err != nil {
				return err
			}
			seen.Lists++
			seen.Objects += l.List.Objects
		case l.Answer != nil:
			f.answers[l.Answer.Path] = l.Answer
		case l.One != nil:
			f.ones[one{schema.GroupResource{Group: l.One.Group, Resource: l.One.Resource}, l.One.Namespace, l.One.Name, l.One.Again}] = l.One
		default:
			return errLines
		}
	}
	if t := f.Trailer; len(lines) == 1 || t.Lists != seen.Lists || t.Objects != seen.Objects {
		return fmt.Errorf("it is corrupted: its index has %d objects in %d lists, and says that these are %d in %d", seen.Objects,
			seen.Lists, t.Objects, t.Lists)
	}
	return nil
}

// add takes a list of the index.
func (f *File) add(l *list) error {
	count := 0
	for i := range l.Chunks {
		c := &l.Chunks[i]
		if c.In < 0 || c.In >= len(f.members)-1 || c.At < 0 || c.Objects <= 0 || c.Objects > maxMember || c.At > maxMember {
			return fmt.Errorf("it is corrupted: the list of %s has objects where none are", l.GroupResource())
		}
		count += c.Objects
		if l.Single {
			namespace, name, _ := strings.Cut(c.First, "/")
			at := one{l.GroupResource(), namespace, name, l.Again}
			f.singles[at] = append(f.singles[at], spot{l, i})
		}
		if f.key != nil && c.First != c.Last { // the words are in another order
			c.First, c.Last = "", "\xff"
		}
	}
	if count != l.Objects {
		return fmt.Errorf("it is corrupted: the list of %s has %d objects, and says %d", l.GroupResource(), count, l.Objects)
	}
	f.lists[l.GroupResource()] = append(f.lists[l.GroupResource()], l)
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
	m, err := f.member(c.In)
	if err != nil {
		return err
	}
	if c.At+c.Objects > len(m.lines) {
		return errors.New("reading the snapshot: it is corrupted: a member lacks objects that its index has")
	}
	for i := from; i < c.Objects; i++ {
		if !each(i, m.lines[c.At+i]) {
			break
		}
	}
	return nil
}

// member returns the text of a member.
func (f *File) member(number int) (member, error) {
	f.mu.Lock()
	for i, m := range f.cache {
		if m.number == number {
			copy(f.cache[1:i+1], f.cache[:i])
			f.cache[0] = m
			f.mu.Unlock()
			return m, nil
		}
	}
	f.mu.Unlock()
	text, err := unpack(f.members[number], maxMember)
	if err != nil {
		return member{}, fmt.Errorf("reading the snapshot: %w", err)
	}
	text = f.key.plain(text)
	m := member{number, bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")), len(text)}
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

// unpack returns the text of a member, of which the checksum is right.
func unpack(m *zip.File, most uint64) ([]byte, error) {
	if m.UncompressedSize64 > most {
		return nil, errTooLarge
	}
	in, err := m.Open()
	if err != nil {
		return nil, corrupted(err)
	}
	defer func() { _ = in.Close() }()
	text := bytes.NewBuffer(make([]byte, 0, min(m.UncompressedSize64, 2*memberSize)+bytes.MinRead))
	//nolint:gosec // it is at most most
	if n, err := io.Copy(text, io.LimitReader(in, int64(m.UncompressedSize64)+1)); err != nil || n > int64(m.UncompressedSize64) {
		return nil, fmt.Errorf("it is corrupted: %w", cmp.Or(err, zip.ErrChecksum))
	}
	return text.Bytes(), nil
}
