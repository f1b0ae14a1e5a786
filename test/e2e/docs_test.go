// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

const (
	// root is the repository, in which the commands of the documentation run.
	root = "../.."
	// settling is how long a read command of the documentation may be repeated
	// until the cluster is as the page says: rights and deletions take a moment.
	settling = 30 * time.Second
	// commandTimeout ends a command that hangs.
	commandTimeout = 2 * time.Minute
)

// setUp are the lines of sh blocks that are not a target of the Makefile.
var setUp = []string{
	`eval "$(make -s cluster-up)"`,
	`go test ./test/e2e -run TestBare/states`,
	`go test ./test/e2e -run TestDocs/README`,
	`go test ./pkg/graph -update`,
	`go test ./internal/explain -run TestScenarios/adm-refused`,
	`git clone https://github.com/kubectl-gc/kubectl-gc && cd kubectl-gc`,
	// Run by test/release, from docs/install.md.
	`kubectl krew install --manifest=dist/krew/gc.yaml --archive=dist/kubectl-gc_v0.0.1-snapshot_linux_amd64.tar.gz`,
	`kubectl krew index add own https://git.example.com/kubectl-plugins.git`,
	`kubectl krew install own/gc`,
	`ln -s kubectl-gc "${KREW_ROOT:-$HOME/.krew}/bin/kubectl_complete-gc"`,
	`kubectl krew uninstall gc`,
}

// TestDocs runs the commands of the documentation, page by page, on one cluster
// with the shop of examples, and compares what they print. CONTRIBUTING.md has
// the rules for those who write pages.
func TestDocs(t *testing.T) {
	runPages(t, startShop(t), func(p page) bool { return !p.bare && !p.alone && p.name < half })
}

// TestDocsRest is TestDocs for the other half of the pages, and for the documents of the shop.
func TestDocsRest(t *testing.T) {
	cp := startShop(t)
	runPages(t, cp, func(p page) bool { return !p.bare && !p.alone && p.name >= half })
	if checkPictures != nil {
		t.Run("pictures", func(t *testing.T) { checkPictures(t, cp) })
	}
	t.Run("shop.snapshot", func(t *testing.T) { checkShopSnapshot(t, cp) })
	t.Run("schema", func(t *testing.T) { checkSchema(t, cp) })
	t.Run("deletion-schemas", func(t *testing.T) { checkDeletionSchemas(t, cp) })
	t.Run("stuck-schema", func(t *testing.T) { checkStuckSchema(t, cp) })
}

// half is where the second half of the pages begins, by the time that they take.
const half = "docs/f"

// startShop starts a cluster with the shop for pages.
func startShop(t *testing.T) *controlplane.ControlPlane {
	cp := startDocs(t, controlplane.Options{
		Controllers: "all", FakeNodes: 2, GraceCap: time.Second,
		// So that openShop can restart it without waiting for a lease to expire.
		ControllerManagerArgs: []string{"--leader-elect=false"},
	})
	openShop(t, cp)
	return cp
}

// TestDocsBare is TestDocs for the pages of clusters without controllers.
func TestDocsBare(t *testing.T) {
	cp := startDocs(t, controlplane.Options{})
	runPages(t, cp, func(p page) bool { return p.bare })
	t.Run("check-schema", func(t *testing.T) { checkCheckSchema(t, cp) })
}

// TestDocsAlone is TestDocs for the page that has a cluster of its own.
func TestDocsAlone(t *testing.T) {
	cp := startDocs(t, controlplane.Options{Controllers: "all", FakeNodes: 2, GraceCap: time.Second})
	runPages(t, cp, func(p page) bool { return p.alone })
}

// startDocs starts a cluster for pages, beside other tests.
func startDocs(t *testing.T, options controlplane.Options) *controlplane.ControlPlane {
	t.Parallel() // one page after the other takes long: starts at once
	if other := controlplane.Other(); other != "" {
		t.Skip("the pages show what the newest version says, and not " + other)
	}
	return controlplane.Start(t, options)
}

func runPages(t *testing.T, cp *controlplane.ControlPlane, are func(page) bool) {
	for _, page := range pages(t) {
		if are(page) {
			t.Run(strings.TrimSuffix(page.name, ".md"), func(t *testing.T) { runPage(t, cp, page) })
		}
	}
}

