// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
	"github.com/kubectl-gc/kubectl-gc/test/faults"
	"github.com/kubectl-gc/kubectl-gc/test/nightly"
)

// strikes are those of make test: of the two stories with most writes.
var strikes = []*strike{
	{world: "bare", sessions: []string{"locks"}, write: 2, moment: faults.CarriedOut},
	{world: "controllers", sessions: []string{"refusals"}, write: 1, moment: faults.Answered},
}

// answers are what becomes of the answers to writes that are carried out.
var answers = []faults.Fault{faults.Lose(), faults.LoseTo(http.StatusInternalServerError), faults.LoseTo(http.StatusTooManyRequests)}

// TestUnstickKilled runs the sessions of unstick in which something is freed, and kills each of these runs at one of its writes: right
// after that was sent, carried out, or answered. Run again until nothing is left to do, unstick has made the changes of its plans and no
// others, has freed what it was asked for, and has taken back what it changed temporarily. In make nightly each write of every session has
// its turn.
func TestUnstickKilled(t *testing.T) {
	t.Parallel()
	if !nightly.Is() {
		for _, s := range strikes {
			t.Run(s.String(), func(t *testing.T) {
				t.Parallel()
				s.run(t)
			})
		}
		return
	}
	for _, group := range strikeGroups(t) {
		for _, moment := range []faults.Moment{faults.Sent, faults.CarriedOut, faults.Answered} {
			t.Run(group.name()+" "+string(moment), func(t *testing.T) {
				t.Parallel()
				s := &strike{world: group.world, sessions: group.sessions, moment: moment}
				for len(s.sessions) > 0 && !t.Failed() { // until no plan has so many writes
					s = &strike{world: s.world, sessions: s.sessions, write: s.write + 1, moment: moment}
					t.Run(s.String(), s.run)
					s.sessions = slices.Sorted(maps.Keys(s.more))
				}
			})
		}
	}
}

// TestUnstickUnanswered runs the same sessions, with no answer to any write of a run: each is carried out, and then the connection breaks
// off, or the API server says that it has failed or has too much to do. The one run finds out what became of its changes, makes none of
// them twice, and frees what it was asked for.
func TestUnstickUnanswered(t *testing.T) {
	nightly.Only(t, "the sessions of unstick, several times")
	t.Parallel()
	for _, group := range strikeGroups(t) {
		for _, answer := range answers {
			s := &strike{world: group.world, sessions: group.sessions, answer: &answer}
			t.Run(group.name()+" "+answer.Name, func(t *testing.T) {
				t.Parallel()
				s.run(t)
			})
		}
	}
}

// strikeGroups are the sessions in which something is freed, those that may run together.
func strikeGroups(t *testing.T) []*strike {
	t.Helper()
	groups := []*strike{{world: "bare", sessions: freeing(t, "bare")}, {world: "controllers", sessions: freeing(t, "controllers")}}
	for _, session := range freeing(t, "sick") {
		groups = append(groups, &strike{world: "sick", sessions: []string{session}})
	}
	return groups
}

// freeing are the sessions of a world in which something is freed.
func freeing(t *testing.T, world string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata/unstick", world, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var sessions []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^(\[.*\] )?frees `).Match(text) {
			sessions = append(sessions, strings.TrimSuffix(filepath.Base(file), ".txt"))
		}
	}
	return sessions
}

// strike says what befalls each run of some sessions at a write.
type strike struct {
	world    string
	sessions []string
	// The run is killed at a moment of this write,
	write  int
	moment faults.Moment
	// or that becomes of the answers to all of its writes.
	answer *faults.Fault

	mu   sync.Mutex
	more map[string]bool // the sessions in which a plan has more writes than that
}

func (s *strike) String() string {
	return fmt.Sprintf("%s write %d %s", s.name(), s.write, s.moment)
}

// name is that of the world, or of the only session of a sick one.
func (s *strike) name() string {
	if s.world == "sick" {
		return s.world + "-" + s.sessions[0]
	}
	return s.world
}

// run runs the sessions on a control plane that is theirs alone.
func (s *strike) run(t *testing.T) {
	clusters <- struct{}{}
	defer func() { <-clusters }()
	s.more = map[string]bool{}
	t.Run("sessions", func(t *testing.T) { // they have ended before the control plane does
		cp := controlplane.Start(t, unstickWorlds[s.world])
		params := unsticking(cp)
		params.Cmds["frees"] = func(ts *testscript.TestScript, _ bool, args []string) { s.kills(ts, cp, args) }
		params.Cmds["audited"] = func(ts *testscript.TestScript, _ bool, args []string) { s.audited(ts, cp, args) }
		for _, session := range s.sessions {
			params.Files = append(params.Files, filepath.Join("testdata/unstick", s.world, session+".txt"))
		}
		testscriptRun(t, params, cp)
	})
}

