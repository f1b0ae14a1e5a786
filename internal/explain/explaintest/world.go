// SPDX-License-Identifier: Apache-2.0

// Package explaintest makes clusters out of a few lines, for tests of explanations.
package explaintest

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/internal/testworld"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Now is when a World is looked at.
var Now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// other is a type that the server does not have.
var other = graph.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "other.example.com", Version: "v1"},
	Kind: "Other", Namespaced: true}

// World is a cluster of a few lines, in which testworld.World reads objects:
//
//	ConfigMap/shop/a deleted=60 finalizers=foregroundDeletion owner=ConfigMap/b! grace=30 {"status": ...}
//	lease kube-system/kube-controller-manager 5     renewed so many seconds ago
//	unlisted configmaps                             everywhere; or: unreadable nodes
//	unlisted configmaps shop                        everywhere but in that namespace
//	failed widgets conversion webhook for ...       the list fails with these words
//	answer PATCH ConfigMap/shop/a 403 denied        to a dry run; * is any object
//	answer DELETE ConfigMap/shop/a after 30         accepted half a minute later; or: after 30 403 denied
//	server v1.30.14                                 its version, v1.36.3 without a word
//	with operator                                   what parts.txt has under that name
//
// The UID of an object is its name. What follows it is what the whole of it has
// besides. Namespaces are there unless they are named with "no namespace shop".
type World struct {
	// Whole has the objects by resource/namespace/name.
	Whole map[string]*unstructured.Unstructured
	// Requests counts those that were answered.
	Requests int
	mu       sync.Mutex // of Requests
	// Server is the API server's version.
	Server answer.Server
	// Answers are those to probes, by "WRITE Kind/namespace/name".
	Answers map[string]string

	objects    testworld.World
	unlisted   map[string]bool
	listedIn   map[string]string // the one namespace in which unlisted could be listed
	unreadable map[string]bool
	absent     map[string]bool
	failed     map[string]string // lists, by resource
}

//go:embed parts.txt
var partsText string

// parts are what "with NAME" stands for.
var parts = func() map[string]string {
	all := map[string]string{}
	for _, part := range strings.Split(partsText, "\n== ")[1:] {
		name, lines, _ := strings.Cut(part, "\n")
		all[name] = lines
	}
	return all
}()

// expand puts the parts in the place of their names.
func expand(t testing.TB, text string) string {
	t.Helper()
	var lines strings.Builder
	for line := range strings.Lines(text) {
		name, is := strings.CutPrefix(strings.TrimSpace(line), "with ")
		if is && parts[name] == "" {
			t.Fatalf("there is no part %q", name)
		}
		if is {
			line = parts[name] + "\n"
		}
		lines.WriteString(line)
	}
	return lines.String()
}

// Parse makes the cluster that the text says.
func Parse(t testing.TB, text string) *World {
	t.Helper()
	s := &World{
		Whole:    map[string]*unstructured.Unstructured{},
		objects:  testworld.World{Types: append(testworld.Served(), other), Now: Now, UID: testworld.Name},
		unlisted: map[string]bool{}, listedIn: map[string]string{}, unreadable: map[string]bool{}, absent: map[string]bool{},
		failed: map[string]string{}, Answers: map[string]string{}, Server: answer.ServerOf("v1.36.3"),
	}
	for line := range strings.Lines(strings.TrimSpace(expand(t, text))) {
		words, body, _ := strings.Cut(strings.TrimSpace(line), " {")
		f := strings.Fields(words)
		if len(f) == 0 {
			continue
		}
		switch f[0] {
		case "server":
			s.Server = answer.ServerOf(f[1])
		case "unlisted":
			s.unlisted[f[1]] = true
			if len(f) > 2 {
				s.listedIn[f[1]] = f[2]
			}
		case "failed":
			s.failed[f[1]] = strings.Join(f[2:], " ")
		case "answer":
			s.Answers[f[1]+" "+f[2]] = strings.Join(f[3:], " ")
		case "unreadable":
			s.unreadable[f[1]] = true
		case "no":
			s.absent[f[2]] = true
		case "lease":
			namespace, name, _ := strings.Cut(f[1], "/")
			age, _ := strconv.Atoi(f[2])
			renewed := Now.Add(-time.Duration(age) * time.Second).Format(time.RFC3339Nano)
			s.add(t, []string{"Lease/" + namespace + "/" + name},
				fmt.Sprintf(`{"spec":{"holderIdentity":"h","leaseDurationSeconds":15,"renewTime":%q}}`, renewed))
		default:
			if body != "" {
				body = "{" + body
			}
			s.add(t, f, body)
		}
	}
	for _, o := range s.objects.Objects {
		if o.Namespace != "" && !s.absent[o.Namespace] && s.Whole["namespaces//"+o.Namespace] == nil {
			s.add(t, []string{"Namespace/" + o.Namespace}, "")
		}
	}
	return s
}

