// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// unseenConn reads without telling Go's scheduler of the system call. The socket does not
// block, so that the call is over when what has come in is copied. With one processor that is
// long enough for the scheduler to take it away, wake a thread that finds nothing to do, and
// look at both again every 20 µs (runtime/proc.go, retake): a sixth of all that reading a large
// cluster took.
type unseenConn struct {
	*net.TCPConn
	raw syscall.RawConn

	mu sync.Mutex
	// to is what read fills; n and failed are what came of it.
	to     []byte
	n      int
	failed syscall.Errno
}

// unseen returns the connection with such reads.
func unseen(c *net.TCPConn) net.Conn {
	raw, err := c.SyscallConn()
	if err != nil {
		return c
	}
	return &unseenConn{TCPConn: c, raw: raw}
}

// Read implements io.Reader.
func (c *unseenConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = p
	err := c.raw.Read(c.read)
	c.to = nil
	if op, ok := errors.AsType[*net.OpError](err); ok {
		op.Op = "read" // for raw-read
	}
	switch {
	case err != nil:
		return 0, err
	case c.failed != 0:
		local, remote := c.LocalAddr(), c.RemoteAddr()
		return 0, &net.OpError{Op: "read", Net: local.Network(), Source: local, Addr: remote, Err: os.NewSyscallError("read", c.failed)}
	case c.n == 0:
		return 0, io.EOF
	}
	return c.n, nil
}

// read fills c.to, and reports false if there is nothing to be read yet.
func (c *unseenConn) read(fd uintptr) (done bool) {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(c.to))), uintptr(len(c.to)))
		switch errno {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		}
		c.n, c.failed = int(n), errno
		return true
	}
}
