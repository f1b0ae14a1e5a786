// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMain lets the test be the program, which starts itself.
func TestMain(m *testing.M) {
	if os.Getenv("BENCH_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func newBench(t *testing.T) *bench {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("BENCH_MAIN", "yes")
	return &bench{dir: t.TempDir(), self: self, rounds: 2}
}

// All clients read the same from a made-up cluster.
func TestClients(t *testing.T) {
	b := newBench(t)
	kubeconfig, stop, err := b.serve(t.Context(), 3000)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	answers := map[string]Answer{}
	for _, c := range b.contenders(kubeconfig) {
		if c.silent {
			continue // is the plugin
		}
		s, err := c.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Wall <= 0 || s.CPU <= 0 || s.RSS <= 0 {
			t.Errorf("%s: measured %+v", c.name, s)
		}
		answers[c.name] = s.Answer
	}
	if answers[ourGraph].Objects != 3003 || answers[metadataAll].Objects != 3003 || answers[bare].Bytes < 3003*1500 {
		t.Errorf("got %+v", answers)
	}
}

// The page has a row for everything that was measured.
func TestReport(t *testing.T) {
	b := newBench(t)
	b.canned = []int{100, 1000}
	b.report.describe(t.Context(), []string{"-rounds", "2"})
	if err := b.madeUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := b.report.String()
	for _, want := range []string{"| 101 | graph | ", "| 101 | bare download | ", "| 1001 | graph | ", "run -rounds 2`", " cores, "} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "## A cascade") {
		t.Error("the page has a part for what was not measured")
	}
}

func TestProfile(t *testing.T) {
	t.Setenv("BENCH_MAIN", "yes")
	dir := t.TempDir()
	if err := dispatch(t.Context(), []string{"profile", "-dir", dir, "-objects", "100"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cpu.pprof", "mem.pprof"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each command of the page about snapshots is run and has a line.
func TestOffline(t *testing.T) {
	t.Setenv("BENCH_MAIN", "yes")
	plugin := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(plugin, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := offline(t.Context(), []string{"-objects", "20", "-rounds", "1", "-plugin", plugin}, &out); err != nil {
		t.Fatal(err)
	}
	const figures = `( \| [\d.]+ \([\d.]+–[\d.]+\)){3} \|\n` // whatever they are
	for _, want := range []string{"\n10 objects\n", "\n20 objects\n", "\\| `snapshot -o FILE`" + figures, "\\| `check -A`" + figures, "\\| `check -A --from FILE`" + figures} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"what"}, {"run", "-clusters", "many"}, {"graph", "-kubeconfig", "/nowhere"}} {
		if err := dispatch(t.Context(), args); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
}

func TestStat(t *testing.T) {
	for _, test := range []struct {
		values []int64
		want   string
	}{
		{nil, "0.00 (0.00–0.00)"},
		{[]int64{3e6, 1e6, 200e6}, "3.00 (1.00–200)"},
		{[]int64{40e6, 2e6}, "21.0 (2.00–40.0)"},
	} {
		var s Samples
		for _, v := range test.values {
			s = append(s, Sample{RSS: v})
		}
		if got := s.rss().String(); got != test.want {
			t.Errorf("%v: got %s, want %s", test.values, got, test.want)
		}
	}
}

func TestMetaOf(t *testing.T) {
	field := func(b []byte, n protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), content)
	}
	want := metav1.ListMeta{ResourceVersion: "42", Continue: "the token"}
	meta, err := want.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	list := field(field(nil, 1, meta), 2, []byte("item"))
	body := append([]byte("k8s\x00"), field(field(nil, 1, []byte("type")), 2, list)...)
	if got := metaOf(body); got != want {
		t.Errorf("got %+v", got)
	}
	for n := range body {
		metaOf(body[:n]) // must not panic
	}
	if got := metaOf([]byte("k8s\x00")); got != (metav1.ListMeta{}) {
		t.Errorf("of nothing: got %+v", got)
	}
}

func TestParseBenchmarks(t *testing.T) {
	var r report
	r.inMemory(parseBenchmarks([]byte(`goos: linux
BenchmarkBuild/6000-2   3   2000000 ns/op   120 heap-bytes/object   4000000 B/op   10 allocs/op
BenchmarkBuild/6000-2   3   1000000 ns/op   121 heap-bytes/object   5000000 B/op   11 allocs/op
BenchmarkBuild/6000-2   3   3000000 ns/op   119 heap-bytes/object   6000000 B/op   12 allocs/op
BenchmarkDecode-2       3   1000000 ns/op   500 MB/s                0 B/op         0 allocs/op
BenchmarkLoad/10-2      3   1000000 ns/op   700000 objects/s        0 B/op         0 allocs/op
PASS`)))
	want := []string{
		"| Build/6000 | 2.00 (1.00–3.00) | 5.00 | 11 | 120 |  |",
		"| Decode | 1.00 (1.00–1.00) | 0.00 | 0 |  |  |",
		"| Load/10 | 1.00 (1.00–1.00) | 0.00 | 0 |  | 700000 |",
	}
	if diff := cmp.Diff(want, r.memory[2:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseRequests(t *testing.T) {
	before := parseRequests([]byte(`# HELP apiserver_request_total counts
apiserver_request_total{code="200",resource="configmaps",scope="resource",verb="GET"} 5
apiserver_request_total{code="200",resource="configmaps",scope="resource",verb="DELETE"} 1e+06`))
	after := parseRequests([]byte(`apiserver_request_total{code="200",resource="configmaps",scope="resource",verb="GET"} 5
apiserver_request_total{code="404",resource="configmaps",scope="resource",verb="GET"} 2
apiserver_request_total{code="200",resource="secrets",scope="resource",verb="PATCH"} 7
apiserver_request_total{code="200",resource="configmaps",scope="namespace",verb="LIST"} 9
apiserver_request_total{code="200",resource="configmaps",scope="resource",verb="DELETE"} 1.000003e+06`))
	if got, want := after.since(before), "3 DELETE, 2 GET"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
