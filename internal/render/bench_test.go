// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// BenchmarkRender writes ReplicaSets with nine Pods each in every format.
func BenchmarkRender(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		s := newSnapshot()
		for i := range n {
			set := fmt.Sprintf("web-%06d", i/10)
			o := graph.Object{Resource: resources["ReplicaSet"], Namespace: "shop", Name: set, UID: types.UID(set), CreationTimestamp: metav1.Unix(1e9, 0)}
			if i%10 > 0 {
				o.Resource, o.Name, o.UID = resources["Pod"], fmt.Sprintf("%s-%d", set, i), types.UID(fmt.Sprint(i))
				o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set, UID: types.UID(set)}}
			}
			s.Add(o)
		}
		sel := everything(graph.New(s))
		forest := sel.Forest()
		tree := render.Tree{Now: time.Unix(1e9, 0)}
		for name, write := range map[string]func() error{
			"tree":     func() error { return tree.Write(io.Discard, forest) },
			"names":    func() error { return render.Names(io.Discard, forest) },
			"document": func() error { render.NewGraph(s, forest); return nil },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := write(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
