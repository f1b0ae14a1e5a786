// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// A text is a UUID if it is what the UUID would be written as, whatever byte it has anywhere.
func TestParseUUID(t *testing.T) {
	const uuid = "01234567-89ab-4cde-8f00-fedcba987654"
	for at := range len(uuid) {
		for c := range 256 {
			text := []byte(uuid)
			text[at] = byte(c)
			want := at != 8 && at != 13 && at != 18 && at != 23 && bytes.IndexByte([]byte("0123456789abcdef"), byte(c)) >= 0 || byte(c) == uuid[at]
			id, ok := parseUUID(string(text))
			if ok != want || ok && !bytes.Equal(appendUUID(nil, &id), text) {
				t.Errorf("%q: %t, %x", text, ok, id)
			}
		}
	}
	for _, text := range []string{"", uuid[1:], uuid + "0", strings.ToUpper(uuid)} {
		if _, ok := parseUUID(text); ok {
			t.Errorf("%q is a UUID", text)
		}
	}
}

// UIDs that somebody counts up do not meet in a few places of the index.
func TestHashSpreads(t *testing.T) {
	const n, places = 1_000, 1 << 16
	for _, form := range []string{"%08x-0000-4000-8000-000000000000", "00000000-0000-4000-8000-%012x", "00000000-0000-4000-8000-%06x000000", "node-%d"} {
		met := map[uint64]bool{}
		for i := range n {
			k := keyOf(types.UID(fmt.Sprintf(form, i)))
			met[k.hash()%places] = true
		}
		if len(met) < n*9/10 {
			t.Errorf("%s: %d UIDs are in %d places", form, n, len(met))
		}
	}
}