// checkPictures opens the pages of the shop in a browser, where there may be one.
var checkPictures func(t *testing.T, cp *controlplane.ControlPlane)

// TestDocsBlocks checks what can be said of the pages without running them.
func TestDocsBlocks(t *testing.T) {
	makefile := read(t, "Makefile")
	for _, page := range pages(t) {
		for _, b := range page.blocks {
			switch {
			case b.tag == "console":
				if _, err := b.commands(); err != nil {
					t.Errorf("%s:%d: %v", page.name, b.line, err)
				}
			case b.tag == "sh":
				for i, line := range b.lines {
					if !isSetUp(line, makefile) {
						t.Errorf("%s:%d: %q is no target of the Makefile and not in the list of this test", page.name, b.line+1+i, line)
					}
				}
			case strings.Contains(strings.Join(b.lines, "\n"), "kubectl"):
				t.Errorf("%s:%d: a block with kubectl in it has the tag %q and so is not tested", page.name, b.line, b.tag)
			}
		}
		for _, problem := range page.problems {
			t.Errorf("%s:%s", page.name, problem)
		}
	}
}

// isSetUp reports whether the line of an sh block is one that the test knows:
// make with targets and variables, or one of setUp.
func isSetUp(line, makefile string) bool {
	line, _, _ = strings.Cut(line, " # ")
	line = strings.TrimSpace(line)
	if line == "" || strings.HasPrefix(line, "#") || slices.Contains(setUp, line) {
		return true
	}
	words := strings.Fields(line)
	if words[0] != "make" || len(words) < 2 {
		return false
	}
	return !slices.ContainsFunc(words[1:], func(word string) bool {
		if variable, _, ok := strings.Cut(word, "="); ok {
			return !strings.Contains(makefile, "$("+variable+")")
		}
		return !strings.Contains(makefile, "\n"+word+":")
	})
}

// A page is a file of the documentation.
type page struct {
	name     string // from the root of the repository
	bare     bool   // its commands run on a control plane without controllers
	alone    bool   // its commands run on a control plane of its own
	text     string // outside of blocks
	blocks   []block
	problems []string // "line: what is wrong"
}

// A block is a fenced one.
type block struct {
	line  int // of the fence
	tag   string
	lines []string
}

