// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

// screenDir names, to the program in a session, the directory for answers that do not fit a screen: what a session explains with -o wide,
// the program explains once more on a terminal of 80 by 24.
const screenDir = "KUBECTL_GC_SCREEN"

// mostShown is how many explanations of a session are shown so.
var mostShown = nightly.Of(2, 20)

func init() { showOnScreen, shown = onScreen, showing }

// showing makes sessions show their explanations on a screen, and fail when one does not fit.
func showing(params testscript.Params) testscript.Params {
	begin := params.Setup
	params.Setup = func(env *testscript.Env) error {
		dir := filepath.Join(env.WorkDir, ".screen")
		env.Setenv(screenDir, dir)
		env.Defer(func() {
			found, err := filepath.Glob(filepath.Join(dir, "*.bad"))
			for _, file := range found {
				text, err := os.ReadFile(file)
				env.T().Log(string(text), err)
			}
			if len(found) > 0 || err != nil {
				env.T().Fatal(len(found), "answers do not fit a screen", err)
			}
		})
		return errors.Join(begin(env), os.Mkdir(dir, 0o700))
	}
	return params
}

func onScreen(ctx context.Context, args []string) {
	dir := os.Getenv(screenDir)
	wide := slices.Index(args, "wide")
	if dir == "" || len(args) < 2 || args[1] != "explain-stuck" || wide < 1 || args[wide-1] != "-o" || slices.Contains(args, "-A") || slices.Contains(args, "--watch") {
		return
	}
	if done, err := filepath.Glob(filepath.Join(dir, "*.done")); err != nil || len(done) >= mostShown {
		return
	}
	lines, err := screenOf(ctx, slices.Delete(slices.Clone(args), wide-1, wide+1))
	result, text := ".done", strings.Join(lines, "\n")
	if wrong := unfit(lines); err != nil || wrong != "" {
		result, text = ".bad", fmt.Sprintf("%s: %s %v\n%s", strings.Join(args, " "), wrong, err, text)
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(time.Now().UnixNano())+result), []byte(text), 0o600); err != nil {
		panic(err)
	}
}

// unfit says what is wrong with an answer on a screen, if it has one cause.
func unfit(lines []string) string {
	starts := func(word string) int {
		return slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, word) })
	}
	next, last := starts("Next"), ""
	if len(lines) > 0 {
		last = lines[len(lines)-1]
	}
	switch {
	case starts("Next (") >= 0 || starts("#") >= 0 || starts("2  ") >= 0: // several causes
		return ""
	case len(lines) > 24:
		return fmt.Sprintf("%d lines", len(lines))
	case next >= 6:
		return fmt.Sprintf("the next step is on line %d", next+1)
	case starts("Or") >= 0 && next < 0:
		return "there is no next step before the others"
	case next >= 0 && !strings.HasPrefix(last, "More") && last != lines[next] && !strings.HasPrefix(last, "         "):
		return "it ends otherwise"
	case strings.Contains(last, "kubectl") && !strings.Contains(last, "kubectl gc"):
		return "it ends with a command"
	}
	return ""
}

// screenOf returns the lines that a terminal of 80 by 24 shows.
func screenOf(ctx context.Context, args []string) ([]string, error) {
	screen, tty, err := openTerminal()
	if err != nil {
		return nil, err
	}
	defer func() { _ = screen.Close() }()
	size := [4]uint16{24, 80, 0, 0}
	if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, tty.Fd(), syscall.TIOCSWINSZ, uintptr(unsafe.Pointer(&size))); failed != 0 {
		return nil, failed
	}
	read := make(chan string)
	go func() {
		var all strings.Builder
		buffer := make([]byte, 4096)
		for {
			n, err := screen.Read(buffer)
			all.Write(buffer[:n])
			if err != nil {
				read <- all.String()
				return
			}
		}
	}()
	gccmd.Run(ctx, append(args, "--color=never"), genericiooptions.IOStreams{In: strings.NewReader(""), Out: tty, ErrOut: new(strings.Builder)})
	_ = tty.Close()
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(<-read, "\r\n", "\n")) {
		runes := []rune(strings.TrimSuffix(line, "\n"))
		for ; len(runes) > 80; runes = runes[80:] {
			lines = append(lines, string(runes[:80]))
		}
		lines = append(lines, string(runes))
	}
	return lines, nil
}
