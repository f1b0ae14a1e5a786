// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeGo stands in for the go command. A build takes as long as the file
// "hold" exists, fails if "fail" exists, and adds a line to "builds".
const fakeGo = `#!/bin/sh
here=$(dirname "$0")
case "$1 $2" in
"list -m") printf 'v1.2.3\nv3.4.5\n' ;;
"list -deps") printf 'a\nb\nc\n' ;;
env*) printf 'go1\nlinux\namd64\n' ;;
build*)
	echo build >> "$here/builds"
	while [ "$1" != -o ]; do shift; done
	touch "$2/server" "$2/kube-apiserver"
	while [ -e "$here/hold" ]; do sleep 0.05; done
	if [ -e "$here/fail" ]; then echo 'x.go:1:2: undefined: y' >&2; exit 1; fi
	touch "$2/kube-controller-manager" "$2/kubectl" "$2/kubelet"
	;;
esac
`

// useFakeGo puts fakeGo in PATH and returns its directory and a module.
func useFakeGo(t *testing.T) (bin, module string) {
	t.Helper()
	bin, module = t.TempDir(), t.TempDir()
	write(t, filepath.Join(bin, "go"), fakeGo)
	write(t, filepath.Join(module, "go.mod"), "module m\n")
	write(t, filepath.Join(module, "go.sum"), "")
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv(CacheEnv, filepath.Join(t.TempDir(), "cache"))
	return bin, module
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// builds returns how often fakeGo was told to build.
func builds(t *testing.T, bin string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(bin, "builds"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes.Count(data, []byte("\n"))
}

// A syncBuffer is a buffer for concurrent use.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// eventually fails the test unless the condition holds within a minute.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute: not %s", what)
		}
	}
}

func TestBuildOnce(t *testing.T) {
	bin, module := useFakeGo(t)
	hold := filepath.Join(bin, "hold")
	write(t, hold, "")
	var wg sync.WaitGroup
	var outputs [2]syncBuffer
	for i := range outputs {
		wg.Go(func() {
			binaries, err := Build(t.Context(), module, &outputs[i])
			if err != nil {
				t.Errorf("building: %v", err)
			} else if _, err := os.Stat(binaries.Path("etcd")); err != nil {
				t.Errorf("after building: %v", err)
			}
		})
	}
	eventually(t, "waiting for the other build", func() bool {
		return builds(t, bin) == 1 && strings.Contains(outputs[0].String()+outputs[1].String(), "waiting for another process")
	})
	os.Remove(hold)
	wg.Wait()
	if n := builds(t, bin); n != 1 {
		t.Errorf("two concurrent calls built %d times, want once", n)
	}
	if all := outputs[0].String() + outputs[1].String(); strings.Count(all, "about 5 minutes, once") != 1 ||
		!strings.Contains(all, os.Getenv(CacheEnv)) {
		t.Errorf("the progress does not say once how long it takes and where the result is:\n%s", all)
	}
	var again syncBuffer
	if _, err := Build(t.Context(), module, &again); err != nil || again.String() != "" || builds(t, bin) != 1 {
		t.Errorf("with a full cache: error %v, output %q, %d builds in all", err, again.String(), builds(t, bin))
	}
}

func TestBuildAgainAfterChange(t *testing.T) {
	bin, module := useFakeGo(t)
	var output syncBuffer
	first, err := Build(t.Context(), module, &output)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(module, "go.sum"), "changed")
	second, err := Build(t.Context(), module, &output)
	if err != nil {
		t.Fatal(err)
	}
	if first.Dir == second.Dir || builds(t, bin) != 2 {
		t.Errorf("a changed go.sum uses the programs of before")
	}
}

func TestBuildFails(t *testing.T) {
	bin, module := useFakeGo(t)
	write(t, filepath.Join(bin, "fail"), "")
	var output syncBuffer
	if _, err := Build(t.Context(), module, &output); err == nil || !strings.Contains(err.Error(), "undefined: y") {
		t.Errorf("got error %v, want one that quotes the compiler", err)
	}
	os.Remove(filepath.Join(bin, "fail"))
	if _, err := Build(t.Context(), module, &output); err != nil {
		t.Errorf("building after a failure: %v", err)
	}
}

func TestBuildCancelled(t *testing.T) {
	bin, module := useFakeGo(t)
	hold := filepath.Join(bin, "hold")
	write(t, hold, "")
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	var output syncBuffer
	go func() {
		_, err := Build(ctx, module, &output)
		failed <- err
	}()
	eventually(t, "building", func() bool { return builds(t, bin) == 1 })
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled build: got %v, want %v", err, context.Canceled)
	}
	os.Remove(hold)
	if _, err := Build(t.Context(), module, &output); err != nil || builds(t, bin) != 2 {
		t.Errorf("building after a cancelled build: error %v, %d builds in all, want 2", err, builds(t, bin))
	}
}

func TestMeter(t *testing.T) {
	var output syncBuffer
	m := newMeter(&output)
	defer m.stop()
	want := func(want string) {
		t.Helper()
		if got := m.status(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	m.Write([]byte("go: downloading example.com/m v1.0.0\n"))
	want("control plane: downloading modules, 0s")
	m.Write([]byte("internal/goarch\ninternal/g"))
	want("control plane: compiled 1 packages, 0s")
	m.setTotal(3)
	m.Write([]byte("oos\n# example.com/m\n./x.go:1:2: undefined: y\n"))
	want("control plane: compiled 2 of at most 3 packages, 0s")
}
