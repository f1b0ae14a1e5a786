// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	stdcmp "cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/test/controlplane"
)

// unstickWorlds are the control planes of the sessions of unstick. On a sick one each session is alone. Those with claims whose data others
// would keep are apart.
var unstickWorlds = map[string]controlplane.Options{
	"sick": {AuditLog: true, Controllers: "all"}, "bare": bareWorld, "bare-claims": bareWorld, "controllers": fullWorld, "controllers-claims": fullWorld,
}

var (
	bareWorld = controlplane.Options{AuditLog: true, Users: []controlplane.User{{Name: "reader"}}}
	fullWorld = controlplane.Options{AuditLog: true, Controllers: "all", FakeNodes: 2, GraceCap: time.Second, Users: []controlplane.User{{Name: "reader"}}}
)

// TestUnstick runs the sessions of unstick. What a session writes is in the audit log under a name of its own. A line
// "# cause: ID" says which cause of docs/explain-causes.md is ended in it (TestUnstickable).
func TestUnstick(t *testing.T) {
	t.Parallel()
	named := maps.Clone(unstickWorlds)
	delete(named, "sick")
	worlds{
		dir:    "testdata/unstick",
		named:  named,
		sick:   unstickWorlds["sick"],
		wait:   parallel,
		params: unsticking,
	}.run(t)
}

// unsticking has sessions act under names of their own, and know the commands that look into the audit log.
func unsticking(cp *controlplane.ControlPlane) testscript.Params {
	params := scriptParams(cp)
	for name, command := range map[string]func(*testscript.TestScript, *controlplane.ControlPlane, bool, []string){"audited": audited, "frees": frees, "atonce": atOnce} {
		params.Cmds[name] = func(ts *testscript.TestScript, neg bool, args []string) { command(ts, cp, neg, args) }
	}
	params.Cmds["interrupted"], params.Cmds["undone"] = interrupted, undone
	params.Cmds["component"] = func(ts *testscript.TestScript, _ bool, args []string) { component(ts, cp, args) }
	plain := params.Setup
	params.Setup = func(env *testscript.Env) error {
		if err := plain(env); err != nil {
			return err
		}
		return underItsName(env)
	}
	return params
}

// underItsName has a session act under a name of its own, of a user who may do everything.
func underItsName(env *testscript.Env) error {
	kubeconfig := env.Getenv("KUBECONFIG")
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return err
	}
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = sessionUser(env.Getenv("NS")), []string{"system:masters"}
	}
	return clientcmd.WriteToFile(*config, kubeconfig)
}

func sessionUser(namespace string) string { return "session-" + namespace }

