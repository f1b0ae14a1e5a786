// SPDX-License-Identifier: Apache-2.0

package graph

import "iter"

// Batch is a number of objects in compact form. It does not change.
type Batch struct {
	blocks []*block
}

// Len returns the number of objects.
func (b Batch) Len() int {
	n := 0
	for _, block := range b.blocks {
		n += len(block.records)
	}
	return n
}

// Objects returns the objects in the order in which they were added.
func (b Batch) Objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, block := range b.blocks {
			for slot := range block.records {
				if !yield(block.object(slot)) {
					return
				}
			}
		}
	}
}

// Copy returns a batch with the same objects, for another snapshot.
func (b Batch) Copy() (other Batch) {
	for _, block := range b.blocks {
		other.blocks = append(other.blocks, block.compact())
	}
	return other
}

// Packer makes Batches. The zero value is ready for use; a Packer must not be
// used by several goroutines at once.
type Packer struct {
	blocks []*block
	// open is the block that grows. It keeps its memory for the next one: the
	// Batch gets a copy that is as large as needed.
	open block
}

// Add adds an object. It copies the object and all that it points to, but for
// its resource and the strings that objects share: namespaces, finalizers,
// labels, and kinds and versions of owners.
func (p *Packer) Add(o *Object) {
	p.open.add(o)
	if p.open.full() {
		p.finish()
	}
}

// finish ends the block that grows.
func (p *Packer) finish() {
	p.blocks = append(p.blocks, p.open.compact())
	p.open.empty()
}

// Batch returns the objects that were added since it was last called.
func (p *Packer) Batch() Batch {
	if len(p.open.records) > 0 {
		p.finish()
	}
	b := Batch{p.blocks}
	p.blocks = nil
	return b
}
