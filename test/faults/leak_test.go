// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-gc/kubectl-gc/internal/cmd"
)

// TestGoroutinesEnd runs every command in this process, some until they are interrupted,
// and looks whether more goroutines are left after some runs than after the first: a
// command that looks again and again, as with --watch, must not grow.
func TestGoroutinesEnd(t *testing.T) {
	w, err := newReadWorld(t)
	if err != nil {
		t.Fatal(err)
	}
	in := func(args ...string) []string { return append(args, "-n", w.namespace) }
	commands := append(slices.Clone(w.commands), in("tree", "-w"), in("explain-stuck", "--watch"),
		in("delete", "deployment/other", "--yes", "--cascade=foreground"), in("collect", "--yes", "--timeout=1s"))
	for _, words := range commands {
		if slices.Contains(words, "FILE") {
			continue // the same as tree -A
		}
		const warm, more = 1, 3
		for range warm {
			inProcess(t, w.kubeconfig, words)
		}
		before := goroutines()
		for range more {
			inProcess(t, w.kubeconfig, words)
		}
		if err := shrinksTo(before); err != nil {
			t.Errorf("%q: %v", words, err)
		}
	}
}

// inProcess runs a command, and interrupts it if it is still there then, or some time after its first word.
func inProcess(t *testing.T, kubeconfig string, words []string) {
	t.Helper()
	const patience = 1500 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var errOut bytes.Buffer
	out := &firstWord{then: func() { time.AfterFunc(watched, cancel) }}
	argv := slices.Concat([]string{"kubectl-gc"}, words, []string{"--kubeconfig=" + kubeconfig})
	if code := cmd.Run(ctx, argv, genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: &errOut}); code == 1 && !slices.Contains(words, "delete") {
		t.Errorf("%q: exit code 1: %s", words, &errOut)
	}
}

// watched is for how long a command that watches does so.
const watched = 300 * time.Millisecond

// firstWord is a standard output that nobody reads, and does something once when there is some.
type firstWord struct {
	once sync.Once
	then func()
}

// Write implements io.Writer.
func (w *firstWord) Write(p []byte) (int, error) {
	w.once.Do(w.then)
	return len(p), nil
}

// goroutines counts the goroutines by what has started them. Those of a connection that is
// kept for the next request are not counted.
func goroutines() map[string]int {
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	counts := map[string]int{}
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		_, creator, _ := strings.Cut(stack, "created by ")
		creator, _, _ = strings.Cut(creator, " in goroutine")
		if !strings.HasPrefix(creator, "net/http.") && !strings.HasPrefix(creator, "golang.org/x/net/http2.") && !strings.HasPrefix(creator, "net/http/") {
			counts[creator]++
		}
	}
	return counts
}

// shrinksTo waits until there are no more goroutines than before.
func shrinksTo(before map[string]int) error {
	const pause, patience = 100 * time.Millisecond, 10 * time.Second
	for began := time.Now(); ; time.Sleep(pause) {
		var more []string
		for creator, n := range goroutines() {
			if n > before[creator] {
				more = append(more, fmt.Sprintf("%d by %s, %d before", n, creator, before[creator]))
			}
		}
		if len(more) == 0 {
			return nil
		}
		if time.Since(began) > patience {
			slices.Sort(more)
			return fmt.Errorf("goroutines are left: %s", strings.Join(more, "; "))
		}
	}
}
