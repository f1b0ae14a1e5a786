// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"

	"github.com/kubectl-gc/kubectl-gc/internal/draw"
)

// wantsPage reports whether the answer is a page in a file: a terminal cannot show a picture.
func (o *graphOptions) wantsPage() bool {
	return o.open || o.output.name == "" && isTerminal(o.Out)
}

// validatePage finds a format that is no page.
func (o *graphOptions) validatePage() error {
	if o.open && o.output.name != "" && o.output.name != "html" {
		return usageError{errors.New("--open opens a page: it requires -o html")}
	}
	return nil
}

// writePage writes the picture as a page into a new file, says which, and opens it if it is to.
func (o *graphOptions) writePage(ctx context.Context, a *graphAnswer) error {
	if a.selection.Nodes.Len() == 0 {
		return nil
	}
	name, err := o.page(func(w io.Writer) error { return draw.HTML(w, o.picture(a)) })
	switch {
	case err != nil:
		return err
	case o.open:
		return openPage(ctx, name)
	}
	fmt.Fprintln(o.ErrOut, "--open opens it in the browser; -o dot prints the graph.")
	return nil
}

// page writes a page into a new file, and says which.
func (g *globals) page(write func(io.Writer) error) (string, error) {
	file, err := os.CreateTemp("", "kubectl-gc-*.html")
	if err != nil {
		return "", fmt.Errorf("writing the page: %w", reason(err))
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return "", fmt.Errorf("writing the page %s: %w", file.Name(), reason(err))
	}
	fmt.Fprintf(g.Out, "The page is in %s\n", file.Name())
	return file.Name(), nil
}

// openers are the programs that open a file with what the user has chosen for its kind, by operating system.
var openers = map[string][]string{
	"darwin":  {"open"},
	"windows": {"rundll32", "url.dll,FileProtocolHandler"},
}

// openPage opens a page in the browser.
func openPage(ctx context.Context, name string) error {
	words, known := openers[runtime.GOOS]
	if !known {
		words = []string{"xdg-open"}
	}
	if err := exec.CommandContext(ctx, words[0], append(words[1:], name)...).Run(); err != nil {
		return hintedError{fmt.Errorf("opening the page: %w", err), "open " + name + " in a browser"}
	}
	return nil
}
