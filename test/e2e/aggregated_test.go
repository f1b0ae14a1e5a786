// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aggregated NAME FILE serves an API for the rest of the script: Boxes of
// attic.example.com/v1, of which the current namespace has the Box "old". It knows
// no dry runs, carries out every write, and notes each in the file. The variable
// NAME is its port.
func aggregated(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: aggregated NAME FILE")
	}
	file, err := os.Create(ts.MkAbs(args[1]))
	ts.Check(err)
	server := httptest.NewUnstartedServer(&attic{namespace: ts.Getenv("NS"), writes: file})
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
		_ = file.Close()
	})
	address, err := url.Parse(server.URL)
	ts.Check(err)
	ts.Setenv(args[0], address.Port())
}

// attic is the API. Its only object is there until it is deleted.
type attic struct {
	namespace string
	mu        sync.Mutex
	writes    io.Writer
	gone      bool
}

// ServeHTTP implements http.Handler.
func (a *attic) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	const version = "/apis/attic.example.com/v1"
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	list.ResourceVersion = "7"
	old := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}}
	old.Name, old.Namespace, old.UID, old.ResourceVersion = "old", a.namespace, "0b0c0d0e-0000-4000-8000-000000000001", "7"
	if !a.gone {
		list.Items = append(list.Items, old)
	}
	var answer any
	switch named := strings.HasSuffix(r.URL.Path, "/boxes/old"); {
	case r.URL.Path == version:
		answer = metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "attic.example.com/v1",
			APIResources: []metav1.APIResource{{Name: "boxes", SingularName: "box", Kind: "Box", Namespaced: true, Verbs: metav1.Verbs{"delete", "get", "list", "patch", "watch"}}},
		}
	case r.Method == http.MethodDelete && named, r.Method == http.MethodPatch && named:
		fmt.Fprintln(a.writes, r.Method, r.URL.Path)
		a.gone = a.gone || r.Method == http.MethodDelete
		answer = old
	case named && !a.gone:
		answer = old
	case strings.HasSuffix(r.URL.Path, "/boxes"):
		answer = list
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the script says what it got
}
