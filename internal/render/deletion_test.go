// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// TestDeletionTextEscapes lets what anybody may write into an object try to drive
// the terminal, above the question whether to delete.
func TestDeletionTextEscapes(t *testing.T) {
	const evil = "x\x1b[2K\u202e\n"
	object := graph.Object{Resource: &graph.Resource{Kind: "Pod"}, Namespace: "n", Name: evil}
	id := graph.Identity{Name: evil}
	var out strings.Builder
	outcomes := []gc.Outcome{
		{Object: object, Result: gc.Remaining, Reason: say.Plain(evil), WaitingFor: []graph.Identity{id}},
		{Object: object, Result: gc.Remaining},
	}
	if err := Summary(&out, Style{}, nil, outcomes); err != nil {
		t.Fatal(err)
	}
	preview := Preview{What: evil, Report: &gc.Report{Outcomes: outcomes}, Instead: evil, Plan: &DeletionPlan{}}
	if err := preview.Text(&out, Style{}, true); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{errors.New(evil), apierrors.NewForbidden(schema.GroupResource{}, evil, nil)} {
		out.WriteString(EventLine(gc.Step{Action: gc.ActionRemoveFinalizer, Object: object, Err: err}))
	}
	if strings.ContainsAny(out.String(), "\x1b\u202e") || strings.Contains(out.String(), "x\n") || strings.Count(out.String(), `\x1b`) < 5 {
		t.Errorf("unescaped: %q", out.String())
	}
}

// TestPreviewText: the worst is first, a label has at most ten rows unless all are wanted.
func TestPreviewText(t *testing.T) {
	var outcomes []gc.Outcome
	outcome := func(kind, name string, result gc.Result, reason string) {
		object := graph.Object{Resource: &graph.Resource{Kind: kind}, Namespace: "n", Name: name}
		outcomes = append(outcomes, gc.Outcome{Object: object, Result: result, Reason: say.Plain(reason)})
	}
	outcome("Pod", "gone", gc.Deleted, "its kubelet ends it")
	outcome("Secret", "kept", gc.Untouched, "owned by others")
	for i := range maxRows + 2 {
		outcome("Toy", fmt.Sprint("t", i), gc.Remaining, fmt.Sprint("reason ", i))
	}
	preview := Preview{What: "delete x (background)", Report: &gc.Report{Outcomes: outcomes}, Instead: "kubectl gc delete x --order=safe"}
	preview.Forecast = &foresight.Forecast{Unread: []evidence.Gap{
		{What: say.Plain("a: forbidden"), Forbidden: true}, {What: say.Plain("b: forbidden"), Forbidden: true}, {What: say.Plain("whether it works"), Open: true},
	}}
	var out, all strings.Builder
	for w, steps := range map[*strings.Builder]bool{&out: false, &all: true} {
		if err := preview.Text(w, Style{}, steps); err != nil {
			t.Fatal(err)
		}
	}
	const tail = `STUCK         2 more objects: -o wide shows them
NOT READ      2 reads were forbidden: -o wide lists them
NOT READ      whether it works
deletes       1 Pod
keeps         secret/kept -n n: owned by others
Instead:      kubectl gc delete x --order=safe
`
	if got := out.String(); !strings.HasPrefix(got, "PREVIEW  delete x (background), 13 objects\nSTUCK         toy/t0 -n n: reason 0\n") || !strings.HasSuffix(got, tail) {
		t.Errorf("got:\n%s", got)
	}
	if got := all.String(); strings.Count(got, "STUCK") != maxRows+2 || !strings.Contains(got, "\n              pod/gone -n n: its kubelet ends it\n") || !strings.Contains(got, " a: forbidden\n") {
		t.Errorf("with all rows:\n%s", got)
	}
}

