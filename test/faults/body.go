// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"errors"
	"io"
	"time"
)

// wrapped reads from one place and closes another.
type wrapped struct {
	io.Reader
	io.Closer
}

// failing is a reader of nothing but an error.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) { return 0, f.err }

// dripping reads a byte at a time.
type dripping struct {
	io.Reader
	pause        time.Duration
	done, closed <-chan struct{}
}

// Read implements io.Reader.
func (d *dripping) Read(p []byte) (int, error) {
	select {
	case <-d.done:
		return 0, errReset
	case <-d.closed:
		return 0, errReset
	case <-time.After(d.pause):
	}
	return d.Reader.Read(p[:min(1, len(p))])
}

// garbling changes all bytes from one on.
type garbling struct {
	io.Reader
	from int64
}

// Read implements io.Reader.
func (g *garbling) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	for i := range p[:n] {
		if g.from > 0 {
			g.from--
			continue
		}
		p[i] ^= 0xa5 // no byte stays, and most end a field or a value
	}
	return n, err
}

// remembering keeps what is read, if that is not too long.
type remembering struct {
	io.Reader           // ends at the longest that is kept
	rest      io.Reader // what comes after it
	read      *bytes.Buffer
	all       func()
}

// Read implements io.Reader.
func (r *remembering) Read(p []byte) (int, error) {
	if r.read == nil {
		return r.rest.Read(p)
	}
	n, err := r.Reader.Read(p)
	r.read.Write(p[:n])
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if r.read.Len() < longestStale {
		r.all()
		r.read = nil
		return n, err
	}
	r.read = nil
	return n, nil
}
