// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/kubectl-gc/kubectl-gc/test/chromium"
)

var siteDir = flag.String("site", "", "directory of the pages that make site builds, to be searched in a browser")

// TestSite searches the built documentation as a reader does, in a browser that
// can reach nothing but the site.
func TestSite(t *testing.T) {
	if *siteDir == "" {
		t.Skip("make site builds the pages, and runs this test with -site")
	}
	server := httptest.NewServer(http.FileServer(http.FS(os.DirFS(*siteDir))))
	defer server.Close()
	page := chromium.Start(t)
	page.Size(1280, 900)
	page.Go(server.URL+"/index.html", `document.querySelector('.VPNavBarSearch button') !== null`)
	// The button works once the page's program has started.
	page.Await(`document.querySelector('.VPNavBarSearch button').click(), document.querySelector('.VPLocalSearchBox input') !== null`)
	page.Type("fin-absent")
	const results = `[...document.querySelectorAll('.VPLocalSearchBox .result')].map(r => r.href).join(' ')`
	page.Await(results + `.includes('explain-causes.html')`)
	if problems := page.Problems(); len(problems) > 0 {
		t.Errorf("the page complains: %v", problems)
	}
	for _, request := range page.Requests() {
		if !strings.HasPrefix(request, server.URL) && !strings.HasPrefix(request, "data:") && !strings.HasPrefix(request, "about:") {
			t.Errorf("the page asks for %s", request)
		}
	}
}
