// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the binary from outside, against real control planes. The
// sessions under testdata can be read as they stand: each runs in a namespace
// of its own that has the script's name and is the current one.
package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

func TestMain(m *testing.M) {
	program := func() {
		controllers.Settling = 0
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		os.Exit(runCompared(ctx, os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
	}
	// The others are names under which it may be published or linked.
	testscript.Main(suite{m}, map[string]func(){
		"kubectl-gc": program, "kubectl-ownership_gc": program, "kubectl_complete-ownership_gc": program,
	})
}

// TestBare runs the sessions that need no controller: objects stay exactly as
// they were made.
func TestBare(t *testing.T) {
	parallel(t)
	runScripts(t, "testdata/bare", controlplane.Start(t, controlplane.Options{}))
}

// TestControllers runs the sessions on a cluster where all controllers and two
// nodes work.
func TestControllers(t *testing.T) {
	parallel(t)
	runScripts(t, "testdata/controllers", controlplane.Start(t, controlplane.Options{Controllers: "all", FakeNodes: 2, GraceCap: time.Second}))
}

// TestSick runs the sessions that harm the whole cluster, each on its own.
func TestSick(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/sick/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txt"), func(t *testing.T) {
			parallel(t)
			params := comparedAll(scriptParams(controlplane.Start(t, controlplane.Options{})))
			params.Files = []string{script}
			testscript.Run(t, params)
		})
	}
}

// runScripts runs the sessions of a directory, where every answer is compared with that
// from a snapshot.
func runScripts(t *testing.T, dir string, cp *controlplane.ControlPlane) {
	params := compared(scriptParams(cp))
	params.Dir = dir
	testscript.Run(t, params)
}

// commands are those of the sessions, beside testscript's.
var commands = map[string]func(*testscript.TestScript, bool, []string){
	"apply": apply, "uid": uid, "digest": digest, "members": members, "golden": golden, "fault": fault, "meanwhile": meanwhile, "aggregated": aggregated,
	"reports": reports, "webhook": webhook, "until": until, "eventually": eventually,
}

func scriptParams(cp *controlplane.ControlPlane) testscript.Params {
	return testscript.Params{
		Setup: func(env *testscript.Env) error {
			scripts <- struct{}{}
			env.Defer(func() { <-scripts })
			return setup(env, cp)
		},
		Cmds:                maps.Clone(commands), // tests add their own
		Condition:           condition,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	}
}

// condition knows [since:VERSION], the servers have at least that version, and [nightly], this is
// the long form.
func condition(condition string) (bool, error) {
	if condition == "nightly" {
		return nightly.Is(), nil
	}
	v, found := strings.CutPrefix(condition, "since:")
	if !found {
		return false, fmt.Errorf("unknown condition")
	}
	return controlplane.Since(v), nil
}

// setup gives the script a namespace and a kubeconfig whose context is in it.
func setup(env *testscript.Env, cp *controlplane.ControlPlane) error {
	namespace := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
	kubeconfig := filepath.Join(env.WorkDir, ".kubeconfig")
	if err := enterNamespace(cp, namespace, kubeconfig); err != nil {
		return err
	}
	env.Setenv("KUBECONFIG", kubeconfig)
	if err := withoutValidation(env.WorkDir); err != nil {
		return err
	}
	env.Setenv("SERVER", cp.Server)
	env.Setenv("KUBECTL", filepath.Join(cp.Bin, "kubectl"))
	env.Setenv("NS", namespace)
	root, err := filepath.Abs("../..") // has kubectl_complete-gc
	if err != nil {
		return err
	}
	env.Setenv("PATH", strings.Join([]string{cp.Bin, env.Getenv("PATH"), root}, string(os.PathListSeparator)))
	env.Setenv("HOME", env.WorkDir)
	return nil
}

// enterNamespace creates a namespace, and writes a kubeconfig whose context is in it.
func enterNamespace(cp *controlplane.ControlPlane, namespace, kubeconfig string) error {
	config, err := clientcmd.LoadFromFile(cp.Kubeconfig)
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return err
	}
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return err
	}
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err = client.CoreV1().Namespaces().Create(context.Background(), o, metav1.CreateOptions{})
	return err
}

