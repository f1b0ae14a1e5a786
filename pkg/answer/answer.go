// SPDX-License-Identifier: Apache-2.0

// Package answer says what the answers of API servers mean, where their codes alone
// do not tell: which NotFound is one, which conflict, which error leaves open what
// became of a write. It is the one place for that, and for the differences between
// servers and what stands before them. It sends nothing.
package answer

import (
	"errors"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// NoObject reports whether the server said that an object does not exist, and of
// which: its answer has the name. A 404 of a proxy, or of a path that is not served,
// has none and says nothing of objects.
func NoObject(err error) bool { return absent(err) != nil }

// NoSuchObject reports whether the server said that this very object does not exist:
// of its type, which the answer calls by the name of the resource
// (apimachinery/pkg/api/errors, NewNotFound), and not its namespace, or what a server
// behind the API server keeps for it under the same name.
func NoSuchObject(err error, resource schema.GroupResource, name string) bool {
	details := absent(err)
	return details != nil && details.Name == name && details.Kind == resource.Resource && details.Group == resource.Group
}

// absent returns the details of a NotFound that names an object.
func absent(err error) *metav1.StatusDetails {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return nil
	}
	if details := status.Status().Details; details != nil && details.Name != "" {
		return details
	}
	return nil
}

// WrongUID reports whether a write was invalid because the object has another UID
// than the one that the write was meant for. The API server does not call that a
// conflict (apimachinery/pkg/api/validation, ValidateObjectMetaUpdate).
func WrongUID(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "metadata.uid" {
			return true
		}
	}
	return false
}

// UnsentError says why a request was not sent, so that no answer is missing.
type UnsentError struct{ error }

// Unsent returns an error as an UnsentError.
func Unsent(err error) error { return UnsentError{err} }

// Unwrap returns why.
func (e UnsentError) Unwrap() error { return e.error }

// Indeterminate reports whether the error of a request is not the server's answer,
// because the connection was lost or not made or the time was over, or is its
// answer that its own time or that of etcd was over, or that of a proxy which got
// none (502). A write may have been carried out then.
func Indeterminate(err error) bool {
	if err == nil || errors.As(err, new(UnsentError)) {
		return false
	}
	var status apierrors.APIStatus
	return !errors.As(err, &status) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		status.Status().Code == http.StatusBadGateway || ofEtcd(status.Status())
}

// Open reports whether a write may have been carried out although it has failed: the answer is missing, the server asks to come again, or
// has failed itself.
func Open(err error) bool { return Indeterminate(err) || Retryable(err) || Failed(err) }

// ofEtcd reports whether an error is one of etcd's own, such as a timeout or a
// change of its leader, which the API server passes on as an internal error
// (go.etcd.io/etcd/api, rpctypes).
func ofEtcd(status metav1.Status) bool {
	return status.Code == http.StatusInternalServerError && strings.Contains(status.Message, "etcdserver: ")
}

// Failed reports whether the server answered that it has failed itself. It may have done so after a write was
// carried out, as when it could not convert what it had written.
func Failed(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}

// Retryable reports whether an error is likely to go away by itself, so that the same
// request may be sent again: the server is not there, starts, or has too much to do.
func Retryable(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusBadGateway ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}