// A command is one of a console block, with what it should do.
type command struct {
	line   int
	text   string
	exit   int
	output []string // not compared if empty
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pages returns the documentation, in a fixed order.
func pages(t *testing.T) []page {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
	for _, file := range files {
		names = append(names, "docs/"+filepath.Base(file))
	}
	internals, err := filepath.Glob(filepath.Join(root, "docs", "internals", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range internals {
		names = append(names, "docs/internals/"+filepath.Base(file))
	}
	var pages []page
	for _, name := range names {
		pages = append(pages, parse(name, read(t, name)))
	}
	return pages
}

// withoutControllers is the first line of a page whose commands run on a
// control plane without controllers, and without the shop.
const withoutControllers = "<!-- cluster: without controllers -->"

// ofItsOwn is that of a page that has a control plane for itself, without the shop, and
// on which it can be told whether kube-controller-manager works.
const ofItsOwn = "<!-- cluster: of its own -->"

var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

// parse splits a page into its blocks, and checks what is outside them.
func parse(name, text string) page {
	p := page{name: name, bare: strings.HasPrefix(text, withoutControllers+"\n"), alone: strings.HasPrefix(text, ofItsOwn+"\n")}
	var open *block
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case open == nil && isFence:
			open = &block{line: i + 1, tag: strings.TrimSpace(fence)}
		case isFence:
			p.blocks = append(p.blocks, *open)
			open = nil
		case open != nil:
			open.lines = append(open.lines, line)
		default:
			p.text += line + "\n"
			p.problems = append(p.problems, checkText(name, i+1, line)...)
		}
	}
	if open != nil {
		p.problems = append(p.problems, fmt.Sprintf("%d: the block does not end", open.line))
	}
	return p
}

// checkText finds links that lead nowhere, and blocks that are not recognised.
func checkText(name string, number int, line string) []string {
	var problems []string
	text := strings.TrimSpace(line)
	for _, start := range []string{"```", "~~~", "$ "} {
		if strings.HasPrefix(text, start) || strings.HasPrefix(line, "    kubectl") {
			problems = append(problems, fmt.Sprintf("%d: commands belong in a block between ``` that is not indented", number))
			break
		}
	}
	for _, match := range link.FindAllStringSubmatch(line, -1) {
		if _, err := os.Stat(filepath.Join(root, filepath.Dir(name), match[1])); err != nil {
			problems = append(problems, fmt.Sprintf("%d: the link leads nowhere: %v", number, err))
		}
	}
	return problems
}

var exitComment = regexp.MustCompile(` # exit (\d+)$`)

// commands returns the commands of a console block.
func (b block) commands() ([]command, error) {
	var commands []command
	for i, line := range b.lines {
		last := len(commands) - 1
		if text, ok := strings.CutPrefix(line, "$ "); ok {
			commands = append(commands, command{line: b.line + 1 + i, text: text})
		} else if last < 0 {
			return nil, errors.New("a console block must begin with a command, after \"$ \"")
		} else if text, ok := strings.CutPrefix(line, "> "); ok && len(commands[last].output) == 0 {
			commands[last].text += "\n" + text
		} else {
			commands[last].output = append(commands[last].output, line)
		}
	}
	for i := range commands {
		if match := exitComment.FindStringSubmatch(commands[i].text); match != nil {
			commands[i].exit, _ = strconv.Atoi(match[1]) // digits
		}
	}
	return commands, nil
}

// TestDocsAnchors checks that a link to a part of a page leads to a heading there.
// "make site" checks the same of the pages that it builds.
func TestDocsAnchors(t *testing.T) {
	all := pages(t)
	commands, err := filepath.Glob(filepath.Join(root, "docs", "commands", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range commands {
		name := "docs/commands/" + filepath.Base(file)
		all = append(all, parse(name, read(t, name)))
	}
	anchors := map[string]map[string]bool{}
	for _, p := range all {
		anchors[p.name] = headings(p.text)
	}
	links := 0
	for _, p := range all {
		for _, match := range anchorLink.FindAllStringSubmatch(p.text, -1) {
			links++
			target := p.name
			if match[1] != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(p.name), match[1]))
			}
			if known, isPage := anchors[target]; isPage && !known[match[2]] {
				t.Errorf("%s: %s has no heading for #%s", p.name, target, match[2])
			}
		}
	}
	if links < 30 {
		t.Errorf("%d links to headings, want more: are they found?", links)
	}
}

// anchorLink is a link to a heading, of another page or of this.
var anchorLink = regexp.MustCompile(`\]\(([^)#:]*)#([^)]+)\)`)

var (
	heading   = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)
)

// headings returns the fragments of a page's headings, as GitHub makes them.
func headings(text string) map[string]bool {
	slugs := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		slug := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(match[1])), ""), " ", "-")
		name := slug
		for i := 1; slugs[name]; i++ {
			name = fmt.Sprintf("%s-%d", slug, i)
		}
		slugs[name] = true
	}
	return slugs
}

// openShop makes the objects of examples, mistakes included, deletes the cart
// as demo.sh does, and waits until the garbage collector has done what it can.
func openShop(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	// A running garbage collector takes up to 30 seconds to learn about a new
	// type; one that starts learns about it at once.
	if err := cp.Stop("controller-manager"); err != nil {
		t.Fatal(err)
	}
	cp.Apply(t, read(t, "examples/shop.yaml"))
	cp.Established(t, "crd/carts.shop.example.com")
	if err := cp.Start("controller-manager"); err != nil {
		t.Fatal(err)
	}
	cp.Apply(t, read(t, "examples/cart.yaml"))
	cp.Kubectl(t, "-n", "shop", "create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer") // for checkSchema
	cp.Kubectl(t, "-n", "shop", "rollout", "status", "deployment/web", "--timeout=120s")
	cp.Kubectl(t, "-n", "shop", "wait", "--for=condition=Complete", "job/migrate", "--timeout=120s")
	owners := map[string]string{"WEB": "deployment/web", "CART": "cart/basket", "SETTINGS": "configmap/settings"}
	cp.Apply(t, os.Expand(read(t, "examples/mistakes.yaml"), func(name string) string {
		return cp.Kubectl(t, "-n", "shop", "get", owners[name], "-o", "jsonpath={.metadata.uid}")
	}))
	cp.Kubectl(t, "-n", "shop", "delete", "cart", "basket", "--cascade=foreground", "--wait=false")
	for _, object := range []string{"shop/configmap/invoice", "shop/configmap/lost", "shop-eu/configmap/prices"} {
		namespace, name, _ := strings.Cut(object, "/")
		cp.Kubectl(t, "-n", namespace, "wait", name, "--for=jsonpath={.metadata.deletionTimestamp}", "--timeout=120s")
	}
	cp.Kubectl(t, "-n", "shop", "wait", "secret/session", "--for=jsonpath={.metadata.ownerReferences[0].kind}=Deployment", "--timeout=120s")
}