// preferences have kubectl not download the OpenAPI of all types to validate each manifest, which takes a
// busy API server half a minute.
const preferences = `apiVersion: kubectl.config.k8s.io/v1beta1
kind: Preference
defaults:
- command: apply
  options: [{name: validate, default: ignore}]
- command: create
  options: [{name: validate, default: ignore}]
- command: replace
  options: [{name: validate, default: ignore}]
`

// withoutValidation sets the preferences for a home directory.
func withoutValidation(home string) error {
	dir := filepath.Join(home, ".kube")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "kuberc"), []byte(preferences), 0o600)
}

// apply FILE... creates the objects of the files, in which $NAME stands for
// the variable NAME of the script.
func apply(ts *testscript.TestScript, neg bool, args []string) {
	for _, file := range args {
		expanded := file + ".expanded"
		text := os.Expand(ts.ReadFile(file), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(expanded), []byte(text), 0o600))
		err := ts.Exec("kubectl", "apply", "-f", expanded)
		if (err != nil) != neg {
			ts.Fatalf("kubectl apply -f %s: %v", file, err)
		}
	}
}

// uid NAME OBJECT [NAMESPACE] sets a variable to an object's UID.
func uid(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: uid NAME OBJECT [NAMESPACE]")
	}
	get := []string{"get", args[1], "-o", "jsonpath={.metadata.uid}"}
	if len(args) == 3 {
		get = append(get, "-n", args[2])
	}
	kubectl := exec.Command(ts.Getenv("KUBECTL"), append(get, "--kubeconfig", ts.Getenv("KUBECONFIG"))...)
	out, err := kubectl.Output()
	ts.Check(err)
	ts.Setenv(args[0], string(out))
}

// digest NAME FILE sets a variable to the text of a file.
func digest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: digest NAME FILE")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

var (
	digests = regexp.MustCompile(`sha256:[0-9a-f]{12,64}`)
	ages    = regexp.MustCompile(`\b(\d\ds|\ds ?)`)
	oldAges = regexp.MustCompile(`\b(1[01]\ds|[2-9]m(\d+s)?)\b`)
	uids    = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
)

// until COMMAND ARG... runs a command again and again until it succeeds: it waits for a
// state. A COMMAND without arguments is one of the shell.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: until COMMAND ARG...")
	}
	if len(args) == 1 {
		args = []string{"sh", "-c", args[0]}
	}
	for deadline := time.Now().Add(patience); ts.Exec(args[0], args[1:]...) != nil; time.Sleep(pause) {
		if time.Now().After(deadline) {
			ts.Fatalf("it never succeeds: %q", args)
		}
	}
}

// eventually PATTERN COMMAND ARG... runs a command again and again until its standard output matches, so that
// what else it prints can be looked at. With ! it must fail then.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: eventually PATTERN COMMAND ARG...")
	}
	pattern := regexp.MustCompile("(?m)" + args[0])
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * pause) {
		err := ts.Exec(args[1], args[2:]...)
		switch stdout := ts.ReadFile("stdout"); {
		case pattern.MatchString(stdout) && neg == (err != nil):
			return
		case time.Now().After(deadline):
			ts.Fatalf("it never prints %s, failing: %t; at last (%v)\n%s", args[0], neg, err, stdout)
		}
	}
}

const (
	patience = 2 * time.Minute
	pause    = 200 * time.Millisecond
)

// golden FILE compares the last command's standard output with the file, where
// AGE stands for any age, UID for any UID and DIGEST for any digest. On a machine so busy that
// ages are longer than the columns of the file, it is only the words that are compared.
func golden(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: golden FILE")
	}
	stdout := ts.ReadFile("stdout")
	got := oldAges.ReplaceAllString(stdout, "AGE")
	wider := got != stdout
	got = uids.ReplaceAllString(ages.ReplaceAllString(got, "AGE"), "UID")
	got = digests.ReplaceAllString(got, "DIGEST")
	want := os.Expand(ts.ReadFile(args[0]), func(name string) string {
		if value := ts.Getenv(name); value != "" {
			return value
		}
		return "$" + name
	})
	if wider {
		got, want = spaces.ReplaceAllString(got, " "), spaces.ReplaceAllString(want, " ")
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		ts.Fatalf("standard output differs from %s (-want +got):\n%s\ngot:\n%s", args[0], diff, got)
	}
}

// newClient returns a client without a rate limit that calls itself by the name; empty is for
// the usual one.
func newClient(t *testing.T, cp *controlplane.ControlPlane, userAgent string) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.UserAgent = -1, userAgent
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
