// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"time"
)

// pageSize is the number of objects that the next page of a list should have, when nobody has
// chosen one; 0 is for the first.
type pageSize int64

const (
	// longestAutoPage is the largest pageSize.
	longestAutoPage = 16 * DefaultPageSize
	// shortPage and longPage are the times in which a page comes that could as well be twice as
	// long, and one that had better be half as long.
	shortPage = 500 * time.Millisecond
	longPage  = 5 * time.Second
)

func (s pageSize) objects() int64 { return max(int64(s), DefaultPageSize) }

// after returns the size of the page after one of this size, which took so long. The time that it
// took bounds what a page costs the server, which reads objects in full and of any size, and what
// is lost on the way when both are far from one another.
func (s pageSize) after(took time.Duration) pageSize {
	size := s.objects()
	switch {
	case took < shortPage:
		size = min(2*size, longestAutoPage)
	case took > longPage:
		size = max(size/2, DefaultPageSize)
	}
	return pageSize(size)
}

// paging notices a list that does not end.
type paging struct {
	token          string
	objects, empty int
}

// page takes a page: how many objects it had, and what leads to the next.
func (p *paging) page(objects int, token string) error {
	p.objects += objects
	if objects == 0 {
		p.empty++
	}
	before := p.token
	switch p.token = token; {
	case token == "":
		return nil
	case token == before:
		return errors.New("the list does not end: a page leads to itself")
	case p.objects > mostObjects || p.empty > mostEmptyPages:
		return fmt.Errorf("the list does not end: %d objects, %d pages without any", p.objects, p.empty)
	}
	return nil
}
