// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-gc/kubectl-gc/internal/pattern"
)

// Kind says what the API server answers to a write.
type Kind int

// What there is to say to a write.
const (
	Accepted Kind = iota
	// NoAnswer: it was not asked, or its answer tells nothing about the write.
	NoAnswer
	// WebhookFailed: a webhook that must allow it could not be called.
	WebhookFailed
	WebhookDenied
	PolicyDenied
	// KeepsFinalizer: it is accepted, and the finalizer is there again.
	KeepsFinalizer
	// AddsFinalizer: it is refused since another finalizer was added to it on the way.
	AddsFinalizer
	// Invalid: the object is not, or no more, what its type allows.
	Invalid
	// ConversionFailed: the object's conversion webhook does not convert.
	ConversionFailed
	// Undecodable: what etcd has of the object cannot be decrypted or decoded.
	Undecodable
	NamespaceMissing
	// Protected: it is a namespace that may not be deleted.
	Protected
	// Refused: something else is against it.
	Refused
)

var (
	failedWebhook    = pattern.New(`failed calling webhook "([^"]+)"`)
	deniedByWebhook  = pattern.New(`admission webhook "([^"]+)" denied the request`)
	deniedByPolicy   = pattern.New(`ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request`)
	withoutDryRun    = pattern.New(`admission webhook "([^"]+)" does not support dry run`)
	missingNamespace = pattern.New(`namespaces "[^"]*" not found`)
	notPermitted     = pattern.New(`(User "[^"]*"|user) cannot [a-z]+ resource`)
	// The words of kubernetes/plugin/pkg/admission/gc, which asks for the rights
	// of whoever sends the request.
	notReferable = pattern.New(`cannot set (an ownerRef on|blockOwnerDeletion if) `)
	// The words of k8s.io/apiserver/pkg/storage/value and of the codecs.
	unreadable = pattern.New(`(?i)unable to transform key|no matching prefix found|message authentication failed|invalid padding on input|` +
		`invalid PKCS7 data|not a multiple of the block size|stored data was shorter than|output array was not large enough|` +
		`identity transformer tried to read|does not match any of the supported transformers|missing the required info prefix|` +
		`no matching key was found for|couldn't get version/kind|no kind .* is registered for|invalid character .* looking for|` +
		`error decoding|unable to decode|unexpected end of JSON input|proto: |failed to read one or more |unable to transform or decode`)
	// storageKey is where an object is in etcd.
	storageKey = pattern.New(`/registry/[^\s"':;,]+`)
)

// ErrKept stands for the answer to a patch that did not have the effect that it
// asks for.
var ErrKept = errors.New("the patch is accepted, and the finalizer is there again")

// ErrAdds stands for the answer to a patch that takes a finalizer off, and to which something
// between adds another: what is being deleted may get none.
var ErrAdds = errors.New("something adds a finalizer to the patch")

// addedFinalizers are words of apimachinery/pkg/api/validation/objectmeta.go,
// ValidateNoNewFinalizers.
const addedFinalizers = "no new finalizers can be added if the object is being deleted, found new finalizers "

var quoted = pattern.New(`"([^"]+)"`)

// AddedFinalizers returns the finalizers for which the API server refuses a change of an object
// that is being deleted, none if that is not what it says.
func AddedFinalizers(err error) []string {
	if !apierrors.IsInvalid(err) {
		return nil
	}
	var names []string
	_, found, _ := strings.Cut(err.Error(), addedFinalizers)
	for _, match := range quoted().FindAllStringSubmatch(found, -1) {
		names = append(names, match[1])
	}
	return names
}

// Refusal is what the API server has against a write.
type Refusal struct {
	Kind Kind
	// Name is the webhook or the policy, Binding that of the policy.
	Name, Binding string
	Message       string
	// Causes are the fields that make the object invalid.
	Causes []metav1.StatusCause
	// NoRight says that whoever asks may not send such writes at all.
	NoRight bool
}

// ToWrite reads the API server's answer to a write. The texts are those of
// k8s.io/apiserver/pkg/admission/plugin/webhook/errors, of its plugin
// policy/validating, and of apiextensions-apiserver/pkg/apiserver/conversion.
func ToWrite(err error) Refusal {
	if err == nil {
		return Refusal{}
	}
	r := Refusal{Kind: NoAnswer, Message: err.Error()}
	unasked, refusers := withoutDryRun().FindStringSubmatch(r.Message), Named(r.Message)
	switch {
	case errors.Is(err, ErrKept):
		r.Kind = KeepsFinalizer
	case errors.Is(err, ErrAdds):
		r.Kind = AddsFinalizer
	case unasked != nil:
		r.Name = unasked[1]
	case len(refusers) > 0:
		r = refusers[0]
	case IsConversionFailure(r.Message):
		r.Kind = ConversionFailed
	case notPermitted().MatchString(r.Message), apierrors.IsUnauthorized(err):
		r.NoRight = true
	case notReferable().MatchString(r.Message), apierrors.IsConflict(err), apierrors.IsTooManyRequests(err):
	case apierrors.IsNotFound(err) && missingNamespace().MatchString(r.Message):
		r.Kind = NamespaceMissing
	case apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err) && strings.Contains(r.Message, "this namespace may not be deleted"):
		r.Kind = Protected
	case apierrors.IsInvalid(err):
		r.Kind, r.Causes = Invalid, invalidFields(err)
		if len(r.Causes) == 0 {
			r.Kind = NoAnswer
		}
	case apierrors.IsForbidden(err):
		r.Kind = Refused
	case apierrors.IsInternalError(err) && IsUndecodable(r.Message), apierrors.IsStoreReadError(err):
		r.Kind = Undecodable
	}
	return r
}

