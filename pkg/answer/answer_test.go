// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	pods       = schema.GroupResource{Resource: "pods"}
	metrics    = schema.GroupResource{Group: "metrics.k8s.io", Resource: "pods"}
	namespaces = schema.GroupResource{Resource: "namespaces"}
	podKind    = schema.GroupKind{Kind: "Pod"}

	refused   = &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	reset     = &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	unserved  = apierrors.NewGenericServerResponse(http.StatusNotFound, "get", pods, "", "", 0, true)
	bare      = &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}}
	gateway   = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadGateway}}
	forbidden = apierrors.NewForbidden(pods, "p", nil)
	broken    = apierrors.NewInternalError(errors.New("broken"))
	etcd      = apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	wrongUID  = apierrors.NewInvalid(podKind, "p", field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "1", "field is immutable")})
	invalid   = apierrors.NewInvalid(podKind, "p", field.ErrorList{field.Required(field.NewPath("spec"), "")})
)

func TestAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		is       func(error) bool
		yes, not []error
	}{
		"NoObject": {
			NoObject,
			[]error{apierrors.NewNotFound(pods, "p"), fmt.Errorf("reading: %w", apierrors.NewNotFound(pods, "p"))},
			[]error{unserved, bare, forbidden, errors.New("p not found"), nil},
		},
		"NoSuchObject": {
			func(err error) bool { return NoSuchObject(err, pods, "p") },
			[]error{apierrors.NewNotFound(pods, "p")},
			[]error{apierrors.NewNotFound(pods, "q"), apierrors.NewNotFound(namespaces, "p"), apierrors.NewNotFound(metrics, "p"), unserved, bare, nil},
		},
		"NoSuchObject, of a namespace": {
			func(err error) bool { return NoSuchObject(err, namespaces, "p") },
			[]error{apierrors.NewNotFound(namespaces, "p")},
			[]error{apierrors.NewNotFound(namespaces, "q")},
		},
		"WrongUID": {WrongUID, []error{wrongUID}, []error{invalid, forbidden, apierrors.NewConflict(pods, "p", nil), nil}},
		"Missing": {
			Indeterminate,
			[]error{refused, io.EOF, context.DeadlineExceeded, apierrors.NewTimeoutError("late", 1), apierrors.NewServerTimeout(pods, "delete", 1), gateway, etcd},
			[]error{nil, forbidden, broken, apierrors.NewConflict(pods, "p", nil), apierrors.NewTooManyRequests("slow down", 1)},
		},
		"Failed": {Failed, []error{broken, etcd, gateway}, []error{nil, forbidden, invalid, io.EOF}},
		"Passing": {
			Retryable,
			[]error{
				refused, reset, fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), io.EOF, apierrors.NewTooManyRequests("slow down", 1),
				apierrors.NewServiceUnavailable("starting"), apierrors.NewServerTimeout(pods, "delete", 1), gateway,
			},
			[]error{nil, forbidden, apierrors.NewConflict(pods, "p", nil), invalid, broken, context.DeadlineExceeded, context.Canceled},
		},
	} {
		for _, err := range test.yes {
			if !test.is(err) {
				t.Errorf("%s: not %v", name, err)
			}
		}
		for _, err := range test.not {
			if test.is(err) {
				t.Errorf("%s: also %v", name, err)
			}
		}
	}
}

// Which finalizers the API server will not have added to what is being deleted it says itself.
func TestAddedFinalizers(t *testing.T) {
	added := field.Forbidden(field.NewPath("metadata", "finalizers"), fmt.Sprintf("no new finalizers can be added if the object is being deleted, found new finalizers %#v", []string{"a.example.com/y", "b.example.com/x"}))
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"added":            {apierrors.NewInvalid(podKind, "p", field.ErrorList{added}), "[a.example.com/y b.example.com/x]"},
		"something else":   {apierrors.NewInvalid(podKind, "p", field.ErrorList{field.Forbidden(field.NewPath("spec"), `may not be "x"`)}), "[]"},
		"not of the write": {errors.New(added.Error()), "[]"},
		"accepted":         {nil, "[]"},
	} {
		if got := fmt.Sprint(AddedFinalizers(test.err)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestReason(t *testing.T) {
	for message, want := range map[string]string{
		`admission webhook "w.example.com" denied the request: ticket
  required`: "ticket required",
		`configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: keep off`:                  "keep off",
		`admission webhook "w.example.com" denied the request without explanation`:                                              "",
		`failed calling webhook "w.example.com": failed to call webhook: no route`:                                              "",
		`2 remaining: [admission webhook "w.example.com" denied the request: a, unexpected items still remain in namespace: s]`: "",
		`admission webhook "w.example.com" denied the request: a, admission webhook "v.example.com" denied the request: b`:      "",
	} {
		if got := ToWrite(errors.New(message)).Reason(); got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}
