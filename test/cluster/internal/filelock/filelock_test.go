// SPDX-License-Identifier: Apache-2.0

//go:build unix

package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Errorf("trying a held lock: got %v, want %v", err, ErrHeld)
	}
	for _, text := range []string{"a long text", "short"} {
		if err := lock.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("the lock file says %q (error %v), want %q", got, err, text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Acquire(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting until the context ends: got %v, want %v", err, context.Canceled)
	}
	released := func() {
		if err := lock.Release(); err != nil {
			t.Error(err)
		}
	}
	if lock, err = Acquire(t.Context(), path, released); err != nil {
		t.Fatal(err)
	}
	released()
	if lock, err = Try(path); err != nil {
		t.Fatal(err)
	}
	released()
}
