// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
)

// usageError is a mistake in the command line.
type usageError struct{ error }

// Unwrap returns the mistake.
func (e usageError) Unwrap() error { return e.error }

// hintedError is an error with something to try.
type hintedError struct {
	error
	hint string
}

// Unwrap returns the error without the hint.
func (e hintedError) Unwrap() error { return e.error }

// printError writes every error that err holds on a line of its own, and the
// distinct hints after them.
func printError(w io.Writer, err error, command string) {
	var hints []string
	if _, several := err.(utilerrors.Aggregate); !several { //nolint:errorlint // what wraps several is one
		hints = append(hints, hint(err, command))
	}
	for _, e := range flatten(err) {
		fmt.Fprintln(w, "error: "+render.Line(strings.TrimSpace(message(e))))
		if h := hint(e, command); !slices.Contains(hints, h) {
			hints = append(hints, h)
		}
	}
	for _, h := range hints {
		if h != "" {
			fmt.Fprintln(w, "hint: "+render.Line(h))
		}
	}
}

// flatten returns the errors that were joined by errors.Join or in an
// aggregate. What wraps a joined error has a text of its own, and stays one.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range joined.Unwrap() {
			errs = append(errs, flatten(e)...)
		}
		return errs
	}
	var aggregate utilerrors.Aggregate
	if errors.As(err, &aggregate) {
		return utilerrors.Flatten(aggregate).Errors()
	}
	return []error{err}
}

// message puts an error as the user should read it.
func message(err error) string {
	var urlError *url.Error
	if errors.As(err, &urlError) {
		return fmt.Sprintf("reaching the server %s: %s", server(urlError.URL), cause(urlError.Err))
	}
	return err.Error()
}

func server(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return u.Scheme + "://" + u.Host
}

// hint says what to try.
func hint(err error, command string) string {
	var usage usageError
	var hinted hintedError
	var urlError *url.Error
	var missing missingError
	var noKind *meta.NoKindMatchError
	var noResource *meta.NoResourceMatchError
	switch refused := hintAfterRefusal(err); {
	case refused != "":
		return refused
	case errors.As(err, &hinted):
		return hinted.hint
	case errors.As(err, &missing):
		return missing.hint()
	case errors.As(err, &usage):
		return "see '" + command + " --help' for usage"
	case errors.As(err, &urlError):
		return connectionHint(urlError.Err)
	case apierrors.IsUnauthorized(err):
		return "log in again: the server does not accept these credentials"
	case errors.As(err, &noKind), errors.As(err, &noResource), strings.Contains(err.Error(), "doesn't have a resource type"):
		return "kubectl api-resources lists the types that the server has"
	}
	return ""
}

// hintAfterRefusal says what to try after a deletion was refused, and is empty for other errors.
func hintAfterRefusal(err error) string {
	var incomplete *change.IncompleteError
	var digest *change.DigestError
	switch {
	case errors.As(err, &incomplete) && incomplete.NoOrder != "":
		return "--order=default deletes in any order; --allow-incomplete takes the order that is known"
	case errors.As(err, &incomplete):
		return hintToTolerate(incomplete.Missing)
	case errors.As(err, &digest):
		return "run with --dry-run=client again and look at what changed; the digest is now " + answer.Short(digest.Now)
	case errors.As(err, new(change.UnacceptableError)):
		return "nothing was changed: what has to go before it is deleted only when it can go itself"
	}
	return ""
}