// runPage runs the commands of a page in one shell.
func runPage(t *testing.T, cp *controlplane.ControlPlane, p page) {
	shell := newShell(t, cp)
	for _, b := range p.blocks {
		if b.tag != "console" {
			continue
		}
		commands, err := b.commands()
		if err != nil {
			t.Fatalf("%s:%d: %v", p.name, b.line, err)
		}
		for _, c := range commands {
			began := time.Now()
			if problem := shell.check(t, c); problem != "" {
				t.Errorf("%s:%d: %s\n%s", p.name, c.line, c.text, problem)
			}
			t.Logf("%s:%d: %s (%s)", p.name, c.line, c.text, time.Since(began).Round(time.Millisecond))
		}
	}
}

// A shell is an sh that runs the commands of a page, so that variables last.
type shell struct {
	kill   func()
	stdin  io.Writer
	codes  *bufio.Reader // an exit code a line
	output string        // file of what the last command printed
}

func newShell(t *testing.T, cp *controlplane.ControlPlane) *shell {
	t.Helper()
	home := t.TempDir()
	config, err := os.ReadFile(cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(kubeconfig, config, 0o600); err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs(root) // has kubectl_complete-gc
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "sh")
	cmd.Dir = repository
	cmd.Env = append(cp.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+home, "LC_ALL=C",
		"PATH="+strings.Join([]string{cp.Bin, os.Getenv("PATH"), repository}, string(os.PathListSeparator)))
	cmd.WaitDelay = time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	return &shell{kill: cancel, stdin: stdin, codes: bufio.NewReader(stdout), output: filepath.Join(home, "output")}
}

// run runs one command and returns what it printed, to standard output and
// standard error, and its exit code.
func (s *shell) run(t *testing.T, text string) (string, int) {
	t.Helper()
	if _, err := fmt.Fprintf(s.stdin, "{ %s\n} </dev/null >'%s' 2>&1; echo $?\n", text, s.output); err != nil {
		t.Fatalf("%s: sending the command to the shell: %v", text, err)
	}
	defer time.AfterFunc(commandTimeout, s.kill).Stop()
	line, err := s.codes.ReadString('\n')
	if err != nil {
		t.Fatalf("%s: the shell ended, or was killed after %s: %v", text, commandTimeout, err)
	}
	code, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	output, err := os.ReadFile(s.output)
	if err != nil {
		t.Fatal(err)
	}
	return string(output), code
}

