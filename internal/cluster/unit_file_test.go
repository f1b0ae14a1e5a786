// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/rest"

	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/internal/testnet"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// file is a snapshot of the server, and wait what happens before the second look.
func (s *apiServer) file(options SaveOptions, wait func()) *offline.Server {
	s.t.Helper()
	config, recording := Record(&rest.Config{Dial: testnet.Dial, Host: s.URL})
	config, stats := ReadOnly(config)
	r, err := NewReader(s.t.Context(), config, stats, Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	options.Begun = time.Now()
	options.Wait = func(context.Context, time.Duration) { wait() }
	var text bytes.Buffer
	w, err := offline.NewWriter(&text, offline.Header{Namespace: options.Namespace, Contents: r.Contents()})
	for _, a := range recording.Answers() {
		err = errors.Join(err, w.Answer(a))
	}
	if err := errors.Join(err, r.Save(s.t.Context(), w, options), w.Close(time.Now())); err != nil {
		s.t.Fatal(err)
	}
	file, err := offline.Open(bytes.NewReader(text.Bytes()), int64(text.Len()))
	if err != nil {
		s.t.Fatal(err)
	}
	return offline.NewServer(file)
}

// readerOf reads a snapshot.
func readerOf(t *testing.T, file *offline.Server) *Reader {
	t.Helper()
	config, stats := ReadOnly(&rest.Config{Host: "http://snapshot.invalid", Transport: file})
	r, err := NewReader(t.Context(), config, stats, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wholes are the ConfigMaps by UID, as a list has them, and the same read one by one: what is not the same is an error.
func wholes(t *testing.T, r *Reader, namespace string) map[string]any {
	t.Helper()
	gvr, found := configMaps.GroupVersionResource, map[string]any{}
	var listed []*unstructured.Unstructured
	err := r.EachNaming(t.Context(), gvr, namespace, []string{`"uid"`}, func() { listed = nil }, func(o *unstructured.Unstructured) error {
		listed = append(listed, o)
		return nil
	})
	for _, o := range listed {
		found[string(o.GetUID())] = o.Object["metadata"]
		single, failed := r.Read(t.Context(), gvr, o.GetNamespace(), o.GetName())
		if err = errors.Join(err, failed); failed == nil {
			if diff := cmp.Diff(o.Object["metadata"], single.Object["metadata"]); diff != "" {
				t.Errorf("the list has other than the GET: %s", diff)
			}
		}
	}
	if err != nil {
		t.Error(err)
	}
	return found
}

// Many objects that are being deleted are in a snapshot as they are in the cluster, at both looks.
func TestManyTerminatingFromFile(t *testing.T) {
	for _, namespace := range []string{"", "shop"} {
		s := newAPIServer(t)
		for i := range fewSingles + 5 {
			s.add(fmt.Sprintf("configmaps shop/c%02d finalizers=example.com/f deleting=2026-01-02T03:04:05Z", i))
		}
		for _, o := range s.objects {
			o.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: "of " + o.Name, Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
				FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:finalizers":{"v:\"example.com/f\"":{}}}}`)},
			}}
		}
		var before map[string]any
		live := s.reader(Options{})
		file := s.file(SaveOptions{Namespace: namespace}, func() {
			before = wholes(t, live, "shop")
			s.remove("c03")
			s.mu.Lock()
			defer s.mu.Unlock()
			s.objects[7].ResourceVersion = "2"
		})
		r := readerOf(t, file)
		if diff := cmp.Diff(before, wholes(t, r, namespace)); diff != "" || len(before) != fewSingles+5 {
			t.Errorf("namespace %q: the file has other than the cluster: %s", namespace, diff)
		}
		file.Pass()
		if diff := cmp.Diff(wholes(t, live, "shop"), wholes(t, r, namespace)); diff != "" {
			t.Errorf("namespace %q: the second look has other than the cluster: %s", namespace, diff)
		}
	}
}

// Of objects of which a snapshot has the metadata alone, it has the annotations on which it depends what a tool deletes.
func TestAnnotationsFromFile(t *testing.T) {
	s := newAPIServer(t)
	s.add("configmaps shop/parent")
	held := map[string]string{"applyset.kubernetes.io/contains-group-kinds": "ConfigMap", "kustomize.toolkit.fluxcd.io/prune": "disabled"}
	s.objects[0].Annotations = maps.Clone(held)
	s.objects[0].Annotations["example.com/other"] = "S3CRET"
	s.objects[0].CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour)) // so that it is not read by itself
	o, err := readerOf(t, s.file(SaveOptions{}, func() {})).Read(t.Context(), configMaps.GroupVersionResource, "shop", "parent")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(held, o.GetAnnotations()); diff != "" {
		t.Error(diff)
	}
}

// Pods with a field that Go's type has not are read as tables: they keep it.
func TestNewerPodsFromFile(t *testing.T) {
	s := newAPIServer(t)
	s.add("pods shop/a")
	const plain = `{"metadata":{"name":"a","namespace":"shop","uid":"a"},"spec":{"nodeName":"n"}}`
	newer := `{"metadata":{"name":"b","namespace":"shop","uid":"b"},"spec":{"schedulingGroup":{"podGroupName":"g"}}}`
	table := `{"kind":"Table","columnDefinitions":[{"name":"Status"}],"rows":[{"cells":["Odd"],"object":` + plain + `},{"cells":["Odd"],"object":` + newer + `}]}`
	list := `{"apiVersion":"v1","kind":"PodList","metadata":{},"items":[` + plain + `,` + newer + `]}`
	asked := 0
	s.rules = append(s.rules, &rule{"GET", "/api/v1/pods", -1, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.Header.Get("Accept"), "as=Table") {
			_, _ = io.WriteString(w, table)
			return
		}
		asked++
		_, _ = io.WriteString(w, list)
	}})
	r := readerOf(t, s.file(SaveOptions{}, func() {}))
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for name, want := range map[string]any{"a": nil, "b": "g"} {
		o, err := r.Read(t.Context(), pods, "shop", name)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "schedulingGroup", "podGroupName"); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if all, err := r.List(t.Context(), pods, ""); len(all) != 2 || err != nil || asked != 1 {
		t.Error(len(all), err, asked)
	}
}

// READY and STATUS of many objects of a type are those that the cluster prints, by their columns or their conditions.
func TestManyStatusesFromFile(t *testing.T) {
	for _, test := range []struct{ name, cells, object string }{
		{"columns", "Ready=1/2 Status=Failing", `{}`},
		{"conditions", "Age=5m", `{"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Failing"}]}}`},
		{"columns before conditions", "Status=Odd", `{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`},
		{"neither", "Age=5m", `{}`},
	} {
		s := newAPIServer(t)
		var rows []metav1.TableRow
		var table metav1.Table
		for i := range fewSingles + 5 {
			s.add(fmt.Sprintf("widgets shop/w%02d", i))
			var object map[string]any
			var one metav1.Table
			if err := errors.Join(json.Unmarshal([]byte(test.object), &object), json.Unmarshal([]byte(tableOf(test.cells, "")), &one)); err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("w%02d", i)
			object["metadata"] = map[string]any{"name": name, "namespace": "shop", "uid": name}
			one.Rows[0].Object.Raw, _ = json.Marshal(object)
			rows = append(rows, one.Rows[0])
			table = one
		}
		table.Rows = rows
		body, err := json.Marshal(table)
		if err != nil {
			t.Fatal(err)
		}
		s.raw["/apis/example.com/v1/widgets"], s.raw["/apis/example.com/v1/namespaces/shop/widgets"] = string(body), string(body)
		statuses := func(r *Reader) map[string]Status {
			var objects []*graph.Object
			for o := range s.snapshot(r, Scope{}).Objects() {
				if strings.HasPrefix(o.Name, "w") {
					objects = append(objects, &o)
				}
			}
			found, failures := r.Statuses(t.Context(), objects)
			if len(objects) != fewSingles+5 || len(failures) > 0 {
				t.Errorf("%s: %d objects, failures %v", test.name, len(objects), failures)
			}
			all := map[string]Status{}
			for uid, status := range found {
				all[string(uid)] = status
			}
			return all
		}
		want := statuses(s.reader(Options{}))
		if diff := cmp.Diff(want, statuses(readerOf(t, s.file(SaveOptions{}, func() {})))); diff != "" || len(want) != fewSingles+5 {
			t.Errorf("%s: the file has other than the cluster: %s", test.name, diff)
		}
	}
}

// Lists of metadata have the annotations in either encoding, and no managed fields in the packed one.
func TestMetadataList(t *testing.T) {
	types := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(types); err != nil {
		t.Fatal(err)
	}
	item := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "c", Namespace: "shop", UID: "c", ResourceVersion: "7", Labels: map[string]string{"a": "b"}, Finalizers: []string{"example.com/f"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "n"}}, Annotations: map[string]string{"x": "y", "long": strings.Repeat("z", 40000)},
	}}
	sent := item.DeepCopy()
	sent.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: &metav1.FieldsV1{Raw: []byte(strings.Repeat(" ", 20000) + "{}")}}}
	list := metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "next"}, Items: []metav1.PartialObjectMetadata{*sent, *sent},
	}
	var l metadataList
	for i, encoder := range []runtime.Encoder{protobuf.NewSerializer(types, types), jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, types, types, jsonserializer.SerializerOptions{})} {
		var body bytes.Buffer
		if err := encoder.Encode(&list, &body); err != nil {
			t.Fatal(err)
		}
		var got []metav1.ObjectMeta
		err := l.decode(&body, func(m *metav1.PartialObjectMetadata) error {
			if i == 1 {
				m.ManagedFields = nil
			}
			got = append(got, m.ObjectMeta)
			return nil
		})
		if diff := cmp.Diff([]metav1.ObjectMeta{item.ObjectMeta, item.ObjectMeta}, got); diff != "" || err != nil || l.Continue != "next" || l.ResourceVersion != "9" {
			t.Errorf("%s: %v, %v: %s", encoder.Identifier(), l.List, err, diff)
		}
	}
	if err := l.decode(strings.NewReader("k8s\x00\x0a\xff"), func(*metav1.PartialObjectMetadata) error { return nil }); err == nil {
		t.Error("what is broken is no list")
	}
}
