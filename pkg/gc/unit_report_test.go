// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// What is said of each object in the end.
func TestOutcomes(t *testing.T) {
	for _, s := range []session{
		{
			name: "everything that can become of an object",
			world: `configmap/a
				configmap/deleted < configmap/a
				configmap/kept < configmap/a secret/k
				configmap/unknown < configmap/a gadget/g
				configmap/below < configmap/kept
				configmap/held finalizers=x,y < configmap/a
				configmap/none
				secret/k`,
			do: "delete a Background",
			outcomes: `configmap/a Deleted
				configmap/below Untouched: its owner ConfigMap/kept still exists
				configmap/deleted Deleted
				configmap/held Remaining: finalizer x, y
				configmap/kept OwnerReferenceRemoved: kept by Secret/k
				configmap/unknown Unknown: its owner gadget/g has a kind that the server does not serve ()`,
		},
		{
			name: "several blocking dependents",
			world: `configmap/a
				configmap/b finalizers=x < configmap/a!
				configmap/c finalizers=x < configmap/a!`,
			do: "delete a Foreground",
			outcomes: `configmap/a Remaining: 2 blocking dependents must be deleted first [ConfigMap/shop/b] [ConfigMap/shop/c]
				configmap/b Remaining: finalizer x
				configmap/c Remaining: finalizer x`,
		},
		{
			name:     "what was in a namespace that is gone, as the proof shows",
			world:    "namespace/shop\nconfigmap/a",
			do:       "delete shop Background",
			script:   "CATCHUP: remove a",
			outcomes: "configmap/a Deleted\nnamespace/shop Deleted",
		},
		{
			name:     "what is still there, although its namespace is gone",
			world:    "namespace/shop\nconfigmap/a",
			do:       "delete shop Background",
			outcomes: "configmap/a Remaining: it still exists, although its Namespace or CustomResourceDefinition is gone\nnamespace/shop Deleted",
		},
		{
			name:     "what was in a namespace that is gone, without a proof",
			world:    "namespace/shop\nconfigmap/a",
			do:       "delete shop Background",
			script:   "CATCHUP: 500",
			outcomes: "configmap/a Unknown: its Namespace or CustomResourceDefinition is gone, but it could not be proved that this object is gone as well: Internal error occurred: broken\nnamespace/shop Deleted",
		},
		{
			name:   "an instance of a definition that is gone, and what depends on it",
			world:  "crd/widgets.example.com\nwidget/w\nconfigmap/c < widget/w\nconfigmap/d < configmap/c",
			do:     "delete widgets.example.com Background",
			script: "CATCHUP: lose w",
			outcomes: `configmap/c Unknown: unclear whether its owner Widget/w still exists
				configmap/d Untouched: its owner ConfigMap/c still exists
				crd/widgets.example.com Deleted
				widget/w Unknown: its type is not served any more: unclear whether it still exists`,
		},
		{
			name: "instances of a definition that is being deleted, whatever was said of them",
			world: `crd/widgets.example.com finalizers=x
				secret/k
				widget/w
				widget/kept < secret/k crd/widgets.example.com
				configmap/c < widget/w`,
			do: "delete widgets.example.com Background",
			outcomes: `configmap/c Untouched: its owner Widget/w still exists
				crd/widgets.example.com Remaining: finalizer x
				widget/kept Remaining: deleted with CustomResourceDefinition/widgets.example.com, once the API server handles it
				widget/w Remaining: deleted with CustomResourceDefinition/widgets.example.com, once the API server handles it`,
		},
		{
			name:     "very many finalizers",
			world:    "configmap/a finalizers=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v",
			do:       "delete a Background",
			outcomes: "configmap/a Remaining: finalizer a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, and 2 more",
		},
		{
			name:     "a pod in its grace period",
			world:    "pod/p deleting grace=30 finalizers=x",
			do:       "delete p Background",
			outcomes: "pod/p Remaining: finalizer x; its kubelet must end it",
		},
		{
			name:     "without a grace period nobody has to",
			world:    "pod/p deleting grace=0 finalizers=x",
			do:       "delete p Background",
			outcomes: "pod/p Remaining: finalizer x",
		},
		{
			name: "one of several owners lost, and the others gone: nothing keeps it",
			world: `configmap/a
				configmap/k
				configmap/b < configmap/a configmap/k`,
			do:     "delete a Background",
			script: "answer PATCH b: remove k",
			outcomes: `configmap/a Deleted
				configmap/b Remaining: nothing keeps it, but it was not reached`,
		},
		{
			name:  "orphaned, though somebody else did it",
			world: "configmap/a\nconfigmap/b < configmap/a",
			do:    "delete a Orphan",
			script: `PATCH b: own b
				GET b: touch b`,
			outcomes: `configmap/a Deleted
				configmap/b Orphaned`,
		},
		{
			name: "a collection speaks of what it had to look at",
			world: `configmap/a
				configmap/b < configmap/a
				configmap/c < configmap/gone configmap/a
				configmap/d deleting finalizers=x
				configmap/e deleting finalizers=orphan
				configmap/f < configmap/e`,
			do: "collect",
			outcomes: `configmap/c OwnerReferenceRemoved: kept by ConfigMap/a
				configmap/e Deleted
				configmap/f Orphaned`,
		},
		{
			name:     "a target that is not there at all",
			world:    "configmap/a",
			do:       "delete nobody Background",
			requests: " ",
			outcomes: " ",
		},
	} {
		t.Run(s.name, s.test)
	}
}

