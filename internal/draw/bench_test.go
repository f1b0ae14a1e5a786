// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/draw"
)

// BenchmarkDraw makes pictures of a namespace, every object of it, and writes
// them.
func BenchmarkDraw(b *testing.B) {
	for _, n := range []int{1_000, 5_000, 20_000} {
		sel := large(n).selection()
		for _, format := range []struct {
			name  string
			write func(io.Writer, *draw.Picture) error
		}{{"dot", draw.DOT}, {"svg", draw.SVG}, {"html", draw.HTML}, {"mermaid", draw.Mermaid}, {"graphml", draw.GraphML}} {
			b.Run(fmt.Sprintf("%s/%d", format.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := format.write(io.Discard, draw.Ownership(sel)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("summary/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				draw.Ownership(sel).Summary()
			}
		})
	}
}
