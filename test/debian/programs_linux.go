// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Programs say where programs are.
type Programs struct {
	// Path is a PATH with which all are found.
	Path string
	// Libraries is the LD_LIBRARY_PATH that they need, empty when they are the
	// machine's own.
	Libraries string
}

// Environ returns this process's environment, with what the programs need.
func (p Programs) Environ() []string {
	env := append(os.Environ(), "PATH="+p.Path)
	if p.Libraries != "" {
		env = append(env, "LD_LIBRARY_PATH="+p.Libraries)
	}
	return env
}

// Find looks for programs on the PATH, and when one is missing downloads the
// packages, with what they depend on and the machine lacks, into a directory of
// the name and their list.
func Find(name string, programs, packages []string) (Programs, error) {
	path := os.Getenv("PATH")
	missing := notIn(path, programs)
	if missing == "" {
		return Programs{Path: path}, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Programs{}, err
	}
	list := fnv.New32a()
	fmt.Fprint(list, packages)
	dir := filepath.Join(cache, "kubectl-gc", fmt.Sprintf("%s-%08x", name, list.Sum32()))
	path = strings.Join([]string{path, filepath.Join(dir, "usr/bin"), filepath.Join(dir, "usr/sbin")}, string(filepath.ListSeparator))
	if notIn(path, programs) != "" {
		if err := download(dir, packages); err != nil {
			return Programs{}, fmt.Errorf("there is no %s: %w", missing, err)
		}
	}
	if missing = notIn(path, programs); missing != "" {
		return Programs{}, fmt.Errorf("there is no %s", missing)
	}
	return Programs{Path: path, Libraries: strings.Join(libraries(dir), string(filepath.ListSeparator))}, nil
}

// libraries returns the directories of the unpacked packages that have libraries: those that
// every program looks in, and those of some libraries alone, which look for them where they
// would be installed.
func libraries(dir string) []string {
	shared, _ := filepath.Glob(filepath.Join(dir, "usr/lib/*-linux-*")) // the pattern is right
	private, _ := filepath.Glob(filepath.Join(dir, "usr/lib/*-linux-*/*/lib*.so*"))
	for _, library := range private {
		shared = append(shared, filepath.Dir(library))
	}
	return slices.Compact(shared)
}

// notIn returns a program that is not in the path, empty when all are.
func notIn(path string, programs []string) string {
	for _, program := range programs {
		found := false
		for _, dir := range filepath.SplitList(path) {
			info, err := os.Stat(filepath.Join(dir, program))
			found = found || err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
		}
		if !found {
			return program
		}
	}
	return ""
}

// get downloads packages into the working directory, and unpack unpacks them
// there into root. The lists of packages are only updated when there is need.
// The lock is for those who install.
const (
	get = `mkdir -p debs/partial
get() { apt-get install --yes --download-only --no-install-recommends -o Debug::NoLocking=1 \
	-o APT::Sandbox::User=root -o Dir::Cache::archives="$PWD/debs/" "$@"; }
get "$@" || { apt-get update && get "$@"; }`
	unpack = `mkdir root && for package in debs/*.deb; do dpkg-deb -x "$package" root || exit; done`
)

// download unpacks the packages into the directory, which appears when it is
// complete.
func download(dir string, packages []string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+"-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(partial) }()
	fmt.Fprintf(os.Stderr, "debian: downloading the packages %s into %s\n", strings.Join(packages, " "), dir)
	for _, script := range []string{get, unpack} {
		cmd := exec.Command("sh", append([]string{"-c", script, "sh"}, packages...)...)
		cmd.Dir = partial
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("downloading it: %w\n%s", err, out)
		}
	}
	err = os.Rename(filepath.Join(partial, "root"), dir)
	if _, missing := os.Stat(dir); missing == nil {
		return nil // another process was faster
	}
	return err
}
