// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
)

func TestMarks(t *testing.T) {
	for _, c := range []struct {
		labels, annotations map[string]string
		want                string
	}{
		{nil, map[string]string{"argocd.argoproj.io/tracking-id": "team_shop:apps/Deployment:s/d"}, "[Application/team/shop]"},
		{nil, map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:s/other"}, "[]"},
		{nil, map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:t/d"}, "[]"},
		{map[string]string{"app.kubernetes.io/instance": "web"}, map[string]string{"argocd.argoproj.io/tracking-id": "shop:x"}, "[Application/shop Application/web]"},
		{map[string]string{"kustomize.toolkit.fluxcd.io/name": "app", "kustomize.toolkit.fluxcd.io/namespace": "flux"}, nil, "[Kustomization/flux/app]"},
		{map[string]string{"helm.toolkit.fluxcd.io/name": "r", "helm.toolkit.fluxcd.io/namespace": "s"},
			map[string]string{"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "s"}, "[HelmRelease/s/r Release/s/r]"},
		{map[string]string{"olm.owner": "op.v1", "olm.owner.namespace": "ops", "olm.owner.kind": "ClusterServiceVersion"}, nil, "[ClusterServiceVersion/ops/op.v1]"},
		{map[string]string{"olm.owner": "ops", "olm.owner.namespace": "ops", "olm.owner.kind": "OperatorGroup"}, nil, "[]"},
		{map[string]string{"applyset.kubernetes.io/part-of": "applyset-x"}, nil, "[ApplySet/applyset-x]"},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "s", "name": "d"}}}
		o.SetLabels(c.labels)
		o.SetAnnotations(c.annotations)
		for _, all := range []map[string]string{c.labels, c.annotations} {
			for key := range all {
				if usual := key == "app.kubernetes.io/instance"; !usual && !slices.ContainsFunc(delivery.Keys(), func(in string) bool { return strings.Contains(key, in) }) {
					t.Errorf("%s: none of the keys is in it", key)
				}
			}
		}
		var all []string
		for _, m := range delivery.Marks(o) {
			all = append(all, strings.ReplaceAll(m.Kind+"/"+m.Namespace+"/"+m.Name, "//", "/"))
		}
		if got := fmt.Sprint(all); got != c.want {
			t.Errorf("%v %v: %s, want %s", c.labels, c.annotations, got, c.want)
		}
	}
}
