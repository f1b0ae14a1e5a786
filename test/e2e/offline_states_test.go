// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// TestStatesFromFile holds READY and STATUS that a snapshot works out by itself to what the server prints, of pods and workloads in states
// by chance.
func TestStatesFromFile(t *testing.T) {
	parallel(t)
	cp := controlplane.Start(t, controlplane.Options{})
	dir, random := t.TempDir(), rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	var objects []any
	for i := range 300 {
		objects = append(objects, podByChance(random, fmt.Sprintf("p%03d", i)))
	}
	labels := map[string]any{"a": "b"}
	for i, kind := range []string{"Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"} {
		spec := map[string]any{"selector": map[string]any{"matchLabels": labels}, "serviceName": "s", "replicas": 3 + i, "template": map[string]any{
			"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}}}
		status := map[string]any{"replicas": 2, "readyReplicas": 2 - i%2, "numberReady": 4, "desiredNumberScheduled": 7, "currentNumberScheduled": 6, "numberMisscheduled": 0}
		if kind == "DaemonSet" {
			delete(spec, "replicas")
		}
		objects = append(objects, map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": "w"}, "spec": spec, "status": status})
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}
	list, file := filepath.Join(dir, "list.json"), filepath.Join(dir, "states.snapshot")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cp.Kubectl(t, "create", "namespace", "states")
	cp.Kubectl(t, "-n", "states", "create", "--validate=false", "-f", list)
	cp.Kubectl(t, "-n", "states", "replace", "--validate=false", "--subresource=status", "-f", list)
	ending := []string{"-n", "states", "delete", "--wait=false"}
	for i := range 100 {
		ending = append(ending, fmt.Sprintf("pod/p%03d", i*3))
	}
	cp.Kubectl(t, ending...)
	args := []string{"kubectl-gc", "tree", "-n", "states", "pods,deployments,statefulsets,replicasets,daemonsets", "--status=always"}
	live := runNormal(t.Context(), append(slices.Clone(args), "--kubeconfig="+cp.Kubeconfig))
	if taken := runNormal(t.Context(), []string{"kubectl-gc", "snapshot", "-o", file, "--kubeconfig=" + cp.Kubeconfig}); taken.Code != 0 {
		t.Fatal(taken)
	}
	held := runNormal(t.Context(), append(slices.Clone(args), "--from", file))
	if diff := cmp.Diff(strings.Split(live.Out, "\n"), strings.Split(held.Out, "\n")); diff != "" {
		t.Errorf("-cluster +snapshot:\n%s", diff)
	}
	for _, state := range []string{"Init:1/2", "Init:Signal:9", "Terminating", "Unknown", "SchedulingGated", "NotReady", "Completed", "ExitCode:3", "1/4", "2/5", "4/7"} {
		if !strings.Contains(live.Out, " "+state+" ") {
			t.Errorf("nothing is %s", state)
		}
	}
	if t.Failed() {
		t.Log(live)
	}
}

// podByChance is a pod that waits for nobody, in any state.
func podByChance(random *rand.Rand, name string) map[string]any {
	one := func(of ...any) any { return of[random.IntN(len(of))] }
	terminated := func(code int, more map[string]any) map[string]any {
		more["exitCode"] = code
		return map[string]any{"terminated": more}
	}
	container := func(name string) (spec, status map[string]any) {
		spec = map[string]any{"name": name, "image": "i"}
		status = map[string]any{"name": name, "image": "i", "imageID": "", "restartCount": random.IntN(3), "ready": one(true, false), "started": one(true, false)}
		status["state"] = one(map[string]any{"running": map[string]any{}}, map[string]any{"running": map[string]any{}},
			map[string]any{"waiting": map[string]any{"reason": one("CrashLoopBackOff", "PodInitializing", "")}},
			terminated(0, map[string]any{"reason": "Completed"}), terminated(0, map[string]any{}), terminated(3, map[string]any{}),
			terminated(1, map[string]any{"reason": "Error"}), terminated(137, map[string]any{"signal": 9}))
		return spec, status
	}
	specs, statuses := map[string][]any{}, map[string][]any{}
	for _, of := range []struct {
		field   string
		n, most int
	}{{"initContainers", 0, 2}, {"containers", 1, 3}} {
		for i := range of.n + random.IntN(of.most-of.n+1) {
			spec, status := container(fmt.Sprintf("%s%d", strings.ToLower(of.field[:1]), i))
			if of.n == 0 && random.IntN(3) == 0 {
				spec["restartPolicy"] = "Always"
			}
			specs[of.field], statuses[of.field] = append(specs[of.field], spec), append(statuses[of.field], status)
		}
	}
	if random.IntN(5) == 0 { // it has not begun
		clear(statuses)
	}
	conditions := []any{}
	for _, kind := range []string{"PodScheduled", "Initialized", "Ready"} {
		if random.IntN(3) > 0 {
			conditions = append(conditions, map[string]any{"type": kind, "status": one("True", "False"), "reason": one("", "", "", "SchedulingGated")})
		}
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "finalizers": []any{"example.com/wait"}},
		"spec": map[string]any{"initContainers": specs["initContainers"], "containers": specs["containers"], "automountServiceAccountToken": false},
		"status": map[string]any{
			"phase": one("Pending", "Running", "Running", "Running", "Succeeded", "Failed"), "reason": one("", "", "", "Evicted", "NodeLost"),
			"conditions": conditions, "initContainerStatuses": statuses["initContainers"], "containerStatuses": statuses["containers"],
		},
	}
}
