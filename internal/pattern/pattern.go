// SPDX-License-Identifier: Apache-2.0

// Package pattern compiles regular expressions when they are first used: to compile all those
// of the plugin takes a tenth of the time in which it starts, and most commands use none.
package pattern

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// New returns what compiles an expression once, and is safe for concurrent use. Where the
// expression is wrong, it panics, and in tests New does so.
func New(expression string) func() *regexp.Regexp {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
	if strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test") {
		compiled()
	}
	return compiled
}