// check runs a command and returns what is wrong with its exit code or output.
// A command that only reads is repeated for a while.
func (s *shell) check(t *testing.T, c command) string {
	t.Helper()
	reads := regexp.MustCompile(`^kubectl[ -]gc (tree|graph|explain-stuck|check|delete .*--dry-run|collect .*--dry-run)|^kubectl auth can-i`).MatchString(c.text)
	for deadline := time.Now().Add(settling); ; time.Sleep(time.Second) {
		output, code := s.run(t, c.text)
		problem := ""
		if code != c.exit {
			problem = fmt.Sprintf("exit code %d, want %d\n%s", code, c.exit, output)
		} else if want, got := normalise(whereless.ReplaceAllString(strings.Join(c.output, "\n"), "")), normalise(unraced(whereless.ReplaceAllString(output, ""))); want != "" && !matches(want, got) {
			problem = fmt.Sprintf("the output differs (-page +real):\n%s\nreal output:\n%s",
				cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")), output)
		}
		if problem == "" || !reads || time.Now().After(deadline) {
			return problem
		}
	}
}

// matches compares an output with what the page says, in which ... is any text
// in a line, or any lines.
func matches(want, got string) bool {
	var pattern strings.Builder
	for _, line := range strings.Split(want, "\n") {
		if line == "..." {
			pattern.WriteString(`(?:.*\n)*`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, `.*`) + `\n`)
	}
	return regexp.MustCompile(`^` + pattern.String() + `$`).MatchString(got + "\n")
}

// generated are the letters and digits of which Kubernetes makes names.
const generated = `[bcdfghjklmnpqrstvwxz2456789]`

var replacements = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{uids, "UID"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\bsha256:[0-9a-f]{12,64}\b`), "sha256:DIGEST"},
	// The last five may have looked like an age, as 24m9s, and been replaced before.
	{regexp.MustCompile(`(-` + generated + `{8,10})?-(` + generated + `{5}|AGE)\b|-` + generated + `{8,10}\b`), "-HASH"},
	{regexp.MustCompile(`, context control-plane\b`), ""},
	{regexp.MustCompile(`\b(\d+[smhdy]){1,2}\b`), "AGE"},
	{regexp.MustCompile(`\b\d+\.\d+\b`), "NUMBER"},
	{regexp.MustCompile(` +\n`), "\n"},
}

var (
	drawings = strings.NewReplacer("✗ STUCK", "STUCK", "├─", "|-", "└─", "`-", "│", "|", "↺", "^")
	gaps     = regexp.MustCompile(" {2,}[|`^]?")
)

// normalise takes out of an output what differs from run to run, and how the
// tree is drawn. Gaps between columns become two spaces, those before the
// drawing of the tree stay.
func normalise(output string) string {
	text := drawings.Replace(output)
	for _, r := range replacements {
		text = r.pattern.ReplaceAllString(text, r.by)
	}
	text = gaps.ReplaceAllStringFunc(text, func(gap string) string {
		if strings.HasSuffix(gap, " ") {
			return "  "
		}
		return gap
	})
	return strings.Trim(text, "\n")
}

// whereless takes out the line that names the cluster: a page need not show it each time.
var whereless = regexp.MustCompile(`(?m)^ *context .*, server .*\n?`)

var raced = regexp.MustCompile(`(?m)^(deleted: .*\b)(\d+) Pods?\b(.*)\n` +
	`  (\d+) Pods? since the preview: created by the controller of ReplicaSet/\S+, which had not seen the deletion yet$`)

// unraced takes out of a report the pods that a controller made when it saw others go, and not yet
// that their owner is being deleted. On a loaded machine there may be some, as there may be beside
// the garbage collector.
func unraced(output string) string {
	match := raced.FindStringSubmatch(output)
	if match == nil {
		return output
	}
	pods, _ := strconv.Atoi(match[2])     // digits
	appeared, _ := strconv.Atoi(match[4]) // digits
	noun := " Pods"
	if pods-appeared == 1 {
		noun = " Pod"
	}
	return strings.Replace(output, match[0], fmt.Sprint(match[1], pods-appeared, noun, match[3]), 1)
}

func TestUnraced(t *testing.T) {
	const made = "  1 Pod since the preview: created by the controller of ReplicaSet/oven-5d, which had not seen the deletion yet\n"
	for output, want := range map[string]string{
		"deleted: 1 Deployment, 3 Pods, 1 ReplicaSet\n" + made:              "deleted: 1 Deployment, 2 Pods, 1 ReplicaSet\n",
		"deleted: 1 Deployment, 3 Pods, 1 ReplicaSet\n":                     "deleted: 1 Deployment, 3 Pods, 1 ReplicaSet\n",
		"deleted: 3 Pods\n  1 Pod since the preview: nothing says who made": "deleted: 3 Pods\n  1 Pod since the preview: nothing says who made",
	} {
		if got := unraced(output); got != want {
			t.Errorf("unraced(%q) = %q, want %q", output, got, want)
		}
	}
}

// checkSchema holds documents of every kind of node to the published schema.
func checkSchema(t *testing.T, cp *controlplane.ControlPlane) {
	schema := strictSchema(t, "graph")
	config := "--kubeconfig=" + cp.Kubeconfig
	for _, args := range [][]string{
		{"-A"},
		{"-n", "shop", "configmap/settings"},
		{"-n", "shop", "configmap/invoice", "--as=viewer"},
		{"-n", "shop", "configmap/lost", "configmap/coupon", "--owners"},
		{"-n", "shop", "cart/basket", "--dependents", "--depth=0"},
		{"-A", "--isolated"},
		{"graph", "-A"},
		{"graph", "-n", "shop", "cart/basket"},
	} {
		var stdout, stderr bytes.Buffer
		argv := append([]string{"kubectl-gc", "tree", config, "-o", "json"}, args...)
		if args[0] == "graph" {
			argv = append([]string{"kubectl-gc", "graph", config, "-o", "json"}, args[1:]...)
		}
		if code := gccmd.Run(t.Context(), argv, genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}); code != 0 {
			t.Errorf("%s: exit code %d: %s", strings.Join(args, " "), code, stderr.String())
			continue
		}
		document, err := jsonschema.UnmarshalJSON(&stdout)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(document); err != nil {
			t.Errorf("%s: %v", strings.Join(args, " "), err)
		}
	}
}

