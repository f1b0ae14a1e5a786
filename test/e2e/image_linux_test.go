// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/debian"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
	"github.com/kubectl-gc/kubectl-gc/test/node"
)

// The image that the test builds.
const (
	testImage   = "test.local/kubectl-gc:v9.8.7"
	testVersion = "v9.8.7"
)

// TestImage builds the container image as CONTRIBUTING.md says, looks at what is
// in it, and runs a Job of deploy with it on a real node.
func TestImage(t *testing.T) {
	nightly.Only(t, "the image is built")
	parallel(t)
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	archive := buildImage(t)
	t.Run("content", func(t *testing.T) {
		config, layers := readImage(t, archive)
		checkConfig(t, config)
		checkProgram(t, layers)
	})
	t.Run("job", func(t *testing.T) {
		controlplane.Needs(t, "1.36", "the kubelet is of the newest version, and none works with an API server that is older")
		runJob(t, archive)
	})
}

// builder is a shell script that runs buildah with files of its own only: in the
// directory $0, and in memory where it insists on a place.
const builder = `#!/bin/sh
dir=$(dirname "$0")
export CONTAINERS_STORAGE_CONF="$dir/storage.conf" CONTAINERS_REGISTRIES_CONF="$dir/registries.conf" BUILDAH_ISOLATION=chroot
exec unshare --mount sh -c 'mount -t tmpfs tmpfs /var/lib && exec "$@"' sh \
	buildah --signature-policy="$dir/policy.json" "$@"
`

// buildImage makes the image with "make image", and returns an archive of it in
// the format of docker save.
func buildImage(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("building an image needs root")
	}
	programs, err := debian.Find("buildah", []string{"buildah"}, []string{"buildah"})
	if err != nil {
		t.Skipf("an image cannot be built here: %v", err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"builder":         builder,
		"registries.conf": "",
		"policy.json":     `{"default": [{"type": "insecureAcceptAnything"}]}`,
		"storage.conf":    fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n", filepath.Join(dir, "graph"), filepath.Join(dir, "run")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil { //nolint:gosec // one of them is run
			t.Fatal(err)
		}
	}
	archive, tool := filepath.Join(dir, "image.tar"), filepath.Join(dir, "builder")
	for _, args := range [][]string{
		{"make", "-C", "../..", "image", "CONTAINER_TOOL=" + tool, "IMAGE=" + testImage, "VERSION=" + testVersion, "IMAGE_DIR=" + filepath.Join(dir, "context")},
		{tool, "push", testImage, "docker-archive:" + archive + ":" + testImage},
	} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Env = programs.Environ()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return archive
}

// imageConfig is what an image says of itself, as far as it matters here.
type imageConfig struct {
	Architecture string
	OS           string
	Config       struct {
		User         string
		Entrypoint   []string
		Cmd          []string
		Volumes      map[string]struct{}
		ExposedPorts map[string]struct{}
		WorkingDir   string
		Labels       map[string]string
	}
}

// readImage returns the image's configuration and its layers.
func readImage(t *testing.T, archive string) (imageConfig, [][]byte) {
	t.Helper()
	files := map[string][]byte{}
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	eachFile(t, data, func(header *tar.Header, content []byte) { files[header.Name] = content })
	var manifest []struct {
		Config string
		Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("the archive's manifest: %v\n%s", err, files["manifest.json"])
	}
	var config imageConfig
	if err := json.Unmarshal(files[manifest[0].Config], &config); err != nil {
		t.Fatalf("the image's configuration: %v", err)
	}
	var layers [][]byte
	for _, name := range manifest[0].Layers {
		layers = append(layers, files[name])
	}
	return config, layers
}

func eachFile(t *testing.T, archive []byte, do func(*tar.Header, []byte)) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		do(header, content)
	}
}

func checkConfig(t *testing.T, got imageConfig) {
	t.Helper()
	want := imageConfig{Architecture: runtime.GOARCH, OS: "linux"}
	want.Config.User = "65532:65532"
	want.Config.Entrypoint = []string{"/kubectl-gc"}
	want.Config.Labels = got.Config.Labels // some are the builder's
	if got.Config.WorkingDir == "/" {
		got.Config.WorkingDir = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the image's configuration (-want +got):\n%s", diff)
	}
	if version := got.Config.Labels["org.opencontainers.image.version"]; version != testVersion {
		t.Errorf("the image is labelled as version %q, want %q", version, testVersion)
	}
}