// Named returns who refused writes by the words of the API server: webhooks that could not be
// called, then webhooks and then policies that said no, each once. The condition of a controller
// may have the answers to several requests.
func Named(words string) []Refusal {
	var all []Refusal
	for _, p := range []struct {
		kind  Kind
		words *regexp.Regexp
	}{{WebhookFailed, failedWebhook()}, {WebhookDenied, deniedByWebhook()}, {PolicyDenied, deniedByPolicy()}} {
		for _, match := range p.words.FindAllStringSubmatch(words, -1) {
			r := Refusal{Kind: p.kind, Name: match[1], Message: words}
			if len(match) > 2 {
				r.Binding = match[2]
			}
			if !slices.ContainsFunc(all, func(o Refusal) bool { return o.Kind == r.Kind && o.Name == r.Name && o.Binding == r.Binding }) {
				all = append(all, r)
			}
		}
	}
	return all
}

// denial is what comes before the reason of a webhook or policy that says no.
var denial = pattern.New(`denied (?:the )?request: `)

// Reason is why a webhook or policy says no, in its own words on one line. It is empty without any, and when the message
// is the list of several that a controller writes.
func (r Refusal) Reason() string {
	said := denial().Split(r.Message, -1)
	if len(said) != 2 || strings.Contains(said[0], ": [") || r.Kind != WebhookDenied && r.Kind != PolicyDenied {
		return ""
	}
	return strings.Join(strings.Fields(said[1]), " ")
}

// Right is what somebody may do with a type.
type Right struct {
	User, Verb string
	Resource   schema.GroupResource
}

// lacking are the words of k8s.io/apiserver/pkg/endpoints/handlers/responsewriters,
// forbiddenMessage.
var lacking = pattern.New(`User "([^"]+)" cannot (\w+) resource "([^"/]+)" in API group "([^"]*)"`)

// Lacking returns the right that somebody has not by the words of the API server, if they are
// about one.
func Lacking(words string) (Right, bool) {
	match := lacking().FindStringSubmatch(words)
	if match == nil {
		return Right{}, false
	}
	return Right{match[1], match[2], schema.GroupResource{Group: match[4], Resource: match[3]}}, true
}

// IsConversionFailure reports whether words of the API server say that a conversion
// webhook does not convert (apiextensions-apiserver/pkg/apiserver/conversion).
func IsConversionFailure(message string) bool {
	return strings.Contains(message, "conversion webhook for ")
}

// IsInitializing reports whether words of the API server say that the storage of a type
// is not ready, as it also says for ever of one whose conversion does not work
// (k8s.io/apiserver/pkg/storage/cacher).
func IsInitializing(message string) bool {
	return strings.Contains(message, "storage is (re)initializing")
}

// IsNoType reports whether words of the API server say that it does not serve what a
// request is for (apimachinery/pkg/api/errors, NewGenericServerResponse).
func IsNoType(message string) bool {
	return strings.Contains(message, "the server could not find the requested resource")
}

// IsUndecodable reports whether words of the API server say that what etcd has of an
// object cannot be decrypted or decoded.
func IsUndecodable(message string) bool { return unreadable().MatchString(message) }

// Words are what the API server says, with the causes of a failure to read from etcd, of
// which older servers have no word in the message itself (k8s.io/apiserver/pkg/storage/
// etcd3, NewAPIStatusError).
func Words(err error) string {
	words := err.Error()
	var status apierrors.APIStatus
	if !apierrors.IsStoreReadError(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return words
	}
	for i, cause := range status.Status().Details.Causes {
		if i == maxCauses {
			return words + fmt.Sprintf("; and %d more", len(status.Status().Details.Causes)-i)
		}
		words += "; " + strings.TrimPrefix(cause.Field+": "+cause.Message, ": ")
	}
	return words
}

// maxCauses is the number of causes that Words has.
const maxCauses = 10

// StorageKeys returns where the objects are in etcd that the words of the API server
// name, each once.
func StorageKeys(words string) []string {
	keys := storageKey().FindAllString(words, -1)
	slices.Sort(keys)
	return slices.Compact(keys)
}

// invalidFields returns the fields that make the object Invalid, without those
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
