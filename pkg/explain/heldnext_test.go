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
		"nothing":           {"ConfigMap/s/a\n" + claim, "before all else in it"},
		"an object":         {claim + "ConfigMap/s/a finalizers=example.com/hold\n", "before all else in it; after that ConfigMap/s/a has the finalizer example.com/hold, which nothing that works removes"},
		"several":           {"ConfigMap/s/a finalizers=example.com/hold\nConfigMap/s/b finalizers=example.com/hold\n", "before all else in it; after that 2 objects will hold it: ConfigMap/s/a has the finalizer example.com/hold, which nothing that works removes"},
		"its turn has come": {"ConfigMap/s/a deleted=300 finalizers=example.com/hold\n", "before all else in it"},
	} {
		because := ""
		for _, o := range parse(t, held+test.content).report(t).Objects {
			for _, f := range o.Findings {
				if link := f.Chain[0]; link.Object.Resource.IsNamespace() && strings.Contains(link.Because, "pod") {
					because = link.Because
				}
			}
		}
		if want := "waits for its pod, " + test.want; because != want {
			t.Errorf("%s:\ngot:  %q\nwant: %q", name, because, want)
		}
	}
}
