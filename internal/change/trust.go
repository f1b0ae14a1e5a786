// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrForeign says that a directory or file of a journal might have been written by another user, so that nothing in it is believed.
var ErrForeign = errors.New("another user might have written it")

// Owned reports whether the directory of a journal is the user's own, so that another user's run is not in it.
func Owned(dir string) bool { return trusted(dir, true, true) == nil }

// trusted returns an error unless a directory or file, which is no link, belongs to this user, and no other user can write to it,
// or, if it is private, read it.
func trusted(path string, dir, private bool) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	return ownFile(path, info, dir, private)
}

func ownFile(path string, info fs.FileInfo, dir, private bool) error {
	others := fs.FileMode(0o022)
	if private {
		others = 0o077
	}
	switch {
	case info.IsDir() != dir, !dir && !info.Mode().IsRegular():
		return fmt.Errorf("%s: %w: it is a link, or no %s", path, ErrForeign, map[bool]string{true: "directory", false: "regular file"}[dir])
	case !owned(info):
		return fmt.Errorf("%s: %w: it belongs to that user", path, ErrForeign)
	case modes && info.Mode().Perm()&others != 0:
		return fmt.Errorf("%s: %w: its mode is %#o", path, ErrForeign, info.Mode().Perm())
	}
	return nil
}

// openTrusted opens a file of a journal, if it is what was looked at and private.
func openTrusted(dir, name string, flag int) (*os.File, error) {
	path := filepath.Join(dir, name)
	if err := trusted(path, false, true); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	looked, err := os.Lstat(path)
	opened, statErr := file.Stat()
	if err := errors.Join(err, statErr); err != nil || !os.SameFile(looked, opened) {
		return nil, errors.Join(fmt.Errorf("%s: %w: it was replaced", path, ErrForeign), err, file.Close())
	}
	return file, nil
}
