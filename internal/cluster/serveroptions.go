// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
)

// ServerOptions configure a Server.
type ServerOptions struct {
	// Settle is DefaultSettle when it is 0.
	Settle time.Duration
	// IgnoreGrace: do not wait for pods inside their grace period.
	IgnoreGrace bool
	// FieldManager is recorded by the API server as the author of patches.
	FieldManager string
	// Keep is told each write before it is sent; after an error that is not sent, and the run ends. What it returns is told the
	// answer; its error ends the run, too. Nil keeps nothing.
	Keep func(*gc.Step) (answered func(error) error, err error)
}

// keep sends a write once it is kept.
func (s *Server) keep(step *gc.Step, send func() error) error {
	if s.options.Keep == nil {
		return send()
	}
	answered, err := s.options.Keep(step)
	if err != nil {
		s.changes.fail(err)
		return answer.Unsent(err)
	}
	err = send()
	if unkept := answered(err); unkept != nil {
		s.changes.fail(unkept)
	}
	return err
}
