// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Prober asks the API server what it would answer to a write that it does not
// carry out: dry runs. Errors are those of the API server.
type Prober interface {
	// TryPatch sends a JSON merge patch and returns the metadata of the object as
	// it would be.
	TryPatch(ctx context.Context, resource schema.GroupVersionResource, namespace, name, subresource string, patch []byte) (*unstructured.Unstructured, error)
	// TryDelete sends a DELETE.
	TryDelete(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) error
}

const (
	// probeDeadline is how long a probe may take: the slowest webhook is given
	// 30 seconds.
	probeDeadline = 33 * time.Second
	// maxProbes bounds the probes of a run, maxProbing the time that they take:
	// a webhook that does not answer takes up to 30 seconds each time.
	maxProbes  = 40
	maxProbing = time.Minute
	// probesAlike is how often the same answer must have come that does not
	// depend on the object, before it is taken as that about others of its kind.
	probesAlike = 2
	// maxOfAKind bounds the probes that are alike: one type with many objects
	// must not use up those of all others.
	maxOfAKind = 10
)

// answerKind says what the API server answers to a write.
type answerKind int

const (
	accepted answerKind = iota
	// noAnswer: it was not asked, or its answer tells nothing about the write.
	noAnswer
	webhookFailed
	webhookDenied
	policyDenied
	keepsFinalizer // accepted, and the finalizer is there again
	invalid
	conversionFailed
	undecodable
	namespaceMissing
	protected
	refused // by something else
)

// reply is the API server's answer to a probe.
type reply struct {
	kind answerKind
	// name is the webhook or the policy, binding that of the policy.
	name, binding string
	message       string
	causes        []metav1.StatusCause
	// write is what was asked for, PATCH or DELETE, and subresource of what part
	// of the object, empty for the whole.
	write, subresource string
	// about is the object that was asked about.
	about graph.Identity
	// noRight says that whoever asks may not send such writes at all,
	// tellsNothing that the answer is worth a note and is no answer.
	noRight, tellsNothing bool
}

// ok reports whether nothing is known to be against the write.
func (r reply) ok() bool { return r.kind == accepted || r.kind == noAnswer }

var (
	failedWebhook    = regexp.MustCompile(`failed calling webhook "([^"]+)"`)
	deniedByWebhook  = regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)
	deniedByPolicy   = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request`)
	withoutDryRun    = regexp.MustCompile(`admission webhook "([^"]+)" does not support dry run`)
	missingNamespace = regexp.MustCompile(`namespaces "[^"]*" not found`)
	notPermitted     = regexp.MustCompile(`(User "[^"]*"|user) cannot (patch|delete|update) resource`)
	// The words of kubernetes/plugin/pkg/admission/gc, which asks for the rights
	// of whoever sends the request.
	notReferable = regexp.MustCompile(`cannot set (an ownerRef on|blockOwnerDeletion if) `)
	// The words of k8s.io/apiserver/pkg/storage/value and of the codecs.
	unreadable = regexp.MustCompile(`(?i)unable to transform key|no matching prefix found|message authentication failed|invalid padding on input|` +
		`invalid PKCS7 data|not a multiple of the block size|stored data was shorter than|output array was not large enough|` +
		`identity transformer tried to read|does not match any of the supported transformers|missing the required info prefix|` +
		`no matching key was found for|couldn't get version/kind|no kind .* is registered for|invalid character .* looking for|` +
		`error decoding|unable to decode|unexpected end of JSON input|proto: `)
)

// errKept stands for the answer to a patch that did not have the effect that it
// asks for.
var errKept = errors.New("the patch is accepted, and the finalizer is there again")

