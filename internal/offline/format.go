// SPDX-License-Identifier: Apache-2.0

// Package offline holds a cluster in a file, and answers from it as an API server
// would: the client code that reads a cluster reads the file, without knowing it.
// What the file does not hold is an error of its own kind, never an absence.
//
// The format is that of docs/snapshot-format.md. Nothing here reaches a cluster, and
// nothing changes a file that is there.
package offline

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What the first line of a snapshot says it is.
const (
	APIVersion = "kubectl-gc/v1"
	Kind       = "Snapshot"
	// Format is the version that Writer writes, and the only one that is read.
	Format = 2
)

// Header is the first line of the index: what it is of, and what it holds.
type Header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Format     int    `json:"format"`
	// Begun is when reading began, by the server's clock.
	Begun time.Time `json:"begun"`
	// Server is the server's version, empty when it is not known.
	Server string `json:"server,omitempty"`
	// ContextNamespace is the current namespace of who made it.
	ContextNamespace string `json:"contextNamespace,omitempty"`
	// Namespace is that to which types with namespaces were limited, empty for none.
	Namespace string `json:"namespace,omitempty"`
	// Redacted: names were replaced.
	Redacted bool `json:"redacted"`
	// Contents says of each type what the file holds of its objects.
	Contents []Content `json:"contents"`
}

// Content is what a file holds of the objects of a type.
type Content struct {
	Resource string `json:"resource"` // as "deployments.apps"
	Version  string `json:"version"`
	Holds    Holds  `json:"holds"`
}

// Holds says how much of objects is held.
type Holds string

// What is held.
const (
	// Metadata: names, labels, owners, finalizers and times.
	Metadata Holds = "metadata"
	// Summary: metadata, and of objects that are being deleted or have finalizers who
	// set these, the conditions, and what the status says is wrong.
	Summary Holds = "summary"
	// Parts: metadata, and what explanations use of spec and status.
	Parts Holds = "parts"
)

// Answer is what the server said to a GET of a path, as it is.
type Answer struct {
	Path        string          `json:"path"`
	Code        int             `json:"code"`
	ContentType string          `json:"contentType"`
	Body        json.RawMessage `json:"body"`
}

// List is what was listed. Its objects are in the members.
type List struct {
	Group      string `json:"group"`
	Version    string `json:"version"`
	Resource   string `json:"resource"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
	// Namespace is the one that was listed, empty for all.
	Namespace string `json:"namespace,omitempty"`
	// Holds says what is held of the objects.
	Holds Holds `json:"holds"`
	// Single: the objects were read by themselves, and say nothing of others.
	Single bool `json:"single,omitempty"`
	// Again: it is a second look, at what may have moved since the first.
	Again bool `json:"again,omitempty"`
}

// GroupResource is the type, without its version.
func (l *List) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: l.Group, Resource: l.Resource}
}

// Entry is an object of a list.
type Entry struct {
	// Object begins with its metadata. Its apiVersion and kind are those of the list.
	Object json.RawMessage `json:"object"`
	// Ready and Status are what kubectl get prints in these columns.
	Ready  string `json:"ready,omitempty"`
	Status string `json:"status,omitempty"`
	// Whole: the object has what explanations read of whole objects.
	Whole bool `json:"whole,omitempty"`
}

// End is how a list ended.
type End struct {
	Objects         int    `json:"objects"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Error is why it could not be read; its objects do not count then.
	Error *metav1.Status `json:"error,omitempty"`
	// Partial says why there may be more objects than these, empty when there are none.
	Partial string `json:"partial,omitempty"`
}

// One is what the server said to a GET of one object when that was an error.
type One struct {
	Group     string        `json:"group"`
	Resource  string        `json:"resource"`
	Namespace string        `json:"namespace,omitempty"`
	Name      string        `json:"name"`
	Error     metav1.Status `json:"error"`
	// Again: it was asked for a second time.
	Again bool `json:"again,omitempty"`
}

// Trailer is the last line of the index.
type Trailer struct {
	// Ended is when reading ended, by the server's clock: the time of the snapshot.
	Ended   time.Time `json:"ended"`
	Lists   int       `json:"lists"`
	Objects int       `json:"objects"`
}

// line is every line of the index but the first: it has one of these.
type line struct {
	Answer  *Answer  `json:"answer,omitempty"`
	List    *list    `json:"list,omitempty"`
	One     *One     `json:"one,omitempty"`
	Trailer *Trailer `json:"trailer,omitempty"`
}

// CauseNotHeld is the cause, in the details of a Status, of an error that says that
// a file does not hold what was asked for. CausePartial ends a list that may lack
// objects.
const (
	CauseNotHeld metav1.CauseType = "NotInSnapshot"
	CausePartial metav1.CauseType = "PartialList"
)

// IsNotHeld reports whether an error says that a file does not hold what was asked for.
func IsNotHeld(err error) bool {
	return apierrors.HasStatusCause(err, CauseNotHeld) || IsPartial(err)
}

// IsPartial reports whether an error says that a list may lack objects, of which
// those that came before it are there.
func IsPartial(err error) bool { return apierrors.HasStatusCause(err, CausePartial) }

// StatusOf is an error as a server would have sent it, for a file. words are what is
// said when it is not the server's.
func StatusOf(err error, words string, timeout bool) *metav1.Status {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s := status.Status()
		s.Code = cmp.Or(s.Code, http.StatusInternalServerError)
		return &s
	}
	reason, code := metav1.StatusReasonUnknown, int32(http.StatusBadGateway)
	if timeout {
		reason, code = metav1.StatusReasonTimeout, http.StatusGatewayTimeout
	}
	return &metav1.Status{Status: metav1.StatusFailure, Message: words, Reason: reason, Code: code}
}