// checkProgram unpacks the layers, which must hold no more than they should, and
// runs the program with nothing else to see and as the image's user.
func checkProgram(t *testing.T, layers [][]byte) {
	t.Helper()
	root, got := t.TempDir(), map[string]string{}
	for _, layer := range layers {
		eachFile(t, layer, func(header *tar.Header, content []byte) {
			got[header.Name] = fmt.Sprintf("%c %04o %d:%d", header.Typeflag, header.FileInfo().Mode().Perm(), header.Uid, header.Gid)
			if header.Typeflag != tar.TypeReg {
				return
			}
			if err := os.WriteFile(filepath.Join(root, filepath.Base(header.Name)), content, header.FileInfo().Mode()); err != nil {
				t.Fatal(err)
			}
		})
	}
	want := map[string]string{"kubectl-gc": "0 0755 0:0", "LICENSE": "0 0644 0:0", "THIRD_PARTY_LICENSES.md": "0 0644 0:0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the image's files (-want +got):\n%s", diff)
	}
	cmd := exec.CommandContext(t.Context(), "/kubectl-gc", "version", "--client", "-o", "json")
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	out, err := cmd.CombinedOutput()
	var version struct{ ClientVersion struct{ GitVersion string } }
	if err != nil || json.Unmarshal(out, &version) != nil || version.ClientVersion.GitVersion != testVersion {
		t.Errorf("version: %v, want %s\n%s", err, testVersion, out)
	}
}

// runJob runs the Job of deploy/collect.yaml in a cluster whose garbage collector
// does not run. The pod has the node's network, because a test node gives a pod
// none, and is told where the API server is, because nothing routes to Services.
func runJob(t *testing.T, archive string) {
	if missing := node.Missing(); missing != "" {
		t.Skip(missing)
	}
	cp := controlplane.Start(t, controlplane.Options{
		Controllers:   "*,-garbage-collector-controller",
		APIServerArgs: []string{"--disable-admission-plugins="}, // ServiceAccount gives the pod its token
	})
	p := newPods(t, cp, "shop")
	p.node.Import(archive)
	documents := strings.Split(read(t, "deploy/collect.yaml"), "\n---\n")
	var job batchv1.Job
	if err := yaml.UnmarshalStrict([]byte(documents[len(documents)-1]), &job); err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(cp.Server)
	if err != nil {
		t.Fatal(err)
	}
	spec := &job.Spec.Template.Spec
	spec.NodeName, spec.HostNetwork = p.node.Name, true
	container := &spec.Containers[0]
	container.Image, container.ImagePullPolicy = testImage, corev1.PullNever
	container.Env = []corev1.EnvVar{
		{Name: "KUBERNETES_SERVICE_HOST", Value: server.Hostname()}, {Name: "KUBERNETES_SERVICE_PORT", Value: server.Port()},
	}
	text, err := yaml.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	documents[len(documents)-1] = string(text)
	cp.Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: lost, namespace: shop, ownerReferences: ["+
		"{apiVersion: apps/v1, kind: Deployment, name: web, uid: 11111111-1111-1111-1111-111111111111}]}}")
	cp.Apply(t, strings.Join(documents, "\n---\n"))

	const ended = ".items[0].status.containerStatuses[0].state.terminated.exitCode"
	p.await("the end of the pod", func() bool { return p.field("pods", "--selector=job-name=collect", ended) != "" })
	log := p.node.Logs("shop", p.field("pods", "--selector=job-name=collect", ".items[0].metadata.name"), container.Name)
	if code := p.field("pods", "--selector=job-name=collect", ended); code != "0" || !strings.Contains(log, "\ndeleted: 1 ConfigMap\n") {
		t.Errorf("exit code %s, want 0, and a log with the deletion of a ConfigMap:\n%s", code, log)
	}
	if left := p.get("configmap", "lost", "name"); left != "" {
		t.Errorf("configmap %s is still there", left)
	}
	p.await("the end of the Job", func() bool { return p.field("job", "collect", ".status.succeeded") == "1" })
}