// checkDeletionSchemas holds plans and reports to the published schemas.
func checkDeletionSchemas(t *testing.T, cp *controlplane.ControlPlane) {
	cp.Kubectl(t, "create", "namespace", "schemas")
	cp.Kubectl(t, "-n", "schemas", "create", "deployment", "web", "--image=registry.example.com/web")
	cp.Kubectl(t, "-n", "schemas", "rollout", "status", "deployment/web", "--timeout=120s")
	cp.Kubectl(t, "-n", "schemas", "create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer")
	for _, name := range []string{"held", "kept"} {
		cp.Kubectl(t, "-n", "schemas", "create", "configmap", name)
	}
	cp.Kubectl(t, "-n", "schemas", "patch", "configmap", "held", "-p", `{"metadata":{"finalizers":["schemas.example.com/hold"]}}`)
	plan, report := strictSchema(t, "deletionplan"), strictSchema(t, "deletionreport")
	for _, test := range []struct {
		schema *jsonschema.Schema
		code   int
		args   string
	}{
		{plan, 0, "delete -n shop deployment/web job/migrate --dry-run"},
		{plan, 0, "delete -n shop deployment/web --cascade=foreground --dry-run"},
		{plan, 0, "delete -n shop deployment/web --cascade=orphan --dry-run=server"},
		{plan, 2, "delete -n shop cart/basket --dry-run"},
		{plan, 2, "delete -n shop configmap/settings --dry-run=server --as=viewer"},
		{plan, 2, "delete namespace/shop crd/carts.shop.example.com --dry-run"},
		{plan, 2, "delete namespace/kube-system --dry-run=server"},
		{plan, 2, "collect -n shop --dry-run"},
		{plan, 2, "collect -A --dry-run"},
		{report, 0, "delete -n schemas deployment/web --cascade=foreground --yes"},
		{report, 2, "delete -n schemas configmap/held --yes --wait=false"},
		{report, 2, "delete -n schemas configmap/kept --yes --as=viewer --allow-incomplete"},
	} {
		var stdout, stderr bytes.Buffer
		argv := append([]string{"kubectl-gc"}, strings.Fields(test.args)...)
		argv = append(argv, "--kubeconfig="+cp.Kubeconfig, "-o", "json")
		if code := gccmd.Run(t.Context(), argv, genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}); code != test.code {
			t.Errorf("%s: exit code %d, want %d: %s", test.args, code, test.code, stderr.String())
			continue
		}
		document, err := jsonschema.UnmarshalJSON(&stdout)
		if err != nil {
			t.Errorf("%s: %v", test.args, err)
		} else if err := test.schema.Validate(document); err != nil {
			t.Errorf("%s: %v", test.args, err)
		}
	}
	cp.Kubectl(t, "-n", "schemas", "patch", "configmap", "held", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	cp.Kubectl(t, "delete", "namespace", "schemas", "--wait=false")
}

