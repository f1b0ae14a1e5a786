// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// play applies events, one a line: an object as it is now, or "removed NAME" or
// "removed OBJECT" of one that was never seen. It returns the last change.
func play(t fatal, s *state, text string) change {
	t.Helper()
	var c change
	for _, line := range lines(text) {
		if name, removed := strings.CutPrefix(line, "removed "); removed {
			o := graph.Object{UID: types.UID(name)}
			if v, known := s.view(s.of(o.UID)); known {
				o = v.object
			} else if strings.Contains(name, "/") {
				o = parseWorld(t, name)[0]
			}
			c = happen(s, Event{Object: o, Removed: true})
		} else {
			c = happen(s, Event{Object: parseWorld(t, line)[0]})
		}
	}
	return c
}

// happen applies an event.
func happen(s *state, e Event) change { return s.apply(s.of(e.Object.UID), e) }

// uidsOf returns what numbers stand for.
func uidsOf(s *state, numbers []number) []types.UID {
	var uids []types.UID
	for _, n := range numbers {
		uids = append(uids, s.uid(n))
	}
	return uids
}

func formatChange(s *state, c change) string {
	text := string(s.uid(c.number))
	for _, f := range []struct {
		name string
		set  bool
	}{{"late", c.late}, {"removed", c.removed}, {"foreground", c.startsForeground}, {"orphaning", c.startsOrphaning}} {
		if f.set {
			text += " " + f.name
		}
	}
	if len(c.released) > 0 {
		text += " released" + formatOwned(c.released)
	}
	if len(c.added) > 0 {
		text += " added" + formatOwned(c.added)
	}
	return text
}

func formatOwned(owners []owner) string {
	var uids []types.UID
	for _, o := range owners {
		uids = append(uids, o.uid)
	}
	return fmt.Sprint(uids)
}

