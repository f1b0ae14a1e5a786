// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What an APIService forwards is not local, and neither is what cannot be seen.
func TestLocal(t *testing.T) {
	unread := errors.New("forbidden")
	service := map[string]any{"namespace": "attic", "name": "attic"}
	for name, test := range map[string]struct {
		group string
		spec  any
		err   error
		local bool
	}{
		"built in":                    {"apps", nil, unread, true},
		"core":                        {"", nil, unread, true},
		"of a definition":             {"example.com", map[string]any{"group": "example.com"}, nil, true},
		"of a definition, explicitly": {"example.com", map[string]any{"service": nil}, nil, true},
		"aggregated":                  {"example.com", map[string]any{"service": service}, nil, false},
		"aggregated, without a name":  {"metrics.k8s.io", map[string]any{"service": map[string]any{}}, nil, false},
		"not to be seen":              {"example.com", nil, unread, false},
		"not to be understood":        {"example.com", "?", nil, false},
	} {
		local, err := graph.Local(schema.GroupVersion{Group: test.group, Version: "v1"}, func(registered string) (*unstructured.Unstructured, error) {
			if want := "v1." + test.group; registered != want {
				t.Errorf("%s: read %s, want %s", name, registered, want)
			}
			return &unstructured.Unstructured{Object: map[string]any{"spec": test.spec}}, test.err
		})
		if local != test.local || test.err != nil && !local && !errors.Is(err, test.err) {
			t.Errorf("%s: got %t, %v", name, local, err)
		}
	}
}
