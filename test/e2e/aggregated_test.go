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
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// aggregated NAME FILE serves an API for the rest of the script, attic.example.com/v1,
// with the objects of attic in the current namespace. It knows no dry runs and no
// preconditions, carries out every write, and notes each in the file. The variable
// NAME is its port.
func aggregated(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: aggregated NAME FILE")
	}
	file, err := os.Create(ts.MkAbs(args[1]))
	ts.Check(err)
	server := httptest.NewUnstartedServer(&attic{namespace: ts.Getenv("NS"), writes: file, gone: map[string]bool{}})
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

// attic is the API. What it serves it does in ways that aggregated APIs have: a
// Chest is a Box under another kind, with its name and UID; CrateTags are parts of a
// Crate, with names of their own and its UID; Parcels have no UID. The objects are
// there until they are deleted.
type attic struct {
	namespace string
	mu        sync.Mutex
	writes    io.Writer
	gone      map[string]bool
}

// drawer is a type of the attic. Its objects are written as NAME=UID.
type drawer struct {
	resource, kind string
	// full: it can be listed and watched.
	full    bool
	objects []string
}

var drawers = []drawer{
	{"boxes", "Box", true, []string{"old=" + atticUID + "1"}},
	{"chests", "Chest", false, []string{"old=" + atticUID + "1"}},
	{"crates", "Crate", true, []string{"app=" + atticUID + "2"}},
	{"cratetags", "CrateTag", false, []string{"app:old=" + atticUID + "2", "app:new=" + atticUID + "2", "lost:old=" + atticUID + "3", "lost:new=" + atticUID + "3"}},
	{"parcels", "Parcel", true, []string{"loose=", "torn="}},
}

const (
	atticVersion = "/apis/attic.example.com/v1"
	atticUID     = "0b0c0d0e-0000-4000-8000-00000000000"
)

// ServeHTTP implements http.Handler.
func (a *attic) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := strings.Split(strings.TrimPrefix(r.URL.Path, atticVersion), "/")
	d := slices.IndexFunc(drawers, func(d drawer) bool { return slices.Contains(path, d.resource) })
	switch {
	case r.URL.Path == atticVersion:
		answer(w, http.StatusOK, atticTypes())
	case d < 0:
		http.NotFound(w, r)
	case r.URL.Query().Get("watch") != "":
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // nothing is ever told
	case path[len(path)-1] == drawers[d].resource:
		answer(w, http.StatusOK, a.list(&drawers[d]))
	default:
		a.one(w, r, &drawers[d], path[len(path)-1])
	}
}

func answer(w http.ResponseWriter, code int, object any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object) // the script says what it got
}

func atticTypes() metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "attic.example.com/v1"}
	for _, d := range drawers {
		verbs := metav1.Verbs{"delete", "get", "patch"}
		if d.full {
			verbs = append(verbs, "list", "watch")
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: d.resource, SingularName: strings.ToLower(d.kind), Kind: d.kind, Namespaced: true, Verbs: verbs,
		})
	}
	return list
}

// list returns what is left in a drawer.
func (a *attic) list(d *drawer) metav1.PartialObjectMetadataList {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	list.ResourceVersion = "7"
	for _, text := range d.objects {
		if name, _, _ := strings.Cut(text, "="); !a.gone[d.place(name)] {
			list.Items = append(list.Items, a.object(text))
		}
	}
	return list
}

func (a *attic) object(text string) metav1.PartialObjectMetadata {
	name, uid, _ := strings.Cut(text, "=")
	o := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}}
	o.Name, o.Namespace, o.UID, o.ResourceVersion = name, a.namespace, types.UID(uid), "7"
	return o
}

// place is where an object is stored: what is there under two kinds has one.
func (d *drawer) place(name string) string {
	return strings.ReplaceAll(d.resource, "chests", "boxes") + "/" + name
}

// one answers requests for one object.
func (a *attic) one(w http.ResponseWriter, r *http.Request, d *drawer, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(d.objects, func(text string) bool { return strings.HasPrefix(text, name+"=") })
	if i < 0 || a.gone[d.place(name)] {
		status := apierrors.NewNotFound(schema.GroupResource{Group: "attic.example.com", Resource: d.resource}, name).ErrStatus
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		answer(w, http.StatusNotFound, status)
		return
	}
	if r.Method != http.MethodGet {
		fmt.Fprintln(a.writes, r.Method, r.URL.Path)
		a.gone[d.place(name)] = r.Method == http.MethodDelete
	}
	answer(w, http.StatusOK, a.object(d.objects[i]))
}
