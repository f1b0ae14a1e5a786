// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/test/bench/canned"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// fleet returns Deployments from one number to another, with what nobody looks at.
func fleet(from, to int) *appsv1.DeploymentList {
	list := &appsv1.DeploymentList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}}
	for i := from; i < to; i++ {
		list.Items = append(list.Items, appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("d", i), Namespace: "shop", Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": strings.Repeat("x", 300_000*(i%2))},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: &metav1.FieldsV1{Raw: []byte("{}")}}},
			},
			Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "operator"}}},
		})
	}
	return list
}

// sends answers with a list, in protobuf to who accepts it, or with some of its bytes.
func sends(t *testing.T, list runtime.Object, inJSON, cut bool) http.HandlerFunc {
	var packed bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(list, &packed); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		body, form := packed.Bytes(), runtime.ContentTypeProtobuf
		if inJSON || !strings.HasPrefix(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
			body, form = text, runtime.ContentTypeJSON
		}
		w.Header().Set("Content-Type", form)
		if cut {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			body = body[:len(body)*2/3]
		}
		_, _ = w.Write(body)
	}
}

// Objects of Kubernetes' own types come in one piece and in protobuf. When that fails, or the
// token of a page has expired, what came before does not count.
func TestWholeLists(t *testing.T) {
	first, last := fleet(0, 4), fleet(4, 6)
	first.Continue = "more"
	gone := failure(http.StatusGone, "Expired", "")
	for name, test := range map[string]struct {
		version string
		answers []http.HandlerFunc
		want    string // how often it begins, and the objects
	}{
		"in protobuf":                  {"v1.36.0", []http.HandlerFunc{sends(t, fleet(0, 6), false, false)}, "1 d0 d1 d2 d3 d4 d5"},
		"in JSON":                      {"v1.36.0", []http.HandlerFunc{sends(t, fleet(0, 6), true, false)}, "1 d0 d1 d2 d3 d4 d5"},
		"in pages":                     {"v1.30.0", []http.HandlerFunc{sends(t, first, false, false), sends(t, last, false, false)}, "1 d0 d1 d2 d3 d4 d5"},
		"the answer breaks off":        {"v1.36.0", []http.HandlerFunc{sends(t, fleet(0, 9), false, true), sends(t, first, false, false), sends(t, last, false, false)}, "2 d0 d1 d2 d3 d4 d5"},
		"the JSON breaks off":          {"v1.36.0", []http.HandlerFunc{sends(t, fleet(0, 9), true, true), sends(t, first, true, false), sends(t, last, true, false)}, "2 d0 d1 d2 d3 d4 d5"},
		"the token expires":            {"v1.30.0", []http.HandlerFunc{sends(t, first, false, false), gone, sends(t, fleet(2, 6), false, false)}, "2 d2 d3 d4 d5"},
		"a page breaks off":            {"v1.30.0", []http.HandlerFunc{sends(t, first, false, false), sends(t, last, false, true)}, "error"},
		"another type":                 {"v1.36.0", []http.HandlerFunc{sends(t, &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}, false, false)}, "error"},
		"another type, and then it":    {"v1.36.0", []http.HandlerFunc{sends(t, &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}, false, false), sends(t, last, false, false)}, "2 d4 d5"},
		"refused, and not tried again": {"v1.36.0", []http.HandlerFunc{failure(http.StatusForbidden, "Forbidden", ""), sends(t, last, false, false)}, "error"},
	} {
		for _, typed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, typed %t", name, typed), func(t *testing.T) {
				answers := slices.Clone(test.answers)
				r := &deploymentServer{Server: canned.New(10), version: test.version, answers: answers}
				begun, got := 0, []string{}
				begin := func() { begun, got = begun+1, nil }
				var err error
				if typed {
					err = r.reader(t).EachTyped(t.Context(), deployments, "Deployment", "", begin, func(o runtime.Object) error {
						d := o.(*appsv1.Deployment)
						if d.ManagedFields != nil || len(d.Annotations) != 1 || d.Spec.Template.Spec.ServiceAccountName != "operator" {
							t.Errorf("%s: %v", d.Name, d.Spec)
						}
						got = append(got, d.Name)
						return nil
					})
				} else {
					err = r.reader(t).EachMentioning(t.Context(), deployments, "", []string{"serviceAccountName"}, begin, func(o *unstructured.Unstructured) error {
						got = append(got, o.GetName())
						return nil
					})
				}
				text := fmt.Sprint(begun, " ", strings.Join(got, " "))
				if err != nil {
					text = "error"
				}
				// What is asked for in JSON is not asked what it is a list of.
				if want := test.want; text != want && (typed || !strings.HasPrefix(name, "another type")) {
					t.Errorf("got %s, error %v, want %s", text, err, want)
				}
			})
		}
	}
}

