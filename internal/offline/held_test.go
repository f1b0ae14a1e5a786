// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestPodFields: pods come to a file in Go's type, which has all that is held of them but what internal/cluster looks for (isNewer).
func TestPodFields(t *testing.T) {
	missing := maps.Clone(podFields)
	for i := range reflect.TypeFor[corev1.PodSpec]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[corev1.PodSpec]().Field(i).Tag.Get("json"), ",")
		delete(missing, name)
	}
	if diff := cmp.Diff([]string{"schedulingGroup"}, slices.Collect(maps.Keys(missing))); diff != "" {
		t.Error(diff)
	}
}
