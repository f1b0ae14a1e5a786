// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-gc/kubectl-gc/test/cluster/internal/filelock"
)

// CacheEnv names the environment variable that replaces the directory
// CacheDir returns.
const CacheEnv = "KUBECTL_GC_TEST_CACHE"

// VersionEnv names the environment variable with the version of kube-apiserver and
// kube-controller-manager that Build returns in place of its module's, for example
// 1.30.14: one of those in the directory versions.
const VersionEnv = "KUBECTL_GC_TEST_KUBERNETES"

// modulePath is the path of the module whose go.mod fixes what Build compiles.
const modulePath = "github.com/kubectl-gc/kubectl-gc/test/cluster"

// programs maps the file names in a Binaries directory to the packages they
// are compiled from.
var programs = programsFor(runtime.GOOS)

func programsFor(system string) map[string]string {
	programs := map[string]string{
		"etcd":                    "go.etcd.io/etcd/server/v3",
		"kube-apiserver":          "k8s.io/kubernetes/cmd/kube-apiserver",
		"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
		"kubectl":                 "k8s.io/kubernetes/cmd/kubectl",
	}
	if system == "linux" {
		programs["kubelet"] = "k8s.io/kubernetes/cmd/kubelet"
	}
	return programs
}

// Binaries is a directory with the programs etcd, kube-apiserver,
// kube-controller-manager, kubectl and, on Linux, kubelet.
type Binaries struct {
	// Dir is the absolute path of the directory.
	Dir string
	// Version is the Kubernetes version, for example v1.36.3.
	Version string
}

// Path returns the path of one program, for example "kubectl".
func (b Binaries) Path(program string) string {
	return filepath.Join(b.Dir, program)
}

// CacheDir returns the directory that holds the compiled programs of every
// version: the value of CacheEnv, or kubectl-gc/control-plane in the user's
// cache directory. It may not exist yet.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w (set %s to choose one)", err, CacheEnv)
	}
	return filepath.Join(dir, "kubectl-gc", "control-plane"), nil
}

// Build returns the control plane's programs, compiling them first if the
// cache has none for this go.mod, go.sum, Go version and platform. Compiling
// takes about five minutes on two cores and needs the go command and access to
// a Go module proxy; progress then gets a line now and again. It gets nothing
// when the programs are cached.
//
// moduleDir is the directory of this package's module. If it is empty, Build
// asks the go command for it, which works when the current directory is inside
// that module.
//
// Concurrent calls, in one process or several, build once: the others wait. An
// interrupted build leaves nothing that a later call would take for complete.
//
// With VersionEnv the servers are of that version, and everything else is as without.
func Build(ctx context.Context, moduleDir string, progress io.Writer) (Binaries, error) {
	target, err := newTarget(ctx, moduleDir)
	if err != nil {
		return Binaries{}, err
	}
	built, err := target.buildOnce(ctx, progress)
	wanted := "v" + strings.TrimPrefix(os.Getenv(VersionEnv), "v")
	if err != nil || wanted == "v" || wanted == built.Version {
		return built, err
	}
	servers, err := newServersTarget(ctx, target.moduleDir, wanted, built)
	if err != nil {
		return Binaries{}, err
	}
	return servers.buildOnce(ctx, progress)
}

// Versions returns the versions, as in v1.30.14, that VersionEnv may name besides that of
// the module, the oldest first.
func Versions(moduleDir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(moduleDir, versionsDir))
	if err != nil {
		return nil, fmt.Errorf("finding the versions of the control plane: %w", err)
	}
	var versions []string
	for _, e := range entries {
		versions = append(versions, e.Name())
	}
	slices.SortFunc(versions, func(a, b string) int {
		if version.MustParseGeneric(a).LessThan(version.MustParseGeneric(b)) {
			return -1
		}
		return 1
	})
	return versions, nil
}

// versionsDir has a module for each other version of the servers.
const versionsDir = "versions"

