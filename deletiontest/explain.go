// SPDX-License-Identifier: Apache-2.0

package deletiontest

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// report explains an object as it is when the cluster has been at rest for long: that a controller may be late is no
// excuse in a test.
func (k *Kit) report(object metav1.Object) *explain.Report {
	k.t.Helper()
	ctx := k.t.Context()
	reader, err := cluster.NewReader(ctx, k.config, cluster.NewStats(), cluster.Options{})
	if err != nil {
		k.t.Fatal(err)
	}
	snapshot, err := reader.Snapshot(ctx, cluster.Scope{})
	if err != nil {
		k.t.Fatal(err)
	}
	g, now := graph.New(snapshot), reader.Now(ctx).Add(controllers.Settling+time.Second)
	var deciding []graph.Object
	for n := range g.Nodes() {
		if !n.Virtual() && (n.Resource().IsPod() || n.Resource().IsCRD()) {
			deciding = append(deciding, *n.Object())
		}
	}
	snapshot.Facts = reader.Facts(ctx, snapshot, deciding)
	simulated := simulator.New(snapshot, simulator.Options{Now: now, Server: reader.Server(ctx)})
	outcome, err := gc.New(simulated, g, gc.Options{SeesAll: true}).Collect(ctx, "")
	if err != nil {
		k.t.Fatal(err)
	}
	return explain.Explain(ctx, explain.Input{
		Graph: g, Outcomes: outcome.Outcomes, Cluster: managed{reader, now}, Now: now, Server: reader.Server(ctx), Events: reader.Events,
		Kubectl: "kubectl", Plugin: "kubectl gc",
	}, []types.UID{object.GetUID()})
}

// managed is a cluster in which kube-controller-manager works: a Kit stands for it.
type managed struct {
	*cluster.Reader
	now time.Time
}

// Read implements explain.Cluster.
func (c managed) Read(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	if resource == evidence.Leases && namespace == metav1.NamespaceSystem && name == "kube-controller-manager" {
		renewed := map[string]any{"holderIdentity": manager, "leaseDurationSeconds": int64(15), "renewTime": c.now.Format(time.RFC3339Nano)}
		return &unstructured.Unstructured{Object: map[string]any{"spec": renewed}}, nil
	}
	o, err := c.Reader.Read(ctx, resource, namespace, name)
	if err == nil && resource == evidence.Namespaces && o.GetDeletionTimestamp() != nil { // a Kit does not say how far it is
		began := map[string]any{"type": "NamespaceDeletionContentFailure", "status": "False"}
		err = unstructured.SetNestedSlice(o.Object, []any{began}, "status", "conditions")
	}
	return o, err
}

// write is a report as text: the verdict, each cause with its evidence, and the way to it.
func write(report *explain.Report) string {
	var text strings.Builder
	for _, o := range report.Objects {
		fmt.Fprintf(&text, "%s: %s\n", o.Object, o.Verdict)
	}
	for _, c := range report.Causes {
		fmt.Fprintf(&text, "  %s: %s [%s]\n", c.Object, c.Summary, c.ID)
		for _, e := range c.Evidence {
			fmt.Fprintf(&text, "    %s: %s\n", strings.TrimSpace(e.Source.String()+" "+e.Path), e.Value)
		}
	}
	return strings.TrimSuffix(text.String(), "\n")
}