// kills is frees, with the run killed, or with its writes unanswered.
func (s *strike) kills(ts *testscript.TestScript, cp *controlplane.ControlPlane, args []string) {
	risk, cause, target := strings.TrimSuffix(args[0], "+"), args[1], args[2:]
	stuckBecauseOf(ts, cause, target)
	newWrites(ts, cp)
	mark := ts.Getenv("AUDITED")
	command := append(append([]string{"unstick"}, target...), "--allow="+risk)
	var allowed []string
	var before map[string]*unstructured.Unstructured
	for tries, deadline := 0, time.Now().Add(patience); ; tries++ {
		plan, exists := planned(ts, command)
		allowed = append(allowed, promised(plan)...)
		for _, w := range temporary(plan) {
			allowed = append(allowed, requestOf(w.Operation, true))
		}
		run := slices.Clone(command)
		if plan.Digest != "" { // what is open may have to be taken back before there is something to show
			run = append(run, "--confirm="+plan.Digest)
		}
		if tries == 0 {
			before = temporarily(ts, plan)
			if len(promised(plan))+len(temporary(plan)) > s.write {
				s.mu.Lock()
				s.more[ts.Getenv("NS")] = true
				s.mu.Unlock()
			}
			switch ended, outdated := s.struck(ts, run); {
			case outdated && time.Now().Before(deadline):
				tries = -1
				continue
			case ended < 0:
				continue
			case s.answer != nil && ended > 0:
				ts.Fatalf("a run without answers to its writes does not free %v", target)
			case s.answer != nil:
				nothingOpen(ts)
			}
		}
		takeOpen(ts)
		err := ts.Exec("kubectl-gc", run...)
		if !exists {
			break // this run had only to take back
		}
		gone := strings.Contains(ts.ReadFile("stderr"), "not found") // between the plan and the run
		if err != nil && !gone && time.Now().After(deadline) {
			ts.Fatalf("after the kill it does not end: %v", err)
		}
	}
	for _, w := range newWrites(ts, cp) {
		if !slices.Contains(allowed, w.request()) {
			ts.Fatalf("it has written what no plan has: %v", &w)
		}
	}
	for name, object := range before {
		if object == nil {
			if ts.Exec("kubectl", append([]string{"get"}, strings.Fields(name)...)...) == nil {
				ts.Fatalf("%s was made temporarily, and is still there", name)
			}
			continue
		}
		if diff := cmp.Diff(lasting(object), lasting(readObject(ts, name))); diff != "" {
			ts.Fatalf("%s was changed temporarily, and is not as before (-before +now):\n%s", name, diff)
		}
	}
	nothingOpen(ts)
	ts.Setenv("AUDITED", mark)
}

// planned is what a dry run shows, and whether what it is asked about exists.
func planned(ts *testscript.TestScript, command []string) (plan render.UnstickPlan, exists bool) {
	err := ts.Exec("kubectl-gc", append(slices.Clone(command), "--dry-run=client", "-o", "json")...)
	if text := ts.ReadFile("stdout"); text != "" {
		ts.Check(json.Unmarshal([]byte(text), &plan))
	}
	return plan, err == nil || !strings.Contains(ts.ReadFile("stderr"), "not found")
}

// temporary are the changes of a plan that will be taken back.
func temporary(plan render.UnstickPlan) []render.UnstickWrite {
	var all []render.UnstickWrite
	for i := range plan.Causes {
		all = append(all, slices.DeleteFunc(slices.Clone(plan.Causes[i].Writes), func(w render.UnstickWrite) bool { return !w.Temporary })...)
	}
	return all
}

// temporarily reads the objects that a plan changes temporarily, which are nil where it makes them.
func temporarily(ts *testscript.TestScript, plan render.UnstickPlan) map[string]*unstructured.Unstructured {
	before := map[string]*unstructured.Unstructured{}
	for _, w := range temporary(plan) {
		id := w.Operation.Object
		name := id.Resource + "/" + id.Name
		if id.Namespace != "" {
			name += " --namespace=" + id.Namespace
		}
		if before[name] = nil; w.Operation.Verb != string(remedy.Create) {
			before[name] = readObject(ts, name)
		}
	}
	return before
}

