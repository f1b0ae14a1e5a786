// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// somewhat is a server whose events do not tell of secrets.
type somewhat struct{ *fake }

// Tells implements partial.
func (somewhat) Tells(resource schema.GroupResource, _ string) bool {
	return resource.Resource != "secrets"
}

// That an owner waits for its dependents is remembered only where events would
// tell that it no longer does, and there for a moment: a watch may hang.
func TestWaitingIsRemembered(t *testing.T) {
	const world = "secret/f deleting finalizers=foregroundDeletion,example.com/x\n" +
		"configmap/c < secret/f\nconfigmap/d < secret/f"
	objects := parseWorld(t, world)
	unlisted := &graph.Snapshot{Mapper: servedMapper()}
	unlisted.MarkListed(served["configmap"].GroupResource(), "shop", "1")
	for _, o := range objects {
		unlisted.Add(o)
	}
	const unheard = "answer DELETE c: mute; keep f; loud"
	for name, s := range map[string]struct {
		g      *graph.Graph
		of     func(*fake) Server
		script string
		left   string
	}{
		"not listed":       {graph.New(unlisted), func(f *fake) Server { return f }, unheard, "configmap/d < f"},
		"not followed":     {graphOf(objects), func(f *fake) Server { return somewhat{f} }, unheard, "configmap/d < f"},
		"a watch is late":  {graphOf(objects), func(f *fake) Server { return f }, unheard + "; later", "configmap/d < f"},
		"a moment is over": {graphOf(objects), func(f *fake) Server { return f }, "answer DELETE c: later", "secret/f finalizers=example.com/x deleting"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t, objects, s.script)
			r, err := New(s.of(f), s.g, Options{}).Collect(t.Context(), "")
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !slices.Contains(f.left(), s.left) {
				t.Errorf("%s: asked %q, outcomes %q, left %q", name, f.log, outcomes(r), f.left())
			}
		})
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

// A dependent may be seen after its owner's removal, although it was made
// before: they come by different watches.
func TestLateDependent(t *testing.T) {
	for _, workers := range []int{1, 4} {
		objects := parseWorld(t, "configmap/a\nconfigmap/b < configmap/a")
		f := newFake(t, objects, "DELETE b: create configmap/late < configmap/a")
		r, err := perform(t, f, graphOf(objects), "delete a Background", Options{Workers: workers})
		if diff := cmp.Diff([]string{"configmap/a Deleted", "configmap/b Deleted", "configmap/late Deleted"}, outcomes(r)); diff != "" || err != nil {
			t.Errorf("%d workers: error %v (-want +got):\n%s", workers, err, diff)
		}
		for _, o := range r.Outcomes {
			if o.Appeared != (o.Object.Name == "late") {
				t.Errorf("%d workers: %s appeared: %t", workers, o.Object.Name, o.Appeared)
			}
		}
	}
}

// What the GET of an owner shows counts, when no watch has told of it yet: here that the owner is in foreground deletion no more.
func TestOwnerAsItIsRead(t *testing.T) {
	s := session{
		world:    "configmap/owner deleting finalizers=foregroundDeletion,example.com/x\nconfigmap/d < configmap/owner!",
		do:       "collect",
		script:   "GET owner: mute; keep owner",
		requests: "GET configmap/owner",
		outcomes: "configmap/d Untouched: owned by ConfigMap/owner\nconfigmap/owner Remaining: finalizer example.com/x",
	}
	s.test(t)
}
