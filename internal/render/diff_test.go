// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/diff"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

const evil = `<script>alert(1)</script>"'&`

// evilReport has HTML in every text.
func evilReport() (render.DiffSide, *diff.Report) {
	resource := &graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "things"}, Kind: evil, Namespaced: true}
	object := graph.Object{Resource: resource, Namespace: evil, Name: evil, UID: "1", Finalizers: []string{"a"}}
	before, after := &graph.Snapshot{}, &graph.Snapshot{}
	before.Add(object)
	object.Finalizers = []string{evil}
	object.OwnerReferences = []metav1.OwnerReference{{Kind: evil, Name: evil, UID: "2"}}
	after.Add(object)
	return render.NewDiffSide(evil, time.Unix(0, 0), after), diff.Compare(before, after, nil)
}

// Nothing in a page is taken for markup, and it needs nothing from elsewhere.
func TestDiffHTML(t *testing.T) {
	side, report := evilReport()
	var page strings.Builder
	if err := render.DiffHTML(&page, nil, side, side, report); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "http://", "https://", "src=", `"'&`} {
		if strings.Contains(page.String(), bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	if n := strings.Count(page.String(), "&lt;script&gt;"); n < 8 {
		t.Errorf("%d of the texts are there:\n%s", n, page.String())
	}
}

func TestDiffText(t *testing.T) {
	side, report := evilReport()
	var text strings.Builder
	if err := render.DiffText(&text, render.Style{}, nil, side, side, report); err != nil {
		t.Fatal(err)
	}
	want := "~ " + evil + "/" + evil + "  owner +" + evil + "/" + evil + "; finalizer +" + evil + "; finalizer -a\n"
	if !strings.Contains(text.String(), want) {
		t.Errorf("%s is missing in\n%s", want, text.String())
	}
}
