// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Status is what kubectl get prints of an object's state.
type Status struct {
	Ready  string
	Status string
}

// withoutStatus are built-in resources that have no state to show.
var withoutStatus = map[string]bool{
	"configmaps": true, "secrets": true, "serviceaccounts": true, "endpoints": true, "endpointslices.discovery.k8s.io": true,
	"controllerrevisions.apps": true, "leases.coordination.k8s.io": true, "roles.rbac.authorization.k8s.io": true,
	"rolebindings.rbac.authorization.k8s.io": true, "clusterroles.rbac.authorization.k8s.io": true,
	"clusterrolebindings.rbac.authorization.k8s.io": true, "podtemplates": true, "limitranges": true,
}

// Statuses asks the server for the printed form of each object, a few at a
// time. The objects' content does not cross the wire, except for custom
// resources, whose conditions may be needed. It returns what it could learn
// and the first error by resource for the rest.
func (r *Reader) Statuses(ctx context.Context, objects []*graph.Object) (map[types.UID]Status, map[string]error) {
	statuses, failures := map[types.UID]Status{}, map[string]error{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(getsInFlight)
	for _, o := range objects {
		resource := o.Resource.GroupResource().String()
		if withoutStatus[resource] {
			continue
		}
		group.Go(func() error {
			status, err := r.status(ctx, o)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				statuses[o.UID] = status
			} else if failures[resource] == nil && !answer.NoObject(err) {
				failures[resource] = err
			}
			return nil
		})
	}
	_ = group.Wait() // failures are collected by resource
	return statuses, failures
}

// status reads one object as a table.
func (r *Reader) status(ctx context.Context, o *graph.Object) (Status, error) {
	r.stats.tables.Add(1)
	include := metav1.IncludeMetadata
	if !scheme.Scheme.IsGroupRegistered(o.Resource.Group) {
		include = metav1.IncludeObject
	}
	data, err := raw(ctx, r.rest.Get().AbsPath(o.Resource.Path(o.Namespace, o.Name)...).
		Param("includeObject", string(include)).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"))
	if err != nil {
		return Status{}, err
	}
	var table metav1.Table
	if err := json.Unmarshal(data, &table); err != nil {
		return Status{}, fmt.Errorf("reading the table of %s: %w", o.Identity(), err)
	}
	if table.Kind != "Table" { // an old aggregated server that knows no tables
		return rawConditionStatus(data), nil
	}
	if len(table.Rows) == 0 {
		return Status{}, nil
	}
	status := rowStatus(&table)
	if status == (Status{}) {
		status = rawConditionStatus(table.Rows[0].Object.Raw)
	}
	return status, nil
}

// raw sends a request and returns the body, or the server's error in full.
func raw(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// rowStatus takes the columns that tell readiness and state from a table's
// first row.
func rowStatus(table *metav1.Table) Status {
	cells := map[string]string{}
	for i, column := range table.ColumnDefinitions {
		if i < len(table.Rows[0].Cells) && table.Rows[0].Cells[i] != nil {
			cells[strings.ToLower(column.Name)] = fmt.Sprint(table.Rows[0].Cells[i])
		}
	}
	status := Status{Ready: cells["ready"], Status: cells["status"]}
	if desired, ok := cells["desired"]; ok && status.Ready != "" && !strings.Contains(status.Ready, "/") {
		status.Ready += "/" + desired
	}
	if completions, ok := cells["completions"]; ok && status.Ready == "" {
		status.Ready = completions
	}
	if phase, ok := cells["phase"]; ok && status.Status == "" {
		status.Status = phase
	}
	return status
}

// rawConditionStatus is conditionStatus of an object's JSON.
func rawConditionStatus(raw []byte) Status {
	var object map[string]any
	_ = json.Unmarshal(raw, &object) // what is no object has no conditions
	return conditionStatus(object)
}

// conditionStatus takes readiness from an object's Ready or Available
// condition.
func conditionStatus(object map[string]any) Status {
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	found := map[string]Status{}
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok {
			kind, _ := condition["type"].(string)
			ready, _ := condition["status"].(string)
			reason, _ := condition["reason"].(string)
			found[kind] = Status{Ready: ready, Status: reason}
		}
	}
	if status, ok := found["Ready"]; ok {
		return status
	}
	return found["Available"]
}
