// SPDX-License-Identifier: Apache-2.0

package explaintest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// answer says what an Answer has for a write, or accepts it. It makes the error of "403 words", "422 field: words", "kept" or "";
// "after 30 403 words" comes as many seconds later, in a testing/synctest bubble at once;
// "sometimes 403 words" comes at whole seconds only, with which a bubble begins.
func (s *World) answer(write string, resource schema.GroupVersionResource, namespace, name string) (string, error) {
	kind := ""
	for _, r := range s.objects.Types {
		if r.GroupVersionResource == resource {
			kind = r.Kind
		}
	}
	place := kind + "/" + name
	if namespace != "" {
		place = kind + "/" + namespace + "/" + name
	}
	words, ok := s.Answers[write+" "+place]
	if !ok {
		words, ok = s.Answers[write+" *"]
	}
	if sometimes, is := strings.CutPrefix(words, "sometimes "); is {
		if words = ""; time.Now().Nanosecond() == 0 {
			words = sometimes
		}
		ok = words != ""
	}
	if late, is := strings.CutPrefix(words, "after "); is {
		seconds, rest, _ := strings.Cut(late, " ")
		n, err := strconv.Atoi(seconds)
		if err != nil {
			return "", err
		}
		time.Sleep(time.Duration(n) * time.Second)
		words, ok = rest, ok && rest != ""
	}
	if !ok || words == "kept" {
		return words, nil
	}
	code, message, _ := strings.Cut(words, " ")
	number, err := strconv.Atoi(code)
	if err != nil {
		return "", errors.New(words)
	}
	status := metav1.Status{Status: metav1.StatusFailure, Code: int32(number), Message: message}
	switch number {
	case http.StatusNotFound:
		return "", apierrors.NewNotFound(resource.GroupResource(), name)
	case http.StatusForbidden:
		status.Reason = metav1.StatusReasonForbidden
	case http.StatusInternalServerError:
		status.Reason = metav1.StatusReasonInternalError
	case http.StatusUnprocessableEntity:
		status.Reason = metav1.StatusReasonInvalid
		field, why, _ := strings.Cut(message, ": ")
		status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: field, Message: why}}}
	}
	return "", &apierrors.StatusError{ErrStatus: status}
}

// TryPatch implements admission.Prober.
func (s *World) TryPatch(_ context.Context, resource schema.GroupVersionResource, namespace, name, subresource string,
	patch []byte) (*unstructured.Unstructured, error) {
	write := "PATCH"
	if subresource != "" {
		write += "-" + subresource
	}
	words, err := s.answer(write, resource, namespace, name)
	if err != nil {
		return nil, err
	}
	o := s.Whole[resource.Resource+"/"+namespace+"/"+name].DeepCopy()
	var view struct {
		Metadata struct{ Finalizers []string }
	}
	if err := json.Unmarshal(patch, &view); err != nil {
		return nil, err
	}
	if words != "kept" {
		o.SetFinalizers(view.Metadata.Finalizers)
	}
	return o, nil
}

// TryDelete implements admission.Prober.
func (s *World) TryDelete(_ context.Context, resource schema.GroupVersionResource, namespace, name string) error {
	_, err := s.answer("DELETE", resource, namespace, name)
	return err
}
