// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
)

// TestSymptoms holds the steps that lead to a cause.
func TestSymptoms(t *testing.T) {
	for name, c := range map[string]struct{ cluster, want string }{
		"a namespace without a controller": {`
Namespace/s deleted=60 {"spec":{"finalizers":["kubernetes"]}}
ConfigMap/s/a`, "Namespace/s ns-controller-absent -> Lease/kube-system/kube-controller-manager"},
		"a finalizer on a definition": {alive + `
CustomResourceDefinition/widgets.example.com deleted=60 finalizers=example.com/x`, "CustomResourceDefinition/widgets.example.com crd-finalizer"},
		"a finalizer on a pod": {alive + `
Pod/s/p deleted=60 finalizers=example.com/x`, "Pod/s/p pod-finalizer"},
		"a pod on no node": {alive + `
Pod/s/p deleted=60 grace=10`, "Pod/s/p pod-unscheduled"},
		"a volume, its attachment": {alive + `
PersistentVolume/pv deleted=60 finalizers=external-attacher/d
VolumeAttachment/v deleted=60 finalizers=external-attacher/d {"spec":{"source":{"persistentVolumeName":"pv"}}}`,
			"PersistentVolume/pv va-detach -> VolumeAttachment/v"},
		"a device, its pod, its node": {alive + `
Node/dead {"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}
ResourceClaim/s/c deleted=60 finalizers=resource.kubernetes.io/delete-protection {"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"p"}]}}
Pod/s/p deleted=60 grace=10 {"spec":{"nodeName":"dead"}}`,
			"ResourceClaim/s/c dra-claim-reserved -> Pod/s/p -> Node/dead"},
	} {
		report := parse(t, c.cluster).report(t)
		var got string
		for _, o := range report.Objects {
			var steps []string
			for _, link := range o.Chain {
				steps = append(steps, strings.TrimSpace(link.Object.String()+" "+link.Symptom))
			}
			if chain := strings.Join(steps, " -> "); len(chain) > len(got) {
				got = chain
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestWaysOutOfForeground shows the ways to free an owner that something below
// holds up.
func TestWaysOutOfForeground(t *testing.T) {
	report := parse(t, alive+`
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion
ConfigMap/s/b deleted=60 finalizers=example.com/x owners=ConfigMap/a!`).report(t)
	var got []string
	for _, r := range report.Causes[0].Remedies {
		if r.Risk == explain.Disruptive {
			got = append(got, r.Command)
		}
	}
	want := []string{
		`kubectl -n s patch configmaps/a --type=json -p '[{"op":"test","path":"/metadata/uid","value":"a"},{"op":"test","path":"/metadata/finalizers/0","value":"foregroundDeletion"},{"op":"remove","path":"/metadata/finalizers/0"}]'`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFinishedJobHoldsClaim offers to delete the Job whose pods have come to
// their end and still use a claim, and no other.
func TestFinishedJobHoldsClaim(t *testing.T) {
	const cluster = alive + `
PersistentVolumeClaim/s/c deleted=60 finalizers=kubernetes.io/pvc-protection
Pod/s/p {"metadata":{"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"j-uid","controller":true}]},` +
		`"spec":{"nodeName":"n","volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"c"}}]},"status":{"phase":"PHASE"}}`
	for phase, want := range map[string]bool{"Succeeded": true, "Failed": true, "Running": false} {
		report := parse(t, strings.Replace(cluster, "PHASE", phase, 1)).report(t)
		got := false
		for _, r := range report.Causes[0].Remedies {
			got = got || strings.Contains(r.Command, `{"uid":"j-uid"}`) && strings.HasSuffix(r.Command, "/apis/batch/v1/namespaces/s/jobs/j -f -")
		}
		if got != want {
			t.Errorf("%s: the Job can be deleted: %t, want %t: %v", phase, got, want, report.Causes[0].Remedies)
		}
	}
}

// TestPodsOfManyLists reads each pod from the list of its own namespace, whatever
// was listed before and after.
func TestPodsOfManyLists(t *testing.T) {
	var cluster strings.Builder
	cluster.WriteString(install + deployment(1) + pod(ready) + "ConfigMap/s/c deleted=60 finalizers=" + fin + ` {"metadata":{` + setter + "}}\n")
	cluster.WriteString(`Node/k deleted=60 finalizers=karpenter.sh/termination {"status":{"conditions":[{"type":"Ready","status":"True"}]}}` + "\n")
	for i := range 30 {
		fmt.Fprintf(&cluster, "Pod/other/o%d {\"spec\":{\"nodeName\":\"n\"}}\n", i)
	}
	cluster.WriteString(`Pod/op/victim deleted=300 grace=10 {"spec":{"nodeName":"n"},"status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}}` + "\n")
	for range 5 { // the order of a list is any
		if got := parse(t, cluster.String()).explained(t); !strings.Contains(got, "Pod/op/victim: Stuck pod-kubelet-kill@victim*1\n") {
			t.Error(got)
		}
	}
}

// TestNamespaceThatHasJustGone says that what a namespace took along is gone,
// and that only what outlives it was left behind.
func TestNamespaceThatHasJustGone(t *testing.T) {
	const cluster = alive + `
no namespace s
ConfigMap/s/a deleted=5 finalizers=example.com/x
Pod/s/p deleted=5 grace=30 {"spec":{"nodeName":"n"}}`
	for _, c := range []struct {
		name string
		gone []string
		want string
	}{
		{"all of it", []string{"configmaps/s/a", "pods/s/p"}, "ConfigMap/s/a: Pending\nPod/s/p: Pending\n"},
		{"all but one", []string{"configmaps/s/a"}, "ConfigMap/s/a: Pending\nPod/s/p: Stuck ns-forced-leftovers@s*1 pod-node-gone@n*1\n"},
	} {
		s := parse(t, cluster)
		for _, key := range c.gone {
			if s.Whole[key] == nil {
				t.Fatalf("no %s", key)
			}
			delete(s.Whole, key)
		}
		if diff := cmp.Diff(c.want, s.explained(t)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.name, diff)
		}
	}
	s := parse(t, cluster)
	s.Whole["configmaps/s/a"].SetUID("another")
	if got := s.explained(t); !strings.HasPrefix(got, "ConfigMap/s/a: Pending\n") {
		t.Errorf("another object of its name: %s", got)
	}
}
