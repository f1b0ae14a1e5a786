// SPDX-License-Identifier: Apache-2.0

package unstick_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

var dangerous = &unstick.Options{Allow: explain.Dangerous}

// webhook is a lock that a temporary change opens.
func webhook() lock {
	op := remedy.PatchOf(identity("lock"), remedy.Replace("/webhooks/0/failurePolicy", "Ignore"))
	op.Back = new(remedy.PatchOf(identity("lock"), remedy.Replace("/webhooks/0/failurePolicy", "Fail")))
	return lock{kind: explain.Kind{ID: "adm-webhook-dead"}, remedy: explain.Remedy{Risk: explain.Disruptive, Effect: say.Plain("pass over"), Temporary: true, Action: explain.Action{Operation: &op}}}
}

func journal(t *testing.T) *change.Journal {
	t.Helper()
	j, err := change.NewJournal(t.TempDir(), change.Header{Started: time.Now(), Where: answer.Where{Server: "https://example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// What is agreed to is done, one finalizer of one object at a time, and nothing else.
func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		objects []string
		locks   []lock
		allow   explain.Risk
		answer  string
		consent change.Beforehand
		sent    string
		asked   string
		err     error
	}{
		"one object":                    {objects: []string{"a=x/y"}, sent: "patch a", asked: "x/y"},
		"many objects of one finalizer": {objects: []string{"a=x/y", "b=x/y", "c=x/y"}, sent: "3 of patch", asked: "x/y"},
		"two finalizers in a row":       {objects: []string{"a=x/y,x/z"}, sent: "patch a, patch a", asked: "x/y, x/z"},
		"two finalizers of two objects": {objects: []string{"a=x/y", "b=x/z"}, sent: "2 of patch", asked: "x/y, x/z"},
		"no":                            {objects: []string{"a=x/y"}, answer: "no", asked: "x/y", err: change.ErrNotConfirmed},
		"the name, not the finalizer":   {objects: []string{"a=x/y"}, answer: "a", asked: "x/y", err: change.ErrNotConfirmed},
		"yes is not for what is dangerous": {
			objects: []string{"a=x/y"}, consent: change.Beforehand{Yes: true}, answer: "yes", asked: "x/y", err: change.ErrNotConfirmed,
		},
		"not allowed": {objects: []string{"a=x/y"}, allow: explain.Disruptive},
		"another digest": {
			objects: []string{"a=x/y"}, consent: change.Beforehand{Digest: "sha256:0"}, err: new(change.DigestError),
		},
		"a lock, then a finalizer": {
			objects: []string{"a=x/y"}, locks: []lock{webhook()}, sent: "patch lock, patch a, back lock", asked: ", x/y",
		},
		"a lock alone is allowed": {
			objects: []string{"a=x/y"}, locks: []lock{webhook()}, allow: explain.Disruptive, sent: "patch lock, back lock", asked: "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(test.objects...)
				w.locks, w.answer = test.locks, test.answer
				e := w.edges(t)
				e.Journal = journal(t)
				allow := test.allow
				if allow == "" {
					allow = explain.Dangerous
				}
				report, err := e.Run(t.Context(), nil, &unstick.Options{Allow: allow}, test.consent)
				var digest *change.DigestError
				switch {
				case test.err == nil && err != nil, test.err != nil && !errors.Is(err, test.err) && !errors.As(err, &digest):
					t.Errorf("%v, want %v", err, test.err)
				}
				sent := strings.Join(w.sent, ", ")
				if number, verb, several := strings.Cut(test.sent, " of "); several {
					if strings.Count(sent, verb) != int(number[0]-'0') || strings.Count(sent, ",") != int(number[0]-'1') {
						t.Errorf("sent %s", sent)
					}
				} else if sent != test.sent {
					t.Errorf("sent %s, want %s", sent, test.sent)
				}
				var asked []string
				for _, q := range w.asked {
					asked = append(asked, q.Name)
				}
				if got := strings.Join(asked, ", "); got != test.asked {
					t.Errorf("asked for %q, want %q", got, test.asked)
				}
				if gone := len(test.objects) - len(w.objects); len(report.Freed) != gone {
					t.Errorf("%d objects are gone, and it says %v", gone, report.Freed)
				}
			})
		})
	}
}

