// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/draw"
	"github.com/kubectl-gc/kubectl-gc/test/chromium"
)

var shots = flag.String("shots", "", "directory in which to keep what the browser shows")

const ready = `document.body && document.body.dataset.ready === "1"`

// browse opens what was written in a browser, which has to be content with it,
// and to ask for nothing else.
func browse(t *testing.T, page []byte, name, condition string) *chromium.Page {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	p := chromium.Start(t)
	p.Size(1500, 900)
	p.Open(file, condition)
	t.Cleanup(func() {
		for _, url := range p.Requests() {
			if url != "file://"+file {
				t.Errorf("the page asked for %s", url)
			}
		}
		if problems := p.Problems(); len(problems) > 0 {
			t.Errorf("the browser complains: %s", strings.Join(problems, "\n"))
		}
	})
	return p
}

func keep(t *testing.T, p *chromium.Page, name string) {
	t.Helper()
	if *shots == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), p.Screenshot(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// settled waits until what was asked for is painted, and evaluates an expression.
func settled[T any](p *chromium.Page, expression string) T {
	var result T
	p.Eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(`+expression+`))))`, &result)
	return result
}

func want[T any](t *testing.T, p *chromium.Page, expression string, want T) {
	t.Helper()
	if diff := cmp.Diff(want, settled[T](p, expression)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", expression, diff)
	}
}

const (
	labels = `[...document.querySelectorAll("[role=treeitem]")].map((g) => g.getAttribute("aria-label")).sort()`
	hits   = `[...document.querySelectorAll(".hit")].map((g) => g.getAttribute("aria-label").split(",")[0]).sort()`
	panel  = `document.querySelector("#panel").hidden ? "" : document.querySelector("#panel").innerText`
	open   = `document.querySelector("#hint").textContent`
	view   = `document.querySelector("#world").getAttribute("transform")`
	// overflowing are the lines that are not within the box of their node.
	overflowing = `[...document.querySelectorAll("g.n")].filter((g) => { const r = [...g.children].filter((c) => c.tagName === "rect").pop(), b = r && r.getBBox();
		return [...g.children].some((c) => { if (c.tagName !== "text") return false; const x = c.getBBox(); return x.x < b.x || x.x + x.width > b.x + b.width || x.y < b.y || x.y + x.height > b.y + b.height; }); }).map((g) => g.textContent)`
)

// TestPage uses the page of the shop as people do.
func TestPage(t *testing.T) {
	p := browse(t, text(t, draw.HTML, shop().picture()), "shop.html", ready)
	keep(t, p, "shop-light")
	all := settled[[]string](p, labels)
	if len(all) != 15 || !slices.Contains(all, "Cart/shop/basket, in foreground deletion") {
		t.Errorf("drawn: %q", all)
	}
	want(t, p, overflowing, []string{})

	p.Key("/")
	p.Type("CONFIGMAP inv")
	want(t, p, hits, []string{"ConfigMap/shop/invoice"})
	p.Key("Enter")
	if got := settled[string](p, panel); !strings.Contains(got, "ConfigMap/invoice") || !strings.Contains(got, "WaitingForDependentsDeletion") || !strings.Contains(got, "shop.example.com/archive") {
		t.Errorf("details: %s", got)
	}
	p.Key("Escape")
	want(t, p, hits, []string{})

	p.Click(`[data-mark=dangling]`)
	want(t, p, hits, []string{"ConfigMap/shop-eu/prices", "ConfigMap/shop/lost"})
	p.Click(`[data-mark=terminating]`) // what is either
	want(t, p, `document.querySelectorAll(".hit").length`, 4)
	p.Click(`[data-mark=dangling]`)
	p.Click(`[data-mark=terminating]`)

	p.Eval(`document.querySelector("#stage").focus()`, nil)
	p.Key("Escape")
	want(t, p, panel, "")
	p.Key("ArrowRight") // nothing was selected: the first
	for range 2 {       // the reference to the owner, and back
		p.Key("ArrowRight")
		p.Key("ArrowLeft")
	}
	want(t, p, `document.querySelector(".selected").getAttribute("aria-label").split(",")[0]`, "Cart/shop/basket")
	p.Key("Enter")
	want(t, p, open, "13 of 15 objects open")
	keep(t, p, "shop-closed")
	p.Key(" ")
	want(t, p, open, "15 of 15 objects open")

	before := settled[string](p, view)
	p.Wheel(700, 500, -300)
	p.Await(view + ` !== ` + "`" + before + "`")
	p.Key("0")
	p.Mouse("mousePressed", 600, 850)
	p.Mouse("mouseMoved", 650, 850)
	p.Mouse("mouseReleased", 650, 850)
	want(t, p, view+` !== `+"`"+before+"`", true)
}

// TestPageLooks: the page follows what the user prefers, and what the button says.
func TestPageLooks(t *testing.T) {
	p := browse(t, text(t, draw.HTML, shop().picture()), "shop.html", ready)
	const ground = `getComputedStyle(document.body).backgroundColor`
	want(t, p, ground, "rgb(255, 255, 255)")
	p.Dark(true)
	want(t, p, ground, "rgb(13, 17, 23)")
	p.Click(`[role=treeitem][aria-label^="ConfigMap/shop/lost"]`)
	keep(t, p, "shop-dark")
	p.Click(`[title="Light or dark"]`)
	want(t, p, ground, "rgb(255, 255, 255)")
	p.Click(`[title="Keys"]`)
	want(t, p, `document.querySelector("dialog").open`, true)
	keep(t, p, "shop-help")
}

// TestPageLists: the findings are listed, each leads to its object, and a command can be copied.
func TestPageLists(t *testing.T) {
	picture := shop().picture()
	at := slices.IndexFunc(picture.Nodes, func(n draw.Node) bool { return n.Name == "invoice" })
	const command = "kubectl -n shop scale deploy/x --replicas=1"
	picture.Nodes[at].Details = append(picture.Nodes[at].Details, draw.Detail{Label: "command", Value: command, Code: true})
	picture.Findings = []draw.Finding{{Node: at, Label: "STUCK", Text: "configmap/invoice -n shop: no controller", Tone: draw.Red}, {Node: -1, Label: "DATA LOSS", Text: "5Gi", Tone: draw.Red}}
	p := browse(t, text(t, draw.HTML, picture), "list.html", ready)
	want(t, p, `[...document.querySelectorAll(".findings li")].map((e) => e.innerText)`, []string{"STUCK configmap/invoice -n shop: no controller", "DATA LOSS 5Gi"})
	p.Click(`.findings button`)
	if got := settled[string](p, panel); !strings.Contains(got, "ConfigMap/invoice") || !strings.Contains(got, command) {
		t.Errorf("details: %s", got)
	}
	p.Eval(`document.addEventListener("copy", () => { document.copied = getSelection().toString(); });
		navigator.clipboard.writeText = (text) => { document.copied = text; return Promise.resolve(); }`, nil)
	p.Click(`.copy`)
	p.Await(`document.copied === ` + "`" + command + "`")
	p.Await(`document.querySelector(".copy").textContent === "Copied"`)
	keep(t, p, "list")
}

// TestPageIsInert lets names try to be markup and script.
func TestPageIsInert(t *testing.T) {
	const evil = `</script><img src=x onerror="document.evil=1"><script>document.evil=1</script>`
	picture := shop().picture()
	picture.Title, picture.Subtitle, picture.Notes = evil, evil, []string{evil}
	picture.Findings = []draw.Finding{{Node: 0, Label: evil, Text: evil, Tone: draw.Red}}
	for i := range picture.Nodes {
		n := &picture.Nodes[i]
		n.Kind, n.Name, n.Namespace, n.Note, n.Count, n.Members = evil, evil, evil, evil, 2, []string{evil}
		n.Details = []draw.Detail{{Label: evil, Value: evil, Code: true}, {Label: evil, Value: evil}}
	}
	for i := range picture.Edges {
		picture.Edges[i].Label = evil
	}
	p := browse(t, text(t, draw.HTML, picture), "evil.html", ready)
	p.Click(`[role=treeitem]`)
	want(t, p, `document.evil === undefined && document.images.length === 0 && document.scripts.length === 2`, true)
	want(t, p, `document.title`, evil)
	if got := settled[string](p, panel); strings.Count(got, "onerror") < 5 {
		t.Errorf("details: %s", got)
	}
	keep(t, p, "evil")
}

// TestPageOfManyObjects: a page of 20,000 objects is drawn closed where nothing is
// to be said, and everything in it can be found.
func TestPageOfManyObjects(t *testing.T) {
	w := large(20_000)
	p := browse(t, text(t, draw.HTML, w.picture()), "large.html", ready)
	keep(t, p, "large-light")
	want(t, p, `document.querySelectorAll("#world *").length < 500`, true) // from afar it is a few paths
	p.Key("/")
	p.Type("db-44-39")
	want(t, p, open, "1 found")
	p.Key("Enter")
	want(t, p, hits, []string{"Pod/large/db-44-39"})
	keep(t, p, "large-found")
	p.Key("Escape")
	p.Dark(true)
	p.Click(`[data-mark=dangling]`)
	p.Key("0")
	keep(t, p, "large-dark")
}

// TestPageOfANamespace: in a large namespace what something is to be said of is
// open, and everything else is closed below its second row.
func TestPageOfANamespace(t *testing.T) {
	picture := draw.Ownership(large(5_000).selection())
	picture.Title, picture.Subtitle = "Ownership in namespace large", "5027 objects, 4429 references"
	p := browse(t, text(t, draw.HTML, picture), "namespace.html", ready)
	want(t, p, open, "2721 of 5027 objects open")
	keep(t, p, "namespace")
	p.Click(`[data-mark=terminating]`)
	want(t, p, open, "42 found")
	p.Dark(true)
	keep(t, p, "namespace-dark")
}

// TestSVGInBrowser: no text of an image leaves its box, whatever letters it has.
func TestSVGInBrowser(t *testing.T) {
	w := shop()
	w.add("Pod", "shop", strings.Repeat("W", 60), nil, w.add("ReplicaSet", "shop", strings.Repeat("世界", 20), nil))
	w.add("Pod", "shop", "ΩЖअ", terminating(), metav1.OwnerReference{APIVersion: "v1", Kind: "WWWWWWWWWWWWWWWW", Name: "MMMMMMMM", UID: "9"})
	image := text(t, draw.SVG, w.picture())
	p := browse(t, image, "shop.svg", "document.documentElement && document.documentElement.tagName === 'svg'")
	want(t, p, overflowing, []string{})
	keep(t, p, "svg-light")
	if bytes.Contains(image, []byte("<script")) {
		t.Error("there is a script in the image")
	}
}
