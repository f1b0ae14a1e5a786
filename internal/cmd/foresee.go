// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// orderSafe is the value of --order with which what needs a controller that goes is
// deleted before that.
const orderSafe = "safe"

// orders are the values of --order.
var orders = []string{"default", orderSafe}

// alongside has the workloads read along with the scope if they will be asked for, because
// an object in deletion that concerns the command has a finalizer of somebody who is looked
// for among them.
func alongside(scope *cluster.Scope, w *controllers.Workloads, concerns func(*graph.Object) bool) {
	go finalizers.Builtin() // which takes a while the first time, and now the server is waited for
	scope.Terminating = func(o *graph.Object) {
		if concerns(o) && foresight.Foreign(o.Finalizers) {
			w.Want()
		}
	}
	scope.Whole = controllers.WorkloadTypes()
	scope.Taker = func(resource schema.GroupVersionResource) cluster.Taker {
		if t := w.Taking(resource); t != nil {
			return t
		}
		return nil
	}
}

// wholeOf returns the graph of what was read if that is the cluster with all labels, as far
// as the user may read it, and nil if not. What is read with all labels need not be read
// again for foresight, so all that is read of the cluster is.
func wholeOf(scope cluster.Scope, g *graph.Graph) *graph.Graph {
	if scope.Labels == nil && (scope.Namespace == "" || scope.Widened && len(g.Snapshot().Outside()) == 0) {
		return g
	}
	return nil
}

// preview is a plan as it is shown.
func (t *telling) preview(p *change.Plan) *render.Preview {
	return &render.Preview{What: t.what, Where: t.where, Report: p.Report, Forecast: p.Forecast, Safe: t.order == orderSafe,
		Instead: t.instead(p.Forecast)}
}

// instead is the command with which nothing of a plan gets stuck that would not have
// to, if there is one.
func (d *deletionOptions) instead(s *foresight.Forecast) string {
	if s == nil || d.order == orderSafe || !s.Helps() {
		return ""
	}
	return d.globals.again([]string{"order"}, "--order="+orderSafe)
}
