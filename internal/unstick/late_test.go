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

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
)

// A journal that was read while its run was going is read again before it is written: what the run has written since is not lost.
func TestClaim(t *testing.T) {
	w := newWorld("a=x/y,x/z")
	e := w.edges(t)
	e.Journal = journal(t)
	e.Wait = func(context.Context, time.Duration) {}
	read, err := change.ReadJournal(e.Journal.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read.Claim(); !errors.Is(err, change.ErrGoing) {
		t.Errorf("its run is going, and it is held: %v", err)
	}
	if _, err := e.Run(t.Context(), nil, dangerous, change.Beforehand{}); err != nil {
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
	if err := read.MarkTakenBack(time.Now(), 1); err != nil {
		t.Fatal(err)
	}
	if now, err := change.ReadJournal(e.Journal.Dir); err != nil || len(now.Changes) != 2 || now.Changes[1].Status != unstick.Done {
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
			report, err := e.Run(t.Context(), nil, &unstick.Options{Allow: "disruptive"}, change.Beforehand{})
			if len(report.Freed) != test.freed || !test.deleted && (err == nil || !strings.Contains(err.Error(), "no right")) {
				t.Errorf("%s: %v, freed %v", name, err, report.Freed)
			}
			if got := strings.Join(w.sent, ", "); got != "patch lock, back lock" {
				t.Errorf("%s: sent %s", name, got)
			}
		})
	}
}

// A temporary change is taken back once, however often and with whatever answer it was sent, and closed in the journal once it can arrive
// no more.
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
		"none, and it never came": {[]error{errLost, apierrors.NewBadRequest("no")}, nil, 0, "fence lock, fence lock"},
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
			if _, err := e.Run(ctx, nil, &unstick.Options{Allow: "disruptive"}, change.Beforehand{}); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			if got := strings.Join(w.sent, ", "); got != test.sent {
				t.Errorf("sent %q, want %q", got, test.sent)
			}
			recorded, err := change.ReadJournal(e.Journal.Dir)
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
		if _, err := e.Run(t.Context(), nil, dangerous, change.Beforehand{}); err != nil {
			t.Error(err)
		}
		if got := strings.Join(w.sent, ", "); got != "patch lock, patch a, back lock" {
			t.Errorf("sent %s", got)
		}
	})
}