// checkStuckSchema holds explanations to the published schema.
func checkStuckSchema(t *testing.T, cp *controlplane.ControlPlane) {
	schema := strictSchema(t, "stuckreport")
	for _, test := range []struct {
		code int
		args string
	}{
		{2, "-A"},
		{2, "-n shop"},
		{2, "-n shop cart/basket"},
		{2, "-n shop cart/basket --probe=false"},
		{0, "-n shop deployment/web"},
		{0, "namespace/kube-system"},
		{1, "-n shop cart/none"},
		{2, "-n shop configmap/invoice configmap/settings"},
		{0, "-n shop configmap/invoice --as=viewer"},
	} {
		var stdout, stderr bytes.Buffer
		argv := append([]string{"kubectl-gc", "explain-stuck", "--kubeconfig=" + cp.Kubeconfig, "-o", "json"}, strings.Fields(test.args)...)
		if code := gccmd.Run(t.Context(), argv, genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}); code != test.code {
			t.Errorf("%s: exit code %d, want %d: %s", test.args, code, test.code, stderr.String())
		}
		document, err := jsonschema.UnmarshalJSON(&stdout)
		if err != nil {
			t.Errorf("%s: %v", test.args, err)
		} else if err := schema.Validate(document); err != nil {
			t.Errorf("%s: %v", test.args, err)
		}
	}
}

// checkCheckSchema holds the reports of checks to the published schema.
func checkCheckSchema(t *testing.T, cp *controlplane.ControlPlane) {
	cp.Kubectl(t, "create", "namespace", "checks")
	cp.Kubectl(t, "-n", "checks", "create", "role", "viewer", "--verb=get,list", "--resource=configmaps")
	cp.Kubectl(t, "-n", "checks", "create", "rolebinding", "viewer", "--role=viewer", "--user=viewer")
	var uids []string
	for _, name := range []string{"a", "b", "c"} {
		cp.Kubectl(t, "-n", "checks", "create", "configmap", name)
		uids = append(uids, cp.Kubectl(t, "-n", "checks", "get", "configmap", name, "-o", "jsonpath={.metadata.uid}"))
	}
	own := func(name string, refs ...string) {
		cp.Kubectl(t, "-n", "checks", "patch", "configmap", name, "--type=merge", "-p", `{"metadata":{"ownerReferences":[`+strings.Join(refs, ",")+`]}}`)
	}
	ref := func(kind, name, uid, more string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"name":%q,"uid":%q%s}`, kind, name, uid, more)
	}
	own("a", ref("ConfigMap", "b", uids[1], `,"blockOwnerDeletion":true`))
	own("b", ref("ConfigMap", "a", uids[0], `,"blockOwnerDeletion":true`), ref("Coupon", "x", "x", `,"controller":true`))
	own("c", ref("ConfigMap", "a", uids[0], ""), ref("ConfigMap", "typo", uids[0], ""), ref("Secret", "s", "s", ""))
	schema := strictSchema(t, "checkreport")
	for _, test := range []struct {
		code int
		args string
	}{
		{2, "-A"},
		{2, "-n checks --severity=error"},
		{0, "-n default"},
		{2, "-n checks configmap/c --as=viewer"},
		{3, "-n checks configmap/c --as=viewer --strict"},
		{0, "-n checks --rule=owns-itself"},
	} {
		var stdout, stderr bytes.Buffer
		argv := append([]string{"kubectl-gc", "check", "--kubeconfig=" + cp.Kubeconfig, "-o", "json", "--settle=0"}, strings.Fields(test.args)...)
		if code := gccmd.Run(t.Context(), argv, genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}); code != test.code {
			t.Errorf("%s: exit code %d, want %d: %s", test.args, code, test.code, stderr.String())
		}
		document, err := jsonschema.UnmarshalJSON(&stdout)
		if err != nil {
			t.Errorf("%s: %v", test.args, err)
		} else if err := schema.Validate(document); err != nil {
			t.Errorf("%s: %v", test.args, err)
		}
	}
}

// strictSchema returns a published schema, made strict: it allows fields that
// later versions add, but the program of this version must not have any that
// it does not describe.
func strictSchema(t *testing.T, document string) *jsonschema.Schema {
	t.Helper()
	name := "docs/schema/" + document + ".schema.json"
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(read(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	schema := parsed.(map[string]any)
	schema["additionalProperties"] = false
	for _, definition := range schema["$defs"].(map[string]any) {
		if object := definition.(map[string]any); object["type"] == "object" {
			object["additionalProperties"] = false
		}
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource(name, schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}
