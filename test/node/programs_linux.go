// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// needed are the programs that a node runs, and packages the Debian packages
// that have those which a machine may lack.
var (
	needed   = []string{"containerd", "ctr", "containerd-shim-runc-v2", "runc", "nsenter", "mount"}
	packages = []string{"containerd", "runc"}
)

// Missing says why the machine cannot run nodes, empty when it can.
func Missing() string {
	if os.Geteuid() != 0 {
		return "a node needs root"
	}
	if _, err := searchPath(); err != nil {
		return "a node cannot run here: " + err.Error()
	}
	return ""
}

// searchPath returns the PATH with which all programs are found. Debian packages
// that are missing are downloaded, once, into the user's cache directory, and
// nothing is installed.
var searchPath = sync.OnceValues(func() (string, error) {
	path := os.Getenv("PATH")
	missing := notIn(path)
	if missing == "" {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "kubectl-gc", "node")
	path = strings.Join([]string{path, filepath.Join(dir, "usr/bin"), filepath.Join(dir, "usr/sbin")}, string(filepath.ListSeparator))
	if notIn(path) != "" {
		if err := download(dir); err != nil {
			return "", fmt.Errorf("there is no %s: %w", missing, err)
		}
	}
	if missing = notIn(path); missing != "" {
		return "", fmt.Errorf("there is no %s", missing)
	}
	return path, nil
})

// notIn returns a program that is not in the path, empty when all are.
func notIn(path string) string {
	for _, program := range needed {
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

// download unpacks the packages into the directory, which appears when it is
// complete.
func download(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), "node-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(partial) }()
	fmt.Fprintf(os.Stderr, "node: downloading the packages %s into %s\n", strings.Join(packages, " "), dir)
	get := `apt-get download "$@" || { apt-get update && apt-get download "$@"; }`
	unpack := `mkdir root && for package in *.deb; do dpkg-deb -x "$package" root; done`
	for _, script := range []string{get, unpack} {
		cmd := exec.Command("sh", append([]string{"-c", script, "sh"}, packages...)...)
		cmd.Dir = partial
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("downloading it: %w\n%s", err, out)
		}
	}
	return os.Rename(filepath.Join(partial, "root"), dir)
}