// What was noted of an object last counts, as long as it holds. The object o is
// owned by configmap/a, gadget/g of a kind that is not served, and configmap/k.
func TestLastNoteCounts(t *testing.T) {
	const (
		open     = "its owner gadget/g has a kind that the server does not serve ()"
		unserved = "Unknown: " + open
		kept     = "Untouched: owned by ConfigMap/k"
		refused  = `Remaining: refused: things "o" is forbidden: not for you`
	)
	for _, test := range []struct{ notes, want string }{
		{"", "Untouched: its owner ConfigMap/a still exists"},
		{"kept", kept},
		{"unknown", unserved},
		{"unknown, kept", kept},
		{"kept, unknown", unserved},
		{"kept, gone", "Deleted"},
		{"unknown, gone", "Deleted"},

		{"unknown, drop g", "OwnerReferenceRemoved: dropped"},
		{"unknown, drop a", "OwnerReferenceRemoved: " + open},
		{"unknown, drop a, kept", "OwnerReferenceRemoved: dropped"},
		{"unknown, drop a, unknown", "OwnerReferenceRemoved: " + open},
		{"drop a, kept", "OwnerReferenceRemoved: dropped"},
		{"unknown, orphan", "Orphaned: " + open},
		{"orphan, kept", "Orphaned"},
		{"orphan, unknown", "Orphaned: " + open},

		{"unknown, own configmap/a configmap/k", "OwnerReferenceRemoved"},
		{"unknown, own gadget/g", "OwnerReferenceRemoved: " + open},
		{"unknown, own", "OwnerReferenceRemoved"},
		{"kept, own configmap/a", "OwnerReferenceRemoved"},
		{"drop a, own gadget/g", "OwnerReferenceRemoved"},

		{"refuse Delete", refused},
		{"refuse Delete, kept", kept},
		{"refuse Delete, unknown", unserved},
		{"kept, refuse Delete", refused},
		{"unknown, refuse Delete", refused},
		{"refuse RemoveOwnerReferences, drop a", "OwnerReferenceRemoved: dropped"},
		{"drop a, refuse Delete", refused},
		{"refuse Delete, gone", "Deleted"},
		{"unread, kept", kept},
		{"lose Delete", "Remaining: no answer, and no effect seen: EOF"},
		{"lose Delete, kept", kept},
		{"lose Delete, refuse Delete", refused},

		{"target, refuse Delete, kept", refused},
		{"target, refuse Delete, unknown", refused},
		{"target, refuse Delete, drop a", refused},
		{"target, unread, kept", refused},
		{"target, refuse Delete, gone", "Deleted"},
		{"target, refuse RemoveOwnerReferences, kept", kept},

		{"guard", "Remaining: not this one"},
		{"guard, kept", kept},
		{"guard, drop a", "OwnerReferenceRemoved: dropped"},
		{"unknown, guard", "Remaining: not this one"},

		{"unreached", "Remaining: it was not reached"},
		{"kept, unreached", "Remaining: it was not reached"},
		{"unreached, gone", "Deleted"},
		{"unknown, unreached", unserved},
	} {
		t.Run(test.notes, func(t *testing.T) {
			n := newNotes(t)
			for note := range strings.SplitSeq(test.notes, ", ") {
				n.take(strings.Fields(note))
			}
			r := n.conclude()
			if left := len(r.Remaining()) > 0; left != (strings.HasPrefix(test.want, "Remaining") || strings.Contains(test.want, open)) {
				t.Errorf("something remains: %v", left)
			}
			for _, line := range outcomes(r) {
				if got, ok := strings.CutPrefix(line, "configmap/o "); ok && got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
			}
		})
	}
}

