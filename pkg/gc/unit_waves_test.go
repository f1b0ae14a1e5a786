// SPDX-License-Identifier: Apache-2.0

package gc

import "testing"

// What goes ahead goes as long as it would go with what was named: not when it, or what owns
// it, has another owner by then, or has lost all, nor when what it goes with is not there, or not chosen, any
// more. Then what was to go after it is held back.
func TestAhead(t *testing.T) {
	const (
		world  = "configmap/a < configmap/m\nconfigmap/m < configmap/b\nconfigmap/b\nconfigmap/k\nconfigmap/z"
		do     = "delete z then ahead:a then b Background"
		chosen = "select z then ahead:a then b Background"
		first  = "DELETE configmap/z Background\nGET configmap/b\n"
		rest   = "\nDELETE configmap/b Background\nDELETE configmap/m Background"
		went   = "configmap/a Deleted\nconfigmap/b Deleted\nconfigmap/m Deleted\nconfigmap/z Deleted"
		held   = "\nconfigmap/b Remaining: not deleted, because an object of an earlier wave still exists: ConfigMap/shop/a\n" +
			"configmap/m Untouched: its owner ConfigMap/b still exists\nconfigmap/z Deleted"
		kept = "configmap/a Remaining: not deleted ahead of its owner or container: "
	)
	for _, s := range []session{
		{name: "nothing has changed", do: do, requests: first + "DELETE configmap/a Background" + rest, outcomes: went},
		{
			name: "touched", do: do, script: "DELETE a: touch a",
			requests: first + "DELETE configmap/a Background\nGET configmap/a\nDELETE configmap/a Background" + rest, outcomes: went,
		},
		{
			name: "another owner before its turn", do: do, script: "DELETE z: own a < configmap/m configmap/k",
			requests: first, outcomes: kept + "kept by ConfigMap/k" + held,
		},
		{
			name: "another owner meanwhile", do: do, script: "DELETE a: own a < configmap/m configmap/k",
			requests: first + "DELETE configmap/a Background\nGET configmap/a", outcomes: kept + "kept by ConfigMap/k" + held,
		},
		{
			name: "no owner any more", do: do, script: "DELETE z: own a",
			requests: "DELETE configmap/z Background", outcomes: kept + "nothing that is to be deleted owns it" + held,
		},
		{
			name: "another owner of its owner", do: do, script: "DELETE z: own m < configmap/b configmap/k",
			requests: first, outcomes: kept + "nothing that is to be deleted owns it" + held,
		},
		{
			name: "somebody deletes it", do: do, script: "DELETE a: foreground a",
			requests: first + "DELETE configmap/a Background\nGET configmap/a\nGET configmap/a\nPATCH configmap/a drop finalizer foregroundDeletion" + rest, outcomes: went,
		},
		{
			name: "what it goes with is another by then", do: do, script: "GET b: recreate b",
			requests: first, outcomes: kept + "ConfigMap/shop/b is another object now" + held,
		},
		{
			name: "a delete that is answered NotFound", do: do, script: "DELETE a: 404",
			requests: first + "DELETE configmap/a Background\nGET configmap/a", outcomes: "configmap/a Remaining: refused: things \"a\" not found" + held,
		},
		{
			name: "what it goes with is asked for with its selector", do: chosen,
			requests: "DELETE configmap/z Background\nLIST configmap/b\nDELETE configmap/a Background" + rest, outcomes: went,
		},
		{
			name: "what it goes with does not match any more", do: chosen, script: "DELETE z: touch b; deselect b",
			requests: "DELETE configmap/z Background\nLIST configmap/b", outcomes: kept + "this does not match the selector any more: ConfigMap/shop/b" + held,
		},
	} {
		s.world = world
		t.Run(s.name, s.test)
	}
}

// What somebody replaces before its turn is gone, and said to be; what has its name now is another object.
func TestReplacedBeforeItsTurn(t *testing.T) {
	s := session{
		world: "configmap/a\nconfigmap/b", do: "delete a then b Background", script: "DELETE a: recreate b",
		requests: "DELETE configmap/a Background", outcomes: "configmap/a Deleted\nconfigmap/b Deleted", left: "configmap/b'",
	}
	s.test(t)
}