// audited FILE compares what the session's runs of the plugin have written, by the API server's audit log, since the last time, with the
// lines of a file; their order is not compared, and those that begin with "? " may be missing. ! audited: they have written nothing.
func audited(ts *testscript.TestScript, cp *controlplane.ControlPlane, neg bool, args []string) {
	if neg == (len(args) == 1) || len(args) > 1 {
		ts.Fatalf("usage: audited FILE, or ! audited")
	}
	var got, want []string
	for _, w := range newWrites(ts, cp) {
		got = append(got, w.String())
	}
	if !neg {
		text := os.Expand(strings.TrimSpace(ts.ReadFile(args[0])), ts.Getenv)
		for _, line := range strings.Split(text, "\n") {
			line, optional := strings.CutPrefix(line, "? ")
			if !optional || count(got, line) > count(want, line) {
				want = append(want, line)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		ts.Fatalf("the audit log differs (-want +got):\n%s\ngot:\n%s", diff, strings.Join(got, "\n"))
	}
}

func count(lines []string, line string) int {
	n := 0
	for _, other := range lines {
		if other == line {
			n++
		}
	}
	return n
}

// frees RISK CAUSE ARG...: what explain-stuck and unstick are asked about with the arguments is stuck because of the cause; with less
// than the risk allowed unstick says what it needs, and writes nothing; and with it everything that was asked for is gone,
// by exactly the writes that were approved. RISK+ is for several causes of which some need
// less; what has happened by itself when its turn comes is not done then.
func frees(ts *testscript.TestScript, cp *controlplane.ControlPlane, neg bool, args []string) {
	lesser := map[string]string{"safe": "", "disruptive": "safe", "dangerous": "disruptive"}
	if neg || len(args) < 3 {
		ts.Fatalf("usage: frees RISK CAUSE ARG...")
	}
	risk, cause, target := strings.TrimSuffix(args[0], "+"), args[1], args[2:]
	if risk != args[0] {
		lesser[risk] = ""
	}
	stuckBecauseOf(ts, cause, target)
	run := func(codes []int, options ...string) {
		err := ts.Exec("kubectl-gc", append(append([]string{"unstick"}, target...), options...)...)
		if got := exitCode(err); !slices.Contains(codes, got) {
			ts.Fatalf("unstick %q: exit code %d (%v), want %d", options, got, err, codes)
		}
	}
	if newWrites(ts, cp); lesser[risk] != "" { // what was written before was not looked at
		run([]int{2}, "--allow="+lesser[risk], "--yes")
		if out := ts.ReadFile("stdout"); !strings.Contains(out, "needs --allow="+risk) {
			ts.Fatalf("it does not say that it needs --allow=%s:\n%s", risk, out)
		}
		if writes := newWrites(ts, cp); len(writes) > 0 {
			ts.Fatalf("not allowed, it has written %v", writes)
		}
	}
	mark := ts.Getenv("AUDITED")
	plan, report := approved(ts, cp, append(slices.Clone(target), "--allow="+risk))
	if len(report.Remaining) > 0 {
		ts.Fatalf("still there: %v", report.Remaining)
	}
	planned := promised(plan)
	var made, logged []string
	var taken, skipped []string // skipped: the object had changed since the look, and nothing was written
	for _, e := range report.Events {
		back := e.Result == string(unstick.TakenBack)
		request := requestOf(e.Operation, back)
		made = append(made, writesOf(e.Operation, back)...)
		switch {
		case e.Result == string(unstick.Skipped):
			skipped = append(skipped, request)
		case !back:
			taken = append(taken, writesOf(e.Operation, false)...)
		}
	}
	for _, request := range skipped { // after the next look it is made, once
		if !slices.Contains(taken, request) {
			taken = append(taken, request)
		}
	}
	for _, w := range newWrites(ts, cp) {
		// A take-back that others overtook is made again without a word.
		if again := w.ResponseStatus.Code == http.StatusConflict && !slices.Contains(skipped, w.request()); !again {
			logged = append(logged, w.request())
		}
	}
	for _, list := range [][]string{planned, taken, made, logged} {
		slices.Sort(list)
	}
	planned = slices.Compact(planned) // one change for several causes is made once
	some := risk != args[0] && !slices.ContainsFunc(taken, func(request string) bool { return !slices.Contains(planned, request) })
	if diff := cmp.Diff(planned, taken); diff != "" && !some {
		ts.Fatalf("it made other changes than were approved (-approved +made):\n%s", diff)
	}
	if diff := cmp.Diff(made, logged); diff != "" {
		ts.Fatalf("the audit log has other changes than were reported (-reported +logged):\n%s", diff)
	}
	tabled(ts, cause, target, &plan, &report)
	ts.Setenv("AUDITED", mark) // for audited
}

// promised are the changes of a plan, and those that it says will follow them.
func promised(plan render.UnstickPlan) []string {
	var all []string
	for i := range plan.Causes {
		for _, w := range plan.Causes[i].Writes {
			all = append(all, writesOf(w.Operation, false)...)
			for _, then := range w.Then {
				all = append(all, requestOf(then, false))
			}
		}
	}
	return all
}

// stuckBecauseOf waits until what unstick is asked about is stuck because of a cause. Numbers at the end pick ways out.
func stuckBecauseOf(ts *testscript.TestScript, cause string, target []string) {
	objects := slices.DeleteFunc(slices.Clone(target), func(arg string) bool { return regexp.MustCompile(`^[0-9.]+$`).MatchString(arg) })
	stuck := append([]string{`(^| )` + cause + `[ .]`, "kubectl-gc", "explain-stuck"}, objects...)
	eventually(ts, true, append(stuck, "-o", "jsonpath={.objects[*].causes[*].id}."))
	if len(objects) < len(target) { // numbers are those of a screen
		if code := exitCode(ts.Exec("kubectl-gc", append([]string{"explain-stuck"}, objects...)...)); code != 2 {
			ts.Fatalf("explain-stuck %q: exit code %d", objects, code)
		}
	}
}

// approved runs unstick with the arguments, for what a dry run of it has shown.
func approved(ts *testscript.TestScript, cp *controlplane.ControlPlane, args []string) (plan render.UnstickPlan, report render.UnstickReport) {
	unstick := append([]string{"unstick"}, args...)
	for tries := 0; ; tries++ {
		plan = render.UnstickPlan{}
		if code := exitCode(ts.Exec("kubectl-gc", append(slices.Clone(unstick), "--dry-run=client", "-o", "json")...)); code != 0 && code != 2 {
			ts.Fatalf("a dry run of unstick: exit code %d", code)
		}
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &plan))
		err := ts.Exec("kubectl-gc", append(slices.Clone(unstick), "--confirm="+plan.Digest, "-o", "json")...)
		out, moved := ts.ReadFile("stdout"), exitCode(err) == 1 && strings.Contains(ts.ReadFile("stderr"), "it is not that of")
		if moved && tries < 5 && len(newWrites(ts, cp)) == 0 {
			continue // a controller has changed the object meanwhile
		}
		if err != nil {
			ts.Fatalf("unstick: %v", err)
		}
		ts.Check(json.Unmarshal([]byte(out), &report))
		return plan, report
	}
}

