// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"net"
	"time"
)

// Dial connects as client-go does (transport/cache.go), for connections over which much is
// read. On Linux their reads are short for Go's scheduler.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	c, err := dialer.DialContext(ctx, network, address)
	if tcp, ok := c.(*net.TCPConn); ok && err == nil {
		return unseen(tcp), nil
	}
	return c, err
}
