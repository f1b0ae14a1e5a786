// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/differential/live"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "the first seed")
	casesFlag = flag.Int("cases", 0, "how many seeds of the tests with most of them, others in proportion; 0 is a few")
	oneFlag   = flag.Bool("one", false, "show what happened in each case")
)

// most is the number of seeds of the tests with most of them.
const most = 24

// seeds calls do with each seed that a test has to try, on so many at a time.
func seeds(t *testing.T, few, workers int, do func(seed uint64)) {
	n := nightly.Of(max(1, few/4), few)
	if *casesFlag > 0 {
		n = max(1, *casesFlag*few/most)
	}
	t.Logf("seeds %d to %d", *seedFlag, *seedFlag+uint64(n)-1)
	next, all := make(chan uint64), sync.WaitGroup{}
	for range workers {
		all.Go(func() {
			for seed := range next {
				if !t.Failed() || *casesFlag > 0 {
					do(seed)
				}
			}
		})
	}
	for i := range n {
		next <- *seedFlag + uint64(i)
	}
	close(next)
	all.Wait()
}

// judge fails the test when the case of a seed has gone wrong, and tells the case then, or
// if all are to be told.
func judge(t *testing.T, seed uint64, err error, told any) {
	if err != nil {
		t.Errorf("seed %d: %v\n%s", seed, err, told)
	} else if *oneFlag {
		t.Logf("seed %d\n%s", seed, told)
	}
}

// built is the directory of the program under test, when it was built.
var built string

// plugin is the program under test, built once.
var plugin = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "kubectl-gc-faults-")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "kubectl-gc")
	out, err := exec.Command("go", "build", "-o", path, "github.com/kubectl-gc/kubectl-gc/cmd/kubectl-gc").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the plugin: %w\n%s", err, out)
	}
	return path, nil
})

// shared is a control plane without controllers for all tests that leave it as it is.
var shared struct {
	sync.Once
	cp    *controlplane.ControlPlane
	world *live.World
	err   error
}

// connect returns the shared control plane, and the world of cases on it. With go test
// -short it skips the test.
func connect(t *testing.T) (*controlplane.ControlPlane, *live.World) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which go test -short does not start")
	}
	shared.Do(func() {
		if shared.cp, shared.err = controlplane.Run(context.Background(), controlplane.Options{}, os.Stderr); shared.err == nil {
			shared.world, shared.err = live.Connect(context.Background(), shared.cp.Kubeconfig)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cp, shared.world
}

// atOnce is how many tests run at a time, on any number of processors, as most of what they do is to wait;
// with -parallel it is so many. First come, one by one, those that read the whole shared control plane, or count
// the goroutines of this process.
const atOnce = 12

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if shared.cp != nil {
		if err := shared.cp.Close(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// deadline is that of a command. hurried is a flag for one whose requests go wrong.
const (
	deadline = 4 * time.Minute
	hurried  = "--request-timeout=3s"
)

// result is what came of a command.
type result struct {
	line           string
	code           int
	stdout, stderr string
	took           time.Duration
}

// String shows what happened.
func (r *result) String() string {
	stdout := r.stdout
	if len(stdout) > longestShown && !*oneFlag {
		stdout = stdout[:longestShown] + "..."
	}
	return fmt.Sprintf("$ %s\n%s\nstderr:\n%s\nexit %d after %s\n", r.line, stdout, r.stderr, r.code, r.took.Round(time.Millisecond))
}

// longestShown is how much of a standard output is shown.
const longestShown = 2000

// command makes one of the plugin.
func command(ctx context.Context, kubeconfig string, args ...string) (*exec.Cmd, error) {
	path, err := plugin()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, append(args, "--kubeconfig="+kubeconfig)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG=", "GOTRACEBACK=all", "GOGC=") // its own
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }  // to see what it was doing
	cmd.WaitDelay = 10 * time.Second
	return cmd, nil
}

// run runs the plugin. An error is that it took too long, or could not be started.
func run(ctx context.Context, kubeconfig string, args ...string) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	cmd, err := command(ctx, kubeconfig, args...)
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err = cmd.Run()
	r := &result{strings.Join(args, " "), cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(began)}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return r, err
	}
	if ctx.Err() != nil {
		return r, fmt.Errorf("it hangs:\n%s", r)
	}
	return r, nil
}

// crashed matches what no command may print.
var crashed = regexp.MustCompile(`(?m)^[EWF]\d{4} \d\d:|panic:|goroutine \d|runtime error|DATA RACE|fatal error|%!|<nil>|nil pointer`)

// manners returns what is wrong with the way in which a command ended, whatever it did.
func (r *result) manners() error {
	switch {
	case crashed.MatchString(r.stdout + r.stderr):
		return errors.New("it crashed, or shows a log or what means nothing")
	case r.code < 0 || r.code > 3:
		return fmt.Errorf("exit code %d", r.code)
	case r.code == 1 && !strings.Contains(r.stderr, "error: "):
		return errors.New("exit code 1 without an error")
	case r.code == 3 && !strings.Contains(r.stderr, "error: "):
		return errors.New("exit code 3 without an error")
	case r.code == 2 && r.stdout+r.stderr == "":
		return errors.New("exit code 2 without a word")
	}
	return nil
}
