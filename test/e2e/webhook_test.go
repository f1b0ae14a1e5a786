// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// webhook NAME KIND serves a webhook for the rest of the script, and sets the
// variables NAME_URL and NAME_CA for the configuration that calls it. KIND is
// what it does: deny (every request), absent (every request, with a NotFound of its object),
// keep (puts the finalizer example.com/kept on every object that is made or
// changed), hang (does not answer), or convert (objects of a definition, by changing their apiVersion).
func webhook(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: webhook NAME KIND")
	}
	handler, known := webhooks[args[1]]
	if !known {
		ts.Fatalf("no webhook of kind %q", args[1])
	}
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // requests that the API server gives up are part of the tests
	server.StartTLS()
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	ts.Setenv(args[0]+"_URL", server.URL)
	ts.Setenv(args[0]+"_CA", base64.StdEncoding.EncodeToString(ca))
}

var webhooks = map[string]http.Handler{
	"deny": admission(func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "ask the owner first"}}
	}),
	"absent": admission(func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "it is not in the inventory",
			Details: &metav1.StatusDetails{Name: request.Name, Kind: request.Resource.Resource},
		}}
	}),
	"keep": admission(func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if request.Operation == admissionv1.Delete { // which has no object to change
			return &admissionv1.AdmissionResponse{Allowed: true}
		}
		kind := admissionv1.PatchTypeJSONPatch
		return &admissionv1.AdmissionResponse{
			Allowed: true, PatchType: &kind, Patch: []byte(`[{"op":"add","path":"/metadata/finalizers","value":["example.com/kept"]}]`),
		}
	}),
	"hang": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(3 * time.Second): // longer than any webhook of the tests is given
		}
	}),
	"convert": http.HandlerFunc(convert),
}

// admission answers reviews.
func admission(decide func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, fmt.Sprint("not a review: ", err), http.StatusBadRequest)
			return
		}
		review.Response = decide(review.Request)
		review.Response.UID = review.Request.UID
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review) // the API server says what it got
	})
}

// convert answers a ConversionReview.
func convert(w http.ResponseWriter, r *http.Request) {
	var review struct {
		metav1.TypeMeta `json:",inline"`
		Request         *struct {
			UID               string                      `json:"uid"`
			DesiredAPIVersion string                      `json:"desiredAPIVersion"`
			Objects           []unstructured.Unstructured `json:"objects"`
		} `json:"request,omitempty"`
		Response any `json:"response,omitempty"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, fmt.Sprint("not a review: ", err), http.StatusBadRequest)
		return
	}
	for i := range review.Request.Objects {
		review.Request.Objects[i].SetAPIVersion(review.Request.DesiredAPIVersion)
	}
	review.Response = map[string]any{
		"uid": review.Request.UID, "result": metav1.Status{Status: metav1.StatusSuccess}, "convertedObjects": review.Request.Objects,
	}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review) // as above
}