// notes are a Collector to which things are told of the object o.
type notes struct {
	*testing.T
	*Collector
}

func newNotes(t *testing.T) notes {
	objects := parseWorld(t, `configmap/a
		configmap/k
		configmap/o < configmap/a gadget/g configmap/k`)
	n := notes{t, New(newFake(t, objects, ""), graphOf(objects), Options{})}
	n.scope.include(n.state.of("o"))
	return n
}

// take takes one note.
func (n notes) take(words []string) {
	if len(words) == 0 {
		return
	}
	v, _ := n.state.view(n.state.of("o"))
	o := v.object
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "o", errors.New("not for you"))
	switch rest := words[1:]; words[0] {
	case "target":
		n.scope.targets = map[number]bool{v.number: true}
	case "kept":
		n.report.kept(v.number, &o, "owned by ConfigMap/k", nil)
	case "unknown":
		ref := UnknownReference{parseOwner(n, "gadget/g"), graph.Unresolvable, nil}
		n.report.kept(v.number, &o, unknownReason(ref), []UnknownReference{ref})
	case "unread":
		n.report.failed(v.number, forbidden)
	case "guard":
		n.report.guarded(v.number, errors.New("not this one"))
	case "unreached":
		n.report.unreached(v.number)
	case "refuse":
		n.report.step(n.state.of(o.UID), Step{Action: Action(rest[0]), Object: o, Err: forbidden})
	case "lose":
		n.report.step(n.state.of(o.UID), Step{Action: Action(rest[0]), Object: o, Err: io.EOF})
	case "drop":
		n.drop(o, types.UID(rest[0]))
	case "orphan":
		n.orphaner()
		n.drop(o, "a")
	case "own":
		n.become(o, rest)
	case "gone":
		happen(n.state, Event{Object: o, Removed: true})
	default:
		n.Fatalf("what is %s?", words)
	}
}

// orphaner has configmap/a orphan its dependents.
func (n notes) orphaner() {
	v, _ := n.state.view(n.state.of("a"))
	v.object.DeletionTimestamp, v.object.Finalizers = &metav1.Time{}, []string{metav1.FinalizerOrphanDependents}
	happen(n.state, Event{Object: v.object})
}

// drop has the Collector remove a reference.
func (n notes) drop(o graph.Object, owner types.UID) {
	patch := Patch{RemoveOwners: []types.UID{owner}}
	n.report.step(n.state.of(o.UID), Step{Action: ActionRemoveOwnerReferences, Object: o, Patch: patch, Reason: "dropped"})
	o.OwnerReferences = patch.OwnerReferences(o.OwnerReferences)
	happen(n.state, Event{Object: o})
}

// become has somebody change the owner references.
func (n notes) become(o graph.Object, owners []string) {
	o.OwnerReferences = nil
	for _, owner := range owners {
		o.OwnerReferences = append(o.OwnerReferences, parseOwner(n, owner))
	}
	happen(n.state, Event{Object: o})
}

