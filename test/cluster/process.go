// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// readyTimeout bounds the start of one component on a busy machine.
	readyTimeout = 2 * time.Minute
	// readyInterval is the pause between two readiness checks.
	readyInterval = 50 * time.Millisecond
	// stopTimeout is how long a component may take to end after SIGTERM.
	stopTimeout = 5 * time.Second
	// logTail is how much of a log an error quotes.
	logTail = 4 << 10
)

// errPortTaken says that a component could not listen on its port.
var errPortTaken = errors.New("the port is taken")

// A process is a component that runs as a child process. It can be started
// again after it ended. Its methods may be called concurrently.
type process struct {
	name string
	path string
	args []string
	log  string // file that gets what the process prints
	// check returns nil when the process answers requests.
	check func(context.Context) error
	// exited is called when the process ends though nobody asked.
	exited func(name string, err error)

	mu    sync.Mutex
	child *child
}

// start starts the process and returns when it is ready. If it does not become
// ready it is killed, and the error has the end of its log.
func (p *process) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child.alive() {
		return fmt.Errorf("starting %s: it is running", p.name)
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.name, err)
	}
	defer log.Close() // the child has its own descriptor
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.name, err)
	}
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = log, log
	c, err := launch(cmd)
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	if err := p.waitReady(ctx, c); err != nil {
		c.end(syscall.SIGKILL)
		return p.startError(err, begin)
	}
	p.child = c
	go p.watch(c)
	return nil
}

// waitReady returns nil when the check succeeds while the child lives.
func (p *process) waitReady(ctx context.Context, c *child) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	last := errors.New("not checked yet")
	for {
		select {
		case <-c.done:
			return fmt.Errorf("it ended: %w", c.result())
		case <-ctx.Done():
			return fmt.Errorf("waiting until it is ready: %w; last check: %v", ctx.Err(), last)
		case <-time.After(readyInterval):
		}
		if last = p.check(ctx); last == nil {
			return nil
		}
	}
}

// startError explains a failed start with what the process has logged since
// offset begin of its log. A start that the caller gave up needs no more words.
func (p *process) startError(cause error, begin int64) error {
	if errors.Is(cause, context.Canceled) {
		return fmt.Errorf("starting %s: %w", p.name, cause)
	}
	tail := readTail(p.log, begin)
	if strings.Contains(tail, "address already in use") {
		cause = fmt.Errorf("%w: %w", errPortTaken, cause)
	}
	return fmt.Errorf("starting %s: %w\nend of its log:\n%s", p.name, cause, tail)
}

// watch reports an end that nobody asked for.
func (p *process) watch(c *child) {
	<-c.done
	if !c.asked.Load() {
		p.exited(p.name, c.result())
	}
}

// stop ends the process with SIGTERM, and with SIGKILL if it does not obey.
// It returns when the process is gone.
func (p *process) stop() error { return p.end(syscall.SIGTERM) }

// kill ends the process with SIGKILL. It returns when the process is gone.
func (p *process) kill() error { return p.end(syscall.SIGKILL) }

func (p *process) end(signal syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.child.alive() {
		return fmt.Errorf("stopping %s: it is not running", p.name)
	}
	p.child.end(signal)
	return nil
}

// pid returns the process id, or 0 if the process is not running.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.child.alive() {
		return 0
	}
	return p.child.cmd.Process.Pid
}

// A child is one run of a program.
type child struct {
	cmd   *exec.Cmd
	asked atomic.Bool   // whether end was called
	done  chan struct{} // closed when the program has ended
	err   error         // how it ended; read it after done
}

// launch starts cmd in a process group of its own, so that a Ctrl-C in the
// terminal reaches it only through this process. On Linux the kernel kills it
// if this process dies.
func launch(cmd *exec.Cmd) (*child, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	c := &child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// To the kernel, "the parent dies" means that the thread that
		// started the child ends: this goroutine keeps it until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			c.err = cmd.Wait()
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// alive reports whether the program runs. It is false for nil.
func (c *child) alive() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// result says how the program ended. Call it when done is closed.
func (c *child) result() error {
	if c.err == nil {
		return errors.New("exit status 0")
	}
	return c.err
}

// end signals the child, kills it if it outlives stopTimeout, and returns when
// it is gone. The process id cannot belong to another process: it is free for
// reuse only after Wait, and os.Process knows.
func (c *child) end(signal syscall.Signal) {
	c.asked.Store(true)
	_ = c.cmd.Process.Signal(signal) // fails only if it has just ended
	select {
	case <-c.done:
	case <-time.After(stopTimeout):
		_ = c.cmd.Process.Kill()
		<-c.done
	}
}

// runToEnd runs a command that starts others, such as go build, and kills its
// whole process group when the context of the command ends.
func runToEnd(cmd *exec.Cmd) error {
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = stopTimeout
	c, err := launch(cmd)
	if err != nil {
		return err
	}
	<-c.done
	return c.err
}

// readTail returns the end of a file, at most logTail bytes and nothing before
// offset begin, in whole lines.
func readTail(path string, begin int64) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	from := max(begin, info.Size()-logTail)
	data, err := io.ReadAll(io.NewSectionReader(file, from, info.Size()-from))
	if err != nil {
		return err.Error()
	}
	tail := string(data)
	if from > begin {
		_, tail, _ = strings.Cut(tail, "\n")
	}
	return tail
}
