// SPDX-License-Identifier: Apache-2.0

package pattern_test

import (
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
)

func TestPattern(t *testing.T) {
	p := pattern.New("^a+$")
	if !p().MatchString("aaa") || p().MatchString("ab") {
		t.Error("it does not match what its expression does")
	}
	if first, second := p(), p(); first != second {
		t.Error("it is compiled twice")
	}
}

// A wrong expression does not wait for the command that uses it.
func TestWrongPattern(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("in a test nothing was said of a wrong expression")
		}
	}()
	pattern.New("(")
}