// What an event changes.
func TestChange(t *testing.T) {
	const fg, orphan = " deleting finalizers=foregroundDeletion", " deleting finalizers=orphan"
	for _, test := range []struct{ name, before, events, want string }{
		{"nothing of interest", "configmap/a", "configmap/a", "a"},
		{"new", "", "configmap/a < secret/s secret/s! secret/u", "a added[s u]"},
		{"starts foreground", "configmap/a", "configmap/a" + fg, "a foreground"},
		{"goes on in foreground", "configmap/a" + fg, "configmap/a" + fg, "a"},
		{"new, in foreground", "", "configmap/a" + fg, "a foreground"},
		{"has the finalizer and is not deleted", "configmap/a", "configmap/a finalizers=foregroundDeletion,orphan", "a"},
		{"starts orphaning", "configmap/a", "configmap/a" + orphan, "a orphaning"},
		{"background with orphan, then orphaning", "configmap/a deleting finalizers=x", "configmap/a" + orphan, "a orphaning"},
		{"from orphaning to foreground", "configmap/a" + orphan, "configmap/a" + fg, "a foreground"},
		{"once more, after background", "configmap/a" + fg, "configmap/a deleting finalizers=x\nconfigmap/a" + fg, "a foreground"},
		{"a reference more", "configmap/a < secret/s", "configmap/a < secret/s secret/u!", "a added[u]"},
		{"a blocking reference less", "configmap/a < secret/s! secret/u!", "configmap/a < secret/u!", "a released[s]"},
		{"one that did not block less", "configmap/a < secret/s secret/u~", "configmap/a", "a"},
		{"unblocked", "configmap/a < secret/s!", "configmap/a < secret/s~", "a released[s]"},
		{"one of two blocking references of one UID less", "configmap/a < secret/s! pod/s!", "configmap/a < pod/s!", "a"},
		{"blocked", "configmap/a < secret/s", "configmap/a < secret/s!", "a"},
		{"removed", "configmap/a < secret/s secret/u!", "removed a", "a removed released[s u]"},
		{"removed twice", "configmap/a < secret/s", "removed a\nremoved a", "a late"},
		{"changed after its removal", "configmap/a", "removed a\nconfigmap/a" + fg, "a late"},
		{"removed and never seen", "", "removed configmap/a", "a removed"},
		{"and then seen", "", "removed configmap/a\nconfigmap/a", "a late"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newState(graphOf(parseWorld(t, test.before)))
			if got := formatChange(s, play(t, s, test.events)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Who is found among an owner's dependents, however it came there.
func TestDependents(t *testing.T) {
	for _, test := range []struct{ name, before, events, want string }{
		{"as read", "secret/s\nconfigmap/b < secret/s!\nconfigmap/a < secret/s", "", "live 2 [a b], blocking 1 [b]"},
		{"edges follow the UID alone", "secret/s\nnode/a < configmap/wrong@s!\nother:configmap/b < node/s", "", "live 2 [b a], blocking 1 [a]"},
		{"two references count once", "secret/s\nconfigmap/a < secret/s secret/s!", "", "live 1 [a], blocking 1 [a]"},
		{"two references, one less", "secret/s\nconfigmap/a < secret/s secret/s!", "configmap/a < secret/s", "live 1 [a], blocking 0 []"},
		{"self reference", "secret/s < secret/s!", "", "live 1 [s], blocking 1 [s]"},
		{"self reference, touched", "secret/s < secret/s!", "secret/s < secret/s!", "live 1 [s], blocking 1 [s]"},
		{"self reference of a new object", "", "secret/s < secret/s!", "live 1 [s], blocking 1 [s]"},
		{"self reference, removed", "secret/s < secret/s!", "removed s", "live 0 [], blocking 0 []"},
		{"a new dependent", "secret/s", "configmap/a < secret/s", "live 1 [a], blocking 0 []"},
		{"a dependent touched often", "secret/s\nconfigmap/a < secret/s!", "configmap/a < secret/s!\nconfigmap/a < secret/s!", "live 1 [a], blocking 1 [a]"},
		{"a dependent gone", "secret/s\nconfigmap/a < secret/s!", "removed a", "live 0 [], blocking 0 []"},
		{"gone before its owner is touched", "secret/s\nconfigmap/a < secret/s!", "removed a\nsecret/s", "live 0 [], blocking 0 []"},
		{"late events of a dependent", "secret/s\nconfigmap/a < secret/s!", "removed a\nconfigmap/a < secret/s!\nremoved a", "live 0 [], blocking 0 []"},
		{"the reference goes and comes", "secret/s\nconfigmap/a < secret/s!", "configmap/a\nconfigmap/a < secret/s", "live 1 [a], blocking 0 []"},

		{"owner after its dependent", "", "configmap/a < secret/s!\nsecret/s", "live 1 [a], blocking 1 [a]"},
		{"owner after its dependent was read", "configmap/a < secret/s!", "secret/s", "live 1 [a], blocking 1 [a]"},
		{"owner after its dependent was touched", "configmap/a < secret/s!", "configmap/a < secret/s!\nsecret/s", "live 1 [a], blocking 1 [a]"},
		{"owner after its dependent was touched twice", "", "configmap/a < secret/s!\nconfigmap/a < secret/s!\nsecret/s", "live 1 [a], blocking 1 [a]"},
		{"owner after its dependent left", "configmap/a < secret/s!", "configmap/a\nsecret/s", "live 0 [], blocking 0 []"},
		{"owner after its dependent went", "configmap/a < secret/s!", "removed a\nsecret/s", "live 0 [], blocking 0 []"},
		{"owner after its dependent left and came back", "", "configmap/a < secret/s\nconfigmap/a\nconfigmap/a < secret/s!\nsecret/s", "live 1 [a], blocking 1 [a]"},
		{"an owner that nobody has seen", "configmap/a < secret/s!", "configmap/b < secret/s\nconfigmap/a < secret/s!", "unknown [a b]"},
		{"an owner that was only seen to go", "configmap/a < secret/s!", "configmap/b < secret/s\nremoved secret/s", "live 2 [a b], blocking 1 [a]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newState(graphOf(parseWorld(t, test.before)))
			play(t, s, test.events)
			owner := s.of("s")
			v, known := s.view(owner)
			live, blocking := uidsOf(s, s.dependents(owner)), uidsOf(s, s.blockingDependents(owner))
			got := fmt.Sprintf("live %d %s, blocking %d %s", v.live, live, v.blocking, blocking)
			if !known {
				got = fmt.Sprintf("unknown %s", live)
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Flags are set by what was seen once, and stay: semantics A2.
func TestFlagsStay(t *testing.T) {
	s := newState(graphOf(parseWorld(t, "configmap/a deleting finalizers=foregroundDeletion\nconfigmap/b\nconfigmap/c")))
	for _, step := range []struct{ events, want string }{
		{"", "a: deleting foreground, b:, c:"},
		{"configmap/a deleting finalizers=x\nconfigmap/b deleting finalizers=foregroundDeletion", "a: deleting foreground, b: deleting foreground, c:"},
		{"configmap/a\nconfigmap/b deleting finalizers=orphan\nconfigmap/c deleting", "a: deleting foreground, b: deleting foreground, c: deleting"},
		{"configmap/c\nremoved a\nremoved b\nremoved c", "a: deleting foreground gone, b: deleting foreground gone, c: deleting gone"},
		{"configmap/a\nconfigmap/b\nconfigmap/c", "a: deleting foreground gone, b: deleting foreground gone, c: deleting gone"},
	} {
		play(t, s, step.events)
		var views []string
		for _, uid := range []types.UID{"a", "b", "c"} {
			v, _ := s.view(s.of(uid))
			text := string(uid) + ":"
			if v.beingDeleted {
				text += " deleting"
			}
			if v.deletingDependents {
				text += " foreground"
			}
			if v.gone {
				text += " gone"
			}
			views = append(views, text)
		}
		if got := strings.Join(views, ", "); got != step.want {
			t.Errorf("after %q: got %s, want %s", step.events, got, step.want)
		}
	}
}

// A delete counts as sent until an event of the object comes, other than that of
// what is known already.
func TestDeleteSent(t *testing.T) {
	s := newState(graphOf(parseWorld(t, "configmap/a\nconfigmap/b < configmap/a")))
	s.setDeleteSent(s.of("a"), true)
	s.setDeleteSent(s.of("nobody"), true)
	for _, step := range []struct {
		event string
		want  bool
	}{{"configmap/b", true}, {"configmap/a", true}, {"configmap/a version=2", false}} {
		play(t, s, step.event)
		if v, _ := s.view(s.of("a")); v.deleteSent != step.want {
			t.Errorf("after %s: delete sent: %t", step.event, v.deleteSent)
		}
	}
}

// Absent owners are remembered by everything that a reference states, and by
// the namespace in which they were looked for: semantics A10, B2.
func TestAbsent(t *testing.T) {
	s := newState(graphOf(parseWorld(t, "configmap/a\nnode/n")))
	s.rememberAbsent(parseOwner(t, "secret/s"), "shop")
	s.rememberAbsent(parseOwner(t, "node/m"), "")
	play(t, s, "removed a\nremoved n")
	for _, test := range []struct {
		owner, namespace string
		want             bool
	}{
		{"secret/s", "shop", true},
		{"secret/s", "other", false},
		{"secret/s", "", false},
		{"secret/s@t", "shop", false},
		{"secret/t@s", "shop", false},
		{"configmap/s", "shop", false},
		{"v9/secret/s", "shop", false},
		{"node/m", "", true},
		{"node/m", "shop", true},
		{"configmap/a", "shop", true},
		{"configmap/a", "other", false},
		{"node/n", "shop", true},
		{"node/n", "", true},
		{"node/n@a", "", false},
	} {
		if got := s.isAbsent(parseOwner(t, test.owner), test.namespace); got != test.want {
			t.Errorf("%s of an object in %q is known to be absent: %t", test.owner, test.namespace, got)
		}
	}
}

// naive is the truth about edges, recounted whenever it is asked for.
type naive map[types.UID]*graph.Object

func (n naive) dependents(owner types.UID) (live, blocking []types.UID) {
	for uid, o := range n {
		if o == nil {
			continue
		}
		references, blocks := false, false
		for _, ref := range o.OwnerReferences {
			if ref.UID == owner {
				references = true
				blocks = blocks || ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
			}
		}
		if references {
			live = append(live, uid)
		}
		if blocks {
			blocking = append(blocking, uid)
		}
	}
	slices.Sort(live)
	slices.Sort(blocking)
	return live, blocking
}

// Whatever happens in whatever order, the counters and lists of dependents are
// what a recount gives, and flags are never taken back.
func TestCountersEqualARecount(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	draw := func(t *rapid.T) graph.Object {
		o := parseObject(t, "configmap/"+rapid.SampledFrom(names).Draw(t, "name"))
		for range rapid.IntRange(0, 3).Draw(t, "owners") {
			blocks := rapid.SampledFrom([]string{"", "!", "~"}).Draw(t, "blocks")
			kind := rapid.SampledFrom([]string{"configmap/", "secret/"}).Draw(t, "kind")
			o.OwnerReferences = append(o.OwnerReferences, parseOwner(t, kind+rapid.SampledFrom(names).Draw(t, "owner")+blocks))
		}
		if rapid.IntRange(0, 3).Draw(t, "deleting") == 0 {
			o.DeletionTimestamp = &metav1.Time{}
			o.Finalizers = rapid.SampledFrom([][]string{{"x"}, {"foregroundDeletion"}, {"orphan"}}).Draw(t, "finalizers")
		}
		return o
	}
	rapid.Check(t, func(t *rapid.T) {
		truth, read := naive{}, rapid.SliceOfNDistinct(rapid.Custom(draw), 0, 4, func(o graph.Object) string { return o.Name }).Draw(t, "read")
		for _, o := range read {
			truth[o.UID] = &o
		}
		s := newState(graphOf(read))
		before := map[types.UID]view{}
		check := func(t *rapid.T, uid types.UID) {
			live, blocking := truth.dependents(uid)
			gotLive, gotBlocking := uidsOf(s, s.dependents(s.of(uid))), uidsOf(s, s.blockingDependents(s.of(uid)))
			slices.Sort(gotLive)
			slices.Sort(gotBlocking)
			v, known := s.view(s.of(uid))
			if o, seen := truth[uid]; known != seen || seen && v.gone != (o == nil) {
				t.Fatalf("%s: known %t, gone %t; seen %t", uid, known, v.gone, seen)
			}
			if diff := cmp.Diff([][]types.UID{live, blocking}, [][]types.UID{gotLive, gotBlocking}); diff != "" {
				t.Fatalf("dependents of %s, and the blocking ones (-want +got):\n%s", uid, diff)
			}
			if known && (v.live != len(live) || v.blocking != len(blocking)) {
				t.Fatalf("%s counts %d dependents, %d blocking; there are %s and %s", uid, v.live, v.blocking, live, blocking)
			}
			if was := before[uid]; was.gone && !v.gone || was.beingDeleted && !v.beingDeleted || was.deletingDependents && !v.deletingDependents {
				t.Fatalf("%s was %+v and is %+v", uid, was, v)
			}
			before[uid] = v
		}
		t.Repeat(map[string]func(*rapid.T){
			"change": func(t *rapid.T) {
				o := draw(t)
				was, seen := truth[o.UID]
				if c := happen(s, Event{Object: o}); c.late != (seen && was == nil) {
					t.Fatalf("late: %t", c.late)
				}
				if !seen || was != nil {
					truth[o.UID] = &o
				}
			},
			"remove": func(t *rapid.T) {
				o := draw(t)
				happen(s, Event{Object: o, Removed: true})
				truth[o.UID] = nil
			},
			"look": func(t *rapid.T) {
				check(t, types.UID(rapid.SampledFrom(names).Draw(t, "name")))
			},
		})
		for _, name := range names {
			check(t, types.UID(name))
		}
	})
}
