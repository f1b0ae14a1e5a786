// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// now is when the scenarios are looked at.
var now = explaintest.Now

// scenario is a cluster and what else an analysis of it is given.
type scenario struct {
	*explaintest.World
	catalogue *finalizers.Catalogue
	wait      func(time.Duration)
}

func parse(t *testing.T, text string) *scenario {
	t.Helper()
	return &scenario{World: explaintest.Parse(t, text)}
}

// explained runs the engine and the analysis, and returns what is said of each
// terminating object: its verdict, and its causes with their objects.
func (s *scenario) explained(t *testing.T) string {
	t.Helper()
	var lines []string
	for _, o := range s.report(t).Objects {
		line := fmt.Sprintf("%s: %s", o.Object, o.Verdict)
		for _, f := range o.Findings {
			line += fmt.Sprintf(" %s@%s*%d", f.Cause.ID, f.Cause.Object.Name, f.Cause.Blocks)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n"
}

// report runs the engine and the analysis for all terminating objects.
func (s *scenario) report(t *testing.T) *explain.Report {
	t.Helper()
	g := s.Graph()
	snapshot := g.Snapshot()
	outcome, err := gc.New(simulator.New(snapshot, simulator.Options{Now: now}), g, gc.Options{SeesAll: true}).Collect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var asked []types.UID
	for n := range g.Nodes() {
		if n.BeingDeleted() {
			asked = append(asked, n.Object().UID)
		}
	}
	in := explain.Input{Graph: g, Outcomes: outcome.Outcomes, Cluster: s, Events: s.Events, Catalogue: s.catalogue, Now: now}
	if s.wait != nil {
		in.Wait = func(_ context.Context, d time.Duration) { s.wait(d) }
	}
	if len(s.Answers) > 0 {
		in.Prober = s.World
		asked = append(asked, s.named(g)...)
	}
	return explain.Explain(t.Context(), in, asked)
}

const (
	alive = "lease kube-system/kube-controller-manager 5\n"
	node  = `Node/n {"status":{"conditions":[{"type":"Ready","status":"True"}]}}` + "\nlease kube-node-lease/n 5\n"
)

var cases = []struct{ name, cluster, want string }{
	{"pending and young", alive + `
ConfigMap/s/a deleted=5 finalizers=foregroundDeletion`, "ConfigMap/s/a: Pending\n"},
	{"nobody collects", `
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion
ConfigMap/s/b owners=ConfigMap/a!
ConfigMap/s/c deleted=60 finalizers=orphan`, "ConfigMap/s/a: Stuck gc-absent@kube-controller-manager*2\nConfigMap/s/c: Stuck gc-absent@kube-controller-manager*2\n"},
	{"no lease and too early to tell", `
ConfigMap/s/a deleted=5 finalizers=foregroundDeletion`, "ConfigMap/s/a: Unknown gc-absent@kube-controller-manager*1\n"},
	{"stale lease", `
lease kube-system/kube-controller-manager 600
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion`, "ConfigMap/s/a: Stuck gc-absent@kube-controller-manager*1\n"},
	{"an unrelated object that is young", `
ConfigMap/s/a deleted=60 finalizers=orphan
ConfigMap/s/c deleted=2 finalizers=foregroundDeletion`, "ConfigMap/s/a: Stuck gc-absent@kube-controller-manager*1\nConfigMap/s/c: Unknown gc-absent@kube-controller-manager*1\n"},
	{"a dependent of which nothing shows that it can be deleted", `
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion
ConfigMap/s/b owners=ConfigMap/a!`, "ConfigMap/s/a: Unknown gc-absent@kube-controller-manager*1\n"},
	{"a dependent that can be deleted", `
answer PATCH ConfigMap/s/none 403 no
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion
ConfigMap/s/b owners=ConfigMap/a!`, "ConfigMap/s/a: Stuck gc-absent@kube-controller-manager*1\n"},
	{"conversion of another kind", alive + `
CustomResourceDefinition/foos.acme.org {"spec":{"group":"acme.org","names":{"plural":"foos","kind":"Foo"},"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://foo.example"}}}}}
CustomResourceDefinition/bars.acme.org {"spec":{"group":"acme.org","names":{"plural":"bars","kind":"Bar"},"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://bar.example"}}}}}
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionContentFailure","status":"True","reason":"ContentDeletionFailed","message":"conversion webhook for acme.org/v1, Kind=FooList failed: Post: no route","lastTransitionTime":"2026-01-02T03:00:00Z"}]}}
ConfigMap/s/x`, "Namespace/s: Stuck val-conversion-dead@foos.acme.org*1\n"},
	{"a storage that is being initialized", alive + `
CustomResourceDefinition/foos.acme.org {"spec":{"group":"acme.org","names":{"plural":"foos","kind":"Foo"},"versions":[{"name":"v1","served":true}],"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"namespace":"x","name":"y"}}}}}}
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionContentFailure","status":"True","reason":"ContentDeletionFailed","message":"storage is (re)initializing","lastTransitionTime":"2026-01-02T03:04:00Z"}]}}
ConfigMap/s/x`, "Namespace/s: Unknown ns-content-failure@s*1\n"},
	{"a class that is being changed", alive + `
VolumeAttributesClass/gold deleted=60 finalizers=kubernetes.io/vac-protection
PersistentVolumeClaim/s/c {"spec":{"volumeAttributesClassName":"silver"},"status":{"currentVolumeAttributesClassName":"gold","modifyVolumeStatus":{"targetVolumeAttributesClassName":"silver","status":"InProgress"}}}
PersistentVolume/p {"spec":{"volumeAttributesClassName":"gold","claimRef":{"namespace":"s","name":"c"}}}`,
		"VolumeAttributesClass/gold: Unknown vac-in-use@p*1 vac-in-use@c*1\n"},
	{"a claim of a pod that ends by itself", alive + node + `
ResourceClaim/s/c deleted=60 finalizers=resource.kubernetes.io/delete-protection {"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"p"}]}}
Pod/s/p {"spec":{"nodeName":"n","restartPolicy":"Never"},"status":{"phase":"Running"}}`, "ResourceClaim/s/c: Unknown dra-claim-reserved@p*1\n"},
	{"a lease that cannot be read", `
unreadable leases
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion`, "ConfigMap/s/a: Unknown gc-absent@kube-controller-manager*1\n"},
	{"alive but late", alive + `
ConfigMap/s/a deleted=600 finalizers=foregroundDeletion`, "ConfigMap/s/a: Unknown gc-absent@kube-controller-manager*1\n"},
	{"a chain of three levels", alive + `
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion
ConfigMap/s/b deleted=60 finalizers=foregroundDeletion owners=ConfigMap/a!
ConfigMap/s/c deleted=60 finalizers=example.com/x owners=ConfigMap/b!`,
		"ConfigMap/s/a: Stuck fin-absent@c*3\nConfigMap/s/b: Stuck fin-absent@c*3\nConfigMap/s/c: Stuck fin-absent@c*3\n"},
	{"a ring", alive + `
ConfigMap/s/a deleted=1 finalizers=foregroundDeletion owners=ConfigMap/b!
ConfigMap/s/b deleted=1 finalizers=foregroundDeletion owners=ConfigMap/a!`,
		"ConfigMap/s/a: Stuck gc-fg-cycle@a*2\nConfigMap/s/b: Stuck gc-fg-cycle@a*2\n"},
	{"an owner that cannot be judged", alive + `
ConfigMap/s/a deleted=20 finalizers=foregroundDeletion
ConfigMap/s/b owners=ConfigMap/a!,Other/o`, "ConfigMap/s/a: Stuck gc-fg-owner-unresolvable@b*1\n"},
	{"an owner whose name no object can have", alive + `
ConfigMap/s/a deleted=20 finalizers=foregroundDeletion
ConfigMap/s/b owners=ConfigMap/a!,ConfigMap/own%x`, "ConfigMap/s/a: Stuck gc-fg-owner-unresolvable@b*1\n"},
	{"dependents that were not listed", alive + `
unlisted configmaps
Widget/s/w deleted=60 finalizers=foregroundDeletion`, "Widget/s/w: Unknown gc-fg-blocking@w*1\n"},
	{"half deleted", alive + `
ConfigMap/s/a deleted=1`, "ConfigMap/s/a: Stuck half-deleted@a*1\n"},
	{"left without a namespace", alive + `
no namespace s
ConfigMap/s/a deleted=1 finalizers=foregroundDeletion`, "ConfigMap/s/a: Stuck ns-forced-leftovers@s*1\n"},
	{"one cause for many", alive + `
Widget/s/v deleted=1 finalizers=example.com/x
Widget/s/w deleted=1 finalizers=example.com/x`, "Widget/s/v: Stuck fin-absent@v*2\nWidget/s/w: Stuck fin-absent@v*2\n"},
	{"a definition with an instance", alive + `
CustomResourceDefinition/widgets.example.com deleted=300 finalizers=customresourcecleanup.apiextensions.k8s.io
Widget/s/w deleted=1 finalizers=example.com/x`,
		"CustomResourceDefinition/widgets.example.com: Stuck fin-absent@w*2\nWidget/s/w: Stuck fin-absent@w*2\n"},
	{"a definition without instances", alive + `
CustomResourceDefinition/widgets.example.com deleted=3 finalizers=customresourcecleanup.apiextensions.k8s.io`,
		"CustomResourceDefinition/widgets.example.com: Progressing crd-instances@widgets.example.com*1\n"},
	{"a namespace whose conditions hide a pod", alive + node + `
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceContentRemaining","status":"False"}]}}
Pod/s/p deleted=300 grace=10 {"spec":{"nodeName":"n"},"status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}}`,
		"Namespace/s: Stuck pod-kubelet-kill@p*2\nPod/s/p: Stuck pod-kubelet-kill@p*2\n"},
	{"a namespace in progress", alive + `
Namespace/s deleted=3 {"spec":{"finalizers":["kubernetes"]}}
ConfigMap/s/a`, "Namespace/s: Progressing ns-content@s*1\n"},
	{"content that cannot be deleted", alive + `
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionContentFailure","status":"True","reason":"ContentDeletionFailed","message":"denied","lastTransitionTime":"2026-01-02T03:00:00Z"}]}}
ConfigMap/s/a`, "Namespace/s: Stuck ns-content-failure@s*1\n"},
	{"finalizers of others on a namespace", alive + `
Namespace/s deleted=300 finalizers=example.com/m {"spec":{"finalizers":["example.com/s"]}}`,
		"Namespace/s: Stuck ns-meta-finalizers@s*1 ns-spec-finalizers@s*1\n"},
	{"an API that does not answer", alive + `
APIService/v1.m.example.com {"spec":{"service":{"name":"x","namespace":"y"}},"status":{"conditions":[{"type":"Available","status":"False","reason":"ServiceNotFound","message":"gone"}]}}
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionDiscoveryFailure","status":"True","reason":"DiscoveryFailed","message":"m"}]}}`,
		"Namespace/s: Stuck ns-discovery@v1.m.example.com*1\n"},
	{"pods", alive + node + `
Node/dead {"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}
Pod/s/grace deleted=5 grace=30 {"spec":{"nodeName":"n"}}
Pod/s/gone deleted=60 grace=30 {"spec":{"nodeName":"none"}}
Pod/s/mirror deleted=60 grace=10 {"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"n"}}
Pod/s/silent deleted=60 grace=10 {"spec":{"nodeName":"dead"}}
Pod/s/soon deleted=20 grace=10 {"spec":{"nodeName":"n"},"status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}}
Pod/s/volumes deleted=300 grace=10 {"spec":{"nodeName":"n"},"status":{"containerStatuses":[{"name":"c","state":{"terminated":{}}}]}}`,
		`Pod/s/gone: Progressing pod-node-gone@none*1
Pod/s/grace: Progressing pod-grace@grace*1
Pod/s/mirror: Stuck pod-mirror@mirror*1
Pod/s/silent: Stuck pod-node-notready@dead*1
Pod/s/soon: Progressing pod-grace@soon*1
Pod/s/volumes: Stuck pod-volumes@volumes*1
`},
	{"a node that cannot be read", alive + `
unreadable nodes
Pod/s/p deleted=60 grace=10 {"spec":{"nodeName":"n"}}`, "Pod/s/p: Unknown unread@p*1\n"},
	{"a volume, its claim and a pod", alive + `
PersistentVolume/v deleted=60 finalizers=kubernetes.io/pv-protection {"spec":{"claimRef":{"namespace":"s","name":"c"}},"status":{"phase":"Bound"}}
PersistentVolumeClaim/s/c deleted=60 finalizers=kubernetes.io/pvc-protection
Pod/s/p {"spec":{"nodeName":"n","volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"c"}}]}}
Pod/s/q {"spec":{"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"c"}}]}}`,
		"PersistentVolume/v: Stuck pvc-in-use@p*2\nPersistentVolumeClaim/s/c: Stuck pvc-in-use@p*2\n"},
}

func TestExplain(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, parse(t, c.cluster).explained(t)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
