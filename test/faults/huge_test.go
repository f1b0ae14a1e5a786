// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/test/nightly"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// Endless answers with a beginning, and then with one piece again and again for as long as
// somebody reads.
func Endless(name, contentType string, begin, piece []byte) Fault {
	return Fault{Name: name, before: func(_ *Proxy, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", contentType)
		_, err := w.Write(begin)
		for many := bytes.Repeat(piece, 1+(1<<16)/len(piece)); err == nil; {
			_, err = w.Write(many)
		}
		return true
	}}
}

// inProtobuf returns the beginning of a list in protobuf, of 2^60 bytes.
func inProtobuf(t *testing.T) []byte {
	t.Helper()
	// The message ends with its content: what its length is said to be is replaced.
	envelope := runtime.Unknown{
		TypeMeta: runtime.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ContentType: protobufType,
	}
	data, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	length := []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10}
	return append(append([]byte("k8s\x00"), data...), append([]byte{2<<3 | 2}, length...)...)
}

// itemOf is an object in a list in protobuf.
func itemOf(t *testing.T, o *metav1.PartialObjectMetadata) []byte {
	t.Helper()
	data, err := (&metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{*o}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	_, item, found := bytes.Cut(data, []byte{2<<3 | 2}) // after the metadata of the list
	if !found {
		t.Fatal("a list without items")
	}
	return append([]byte{2<<3 | 2}, item...)
}

// listOf is a list in protobuf of one object.
func listOf(t *testing.T, o *metav1.PartialObjectMetadata) []byte {
	t.Helper()
	raw, err := (&metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []metav1.PartialObjectMetadata{*o}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, Raw: raw}
	data, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), data...)
}

// answered answers with this.
func answered(name, contentType string, data []byte) Fault {
	return Fault{Name: name, before: func(_ *Proxy, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(data)
		return true
	}}
}

// heldByMany is an object in deletion with so many finalizers.
func heldByMany(n int) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "many", UID: "many", ResourceVersion: "1", DeletionTimestamp: &metav1.Time{Time: time.Now().Add(-time.Hour)}},
	}
	for i := range n {
		o.Finalizers = append(o.Finalizers, fmt.Sprintf("example.com/f%d", i))
	}
	return o
}

// hugeCase is a server that answers too much, or too slowly.
type hugeCase struct {
	name  string
	rules []Rule
	lines []string
	// want matches what standard error says; nil for nothing.
	want *regexp.Regexp
	// most is the memory that a command may take, in megabytes, and within the time.
	most   int64
	within time.Duration
	// long: only with -cases. waits: only nightly.
	long, waits bool
}

