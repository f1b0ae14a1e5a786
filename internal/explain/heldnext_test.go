// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"strings"
	"testing"
)

// What will hold a namespace when its pods have gone is said while they hold it.
func TestWhatHoldsANamespaceNext(t *testing.T) {
	const held = `with kube-controller-manager
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]}}
Pod/s/p deleted=300 finalizers=example.com/mine
`
	const claim = "PersistentVolumeClaim/s/c finalizers=kubernetes.io/pvc-protection\n"
	for name, test := range map[string]struct{ content, want string }{
		"nothing":           {"ConfigMap/s/a\n" + claim, "before the rest of its contents"},
		"an object":         {claim + "ConfigMap/s/a finalizers=example.com/hold\n", "before the rest of its contents; after that ConfigMap/s/a will block it: no working controller removes the finalizer example.com/hold"},
		"several":           {"ConfigMap/s/a finalizers=example.com/hold\nConfigMap/s/b finalizers=example.com/hold\n", "before the rest of its contents; after that 2 objects will block it, such as ConfigMap/s/a: no working controller removes the finalizer example.com/hold"},
		"its turn has come": {"ConfigMap/s/a deleted=300 finalizers=example.com/hold\n", "before the rest of its contents"},
	} {
		because := ""
		for _, o := range parse(t, held+test.content).report(t).Objects {
			for _, f := range o.Findings {
				if link := f.Chain[0]; link.Object.Resource.IsNamespace() && strings.Contains(link.Because.String(), "pod") {
					because = link.Because.String()
				}
			}
		}
		if want := "waits for its pod, " + test.want; because != want {
			t.Errorf("%s:\ngot:  %q\nwant: %q", name, because, want)
		}
	}
}
