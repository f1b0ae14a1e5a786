// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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

// Statuses asks the server for the printed form of objects: a few at a time, or in a list where many are of one type in one
// namespace. The objects' content does not cross the wire, except for custom
// resources, whose conditions may be needed. It returns what it could learn
// and the first error by resource for the rest.
func (r *Reader) Statuses(ctx context.Context, objects []*graph.Object) (map[types.UID]Status, map[string]error) {
	statuses, failures := map[types.UID]Status{}, map[string]error{}
	alike := map[graph.Identity][]*graph.Object{}
	for _, o := range objects {
		if !withoutStatus[o.Resource.GroupResource().String()] {
			of := graph.Identity{Resource: *o.Resource, Namespace: o.Namespace}
			alike[of] = append(alike[of], o)
		}
	}
	var mu sync.Mutex
	var lists, gets errgroup.Group
	lists.SetLimit(listsInFlight)
	gets.SetLimit(getsInFlight)
	var single []*graph.Object
	for of, objects := range alike {
		if len(objects) <= fewSingles {
			single = append(single, objects...)
			continue
		}
		lists.Go(func() error {
			found, read := r.statusesIn(ctx, of, objects)
			mu.Lock()
			defer mu.Unlock()
			if maps.Copy(statuses, found); !read {
				single = append(single, objects...)
			}
			return nil
		})
	}
	_ = lists.Wait() // what could not be listed is read singly
	for _, o := range single {
		gets.Go(func() error {
			status, err := r.status(ctx, o)
			mu.Lock()
			defer mu.Unlock()
			if resource := o.Resource.GroupResource().String(); err == nil {
				statuses[o.UID] = status
			} else if failures[resource] == nil && !answer.NoObject(err) {
				failures[resource] = err
			}
			return nil
		})
	}
	_ = gets.Wait() // failures are collected by resource
	return statuses, failures
}

// statusesIn takes the states of objects from a list of their type and namespace. It is false if that has too many others, or
// cannot be read.
func (r *Reader) statusesIn(ctx context.Context, of graph.Identity, objects []*graph.Object) (map[types.UID]Status, bool) {
	if r.isLong(ctx, &listing{resource: &of.Resource, namespace: of.Namespace}, perSingle*len(objects)) {
		return nil, false
	}
	wanted, found := map[types.UID]bool{}, map[types.UID]Status{}
	for _, o := range objects {
		wanted[o.UID] = true
	}
	_, err := r.eachObject(ctx, &of.Resource, of.Namespace, included(&of.Resource), func() {},
		func(table *metav1.Table, object json.RawMessage) error {
			var o metav1.PartialObjectMetadata
			if err := json.Unmarshal(object, &o); err != nil || !wanted[o.UID] {
				return err
			}
			found[o.UID] = statusOfRow(table, object)
			return nil
		})
	return found, err == nil
}

// included is how much of an object is needed to tell its state beside the columns of its type.
func included(resource *graph.Resource) metav1.IncludeObjectPolicy {
	if scheme.Scheme.IsGroupRegistered(resource.Group) {
		return metav1.IncludeMetadata
	}
	return metav1.IncludeObject
}

// statusOfRow is what the first row of a table says, or else the conditions of its object. table is nil for an old aggregated
// server that knows no tables.
func statusOfRow(table *metav1.Table, object []byte) Status {
	var status Status
	if table != nil {
		status = rowStatus(table)
	}
	if status == (Status{}) {
		status = rawConditionStatus(object)
	}
	return status
}

// status reads one object as a table.
func (r *Reader) status(ctx context.Context, o *graph.Object) (Status, error) {
	r.stats.tables.Add(1)
	data, err := raw(ctx, r.rest.Get().AbsPath(o.Resource.Path(o.Namespace, o.Name)...).
		Param("includeObject", string(included(o.Resource))).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"))
	if err != nil {
		return Status{}, err
	}
	var table metav1.Table
	if err := json.Unmarshal(data, &table); err != nil {
		return Status{}, fmt.Errorf("reading the table of %s: %w", o.Identity(), err)
	}
	if table.Kind != "Table" { // an old aggregated server that knows no tables
		return statusOfRow(nil, data), nil
	}
	if len(table.Rows) == 0 {
		return Status{}, nil
	}
	return statusOfRow(&table, table.Rows[0].Object.Raw), nil
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
