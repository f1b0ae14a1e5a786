// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/zip"
	"bytes"
	stdcmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"

	gccmd "github.com/kubectl-gc/kubectl-gc/internal/cmd"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/explaintest"
	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

// compareDir names, to the program in a session, the directory for what a snapshot
// answers otherwise than the cluster: each command that only reads is run again from a
// snapshot that is taken after it. Without it nothing is compared.
const compareDir = "KUBECTL_GC_COMPARE"

// compareAll is the variable with which all commands of all sessions are compared, those
// of explain-stuck, too, which take minutes. Without it the first mostCompared of a session are.
const compareAll = "KUBECTL_GC_COMPARE_ALL"

var mostCompared = nightly.Of(1, 4)

// compared makes sessions compare.
func compared(params testscript.Params) testscript.Params {
	begin := params.Setup
	params.Setup = func(env *testscript.Env) error { return errors.Join(begin(env), comparing(env)) }
	return params
}

// comparedAll is compared where compareAll is set.
func comparedAll(params testscript.Params) testscript.Params {
	if os.Getenv(compareAll) == "" {
		return params
	}
	return compared(params)
}

// comparing makes a session compare, and fail when an answer differs.
func comparing(env *testscript.Env) error {
	dir := filepath.Join(env.WorkDir, ".compare")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	env.Setenv(compareDir, dir)
	env.Setenv(compareAll, os.Getenv(compareAll))
	env.Defer(func() {
		found, err := filepath.Glob(filepath.Join(dir, "*.diff"))
		if err != nil {
			env.T().Fatal(err)
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			env.T().Log(string(text), err)
		}
		if len(found) > 0 {
			env.T().Fatal(len(found), "answers from a snapshot differ from those of the cluster")
		}
	})
	return nil
}

// showOnScreen shows an explanation on a terminal, and shown makes sessions hold it to that, where tests have one.
var (
	showOnScreen = func(context.Context, []string) {}
	shown        = func(params testscript.Params) testscript.Params { return params }
)

// runCompared runs the program, and once more from a snapshot if it only reads.
func runCompared(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	code := gccmd.Run(ctx, args, streams)
	showOnScreen(ctx, args)
	dir := os.Getenv(compareDir)
	if dir == "" || !onlyReads(args[1:]) || ctx.Err() != nil {
		return code
	}
	done, err := filepath.Glob(filepath.Join(dir, "*.done"))
	if err != nil || len(done) >= mostCompared && os.Getenv(compareAll) == "" {
		return code
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.done", time.Now().UnixNano())), nil, 0o600); err != nil {
		panic(err)
	}
	difference := ""
	for range 3 { // other sessions may change the cluster meanwhile
		if difference = compareOffline(ctx, dir, args); difference == "" {
			break
		}
	}
	if difference != "" {
		file := filepath.Join(dir, fmt.Sprintf("%d.diff", time.Now().UnixNano()))
		if err := os.WriteFile(file, []byte(difference), 0o600); err != nil {
			panic(err)
		}
	}
	return code
}

// onlyReads reports whether a command reads, and answers from what it read alone.
func onlyReads(args []string) bool {
	if len(args) == 0 {
		return false
	}
	has := func(words ...string) bool {
		return slices.ContainsFunc(args, func(arg string) bool {
			return slices.ContainsFunc(words, func(w string) bool { return arg == w || strings.HasPrefix(arg, w+"=") })
		})
	}
	// A server that is far away, or slow, is no matter of files; -f - can be read once; a ticket has the commands of unstick, and with a file
	// another cluster.
	if has("--from", "--context", "--contexts", "--all-contexts", "markdown", "junit", "--watch", "-w", "--help", "-h", "--request-timeout", "--server", "--tls-server-name", "-s", "--chunk-size", "-", "events") { // of events a file has some
		return false
	}
	switch args[0] {
	case "tree", "check", "explain-stuck":
		return true
	case "delete", "collect":
		return has("--dry-run=client", "--dry-run") && !has("--dry-run=server", "--dry-run=none")
	}
	return false
}

// result is what a run of the program came to.
type result struct {
	Code     int
	Out, Err string
}

// compareOffline returns how the answer from a snapshot differs from the live one, which
// is asked before and after: when that changes nothing can be said.
func compareOffline(ctx context.Context, dir string, args []string) string {
	if args[1] == "explain-stuck" {
		args = append(slices.Clone(args), "--probe=false") // a file cannot be asked
	}
	before := runNormal(ctx, args)
	file := filepath.Join(dir, "cluster.snapshot")
	if taken := runNormal(ctx, slices.Concat([]string{args[0], "snapshot", "--second-look", "--overwrite", "-o", file}, connectionOf(dir, args[1:]))); taken.Code != 0 {
		if before.Code == 1 {
			return "" // nothing can be asked
		}
		return fmt.Sprintf("%v: the snapshot failed: %v", args[1:], taken)
	}
	offline := runNormal(ctx, slices.Concat(args[:2], []string{"--from", file}, args[2:]))
	switch after := runNormal(ctx, args); {
	case after != before: // something moves
		return ""
	case before.Code == 1 && offline.Code == 1: // no answer, for reasons that are the server's own
		return ""
	case unlistable.MatchString(offline.Err):
		return ""
	}
	if diff := cmp.Diff(before, offline); diff != "" {
		return fmt.Sprintf("%v from a snapshot (-live +snapshot):\n%s", args[1:], diff)
	}
	if args[1] == "explain-stuck" {
		return compareRedacted(ctx, file)
	}
	return ""
}

