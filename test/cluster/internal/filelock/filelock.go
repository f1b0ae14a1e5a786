// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package filelock locks files between processes. The kernel drops a lock when
// its holder ends, however it ends, so a held lock proves a live holder where
// a process id in a file proves nothing.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// ErrHeld says that another process, or another Lock in this one, holds the
// lock.
var ErrHeld = errors.New("the lock is held by another process")

// pollInterval is the pause between two attempts in Acquire.
const pollInterval = 100 * time.Millisecond

// Lock is an exclusive lock that is held until Release or the end of the
// process. Child processes do not inherit it.
type Lock struct {
	file *os.File
}

// Try takes the lock on the file at path, which it creates if need be. It
// returns an error that wraps ErrHeld at once when the lock is not free.
func Try(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file: %w", err)
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return &Lock{file: file}, nil
	}
	file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrHeld
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

// Acquire takes the lock on the file at path and waits while it is held; it
// calls waiting once before it starts to wait. It returns the error of ctx
// when that ends first.
func Acquire(ctx context.Context, path string, waiting func()) (*Lock, error) {
	for first := true; ; first = false {
		lock, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// WriteString replaces what the lock file says. Others read it with ReadFile;
// it is only a hint to them, which the lock itself makes trustworthy.
func (l *Lock) WriteString(s string) error {
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("emptying the lock file: %w", err)
	}
	if _, err := l.file.WriteAt([]byte(s), io.SeekStart); err != nil {
		return fmt.Errorf("writing the lock file: %w", err)
	}
	return nil
}

// Release gives the lock up. The file stays, for the next holder to lock:
// removing it would let two holders lock two files of one name.
func (l *Lock) Release() error {
	return l.file.Close()
}
