// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"strings"
	"testing"
)

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
			outcomes: "configmap/a Untouched: it does not match the selector any more\nsecret/b Untouched: its owner ConfigMap/a is still there",
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
			outcomes: "configmap/a Untouched: it does not match the selector any more\nconfigmap/b Deleted\nsecret/c Untouched: its owner ConfigMap/a is still there",
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
			name:  "the server can only accept it by UID",
			world: "configmap/a deleting finalizers=foregroundDeletion", do: "select a Background",
			script:   "DELETE a: 409",
			requests: "DELETE configmap/a Background\nLIST configmap/a\nDELETE configmap/a Background by UID\nGET configmap/a",
			outcomes: "configmap/a Deleted",
		},
		{
			name:  "an object in deletion that does not match any more",
			world: "configmap/a deleting finalizers=foregroundDeletion,x\nsecret/b < configmap/a", do: "select a Orphan",
			script:   "DELETE a: deselect a",
			requests: "DELETE configmap/a Orphan\nLIST configmap/a\nGET configmap/a",
			outcomes: "configmap/a Remaining: finalizer x; its finalizer foregroundDeletion was not taken off\nsecret/b Remaining: nothing keeps it, but it was not reached",
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