// An object that changes between the look and the write is left alone, and explained anew; so is one whose cause has ended.
func TestChanged(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w *world, n int)
		sent   string
		events string
	}{
		"a version after it was read": {func(w *world, n int) {
			if n == 3 { // the proof
				w.objects["a"].SetResourceVersion("2")
			}
		}, "patch a", "Skipped patch a, Done patch a"},
		"a time in its status at each look": {func(w *world, n int) {
			if o := w.objects["a"]; o != nil {
				o.SetResourceVersion(fmt.Sprint("2", n))
				o.Object["status"] = map[string]any{"seen": time.Now().Add(time.Duration(n) * time.Hour).Format(time.RFC3339)}
			}
		}, "patch a", "Skipped patch a, Done patch a"},
		"what a controller says at each look": {func(w *world, n int) {
			w.objects["a"].SetResourceVersion(fmt.Sprint("2", n))
			w.objects["a"].Object["status"] = map[string]any{"phase": fmt.Sprint("draining ", n)}
		}, "", "Skipped patch a, Skipped patch a, Skipped patch a, Skipped patch a, Skipped patch a"},
		"the time, by somebody who had not written since the deletion": {func(w *world, n int) {
			o := w.objects["a"]
			o.SetResourceVersion(fmt.Sprint("2", n))
			o.SetAnnotations(map[string]string{"last-sync": time.Now().Format(time.RFC3339)})
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: fmt.Sprint("controller-", n), Time: new(metav1.NewTime(time.Now().Add(time.Minute)))}})
		}, "", "Skipped patch a, Skipped patch a, Skipped patch a, Skipped patch a, Skipped patch a"},
		"the time, by somebody who had": {func(w *world, n int) {
			if o := w.objects["a"]; o != nil {
				o.SetResourceVersion(fmt.Sprint("2", n))
				o.SetAnnotations(map[string]string{"last-sync": time.Now().Format(time.RFC3339)})
				o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "controller", Time: new(metav1.NewTime(time.Now().Add(time.Minute)))}})
			}
		}, "patch a", "Skipped patch a, Done patch a"},
		"its labels at each look": {func(w *world, n int) {
			w.objects["a"].SetResourceVersion(fmt.Sprint("2", n))
			w.objects["a"].SetLabels(map[string]string{"n": fmt.Sprint(n)})
		}, "", "Skipped patch a, Skipped patch a, Skipped patch a, Skipped patch a, Skipped patch a"},
		"another object of the name": {func(w *world, n int) {
			if n == 3 {
				w.objects["a"].SetUID("other")
			}
		}, "", "Skipped patch a, Skipped patch a, Skipped patch a, Skipped patch a, Skipped patch a"},
		"the cause ends": {func(w *world, n int) {
			if n == 3 {
				delete(w.objects, "a")
			}
		}, "", "Skipped patch a"},
		"another finalizer comes first": {func(w *world, n int) {
			if n == 3 {
				w.objects["a"].SetFinalizers([]string{"x/new", "x/y"})
			}
		}, "patch a, patch a", "Skipped patch a, Done patch a, Done patch a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld("a=x/y")
				w.onLook = func(n int) { test.change(w, n) }
				if _, err := w.edges(t).Run(t.Context(), nil, dangerous, change.Beforehand{}); err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(w.sent, ", "); got != test.sent {
					t.Errorf("sent %q, want %q", got, test.sent)
				}
				if got := strings.Join(w.events, ", "); got != test.events {
					t.Errorf("events %q, want %q", got, test.events)
				}
			})
		})
	}
}

// What is left is given up although what a look says of it has another age, or another try, each time.
func TestAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := newWorld("a=x/y")
		w.locks = []lock{webhook()}
		w.says = func() say.Text { return say.Plain("its cleanup has failed for " + time.Since(began).String()) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		e := w.edges(t)
		e.Journal = journal(t)
		if _, err := e.Run(ctx, nil, &unstick.Options{Allow: "disruptive"}, change.Beforehand{}); err != nil || time.Since(began) > time.Minute {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// An answer that never comes is looked for: what was changed is not changed again, and what was not is.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("a=x/y,x/z", "b=x/y")
		calls := 0
		w.before = func(string) error {
			switch calls++; calls {
			case 1:
				return lostAnswer{errLost}
			case 2:
				return errors.New("connection refused")
			}
			return nil
		}
		report, err := w.edges(t).Run(t.Context(), nil, dangerous, change.Beforehand{})
		if err != nil || len(w.objects) > 0 || len(w.sent) != 3 || len(report.Freed) != 2 {
			t.Errorf("%v: sent %v, left %v", err, w.sent, w.names())
		}
	})
}

