// SPDX-License-Identifier: Apache-2.0

package graph

import "iter"

// Table has a T for each index, such as a Handle or the Index of a Node: the zero value,
// until it is changed. It takes memory for pages of 256 that were touched, and some more
// for the largest index. Its zero value is ready for use. It must not be used by several
// goroutines while one changes it.
type Table[I ~int32 | ~uint32, T any] struct{ pages []*[pageSize]T }

const pageSize = 256

// Get returns what the table has for the index.
func (t *Table[I, T]) Get(i I) T {
	if page := int(i) / pageSize; page < len(t.pages) && t.pages[page] != nil {
		return t.pages[page][i%pageSize]
	}
	var zero T
	return zero
}

// At returns the place of the index, which stays where it is.
func (t *Table[I, T]) At(i I) *T {
	page := int(i) / pageSize
	if page >= len(t.pages) {
		t.pages = append(t.pages, make([]*[pageSize]T, page+1-len(t.pages))...)
	}
	if t.pages[page] == nil {
		t.pages[page] = new([pageSize]T)
	}
	return &t.pages[page][i%pageSize]
}

// All returns the places that were touched, and others on the same pages, in the order of
// their indices.
func (t *Table[I, T]) All() iter.Seq2[I, *T] {
	return func(yield func(I, *T) bool) {
		for first, page := range t.pages {
			if page == nil {
				continue
			}
			for i := range page {
				if !yield(I(first*pageSize+i), &page[i]) {
					return
				}
			}
		}
	}
}