// buildOnce returns the target's programs, and builds them if the cache has none.
func (t target) buildOnce(ctx context.Context, progress io.Writer) (Binaries, error) {
	if t.cached() {
		return t.binaries, nil
	}
	if err := os.MkdirAll(filepath.Dir(t.binaries.Dir), 0o755); err != nil {
		return Binaries{}, fmt.Errorf("creating the cache directory: %w", err)
	}
	lock, err := filelock.Acquire(ctx, t.binaries.Dir+".lock", func() {
		fmt.Fprintln(progress, "control plane: waiting for another process that is building it")
	})
	if err != nil {
		return Binaries{}, err
	}
	defer lock.Release()
	if t.cached() {
		return t.binaries, nil
	}
	if err := t.build(ctx, progress); err != nil {
		return Binaries{}, err
	}
	return t.binaries, nil
}

// A target is one build: where its source is, and where its result goes.
type target struct {
	moduleDir string
	binaries  Binaries
	programs  map[string]string
	etcd      string // version of etcd, empty when it is not built
	// others has the programs that are not built.
	others *Binaries
}

// newServersTarget is a build of the servers alone, of another version than the others.
func newServersTarget(ctx context.Context, moduleDir, version string, others Binaries) (target, error) {
	dir := filepath.Join(moduleDir, versionsDir, version)
	if _, err := os.Stat(dir); err != nil {
		known, _ := Versions(moduleDir)
		return target{}, fmt.Errorf("finding Kubernetes %s, which %s names: there are %s and %s", version, VersionEnv, strings.Join(known, ", "), others.Version)
	}
	servers := map[string]string{}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager"} {
		servers[name] = programs[name]
	}
	hash, err := hashInputs(ctx, dir, servers)
	if err != nil {
		return target{}, err
	}
	return target{
		moduleDir: dir, programs: servers, others: &others,
		binaries: Binaries{Dir: filepath.Join(filepath.Dir(others.Dir), version+"-servers-"+hash), Version: version},
	}, nil
}

// newTarget reads the versions from the module and derives the cache key.
func newTarget(ctx context.Context, moduleDir string) (target, error) {
	cache, err := CacheDir()
	if err != nil {
		return target{}, err
	}
	if moduleDir == "" {
		if moduleDir, err = goOutput(ctx, "", "list", "-m", "-f", "{{.Dir}}", modulePath); err != nil {
			return target{}, fmt.Errorf("finding module %s from the current directory: %w", modulePath, err)
		}
	}
	out, err := goOutput(ctx, moduleDir, "list", "-m", "-f", "{{.Version}}",
		"k8s.io/kubernetes", "go.etcd.io/etcd/server/v3")
	if err != nil {
		return target{}, fmt.Errorf("reading the versions of the control plane: %w", err)
	}
	versions := strings.Fields(out)
	if len(versions) != 2 {
		return target{}, fmt.Errorf("reading the versions of the control plane: unexpected answer %q", out)
	}
	hash, err := hashInputs(ctx, moduleDir, programs)
	if err != nil {
		return target{}, err
	}
	return target{
		moduleDir: moduleDir,
		programs:  programs,
		etcd:      versions[1],
		binaries:  Binaries{Dir: filepath.Join(cache, versions[0]+"-"+hash), Version: versions[0]},
	}, nil
}

