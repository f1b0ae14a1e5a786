// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What the Collector itself decided to delete goes with the version that was
// decided about, whatever a conflict was about; only the user's target goes by
// UID alone.
func TestOwnDecisionsGoByVersion(t *testing.T) {
	for _, s := range []session{
		{
			name:   "adopted after a conflict without a change",
			world:  "configmap/s\nconfigmap/d < configmap/gone",
			do:     "collect",
			script: "DELETE d: 409\nDELETE d: own d < configmap/s",
			requests: `GET configmap/gone
				DELETE configmap/d Background
				GET configmap/d
				DELETE configmap/d Background
				GET configmap/d`,
			left: "configmap/d < s\nconfigmap/s",
		},
		{
			name:   "a conflict that stays without a change",
			world:  "configmap/d < configmap/gone",
			do:     "collect",
			script: "DELETE d: always 409",
			requests: `GET configmap/gone
				DELETE configmap/d Background
				GET configmap/d
				DELETE configmap/d Background
				GET configmap/d
				DELETE configmap/d Background
				GET configmap/d`,
			outcomes: `configmap/d Remaining: refused: Operation cannot be fulfilled on things "d": no`,
		},
		{
			name:   "the user's target, for which the API server objects to its own change",
			world:  "configmap/a deleting finalizers=foregroundDeletion",
			do:     "delete a Background",
			script: "DELETE a: 409",
			requests: `DELETE configmap/a Background
				GET configmap/a
				DELETE configmap/a Background by UID
				GET configmap/a`,
			outcomes: "configmap/a Deleted",
		},
	} {
		t.Run(s.name, s.test)
	}
}

