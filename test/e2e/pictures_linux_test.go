// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/test/chromium"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

var pictures = flag.String("pictures", "", "directory to write the pictures of the documentation into")

func init() { checkPictures = drawPictures }

// drawPictures opens the pages of the shop in a browser: the graph, what a
// deletion takes with it, and what holds what was deleted. They draw what they
// should, complain of nothing and ask for nothing. With -pictures they become the
// pictures of the documentation.
func drawPictures(t *testing.T, cp *controlplane.ControlPlane) {
	p := chromium.Start(t)
	p.Size(1280, 620)
	dir := t.TempDir()
	if *pictures != "" {
		dir = *pictures
		write(t, filepath.Join(dir, "shop.svg"), run(t, cp, 0, "graph -n shop -o svg"))
	}
	for _, test := range []struct {
		name, args string
		code       int
		objects    []string
		click      string
		// light and dark: the page as it is opened, or with the details of the object
		// that was clicked, is in the documentation.
		light, dark bool
	}{
		{
			"graph", "graph -n shop -o html", 0,
			[]string{"Cart/shop/basket, in foreground deletion", "ConfigMap/shop/lost, terminating · Dangling(Absent)", "Coupon/shop/spring, virtual", "Deployment/shop/web"},
			"ConfigMap/shop/lost", true, true,
		},
		{
			"delete", "delete -n shop deployment/web --cascade=orphan --dry-run -o html", 0,
			[]string{"Deployment/shop/web, would be deleted", "Secret/shop/session, would be orphaned"},
			"Secret/shop/session", true, false,
		},
		{
			"explain-stuck", "explain-stuck -n shop -o html", 2,
			[]string{"Cart/shop/basket, fin-absent", "ConfigMap/shop/invoice, fin-absent", "ConfigMap/shop/lost, fin-absent"},
			"ConfigMap/shop/invoice", false, true,
		},
	} {
		file := filepath.Join(t.TempDir(), test.name+".html")
		write(t, file, run(t, cp, test.code, test.args))
		p.Open(file, `document.body && document.body.dataset.ready === "1"`)
		var drawn []string
		p.Eval(`[...document.querySelectorAll("[role=treeitem]")].map((g) => g.getAttribute("aria-label"))`, &drawn)
		for _, want := range test.objects {
			if !strings.Contains("\n"+strings.Join(drawn, "\n")+"\n", "\n"+want+"\n") {
				t.Errorf("%s: %q is not drawn: %q", test.name, want, drawn)
			}
		}
		if test.light {
			write(t, filepath.Join(dir, test.name+".png"), p.Screenshot())
		}
		p.Click(`[aria-label^="` + test.click + `"]`)
		p.Await(`!document.querySelector("#panel").hidden`)
		p.Dark(test.dark)
		if test.dark {
			write(t, filepath.Join(dir, test.name+"-dark.png"), p.Screenshot())
		}
		p.Dark(false)
	}
	for _, url := range p.Requests() {
		if !strings.HasPrefix(url, "file://"+os.TempDir()) {
			t.Errorf("a page asked for %s", url)
		}
	}
	if problems := p.Problems(); len(problems) > 0 {
		t.Errorf("the browser complains: %s", strings.Join(problems, "\n"))
	}
}

// run runs the plugin and returns what it prints.
func run(t *testing.T, cp *controlplane.ControlPlane, code int, args string) []byte {
	t.Helper()
	var stdout, stderr bytes.Buffer
	argv := append([]string{"kubectl-gc", "--kubeconfig=" + cp.Kubeconfig}, strings.Fields(args)...)
	if got := gccmd.Run(t.Context(), argv, genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}); got != code {
		t.Errorf("%s: exit code %d, want %d: %s", args, got, code, stderr.String())
	}
	return stdout.Bytes()
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
