// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"errors"
	"fmt"
)

// ErrNotConfirmed says that whoever was asked did not agree, or that there is nobody to ask.
var ErrNotConfirmed = errors.New("not confirmed: nothing was changed")

// errNoConsent is the error of a run that nobody agreed to.
var errNoConsent = errors.New("nobody has agreed to this run: a consent is for one, and there may be nothing to do")

// IncompleteError refuses a job: something that could not be read might change its outcome.
type IncompleteError struct {
	// Missing are the names that a Tolerance would have to have.
	Missing []string
	// NoOrder is what could not be read without which no safe order is known, empty if that is not why.
	NoOrder string
}

// Error implements error.
func (e *IncompleteError) Error() string {
	const refused = "refusing to change anything: what could not be read might change the outcome"
	if e.NoOrder != "" {
		return refused + ": no safe order is known without " + e.NoOrder
	}
	return refused
}

// DigestError refuses a plan: it is not the one that was agreed to.
type DigestError struct{ Agreed, Now string }

// Error implements error.
func (e *DigestError) Error() string {
	return fmt.Sprintf("confirming the preview: it is not that of %s any more", e.Agreed)
}

// UnacceptableError refuses a run before its first write: the API server would refuse a target for whose sake others
// go first, or it is not known whether it would.
type UnacceptableError struct{ error }

// Unwrap returns why.
func (e UnacceptableError) Unwrap() error { return e.error }
