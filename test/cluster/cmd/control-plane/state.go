// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kubectl-gc/kubectl-gc/test/cluster"
	"github.com/kubectl-gc/kubectl-gc/test/cluster/internal/filelock"
)

// A state is the directory in which up, down and the process in the background
// meet. That process holds the lock as long as it lives; what the other files
// say counts only while the lock is held, so files of a process that has died
// mislead nobody.
type state struct {
	dir string
}

// newState returns the state in dir or, if dir is empty, in the cache
// directory. It creates the directory.
func newState(dir string) (state, error) {
	if dir == "" {
		cache, err := cluster.CacheDir()
		if err != nil {
			return state{}, err
		}
		dir = cache
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return state{}, fmt.Errorf("creating the state directory: %w", err)
	}
	return state{dir: dir}, nil
}

// lockFile is locked by the process in the background, whose id it holds.
func (s state) lockFile() string { return filepath.Join(s.dir, "up.lock") }

// turnFile is locked by up while it starts that process.
func (s state) turnFile() string { return filepath.Join(s.dir, "up.turn.lock") }

// descriptionFile exists while the control plane is ready.
func (s state) descriptionFile() string { return filepath.Join(s.dir, "up.json") }

// logFile has what the process in the background prints.
func (s state) logFile() string { return filepath.Join(s.dir, "up.log") }

// isRunning reports whether a process in the background lives.
func (s state) isRunning() (bool, error) {
	lock, err := filelock.Try(s.lockFile())
	if errors.Is(err, filelock.ErrHeld) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Release()
}

// description reads what describes the control plane. Its error wraps
// fs.ErrNotExist while the control plane is not ready.
func (s state) description() (description, error) {
	var d description
	data, err := os.ReadFile(s.descriptionFile())
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	if err != nil {
		return d, fmt.Errorf("reading the state: %w", err)
	}
	return d, nil
}

// writeDescription makes the description appear at once and complete.
func (s state) writeDescription(d description) error {
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("describing the control plane: %w", err)
	}
	temporary := s.descriptionFile() + ".new"
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	if err := os.Rename(temporary, s.descriptionFile()); err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	return nil
}

// removeDescription removes the description, if there is one.
func (s state) removeDescription() error {
	if err := os.Remove(s.descriptionFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the state: %w", err)
	}
	return nil
}