func hugeCases(t *testing.T) []hugeCase {
	t.Helper()
	const (
		lists   = `^GET /api/v1/(namespaces/default/)?configmaps\?|^GET /api/v1/(namespaces/default/)?configmaps$`
		objects = `^GET /api/v1/namespaces/default/configmaps/`
	)
	on := func(uri string, fault Fault) Rule { return Rule{URI: regexp.MustCompile(uri), Fault: fault} }
	begin := inProtobuf(t)
	small := itemOf(t, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one", UID: "0123", ResourceVersion: "1"}})
	finalizers := 100_000 // etcd has room for some tens of thousands
	if *casesFlag > 0 {
		finalizers *= 10
	}
	many := heldByMany(finalizers)
	whole, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": many.ObjectMeta})
	if err != nil {
		t.Fatal(err)
	}
	reading := []string{"tree -A -o name", "check -A --settle=0s", "collect -A --dry-run=client"}
	return []hugeCase{
		{name: "types without end", rules: []Rule{on(`^GET /apis`, Endless("types", jsonType, []byte(`{"kind":"`), []byte("x")))},
			lines: reading[:1], want: regexp.MustCompile(`longer than 64 MB`), most: 700, within: time.Minute},
		{name: "a name without end", rules: []Rule{on(lists, Endless("name", protobufType, append(begin, 2<<3|2, 0x80, 0x80, 0x80, 0x80, 0x08, 1<<3|2, 0x80, 0x80, 0x80, 0x80, 0x07, 1<<3|2, 0x80, 0x80, 0x80, 0x80, 0x06), []byte("x")))},
			lines: reading, want: regexp.MustCompile(`configmaps`), most: 700, within: time.Minute},
		{name: "a list in JSON without end", rules: []Rule{on(lists, Endless("list", jsonType, []byte(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"x":"`), []byte("x")))},
			lines: reading, want: regexp.MustCompile(`longer than 64 MB`), most: 700, within: time.Minute},
		{name: "an object without end", rules: []Rule{on(objects, Endless("object", jsonType, []byte(`{"kind":"`), []byte("x")))},
			lines: []string{"tree configmap/x", "explain-stuck configmap/x", "delete configmap/x --yes"}, want: regexp.MustCompile(`longer than 64 MB`), most: 700, within: time.Minute},
		{name: "a byte a second", rules: []Rule{on(lists, Drip(time.Second))},
			lines: []string{"tree -A -o name --request-timeout=3s", "check -A --settle=0s --request-timeout=3s", "collect -A --dry-run=client --request-timeout=3s"},
			want:  regexp.MustCompile(`could not read configmaps: Timeout`), most: 400, within: time.Minute, waits: true},
		{name: "silence", rules: []Rule{{URI: regexp.MustCompile(`^GET /apis?/.*[^/]$`), Fault: Hang()}},
			lines: []string{"tree -A -o name --request-timeout=3s", "check -A --settle=0s --request-timeout=3s", "explain-stuck -A --request-timeout=3s", "collect -A --yes --request-timeout=3s"},
			want:  regexp.MustCompile(`Timeout|could not be read`), most: 400, within: time.Minute, waits: true},
		{name: "very many finalizers", rules: []Rule{
			on(lists, answered("many", protobufType, listOf(t, many))), on(objects, answered("many", jsonType, whole)),
		}, lines: append(reading, "explain-stuck -n default configmap/many --probe=false", "delete -n default configmap/many --dry-run=client"), most: 2000, within: 3 * time.Minute},
		{name: "a list without end", rules: []Rule{on(lists, Endless("list", protobufType, begin, small))},
			lines: reading[:1], want: regexp.MustCompile(`the list does not end`), most: 3000, within: 3 * time.Minute, long: true},
	}
}

// TestHugeAnswers: no answer fills the memory, or lasts, and what is said of it is clear.
func TestHugeAnswers(t *testing.T) {
	t.Parallel()
	_, world := connect(t)
	for _, c := range hugeCases(t) {
		t.Run(c.name, func(t *testing.T) {
			if c.long && *casesFlag == 0 {
				t.Skip("with -cases")
			}
			if c.waits {
				nightly.Only(t, "it waits for every list")
			}
			t.Parallel() // most of them wait
			proxy, err := Start(world.Config, Options{}, c.rules...)
			if err != nil {
				t.Fatal(err)
			}
			defer proxy.Close()
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			if err := proxy.WriteKubeconfig(kubeconfig); err != nil {
				t.Fatal(err)
			}
			for _, line := range c.lines {
				ctx, cancel := context.WithTimeout(t.Context(), c.within)
				r, megabytes, err := weighed(ctx, kubeconfig, strings.Fields(line)...)
				cancel()
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %s, %d MB, exit %d", line, r.took.Round(10*time.Millisecond), megabytes, r.code)
				if err := r.manners(); err != nil {
					t.Errorf("%v\n%s", err, r)
				}
				if c.want != nil && !c.want.MatchString(r.stderr) {
					t.Errorf("standard error does not match %s\n%s", c.want, r)
				}
				if megabytes > c.most {
					t.Errorf("%s takes %d MB", line, megabytes)
				}
				if len(r.stderr) > 100_000 {
					t.Errorf("%s: %d bytes of standard error", line, len(r.stderr))
				}
			}
		})
	}
}

// weighed is run, with the greatest memory of the command in megabytes, which is no less
// than that of this process when it began.
func weighed(ctx context.Context, kubeconfig string, args ...string) (*result, int64, error) {
	cmd, err := command(ctx, kubeconfig, args...)
	if err != nil {
		return nil, 0, err
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err = cmd.Run()
	r := &result{strings.Join(args, " "), cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(began)}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return r, 0, err
	}
	if ctx.Err() != nil {
		return r, 0, fmt.Errorf("it takes too long:\n%s", r)
	}
	usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return r, usage.Maxrss >> 10, nil
}
