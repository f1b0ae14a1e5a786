// SPDX-License-Identifier: Apache-2.0

package node

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Image is the only image that a node has. Its command is the program podbin;
// the arguments of a container say how it ends.
const Image = "test.local/podbin:1"

// writeImage compiles podbin and writes an image archive with it into the
// directory.
func writeImage(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "podbin")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "github.com/kubectl-gc/kubectl-gc/test/node/podbin")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling the containers' program: %w\n%s", err, out)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	archive, err := imageArchive(data)
	if err != nil {
		return "", fmt.Errorf("writing the image: %w", err)
	}
	path := filepath.Join(dir, "image.tar")
	return path, os.WriteFile(path, archive, 0o600)
}

// imageArchive returns an image with one layer in the format of docker save.
func imageArchive(program []byte) ([]byte, error) {
	layer, err := tarOf(map[string][]byte{"podbin": program})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/podbin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]map[string]any{{
		"Config": "config.json", "RepoTags": []string{Image}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return nil, err
	}
	return tarOf(map[string][]byte{"config.json": config, "layer.tar": layer, "manifest.json": manifest})
}

func tarOf(files map[string][]byte) ([]byte, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, data := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
}
