// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What the Collector itself decided to delete goes with the version that was
// decided about, whatever a conflict was about; where the API server does not accept that
// of the user's target, what is left of it is removed, with the version.
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
				PATCH configmap/a drop finalizer foregroundDeletion
				GET configmap/a`,
			outcomes: "configmap/a Deleted",
		},
		{
			name:   "the user's target with such a finalizer that is not being deleted",
			world:  "configmap/a finalizers=orphan",
			do:     "delete a Background",
			script: "DELETE a: 409",
			requests: `DELETE configmap/a Background
				GET configmap/a
				PATCH configmap/a drop finalizer orphan
				DELETE configmap/a Background`,
			outcomes: "configmap/a Deleted",
		},
	} {
		t.Run(s.name, s.test)
	}
}

// An object that somebody changes before every write is refused in the end.
func TestConflictsAreBounded(t *testing.T) {
	for name, s := range map[string]struct{ world, script, write, do string }{
		"a delete": {"configmap/d < configmap/gone", "DELETE d: always touch d", "DELETE", "collect"},
		"a target": {"configmap/d", "DELETE d: always touch d", "DELETE", "delete d Background"},
		"a patch":  {"configmap/a\nconfigmap/d < configmap/a configmap/gone", "PATCH d: always touch d", "PATCH", "collect"},
	} {
		objects := parseWorld(t, s.world)
		f := newFake(t, objects, s.script)
		r, err := perform(t, f, graphOf(objects), s.do, Options{})
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
				"configmap/b Untouched: its owner ConfigMap/a still exists",
		},
		{
			name:   "an object that cannot be read: it is asked for once",
			world:  "configmap/a",
			do:     "delete a Background",
			script: "DELETE a: mute\nanswer DELETE a: loud\nGET a: always 403",
			requests: `DELETE configmap/a Background
				GET configmap/a`,
			outcomes: "configmap/a Remaining: its deletion was accepted, but its end was not seen",
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

// Whoever else deletes the target at the same time, and whoever gives it dependents
// meanwhile: the job is carried on.
func TestOthersAtTheTarget(t *testing.T) {
	for _, s := range []session{
		{
			name:     "which somebody began to delete, as the user wants it",
			world:    "configmap/a\nconfigmap/b < configmap/a!",
			do:       "delete a Foreground",
			script:   "DELETE a: foreground a; 409",
			outcomes: "configmap/a Deleted\nconfigmap/b Deleted",
		},
		{
			name:     "which this run began to delete, by a request without an answer",
			world:    "configmap/a\nconfigmap/b < configmap/a!",
			do:       "delete a Foreground",
			script:   "DELETE a: mute; foreground a; loud; 504",
			outcomes: "configmap/a Deleted\nconfigmap/b Deleted",
		},
		{
			name:     "which got a dependent, to be orphaned with the others",
			world:    "configmap/a\nconfigmap/b < configmap/a\nconfigmap/c",
			do:       "delete a Orphan",
			script:   "DELETE a: own c < configmap/a",
			outcomes: "configmap/a Deleted\nconfigmap/b Orphaned\nconfigmap/c Orphaned",
		},
	} {
		t.Run(s.name, s.test)
	}
}

// What a selector chose is deleted as long as it matches, in the version that does;
// what was named is deleted whatever becomes of it.
func TestSelected(t *testing.T) {
	for _, s := range []session{
		{
			name:  "it has not changed",
			world: "configmap/a", do: "select a Background",
			requests: "DELETE configmap/a Background",
			outcomes: "configmap/a Deleted",
		},
		{
			name:  "it changed and still matches",
			world: "configmap/a\nsecret/b < configmap/a", do: "select a Background",
			script:   "DELETE a: touch a",
			requests: "DELETE configmap/a Background\nLIST configmap/a\nDELETE configmap/a Background\nDELETE secret/b Background",
			outcomes: "configmap/a Deleted\nsecret/b Deleted",
		},
		{
			name:  "it does not match any more",
			world: "configmap/a\nsecret/b < configmap/a", do: "select a Background",
			script:   "DELETE a: deselect a",
			requests: "DELETE configmap/a Background\nLIST configmap/a\nGET configmap/a",
			outcomes: "configmap/a Untouched: it does not match the selector any more\nsecret/b Untouched: its owner ConfigMap/a still exists",
			left:     "configmap/a\nsecret/b < a",
		},
		{
			name:  "it was changed before its turn",
			world: "configmap/a\nconfigmap/b", do: "select b a Background",
			script:   "DELETE b: touch a",
			requests: "DELETE configmap/b Background\nLIST configmap/a\nDELETE configmap/a Background",
			outcomes: "configmap/a Deleted\nconfigmap/b Deleted",
		},
		{
			name:  "it does not match any more before its turn",
			world: "configmap/a\nconfigmap/b\nsecret/c < configmap/a", do: "select b a Background",
			script:   "DELETE b: touch a; deselect a",
			requests: "DELETE configmap/b Background\nLIST configmap/a\nGET configmap/a",
			outcomes: "configmap/a Untouched: it does not match the selector any more\nconfigmap/b Deleted\nsecret/c Untouched: its owner ConfigMap/a still exists",
			left:     "configmap/a\nsecret/c < a",
		},
		{
			name:  "it does not match any more before its wave",
			world: "configmap/a\nconfigmap/b", do: "select b then a Background",
			script:   "DELETE b: touch a; deselect a",
			requests: "DELETE configmap/b Background\nLIST configmap/a\nGET configmap/a",
			outcomes: "configmap/a Untouched: it does not match the selector any more\nconfigmap/b Deleted",
			left:     "configmap/a",
		},
		{
			name:  "whether it matches before its turn cannot be known",
			world: "configmap/a\nconfigmap/b", do: "select b a Background",
			script:   "DELETE b: touch a\nLIST a: 403",
			requests: "DELETE configmap/b Background\nLIST configmap/a",
			outcomes: "configmap/a Remaining: refused: asking whether it still matches the selector: things \"a\" is forbidden: not for you\nconfigmap/b Deleted",
			left:     "configmap/a",
		},
		{
			name:  "it went, and another has its name, before its turn",
			world: "configmap/a\nconfigmap/b", do: "select b a Background",
			script:   "DELETE b: touch a\nLIST a: recreate a",
			requests: "DELETE configmap/b Background\nLIST configmap/a\nGET configmap/a",
			outcomes: "configmap/a Deleted\nconfigmap/b Deleted",
			left:     "configmap/a'",
		},
		{
			name:  "it stops matching while it is asked about",
			world: "configmap/a", do: "select a Background",
			script:   "DELETE a: touch a\nanswer LIST a: deselect a",
			requests: "DELETE configmap/a Background\nLIST configmap/a\nDELETE configmap/a Background\nLIST configmap/a\nGET configmap/a",
			outcomes: "configmap/a Untouched: it does not match the selector any more",
			left:     "configmap/a",
		},
		{
			name:  "it is gone",
			world: "configmap/a\nsecret/b < configmap/a", do: "select a Background",
			script:   "DELETE a: 409\nLIST a: remove a",
			requests: "DELETE configmap/a Background\nLIST configmap/a\nGET configmap/a\nDELETE secret/b Background",
			outcomes: "configmap/a Deleted\nsecret/b Deleted",
		},
		{
			name:  "another has its name",
			world: "configmap/a", do: "select a Background",
			script:   "DELETE a: recreate a",
			requests: "DELETE configmap/a Background\nLIST configmap/a\nGET configmap/a",
			outcomes: "configmap/a Deleted",
			left:     "configmap/a'",
		},
		{
			name:  "whether it matches cannot be known",
			world: "configmap/a", do: "select a Background",
			script:   "DELETE a: touch a\nLIST a: 403",
			requests: "DELETE configmap/a Background\nLIST configmap/a",
			outcomes: `configmap/a Remaining: refused: Operation cannot be fulfilled on configmaps "a": the object has been modified, and reading it again: things "a" is forbidden: not for you`,
			left:     "configmap/a",
		},
		{
			name:  "no answer, and it does not match any more",
			world: "configmap/a", do: "select a Background",
			script:   "DELETE a: deselect a; late",
			requests: "DELETE configmap/a Background\nLIST configmap/a\nGET configmap/a",
			outcomes: "configmap/a Untouched: it does not match the selector any more",
			left:     "configmap/a",
		},
		{
			name:  "no answer, and it still matches",
			world: "configmap/a", do: "select a Background",
			script:   "DELETE a: late",
			requests: "DELETE configmap/a Background\nLIST configmap/a\nDELETE configmap/a Background",
			outcomes: "configmap/a Deleted",
		},
		{
			name:  "no answer, and it was carried out",
			world: "configmap/a", do: "select a Background",
			script:   "DELETE a: remove a; late",
			requests: "DELETE configmap/a Background\nLIST configmap/a\nGET configmap/a",
			outcomes: "configmap/a Deleted",
		},
		{
			name:  "the server accepts no delete with a version",
			world: "configmap/a deleting finalizers=foregroundDeletion", do: "select a Background",
			script:   "DELETE a: 409",
			requests: "DELETE configmap/a Background\nLIST configmap/a\nPATCH configmap/a drop finalizer foregroundDeletion\nGET configmap/a",
			outcomes: "configmap/a Deleted",
		},
		{
			name:  "an object in deletion that does not match any more",
			world: "configmap/a deleting finalizers=foregroundDeletion,x\nsecret/b < configmap/a", do: "select a Orphan",
			script:   "DELETE a: deselect a",
			requests: "DELETE configmap/a Orphan\nLIST configmap/a\nGET configmap/a",
			outcomes: "configmap/a Remaining: finalizer x; its finalizer foregroundDeletion was not removed\nsecret/b Remaining: nothing keeps it, but it was not reached",
		},
	} {
		t.Run(s.name, s.test)
	}
}

// Who keeps changing an object that a selector chose keeps it: the conflict is the
// answer, and no delete goes without the version.
func TestSelectedAgainAndAgain(t *testing.T) {
	for _, script := range []string{"DELETE a: always touch a", "DELETE a: always 409"} {
		objects := parseWorld(t, "configmap/a finalizers=x")
		f := newFake(t, objects, script)
		r, err := perform(t, f, graphOf(objects), "select a Background", Options{})
		if got := outcomes(r); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "configmap/a Remaining: refused: Operation cannot be fulfilled") {
			t.Errorf("%s: got %q, %v", script, got, err)
		}
		deletes := 0
		for _, request := range f.log {
			if strings.HasPrefix(request, "DELETE") {
				deletes++
			}
			if strings.Contains(request, "by UID") {
				t.Errorf("%s: %s", script, request)
			}
		}
		if deletes != maxTurns+1 {
			t.Errorf("%s: %d deletes", script, deletes)
		}
	}
}

// A DELETE whose answer was lost counts as a write when an event says that the object is gone: that something else took it
// nobody can say.
func TestLostDeleteOfWhatIsGone(t *testing.T) {
	for script, want := range map[string]int{
		"DELETE a: remove a; wait; late": 1,
		"DELETE a: remove a; wait; 409":  0, // which is an answer: it was not this one
	} {
		objects := parseWorld(t, "configmap/a")
		f := newFake(t, objects, script)
		r, err := perform(t, f, graphOf(objects), "delete a Background", Options{Workers: 2})
		if err != nil || len(f.log) != 1 {
			t.Errorf("%s: asked %q, %v", script, f.log, err)
		}
		if got := outcomes(r); !slices.Equal(got, []string{"configmap/a Deleted"}) {
			t.Errorf("%s: got %q", script, got)
		}
		if len(r.Steps) != want || want > 0 && (r.Steps[0].Action != ActionDelete || r.Steps[0].Err != nil) {
			t.Errorf("%s: steps %v, want %d", script, r.Steps, want)
		}
	}
}

// The end of an owner that the server is too busy for is proved anew before it is asked for again: what has come to
// depend on it meanwhile is looked at first.
func TestFinishingIsProvedForEachTry(t *testing.T) {
	for _, workers := range []int{1, 4} {
		for script, policy := range map[string]string{
			"PATCH a: create configmap/s < configmap/a; 502":  "Orphan",
			"PATCH a: create configmap/s < configmap/a!; 502": "Foreground",
			"PATCH a: create configmap/s < configmap/a; late": "Orphan",
		} {
			objects := parseWorld(t, "configmap/a\nconfigmap/b < configmap/a!")
			f := newFake(t, objects, script)
			r, err := perform(t, f, graphOf(objects), "delete a "+policy, Options{Workers: workers})
			if err != nil {
				t.Errorf("%s: %v", script, err)
			}
			want := []string{"configmap/a Deleted", "configmap/b Orphaned", "configmap/s Orphaned"}
			if policy == "Foreground" {
				want = []string{"configmap/a Deleted", "configmap/b Deleted", "configmap/s Deleted"}
			}
			if got := outcomes(r); !slices.Equal(got, want) {
				t.Errorf("%d workers, %s: got %q, asked %q", workers, script, got, f.log)
			}
		}
	}
}

// A write that was not answered may be carried out late, whatever a later one was answered.
func TestLostAndThenRefused(t *testing.T) {
	const late = "; an earlier request was not answered, and might still be carried out"
	for _, s := range []session{
		{
			name: "a delete", world: "configmap/a", do: "delete a Background", script: "DELETE a: late\nDELETE a: 403",
			requests: "DELETE configmap/a Background\nGET configmap/a\nDELETE configmap/a Background",
			outcomes: "configmap/a Remaining: refused: things \"a\" is forbidden: not for you" + late,
		},
		{
			name: "a patch", world: "configmap/a\nconfigmap/d < configmap/a secret/gone", do: "collect", script: "PATCH d: late\nPATCH d: 403",
			requests: "GET secret/gone\nPATCH configmap/d drop owners [gone]\nGET configmap/d\nPATCH configmap/d drop owners [gone]",
			outcomes: "configmap/d Remaining: refused: things \"d\" is forbidden: not for you" + late,
		},
	} {
		t.Run(s.name, s.test)
	}
}