// replyTo reads the API server's answer. The texts are those of
// k8s.io/apiserver/pkg/admission/plugin/webhook/errors, of its plugin
// policy/validating, and of apiextensions-apiserver/pkg/apiserver/conversion.
func replyTo(err error) reply {
	if err == nil {
		return reply{}
	}
	r := reply{kind: noAnswer, message: err.Error()}
	first := func(pattern *regexp.Regexp) bool {
		match := pattern.FindStringSubmatch(r.message)
		if len(match) > 1 {
			r.name = match[1]
		}
		if len(match) > 2 {
			r.binding = match[2]
		}
		return match != nil
	}
	switch {
	case errors.Is(err, errKept):
		r.kind = keepsFinalizer
	case first(withoutDryRun):
	case first(failedWebhook):
		r.kind = webhookFailed
	case first(deniedByWebhook):
		r.kind = webhookDenied
	case first(deniedByPolicy):
		r.kind = policyDenied
	case isConversionFailure(r.message):
		r.kind = conversionFailed
	case notPermitted.MatchString(r.message), apierrors.IsUnauthorized(err):
		r.noRight = true
	case notReferable.MatchString(r.message), apierrors.IsConflict(err), apierrors.IsTooManyRequests(err):
	case apierrors.IsNotFound(err) && missingNamespace.MatchString(r.message):
		r.kind = namespaceMissing
	case apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err) && strings.Contains(r.message, "this namespace may not be deleted"):
		r.kind = protected
	case apierrors.IsInvalid(err):
		r.kind, r.causes = invalid, invalidFields(err)
		if len(r.causes) == 0 {
			r.kind = noAnswer
		}
	case apierrors.IsForbidden(err):
		r.kind = refused
	case apierrors.IsInternalError(err) && isUnreadable(r.message):
		r.kind = undecodable
	}
	return r
}

func isConversionFailure(message string) bool {
	return strings.Contains(message, "conversion webhook for ")
}

func isUnreadable(message string) bool { return unreadable.MatchString(message) }

// invalidFields returns the fields that make the object invalid, without those
// that only say that it changed since it was read.
func invalidFields(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(status.Status().Details.Causes), func(c metav1.StatusCause) bool {
		return c.Field == "metadata.uid" || c.Field == "metadata.resourceVersion" ||
			strings.HasPrefix(c.Field, "metadata.finalizers") || strings.HasPrefix(c.Field, "metadata.ownerReferences")
	})
}

// probing keeps what was asked.
type probing struct {
	sent  int
	spent time.Duration
	// kinds holds what was asked by what it is about.
	kinds map[string]*probesOfAKind
	noted map[string]bool
}

// probesOfAKind are the probes of objects that differ in little but their names.
type probesOfAKind struct {
	sent int
	// common are the answers that do not depend on the object.
	common []reply
}

// probe sends a write, unless its answer is known from others of its kind, or
// enough was asked. alike tells what the answer is about; it is empty for a
// question that is about one object.
func (w *walker) probe(write, subresource string, n graph.Node, alike string, send func(context.Context) error) reply {
	id := n.Identity()
	resource := id.Resource.GroupVersionResource
	what := strings.TrimSpace(write + " " + subresource)
	key := what + " " + resource.String() + " " + id.Namespace + " " + alike
	kind := w.probed.kinds[key]
	if kind == nil || alike == "" {
		kind = &probesOfAKind{}
		w.probed.kinds[key] = kind
	}
	if known := len(kind.common); known >= probesAlike && w.holdsFor(kind.common[known-1], n) {
		return kind.common[known-1]
	}
	none := reply{kind: noAnswer, write: what, subresource: subresource, about: id}
	switch {
	case w.Prober == nil || !w.local(resource.GroupVersion()):
		return none
	case w.probed.sent >= maxProbes || w.probed.spent >= maxProbing || w.ctx.Err() != nil:
		w.noteProbe("the limit", "whether more writes would be accepted: too many were asked about")
		return none
	case kind.sent >= maxOfAKind:
		w.noteProbe(what+" of many "+resource.GroupResource().String(), fmt.Sprintf("whether a %s of more %s would be accepted: %d were asked about", what, resource.GroupResource(), maxOfAKind))
		return none
	}
	r := w.send(send)
	r.write, r.subresource, r.about = what, subresource, id
	if r.tellsNothing {
		w.noteProbe(what+" "+resource.GroupResource().String(), fmt.Sprintf("whether a %s of %s would be accepted: %s", what, resource.GroupResource(), r.message))
	}
	if kind.sent++; r.noRight || r.kind == namespaceMissing || r.kind == webhookFailed {
		kind.common = append(kind.common, r)
	}
	return r
}

