// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// compare is the short form of run: it measures whole commands on one cluster, and writes how
// their ratios to the bare download stand to those on a page that run has written. It says nothing
// of seconds, which are those of another machine, and no ratio is an error.
func compare(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	objects := flags.Int("objects", 50_000, "how many objects there are, about")
	rounds := flags.Int("rounds", 3, "how often each thing is measured")
	file := flags.String("page", "docs/benchmarks.md", "the page")
	if err := flags.Parse(args); err != nil {
		return err
	}
	page, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	b := &bench{}
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := b.build(ctx); err != nil {
		return err
	}
	cp, err := b.filled(ctx, *objects)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	contenders := slices.DeleteFunc(b.contenders(cp.Kubeconfig), func(c contender) bool { return c.name == metadataAll || c.name == inPages })
	results, server, err := b.onRested(ctx, cp, *rounds, contenders)
	if err != nil {
		return err
	}
	b.report.real(results, server)
	_, err = io.WriteString(out, ratios(measuredIn(b.report.whole), measuredOn(string(page)), *objects))
	return err
}

// measuredOn returns the rows about whole clusters of a page. Other sections have other tables.
func measuredOn(page string) []measured {
	_, section, _ := strings.Cut(page, "\n## A whole cluster\n")
	section, _, _ = strings.Cut(section, "\n## ")
	return measuredIn(strings.Split(section, "\n"))
}

// measured is a row of a page about whole clusters: what was measured of how many objects, and its
// ratios to the bare download in wall time and CPU, and its memory in MB.
type measured struct {
	objects         int
	name            string
	wall, cpu, peak float64
}

// measuredIn returns the rows of a table about whole clusters.
func measuredIn(lines []string) []measured {
	const columns = 8
	var rows []measured
	for _, line := range lines {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != columns {
			continue
		}
		m := measured{name: cells[1]}
		var err error
		if m.objects, err = strconv.Atoi(cells[0]); err != nil {
			continue
		}
		for i, into := range map[int]*float64{3: &m.wall, 5: &m.cpu, 6: &m.peak} {
			first, _, _ := strings.Cut(cells[i], " ")
			*into, err = strconv.ParseFloat(first, 64)
			if err != nil {
				break
			}
		}
		if err == nil {
			rows = append(rows, m)
		}
	}
	return rows
}

// slower is how many times as much as on the page something takes that is worth a look.
const slower = 1.5

// ratios is a table of how what was measured stands to what is on the page about the cluster whose
// size is next to the one that was asked for.
func ratios(now, page []measured, objects int) string {
	size := 0
	for _, m := range page {
		if size == 0 || max(m.objects, objects)-min(m.objects, objects) < max(size, objects)-min(size, objects) {
			size = m.objects
		}
	}
	table := "| | wall, to the bare download | on the page | CPU, to the bare download | on the page | peak RSS MB | on the page | |\n|---|---:|---:|---:|---:|---:|---:|---|\n"
	for _, m := range now {
		i := slices.IndexFunc(page, func(p measured) bool { return p.objects == size && p.name == m.name })
		if i < 0 {
			table += fmt.Sprintf("| %s | %.2f | | %.2f | | %.0f | | not on the page |\n", m.name, m.wall, m.cpu, m.peak)
			continue
		}
		was, note := page[i], ""
		if most := max(m.wall/was.wall, m.cpu/was.cpu, m.peak/was.peak); most >= slower {
			note = fmt.Sprintf("%.1f times as much", most)
		}
		table += fmt.Sprintf("| %s | %.2f | %.2f | %.2f | %.2f | %.0f | %.0f | %s |\n", m.name, m.wall, was.wall, m.cpu, was.cpu, m.peak, was.peak, note)
	}
	return table
}
