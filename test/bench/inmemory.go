// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// goBenchmarks are the Go benchmarks that are on the page, by package. The rest
// is for benchstat.
var goBenchmarks = []struct{ pkg, pattern string }{
	{"./internal/cluster/wire", "Decode"},
	{"./pkg/graph", "Build|(New|Cycles|Forest)$/tree/100000"},
	{"./internal/check", "Check/wrong=.*/1000000$"},
	{"./pkg/simulator", "Delete"},
	{"./internal/preview", "Preview/.*/100000$"},
	{"./internal/render", "Render/.*/10000$"},
	{"./test/bench", "Load/1000000$"},
}

// inMemory runs Go benchmarks.
func (b *bench) inMemory(ctx context.Context) error {
	if !b.goBenchmarks {
		return nil
	}
	for _, g := range goBenchmarks {
		progress("the benchmarks of %s", g.pkg)
		cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-bench="+g.pattern, "-benchmem", "-benchtime=3x",
			"-count="+strconv.Itoa(b.rounds), "-timeout=1h", g.pkg)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("the benchmarks of %s: %w\n%s", g.pkg, err, out)
		}
		results := parseBenchmarks(out)
		if len(results) == 0 {
			return fmt.Errorf("%s has no benchmark %s", g.pkg, g.pattern)
		}
		b.report.inMemory(results)
	}
	return nil
}

// result is what the runs of one Go benchmark measured: values by unit.
type result struct {
	name   string
	values map[string][]float64
}

// parseBenchmarks reads the output of go test -bench: a name, a number of
// iterations, then values and units.
func parseBenchmarks(out []byte) []*result {
	var results []*result
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(f[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i] // the number of processors
		}
		i := slices.IndexFunc(results, func(r *result) bool { return r.name == name })
		if i < 0 {
			i = len(results)
			results = append(results, &result{name, map[string][]float64{}})
		}
		for k := 2; k+1 < len(f); k += 2 {
			if value, err := strconv.ParseFloat(f[k], 64); err == nil {
				results[i].values[f[k+1]] = append(results[i].values[f[k+1]], value)
			}
		}
	}
	return results
}

func (r *report) inMemory(results []*result) {
	if r.memory == nil {
		r.memory = []string{
			"| benchmark | ms | MB allocated | allocations | heap bytes an object | objects a second |", "|---|---|---:|---:|---:|---:|",
		}
	}
	for _, b := range results {
		median := func(unit string) string {
			if len(b.values[unit]) == 0 {
				return ""
			}
			return number(newStat(b.values[unit]).median)
		}
		ms := newStat(b.values["ns/op"])
		ms = stat{ms.median / 1e6, ms.min / 1e6, ms.max / 1e6}
		r.memory = append(r.memory, fmt.Sprintf("| %s | %s | %s | %.0f | %s | %s |", b.name, ms,
			number(newStat(b.values["B/op"]).median/1e6), newStat(b.values["allocs/op"]).median, median("heap-bytes/object"), median("objects/s")))
	}
}
