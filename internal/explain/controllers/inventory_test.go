// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
)

// lister has a Deployment and a StatefulSet, and may not read DaemonSets.
type lister struct {
	evidence.Cluster
	read []string
}

var listed = map[schema.GroupVersionResource]runtime.Object{
	deployments:           &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "listed-deployment"}},
	evidence.StatefulSets: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "listed-statefulset"}},
}

// EachTyped implements evidence.Cluster.
func (l *lister) EachTyped(_ context.Context, resource schema.GroupVersionResource, _, _ string, begin func(), yield func(runtime.Object) error) error {
	l.read = append(l.read, resource.Resource)
	begin()
	if o, may := listed[resource]; may {
		return yield(o)
	}
	return errors.New("forbidden")
}

// A list that somebody else read to its end is not read again; one that broke off is, and so
// is every list when nobody said beforehand that it would be asked for.
func TestWorkloadsAreReadOnce(t *testing.T) {
	taken := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "taken-deployment"}}
	for _, test := range []struct {
		name                string
		wanted, toTheEnd    bool
		wantRead, wantNames string
	}{
		{"nobody said so", false, true, "deployments statefulsets daemonsets", "listed-deployment listed-statefulset"},
		{"to its end", true, true, "statefulsets daemonsets", "taken-deployment listed-statefulset"},
		{"broken off", true, false, "deployments statefulsets daemonsets", "listed-deployment listed-statefulset"},
	} {
		cluster := &lister{}
		w := NewWorkloads(t.Context(), cluster)
		if test.wanted {
			w.Want()
		}
		if other := w.Taking(cronJobs); other != nil {
			t.Errorf("%s: CronJobs are taken", test.name)
		}
		if taking := w.Taking(deployments); taking != nil {
			taking.Begin()
			_ = taking.Take(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "of an answer that broke off"}})
			taking.Begin()
			_ = taking.Take(taken)
			if test.toTheEnd {
				taking.Complete()
			}
		}
		var names, failed []string
		for i, list := range w.all() {
			for _, item := range list.items {
				names = append(names, item.name)
			}
			if list.err != nil {
				failed = append(failed, workloadKinds[i].Resource)
			}
		}
		if got := strings.Join(names, " "); got != test.wantNames || !slices.Equal(failed, []string{"daemonsets"}) {
			t.Errorf("%s: %s; %s could not be read", test.name, got, failed)
		}
		if got := strings.Join(cluster.read, " "); got != test.wantRead {
			t.Errorf("%s: read %s", test.name, got)
		}
	}
}
