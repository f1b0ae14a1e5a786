// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/internal/draw"
	"github.com/kubectl-gc/kubectl-gc/internal/scenarios"
)

var formats = []struct {
	extension string
	write     func(io.Writer, *draw.Picture) error
}{{"dot", draw.DOT}, {"svg", draw.SVG}, {"html", draw.HTML}, {"mmd", draw.Mermaid}, {"graphml", draw.GraphML}}

// TestShop holds the pictures of the shop to those in testdata, which can be
// looked at, and makes each of them twice.
func TestShop(t *testing.T) {
	for _, format := range formats {
		got := text(t, format.write, shop().picture())
		if again := text(t, format.write, shop().picture()); !bytes.Equal(got, again) {
			t.Errorf("%s: two pictures of the same differ", format.extension)
		}
		if format.extension == "html" {
			continue // the page and its script are read as they stand
		}
		scenarios.Golden(t, filepath.Join("testdata", "shop."+format.extension), string(got))
	}
}

var errFull = errors.New("disk full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// TestWriteErrors: whoever writes learns that the writer failed. An empty picture
// can be drawn.
func TestWriteErrors(t *testing.T) {
	for _, format := range formats {
		if err := format.write(fullDisk{}, shop().picture()); !errors.Is(err, errFull) {
			t.Errorf("%s: got %v", format.extension, err)
		}
		if len(text(t, format.write, &draw.Picture{Name: "full"})) == 0 {
			t.Errorf("%s: nothing is written for nothing", format.extension)
		}
	}
}