// deploymentServer answers lists of Deployments one after the other, and the last error again.
type deploymentServer struct {
	*canned.Server
	version string
	answers []http.HandlerFunc
}

func (s *deploymentServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/version":
		fmt.Fprintf(w, `{"major":"1","gitVersion":%q}`, s.version)
	case strings.HasSuffix(r.URL.Path, "/deployments"):
		next := s.answers[0]
		if len(s.answers) > 1 {
			s.answers = s.answers[1:]
		}
		next(w, r)
	default:
		s.Server.ServeHTTP(w, r)
	}
}

// asMetadata answers with the metadata of a list, to who asks for that alone.
func asMetadata(t *testing.T, list *appsv1.DeploymentList) http.HandlerFunc {
	part := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: list.ListMeta}
	for _, d := range list.Items {
		part.Items = append(part.Items, metav1.PartialObjectMetadata{ObjectMeta: d.ObjectMeta})
	}
	send := sends(t, &part, true, false)
	return func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
			t.Errorf("asked for %s", r.Header.Get("Accept"))
		}
		send(w, r)
	}
}

// taker is a cluster.Taker that takes so many objects, and then no more.
type taker struct {
	most, begun int
	taken       []string
	complete    bool
}

func (k *taker) Begin()    { k.begun, k.taken = k.begun+1, nil }
func (k *taker) Complete() { k.complete = true }
func (k *taker) Take(o runtime.Object) error {
	if len(k.taken) == k.most {
		return errors.New("enough")
	}
	k.taken = append(k.taken, o.(*appsv1.Deployment).Name)
	return nil
}