// An object that somebody changes before every write is refused in the end.
func TestConflictsAreBounded(t *testing.T) {
	for name, s := range map[string]struct{ world, script, write string }{
		"a delete": {"configmap/d < configmap/gone", "DELETE d: always touch d", "DELETE"},
		"a patch":  {"configmap/a\nconfigmap/d < configmap/a configmap/gone", "PATCH d: always touch d", "PATCH"},
	} {
		objects := parseWorld(t, s.world)
		f := newFake(t, objects, s.script)
		r, err := perform(t, f, graphOf(objects), "collect", Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		writes := 0
		for _, line := range f.log {
			if strings.HasPrefix(line, s.write) {
				writes++
			}
			if strings.Contains(line, "by UID") {
				t.Errorf("%s: asked %s", name, line)
			}
		}
		if most := maxConflicts * (maxTurns + 1); writes <= maxTurns || writes > most {
			t.Errorf("%s: written %d times, want more than %d and at most %d", name, writes, maxTurns, most)
		}
		got := outcomes(r)
		if i := slices.IndexFunc(got, func(line string) bool {
			return strings.HasPrefix(line, "configmap/d Remaining: refused: Operation cannot be fulfilled")
		}); i < 0 {
			t.Errorf("%s: outcomes %q", name, got)
		}
	}
}

// What a conflict and a read have shown counts also when its version is older
// than what was known: the server was restored from a backup.
func TestVersionsGoBack(t *testing.T) {
	for _, s := range []session{
		{
			name:   "a patch",
			world:  "configmap/a\nconfigmap/b version=50 < configmap/a secret/gone",
			do:     "collect",
			script: "PATCH b: mute; touch b; loud",
			requests: `GET secret/gone
				PATCH configmap/b drop owners [gone]
				GET configmap/b
				PATCH configmap/b drop owners [gone]`,
			left: "configmap/a\nconfigmap/b < a",
		},
		{
			name:   "a delete of what has another owner there",
			world:  "configmap/a\nconfigmap/b version=50 < secret/gone",
			do:     "collect",
			script: "DELETE b: mute; own b < secret/gone configmap/a; loud",
			requests: `GET secret/gone
				DELETE configmap/b Background
				GET configmap/b
				PATCH configmap/b drop owners [gone]`,
			left: "configmap/a\nconfigmap/b < a",
		},
	} {
		t.Run(s.name, s.test)
	}
}

// A write without an answer is neither a refusal nor a success before the
// object has been read.
func TestUnanswered(t *testing.T) {
	for _, s := range []session{
		{
			name:   "a delete that was carried out",
			world:  "configmap/a\nconfigmap/b < configmap/a",
			do:     "delete a Background",
			script: "DELETE a: mute; remove a; loud; 504\nDELETE b: mute; remove b; loud; 502",
			requests: `DELETE configmap/a Background
				GET configmap/a
				DELETE configmap/b Background
				GET configmap/b`,
			outcomes: "configmap/a Deleted\nconfigmap/b Deleted",
		},
		{
			name:   "a delete that was not: once more",
			world:  "configmap/a\nconfigmap/b < configmap/a",
			do:     "delete a Background",
			script: "DELETE a: late\nDELETE b: etcd",
			requests: `DELETE configmap/a Background
				GET configmap/a
				DELETE configmap/a Background
				DELETE configmap/b Background
				GET configmap/b
				DELETE configmap/b Background`,
			outcomes: "configmap/a Deleted\nconfigmap/b Deleted",
		},
		{
			name:   "a delete that is carried out much later",
			world:  "configmap/a\nconfigmap/b < configmap/a",
			do:     "delete a Background",
			script: "DELETE a: 504\nDELETE a: 504\nrest: remove a",
			requests: `DELETE configmap/a Background
				GET configmap/a
				DELETE configmap/a Background
				GET configmap/a
				DELETE configmap/b Background`,
			outcomes: "configmap/a Deleted\nconfigmap/b Deleted",
		},
		{
			name:   "a delete of which nothing is known in the end",
			world:  "configmap/a",
			do:     "delete a Background",
			script: "DELETE a: always 504",
			outcomes: "configmap/a Remaining: no answer, and no effect seen: " +
				"Timeout: too late",
		},
		{
			name:   "a patch that was carried out",
			world:  "configmap/a\nconfigmap/b < configmap/a secret/gone",
			do:     "collect",
			script: "PATCH b: own b < configmap/a; 504",
			requests: `GET secret/gone
				PATCH configmap/b drop owners [gone]
				GET configmap/b`,
			outcomes: "configmap/b OwnerReferenceRemoved: kept by ConfigMap/a",
		},
		{
			name:   "a patch that was not: once more",
			world:  "configmap/a\nconfigmap/b < configmap/a secret/gone",
			do:     "collect",
			script: "PATCH b: 504",
			requests: `GET secret/gone
				PATCH configmap/b drop owners [gone]
				GET configmap/b
				PATCH configmap/b drop owners [gone]`,
			left: "configmap/a\nconfigmap/b < a",
		},
		{
			name:   "a patch of which nothing is known in the end",
			world:  "configmap/a\nconfigmap/b < configmap/a secret/gone",
			do:     "collect",
			script: "PATCH b: always 504",
			outcomes: "configmap/b Remaining: no answer, and no effect seen: " +
				"Timeout: too late",
		},
	} {
		t.Run(s.name, s.test)
	}
}

// What cannot be watched is read in the end, and then the run goes on.
func TestUnseen(t *testing.T) {
	for _, s := range []session{
		{
			name:   "an object that went",
			world:  "configmap/a\nconfigmap/b < configmap/a\nconfigmap/c < configmap/b",
			do:     "delete a Background",
			script: "DELETE a: mute\nanswer DELETE a: loud\nDELETE b: mute\nanswer DELETE b: loud",
			requests: `DELETE configmap/a Background
				GET configmap/a
				DELETE configmap/b Background
				GET configmap/b
				DELETE configmap/c Background`,
			outcomes: "configmap/a Deleted\nconfigmap/b Deleted\nconfigmap/c Deleted",
		},
		{
			name:   "an object that is on its way",
			world:  "configmap/a finalizers=x\nconfigmap/b < configmap/a",
			do:     "delete a Background",
			script: "answer DELETE a: loud\nDELETE a: mute",
			outcomes: "configmap/a Remaining: finalizer x\n" +
				"configmap/b Untouched: its owner ConfigMap/a is still there",
		},
		{
			name:   "an object that cannot be read: it is asked for once",
			world:  "configmap/a",
			do:     "delete a Background",
			script: "DELETE a: mute\nanswer DELETE a: loud\nGET a: always 403",
			requests: `DELETE configmap/a Background
				GET configmap/a`,
			outcomes: "configmap/a Remaining: its deletion was accepted, and its end not seen",
		},
	} {
		t.Run(s.name, s.test)
	}
}

// A run ends when neither a write nor the question what became of it is
// answered, whatever else there is to do; and what was sent is told. A write that
// is refused ends nothing.
func TestSilence(t *testing.T) {
	dependents := func(format string) string {
		script := ""
		for i := range 100 {
			script += fmt.Sprintf(format, i) + "\n"
		}
		return script
	}
	for name, test := range map[string]struct {
		do, script string
		ends       bool
	}{
		"deletes":                 {"delete a Background", dependents("DELETE d%[1]d: always late\nGET d%[1]d: always late"), true},
		"patches":                 {"delete a Orphan", dependents("PATCH d%[1]d: always late\nGET d%[1]d: always late"), true},
		"reads that are refused":  {"delete a Background", dependents("DELETE d%[1]d: always late\nGET d%[1]d: always 403"), false},
		"writes that are refused": {"delete a Background", dependents("DELETE d%[1]d: always 403"), false},
	} {
		for _, workers := range []int{1, 8} {
			f := newFake(t, parseWorld(t, fan(100)), test.script)
			var told []Step
			r, err := perform(t, f, graphOf(parseWorld(t, fan(100))), test.do, Options{Workers: workers, Observer: func(s Step) { told = append(told, s) }})
			if ended := err != nil && strings.Contains(err.Error(), "does not answer any more"); ended != test.ends {
				t.Errorf("%s, %d workers: error %v", name, workers, err)
			}
			if sent := slices.DeleteFunc(f.log, func(request string) bool { return strings.HasPrefix(request, "GET") }); test.ends && len(sent) > workers+1 {
				t.Errorf("%s, %d workers: asked %q", name, workers, sent)
			} else if len(told) != len(sent) {
				t.Errorf("%s, %d workers: sent %q, told %v", name, workers, sent, told)
			}
			if len(r.Outcomes) != 101 {
				t.Errorf("%s, %d workers: %d outcomes", name, workers, len(r.Outcomes))
			}
		}
	}
}

// somewhat is a server whose events do not tell of secrets.
type somewhat struct{ *fake }

// Follows implements partial.
func (s somewhat) Follows(resource schema.GroupResource, namespace string) int {
	if !s.Tells(resource, namespace) {
		return 0
	}
	return 1
}

// Tells implements partial.
func (somewhat) Tells(resource schema.GroupResource, _ string) bool {
	return resource.Resource != "secrets"
}

// interrupted is a server whose watches break off and are connected again all the
// time.
type interrupted struct {
	*fake
	connections *int
}

// Follows implements partial.
func (s interrupted) Follows(schema.GroupResource, string) int {
	*s.connections++
	return *s.connections
}

// Tells implements partial.
func (interrupted) Tells(schema.GroupResource, string) bool { return true }

// That an owner waits for its dependents is remembered only while events would
// tell that it no longer does.
func TestWaitingIsRemembered(t *testing.T) {
	const world = "secret/f deleting finalizers=foregroundDeletion,example.com/x\n" +
		"configmap/c < secret/f\nconfigmap/d < secret/f"
	objects := parseWorld(t, world)
	unlisted := &graph.Snapshot{Mapper: servedMapper()}
	unlisted.MarkListed(served["configmap"].GroupResource(), "shop", "1")
	for _, o := range objects {
		unlisted.Add(o)
	}
	for name, s := range map[string]struct {
		g    *graph.Graph
		of   func(*fake) Server
		left string
	}{
		"not listed":   {graph.New(unlisted), func(f *fake) Server { return f }, "configmap/d < f"},
		"not followed": {graphOf(objects), func(f *fake) Server { return somewhat{f} }, "configmap/d < f"},
		"interrupted":  {graphOf(objects), func(f *fake) Server { return interrupted{f, new(int)} }, "configmap/d < f"},
	} {
		f := newFake(t, objects, "answer DELETE c: mute; keep f; loud")
		r, err := New(s.of(f), s.g, Options{}).Collect(t.Context(), "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Contains(f.left(), s.left) {
			t.Errorf("%s: asked %q, outcomes %q, left %q", name, f.log, outcomes(r), f.left())
		}
	}
}

// An owner that cannot be read is not asked for with each dependent.
func TestUnreadableOwner(t *testing.T) {
	world := strings.ReplaceAll(strings.TrimPrefix(fan(20), "configmap/a\n"), "configmap/a!", "configmap/a")
	for _, workers := range []int{1, 8} {
		objects := parseWorld(t, world)
		f := newFake(t, objects, "GET a: always 504")
		r, err := perform(t, f, graphOf(objects), "collect", Options{Workers: workers})
		if err != nil {
			t.Errorf("%d workers: %v", workers, err)
		}
		if len(f.log) != maxReads {
			t.Errorf("%d workers: asked %q", workers, f.log)
		}
		for _, o := range r.Outcomes {
			if o.Result != Unknown {
				t.Errorf("%d workers: %s %s: %s", workers, short(&o.Object), o.Result, o.Reason)
			}
		}
		if len(r.Outcomes) != len(objects) {
			t.Errorf("%d workers: %d outcomes", workers, len(r.Outcomes))
		}
	}
}

// A request whose own time is over was sent, also when the time of the run is
// over meanwhile.
func TestUnsent(t *testing.T) {
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	sent := fmt.Errorf("Delete: %w", context.DeadlineExceeded)
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{
		{t.Context(), nil, false}, {over, nil, false}, {over, over.Err(), true}, {over, sent, false}, {t.Context(), sent, false},
	} {
		if got := unsent(test.ctx, test.err); got != test.want {
			t.Errorf("%v, %v: got %t", test.ctx.Err(), test.err, got)
		}
	}
}
