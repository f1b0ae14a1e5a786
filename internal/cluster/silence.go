// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// mostSilent is how many lists in a row may go without an answer before the server is
// asked whether it answers any.
const mostSilent = 8

// shortListTimeout is how long that answer is waited for.
const shortListTimeout = 10 * time.Second

// silence notices a server that answers no list any more, as one does whose etcd hangs:
// each of a hundred types would be waited for as long as a request may take. It may be
// used by several goroutines.
type silence struct {
	// answers asks the server for a list that is short and always there. Meanwhile no other list
	// begins.
	answers func() bool

	// turn is full while somebody reads or changes what follows. It is a channel and no mutex, for
	// a request may be made meanwhile: the clock of a test's bubble stands still while a mutex is
	// waited for.
	turn chan struct{}
	// inRow counts the lists that were not answered since one was.
	inRow int
	over  bool
}

func newSilence(answers func() bool) *silence {
	return &silence{answers: answers, turn: make(chan struct{}, 1)}
}

// broken returns an error when no list is worth asking for any more.
func (s *silence) broken() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.over {
		return errSilent
	}
	return nil
}

// took notes how a list came out. An aggregated API server may be silent alone: while
// others answer, none is given up.
func (s *silence) took(err error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if unlistedReason(err) != graph.Timeout {
		s.inRow = 0
		return
	}
	if s.inRow++; s.inRow < mostSilent || s.over {
		return
	}
	s.inRow, s.over = 0, !s.answers()
}

// errSilent is the error of a list that was not asked for.
var errSilent = silentError{}

type silentError struct{}

// Error implements error.
func (silentError) Error() string {
	return fmt.Sprintf("not asked for: the server answered none of the last %d lists in time, nor a short one", mostSilent)
}

// Timeout implements net.Error's.
func (silentError) Timeout() bool { return true }

// listsAnything reports whether the server answers a short list, be it with an error.
func (r *Reader) listsAnything(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, min(r.timeout, shortListTimeout))
	defer cancel()
	_, err := r.rest.Get().AbsPath("/api/v1/namespaces").Param("limit", "1").MaxRetries(0).DoRaw(ctx)
	return ctx.Err() == nil && (err == nil || unlistedReason(err) != graph.Timeout)
}