// What the server refuses is not sent again.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("a=x/y")
		calls := 0
		w.before = func(string) error {
			calls++
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no right"))
		}
		report, err := w.edges(t).Run(t.Context(), nil, dangerous, change.Beforehand{})
		if err != nil || calls != 1 || report.Plan.Choices[0].Reason != unstick.Denied {
			t.Errorf("%v after %d calls: %+v", err, calls, report.Plan)
		}
	})
}

// A temporary change is taken back when what it was for is gone, and whatever ends the run.
func TestTemporary(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, test := range map[string]struct {
		before func(change string) error
		allow  explain.Risk
		sent   string
	}{
		"freed":              {nil, explain.Dangerous, "patch lock, patch a, back lock"},
		"never freed":        {nil, explain.Disruptive, "patch lock, back lock"},
		"no answer":          {func(change string) error { return map[string]error{"patch lock": lostAnswer{errLost}}[change] }, explain.Disruptive, "patch lock, back lock"},
		"interrupted":        {func(string) error { cancel(); return nil }, explain.Dangerous, "patch lock, back lock"},
		"a refusal after it": {func(change string) error { return map[string]error{"patch a": apierrors.NewBadRequest("no")}[change] }, explain.Dangerous, "patch lock, back lock"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if name == "interrupted" {
				ctx = interrupted
			}
			w := newWorld("a=x/y")
			w.locks, w.before = []lock{webhook()}, test.before
			e := w.edges(t)
			e.Journal = journal(t)
			e.Wait = func(context.Context, time.Duration) {}
			start := time.Now()
			e.Now = func() time.Time { return start.Add(time.Duration(w.looks) * 10 * time.Second) }
			_, err := e.Run(ctx, nil, &unstick.Options{Allow: test.allow}, change.Beforehand{})
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			if got := strings.Join(w.sent, ", "); got != test.sent {
				t.Errorf("sent %q, want %q", got, test.sent)
			}
			recorded, err := change.ReadJournal(e.Journal.Dir)
			if err != nil || len(recorded.Open()) > 0 {
				t.Errorf("%v: open in the journal: %+v", err, recorded)
			}
		})
	}
}

// A namespace whose content may be deleted again is waited for until its controller has tried, for up to a minute; what the garbage
// collector was refused for as long as it had been, and for 17 minutes at most; what goes on and is written all the time for a quarter of
// an hour; any other object for half a minute.
func TestPatience(t *testing.T) {
	namespaces := graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}
	for _, test := range []struct {
		kind          graph.Resource
		finalizer     string
		deleting      time.Duration
		takes         time.Duration
		patient, want bool
		written       explain.Verdict
	}{
		{namespaces, "x/y", 0, time.Minute, false, true, ""},
		{identity("a").Resource, "x/y", time.Hour, time.Minute, false, false, ""},
		{identity("a").Resource, "x/y", 0, time.Minute, true, true, ""},
		{identity("a").Resource, "orphan", 5 * time.Minute, 5 * time.Minute, false, true, ""},
		{identity("a").Resource, "orphan", time.Minute, 3 * time.Minute, false, false, ""},
		{identity("a").Resource, "foregroundDeletion", 48 * time.Hour, 1000 * time.Second, false, true, ""},
		{identity("a").Resource, "x/y", 0, 5 * time.Minute, false, true, explain.Progressing},
		{identity("a").Resource, "x/y", 0, 5 * time.Minute, false, false, explain.Stuck},
		{identity("a").Resource, "x/y", 0, 20 * time.Minute, false, false, explain.Progressing},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld("a=" + test.finalizer)
			w.objects["a"].SetDeletionTimestamp(new(metav1.NewTime(time.Now().Add(-test.deleting))))
			w.locks = []lock{webhook()}
			w.locks[0].kind.Class = finding.Refusal
			e := w.edges(t)
			e.Journal = journal(t)
			var passed time.Time
			e.Look = func(ctx context.Context) (*unstick.Look, error) {
				if w.locks[0].open && passed.IsZero() {
					passed = time.Now()
				}
				if !passed.IsZero() && time.Since(passed) > test.takes {
					clear(w.objects)
				}
				if a := w.objects["a"]; a != nil && test.written != "" {
					a.SetResourceVersion(fmt.Sprint(w.looks))
				}
				l, err := w.look(ctx)
				for i := range l.Report.Objects {
					l.Report.Objects[i].Object.Resource = test.kind
					if test.written != "" && !passed.IsZero() {
						l.Report.Objects[i].Verdict = test.written
					}
				}
				for _, c := range l.Report.Causes {
					if !passed.IsZero() {
						c.Verdict = explain.Unknown
					}
				}
				return l, err
			}
			var waiting []unstick.Event
			e.Log = func(e unstick.Event) {
				if e.Waiting != nil {
					waiting = append(waiting, e)
				}
			}
			report, err := e.Run(t.Context(), nil, &unstick.Options{Allow: explain.Disruptive, Patient: test.patient}, change.Beforehand{})
			if freed := len(report.Freed) > 0; err != nil || freed != test.want {
				t.Errorf("%+v: freed is %t: %v", test, freed, err)
			}
			if len(waiting) > 1 || (len(waiting) == 1) != (test.patient || test.kind == namespaces || test.finalizer != "x/y") || len(waiting) == 1 && waiting[0].Until.IsZero() != test.patient {
				t.Errorf("%+v: said %v", test, waiting)
			}
		})
	}
}

