// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// UIDs that somebody counts up do not meet in a few slots of the index.
func TestHashSpreads(t *testing.T) {
	const n, slots = 1_000, 1 << 16
	for _, form := range []string{"%08x-0000-4000-8000-000000000000", "00000000-0000-4000-8000-%012x", "00000000-0000-4000-8000-%06x000000", "node-%d"} {
		met := map[uint64]bool{}
		for i := range n {
			k := keyOf(types.UID(fmt.Sprintf(form, i)))
			met[k.hash()%slots] = true
		}
		if len(met) < n*9/10 {
			t.Errorf("%s: %d UIDs are in %d slots", form, n, len(met))
		}
	}
}