// What remains is what the run should have dealt with. Objects whose owner could not
// be looked for during a collection do, and it is said what went wrong; those that
// nobody can decide about do not, unless a deletion was asked for.
func TestRemaining(t *testing.T) {
	const world = `configmap/a
		configmap/unread < configmap/gone
		configmap/unread-too < configmap/gone
		configmap/unserved < gadget/g
		configmap/both < gadget/g configmap/gone
		node/n < configmap/a
		configmap/no-name < configmap/own%x
		configmap/of-a < configmap/a gadget/g`
	for _, test := range []struct{ do, script, want string }{
		{"collect", "GET gone: always 500", "configmap/both configmap/unread configmap/unread-too"},
		{"collect", "", ""},
		{"delete a Background", "", "configmap/of-a node/n"},
	} {
		for _, workers := range []int{1, 4} {
			objects := parseWorld(t, world)
			r, err := perform(t, newFake(t, objects, test.script), graphOf(objects), test.do, Options{Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range r.Remaining() {
				got = append(got, short(&o.Object))
				if test.do == "collect" && o.Reason.String() != "its owner ConfigMap/gone could not be read: Internal error occurred: broken" {
					t.Errorf("it is said that %s", o.Reason)
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%s, %d workers: %s remain, want %s", test.do, workers, got, test.want)
			}
		}
	}
}

// What was not read before a collection cannot be decided about, if the server does
// not tell during it either.
func TestUnreadIsUndecidable(t *testing.T) {
	objects := parseWorld(t, "configmap/b < secret/hidden")
	s := &graph.Snapshot{Mapper: servedMapper()}
	s.MarkListed(served["configmap"].GroupResource(), "", "1")
	s.MarkUnlisted(graph.Unlisted{GroupVersionResource: served["secret"].GroupVersionResource, Reason: graph.Forbidden})
	s.Add(objects[0])
	r, err := perform(t, newFake(t, objects, "GET hidden: always 403"), graph.New(s), "collect", Options{})
	if err != nil || len(r.Outcomes) != 1 || r.Outcomes[0].Result != Unknown || len(r.Remaining()) > 0 {
		t.Errorf("error %v, outcomes %v", err, outcomes(r))
	}
}

// A failed write is forgiven when a later one succeeds.
func TestForgiven(t *testing.T) {
	s := session{
		world: `configmap/a
			configmap/b < configmap/a!`,
		do:     "delete a Foreground",
		script: "DELETE b: 500",
		requests: `DELETE configmap/a Foreground
			GET configmap/a
			DELETE configmap/b Background
			DELETE configmap/b Background
			PATCH configmap/a drop finalizer foregroundDeletion`,
		outcomes: "configmap/a Deleted\nconfigmap/b Deleted",
	}
	s.test(t)
}

// Steps are the writes with the answers, in order.
func TestSteps(t *testing.T) {
	objects := parseWorld(t, `configmap/a
		configmap/b < configmap/a!
		configmap/c < configmap/a configmap/k
		configmap/k`)
	f := newFake(t, objects, "DELETE b: always 403")
	var observed []Step
	r, err := perform(t, f, graphOf(objects), "delete a Foreground", Options{Observer: func(s Step) { observed = append(observed, s) }})
	if err != nil {
		t.Fatal(err)
	}
	format := func(steps []Step) []string {
		var lines []string
		for _, s := range steps {
			line := string(s.Action) + " " + short(&s.Object) + "@" + s.Object.ResourceVersion
			if s.Action == ActionDelete {
				line += " " + string(*s.Options.PropagationPolicy) + " of " + string(*s.Options.Preconditions.UID) + "@" + *s.Options.Preconditions.ResourceVersion
			} else {
				line += " " + formatPatch(s.Patch)
			}
			if s.Err != nil {
				line += ": " + s.Err.Error()
			}
			lines = append(lines, line+" ("+s.Reason+")")
		}
		return lines
	}
	want := lines(`Delete configmap/a@1 Foreground of a@1 (named by the user)
		Delete configmap/b@1 Background of b@1: things "b" is forbidden: not for you (its owner ConfigMap/a waits for its dependents' deletion)
		RemoveOwnerReferences configmap/c@1 drop owners [a] (kept by ConfigMap/k)
		Delete configmap/b@1 Background of b@1: things "b" is forbidden: not for you (its owner ConfigMap/a waits for its dependents' deletion)`)
	if diff := cmp.Diff(want, format(r.Steps)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(format(r.Steps), format(observed)); diff != "" {
		t.Errorf("observed (-reported +observed):\n%s", diff)
	}
	var remaining []string
	for _, o := range r.Remaining() {
		remaining = append(remaining, o.Object.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, remaining); diff != "" {
		t.Errorf("remaining (-want +got):\n%s", diff)
	}
}

// The grace period is for the targets alone.
func TestGracePeriod(t *testing.T) {
	objects := parseWorld(t, "pod/p\nconfigmap/b < pod/p")
	var periods []string
	observer := func(s Step) {
		period := short(&s.Object) + " default"
		if g := s.Options.GracePeriodSeconds; g != nil {
			period = short(&s.Object) + " given"
		}
		periods = append(periods, period)
	}
	_, err := New(newFake(t, objects, ""), graphOf(objects), Options{Observer: observer}).
		Delete(t.Context(), targetsOf(graphOf(objects), "p"), DeleteOptions{Policy: "Background", GracePeriodSeconds: new(int64(3))})
	if diff := cmp.Diff([]string{"pod/p given", "configmap/b default"}, periods); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// Whom a deletion concerns.
func TestConcerned(t *testing.T) {
	const world = `namespace/shop
		namespace/other
		crd/widgets.example.com
		configmap/a
		configmap/b < configmap/a
		configmap/c < configmap/b node/n
		other:configmap/d < node/c
		other:widget/w
		widget/v
		configmap/x < widget/v
		node/n
		configmap/y < secret/gone
		configmap/waits deleting finalizers=foregroundDeletion
		configmap/blocks < configmap/waits!
		configmap/waiter deleting finalizers=foregroundDeletion
		configmap/e < configmap/waiter!
		configmap/f < configmap/waiter`
	for _, test := range []struct{ targets, want string }{
		{"a", "a b c d"},
		{"c n", "c d n"},
		{"gone", "gone y"},
		{"nobody", ""},
		{"other", "d other w"},
		{"widgets.example.com", "v w widgets.example.com x"},
		{"blocks", "blocks waits"},
		{"e", "e f waiter"},
		{"f", "f"},
	} {
		var targets []types.UID
		for _, name := range strings.Fields(test.targets) {
			targets = append(targets, types.UID(name))
		}
		var got []string
		for n := range Concerned(graphOf(parseWorld(t, world)), targets).All() {
			got = append(got, string(n.Object().UID))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s concerns %s, want %s", test.targets, got, test.want)
		}
	}
}

// away is a server that cannot be reached in the end.
type away struct {
	*fake
	since time.Duration
}

func (a *away) Away() time.Duration { return a.since }

// What an object waits for is not said when the server could not be asked any more.
func TestReportOfAServerThatIsAway(t *testing.T) {
	for since, want := range map[time.Duration]string{
		time.Second:      "finalizer example.com/x",
		97 * time.Second: "its end was not seen: the API server could not be reached for 1m37s",
	} {
		objects := parseWorld(t, "configmap/a finalizers=example.com/x")
		f := newFake(t, objects, "")
		g := graphOf(objects)
		r, err := New(&away{f, since}, g, Options{}).Delete(t.Context(), targetsOf(g, "a"), DeleteOptions{Policy: metav1.DeletePropagationBackground})
		if err != nil || len(r.Outcomes) != 1 || r.Outcomes[0].Result != Remaining || r.Outcomes[0].Reason.String() != want {
			t.Errorf("%s: got %v, error %v", since, r.Outcomes, err)
		}
	}
}

// A namespace waits for what was made in it meanwhile, too, as the events tell: that is not its controller's fault.
func TestNamespaceWaitsForWhatWasMade(t *testing.T) {
	objects := parseWorld(t, "namespace/shop\nconfigmap/a")
	c := New(newFake(t, objects, ""), graphOf(objects), Options{})
	for _, line := range []string{
		"configmap/late deleting finalizers=example.com/x", "configmap/fresh", "other:configmap/elsewhere deleting finalizers=example.com/x",
	} {
		c.builder.apply(Event{Object: parseWorld(t, line)[0]})
	}
	outcomes := []Outcome{{Object: parseWorld(t, "namespace/shop deleting")[0], Result: Remaining}}
	(&conclusion{state: c.state}).explainNamespaces(outcomes)
	got := outcomes[0]
	if got.Reason.String() != "its contents must be deleted first" || len(got.WaitingFor) != 1 || got.WaitingFor[0].Name != "late" {
		t.Errorf("got %q, waiting for %v", got.Reason, got.WaitingFor)
	}
}
