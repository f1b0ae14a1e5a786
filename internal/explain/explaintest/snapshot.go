// SPDX-License-Identifier: Apache-2.0

package explaintest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/internal/testworld"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Snapshot writes the World into a file, as the command snapshot would, and returns it
// with the words that were replaced when the header says that it is redacted. What may be
// listed, but not read, is there.
func (s *World) Snapshot(t testing.TB, redacted bool) (file []byte, originals map[string]string) {
	t.Helper()
	var text bytes.Buffer
	w, err := offline.NewWriter(&text, offline.Header{Begun: Now, Redacted: redacted})
	check(t, err)
	if redacted {
		w.KeepOriginals()
	}
	types := testworld.Served()
	for path, body := range map[string]any{"/api": discovery(types, true), "/apis": discovery(types, false),
		"/version": map[string]any{"gitVersion": "v1.36.3"}} {
		encoded, err := json.Marshal(body)
		check(t, err)
		check(t, w.Answer(&offline.Answer{
			Path: path, Code: http.StatusOK, ContentType: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", Body: encoded,
		}))
	}
	for _, o := range s.Whole { // a server serves what is defined
		if group, names := evidence.Nested(o, "spec", "group"), evidence.Nested(o, "spec", "names", "kind"); names != "" {
			body, err := json.Marshal(metav1.APIResourceList{GroupVersion: group + "/v1",
				APIResources: []metav1.APIResource{{Kind: names, Name: evidence.Nested(o, "spec", "names", "plural")}}})
			check(t, err)
			check(t, w.Answer(&offline.Answer{Path: "/apis/" + group + "/v1", Code: http.StatusOK, ContentType: "application/json", Body: body}))
		}
	}
	for i := range types {
		s.write(t, w, &types[i])
	}
	check(t, w.Close(Now))
	if redacted {
		originals = w.Originals()
	}
	return text.Bytes(), originals
}

// write writes the objects of a type, or that they cannot be listed.
func (s *World) write(t testing.TB, w *offline.Writer, r *graph.Resource) {
	t.Helper()
	list := &offline.List{
		Group: r.Group, Version: r.Version, Resource: r.Resource, Kind: r.Kind, Namespaced: r.Namespaced,
		Holds: offline.HoldsOf(r.GroupResource()),
	}
	end := offline.End{ResourceVersion: "1"}
	namespace, listed := s.listedIn[r.Resource]
	if message, failed := s.failed[r.Resource]; failed {
		end.Error = offline.StatusOf(apierrors.NewInternalError(errors.New(message)), "", false)
	} else if s.unlisted[r.Resource] {
		end.Error = offline.StatusOf(apierrors.NewForbidden(r.GroupResource(), "", errors.New("no rights")), "", false)
	}
	if end.Error != nil {
		check(t, w.Begin(list))
		check(t, w.End(end))
		if !listed {
			return
		}
		list.Namespace, end.Error = namespace, nil
	}
	check(t, w.Begin(list))
	for i := range s.objects.Objects {
		o := &s.objects.Objects[i]
		if o.Resource.GroupVersionResource != r.GroupVersionResource || list.Namespace != "" && o.Namespace != list.Namespace {
			continue
		}
		e, err := offline.NewEntry(r.GroupResource(), s.all(t, o))
		check(t, err)
		check(t, w.Add(e))
	}
	check(t, w.End(end))
}

// all is an object with its metadata and all else.
func (s *World) all(t testing.TB, o *graph.Object) map[string]any {
	t.Helper()
	m := o.Metadata()
	metadata, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&m)
	check(t, err)
	whole := map[string]any{}
	if known := s.Whole[o.Resource.Resource+"/"+o.Namespace+"/"+o.Name]; known != nil { // others are gone when they are read
		whole = known.DeepCopy().Object
	}
	stated, _ := whole["metadata"].(map[string]any)
	maps.Copy(metadata, stated)
	whole["metadata"] = metadata
	return whole
}

// discovery is what a server says that has these types: of the core group, or of the others.
func discovery(types []graph.Resource, core bool) *apidiscovery.APIGroupDiscoveryList {
	list := &apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	for i := range types {
		r := &types[i]
		if (r.Group == "") != core {
			continue
		}
		scope := apidiscovery.ScopeCluster
		if r.Namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		resource := apidiscovery.APIResourceDiscovery{
			Resource: r.Resource, Scope: scope, Verbs: []string{"delete", "get", "list", "watch"},
			ResponseKind: &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind},
		}
		at := -1
		for k := range list.Items {
			if list.Items[k].Name == r.Group {
				at = k
			}
		}
		if at < 0 {
			list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{
				ObjectMeta: metav1.ObjectMeta{Name: r.Group},
				Versions:   []apidiscovery.APIVersionDiscovery{{Version: r.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}},
			})
			at = len(list.Items) - 1
		}
		version := &list.Items[at].Versions[0]
		version.Resources = append(version.Resources, resource)
	}
	return list
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Kinds returns what a document of explain-stuck says without its words: of each object the
// verdict, and the kinds of causes and of their remedies. Which of several objects a joined
// cause is named after depends on their names, so that of a cause is not in it.
func Kinds(document []byte) ([]string, error) {
	var report struct {
		Objects []struct {
			Object  struct{ Kind, Namespace, Name string }
			Verdict string
			Causes  []struct {
				ID, Verdict string
				Object      struct{ Kind string }
				Remedies    []struct {
					Risk      string
					Operation struct{ Verb string }
				}
			}
		}
	}
	if err := json.Unmarshal(document, &report); err != nil {
		return nil, err
	}
	var all []string
	for _, o := range report.Objects {
		var causes []string
		for _, c := range o.Causes {
			line := fmt.Sprint("\n    ", c.Verdict, " ", c.ID, " at ", c.Object.Kind)
			for _, r := range c.Remedies {
				line += fmt.Sprint("\n        ", r.Risk, ": ", r.Operation.Verb)
			}
			causes = append(causes, line)
		}
		slices.Sort(causes)
		all = append(all, fmt.Sprint(o.Object, " ", o.Verdict, strings.Join(causes, "")))
	}
	slices.Sort(all)
	return all, nil
}
