// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Sample is what one process took.
type Sample struct {
	Wall, CPU time.Duration
	// RSS is the most memory that was resident, in bytes.
	RSS    int64
	Answer Answer
}

// Samples are several of them.
type Samples []Sample

// stat is the median of a property with its extremes.
type stat struct{ median, min, max float64 }

func (s Samples) stat(of func(Sample) float64) stat {
	values := make([]float64, len(s))
	for i := range s {
		values[i] = of(s[i])
	}
	return newStat(values)
}

// newStat sorts the values.
func newStat(values []float64) stat {
	slices.Sort(values)
	if len(values) == 0 {
		return stat{}
	}
	middle := len(values) / 2
	median := values[middle]
	if len(values)%2 == 0 {
		median = (values[middle-1] + values[middle]) / 2
	}
	return stat{median, values[0], values[len(values)-1]}
}

func (s Samples) wall() stat { return s.stat(func(s Sample) float64 { return s.Wall.Seconds() }) }
func (s Samples) cpu() stat  { return s.stat(func(s Sample) float64 { return s.CPU.Seconds() }) }
func (s Samples) rss() stat  { return s.stat(func(s Sample) float64 { return float64(s.RSS) / 1e6 }) }

// String writes the median with the extremes in parentheses.
func (s stat) String() string {
	return fmt.Sprintf("%s (%s–%s)", number(s.median), number(s.min), number(s.max))
}

// number writes three digits.
func number(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// contender is a command to measure.
type contender struct {
	name string
	args []string
	env  []string
	// silent: it prints no Answer.
	silent bool
	// finds: that it ends with exit code 2, because it has found something, is no failure.
	finds bool
}

// measure runs the contenders in turn, so often, after one run each that does
// not count.
func measure(ctx context.Context, rounds int, contenders ...contender) (map[string]Samples, error) {
	results := map[string]Samples{}
	for round := range rounds + 1 {
		for _, c := range contenders {
			sample, err := c.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			if round > 0 {
				results[c.name] = append(results[c.name], sample)
			}
		}
	}
	return results, nil
}

// run runs the command once.
func (c *contender) run(ctx context.Context) (Sample, error) {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Env = append(os.Environ(), c.env...)
	var out, errOut bytes.Buffer
	if !c.silent {
		cmd.Stdout = &out
	}
	cmd.Stderr = &errOut
	start := time.Now()
	err := cmd.Run()
	s := Sample{Wall: time.Since(start)}
	if err != nil && !(c.finds && cmd.ProcessState.ExitCode() == 2) {
		return s, fmt.Errorf("%s: %w\n%s", strings.Join(c.args, " "), err, errOut.String())
	}
	s.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.RSS = usage.Maxrss * 1024
	}
	if c.silent {
		return s, nil
	}
	return s, json.Unmarshal(out.Bytes(), &s.Answer)
}

// ratio returns how the medians compare.
func ratio(a, b stat) float64 {
	if b.median == 0 {
		return 0
	}
	return a.median / b.median
}