// compareRedacted returns how what is said of all that is stuck in a snapshot differs, in its
// verdicts and the kinds of causes and remedies, when names are replaced.
func compareRedacted(ctx context.Context, file string) string {
	originals, err := redactFile(file, file+".redacted")
	if err != nil {
		return "redacting: " + err.Error()
	}
	kinds := func(file string) []string {
		var out bytes.Buffer
		gccmd.Run(ctx, []string{"kubectl-gc", "explain-stuck", "-A", "-o", "json", "--from", file}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: io.Discard})
		text := words.ReplaceAllStringFunc(out.String(), func(word string) string { return stdcmp.Or(originals[word], word) })
		kinds, err := explaintest.Kinds([]byte(text))
		if err != nil {
			return []string{err.Error()}
		}
		return kinds
	}
	if diff := cmp.Diff(kinds(file), kinds(file+".redacted")); diff != "" {
		return fmt.Sprintf("explain-stuck -A from a redacted snapshot (-names +redacted):\n%s", diff)
	}
	return ""
}

var words = regexp.MustCompile(`[\pL\pN]+`)

// membersOf returns the texts of a snapshot's members, the index last.
func membersOf(file string) ([]string, error) {
	in, err := zip.OpenReader(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	var all []string
	for _, m := range in.File {
		member, err := m.Open()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(member)
		if err != nil {
			return nil, err
		}
		all = append(all, string(text))
	}
	return all, nil
}

// members writes the text of a snapshot: members FILE TEXT. With three words more, OTHER OLD NEW, it writes another snapshot, in the index of
// which a text is replaced.
func members(ts *testscript.TestScript, _ bool, args []string) {
	all, err := membersOf(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(all, "")), 0o600))
	if len(args) == 2 {
		return
	}
	out, err := os.Create(ts.MkAbs(args[2]))
	ts.Check(err)
	z := zip.NewWriter(out)
	index, err := z.Create("index.jsonl")
	ts.Check(err)
	_, err = io.WriteString(index, strings.ReplaceAll(all[len(all)-1], args[3], args[4]))
	ts.Check(errors.Join(err, z.Close(), out.Close()))
}

// redactFile writes a snapshot once more with other names, and returns which word stands for
// which.
func redactFile(from, to string) (map[string]string, error) {
	all, err := membersOf(from)
	if err != nil {
		return nil, err
	}
	out, err := os.Create(to)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	last := len(all) - 1
	index := json.NewDecoder(strings.NewReader(all[last]))
	var header offline.Header
	if err := index.Decode(&header); err != nil {
		return nil, err
	}
	header.Redacted = true
	w, err := offline.NewWriter(out, header)
	if err != nil {
		return nil, err
	}
	w.KeepOriginals()
	for {
		var line indexLine
		if err := index.Decode(&line); err != nil {
			return nil, err
		}
		switch {
		case line.Answer != nil:
			err = w.Answer(line.Answer)
		case line.List != nil:
			err = line.List.write(w, all[:last])
		case line.One != nil:
			err = w.One(line.One)
		case line.Trailer != nil:
			return w.Originals(), w.Close(line.Trailer.Ended)
		}
		if err != nil {
			return nil, err
		}
	}
}

// indexLine is a line of the index of a snapshot.
type indexLine struct {
	Answer  *offline.Answer
	List    *indexList
	One     *offline.One
	Trailer *offline.Trailer
}

type indexList struct {
	offline.List
	offline.End
	Chunks []struct{ In, At, Objects int }
}

// write writes a list with its objects, which are in the members.
func (l *indexList) write(w *offline.Writer, members []string) error {
	if err := w.Begin(&l.List); err != nil {
		return err
	}
	for _, c := range l.Chunks {
		for _, text := range strings.Split(members[c.In], "\n")[c.At : c.At+c.Objects] {
			var e offline.Entry
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				return err
			}
			if err := w.Add(&e); err != nil {
				return err
			}
		}
	}
	return w.End(l.End)
}

