// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// session is a run of a Collector on a fake, and what is to be seen of it. What
// is empty is not compared.
type session struct {
	name string
	// world is as parseWorld reads it, do "collect", "delete NAME ... POLICY" or, when
	// a selector has chosen them, "select NAME ... POLICY"; "then" begins the next wave,
	// and what goes ahead is "ahead:NAME".
	world, do string
	// script is what happens out of turn, as fake has it.
	script string
	// requests are what the server was asked, in order, outcomes the report, and
	// left what there is in the end.
	requests, outcomes, left string
}

// perform runs a session's action. It fails the test when that does not end.
func perform(t *testing.T, f *fake, g *graph.Graph, do string, options Options) (*Report, error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	ctx, f.cancel = context.WithCancel(ctx)
	defer f.cancel()
	fields := strings.Fields(do)
	var r *Report
	var err error
	if fields[0] == "collect" {
		r, err = New(f, g, options).Collect(ctx, "")
	} else {
		var waves []Wave
		for _, names := range strings.Split(strings.Join(fields[1:len(fields)-1], " "), " then ") {
			var wave Wave
			for _, name := range strings.Fields(names) {
				if name, ahead := strings.CutPrefix(name, "ahead:"); ahead {
					wave.Ahead = append(wave.Ahead, targetsOf(g, name)[0].Identity)
				} else {
					wave.Targets = append(wave.Targets, targetsOf(g, name)...)
				}
			}
			if fields[0] == "select" {
				f.selects(wave.Targets)
			}
			waves = append(waves, wave)
		}
		r, err = InWaves(ctx, g, waves, DeleteOptions{Policy: metav1.DeletionPropagation(fields[len(fields)-1])}, func(_ context.Context, wave int) (*Collector, error) {
			if wave == 0 {
				return New(f, g, options), nil
			}
			return New(f, graphOf(f.there()), options), nil
		})
	}
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("did not end; asked %d times, in the end %q", len(f.log), f.log[max(0, len(f.log)-10):])
	}
	return r, err
}

