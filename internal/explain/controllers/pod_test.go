// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
)

// What the containers of a pod tell of the controller in it. An empty reason means that nothing is wrong with them.
func TestStateOfContainers(t *testing.T) {
	for _, test := range []struct{ name, pod, want string }{
		{"nothing is wrong", `{"status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}}`, "Unknown: "},
		{"it has ended", `{"status":{"phase":"Failed","reason":"Evicted"}}`, "Dead: its pod has ended"},
		{"gates", `{"spec":{"schedulingGates":[{"name":"g"}]}}`, "Dead: its pod is held by scheduling gates"},
		{"it crashes", `{"status":{"containerStatuses":[{"name":"c","restartCount":7,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`,
			"Dead: its container c is in CrashLoopBackOff (7 restarts)"},
		{"it needs a Secret", `{"status":{"containerStatuses":[{"name":"c","state":{"waiting":{"reason":"CreateContainerConfigError","message":"secret \"s\" not found"}}}]}}`,
			`Dead: its container c is in CreateContainerConfigError: secret "s" not found`},
		{"so does an init container", `{"status":{"initContainerStatuses":[{"name":"i","state":{"waiting":{"reason":"ErrImagePull"}}}]}}`,
			"Dead: its container i is in ErrImagePull"},
		{"another container works", `{"status":{"containerStatuses":[{"name":"c","state":{"running":{}}},{"name":"d","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`,
			"Unknown: its container d is in CrashLoopBackOff"},
		{"what works is a proxy", `{"status":{"containerStatuses":[{"name":"istio-proxy","state":{"running":{}}},{"name":"d","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`,
			"Dead: its container d is in CrashLoopBackOff"},
		{"it is about to start", `{"status":{"containerStatuses":[{"name":"c","state":{"waiting":{"reason":"ContainerCreating"}}}]}}`, "Unknown: "},
		{"it was restarted a minute ago", `{"status":{"containerStatuses":[{"name":"c","restartCount":3,"state":{"running":{"startedAt":"2026-01-02T03:03:05Z"}},"lastState":{"terminated":{"exitCode":1}}}]}}`,
			"Unknown: its container c has just been restarted after crashes"},
		{"it was restarted long ago", `{"status":{"containerStatuses":[{"name":"c","restartCount":3,"state":{"running":{"startedAt":"2026-01-02T03:00:05Z"}},"lastState":{"terminated":{"exitCode":1}}}]}}`, "Unknown: "},
		{"it was restarted twice", `{"status":{"containerStatuses":[{"name":"c","restartCount":2,"state":{"running":{"startedAt":"2026-01-02T03:03:05Z"}},"lastState":{"terminated":{"exitCode":1}}}]}}`, "Unknown: "},
		{"it had ended without an error", `{"status":{"containerStatuses":[{"name":"c","restartCount":3,"state":{"running":{"startedAt":"2026-01-02T03:03:05Z"}},"lastState":{"terminated":{"exitCode":0}}}]}}`, "Unknown: "},
	} {
		var view podView
		if err := json.Unmarshal([]byte(test.pod), &view); err != nil {
			t.Fatal(err)
		}
		s := view.state(evidence.Named("Pod", "s", "p"), evidenceAt)
		if got := s.Liveness + ": " + s.Because.String(); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if s.Because.IsZero() != (len(s.Evidence) == 0) {
			t.Errorf("%s: it says why without evidence, or shows evidence of nothing: %v", test.name, s.Evidence)
		}
	}
}
