// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
	"github.com/kubectl-gc/kubectl-gc/pkg/unstick"
)

// Whatever the change, nothing is sent to take it back from an object that is as it was before.
func TestAsBefore(t *testing.T) {
	taint := *remedy.TaintOf(identity("o"), "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute").Back
	scale := remedy.ScaleOf(identity("o"), remedy.Replicas{Wanted: 2})
	field := remedy.PatchOf(identity("o"), remedy.Test("/spec/conditions", []any{"c"}), remedy.Remove("/spec/conditions"))
	entry := remedy.PatchOf(identity("o"), remedy.Test("/spec/list/1", "mine"), remedy.Remove("/spec/list/1"))
	for name, test := range map[string]struct {
		back   remedy.Op
		object string
		sent   bool
	}{
		"stopped":                            {scale, `{"replicas":0}`, true},
		"running again":                      {scale, `{"replicas":2}`, false},
		"scaled by a user":                   {scale, `{"replicas":1}`, true}, // its guard refuses it
		"tainted":                            {taint, `{"taints":[{"key":"node.kubernetes.io/out-of-service","value":"nodeshutdown","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"}]}`, true},
		"not tainted":                        {taint, `{}`, false},
		"tainted by a user, for another":     {taint, `{"taints":[{"key":"node.kubernetes.io/out-of-service","value":"repair","effect":"NoExecute"}]}`, false},
		"an added field":                     {field, `{"conditions":["c"]}`, true},
		"an added field is gone":             {field, `{}`, false},
		"an added entry":                     {entry, `{"list":["first","mine"]}`, true},
		"an added entry is gone":             {entry, `{"list":["first"]}`, false},
		"an added entry is gone, one after":  {entry, `{"list":["first","theirs"]}`, false},
		"an added entry moved by one before": {entry, `{"list":["theirs","first","mine"]}`, true}, // its test refuses it
	} {
		read := func(context.Context, graph.Identity) (*unstructured.Unstructured, error) {
			o := &unstructured.Unstructured{}
			return o, json.Unmarshal([]byte(`{"metadata":{"uid":"uid-o"},"spec":`+test.object+`}`), &o.Object)
		}
		do := func(context.Context, *remedy.Op) error { return nil }
		if sent, err := unstick.TakeBack(t.Context(), read, do, &remedy.Op{Verb: test.back.Verb, Object: identity("o"), Back: &test.back}); err != nil || sent != test.sent {
			t.Errorf("%s: sent %t, %v", name, sent, err)
		}
	}
}

// A journal that was read while its run was going is read again before it is written: what the run has written since is not lost.
func TestClaim(t *testing.T) {
	w := newWorld("a=x/y,x/z")
	e := w.edges(t)
	e.Journal = journal(t)
	e.Wait = func(context.Context, time.Duration) {}
	read, err := unstick.ReadJournal(e.Journal.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read.Claim(); !errors.Is(err, unstick.ErrGoing) {
		t.Errorf("its run is going, and it is held: %v", err)
	}
	if _, err := e.Run(t.Context(), nil, dangerous, unstick.Consent{}); err != nil {
		t.Fatal(err)
	}
	if err := e.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	release, err := read.Claim()
	if err != nil || len(read.Changes) != 2 {
		t.Fatalf("%v: %+v", err, read)
	}
	defer release()
	if err := read.MarkTakenBack(1, time.Now()); err != nil {
		t.Fatal(err)
	}
	if now, err := unstick.ReadJournal(e.Journal.Dir); err != nil || len(now.Changes) != 2 || now.Changes[1].Result != unstick.Done {
		t.Errorf("%v: %+v", err, now)
	}
}

// What a look does not meet is gone only if that is proved: by a list of its type, or by the API server when it is asked for it.
func TestGone(t *testing.T) {
	for name, test := range map[string]struct {
		deleted bool
		freed   int
	}{"cannot be read any more": {false, 0}, "does not exist": {true, 1}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld("a=x/y", "b=x/z")
			w.locks = []lock{webhook()}
			w.onLook = func(n int) {
				if n == 4 { // after the change of the webhook
					w.blind = !test.deleted
					if test.deleted {
						w.unlisted = true
						delete(w.objects, "a")
					}
				}
			}
			e := w.edges(t)
			e.Journal = journal(t)
			report, err := e.Run(t.Context(), nil, &unstick.Options{Allow: "disruptive"}, unstick.Consent{})
			if len(report.Freed) != test.freed || !test.deleted && (err == nil || !strings.Contains(err.Error(), "no right")) {
				t.Errorf("%s: %v, freed %v", name, err, report.Freed)
			}
			if got := strings.Join(w.sent, ", "); got != "patch lock, back lock" {
				t.Errorf("%s: sent %s", name, got)
			}
		})
	}
}

