// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
)

// Texts of a status, as controllers word them.
func TestSays(t *testing.T) {
	for text, want := range map[string]bool{
		"AccessDenied: the user is not authorized to perform s3:DeleteBucket": true,
		"bucket is not empty":                     true,
		`Secret "db-root" not found`:              true,
		"deletion protection is on":               true,
		"timed out waiting for the load balancer": true,
		"0 errors":                                          false,
		"no failures so far":                                false,
		"waiting for 3 volumes to detach":                   false,
		"a previous attempt failed":                         false,
		"the conflict was resolved":                         false,
		"deleted 3 of 5 nodes":                              false,
		"without errors, but the snapshot is still in use":  true,
		"nothing failed; the disk is protected from delete": true,
	} {
		if got := says(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

// Conditions: whether they say that something goes wrong with the deletion, and whether
// by more than words.
func TestFails(t *testing.T) {
	for _, test := range []struct {
		condition evidence.Condition
		want      string
	}{
		{evidence.Condition{Type: "Ready", Status: "False", Reason: "ReconcileError"}, "strong"},
		{evidence.Condition{Type: "Ready", Status: "False", Reason: "Deleting", Message: "cannot delete the bucket"}, "weak"},
		{evidence.Condition{Type: "Ready", Status: "False", Reason: "Deleting", Message: "waiting for the bucket"}, "no"},
		{evidence.Condition{Type: "Ready", Status: "True", Reason: "ErrorsIgnored", Message: "there was an error"}, "no"},
		{evidence.Condition{Type: "DeletionBlocked", Status: "True"}, "strong"},
		{evidence.Condition{Type: "Failed", Status: "False", Reason: "Error", Message: "error"}, "no"},
		{evidence.Condition{Type: "Stalled"}, "strong"},
		{evidence.Condition{Type: "Deleting", Status: "True", Reason: "HasDependents"}, "strong"},
		{evidence.Condition{Type: "Paused", Status: "False", Reason: "NotPaused"}, "no"},
		{evidence.Condition{Type: "Synced", Status: "True", Message: `no new content in namespace s because it is being terminated`}, "strong"},
	} {
		got := "no"
		if failing, strong := fails(test.condition); strong {
			got = "strong"
		} else if failing {
			got = "weak"
		}
		if got != test.want {
			t.Errorf("%+v: %s, want %s", test.condition, got, test.want)
		}
	}
}

// What a message says of a failure: its kind, and whether it passes by itself.
func TestNewFailure(t *testing.T) {
	for message, want := range map[string]string{
		"dial tcp 10.0.0.1:443: connect: connection refused":                                       "failing, 10m0s",
		"pods is forbidden: cannot list":                                                           "failing, 1m0s",
		"exceeded quota: objects":                                                                  "over quota, 1m0s",
		`pods "x" is forbidden: violates PodSecurity "restricted"`:                                 "over quota, 1m0s",
		"is forbidden: unable to create new content in namespace s because it is being terminated": "needs to create, 1m0s",
		"3 of 7 instances still run":                                                               "failing, 10m0s, counts",
		"failed: 4 buckets left":                                                                   "failing, 10m0s, counts",
		"Secret default/credentials not found":                                                     "failing, 1m0s",
		"x509: certificate signed by unknown authority":                                            "failing, 1m0s",
	} {
		f := newFailure(message+"\n", evidence.Fact{}, evidenceAt)
		got := fmt.Sprint(map[FailureKind]string{Failing: "failing", NeedsCreate: "needs to create", OverQuota: "over quota"}[f.Kind], ", ", f.Patience())
		if f.counts {
			got += ", counts"
		}
		if got != want || f.Message != message {
			t.Errorf("%q: %s, want %s", f.Message, got, want)
		}
	}
	if once := (&Failure{Lasting: true, once: true}); once.Patience() != SameFailure {
		t.Errorf("what came once counts after %s", once.Patience())
	}
}

var evidenceAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Of two failures the one that explains more is kept, whatever comes first.
func TestExplainsMore(t *testing.T) {
	ascending := []*Failure{
		nil,
		{Kind: Failing},
		{Kind: Failing, Dated: true},
		{Kind: Failing, Lasting: true},
		{Kind: Failing, Lasting: true, Dated: true},
		{Kind: Paused},
		{Kind: NeedsCreate, Dated: true},
		{Kind: OverQuota},
	}
	for i, more := range ascending {
		for j, less := range ascending[:i] {
			if !more.explainsMore(less) || less != nil && less.explainsMore(more) {
				t.Errorf("%d explains no more than %d", i, j)
			}
		}
		if i > 0 && more.explainsMore(more) {
			t.Errorf("%d explains more than itself", i)
		}
	}
}

// Texts of a status that say that something is wrong now.
func TestTellingTexts(t *testing.T) {
	for status, want := range map[string]string{
		`{"lastError":"access denied","message":"waiting"}`:                         "status.lastError: access denied",
		`{"message":"in use by x","errorMessage":"cannot delete"}`:                  "status.errorMessage: cannot delete; status.message: in use by x",
		`{"phase":"Ready","message":"failed"}`:                                      "",
		`{"phase":"Deleting","message":"failed"}`:                                   "status.message: failed",
		`{"history":[{"error":"failed"}],"previousAttempt":{"error":"failed"}}`:     "",
		`{"conditions":[{"message":"failed"}]}`:                                     "",
		`{"errors":["denied","no errors"]}`:                                         "status.errors[0].errors: denied",
		`{"nodes":[{"state":"Running","error":"failed"},{"error":"refused"}]}`:      "status.nodes[1].error: refused",
		`{"a":{"b":{"c":{"d":{"error":"failed"}}}}}`:                                "status.a.b.c.d.error: failed",
		`{"a":{"b":{"c":{"d":{"e":{"error":"failed"}}}}}}`:                          "",
		`{"url":"https://errors.example.com/denied","reasonOfNothing":"forbidden"}`: "",
	} {
		var fields map[string]any
		if err := json.Unmarshal([]byte(status), &fields); err != nil {
			t.Fatal(err)
		}
		var got []string
		for path, text := range tellingTexts("status", fields, maxDepth, time.Time{}) {
			if says(text) {
				got = append(got, path+": "+text)
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %q, want %q", status, got, want)
		}
	}
}

// Events that say the same but for numbers and identifiers are one, which is as old as the
// first and says what the last does.
func TestMerged(t *testing.T) {
	event := func(kind, message string, minutes int, count int64) unstructured.Unstructured {
		at := evidenceAt.Add(time.Duration(minutes) * time.Minute).Format(time.RFC3339)
		return unstructured.Unstructured{Object: map[string]any{
			"type": kind, "reason": "R", "message": message, "firstTimestamp": at, "lastTimestamp": at, "count": count,
			"involvedObject": map[string]any{"kind": "Widget", "name": "w"},
		}}
	}
	var got []string
	for _, e := range merged([]unstructured.Unstructured{
		event("Warning", "request 7f3 was denied", 5, 1), event("Normal", "request 7f3 was denied", 5, 1),
		event("Warning", "request 8a1 was denied", 9, 2), event("Warning", "request 1c4 was denied", 2, 1), event("Warning", "it was denied", 3, 1),
	}) {
		got = append(got, fmt.Sprintf("%s %q %d times, from %s to %s", e.Type, e.Message, e.Count, e.First.Sub(evidenceAt), e.Last.Sub(evidenceAt)))
	}
	want := []string{
		`Warning "request 8a1 was denied" 4 times, from 2m0s to 9m0s`,
		`Normal "request 7f3 was denied" 1 times, from 5m0s to 5m0s`,
		`Warning "it was denied" 1 times, from 3m0s to 3m0s`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Objects whose failures differ in their names and numbers alone share the cause. A name is a whole word.
func TestGist(t *testing.T) {
	for _, test := range [][3]string{
		{"blue", "widget blue: request 12 denied", "widget request denied"},
		{"red", "widget red: request 34 denied", "widget request denied"},
		{"re", "widget red: request 34 denied", "widget red: request denied"},
	} {
		if got := (&Failure{Message: test[1]}).Gist(test[0]); got != test[2] {
			t.Errorf("%q of %q: %q, want %q", test[1], test[0], got, test[2])
		}
	}
}
