// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/process"
)

// A slice has its length, is empty and can be written, whether it is in huge pages or not.
func TestLarge(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 3 << 20} {
		s := process.Large[uint32](n)
		if len(s) != n {
			t.Errorf("%d values, want %d", len(s), n)
		}
		for i, v := range s {
			if v != 0 {
				t.Fatalf("of %d, number %d is %d", n, i, v)
			}
			s[i] = uint32(i)
		}
	}
}
