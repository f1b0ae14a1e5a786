// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"syscall"
	"unsafe"
)

// hugePage is the size of a huge page of x86-64, and of arm64 with pages of 4 kB. With larger
// ones there is nothing to save.
const hugePage = 2 << 20

// Large makes a slice of n zero values that are about to be written, all of them. A long one
// comes from the system in huge pages, with one fault for 512: where the system is a
// virtual machine, a fault may take more time than what is done with the page. The last one
// goes on behind the slice, where Go puts what is made next.
func Large[T any](n int) []T {
	s := make([]T, n)
	if os.Getpagesize() != 4096 || n == 0 {
		return s
	}
	start := unsafe.Pointer(unsafe.SliceData(s))
	size := uintptr(n) * unsafe.Sizeof(s[0])
	from := -uintptr(start) % hugePage
	if size < from+hugePage {
		return s
	}
	pages := (size - from + hugePage - 1) / hugePage
	// Where it fails, it is slower.
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(start)+from, pages*hugePage, syscall.MADV_HUGEPAGE)
	return s
}

// dropCode takes the program's code out of the process's memory. What is used again is mapped again,
// from the system's cache of the file, sixteen pages at a time. To start takes most of the
// code, if hardly all of what is in those pages, and to go on takes half of it. Breakpoints of
// a debugger are lost.
func dropCode() {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return // then it stays
	}
	defer func() { _ = maps.Close() }()
	here := reflect.ValueOf(dropCode).Pointer()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uintptr
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x", &from, &to); err == nil && from <= here && here < to {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
			return
		}
	}
}