// hashInputs returns a short hash of everything that decides what the compiled
// programs are: which they are, the module's files, the Go version and the
// platform.
func hashInputs(ctx context.Context, moduleDir string, programs map[string]string) (string, error) {
	env, err := goOutput(ctx, moduleDir, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", fmt.Errorf("reading the Go version: %w", err)
	}
	hash := sha256.New()
	fmt.Fprintln(hash, env, slices.Sorted(maps.Values(programs)))
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(moduleDir, name))
		if err != nil {
			return "", fmt.Errorf("reading the module of the control plane: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(data), data)
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// cached reports whether the result is there. A result appears by a rename,
// so it is complete if it exists.
func (t target) cached() bool {
	info, err := os.Stat(t.binaries.Dir)
	return err == nil && info.IsDir()
}

// build compiles the programs next to their final directory and renames the
// result into place. The caller holds the lock.
func (t target) build(ctx context.Context, progress io.Writer) error {
	partial := t.binaries.Dir + ".partial"
	// An interrupted build may have left one; nobody else writes to it now.
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("removing an interrupted build: %w", err)
	}
	defer os.RemoveAll(partial)
	if err := os.Mkdir(partial, 0o755); err != nil {
		return fmt.Errorf("creating the build directory: %w", err)
	}
	fmt.Fprintf(progress, "control plane: building %s from source\n"+
		"control plane: this takes about 5 minutes, once; the result is kept in %s\n", t.describe(), t.binaries.Dir)
	if err := t.compile(ctx, partial, progress); err != nil {
		return fmt.Errorf("building the control plane: %w", err)
	}
	if t.etcd != "" { // its main package is called server
		if err := os.Rename(filepath.Join(partial, "server"), filepath.Join(partial, "etcd")); err != nil {
			return fmt.Errorf("naming the etcd program: %w", err)
		}
	}
	if t.others != nil {
		if err := t.linkOthers(partial); err != nil {
			return err
		}
	}
	for name := range programs {
		if _, err := os.Stat(filepath.Join(partial, name)); err != nil {
			return fmt.Errorf("building the control plane: the go command left no %s: %w", name, err)
		}
	}
	if err := os.Rename(partial, t.binaries.Dir); err != nil {
		return fmt.Errorf("moving the control plane into the cache: %w", err)
	}
	return nil
}

// describe names what is built.
func (t target) describe() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(t.programs)), func(name string) bool { return name == "etcd" })
	said := strings.Join(names, ", ") + " " + t.binaries.Version
	if t.etcd != "" {
		said = "etcd " + t.etcd + " and " + said
	}
	return said
}

// linkOthers puts the programs that are not built beside those that are.
func (t target) linkOthers(dir string) error {
	for name := range programs {
		if t.programs[name] != "" {
			continue
		}
		if err := os.Symlink(t.others.Path(name), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("putting %s beside the servers: %w", name, err)
		}
	}
	return nil
}

// compile runs one go build for all programs: they share most packages.
func (t target) compile(ctx context.Context, outDir string, progress io.Writer) error {
	args := []string{"build", "-v", "-trimpath", "-ldflags", linkerFlags(t.binaries.Version),
		"-o", outDir + string(filepath.Separator)}
	packages := slices.Sorted(maps.Values(t.programs))
	meter := newMeter(progress)
	defer meter.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		// Without a total the meter is less telling, but the build is the same.
		if out, err := goOutput(ctx, t.moduleDir, append([]string{"list", "-deps"}, packages...)...); err == nil {
			meter.setTotal(strings.Count(out, "\n") + 1)
		}
	}()
	cmd := goCommand(ctx, t.moduleDir, append(args, packages...)...)
	cmd.Stdout = meter
	cmd.Stderr = meter
	err := runToEnd(cmd)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w\n%s", err, meter.tail())
	}
	return nil
}

// linkerFlags returns flags that give the programs the version a release
// build has; without them they report v0.0.0.
func linkerFlags(version string) string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X", pkg+".gitVersion="+version,
			"-X", pkg+".gitMajor="+major,
			"-X", pkg+".gitMinor="+minor,
			"-X", pkg+".gitTreeState=clean")
	}
	return strings.Join(flags, " ")
}

// goCommand returns a go command to run in dir. It ignores a go.work file,
// which would replace the versions of the module.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	return cmd
}

// goOutput returns what a go command prints, without the last line end. Its
// error includes what the command printed as an error.
func goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := goCommand(ctx, dir, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("running go %s: %w\n%s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