// Whole objects that are wanted beside the metadata are read in the same list. Whatever goes
// wrong with them, the metadata is there.
func TestSnapshotHandsOnWholeObjects(t *testing.T) {
	first, last := fleet(0, 4), fleet(4, 6)
	first.Continue = "more"
	all, both, refused := "d0 d1 d2 d3 d4 d5", sends(t, fleet(0, 6), false, false), failure(http.StatusForbidden, "Forbidden", "")
	for name, test := range map[string]struct {
		version string
		most    int
		answers []http.HandlerFunc
		// taken is what the taker got, how often it began, and whether that was all; listed
		// what the snapshot has.
		taken, listed string
	}{
		"in protobuf":              {"v1.36.0", 9, []http.HandlerFunc{both, refused}, all + " 1 true", all},
		"in JSON":                  {"v1.36.0", 9, []http.HandlerFunc{sends(t, fleet(0, 6), true, false), refused}, all + " 1 true", all},
		"in pages":                 {"v1.30.0", 9, []http.HandlerFunc{sends(t, first, false, false), sends(t, last, false, false), refused}, all + " 1 true", all},
		"in pages after all":       {"v1.36.0", 9, []http.HandlerFunc{sends(t, fleet(0, 9), false, true), both, refused}, all + " 2 true", all},
		"nobody takes them":        {"v1.36.0", -1, []http.HandlerFunc{asMetadata(t, fleet(0, 6)), refused}, " 0 false", all},
		"they are taken no more":   {"v1.36.0", 2, []http.HandlerFunc{both, asMetadata(t, fleet(0, 6)), refused}, "d0 d1 1 false", all},
		"only metadata can be had": {"v1.36.0", 9, []http.HandlerFunc{refused, asMetadata(t, fleet(0, 6)), refused}, " 1 false", all},
		"a page breaks off":        {"v1.30.0", 9, []http.HandlerFunc{sends(t, first, false, false), sends(t, last, false, true), asMetadata(t, first), asMetadata(t, last)}, "d0 d1 d2 d3 d4 1 false", all},
		"nothing can be had":       {"v1.36.0", 9, []http.HandlerFunc{refused}, " 1 false", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &deploymentServer{Server: canned.New(10), version: test.version, answers: slices.Clone(test.answers)}
			k := &taker{most: test.most}
			s, err := r.reader(t).Snapshot(t.Context(), cluster.Scope{
				Whole: []schema.GroupVersionResource{deployments},
				Taker: func(resource schema.GroupVersionResource) cluster.Taker {
					if resource != deployments || test.most < 0 {
						return nil
					}
					return k
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			var listed []string
			for o := range s.Objects() {
				if o.Resource.GroupVersionResource == deployments {
					listed = append(listed, o.Name)
				}
			}
			if got := strings.Join(listed, " "); got != test.listed || s.ListedIn(deployments.GroupResource(), "") != (got != "") {
				t.Errorf("the snapshot has %q, wanted %q", got, test.listed)
			}
			if got := fmt.Sprint(strings.Join(k.taken, " "), " ", k.begun, " ", k.complete); got != test.taken {
				t.Errorf("taken: %q, wanted %q", got, test.taken)
			}
		})
	}
}

// An error of who takes the objects is returned.
func TestWholeListsEnd(t *testing.T) {
	r := &deploymentServer{Server: canned.New(10), version: "v1.36.0", answers: []http.HandlerFunc{sends(t, fleet(0, 6), false, false)}}
	seen := 0
	err := r.reader(t).EachTyped(t.Context(), deployments, "Deployment", "", func() {}, func(runtime.Object) error {
		if seen++; seen == 2 {
			return context.Canceled
		}
		return nil
	})
	if seen != 2 || err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("after %d objects: %v", seen, err)
	}
}

func (s *deploymentServer) reader(t *testing.T) *cluster.Reader {
	return readerOf(t, s, cluster.Options{PageSize: cluster.AutoPageSize}, 0)
}

// What is read as Go's types has what is read as JSON has, but for what nobody looks at.
func TestTypedPod(t *testing.T) {
	seconds := int64(30)
	pod := corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", UID: "u", OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r", Controller: new(true)}}},
		Spec: corev1.PodSpec{
			NodeName: "n", TerminationGracePeriodSeconds: &seconds, Tolerations: []corev1.Toleration{{Key: "k"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}},
			Containers: []corev1.Container{{
				Name: "main", Image: "i", Command: []string{"c"}, Args: []string{"a"}, Env: []corev1.EnvVar{{Name: "KUBECONFIG", Value: "x"}},
				VolumeMounts: []corev1.VolumeMount{{Name: "data"}},
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)}}}
	loose, ending, last := pod, pod, pod
	loose.Name, loose.UID, loose.OwnerReferences = "loose", "l", []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"}}
	loose.Labels, loose.Spec.Volumes = map[string]string{"app": "loose"}, nil
	ending.Name, ending.DeletionTimestamp = "ending", new(metav1.Unix(1_700_000_000, 0))
	last.Name = "last"
	answer := sends(t, &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{pod, loose, ending, last}}, false, false)
	r := &recorder{Server: canned.New(10), version: "v1.30.0", pods: answer}
	reader := r.reader(t, cluster.Options{PageSize: cluster.AutoPageSize})
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	whole, err := reader.List(t.Context(), pods, "shop")
	if err != nil || len(whole) != 4 {
		t.Fatalf("%d pods, error %v", len(whole), err)
	}
	var got []corev1.Pod
	err = reader.EachTyped(t.Context(), pods, "Pod", "shop", func() {}, func(o runtime.Object) error {
		got = append(got, *o.(*corev1.Pod))
		return nil
	})
	if err != nil || len(got) != len(whole) {
		t.Fatalf("%d pods, error %v", len(got), err)
	}
	for i := range whole {
		var want corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole[i].Object, &want); err != nil {
			t.Fatal(err)
		}
		got[i].TypeMeta = want.TypeMeta
		if diff := cmp.Diff(want, got[i]); diff != "" {
			t.Errorf("%s (-JSON +typed):\n%s", want.Name, diff)
		}
		if kept := len(got[i].ManagedFields) > 0; kept != (want.Name == "loose" || want.Name == "ending") {
			t.Errorf("%s: who has set its fields is kept: %t", want.Name, kept)
		}
	}
}
