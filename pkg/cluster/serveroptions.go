// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

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
	// Keep is told each write before it is sent; after an error that is not sent. What it returns is told the answer, and returns it. Nil keeps nothing.
	Keep func(*gc.Step) (answered func(error) error, err error)
}

// keep sends a write once it is kept.
func (o *ServerOptions) keep(s *gc.Step, send func() error) error {
	if o.Keep == nil {
		return send()
	}
	answered, err := o.Keep(s)
	if err != nil {
		return err
	}
	return answered(send())
}