func (s *session) test(t *testing.T) {
	t.Helper()
	objects := parseWorld(t, s.world)
	f := newFake(t, objects, s.script)
	r, err := perform(t, f, graphOf(objects), s.do, Options{})
	if err != nil {
		t.Errorf("error: %v", err)
	}
	compare := func(what, want string, got []string) {
		if diff := cmp.Diff(lines(want), got); want != "" && diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	compare("requests", s.requests, f.log)
	compare("outcomes", s.outcomes, outcomes(r))
	compare("left", s.left, f.left())
	for _, s := range f.script {
		if !s.always && s.request != "rest" {
			t.Errorf("never asked: %s", s.request)
		}
	}
}

// Every write can meet an object that is not as it was read.
func TestConflicts(t *testing.T) {
	for _, s := range []session{
		{
			name: "the item's version moved, its owners did not: once more",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:     "delete a Background",
			script: "DELETE b: touch b",
			requests: `DELETE configmap/a Background
				DELETE configmap/b Background
				GET configmap/b
				DELETE configmap/b Background`,
			outcomes: `configmap/a Deleted
				configmap/b Deleted`,
		},
		{
			name:   "others change it a few times",
			world:  "configmap/a",
			do:     "delete a Background",
			script: "DELETE a: touch a\nDELETE a: touch a\nDELETE a: touch a\nDELETE a: touch a",
			requests: `DELETE configmap/a Background
				GET configmap/a
				DELETE configmap/a Background
				GET configmap/a
				DELETE configmap/a Background
				GET configmap/a
				DELETE configmap/a Background
				GET configmap/a
				DELETE configmap/a Background`,
			outcomes: "configmap/a Deleted",
		},
		{
			name:   "somebody deletes it so that its dependents stay",
			world:  "configmap/a\nconfigmap/b < configmap/a",
			do:     "delete a Background",
			script: "DELETE a: orphan a",
			left:   "configmap/b",
			requests: `DELETE configmap/a Background
				GET configmap/a
				PATCH configmap/b drop owners [a]
				PATCH configmap/a drop finalizer orphan`,
		},
		{
			name: "it is another object in the end",
			world: `configmap/a
				configmap/b < configmap/a`,
			do: "delete a Background",
			script: `DELETE b: touch b
				DELETE b: touch b
				DELETE b: touch b
				DELETE b: mute; recreate b; loud`,
			outcomes: `configmap/a Deleted
				configmap/b Deleted`,
			left: "configmap/b' < a",
		},
		{
			name: "the item's owners changed: decided about anew, and kept",
			world: `configmap/a
				configmap/b < configmap/a
				configmap/c`,
			do:     "delete a Background",
			script: "DELETE b: own b < configmap/a configmap/c",
			requests: `DELETE configmap/a Background
				DELETE configmap/b Background
				GET configmap/b
				PATCH configmap/b drop owners [a]`,
			outcomes: `configmap/a Deleted
				configmap/b OwnerReferenceRemoved: kept by ConfigMap/c`,
			left: `configmap/b < c
				configmap/c`,
		},
		{
			name: "the item lost its owners: it is nobody's business",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:     "delete a Background",
			script: "DELETE b: own b",
			requests: `DELETE configmap/a Background
				DELETE configmap/b Background
				GET configmap/b`,
			left: "configmap/b",
		},
		{
			name: "only the flag of a reference changed: decided about anew, to the same end",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:     "delete a Background",
			script: "DELETE b: own b < configmap/a!",
			requests: `DELETE configmap/a Background
				DELETE configmap/b Background
				GET configmap/b
				DELETE configmap/b Background`,
			left: " ",
		},
		{
			name: "a target's owners changed: it is still what the user named",
			world: `configmap/a
				configmap/b`,
			do:     "delete a Background",
			script: "DELETE a: own a < configmap/b",
			left:   "configmap/b",
		},
		{
			name: "the item was deleted meanwhile: the answer NotFound",
			world: `configmap/a
				configmap/b < configmap/a
				configmap/c < configmap/b`,
			do:     "delete a Background",
			script: "DELETE b: remove b",
			requests: `DELETE configmap/a Background
				DELETE configmap/b Background
				GET configmap/b
				DELETE configmap/c Background`,
			outcomes: `configmap/a Deleted
				configmap/b Deleted
				configmap/c Deleted`,
		},
		{
			name: "a conflict, and then it is gone",
			world: `configmap/a
				configmap/b < configmap/a`,
			do: "delete a Background",
			script: `DELETE b: touch b
				GET b: remove b`,
			outcomes: `configmap/a Deleted
				configmap/b Deleted`,
			left: " ",
		},
		{
			name: "recreated under the same name: the new one stays, the old one's dependents go",
			world: `configmap/a
				configmap/b < configmap/a
				configmap/c < configmap/b`,
			do:     "delete a Background",
			script: "DELETE b: mute; recreate b; loud",
			requests: `DELETE configmap/a Background
				DELETE configmap/b Background
				GET configmap/b
				DELETE configmap/c Background`,
			outcomes: `configmap/a Deleted
				configmap/b Deleted
				configmap/c Deleted`,
			left: "configmap/b' < a",
		},
		{
			name: "the owner was recreated under the same name: its old dependents go",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:     "delete a Background",
			script: "DELETE a: recreate a",
			left:   "configmap/a'",
		},
		{
			name: "the conflict stays although nothing moved: it is a refusal",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:     "delete a Background",
			script: "DELETE b: always 409",
			outcomes: `configmap/a Deleted
				configmap/b Remaining: refused: Operation cannot be fulfilled on things "b": no`,
		},
		{
			name:     "the same of a patch",
			world:    "configmap/b < configmap/a secret/gone\nconfigmap/a",
			do:       "collect",
			script:   "PATCH b: always 409",
			outcomes: `configmap/b Remaining: refused: Operation cannot be fulfilled on things "b": no`,
		},
		{
			name:   "the same of a patch while others change the object",
			world:  "configmap/b < configmap/a secret/gone\nconfigmap/a",
			do:     "collect",
			script: "PATCH b: touch b\nPATCH b: touch b",
			requests: `GET secret/gone
				PATCH configmap/b drop owners [gone]
				GET configmap/b
				PATCH configmap/b drop owners [gone]
				GET configmap/b
				PATCH configmap/b drop owners [gone]`,
			left: `configmap/a
				configmap/b < a`,
		},
		{
			name: "after a conflict it cannot be read",
			world: `configmap/a
				configmap/b < configmap/a`,
			do: "delete a Background",
			script: `DELETE b: touch b
				GET b: 500`,
			outcomes: `configmap/a Deleted
				configmap/b Remaining: refused: Operation cannot be fulfilled on configmaps "b": the object has been modified, and reading it again: Internal error occurred: broken`,
		},
		{
			name: "removing a finalizer: the version moved",
			world: `configmap/a deleting finalizers=foregroundDeletion,x
				configmap/b < configmap/a`,
			do:     "collect",
			script: "PATCH a: touch a",
			requests: `GET configmap/a
				DELETE configmap/b Background
				PATCH configmap/a drop finalizer foregroundDeletion
				GET configmap/a
				PATCH configmap/a drop finalizer foregroundDeletion`,
			left: "configmap/a finalizers=x deleting",
		},
		{
			name:   "removing a finalizer: it is another object by now",
			world:  "configmap/a deleting finalizers=foregroundDeletion",
			do:     "collect",
			script: "PATCH a: recreate a",
			requests: `PATCH configmap/a drop finalizer foregroundDeletion
				GET configmap/a`,
			outcomes: "configmap/a Deleted",
			left:     "configmap/a'",
		},
		{
			name: "orphaning: the dependent's version moved",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:     "delete a Orphan",
			script: "PATCH b: touch b",
			requests: `DELETE configmap/a Orphan
				PATCH configmap/b drop owners [a]
				GET configmap/b
				PATCH configmap/b drop owners [a]
				PATCH configmap/a drop finalizer orphan`,
			left: "configmap/b",
		},
		{
			name: "orphaning: the dependent was released by somebody else",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:     "delete a Orphan",
			script: "PATCH b: own b",
			requests: `DELETE configmap/a Orphan
				PATCH configmap/b drop owners [a]
				GET configmap/b
				PATCH configmap/a drop finalizer orphan`,
			left: "configmap/b",
		},
		{
			name: "orphaning: the dependent is gone",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:     "delete a Orphan",
			script: "PATCH b: remove b",
			requests: `DELETE configmap/a Orphan
				PATCH configmap/b drop owners [a]
				GET configmap/b
				PATCH configmap/a drop finalizer orphan`,
			left: " ",
		},
	} {
		t.Run(s.name, s.test)
	}
}

// A NotFound that answers a write says nothing of its object: a webhook may refuse with the error
// that it got itself, in the object's name. What is gone a GET shows, or an event.
func TestNotFoundOfWrites(t *testing.T) {
	for _, s := range []session{
		{
			name: "of the user's delete: its dependents are kept",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:     "delete a Background",
			script: "DELETE a: always 404",
			requests: `DELETE configmap/a Background
				GET configmap/a`,
			outcomes: `configmap/a Remaining: refused: things "a" not found
				configmap/b Untouched: its owner ConfigMap/a still exists`,
		},
		{
			name: "of a delete that was decided",
			world: `configmap/a
				configmap/b < configmap/a
				configmap/c < configmap/b`,
			do:     "delete a Background",
			script: "DELETE b: always 404",
			left: `configmap/b < a
				configmap/c < b`,
		},
		{
			name: "of a patch that orphans: the owner is kept, and so its dependent",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:     "delete a Orphan",
			script: "PATCH b: always 404",
			left: `configmap/a finalizers=orphan deleting
				configmap/b < a`,
		},
		{
			name:   "of a patch that ends foreground deletion",
			world:  "configmap/a",
			do:     "delete a Foreground",
			script: "PATCH a: always 404",
			left:   "configmap/a finalizers=foregroundDeletion deleting",
		},
		{
			name: "and then it cannot be read",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:     "delete a Background",
			script: "DELETE a: 404\nGET a: always 403",
			left: `configmap/a
				configmap/b < a`,
		},
	} {
		t.Run(s.name, s.test)
	}
}

// An owner is finished when it is proved that nothing depends on it which the events have not
// told of, and not before.
func TestFinishingIsProved(t *testing.T) {
	for _, s := range []session{
		{
			name:   "a dependent that comes late is orphaned, too",
			world:  "configmap/a\nconfigmap/b < configmap/a",
			do:     "delete a Orphan",
			script: "CATCHUP: create configmap/late < configmap/a",
			left:   "configmap/b\nconfigmap/late",
		},
		{
			name:   "of an owner that was orphaning before",
			world:  "configmap/a deleting finalizers=orphan",
			do:     "collect",
			script: "CATCHUP: create configmap/late < configmap/a",
			left:   "configmap/late",
		},
		{
			name:   "one that blocks is deleted first",
			world:  "configmap/a",
			do:     "delete a Foreground",
			script: "CATCHUP: create configmap/late finalizers=example.com/x < configmap/a!",
			left: `configmap/a finalizers=foregroundDeletion deleting
				configmap/late finalizers=example.com/x deleting < a!`,
		},
		{
			name:   "what cannot be proved remains",
			world:  "configmap/a\nconfigmap/b < configmap/a",
			do:     "delete a Orphan",
			script: "CATCHUP: always 403",
			left:   "configmap/a finalizers=orphan deleting\nconfigmap/b",
			outcomes: `configmap/a Remaining: not finished, because it could not be proved that nothing else depends on it: things is forbidden: not for you
				configmap/b Orphaned`,
		},
	} {
		t.Run(s.name, s.test)
	}
}

// What the server refuses is reported, and keeps nothing else from being done.
func TestRefusals(t *testing.T) {
	for _, s := range []session{
		{
			name: "of the target",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:       "delete a Background",
			script:   "DELETE a: 403",
			requests: "DELETE configmap/a Background",
			outcomes: `configmap/a Remaining: refused: things "a" is forbidden: not for you
				configmap/b Untouched: its owner ConfigMap/a still exists`,
		},
		{
			name: "of one dependent",
			world: `configmap/a
				configmap/b < configmap/a
				configmap/c < configmap/a`,
			do:     "delete a Background",
			script: "DELETE b: 500",
			outcomes: `configmap/a Deleted
				configmap/b Remaining: refused: Internal error occurred: broken
				configmap/c Deleted`,
		},
		{
			name: "of a blocking dependent",
			world: `configmap/a
				configmap/b < configmap/a!
				configmap/c < configmap/a!`,
			do:     "delete a Foreground",
			script: "DELETE b: always 422",
			outcomes: `configmap/a Remaining: a blocking dependent must be deleted first [ConfigMap/shop/b]
				configmap/b Remaining: refused: Thing "b" is invalid
				configmap/c Deleted`,
			left: `configmap/a finalizers=foregroundDeletion deleting
				configmap/b < a!`,
		},
		{
			name:     "of the finalizer's removal",
			world:    "configmap/a",
			do:       "delete a Foreground",
			script:   "PATCH a: 403",
			outcomes: `configmap/a Remaining: refused: things "a" is forbidden: not for you`,
		},
		{
			name: "of a reference's removal",
			world: `configmap/a
				configmap/k
				configmap/b < configmap/a configmap/k`,
			do:     "delete a Background",
			script: "PATCH b: 422",
			outcomes: `configmap/a Deleted
				configmap/b Remaining: refused: Thing "b" is invalid`,
		},
		{
			name: "of an orphan's release: the owner keeps its finalizer",
			world: `configmap/a
				configmap/b < configmap/a
				configmap/c < configmap/a
				configmap/d < configmap/a`,
			do:     "delete a Orphan",
			script: "PATCH c: 403",
			requests: `DELETE configmap/a Orphan
				PATCH configmap/b drop owners [a]
				PATCH configmap/c drop owners [a]
				PATCH configmap/d drop owners [a]`,
			outcomes: `configmap/a Remaining: its dependents are not orphaned yet
				configmap/b Orphaned
				configmap/c Remaining: refused: things "c" is forbidden: not for you
				configmap/d Orphaned`,
			left: `configmap/a finalizers=orphan deleting
				configmap/b
				configmap/c < a
				configmap/d`,
		},
		{
			name: "of unblocking: then the item is not deleted either",
			world: `configmap/a deleting finalizers=foregroundDeletion
				configmap/b < configmap/a!
				configmap/c deleting finalizers=foregroundDeletion,x < configmap/b!`,
			do:     "collect",
			script: "PATCH b: always 403\nPATCH c: always 403",
			left: `configmap/a finalizers=foregroundDeletion deleting
				configmap/b < a!
				configmap/c finalizers=foregroundDeletion,x deleting < b!`,
		},
		{
			name: "NotFound of the namespace is not absence of the object",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:     "delete a Background",
			script: "DELETE b: 404-namespace",
			outcomes: `configmap/a Deleted
				configmap/b Remaining: refused: namespaces "shop" not found`,
		},
		{
			name: "NotFound of the type is not either",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:     "delete a Background",
			script: "DELETE b: 404-type",
			outcomes: `configmap/a Deleted
				configmap/b Remaining: refused: the server could not find the requested resource (get things)`,
		},
		{
			name: "of a patch",
			world: `configmap/a
				configmap/k
				configmap/b < configmap/a configmap/k`,
			do:     "delete a Background",
			script: "PATCH b: 404-namespace",
			outcomes: `configmap/a Deleted
				configmap/b Remaining: refused: namespaces "shop" not found`,
		},
		{
			name:   "of a read after a conflict",
			world:  "configmap/a",
			do:     "delete a Background",
			script: "DELETE a: touch a\nGET a: 404-type",
			outcomes: `configmap/a Remaining: refused: Operation cannot be fulfilled on configmaps "a": the object has been modified, ` +
				`and reading it again: the server could not find the requested resource (get things)`,
		},
		{
			name:     "a namespace that is not there is",
			world:    "namespace/shop",
			do:       "delete shop Background",
			script:   "DELETE shop: remove shop",
			requests: "DELETE namespace/shop Background\nGET namespace/shop",
			outcomes: "namespace/shop Deleted",
		},
		{
			name:     "an owner that could not be read keeps its dependent",
			world:    "configmap/b < secret/gone",
			do:       "collect",
			script:   "GET gone: 404-type",
			requests: "GET secret/gone",
			outcomes: "configmap/b Unknown: its owner Secret/gone could not be read: the server could not find the requested resource (get things)",
		},
		{
			name: "and so does one in foreground deletion",
			world: `configmap/a deleting finalizers=foregroundDeletion
				configmap/b < configmap/a!`,
			do:     "collect",
			script: "GET a: always 500",
			left: `configmap/a finalizers=foregroundDeletion deleting
				configmap/b < a!`,
		},
	} {
		t.Run(s.name, s.test)
	}
}

// Owners are asked for once each, and only when the answer leads to a write.
func TestRequests(t *testing.T) {
	for _, s := range []session{
		{
			name: "an absent owner: one GET for all its dependents",
			world: `configmap/a < secret/gone
				configmap/b < secret/gone
				configmap/c < secret/gone`,
			do: "collect",
			requests: `GET secret/gone
				DELETE configmap/a Background
				DELETE configmap/b Background
				DELETE configmap/c Background`,
		},
		{
			name: "a missing target: its dependents are what is left to do",
			world: `configmap/a < secret/gone
				configmap/b < configmap/a
				configmap/c < secret/other`,
			do: "delete gone Background",
			requests: `GET secret/gone
				DELETE configmap/a Background
				DELETE configmap/b Background`,
			outcomes: `configmap/a Deleted
				configmap/b Deleted`,
		},
		{
			name: "an owner that was seen to go: none",
			world: `configmap/a
				configmap/b < configmap/a
				configmap/c < configmap/b`,
			do: "delete a Background",
			requests: `DELETE configmap/a Background
				DELETE configmap/b Background
				DELETE configmap/c Background`,
		},
		{
			name: "unless the reference states it wrongly: then one for each",
			world: `configmap/a
				configmap/b < secret/a
				configmap/c < configmap/wrong@a`,
			do: "delete a Background",
			requests: `DELETE configmap/a Background
				GET secret/a
				DELETE configmap/b Background
				GET configmap/wrong
				DELETE configmap/c Background`,
		},
		{
			name: "a waiting owner: one GET for all its dependents",
			world: `configmap/a
				configmap/b < configmap/a!
				configmap/c < configmap/a`,
			do: "delete a Foreground",
			requests: `DELETE configmap/a Foreground
				GET configmap/a
				DELETE configmap/b Background
				DELETE configmap/c Background
				PATCH configmap/a drop finalizer foregroundDeletion`,
		},
		{
			name: "a solid owner: none",
			world: `configmap/a
				configmap/k
				configmap/b < configmap/a configmap/k`,
			do: "delete a Background",
			requests: `DELETE configmap/a Background
				PATCH configmap/b drop owners [a]`,
		},
		{
			name: "an owner that was not in the lists and is there",
			world: `configmap/b < secret/new
				configmap/c < secret/new`,
			do:       "collect",
			script:   "GET new: create secret/new",
			requests: "GET secret/new",
		},
		{
			name: "an owner that turned from solid to waiting",
			world: `configmap/a
				configmap/k
				configmap/b < configmap/a configmap/k`,
			do:     "delete a Background",
			script: "DELETE a: create configmap/k deleting finalizers=foregroundDeletion",
			requests: `DELETE configmap/a Background
				GET configmap/k
				DELETE configmap/b Background`,
		},
		{
			name: "a waiting owner that turned solid",
			world: `configmap/a deleting finalizers=foregroundDeletion
				configmap/b < configmap/a!`,
			do:       "collect",
			script:   "GET a: create configmap/a deleting finalizers=x",
			requests: "GET configmap/a",
			left: `configmap/a finalizers=x deleting
				configmap/b < a!`,
		},
		{
			name: "a waiting owner that turned solid, and its event does not come",
			world: `configmap/a deleting finalizers=foregroundDeletion
				configmap/b < configmap/a!
				configmap/c < configmap/a!`,
			do:     "collect",
			script: "GET a: mute; create configmap/a deleting finalizers=x",
			left: `configmap/a finalizers=x deleting
				configmap/b < a!
				configmap/c < a!`,
		},
		{
			name: "a waiting owner that could not be read at first",
			world: `configmap/a deleting finalizers=foregroundDeletion
				configmap/b < configmap/a!
				configmap/c < configmap/a!`,
			do:     "collect",
			script: "GET a: 500",
			requests: `GET configmap/a
				GET configmap/a
				DELETE configmap/c Background
				DELETE configmap/b Background
				PATCH configmap/a drop finalizer foregroundDeletion`,
			left: " ",
		},
		{
			name: "a waiting owner that is gone",
			world: `configmap/a deleting finalizers=foregroundDeletion
				configmap/b < configmap/a!
				configmap/c < configmap/b`,
			do:     "collect",
			script: "GET a: remove a",
			requests: `GET configmap/a
				DELETE configmap/b Background
				DELETE configmap/c Background`,
		},
		{
			name: "a waiting owner that was recreated",
			world: `configmap/a deleting finalizers=foregroundDeletion
				configmap/b < configmap/a!`,
			do:     "collect",
			script: "GET a: recreate a",
			requests: `GET configmap/a
				DELETE configmap/b Background`,
			left: "configmap/a'",
		},
		{
			name: "the cycle guard: unblocked first, and deleted as it is then",
			world: `configmap/a deleting finalizers=foregroundDeletion
				configmap/b < configmap/a! secret/gone~ pod/gone
				configmap/c deleting finalizers=foregroundDeletion,x < configmap/b!`,
			do: "collect",
			requests: `GET configmap/a
				GET secret/gone
				GET pod/gone
				PATCH configmap/b unblock
				DELETE configmap/b Foreground
				PATCH configmap/a drop finalizer foregroundDeletion
				PATCH configmap/c drop finalizer foregroundDeletion`,
			left: `configmap/b finalizers=foregroundDeletion deleting < a~ gone~ gone
				configmap/c finalizers=x deleting < b!`,
		},
	} {
		t.Run(s.name, s.test)
	}
}

// Events come in any order, twice, and of objects that nobody knew.
func TestEvents(t *testing.T) {
	for _, s := range []session{
		{
			name: "twice",
			world: `configmap/a
				configmap/b < configmap/a!
				configmap/c < configmap/b!`,
			do: "delete a Foreground",
			script: `DELETE b: again a
				DELETE c: again a; again b
				PATCH b: again c; again c
				PATCH a: again b; again c`,
			requests: `DELETE configmap/a Foreground
				GET configmap/a
				DELETE configmap/b Foreground
				GET configmap/b
				DELETE configmap/c Background
				PATCH configmap/b drop finalizer foregroundDeletion
				PATCH configmap/a drop finalizer foregroundDeletion`,
			left: " ",
		},
		{
			name: "a dependent made meanwhile",
			world: `configmap/a
				configmap/b < configmap/a`,
			do:     "delete a Background",
			script: "DELETE a: create configmap/new < configmap/a",
			outcomes: `configmap/a Deleted
				configmap/b Deleted
				configmap/new Deleted`,
		},
		{
			name: "a blocking dependent made during the foreground deletion",
			world: `configmap/a
				configmap/b < configmap/a!`,
			do:     "delete a Foreground",
			script: "DELETE b: create configmap/new < configmap/a!",
			outcomes: `configmap/a Deleted
				configmap/b Deleted
				configmap/new Deleted`,
		},
		{
			name: "a dependent made during the orphaning",
			world: `configmap/a
				configmap/b < configmap/a
				configmap/c < configmap/a`,
			do:     "delete a Orphan",
			script: "PATCH b: create configmap/new < configmap/a",
			outcomes: `configmap/a Deleted
				configmap/b Orphaned
				configmap/c Orphaned
				configmap/new Orphaned`,
			left: `configmap/b
				configmap/c
				configmap/new`,
		},
		{
			name:     "a dependent of something that this deletion does not concern",
			world:    "configmap/a\nconfigmap/z deleting finalizers=foregroundDeletion",
			do:       "delete a Background",
			script:   `DELETE a: create configmap/new < configmap/z!; create configmap/newer < configmap/new`,
			outcomes: "configmap/a Deleted",
		},
		{
			name:   "and the same in a collection",
			world:  "configmap/z deleting finalizers=foregroundDeletion",
			do:     "collect",
			script: "PATCH z: create configmap/new < configmap/z!",
			outcomes: `configmap/new Deleted
				configmap/z Deleted`,
		},
		{
			name: "an owner that was seen after its dependents",
			world: `configmap/b < secret/late!
				configmap/c < secret/late`,
			do:     "collect",
			script: "GET late: create secret/late deleting finalizers=foregroundDeletion",
			left:   " ",
		},
		{
			name:   "the removal of something that nobody knew",
			world:  "configmap/a",
			do:     "delete a Background",
			script: "DELETE a: mute; create secret/s; loud; remove s",
			left:   " ",
		},
		{
			name: "the removal of an owner that nobody knew",
			world: `configmap/b < secret/late
				configmap/k deleting finalizers=foregroundDeletion`,
			do: "collect",
			script: `GET late: mute; create secret/late; loud
				PATCH k: remove late`,
			left: " ",
		},
		{
			name: "an owner of a kind that is not served goes: the garbage collector had not given up",
			world: `configmap/b < gadget/g configmap/gone
				configmap/k deleting finalizers=foregroundDeletion`,
			do:     "collect",
			script: "PATCH k: own b < configmap/gone",
			left:   " ",
		},
		{
			name: "a namespaced owner of a cluster-scoped object goes: it had",
			world: `node/b < configmap/c configmap/gone
				secret/k deleting finalizers=foregroundDeletion`,
			do:     "collect",
			script: "PATCH k: own b < node/gone",
			left:   "node/b < gone",
		},
		{
			name: "somebody else finishes what waited",
			world: `configmap/a
				configmap/b finalizers=x < configmap/a!`,
			do:     "delete a Foreground",
			script: "rest: free b",
			requests: `DELETE configmap/a Foreground
				GET configmap/a
				DELETE configmap/b Background
				PATCH configmap/a drop finalizer foregroundDeletion`,
			left: " ",
		},
		{
			name: "somebody else deletes it in the background",
			world: `configmap/a
				configmap/b finalizers=x < configmap/a!`,
			do:     "delete a Foreground",
			script: "rest: free a\nrest: free b",
			left:   " ",
		},
		{
			name: "nobody does",
			world: `configmap/a finalizers=y
				configmap/b finalizers=x < configmap/a!
				configmap/c < configmap/b`,
			do: "delete a Foreground",
			outcomes: `configmap/a Remaining: finalizer y; a blocking dependent must be deleted first [ConfigMap/shop/b]
				configmap/b Remaining: finalizer x
				configmap/c Deleted`,
		},
	} {
		t.Run(s.name, s.test)
	}
}

// A deletion that was begun before is taken up, whoever began it.
func TestTakenUp(t *testing.T) {
	for _, s := range []session{
		{
			name: "foreground",
			world: `configmap/a deleting finalizers=foregroundDeletion
				configmap/b < configmap/a!`,
			do:   "delete a Foreground",
			left: " ",
		},
		{
			name: "foreground, and the server does not change it any more",
			world: `configmap/a deleting finalizers=foregroundDeletion
				configmap/b < configmap/a!`,
			do:     "delete a Foreground",
			script: "DELETE a: mute\nanswer DELETE a: loud",
			left:   " ",
		},
		{
			name: "foreground, in the background from now on",
			world: `configmap/a deleting finalizers=foregroundDeletion,x
				configmap/b < configmap/a!`,
			do: "delete a Background",
			left: `configmap/a finalizers=x deleting
				configmap/b < a!`,
		},
		{
			name: "foreground, and the server refuses another policy: nobody agreed to what the first leads to",
			world: `configmap/a deleting finalizers=foregroundDeletion
				configmap/b < configmap/a!`,
			do:     "delete a Background",
			script: "DELETE a: 500",
			left: `configmap/a finalizers=foregroundDeletion deleting
				configmap/b < a!`,
		},
		{
			name: "orphaning",
			world: `configmap/a deleting finalizers=orphan
				configmap/b < configmap/a`,
			do:   "delete a Orphan",
			left: "configmap/b",
		},
		{
			name: "orphaning, in the foreground from now on",
			world: `configmap/a deleting finalizers=orphan
				configmap/b < configmap/a!`,
			do:   "delete a Foreground",
			left: " ",
		},
		{
			name: "foreground, and it cannot be read",
			world: `configmap/a deleting finalizers=foregroundDeletion
				configmap/b < configmap/a!`,
			do:       "delete a Foreground",
			script:   "GET a: always 500",
			outcomes: "configmap/a Remaining: refused: Internal error occurred: broken\nconfigmap/b Remaining: nothing keeps it, but it was not reached",
		},
		{
			name: "orphaning, by a collection",
			world: `configmap/a deleting finalizers=orphan
				configmap/b < configmap/a
				configmap/c < configmap/b`,
			do:     "collect",
			script: "PATCH a: touch a",
			left:   "configmap/b\nconfigmap/c < b",
		},
		{
			name: "orphaning, and somebody else decides otherwise meanwhile",
			world: `configmap/a deleting finalizers=orphan,x
				configmap/b < configmap/a
				configmap/c < configmap/a`,
			do:     "collect",
			script: "PATCH b: create configmap/a deleting finalizers=x",
			left:   "configmap/a finalizers=x deleting\nconfigmap/b\nconfigmap/c < a",
		},
		{
			name: "orphaning, and somebody else finishes it",
			world: `configmap/a deleting finalizers=orphan
				configmap/b < configmap/a
				configmap/c < configmap/a`,
			do:     "collect",
			script: "PATCH b: free a",
			left:   "configmap/b",
		},
		{
			name:  "terminating with a foreign finalizer: nothing to do",
			world: "configmap/a deleting finalizers=x\nconfigmap/b < configmap/a",
			do:    "collect",
			left:  "configmap/a finalizers=x deleting\nconfigmap/b < a",
		},
	} {
		t.Run(s.name, s.test)
	}
}

// A run that does not come to its end still reports everything.
func TestInterrupted(t *testing.T) {
	const world = `configmap/a
		configmap/b < configmap/a
		configmap/c < configmap/a configmap/b
		configmap/d < configmap/b
		configmap/x`
	for _, test := range []struct{ name, do, script, outcomes string }{
		{
			"before the first request", "delete a Background", "",
			`configmap/a Remaining: it was not reached
			configmap/b Untouched: its owner ConfigMap/a still exists
			configmap/c Untouched: its owner ConfigMap/a still exists
			configmap/d Untouched: its owner ConfigMap/b still exists`,
		},
		{
			"during a request, whose answer still counts", "delete a Background", "DELETE a: cancel",
			`configmap/a Deleted
			configmap/b Remaining: nothing keeps it, but it was not reached
			configmap/c Remaining: it was not reached
			configmap/d Untouched: its owner ConfigMap/b still exists`,
		},
		{
			"when all of the owners are gone", "delete a Background", "DELETE b: cancel",
			`configmap/a Deleted
			configmap/b Deleted
			configmap/c Remaining: nothing keeps it, but it was not reached
			configmap/d Remaining: nothing keeps it, but it was not reached`,
		},
		{
			"after the answer and before the event", "delete a Background", "DELETE a: cancel; mute",
			`configmap/a Remaining: its deletion was accepted, but its end was not seen
			configmap/b Untouched: its owner ConfigMap/a still exists
			configmap/c Untouched: its owner ConfigMap/a still exists
			configmap/d Untouched: its owner ConfigMap/b still exists`,
		},
		{
			"during a foreground deletion", "delete a Foreground", "GET a: cancel",
			`configmap/a Remaining: its finalizer foregroundDeletion was not removed
			configmap/b Remaining: nothing keeps it, but it was not reached
			configmap/c Remaining: it was not reached
			configmap/d Untouched: its owner ConfigMap/b still exists`,
		},
	} {
		interrupt := func(workers int) (*fake, *Report) {
			objects := parseWorld(t, world)
			f := newFake(t, objects, test.script)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f.cancel = cancel
			if test.script == "" {
				cancel()
			}
			r, err := New(f, graphOf(objects), Options{Workers: workers}).Delete(ctx, targetsOf(graphOf(objects), "a"),
				DeleteOptions{Policy: metav1.DeletionPropagation(strings.Fields(test.do)[2])})
			if !errors.Is(err, context.Canceled) && len(f.script) == 0 {
				t.Errorf("%s, %d workers: got error %v", test.name, workers, err)
			}
			return f, r
		}
		if _, r := interrupt(1); !cmp.Equal(lines(test.outcomes), outcomes(r)) {
			t.Errorf("%s (-want +got):\n%s", test.name, cmp.Diff(lines(test.outcomes), outcomes(r)))
		}
		// With more workers it is open how far they came, and whether they were
		// interrupted at all.
		f, r := interrupt(4)
		if got := outcomes(r); len(got) != 4 || len(f.log) > 0 && strings.Contains(got[0], "Untouched") || strings.Contains(strings.Join(got, "; "), "refused") {
			t.Errorf("%s, 4 workers: got %q, asked %q", test.name, got, f.log)
		}
	}
}

// An error of the events ends the run, with what is known.
func TestEventsFail(t *testing.T) {
	for _, workers := range []int{1, 4} {
		objects := parseWorld(t, "configmap/a finalizers=x\nconfigmap/b < configmap/a")
		f := &deaf{fake: newFake(t, objects, "")}
		r, err := New(f, graphOf(objects), Options{Workers: workers}).Delete(t.Context(), targetsOf(graphOf(objects), "a"), DeleteOptions{Policy: "Background"})
		if !errors.Is(err, errDeaf) {
			t.Errorf("%d workers: error %v", workers, err)
		}
		if len(r.Outcomes) != 2 {
			t.Errorf("%d workers: got %s", workers, outcomes(r))
		}
	}
}

var errDeaf = errors.New("watching configmaps: forbidden")

// deaf is a fake that gets no events.
type deaf struct{ *fake }

func (d *deaf) Events(context.Context, bool) ([]Event, error) { return nil, errDeaf }
