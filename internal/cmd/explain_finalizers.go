// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"os"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// readFinalizers merges the user's file over the built-in catalogue.
func (o *explainOptions) readFinalizers() error {
	if o.finalizers == "" {
		return nil
	}
	in, name := o.In, "standard input"
	if o.finalizers != "-" {
		file, err := os.Open(o.finalizers)
		if err != nil {
			return fmt.Errorf("reading --finalizers: %w", err)
		}
		defer file.Close() //nolint:errcheck // it was only read
		in, name = file, o.finalizers
	}
	user, err := loadFinalizers(in, name)
	if err != nil {
		return hintedError{err, "docs/finalizers.md describes the file"}
	}
	o.catalogue = finalizers.Builtin().Merge(user)
	return nil
}

// loadFinalizers reads a catalogue. Every mistake in it is an error of its own.
func loadFinalizers(in io.Reader, name string) (*finalizers.Catalogue, error) {
	user, err := finalizers.Load(in)
	if err == nil {
		return user, nil
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	var named []error
	for _, e := range all {
		named = append(named, fmt.Errorf("reading finalizers from %s: %w", name, e))
	}
	return nil, utilerrors.NewAggregate(named)
}
