// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"encoding/hex"
	"hash/maphash"
	"strings"

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

// uuidDigits are where the digits of a byte are in the text of a UUID.
var uuidDigits = [16]int{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34}

// notDigit is what digitValues has for what is no hexadecimal digit in lower
// case.
const notDigit = 0xff

var digitValues = func() (values [256]byte) {
	for i := range values {
		values[i] = notDigit
	}
	for i, c := range []byte("0123456789abcdef") {
		values[c] = byte(i)
	}
	return values
}()

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
	wrong := byte(0)
	for i, at := range uuidDigits {
		high, low := digitValues[s[at]], digitValues[s[at+1]]
		id[i] = high<<4 | low
		wrong |= high | low
	}
	return id, wrong != notDigit
}

func appendUUID(text []byte, id *[16]byte) []byte {
	text = append(hex.AppendEncode(text, id[:4]), '-')
	text = append(hex.AppendEncode(text, id[4:6]), '-')
	text = append(hex.AppendEncode(text, id[6:8]), '-')
	text = append(hex.AppendEncode(text, id[8:10]), '-')
	return hex.AppendEncode(text, id[10:])
}

// uidIndex finds objects by UID: a hash table with linear probing, of which a
// slot is four bytes. It asks the snapshot for the UIDs.
type uidIndex struct {
	slots []uint32 // 0 is free, otherwise the handle + 1
	used  int
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

// find returns the object with the UID.
func (x *uidIndex) find(s *Snapshot, k *key) (handle, bool) {
	if len(x.slots) == 0 {
		return 0, false
	}
	mask := uint64(len(x.slots) - 1)
	for slot := k.hash() & mask; x.slots[slot] != 0; slot = (slot + 1) & mask {
		if h := handle(x.slots[slot] - 1); s.blocks[h.block()].hasKey(h.slot(), k) {
			return h, true
		}
	}
	return 0, false
}

// add makes the UID lead to the object, unless it leads to another already,
// which is returned then. The empty UID leads to the object that was added
// last.
func (x *uidIndex) add(s *Snapshot, k *key, h handle) (other handle, known bool) {
	x.reserve(s, 1)
	mask := uint64(len(x.slots) - 1)
	slot := k.hash() & mask
	for ; x.slots[slot] != 0; slot = (slot + 1) & mask {
		other := handle(x.slots[slot] - 1)
		switch {
		case !s.blocks[other.block()].hasKey(other.slot(), k):
			continue
		case k.uuid || k.text != "":
			return other, true
		}
		x.slots[slot] = uint32(h) + 1
		return 0, false
	}
	x.slots[slot] = uint32(h) + 1
	x.used++
	return 0, false
}

// reserve makes room for more UIDs. At most three of four slots are used.
func (x *uidIndex) reserve(s *Snapshot, more int) {
	size := max(len(x.slots), 16)
	for 4*(x.used+more) > 3*size {
		size *= 2
	}
	if size == len(x.slots) {
		return
	}
	old := x.slots
	x.slots = make([]uint32, size)
	mask := uint64(size - 1)
	for _, used := range old {
		if used == 0 {
			continue
		}
		h := handle(used - 1)
		k := s.blocks[h.block()].key(h.slot())
		slot := k.hash() & mask
		for x.slots[slot] != 0 {
			slot = (slot + 1) & mask
		}
		x.slots[slot] = used
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
