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

	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// TestAnswers: no answer is told from a refusal, in every form of the report.
func TestAnswers(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	const unseen, unknown = "; no effect was seen, and there may still be one", "; no effect was seen, and there may still be one"
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
