// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// A frame is one event of a watch, as it is on the wire.
type frame []byte

// frames reads the events of a watch.
func frames(r *http.Response) func() (frame, error) {
	body := bufio.NewReader(r.Body)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		return func() (frame, error) {
			line, err := body.ReadBytes('\n')
			return line, err
		}
	}
	return func() (frame, error) { // apimachinery, util/framer: a length, and so many bytes
		var length [4]byte
		if _, err := io.ReadFull(body, length[:]); err != nil {
			return nil, err
		}
		f := make(frame, 4+binary.BigEndian.Uint32(length[:]))
		copy(f, length[:])
		_, err := io.ReadFull(body, f[4:])
		return f, err
	}
}

// events is a fault of watches that says what is sent on: it reads with next, and
// sends with send until that fails.
func events(name string, relay func(next <-chan frame, send func(frame) error) error) Fault {
	return waitingEvents(name, func(next <-chan frame, send func(frame) error, _ func(time.Duration)) error { return relay(next, send) })
}

// waitingEvents is one that pauses with wait, which ends with the watch.
func waitingEvents(name string, relay func(next <-chan frame, send func(frame) error, wait func(time.Duration)) error) Fault {
	return Fault{Name: name, watches: true, whole: true, after: func(p *Proxy, r *http.Response) error {
		body, next := r.Body, make(chan frame)
		read, done := frames(r), r.Request.Context().Done()
		go func() {
			defer close(next)
			for {
				f, err := read()
				if err != nil {
					return
				}
				select {
				case next <- f:
				case <-done:
					return
				}
			}
		}()
		out, in := io.Pipe()
		go func() {
			in.CloseWithError(relay(next, func(f frame) error {
				_, err := in.Write(f)
				return err
			}, func(d time.Duration) { p.wait(r.Request, d) }))
			for range next { // until the reader has ended
			}
		}()
		r.Body = &wrapped{out, closers{out, body}}
		r.ContentLength = -1
		r.Header.Del("Content-Length")
		return nil
	}}
}

// closers are closed together.
type closers []io.Closer

// Close implements io.Closer.
func (c closers) Close() error {
	for _, closer := range c {
		_ = closer.Close()
	}
	return nil
}

// Duplicate sends each event of a watch twice.
func Duplicate() Fault {
	return events("each event twice", func(next <-chan frame, send func(frame) error) error {
		for f := range next {
			if err := send(f); err != nil {
				return err
			}
			if err := send(f); err != nil {
				return err
			}
		}
		return nil
	})
}

// swapWithin is how long an event is held back for the next to come before it.
const swapWithin = 300 * time.Millisecond

// Reorder sends the events of a watch in pairs, the later first, when they come close
// together.
func Reorder() Fault {
	return events("events in another order", func(next <-chan frame, send func(frame) error) error {
		for first := range next {
			select {
			case second, ok := <-next:
				if ok {
					if err := send(second); err != nil {
						return err
					}
				}
			case <-time.After(swapWithin):
			}
			if err := send(first); err != nil {
				return err
			}
		}
		return nil
	})
}

// CloseWatch ends a watch after so many events, in the regular way.
func CloseWatch(after int) Fault {
	return events(fmt.Sprintf("watch closed after %d events", after), func(next <-chan frame, send func(frame) error) error {
		for range after {
			f, ok := <-next
			if !ok {
				return nil
			}
			if err := send(f); err != nil {
				return err
			}
		}
		return nil
	})
}

// LateEvents delays every event of a watch.
func LateEvents(by time.Duration) Fault {
	return waitingEvents(fmt.Sprintf("events late by %s", by), func(next <-chan frame, send func(frame) error, wait func(time.Duration)) error {
		for f := range next {
			wait(by)
			if err := send(f); err != nil {
				return err
			}
		}
		return nil
	})
}
