// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	// Said is what was written to standard error.
	Said string
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
	launcher, err := os.Executable()
	if err != nil {
		return Sample{}, err
	}
	told, tells, err := os.Pipe()
	if err != nil {
		return Sample{}, err
	}
	defer func() { _ = told.Close() }()
	cmd := exec.CommandContext(ctx, launcher, append([]string{"launch"}, c.args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), c.env...), []*os.File{tells}
	var out, errOut bytes.Buffer
	if !c.silent {
		cmd.Stdout = &out
	}
	cmd.Stderr = &errOut
	err = errors.Join(cmd.Run(), tells.Close())
	var l launched
	if err == nil {
		err = json.NewDecoder(told).Decode(&l)
	}
	if err == nil && l.Code != 0 && !(c.finds && l.Code == 2) {
		err = fmt.Errorf("exit code %d", l.Code)
	}
	if err != nil {
		return l.Sample, fmt.Errorf("%s: %w\n%s", strings.Join(c.args, " "), err, errOut.String())
	}
	if l.Said = errOut.String(); c.silent {
		return l.Sample, nil
	}
	return l.Sample, json.Unmarshal(out.Bytes(), &l.Answer)
}

// launched is what launch tells.
type launched struct {
	Sample
	Code int
}

// launch runs a command, and writes to the third file what it took. A process begins with
// the most memory that its parent has ever had, which would be what is measured of a
// small one; this parent is small.
func launch(ctx context.Context, args []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	start := time.Now()
	err := cmd.Run()
	l := launched{Sample: Sample{Wall: time.Since(start)}}
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		return err
	}
	l.Code, l.CPU = cmd.ProcessState.ExitCode(), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		l.RSS = usage.Maxrss * 1024
	}
	const third = 3
	return json.NewEncoder(os.NewFile(third, "told")).Encode(l)
}

// ratio returns how the medians compare.
func ratio(a, b stat) float64 {
	if b.median == 0 {
		return 0
	}
	return a.median / b.median
}