// send sends a probe.
func (w *walker) send(send func(context.Context) error) reply {
	w.probed.sent++
	ctx, cancel := context.WithTimeout(w.ctx, probeDeadline)
	defer cancel()
	start := time.Now()
	err := send(ctx)
	w.probed.spent += time.Since(start)
	r := replyTo(err)
	r.tellsNothing = r.kind == noAnswer && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err)
	return r
}

// holdsFor reports whether an answer about one object is that about another of
// its kind, too: a webhook that fails must be asked about this one for certain.
func (w *walker) holdsFor(r reply, n graph.Node) bool {
	if r.kind != webhookFailed {
		return true
	}
	all, err := w.webhooks()
	return err == nil && slices.ContainsFunc(all, func(h *webhook) bool {
		matches, certain := w.matches(h, r.operation(), r.subresource, n)
		return h.Name == r.name && h.FailurePolicy != "Ignore" && matches && certain
	})
}

// operation is what admission calls the write.
func (r reply) operation() string {
	if r.write == "DELETE" {
		return r.write
	}
	return "UPDATE"
}

// noteProbe keeps once what could not be found out.
func (w *walker) noteProbe(about, what string) {
	if !w.probed.noted[about] {
		w.probed.noted[about] = true
		w.evidence.NoteUnread(what)
	}
}

// local reports whether the API server itself stores the types of the group
// version: nothing else is probed.
func (w *walker) local(gv schema.GroupVersion) bool {
	local, err := graph.Local(gv, func(name string) (*unstructured.Unstructured, error) { return w.evidence.Get(apis, "", name) })
	return local && err == nil
}

// metadataOf is a merge patch of the object's metadata that another object of
// its name refuses.
func metadataOf(uid types.UID, field string, value any) []byte {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, field: value}})
	if err != nil {
		panic(err) // strings and owner references can always be marshalled
	}
	return data
}

// tryRemoval asks whether a finalizer may be taken off the object.
func (w *walker) tryRemoval(n graph.Node, finalizer string) reply {
	id := n.Identity()
	kept := slices.DeleteFunc(slices.Clone(n.Object().Finalizers), func(f string) bool { return f == finalizer })
	return w.probe("PATCH", "", n, "finalizer "+finalizer, func(ctx context.Context) error {
		o, err := w.Prober.TryPatch(ctx, id.Resource.GroupVersionResource, id.Namespace, id.Name, "", metadataOf(id.UID, "finalizers", append([]string{}, kept...)))
		if err == nil && slices.Contains(o.GetFinalizers(), finalizer) {
			return errKept
		}
		return err
	})
}

// tryDelete asks whether the object may be deleted. Objects of which the guilty
// one is looked for are not alike.
func (w *walker) tryDelete(n graph.Node, alike string) reply {
	id := n.Identity()
	return w.probe("DELETE", "", n, alike, func(ctx context.Context) error {
		return w.Prober.TryDelete(ctx, id.Resource.GroupVersionResource, id.Namespace, id.Name)
	})
}

// tryRelease asks whether the references to an owner may be dropped.
func (w *walker) tryRelease(n graph.Node, owner types.UID) reply {
	id := n.Identity()
	kept := slices.DeleteFunc(slices.Clone(n.Object().OwnerReferences), func(r metav1.OwnerReference) bool { return r.UID == owner })
	return w.probe("PATCH", "", n, "", func(ctx context.Context) error {
		_, err := w.Prober.TryPatch(ctx, id.Resource.GroupVersionResource, id.Namespace, id.Name, "", metadataOf(id.UID, "ownerReferences", append([]metav1.OwnerReference{}, kept...)))
		return err
	})
}

// tryStatus asks whether the status of the object may be written.
func (w *walker) tryStatus(n graph.Node) reply {
	id := n.Identity()
	return w.probe("PATCH", "status", n, "status", func(ctx context.Context) error {
		_, err := w.Prober.TryPatch(ctx, id.Resource.GroupVersionResource, id.Namespace, id.Name, "status", metadataOf(id.UID, "name", id.Name))
		return err
	})
}
