// SPDX-License-Identifier: Apache-2.0

package integrations

import (
	"os"
	"testing"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// TestHelm has Helm sort the manifests of deploy/predelete.yaml: the Job is a hook
// that runs before a deletion, and what gives it its rights is no hook, so that it
// is there by then.
func TestHelm(t *testing.T) {
	text, err := os.ReadFile("../../deploy/predelete.yaml")
	if err != nil {
		t.Fatal(err)
	}
	hooks, manifests, err := releaseutil.SortManifests(map[string]string{"templates/predelete.yaml": string(text)}, nil, releaseutil.InstallOrder)
	if err != nil {
		t.Fatal(err)
	}
	if len(manifests) != 3 || len(hooks) != 1 {
		t.Fatalf("%d hooks and %d other manifests, want 1 and 3", len(hooks), len(manifests))
	}
	hook := hooks[0]
	if hook.Kind != "Job" || len(hook.Events) != 1 || hook.Events[0] != release.HookPreDelete {
		t.Errorf("the hook is a %s, and runs at %v", hook.Kind, hook.Events)
	}
	// Helm would leave the Job of a failed attempt in the way of the next.
	if len(hook.DeletePolicies) != 2 || hook.DeletePolicies[0] != release.HookBeforeHookCreation {
		t.Errorf("it is deleted at %v", hook.DeletePolicies)
	}
}