// add reads an object, as testworld.World does, with
//
//	grace=30                        a grace period, over which its deletion takes longer
//	gone                            since the lists were read
//
// and what is behind it merged into the whole object.
func (s *World) add(t testing.TB, words []string, body string) {
	t.Helper()
	gone := false
	o, err := s.objects.Add(words, func(o *graph.Object, key, value string) error {
		if key == "gone" {
			gone = true
			return nil
		}
		seconds, err := strconv.ParseInt(value, 10, 64)
		if key != "grace" || err != nil || o.DeletionTimestamp == nil {
			return fmt.Errorf("what is %s=%s?", key, value)
		}
		o.DeletionGracePeriodSeconds = &seconds
		o.DeletionTimestamp = &metav1.Time{Time: o.DeletionTimestamp.Add(time.Duration(seconds) * time.Second)}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", words[0], err)
	}
	whole := &unstructured.Unstructured{Object: map[string]any{}}
	if body != "" {
		// Numbers are int64, as they are in what the API server answers.
		if err := utiljson.Unmarshal([]byte(body), &whole.Object); err != nil {
			t.Fatalf("%s: %v", words[0], err)
		}
	}
	whole.SetName(o.Name)
	whole.SetNamespace(o.Namespace)
	whole.SetUID(o.UID)
	whole.SetResourceVersion("1")
	whole.SetDeletionTimestamp(o.DeletionTimestamp)
	whole.SetDeletionGracePeriodSeconds(o.DeletionGracePeriodSeconds)
	whole.SetFinalizers(o.Finalizers)
	if !gone {
		s.Whole[o.Resource.Resource+"/"+o.Namespace+"/"+o.Name] = whole
	}
}

func (s *World) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Requests++
}

// Read implements evidence.Cluster.
func (s *World) Read(_ context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	s.count()
	if s.unreadable[resource.Resource] {
		return nil, errors.New("refused by the test")
	}
	if o := s.Whole[resource.Resource+"/"+namespace+"/"+name]; o != nil {
		return o.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource.GroupResource(), name)
}

// List implements evidence.Cluster.
func (s *World) List(_ context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	s.count()
	if s.unreadable[resource.Resource] {
		return nil, errors.New("refused by the test")
	}
	if message, failed := s.failed[resource.Resource]; failed {
		return nil, apierrors.NewInternalError(errors.New(message))
	}
	var items []unstructured.Unstructured
	for _, key := range slices.Sorted(maps.Keys(s.Whole)) {
		if o := s.Whole[key]; strings.HasPrefix(key, resource.Resource+"/") && (namespace == "" || o.GetNamespace() == namespace) {
			items = append(items, *o)
		}
	}
	return items, nil
}

// EachMentioning implements evidence.Cluster.
func (s *World) EachMentioning(ctx context.Context, resource schema.GroupVersionResource, namespace string, fields []string, begin func(),
	yield func(*unstructured.Unstructured) error) error {
	quoted := make([]string, len(fields))
	for i, field := range fields {
		quoted[i] = `"` + field + `"`
	}
	return s.EachNaming(ctx, resource, namespace, quoted, begin, yield)
}

// EachNaming implements evidence.Cluster.
func (s *World) EachNaming(ctx context.Context, resource schema.GroupVersionResource, namespace string, texts []string, begin func(),
	yield func(*unstructured.Unstructured) error) error {
	begin()
	items, err := s.List(ctx, resource, namespace)
	for i := range items {
		all, encodingErr := json.Marshal(items[i].Object)
		if err = cmp.Or(err, encodingErr); err == nil &&
			slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(string(all), text) }) {
			err = yield(&items[i])
		}
	}
	return err
}

