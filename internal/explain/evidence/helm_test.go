// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
)

func TestRecordOf(t *testing.T) {
	for name, want := range map[string]string{
		"sh.helm.release.v1.web.v10":    "web",
		"sh.helm.release.v1.web.v2.v11": "web.v2",
		"sh.helm.release.v1.a.vb.v2":    "a.vb",
		"sh.helm.release.v1.x":          "",
		"sh.helm.release.v1.y.vz":       "",
		"sh.helm.release.v1..v1":        "",
		"sh.helm.release.v1.y.v-1":      "",
		"web.v1":                        "",
	} {
		if release, _, is := evidence.RecordOf(name); is != (want != "") || is && release != want {
			t.Errorf("%s is a record of %q (%t), want %q", name, release, is, want)
		}
	}
}