// connectionOf returns the flags that say which cluster is meant, and as whom. The
// namespace of a command is that of the context then: who may list no other has it there.
func connectionOf(dir string, args []string) []string {
	var flags []string
	for i, arg := range args {
		name, _, joined := strings.Cut(arg, "=")
		if !slices.Contains([]string{"--kubeconfig", "--context", "--as", "--as-group", "--token", "--user", "--cluster"}, name) {
			continue
		}
		flags = append(flags, arg)
		if !joined && i+1 < len(args) {
			flags = append(flags, args[i+1])
		}
	}
	if namespace := valueOf(args, "--namespace", "-n"); namespace != "" {
		kubeconfig := valueOf(args, "--kubeconfig")
		if kubeconfig == "" {
			kubeconfig = os.Getenv("KUBECONFIG")
		}
		return append(flags, "--kubeconfig", inNamespace(dir, kubeconfig, namespace))
	}
	return flags
}

// valueOf returns the value of the last flag of one of the names, empty for none.
func valueOf(args []string, names ...string) string {
	value := ""
	for i, arg := range args {
		name, joined, is := strings.Cut(arg, "=")
		switch {
		case !slices.Contains(names, name):
		case is:
			value = joined
		case i+1 < len(args):
			value = args[i+1]
		}
	}
	return value
}

// inNamespace writes a kubeconfig whose contexts are in a namespace, and returns its path.
func inNamespace(dir, kubeconfig, namespace string) string {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		panic(err)
	}
	for _, c := range config.Contexts {
		c.Namespace = namespace
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		panic(err)
	}
	return path
}

var (
	durations = regexp.MustCompile(`\b(\d+(\.\d+)?(d|h|m|s|ms|µs))+\b`)
	spaces    = regexp.MustCompile(` +`)
	upperUIDs = regexp.MustCompile(`\b[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12}\b`)
	// somewhere is what an answer says of its cluster: a file has none.
	somewhere = regexp.MustCompile(`(?m)^ *context .*\n| in context [^,\n<"]+|"cluster": ?\{[^}]*\},\n?|^cluster:\n(  .*\n)+|(?m:, context \S+$)|^- \*\*(Asked|When|Where):.*\n|^\n?\*\*Timeline\*\*\n+|^\| .*\n|^\|---.*\n`)
	counted   = regexp.MustCompile(`(?m)^\d+ requests: .*\n`)
	// unlistable is the error about an object of a type that cannot be listed: a snapshot
	// has those that owner references name.
	unlistable = regexp.MustCompile(`^error: reading [^:]+: the file does not hold (chests|boxes)\.attic\.example\.com `)
	// refused are the words for what may not be read. A snapshot has those about a list,
	// also when a command asks for one object of the type.
	refused = regexp.MustCompile(`(?:"[^"]*" )?is forbidden: (User "[^"]*") cannot (?:get|list) `)
)

// runNormal runs the program, and replaces what depends on the time.
func runNormal(ctx context.Context, args []string) result {
	var out, errOut bytes.Buffer
	code := gccmd.Run(ctx, args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	normal := func(text string) string {
		text = somewhere.ReplaceAllString(text, "")
		text = uids.ReplaceAllStringFunc(counted.ReplaceAllString(text, ""), strings.ToUpper) // parts of UIDs may look like ages
		text = spaces.ReplaceAllString(durations.ReplaceAllString(text, "AGE"), " ")
		text = refused.ReplaceAllString(text, `is forbidden: $1 cannot read `)
		return upperUIDs.ReplaceAllStringFunc(text, strings.ToLower)
	}
	return result{code, normal(out.String()), normal(errOut.String())}
}

// checkShopSnapshot holds examples/shop.snapshot to the shop: everything in it is in the
// cluster, in the same state, and the other way around; and the document that says so to
// its schema.
func checkShopSnapshot(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	file := filepath.Join(root, "examples", "shop.snapshot")
	for _, args := range []string{"tree -n shop", "tree -n shop -o wide", "check -n shop --settle=0", "delete -n shop deployment/web --dry-run"} {
		words := append([]string{"kubectl-gc"}, strings.Fields(args)...)
		live := runNormal(t.Context(), append(slices.Clone(words), "--kubeconfig="+cp.Kubeconfig))
		held := runNormal(t.Context(), append(slices.Clone(words), "--from", file))
		live.Out, held.Out = inOrder(live.Out), inOrder(held.Out)
		if diff := cmp.Diff(live, held); diff != "" {
			t.Errorf("%s (-cluster +examples/shop.snapshot, which make shop-snapshot takes anew):\n%s", args, diff)
		}
	}
	document := runNormal(t.Context(), []string{"kubectl-gc", "diff", file, "live", "-o", "json", "--kubeconfig=" + cp.Kubeconfig})
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(document.Out))
	if err != nil || document.Code != 1 {
		t.Fatal(document, err)
	}
	if err := strictSchema(t, "diff").Validate(parsed); err != nil {
		t.Error(err)
	}
}

// besides is what the cluster of the pages has besides the shop, and where it is.
var besides = regexp.MustCompile(` in \d+ objects| --kubeconfig=\S+`)

// inOrder is an output without generated names, with its lines sorted: those names order
// them.
func inOrder(output string) string {
	output = besides.ReplaceAllString(output, "")
	lines := strings.Split(uids.ReplaceAllString(normalise(output), "UID"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