// typed has the types that explanations read as Go's.
var typed = runtime.NewScheme()

func init() {
	utilruntime.Must(corev1.AddToScheme(typed))
	utilruntime.Must(appsv1.AddToScheme(typed))
}

// EachTyped implements evidence.Cluster.
func (s *World) EachTyped(ctx context.Context, resource schema.GroupVersionResource, kind, namespace string, begin func(),
	yield func(runtime.Object) error) error {
	begin()
	items, err := s.List(ctx, resource, namespace)
	for i := range items {
		o, unknown := typed.New(resource.GroupVersion().WithKind(kind))
		if err = cmp.Or(err, unknown); err == nil {
			err = cmp.Or(runtime.DefaultUnstructuredConverter.FromUnstructured(items[i].Object, o), yield(o))
		}
	}
	return err
}

func typesOf(resources []graph.Resource) []*graph.Resource {
	types := make([]*graph.Resource, len(resources))
	for i := range resources {
		types[i] = &resources[i]
	}
	return types
}

// Graph returns the graph of what can be listed.
func (s *World) Graph() *graph.Graph { return s.GraphOf(nil) }

// GraphOf returns the graph of what can be listed of parts. Of objects with one UID, as those of
// one name have, the first counts in all of them.
func (s *World) GraphOf(parts graph.Parts) *graph.Graph {
	types := testworld.Served()
	snapshot := &graph.Snapshot{Mapper: testworld.Mapper(types), Types: typesOf(types), Parts: parts}
	of := map[schema.GroupResource]graph.Parts{}
	for i := range types {
		r := &types[i]
		of[r.GroupResource()] = parts.Of(r)
		for _, p := range of[r.GroupResource()] {
			s.mark(snapshot, r, p)
		}
	}
	for i, o := range s.objects.Objects {
		first := slices.IndexFunc(s.objects.Objects, func(before graph.Object) bool { return before.UID == o.UID })
		if (parts == nil || first == i) && slices.ContainsFunc(of[o.Resource.GroupResource()], func(p graph.Part) bool { return isIn(&o, p) }) {
			snapshot.Add(o)
		}
	}
	return graph.New(snapshot)
}

// isIn reports whether an object is in a part with others of its type.
func isIn(o *graph.Object, p graph.Part) bool {
	selector, err := labels.Parse(p.Labels)
	utilruntime.Must(err)
	return (p.Namespace == "" || o.Namespace == p.Namespace) && selector.Matches(labels.Set(o.Labels))
}

// mark notes in a snapshot what came of the list of a type.
func (s *World) mark(snapshot *graph.Snapshot, r *graph.Resource, p graph.Part) {
	in, listed := s.listedIn[r.Resource]
	u := graph.Unlisted{GroupVersionResource: r.GroupVersionResource, Namespace: p.Namespace, Reason: graph.Forbidden}
	switch message, failed := s.failed[r.Resource]; {
	case failed:
		u.Reason, u.Message = graph.ServerError, message
		snapshot.MarkUnlisted(u)
	case s.unlisted[r.Resource] && (p.Namespace == "" || p.Namespace != in):
		snapshot.MarkUnlisted(u)
		if listed && p.Namespace == "" && p.Labels == "" {
			snapshot.MarkListed(r.GroupResource(), in, "1")
		}
	case p.Labels == "":
		snapshot.MarkListed(r.GroupResource(), p.Namespace, "1")
	}
}

// Events returns the events about an object.
func (s *World) Events(_ context.Context, namespace string, uid types.UID) ([]unstructured.Unstructured, error) {
	s.count()
	if s.unreadable["events"] {
		return nil, errors.New("refused by the test")
	}
	var items []unstructured.Unstructured
	for _, key := range slices.Sorted(maps.Keys(s.Whole)) {
		o := s.Whole[key]
		about, _, _ := unstructured.NestedString(o.Object, "involvedObject", "uid")
		if strings.HasPrefix(key, "events/"+namespace+"/") && about == string(uid) {
			items = append(items, *o)
		}
	}
	return items, nil
}