// exitCode is that of a program that has ended with an error, or without one.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	code, failed := strconv.Atoi(strings.TrimPrefix(err.Error(), "exit status "))
	if failed != nil {
		return -1
	}
	return code
}

// interrupted SIGNAL PATTERN FILE PROGRAM ARG... runs a program, sends it the signal, as KILL or INT, once a line that it prints matches
// the pattern, and writes what it prints to the file, with the exit code as the last line.
func interrupted(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"KILL": os.Kill, "INT": os.Interrupt}
	if neg || len(args) < 4 || signals[args[0]] == nil {
		ts.Fatalf("usage: interrupted KILL|INT PATTERN FILE PROGRAM ARG...")
	}
	program, err := os.Executable()
	ts.Check(err)
	cmd := exec.Command(program, args[4:]...) // which is what its first word says
	cmd.Args[0] = args[3]
	cmd.Env = append(os.Environ(), "KUBECONFIG="+ts.Getenv("KUBECONFIG"), "HOME="+ts.Getenv("HOME"))
	output, err := cmd.StdoutPipe()
	ts.Check(err)
	cmd.Stderr = cmd.Stdout
	ts.Check(cmd.Start())
	pattern, sent := regexp.MustCompile(args[1]), false
	var text strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		fmt.Fprintln(&text, lines.Text())
		if !sent && pattern.MatchString(lines.Text()) {
			sent = true
			ts.Check(cmd.Process.Signal(signals[args[0]]))
		}
	}
	_ = cmd.Wait() // the exit code says it
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(fmt.Sprintf("%sexit code %d\n", &text, cmd.ProcessState.ExitCode())), 0o600))
	if !sent {
		ts.Fatalf("it never prints %s:\n%s", args[1], &text)
	}
}

// atOnce N: no more than so many writes of the session were being answered at a time.
func atOnce(ts *testscript.TestScript, cp *controlplane.ControlPlane, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: atonce N")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, w := range newWrites(ts, cp) {
		changes = append(changes, change{w.RequestReceivedTimestamp, 1}, change{w.StageTimestamp, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return stdcmp.Or(a.at.Compare(b.at), a.by-b.by) })
	open, most := 0, 0
	for _, c := range changes {
		open += c.by
		most = max(most, open)
	}
	if most == 0 || most > want {
		ts.Fatalf("%d writes at once, want up to %d", most, want)
	}
}

// writesOf is what an operation of a document, or its end, asks of the API server.
func writesOf(op *render.StuckOperation, back bool) []string {
	request := requestOf(op, back)
	if op.Grant == nil || back {
		return []string{request}
	}
	return []string{request, strings.Replace(request, "create", "patch", 1)} // it is made without subjects
}

func requestOf(op *render.StuckOperation, back bool) string {
	verbs := map[remedy.Verb]string{
		remedy.Delete: "delete", remedy.Patch: "patch", remedy.Scale: "patch", remedy.Restart: "patch", remedy.Resume: "patch", remedy.Create: "create",
		remedy.Restore: "create", remedy.Finalize: "update", remedy.Taint: "update", remedy.Untaint: "update", remedy.Annotate: "patch",
	}
	verb, subresource := verbs[remedy.Verb(op.Verb)], map[remedy.Verb]string{remedy.Finalize: "/finalize"}[remedy.Verb(op.Verb)]
	if back && verb == "create" {
		verb = "delete"
	}
	namespace := op.Object.Namespace
	if op.Object.Resource == "namespaces" { // as the API server has it
		namespace = op.Object.Name
	}
	return strings.Join([]string{verb, op.Object.Resource + subresource, namespace, op.Object.Name}, " ")
}

