// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// rootModule is the path of the module at the root of the repository.
const rootModule = "github.com/kubectl-gc/kubectl-gc"

// repositoryRoot returns the nearest directory, from the current one upwards,
// with the go.mod of the root module. Go test runs tests in their package's
// directory, so that is inside the repository.
func repositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("finding the repository: %w", err)
		}
		if modulePath(data) == rootModule {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the repository: no go.mod of %s in %s or above", rootModule, start)
		}
	}
}

// modulePath returns the path in the module line of a go.mod, or "".
func modulePath(mod []byte) string {
	for lines := bufio.NewScanner(bytes.NewReader(mod)); lines.Scan(); {
		if path, found := strings.CutPrefix(lines.Text(), "module "); found {
			return strings.Trim(strings.TrimSpace(path), `"`)
		}
	}
	return ""
}
