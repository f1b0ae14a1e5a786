// SPDX-License-Identifier: Apache-2.0

package fakeclient

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// handler answers what a Kit asks.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api", s.discovery)
	mux.HandleFunc("GET /apis", s.discovery)
	mux.HandleFunc("PUT /api/{version}/{resource}/{name}/finalize", s.one)
	for _, root := range []string{"/api/{version}", "/apis/{group}/{version}"} {
		for _, place := range []string{"/{resource}", "/namespaces/{namespace}/{resource}"} {
			mux.HandleFunc("GET "+root+place, s.all)
			for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPatch} {
				mux.HandleFunc(method+" "+root+place+"/{name}", s.one)
			}
		}
	}
	return mux
}

// discovery says which types there are.
func (s *server) discovery(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	for _, t := range s.types {
		if (t.kind.Group == "") != (r.URL.Path == "/api") {
			continue
		}
		i := slices.IndexFunc(list.Items, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == t.kind.Group })
		if i < 0 {
			i = len(list.Items)
			list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: t.kind.Group}})
		}
		versions := &list.Items[i].Versions
		j := slices.IndexFunc(*versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == t.kind.Version })
		if j < 0 {
			j = len(*versions)
			*versions = append(*versions, apidiscovery.APIVersionDiscovery{Version: t.kind.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
		}
		scope := apidiscovery.ScopeCluster
		if t.namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		(*versions)[j].Resources = append((*versions)[j].Resources, apidiscovery.APIResourceDiscovery{
			Resource: t.resource, ResponseKind: (*metav1.GroupVersionKind)(&t.kind), Scope: scope, SingularResource: strings.ToLower(t.kind.Kind),
			Verbs: []string{"delete", "get", "list", "patch", "watch"},
		})
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_ = json.NewEncoder(w).Encode(list)
}

// typesOf returns the types that a path names: one, in all its versions.
func (s *server) typesOf(r *http.Request) (types []servedType) {
	for _, t := range s.types {
		if t.kind.Group == r.PathValue("group") && t.resource == r.PathValue("resource") {
			types = append(types, t)
		}
	}
	return types
}

// isIn reports whether an object is of one of the types, and in the namespace that a path names, if it does.
func (k key) isIn(r *http.Request, types []servedType) bool {
	return cmp.Or(r.PathValue("namespace"), k.Namespace) == k.Namespace &&
		slices.ContainsFunc(types, func(t servedType) bool { return t.kind == k.GroupVersionKind })
}

func notFound(r *http.Request) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: r.PathValue("group"), Resource: r.PathValue("resource")}, r.PathValue("name"))
}

// in returns an object in the form that a request accepts.
func in(r *http.Request, o *unstructured.Unstructured) map[string]any {
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return o.Object
	}
	return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o.Object["metadata"]}
}

func answer(w http.ResponseWriter, what any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status := apierrors.APIStatus(apierrors.NewInternalError(err))
		errors.As(err, &status)
		failed := status.Status()
		failed.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.WriteHeader(int(failed.Code))
		what = failed
	}
	_ = json.NewEncoder(w).Encode(what)
}

