// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// Leaks says what is lost or left behind, empty for nothing.
func (r *Remedy) Leaks() string {
	var texts []string
	for _, l := range r.Loss {
		texts = append(texts, l.What)
	}
	return strings.Join(texts, "; ")
}

// loses is a loss with which nothing is to be counted.
func loses(kind remedy.LossKind, format string, args ...any) []remedy.Loss {
	return []remedy.Loss{{Kind: kind, What: fmt.Sprintf(format, args...)}}
}

// unguards is the loss of what webhooks or policies do; in says where or how long.
func unguards(what, in string) []remedy.Loss {
	return loses(remedy.Unguards, lostGuard, what, in)
}
