// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// Every rule is about a finalizer that the catalogue knows, and none hides another.
func TestRules(t *testing.T) {
	for i, r := range table {
		if name := strings.Replace(r.finalizer, "*", "x", 1); len(finalizers.Builtin().Find(name, schema.GroupKind{})) == 0 {
			t.Errorf("the catalogue does not know %s", r.finalizer)
		}
		for _, before := range table[:i] {
			if before.finalizer == r.finalizer && (before.on == "" || before.on == r.on) {
				t.Errorf("%s on %q comes twice", r.finalizer, r.on)
			}
		}
	}
}
