// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"unsafe"

	"github.com/rogpeppe/go-internal/testscript"
)

func init() { commands["terminal"] = terminal }

// takenOff is a line that was taken off the terminal again: of progress, which a busy
// machine shows.
var takenOff = regexp.MustCompile(`[^\n]*\r\x1b\[K`)

// terminal FILE QUESTION KEYS PROGRAM [ARGUMENT...] runs the program on a
// terminal, presses the keys once the question is there, each line of them when the next question is, and writes to the file
// what the terminal shows, with the exit code as the last line. ^C in the keys is
// that key, and ^M is Enter.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: terminal FILE QUESTION KEYS PROGRAM [ARGUMENT...]")
	}
	screen, tty, err := openTerminal()
	ts.Check(err)
	defer func() { _ = screen.Close() }()
	program, err := os.Executable()
	ts.Check(err)
	cmd := exec.Command(program, args[4:]...) // which is what its first word says
	cmd.Args[0] = args[3]
	cmd.Env = append(os.Environ(), "KUBECONFIG="+ts.Getenv("KUBECONFIG"), "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // of its standard input
	ts.Check(cmd.Start())
	_ = tty.Close() // the program has its own
	shown, buffer := []byte{}, make([]byte, 4096)
	keys, typed := strings.SplitAfter(strings.NewReplacer("^C", "\x03", "^M", "\r").Replace(args[2]), "\r"), 0
	for answered := 0; ; {
		n, err := screen.Read(buffer)
		shown = append(shown, buffer[:n]...)
		asked := bytes.Contains(shown, []byte(args[1]))
		if typed > 0 { // the next question
			asked = bytes.HasSuffix(shown[answered:], []byte(": "))
		}
		if asked && typed < len(keys) {
			_, err = screen.WriteString(keys[typed])
			typed, answered = typed+1, len(shown)
		}
		if err != nil {
			break // the program has closed the terminal
		}
	}
	code := 0
	if err := cmd.Wait(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Check(err)
		}
		code = exit.ExitCode()
	}
	text := takenOff.ReplaceAllString(strings.ReplaceAll(string(shown), "\r\n", "\n"), "") + fmt.Sprintf("exit code %d\n", code)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// openTerminal returns a new terminal: what a person has before them, and what a
// program runs on (pts(4)).
func openTerminal() (screen, tty *os.File, err error) {
	screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	var unlocked, number uint32
	for request, value := range map[uintptr]*uint32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request, uintptr(unsafe.Pointer(value))); failed != 0 {
			return nil, nil, failed
		}
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	return screen, tty, err
}