// A temporary change is taken back once, however often and with whatever answer it was sent, and closed in the journal once it can arrive no more.
func TestAnswersOfTemporary(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	defer cancel()
	failure := apierrors.NewInternalError(errors.New("no conversion"))
	for name, test := range map[string]struct {
		answers []error // of the change
		back    []error // of what takes it back
		open    int     // in the journal
		sent    string
	}{
		"none":                    {[]error{lostAnswer{errLost}}, nil, 0, "patch lock, back lock"},
		"none, and it never came": {[]error{errLost, apierrors.NewBadRequest("no")}, nil, 1, ""},
		"none, and made later":    {[]error{errLost, nil}, nil, 0, "patch lock, back lock"},
		"failed after it":         {[]error{lostAnswer{failure}}, nil, 0, "patch lock, back lock"},
		"after the end":           {[]error{nil}, nil, 0, "patch lock, back lock"},
		"none to either":          {[]error{lostAnswer{errLost}}, []error{lostAnswer{errLost}}, 0, "patch lock, back lock"},
		"failed after both":       {[]error{lostAnswer{failure}}, []error{lostAnswer{failure}}, 0, "patch lock, back lock"},
		"failed before the end":   {[]error{nil}, []error{failure}, 0, "patch lock, back lock"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			w := newWorld("a=x/y")
			w.locks = []lock{webhook()}
			answers := map[string][]error{"patch lock": test.answers, "back lock": test.back}
			w.before = func(change string) error {
				left := answers[change]
				if len(left) == 0 {
					return nil
				}
				if name == "after the end" {
					cancel()
				}
				answers[change] = left[1:]
				return left[0]
			}
			if name == "after the end" {
				ctx = interrupted
			}
			e := w.edges(t)
			e.Journal = journal(t)
			e.Wait = func(context.Context, time.Duration) {}
			start := time.Now()
			e.Now = func() time.Time { return start.Add(time.Duration(w.looks) * 4 * time.Second) }
			if _, err := e.Run(ctx, nil, &unstick.Options{Allow: "disruptive"}, unstick.Consent{}); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			if got := strings.Join(w.sent, ", "); got != test.sent {
				t.Errorf("sent %q, want %q", got, test.sent)
			}
			recorded, err := unstick.ReadJournal(e.Journal.Dir)
			if err != nil || len(recorded.Open()) != test.open {
				t.Errorf("%v: open in the journal: %+v", err, recorded.Open())
			}
		})
	}
}

// A change of what refuses others takes a moment to show, also when its answer was lost: until then it is not made again.
func TestUnansweredShowsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("a=x/y")
		w.locks = []lock{webhook()}
		w.locks[0].kind.Class = finding.Refusal
		lag := 0
		w.before = func(change string) error {
			if change != "patch lock" {
				return nil
			}
			lag = 3 // looks
			return lostAnswer{errLost}
		}
		w.onLook = func(int) {
			if lag > 0 {
				lag--
				w.locks[0].open = lag == 0
			}
		}
		e := w.edges(t)
		e.Journal = journal(t)
		if _, err := e.Run(t.Context(), nil, dangerous, unstick.Consent{}); err != nil {
			t.Error(err)
		}
		if got := strings.Join(w.sent, ", "); got != "patch lock, patch a, back lock" {
			t.Errorf("sent %s", got)
		}
	})
}
