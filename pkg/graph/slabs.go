// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"sync"
	"unsafe"

	"github.com/kubectl-gc/kubectl-gc/internal/process"
)

// Slabs are where the Packers of a large cluster put what they keep, side by side, so that it is in
// huge pages. The first batches are in memory of their own, which a small cluster has no more
// of than it needs. The zero value is ready for use, by several goroutines at once.
type Slabs struct {
	mu    sync.Mutex
	taken int // bytes
	// free is what is left of the slab; words, so that records are aligned.
	free []uint64
}

const (
	// beforeSlabs is how many bytes are kept without slabs, of some 100,000 objects.
	beforeSlabs = 8 << 20
	slabWords   = 8 << 20 / wordBytes
	wordBytes   = int(unsafe.Sizeof(uint64(0)))
)

// words returns memory that nobody else has, or nil where it is to be made alone.
func (s *Slabs) words(n int) []uint64 {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken += n * wordBytes; s.taken < beforeSlabs || n > slabWords/4 {
		return nil
	}
	if len(s.free) < n {
		s.free = process.Large[uint64](slabWords)
	}
	taken := s.free[:n:n]
	s.free = s.free[n:]
	return taken
}

// cloneInto is slices.Clone in the slabs. T must have no pointers, which the garbage collector
// would not see there, and be aligned as a word at most.
func cloneInto[T byte | record | ownerRecord](s *Slabs, from []T) []T {
	size := len(from) * int(unsafe.Sizeof(*new(T)))
	words := s.words((size + wordBytes - 1) / wordBytes)
	if len(words) == 0 {
		return append([]T(nil), from...)
	}
	to := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(words))), len(from))
	copy(to, from)
	return to
}
