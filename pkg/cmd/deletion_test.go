// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// An answer leaves the line of the question behind it, also when it is none.
func TestAnswer(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	silent, _ := io.Pipe()
	for name, test := range map[string]struct {
		ctx           context.Context
		in            io.Reader
		answer, shown string
		err           error
	}{
		"an answer":     {t.Context(), strings.NewReader("yes\nmore"), "yes\n", "Go on? ", nil},
		"end of input":  {t.Context(), strings.NewReader(""), "", "Go on? \n", nil},
		"a broken line": {t.Context(), strings.NewReader("y"), "y", "Go on? \n", nil},
		"Ctrl-C":        {interrupted, silent, "", "Go on? \nInterrupted: nothing was changed.\n", context.Canceled},
	} {
		var shown bytes.Buffer
		d := &deletion{globals: &globals{IOStreams: genericiooptions.IOStreams{In: test.in, ErrOut: &shown}}}
		answer, err := d.answer(test.ctx, "Go on? ")
		if answer != test.answer || !errors.Is(err, test.err) || shown.String() != test.shown {
			t.Errorf("%s: got %q, %v, and shown was %q", name, answer, err, shown.String())
		}
	}
}
