// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// TestAfterwards: refusals of what others delete count, and what says nothing of the
// deletion does not.
func TestAfterwards(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	denied := apierrors.NewForbidden(pods, "p", errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: keep it"))
	mine := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `pods "p" is forbidden: User "ann" cannot delete resource "pods" in API group "" in the namespace "s"`}}
	gone := apierrors.NewNotFound(pods, "p")
	for _, test := range []struct {
		name      string
		deletions int
		answers   []error
		want      string
	}{
		{"none", 0, nil, ""},
		{"one accepted", 1, []error{nil}, "\nThe namespace controller then deletes one object; the server would accept all of these deletes from you\n"},
		{"all accepted", 2, []error{nil, nil}, "\nThe namespace controller then deletes 2 objects; the server would accept all of these deletes from you\n"},
		{"no right", 2, []error{mine, mine}, "\nThe namespace controller then deletes 2 objects; the server does not say whether it would accept them\n"},
		{
			"some refused, some gone, some not asked about", 5, []error{nil, denied, gone, mine},
			"\nThe namespace controller then deletes 5 objects; of the 2 about which it was asked, the server would refuse 1 to you\n" +
				"  pod/1 -n s: refused: pods \"p\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: keep it\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := NewAfterwards(test.deletions, podsNamed(len(test.answers)), test.answers)
			if got := afterwardsText(a); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	many := make([]error, maxRefused+3)
	for i := range many {
		many[i] = denied
	}
	text := afterwardsText(NewAfterwards(len(many), podsNamed(len(many)), many))
	if !strings.HasSuffix(text, "  and 3 more\n") || strings.Count(text, "refused: ") != maxRefused {
		t.Errorf("of many refusals: %s", text)
	}
}

func afterwardsText(a *Afterwards) string {
	var text strings.Builder
	a.write(&text, Style{})
	return text.String()
}

// podsNamed makes pods in the namespace s, with numbers for names.
func podsNamed(n int) []graph.Object {
	pod := &graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod", Namespaced: true}
	var objects []graph.Object
	for i := range n {
		objects = append(objects, graph.Object{Resource: pod, Namespace: "s", Name: fmt.Sprint(i)})
	}
	return objects
}