// all answers a list, or a watch. Of a list, fields select that are texts.
func (s *server) all(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") == "true" {
		s.watch(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	types := s.typesOf(r)
	selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if len(types) == 0 {
		err = notFound(r)
	}
	for i := range types {
		err = cmp.Or(err, s.look(r.Context(), &types[i]))
	}
	if err != nil {
		answer(w, nil, err)
		return
	}
	items := []any{}
	for k, e := range s.objects {
		matches := k.isIn(r, types)
		for _, f := range selector.Requirements() {
			value, _, _ := unstructured.NestedString(e.object.Object, strings.Split(f.Field, ".")...)
			matches = matches && (value == f.Value) == (f.Operator != selection.NotEquals)
		}
		if matches {
			items = append(items, in(r, e.object))
		}
	}
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(types[0].kind)
	list := in(r, of)
	list["kind"] = list["kind"].(string) + "List"
	list["metadata"] = map[string]any{"resourceVersion": strconv.Itoa(len(s.log))}
	list["items"] = items
	answer(w, list, nil)
}

// watch tells what happens from a version on.
func (s *server) watch(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	for {
		s.mu.Lock()
		log, news, types := s.log[min(from, len(s.log)):], s.news, s.typesOf(r)
		s.mu.Unlock()
		for _, c := range log {
			if from++; c.key.isIn(r, types) {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": c.kind, "object": in(r, c.object)})
			}
		}
		_ = http.NewResponseController(w).Flush() // of a connection that is gone the context ends
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
	}
}

// one answers what is asked of one object: with the object as it is then, or was at last.
func (s *server) one(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.typesOf(r) {
		k := key{t.kind, client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}}
		stored, err := s.see(r.Context(), k)
		switch {
		case err != nil:
			answer(w, nil, err)
			return
		case stored == nil:
			continue
		}
		served := s.objects[k].object
		err = s.change(r, k, stored, served)
		if e := s.objects[k]; e != nil {
			served = e.object
		}
		answer(w, in(r, served), err)
		return
	}
	if namespace := s.assumed(r); namespace != nil {
		answer(w, in(r, namespace), nil)
		return
	}
	answer(w, nil, notFound(r))
}

// assumed returns a namespace that is asked for and has objects: tests with a fake client need not create it.
func (s *server) assumed(r *http.Request) *unstructured.Unstructured {
	for k := range s.objects {
		if r.Method == http.MethodGet && r.PathValue("resource") == "namespaces" && k.Namespace == r.PathValue("name") {
			namespace := &unstructured.Unstructured{}
			namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
			namespace.SetName(k.Namespace)
			return namespace
		}
	}
	return nil
}

// change makes the change that is asked for, if it is one.
func (s *server) change(r *http.Request, k key, stored, served *unstructured.Unstructured) error {
	body, err := io.ReadAll(r.Body)
	wanted := &unstructured.Unstructured{}
	switch {
	case err != nil || r.Method == http.MethodGet:
		return err
	case r.Method == http.MethodDelete:
		return s.deletion(r, k, body, stored, served)
	case r.Method == http.MethodPatch:
		body, err = patched(served, body)
	}
	if err == nil {
		err = wanted.UnmarshalJSON(body)
	}
	switch {
	case err != nil: // above all, a test that fails
		return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, r.Method, schema.GroupResource{}, k.Name, err.Error(), 0, false)
	case wanted.GetResourceVersion() != served.GetResourceVersion():
		return outdated(r)
	}
	finalizers := wanted.GetFinalizers() // a Kit changes these and owner references, and nothing else
	if specified, _, _ := unstructured.NestedStringSlice(wanted.Object, "spec", "finalizers"); k.isNamespace() {
		finalizers = append(finalizers, specified...)
	}
	stored.SetFinalizers(finalizers)
	stored.SetOwnerReferences(wanted.GetOwnerReferences())
	if err := s.fake.Update(r.Context(), stored); err != nil {
		return err
	}
	_, err = s.see(r.Context(), k)
	return err
}

// patched is an object after a JSON patch, as JSON.
func patched(o *unstructured.Unstructured, patch []byte) ([]byte, error) {
	before, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	steps, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return steps.Apply(before)
}

func outdated(r *http.Request) error {
	resource := schema.GroupResource{Group: r.PathValue("group"), Resource: r.PathValue("resource")}
	return apierrors.NewConflict(resource, r.PathValue("name"), errors.New("it has another resourceVersion"))
}

func (s *server) deletion(r *http.Request, k key, body []byte, stored, served *unstructured.Unstructured) error {
	options := &metav1.DeleteOptions{}
	if err := json.Unmarshal(body, options); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if p := options.Preconditions; p != nil && p.ResourceVersion != nil {
		if *p.ResourceVersion != served.GetResourceVersion() {
			return outdated(r)
		}
		*p.ResourceVersion = stored.GetResourceVersion()
	}
	return s.delete(r.Context(), k, options)
}