// TestDestroyed: volumes are added up.
func TestDestroyed(t *testing.T) {
	lost := []foresight.Loss{{Volume: "a", Size: "1Gi"}, {Volume: "b", Size: "512Mi"}, {}}
	if n, size := Destroyed(lost); n != 2 || size != "1536Mi in 2 volumes" {
		t.Errorf("%d volumes, %s", n, size)
	}
	if n, size := Destroyed(append(lost, foresight.Loss{Volume: "c", Copy: true})); n != 3 || size != "at least 1536Mi in 3 volumes and snapshots" {
		t.Errorf("%d volumes, %s", n, size)
	}
}

// TestAppeared: what was made since the preview is counted, and told apart.
func TestAppeared(t *testing.T) {
	revision := func(name string, appeared, owned bool) gc.Outcome {
		o := graph.Object{Resource: &graph.Resource{Kind: "ControllerRevision"}, Namespace: "n", Name: name}
		if owned {
			o.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", Controller: new(true)}}
		}
		return gc.Outcome{Object: o, Result: gc.Deleted, Appeared: appeared}
	}
	var out strings.Builder
	err := Summary(&out, Style{}, nil, []gc.Outcome{revision("a", false, true), revision("b", true, true), revision("c", true, true), revision("d", true, false)})
	const want = `deleted: 4 ControllerRevisions
  2 ControllerRevisions since the preview: created by the controller of StatefulSet/db, which had not seen the deletion yet
  1 ControllerRevision since the preview: their creator is not known, or they existed before and were not seen
`
	if err != nil || out.String() != want {
		t.Errorf("got (error %v):\n%swant:\n%s", err, out.String(), want)
	}
}

// TestAnswers: no answer is told from a refusal, in every form of the report.
func TestAnswers(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	const unseen, unknown = "; no effect was seen yet, but there might be one", "; no effect was seen yet, but there might be one"
	for _, test := range []struct {
		name   string
		err    error
		result string
		line   string // of a patch
		known  string // beside the error
	}{
		{"accepted", nil, "Accepted", "owner references unblocked in namespace n", ""},
		{"forbidden", apierrors.NewForbidden(pods, "p", errors.New("no")), "Refused", "refused in namespace n: ", ""},
		{"conflict", apierrors.NewConflict(pods, "p", errors.New("changed")), "Refused", "refused in namespace n: ", ""},
		{"internal error", apierrors.NewInternalError(errors.New("webhook")), "Refused", "refused in namespace n: ", ""},
		{"gateway timeout", apierrors.NewTimeoutError("slow", 1), "Unanswered", "not answered in namespace n: ", unseen},
		{"server timeout", apierrors.NewServerTimeout(pods, "patch", 1), "Unanswered", "not answered in namespace n: ", unseen},
		{"own timeout", &url.Error{Op: "Patch", URL: "u", Err: context.DeadlineExceeded}, "Unanswered", "not answered in namespace n: ", unseen},
		{"connection lost", &url.Error{Op: "Patch", URL: "u", Err: io.EOF}, "Unanswered", "not answered in namespace n: ", unknown},
		{"wrapped refusal", fmt.Errorf("sending: %w", apierrors.NewForbidden(pods, "p", nil)), "Refused", "refused in namespace n: ", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			step := gc.Step{Action: gc.ActionUnblockOwnerReferences, Err: test.err}
			step.Object = graph.Object{
				Resource:  &graph.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod"},
				Namespace: "n", Name: "p",
			}
			message := ""
			if test.err != nil {
				message = test.err.Error() + test.known
			}
			event := NewEvent(metav1.Time{}, step)
			if diff := cmp.Diff([]string{test.result, message}, []string{event.Result, event.Message}); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			if line := EventLine(step); !strings.HasPrefix(line, "pod/p: ") || !strings.Contains(line, test.line) || !strings.HasSuffix(line, message) {
				t.Errorf("line %q, want %q and %q", line, test.line, message)
			}
			want := &ServerAnswer{Accepted: test.err == nil, Unanswered: test.result == "Unanswered"}
			if test.err != nil {
				want.Message = test.err.Error()
			}
			answer := NewServerAnswer(test.err)
			if diff := cmp.Diff(want, answer); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if text := serverCell(answer).text; strings.Contains(text, "not answered") != want.Unanswered {
				t.Errorf("answer %q", text)
			}
		})
	}
}
