// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// What a workload keeps of its selector as a text chooses the same pods, and neither a missing
// selector nor an empty one chooses any.
func TestWorkloadChoosesItsPods(t *testing.T) {
	exists := []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}}
	in := []metav1.LabelSelectorRequirement{
		{Key: "app.kubernetes.io/name", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", ""}},
		{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist},
	}
	for _, test := range []struct {
		name     string
		selector *metav1.LabelSelector
		pod      labels.Set
		want     bool
	}{
		{"none", nil, labels.Set{"app": "web"}, false},
		{"empty", &metav1.LabelSelector{}, labels.Set{"app": "web"}, false},
		{"invalid", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a b"}}, labels.Set{"app": "a b"}, false},
		{"a label", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, labels.Set{"app": "web", "x": "y"}, true},
		{"another value", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, labels.Set{"app": "db"}, false},
		{"an empty value", &metav1.LabelSelector{MatchLabels: map[string]string{"app": ""}}, labels.Set{"app": ""}, true},
		{"an empty value, and none", &metav1.LabelSelector{MatchLabels: map[string]string{"app": ""}}, labels.Set{}, false},
		{"exists", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}, MatchExpressions: exists}, labels.Set{"app": "web"}, false},
		{"in", &metav1.LabelSelector{MatchExpressions: in}, labels.Set{"app.kubernetes.io/name": ""}, true},
		{"not in", &metav1.LabelSelector{MatchExpressions: in}, labels.Set{"app.kubernetes.io/name": "web", "tier": "front"}, false},
	} {
		d := &appsv1.Deployment{}
		d.Spec.Selector, d.Spec.Template.Labels = test.selector, test.pod
		l := newWorkload(&workloadKinds[0], d, newInterner())
		if got := l.chooses().Matches(test.pod); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
		if got := l.labels(); test.name != "invalid" && !labels.Equals(got, test.pod) {
			t.Errorf("%s: the pods have %v, not %v", test.name, got, test.pod)
		}
	}
}
