// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"sync/atomic"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Progress tells how far the lists of a snapshot have been read. It may be asked by
// several goroutines while they are.
type Progress struct {
	objects, done, all atomic.Int64
	resource           atomic.Pointer[graph.Resource]
}

// Objects returns how many objects have been read. It falls when a list has to be
// read again.
func (p *Progress) Objects() int { return int(p.objects.Load()) }

// Lists returns how many lists have been read to their end, and how many there are
// as far as is known: a list that is forbidden may become one for each namespace.
func (p *Progress) Lists() (done, all int) { return int(p.done.Load()), int(p.all.Load()) }

// Resource returns what was asked for last, "deployments.apps", empty before.
func (p *Progress) Resource() string {
	if r := p.resource.Load(); r != nil {
		return r.GroupResource().String()
	}
	return ""
}

// told is what a Progress knows of a listing.
type told struct{ pages, objects int }

// began notes that the listing's next page is asked for. A nil Progress notes
// nothing, and neither do the others.
func (p *Progress) began(l *listing) {
	if p != nil {
		p.resource.Store(l.resource)
	}
}

// read notes what has come of the listing, and ended that nothing more will, but
// for the lists that take its place.
func (p *Progress) read(l *listing) {
	if p == nil {
		return
	}
	if len(l.pages) <= l.told.pages { // what came before was dropped
		p.objects.Add(int64(-l.told.objects))
		l.told = told{}
	}
	for _, page := range l.pages[l.told.pages:] {
		l.told.objects += page.Len()
		p.objects.Add(int64(page.Len()))
	}
	l.told.pages = len(l.pages)
}

func (p *Progress) ended(parts []*listing) {
	if p != nil {
		p.done.Add(1)
		p.all.Add(int64(len(parts)))
	}
}
