// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// MaxShown is the number of objects that a cause names; more are counted.
const MaxShown = 5

// Decode reads an object into a struct with JSON tags.
func Decode(o *unstructured.Unstructured, into any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into) == nil
}

// IdentityOf names an object that was read whole.
func IdentityOf(resource schema.GroupVersionResource, kind string, o *unstructured.Unstructured) graph.Identity {
	return graph.Identity{
		Resource:  graph.Resource{GroupVersionResource: resource, Kind: kind, Namespaced: o.GetNamespace() != ""},
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
	}
}

// PodEnded reports whether a pod has come to its end.
func PodEnded(pod *unstructured.Unstructured) bool {
	phase := Nested(pod, "status", "phase")
	return phase == "Succeeded" || phase == "Failed"
}

// SetsFinalizer reports whether managed fields include the finalizer.
func SetsFinalizer(fields []byte, finalizer string) bool {
	var owned struct {
		Metadata struct {
			Finalizers map[string]json.RawMessage `json:"f:finalizers"`
		} `json:"f:metadata"`
	}
	if json.Unmarshal(fields, &owned) != nil {
		return false
	}
	for key := range owned.Metadata.Finalizers {
		value, isValue := strings.CutPrefix(key, "v:")
		var name string
		if isValue && json.Unmarshal([]byte(value), &name) == nil && name == finalizer {
			return true
		}
	}
	return false
}

// Requested returns when the object's deletion was asked for, as RequestedBy does.
func Requested(o *graph.Object) time.Time {
	return RequestedBy(o.DeletionTimestamp, o.DeletionGracePeriodSeconds)
}

// RequestedBy returns when a deletion was asked for, by what the object has of it: the deletion timestamp of a pod is the
// end of its grace period. It is zero for what is not being deleted.
func RequestedBy(deletion *metav1.Time, grace *int64) time.Time {
	switch {
	case deletion == nil:
		return time.Time{}
	case grace == nil:
		return deletion.Time
	}
	return deletion.Add(-time.Duration(*grace) * time.Second)
}

// Field is a fact about a node.
func Field(n graph.Node, path string, value any) Fact {
	return At(n.Identity(), path, value)
}

// Latest returns the later of two times.
func Latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Number says how many there are of something.
func Number(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "s") { // as Ingress
		one += "e"
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Some says how many there are of something, of which there is at least one.
func Some(n int, one string) string {
	if n == 1 {
		return one
	}
	return Number(n, one)
}

// Lists reports whether a list of a rule, of RBAC or of admission, has the word or
// stands for all.
func Lists(list []string, word string) bool {
	return slices.Contains(list, word) || slices.Contains(list, "*")
}