// auditedWrite is a line of the audit log.
type auditedWrite struct {
	Stage, Verb, UserAgent, RequestURI string
	ImpersonatedUser                   struct{ Username string }
	ObjectRef                          struct{ Resource, Subresource, Namespace, Name, APIGroup string }
	ResponseStatus                     struct{ Code int }
	RequestObject                      json.RawMessage
	RequestReceivedTimestamp           time.Time
	StageTimestamp                     time.Time
}

func (w *auditedWrite) request() string {
	resource := w.ObjectRef.Resource
	if w.ObjectRef.Subresource != "" {
		resource += "/" + w.ObjectRef.Subresource
	}
	return strings.Join([]string{w.Verb, resource, w.ObjectRef.Namespace, w.ObjectRef.Name}, " ")
}

// String is the request, with what is changed and what guards it.
func (w *auditedWrite) String() string {
	text := w.request() + w.changes()
	if w.ResponseStatus.Code >= 300 {
		text += fmt.Sprint(" -> ", w.ResponseStatus.Code)
	}
	return strings.Join(strings.Fields(text), " ")
}

// changes are those of a patch and the options of a deletion, with "!" behind them when it is guarded by the UID alone, and "!!" when by
// nothing.
func (w *auditedWrite) changes() string {
	var text strings.Builder
	guards := map[string]bool{}
	var steps []remedy.Step
	var object struct {
		Preconditions      map[string]string
		Metadata           struct{ UID, ResourceVersion string }
		PropagationPolicy  string
		GracePeriodSeconds *int64
	}
	switch {
	case w.Verb != "patch" && w.Verb != "delete":
		return ""
	case json.Unmarshal(w.RequestObject, &steps) == nil:
		for _, s := range steps {
			if s.Op == "test" {
				guards[strings.TrimPrefix(s.Path, "/metadata/")] = true
				continue
			}
			text.WriteString(" " + s.Op + " " + s.Path)
			if value, scalar := s.Value.(string); scalar {
				fmt.Fprintf(&text, " %q", value)
			}
		}
	case json.Unmarshal(w.RequestObject, &object) == nil:
		guards["uid"] = object.Preconditions["uid"]+object.Metadata.UID != ""
		guards["resourceVersion"] = object.Preconditions["resourceVersion"]+object.Metadata.ResourceVersion != ""
		text.WriteString(" " + object.PropagationPolicy)
		if object.GracePeriodSeconds != nil {
			fmt.Fprintf(&text, " grace=%d", *object.GracePeriodSeconds)
		}
	}
	if !guards["resourceVersion"] {
		text.WriteString(" !")
	}
	if !guards["uid"] {
		text.WriteString("!")
	}
	return text.String()
}

// newWrites returns the writes of the plugin in the session that the audit log has since the last time, dry runs and questions left out.
func newWrites(ts *testscript.TestScript, cp *controlplane.ControlPlane) []auditedWrite {
	mark := fmt.Sprintf("/version?logged=%d", time.Now().UnixNano())
	ts.Check(ts.Exec("kubectl", "get", "--raw", mark))
	var log []byte
	for deadline := time.Now().Add(patience); !bytes.Contains(log, []byte(mark)); time.Sleep(pause) {
		if time.Now().After(deadline) {
			ts.Fatalf("a request is not in the audit log")
		}
		var err error
		log, err = os.ReadFile(cp.AuditLog)
		ts.Check(err)
	}
	var all []auditedWrite
	lines := bufio.NewScanner(bytes.NewReader(log[:bytes.LastIndexByte(log, '\n')+1])) // the last may be half written
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var w auditedWrite
		ts.Check(json.Unmarshal(lines.Bytes(), &w))
		reads := slices.Contains([]string{"get", "list", "watch"}, w.Verb)
		asks := strings.HasSuffix(w.ObjectRef.APIGroup, "authorization.k8s.io") && strings.HasSuffix(w.ObjectRef.Resource, "reviews")
		dry := strings.Contains(w.RequestURI, "dryRun=") || regexp.MustCompile(`"dryRun":\["All"\]`).Match(w.RequestObject)
		fence := bytes.Contains(w.RequestObject, []byte("kubectl-gc~1fence")) // changes an object to and fro
		if w.ImpersonatedUser.Username == sessionUser(ts.Getenv("NS")) && !fence && !strings.HasPrefix(w.UserAgent, "kubectl/") && !reads && !asks && !dry && w.Stage == "ResponseComplete" {
			all = append(all, w)
		}
	}
	ts.Check(lines.Err())
	seen, _ := strconv.Atoi(ts.Getenv("AUDITED")) // empty at first
	ts.Setenv("AUDITED", strconv.Itoa(len(all)))
	return all[seen:]
}
