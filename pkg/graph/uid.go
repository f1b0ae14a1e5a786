// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"
)

// key is a UID. The API server's are UUIDs and kept as 16 bytes; any other is
// kept as text.
type key struct {
	id   [16]byte
	text string
	// uuid says which of the two it is. The text may be empty.
	uuid bool
}

// uuidLength is that of a UUID in its usual form.
const uuidLength = 36

func keyOf(uid types.UID) key {
	if id, ok := parseUUID(string(uid)); ok {
		return key{id: id, uuid: true}
	}
	return key{text: string(uid)}
}

// parseUUID parses a UUID in the form in which the API server writes it, so
// that appendUUID returns the same text.
func parseUUID(s string) (id [16]byte, ok bool) {
	if len(s) != uuidLength || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, false
	}
	text := unsafe.Slice(unsafe.StringData(s), len(s))
	four := func(from int) uint64 { return uint64(binary.LittleEndian.Uint32(text[from:])) }
	ok = parseHex(id[0:], binary.LittleEndian.Uint64(text[0:])) &&
		parseHex(id[4:], four(9)|four(14)<<32) &&
		parseHex(id[8:], four(19)|four(24)<<32) &&
		parseHex(id[12:], binary.LittleEndian.Uint64(text[28:]))
	return id, ok
}

// parseHex parses eight hexadecimal digits in lower case, the first in the lowest byte, all at
// once, and puts what they mean into the first four bytes.
func parseHex(to []byte, digits uint64) bool {
	const each = 0x0101010101010101 // times what every digit gets
	values := digits&(0x0f*each) + digits>>6&each*9
	asDigits := values + '0'*each + (values+6*each)>>4&each*('a'-'0'-10)
	if asDigits != digits || values&(0xf0*each) != 0 {
		return false
	}
	values = values<<4&0xf000f000f000f0 | values>>8&0x0f000f000f000f
	values = (values | values>>8) & 0x0000ffff0000ffff
	binary.LittleEndian.PutUint32(to, uint32(values|values>>16))
	return true
}

func appendUUID(text []byte, id *[16]byte) []byte {
	text = append(hex.AppendEncode(text, id[:4]), '-')
	text = append(hex.AppendEncode(text, id[4:6]), '-')
	text = append(hex.AppendEncode(text, id[6:8]), '-')
	text = append(hex.AppendEncode(text, id[8:10]), '-')
	return hex.AppendEncode(text, id[10:])
}

// uidIndex finds objects by UID: a hash table with linear probing. Its tags are few enough to be
// in the processor's cache, and tell nearly always whether a place is another UID's: neither
// its handle nor its object, which are anywhere in memory, need be looked at then.
type uidIndex struct {
	// tags are 0 where a place is free, otherwise a part of the hash of the UID of the object
	// that handles has there.
	tags    []uint8
	handles []handle
	used    int
}

var uidSeed = maphash.MakeSeed()

// hash is seeded: whoever chooses UIDs, as in a file or by an API server of his own,
// must not choose those that are slow.
func (k *key) hash() uint64 {
	if !k.uuid {
		return maphash.String(uidSeed, k.text)
	}
	return maphash.Bytes(uidSeed, k.id[:])
}

// tagOf returns a part of a hash of which the place in the table is not made.
func tagOf(hash uint64) uint8 { return max(1, uint8(hash>>56)) }

// find returns the object with the UID.
func (x *uidIndex) find(s *Snapshot, k *key) (handle, bool) {
	if len(x.tags) == 0 {
		return 0, false
	}
	if at := x.look(s, k, k.hash()); x.tags[at] != 0 {
		return x.handles[at], true
	}
	return 0, false
}

// look returns the place of the UID, or the free one where it belongs.
func (x *uidIndex) look(s *Snapshot, k *key, hash uint64) int {
	mask := len(x.tags) - 1
	tag := tagOf(hash)
	for i := int(hash) & mask; ; i = (i + 1) & mask {
		switch x.tags[i] {
		case 0:
			return i
		case tag:
			if h := x.handles[i]; s.blocks[h.block()].hasKey(h.slot(), k) {
				return i
			}
		}
	}
}

// add makes the UID lead to the object, unless it leads to another already,
// which is returned then. The empty UID leads to the object that was added
// last.
func (x *uidIndex) add(s *Snapshot, k *key, h handle) (other handle, known bool) {
	x.reserve(s, 1)
	hash := k.hash()
	at := x.look(s, k, hash)
	switch {
	case x.tags[at] == 0:
		x.used++
	case k.uuid || k.text != "":
		return x.handles[at], true
	}
	x.tags[at], x.handles[at] = tagOf(hash), h
	return 0, false
}

// reserve makes room for more UIDs. At most four of five places are used.
func (x *uidIndex) reserve(s *Snapshot, more int) {
	size := max(len(x.tags), 16)
	for 5*(x.used+more) > 4*size {
		size *= 2
	}
	if size == len(x.tags) {
		return
	}
	old := *x
	x.tags, x.handles = make([]uint8, size), make([]handle, size)
	mask := size - 1
	for from, tag := range old.tags {
		if tag == 0 {
			continue
		}
		h := old.handles[from]
		k := s.blocks[h.block()].key(h.slot())
		i := int(k.hash()) & mask
		for x.tags[i] != 0 {
			i = (i + 1) & mask
		}
		x.tags[i], x.handles[i] = tag, h
	}
}

// uid returns the UID as the API has it.
func (k key) uid() types.UID {
	var text uidText
	return text.of(k)
}

// uidText makes the text of UIDs, in one piece when it has grown before.
type uidText struct{ strings.Builder }

func (t *uidText) of(k key) types.UID {
	if !k.uuid {
		return types.UID(k.text)
	}
	var text [uuidLength]byte
	from := t.Len()
	t.Write(appendUUID(text[:0], &k.id))
	return types.UID(t.String()[from:])
}
