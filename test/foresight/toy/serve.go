// SPDX-License-Identifier: Apache-2.0

package toy

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// serve serves what the options say on a port of 127.0.0.1 until the server is
// closed, and returns its address.
func serve(o Options, certificate tls.Certificate) (*http.Server, string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("serving: %w", err)
	}
	server := &http.Server{
		Handler: handler(o), ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ErrorLog:  log.New(io.Discard, "", 0), // the API server gives connections up
	}
	go func() { _ = server.ServeTLS(listener, "", "") }() // ends with Close
	return server, listener.Addr().String(), nil
}

// handler answers what the API server asks.
func handler(o Options) http.Handler {
	mux := http.NewServeMux()
	if o.serves("admission") {
		mux.HandleFunc("/validate", admit)
	}
	if o.serves("conversion") {
		mux.HandleFunc("/convert", convert)
	}
	if o.serves("api") {
		version := "/apis/extension." + o.Group + "/v1"
		mux.HandleFunc(version, answerTypes)
		mux.HandleFunc(version+"/", answerNothing)
	}
	return mux
}

// admit allows everything.
func admit(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, fmt.Sprint("not a review: ", err), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	write(w, review)
}

// conversionReview is that of apiextensions.k8s.io/v1.
type conversionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *conversionRequest  `json:"request,omitempty"`
	Response        *conversionResponse `json:"response,omitempty"`
}

type conversionRequest struct {
	UID               types.UID              `json:"uid"`
	DesiredAPIVersion string                 `json:"desiredAPIVersion"`
	Objects           []runtime.RawExtension `json:"objects"`
}

type conversionResponse struct {
	UID              types.UID                    `json:"uid"`
	ConvertedObjects []*unstructured.Unstructured `json:"convertedObjects"`
	Result           metav1.Status                `json:"result"`
}

// convert changes nothing but the version.
func convert(w http.ResponseWriter, r *http.Request) {
	var review conversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, fmt.Sprint("not a review: ", err), http.StatusBadRequest)
		return
	}
	response := &conversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw.Raw, &o.Object); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		o.SetAPIVersion(review.Request.DesiredAPIVersion)
		response.ConvertedObjects = append(response.ConvertedObjects, o)
	}
	review.Request, review.Response = nil, response
	write(w, review)
}

// answerTypes is the discovery of an API with one type that can be read.
func answerTypes(w http.ResponseWriter, r *http.Request) {
	write(w, metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: r.URL.Path[len("/apis/"):],
		APIResources: []metav1.APIResource{{Name: "views", SingularName: "view", Kind: "View", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}}},
	})
}

// answerNothing is the list of that type, which has no objects.
func answerNothing(w http.ResponseWriter, _ *http.Request) {
	write(w, metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "1"},
	})
}

func write(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object) // who asked has gone away
}