// Nothing is changed that cannot be kept before: nothing temporary without a journal, and nothing at all when it cannot be written.
func TestNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("a=x/y")
		w.locks = []lock{webhook()}
		if _, err := w.edges(t).Run(t.Context(), nil, dangerous, change.Beforehand{}); !errors.As(err, new(*change.JournalError)) || len(w.sent) > 0 {
			t.Errorf("without a journal: %v, sent %v", err, w.sent)
		}
		w = newWorld("a=x/y")
		e := w.edges(t)
		e.Journal = journal(t)
		if err := os.RemoveAll(e.Journal.Dir); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Run(t.Context(), nil, dangerous, change.Beforehand{}); !errors.As(err, new(*change.JournalError)) || len(w.sent) > 0 {
			t.Errorf("without its directory: %v, sent %v", err, w.sent)
		}
	})
}

// A journal has each object as it was before the first change to it, readable by its user alone, and what became of each change; half a
// line at its end is none.
func TestJournal(t *testing.T) {
	w := newWorld("a=x/y,x/z")
	e := w.edges(t)
	e.Journal = journal(t)
	e.Wait = func(context.Context, time.Duration) {}
	if _, err := e.Run(t.Context(), nil, dangerous, change.Beforehand{}); err != nil {
		t.Fatal(err)
	}
	dir := e.Journal.Dir
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 4 {
		t.Fatalf("%v: %v", err, files)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	file, err := os.OpenFile(filepath.Join(dir, "journal.jsonl"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"number":3,"op":{"Ver`); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	recorded, err := change.ReadJournal(dir)
	if err != nil || len(recorded.Changes) != 2 || recorded.Changes[0].Status != unstick.Done {
		t.Fatalf("%v: %+v", err, recorded)
	}
	saved, err := recorded.Manifest(recorded.Changes[1].Before)
	if err != nil || strings.Join(saved.GetFinalizers(), ",") != "x/z" || saved.GetUID() != "" {
		t.Errorf("%v: %v", err, saved)
	}
	if err := recorded.MarkTakenBack(time.Now(), 2); err != nil {
		t.Fatal(err)
	}
	if recorded, err = change.ReadJournal(dir); err != nil || recorded.Changes[1].Status != unstick.TakenBack {
		t.Errorf("%v: %+v", err, recorded)
	}
}

// What a change would free besides what was agreed to is asked about, also when it is deleted right before the change is made.
func TestMoreIsFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("a=x/y")
		w.locks = []lock{webhook()}
		w.onLook = func(n int) {
			if n == 3 { // the proof
				w.objects["b"] = newWorld("b=x/y").objects["b"]
			}
		}
		e := w.edges(t)
		e.Journal = journal(t)
		if _, err := e.Run(t.Context(), nil, &unstick.Options{Allow: explain.Disruptive}, change.Beforehand{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(w.events, ", "); !strings.HasPrefix(got, "Skipped patch lock, Done patch lock") {
			t.Errorf("events %q", got)
		}
	})
}