func readObject(ts *testscript.TestScript, name string) *unstructured.Unstructured {
	ts.Check(ts.Exec("kubectl", append([]string{"get", "-o", "json"}, strings.Fields(name)...)...))
	object := &unstructured.Unstructured{}
	ts.Check(object.UnmarshalJSON([]byte(ts.ReadFile("stdout"))))
	return object
}

// lasting is an object without what the API server and controllers count in it.
func lasting(object *unstructured.Unstructured) map[string]any {
	m := object.DeepCopy()
	for _, field := range []string{"resourceVersion", "managedFields", "generation"} {
		unstructured.RemoveNestedField(m.Object, "metadata", field)
	}
	delete(m.Object, "status")
	return m.Object
}

// takeOpen takes back what killed runs of the session have changed temporarily, as they say that it can be done.
func takeOpen(ts *testscript.TestScript) {
	dirs, err := change.Journals(ts.MkAbs(".local/state/kubectl-gc/journal"))
	ts.Check(err)
	for _, dir := range dirs {
		recorded, err := change.ReadJournal(dir)
		ts.Check(err)
		if len(recorded.Open()) > 0 {
			ts.Check(ts.Exec("kubectl-gc", "undo", "--temporary", "--yes", dir))
		}
	}
}

// nothingOpen has no journal of the session say of a change that it was made, and has not been taken back.
func nothingOpen(ts *testscript.TestScript) {
	dirs, err := change.Journals(ts.MkAbs(".local/state/kubectl-gc/journal"))
	ts.Check(err)
	for _, dir := range dirs {
		recorded, err := change.ReadJournal(dir)
		ts.Check(err)
		for _, e := range recorded.Open() {
			ts.Fatalf("%s: change %d is open: %+v", dir, e.Number, e)
		}
	}
}

// struck runs the plugin and has befall it what the strike says. It returns the exit code, which is negative for a run that was killed, and
// whether the run was over before its first write, since a controller has written to an object of the plan since: then it is to be planned
// again.
func (s *strike) struck(ts *testscript.TestScript, args []string) (code int, outdated bool) {
	config, err := clientcmd.BuildConfigFromFlags("", ts.Getenv("KUBECONFIG"))
	ts.Check(err)
	proxy, err := faults.Start(config, faults.Options{})
	ts.Check(err)
	defer proxy.Close()
	kubeconfig := ts.MkAbs(".kubeconfig-killed")
	ts.Check(os.WriteFile(kubeconfig, []byte(strings.ReplaceAll(ts.ReadFile(ts.Getenv("KUBECONFIG")), config.Host, proxy.URL)), 0o600))
	program, err := os.Executable()
	ts.Check(err)
	var said bytes.Buffer
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...) // which is what its first word says
		cmd.Args[0] = "kubectl-gc"
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+ts.Getenv("HOME"))
		cmd.Stdout, cmd.Stderr = &said, &said
		return cmd
	}
	_ = command("explain-stuck", args[1]).Run() // numbers are those that it has shown of this server
	said.Reset()
	cmd := command(args...)
	if s.answer != nil {
		proxy.SetRules(faults.Rule{Fault: s.answer.OfLasting()})
	} else {
		proxy.SetRules(proxy.AtWrite(s.write, s.moment, func() { _ = cmd.Process.Kill() })) // unless it has ended
	}
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		ts.Fatalf("%v", err)
	}
	ts.Logf("%s %q: %v, %v\n%s", s, args, proxy.Log(), cmd.ProcessState, &said)
	moved := strings.Contains(said.String(), "it is not that of") || strings.Contains(said.String(), "the cause is not certain")
	return cmd.ProcessState.ExitCode(), len(proxy.Log()) == 0 && moved
}

// audited is audited for runs that were killed: changes may have been made again, and refused ones are not compared. What became of a
// request that ended with its client the audit log does not say.
func (s *strike) audited(ts *testscript.TestScript, cp *controlplane.ControlPlane, args []string) {
	var got, want []string
	for _, w := range newWrites(ts, cp) {
		if w.ResponseStatus.Code < 300 {
			got = append(got, w.String())
		}
	}
	if len(args) > 0 {
		for line := range strings.Lines(os.Expand(ts.ReadFile(args[0]), ts.Getenv)) {
			line = strings.TrimSpace(line)
			optional := strings.HasPrefix(line, "? ") || s.moment == faults.Sent && !slices.Contains(got, line)
			if line != "" && !optional {
				want = append(want, line)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(slices.Compact(want), slices.Compact(got)); diff != "" {
		ts.Fatalf("the audit log differs (-want +got):\n%s", diff)
	}
}
