// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/simulator"
)

// now is when the scenarios are looked at.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const served = `
v1 Pod pods namespaced
v1 ConfigMap configmaps namespaced
v1 PersistentVolumeClaim persistentvolumeclaims namespaced
v1 PersistentVolume persistentvolumes cluster
v1 Namespace namespaces cluster
v1 Node nodes cluster
v1 ServiceAccount serviceaccounts namespaced
v1 Service services namespaced
v1 Event events namespaced
apps/v1 Deployment deployments namespaced
apps/v1 StatefulSet statefulsets namespaced
rbac.authorization.k8s.io/v1 ClusterRole clusterroles cluster
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings cluster
rbac.authorization.k8s.io/v1 Role roles namespaced
rbac.authorization.k8s.io/v1 RoleBinding rolebindings namespaced
batch/v1 Job jobs namespaced
storage.k8s.io/v1 VolumeAttachment volumeattachments cluster
storage.k8s.io/v1 VolumeAttributesClass volumeattributesclasses cluster
storage.k8s.io/v1 CSIDriver csidrivers cluster
storage.k8s.io/v1 StorageClass storageclasses cluster
snapshot.storage.k8s.io/v1 VolumeSnapshot volumesnapshots namespaced
snapshot.storage.k8s.io/v1 VolumeSnapshotContent volumesnapshotcontents cluster
networking.k8s.io/v1 ServiceCIDR servicecidrs cluster
networking.k8s.io/v1 IPAddress ipaddresses cluster
resource.k8s.io/v1 ResourceClaim resourceclaims namespaced
scheduling.k8s.io/v1alpha1 PodGroup podgroups namespaced
policy/v1 PodDisruptionBudget poddisruptionbudgets namespaced
discovery.k8s.io/v1 EndpointSlice endpointslices namespaced
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations cluster
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations cluster
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy validatingadmissionpolicies cluster
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings cluster
admissionregistration.k8s.io/v1 MutatingAdmissionPolicy mutatingadmissionpolicies cluster
coordination.k8s.io/v1 Lease leases namespaced
apiregistration.k8s.io/v1 APIService apiservices cluster
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions cluster
example.com/v1 Widget widgets namespaced
`

// scenario is a cluster of a few lines:
//
//	ConfigMap/shop/a deleted=60 finalizers=foregroundDeletion owners=b! grace=30 {"status": ...}
//	lease kube-system/kube-controller-manager 5     renewed so many seconds ago
//	unlisted configmaps                             everywhere; or: unreadable nodes
//	unlisted configmaps shop                        everywhere but in that namespace
//	failed widgets conversion webhook for ...       the list fails with these words
//	answer PATCH ConfigMap/shop/a 403 denied        to a dry run; * is any object
//
// deleted is the age of the deletion request in seconds, ! a blocking
// reference, * one to a controller. What follows an object is merged into the whole object. Namespaces
// are there unless they are named with "no namespace shop".
type scenario struct {
	resources  map[string]graph.Resource
	objects    []graph.Object
	whole      map[string]*unstructured.Unstructured
	unlisted   map[string]bool
	listedIn   map[string]string // the one namespace in which unlisted could be listed
	unreadable map[string]bool
	absent     map[string]bool
	requests   int // of the analysis
	catalogue  *finalizers.Catalogue
	failed     map[string]string // lists, by resource
	answers    map[string]string // to probes, by "WRITE Kind/namespace/name"
	wait       func(time.Duration)
}

func parse(t *testing.T, text string) *scenario {
	s := &scenario{
		resources: map[string]graph.Resource{}, whole: map[string]*unstructured.Unstructured{},
		unlisted: map[string]bool{}, listedIn: map[string]string{}, unreadable: map[string]bool{}, absent: map[string]bool{},
		failed: map[string]string{}, answers: map[string]string{},
	}
	for line := range strings.Lines(strings.TrimSpace(served)) {
		f := strings.Fields(line)
		gv, _ := schema.ParseGroupVersion(f[0])
		s.resources[f[1]] = graph.Resource{GroupVersionResource: gv.WithResource(f[2]), Kind: f[1], Namespaced: f[3] == "namespaced"}
	}
	s.resources["Other"] = graph.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "other.example.com", Version: "v1"}, Kind: "Other", Namespaced: true}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		words, body, _ := strings.Cut(strings.TrimSpace(line), " {")
		f := strings.Fields(words)
		if len(f) == 0 {
			continue
		}
		switch f[0] {
		case "unlisted":
			s.unlisted[f[1]] = true
			if len(f) > 2 {
				s.listedIn[f[1]] = f[2]
			}
		case "failed":
			s.failed[f[1]] = strings.Join(f[2:], " ")
		case "answer":
			s.answers[f[1]+" "+f[2]] = strings.Join(f[3:], " ")
		case "unreadable":
			s.unreadable[f[1]] = true
		case "no":
			s.absent[f[2]] = true
		case "lease":
			namespace, name, _ := strings.Cut(f[1], "/")
			age, _ := strconv.Atoi(f[2])
			renewed := now.Add(-time.Duration(age) * time.Second).Format(time.RFC3339Nano)
			s.add(t, "Lease/"+namespace+"/"+name, nil, fmt.Sprintf(`{"spec":{"holderIdentity":"h","leaseDurationSeconds":15,"renewTime":%q}}`, renewed))
		default:
			if body != "" {
				body = "{" + body
			}
			s.add(t, f[0], f[1:], body)
		}
	}
	for _, o := range s.objects {
		if o.Namespace != "" && !s.absent[o.Namespace] && s.whole["namespaces//"+o.Namespace] == nil {
			s.add(t, "Namespace/"+o.Namespace, nil, "")
		}
	}
	return s
}

func (s *scenario) add(t *testing.T, name string, words []string, body string) {
	parts := strings.Split(name, "/")
	resource, ok := s.resources[parts[0]]
	if !ok {
		t.Fatalf("unknown kind in %q", name)
	}
	o := graph.Object{Resource: &resource, Name: parts[len(parts)-1], UID: types.UID(parts[len(parts)-1]), ResourceVersion: "1"}
	if len(parts) == 3 {
		o.Namespace = parts[1]
	}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "deleted":
			age, _ := strconv.Atoi(value)
			o.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Duration(age) * time.Second)}
			o.DeletionGracePeriodSeconds = new(int64)
		case "made":
			age, _ := strconv.Atoi(value)
			o.CreationTimestamp = metav1.Time{Time: now.Add(-time.Duration(age) * time.Second)}
		case "grace":
			seconds, _ := strconv.ParseInt(value, 10, 64)
			o.DeletionGracePeriodSeconds = &seconds
			o.DeletionTimestamp = &metav1.Time{Time: o.DeletionTimestamp.Add(time.Duration(seconds) * time.Second)}
		case "finalizers":
			o.Finalizers = strings.Split(value, ",")
		case "owners":
			for _, owner := range strings.Split(value, ",") {
				kind, name, _ := strings.Cut(owner, "/")
				name, controller := strings.CutSuffix(name, "*")
				plain, block := strings.CutSuffix(name, "!")
				apiVersion, _ := s.resources[kind].GroupVersionKind().ToAPIVersionAndKind()
				o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
					APIVersion: apiVersion, Kind: kind, Name: plain, UID: types.UID(plain), BlockOwnerDeletion: &block, Controller: &controller,
				})
			}
		}
	}
	s.objects = append(s.objects, o)
	whole := &unstructured.Unstructured{Object: map[string]any{}}
	if body != "" {
		// Numbers are int64, as they are in what the API server answers.
		if err := utiljson.Unmarshal([]byte(body), &whole.Object); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	whole.SetName(o.Name)
	whole.SetNamespace(o.Namespace)
	whole.SetUID(o.UID)
	whole.SetResourceVersion("1")
	whole.SetDeletionTimestamp(o.DeletionTimestamp)
	whole.SetDeletionGracePeriodSeconds(o.DeletionGracePeriodSeconds)
	whole.SetFinalizers(o.Finalizers)
	s.whole[resource.Resource+"/"+o.Namespace+"/"+o.Name] = whole
}

// Read implements explain.Cluster.
func (s *scenario) Read(_ context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	s.requests++
	if s.unreadable[resource.Resource] {
		return nil, errors.New("refused by the test")
	}
	if o := s.whole[resource.Resource+"/"+namespace+"/"+name]; o != nil {
		return o.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource.GroupResource(), name)
}

// List implements explain.Cluster.
func (s *scenario) List(_ context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	s.requests++
	if s.unreadable[resource.Resource] {
		return nil, errors.New("refused by the test")
	}
	if message, failed := s.failed[resource.Resource]; failed {
		return nil, apierrors.NewInternalError(errors.New(message))
	}
	var items []unstructured.Unstructured
	for key, o := range s.whole {
		if strings.HasPrefix(key, resource.Resource+"/") && (namespace == "" || o.GetNamespace() == namespace) {
			items = append(items, *o)
		}
	}
	return items, nil
}

// explained runs the engine and the analysis, and returns what is said of each
// terminating object: its verdict, and its causes with their objects.
func (s *scenario) explained(t *testing.T) string {
	t.Helper()
	var lines []string
	for _, o := range s.report(t).Objects {
		line := fmt.Sprintf("%s: %s", o.Object, o.Verdict)
		for _, f := range o.Findings {
			line += fmt.Sprintf(" %s@%s*%d", f.Cause.ID, f.Cause.Object.Name, f.Cause.Blocks)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n"
}

// report runs the engine and the analysis for all terminating objects.
func (s *scenario) report(t *testing.T) *explain.Report {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	snapshot := &graph.Snapshot{Mapper: mapper}
	for kind, r := range s.resources {
		scope := meta.RESTScopeRoot
		if r.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		if kind == "Other" {
			continue
		}
		mapper.AddSpecific(r.GroupVersionKind(), r.GroupVersionResource, r.GroupVersionResource, scope)
		if message, failed := s.failed[r.Resource]; failed {
			snapshot.MarkUnlisted(graph.Unlisted{GroupVersionResource: r.GroupVersionResource, Reason: graph.ServerError, Message: message})
		} else if s.unlisted[r.Resource] {
			snapshot.MarkUnlisted(graph.Unlisted{GroupVersionResource: r.GroupVersionResource, Reason: graph.Forbidden})
			if namespace, listed := s.listedIn[r.Resource]; listed {
				snapshot.MarkListed(r.GroupResource(), namespace, "1")
			}
		} else {
			snapshot.MarkListed(r.GroupResource(), "", "1")
		}
	}
	for _, o := range s.objects {
		snapshot.Add(o)
	}
	g := graph.New(snapshot)
	outcome, err := gc.New(simulator.New(snapshot, simulator.Options{Now: now}), g, gc.Options{SeesAll: true}).Collect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var asked []types.UID
	for n := range g.Nodes() {
		if n.BeingDeleted() {
			asked = append(asked, n.Object().UID)
		}
	}
	in := explain.Input{Graph: g, Outcomes: outcome.Outcomes, Cluster: s, Events: s.events, Catalogue: s.catalogue, Now: now}
	if s.wait != nil {
		in.Wait = func(_ context.Context, d time.Duration) { s.wait(d) }
	}
	if len(s.answers) > 0 {
		in.Prober = prober{s}
		asked = append(asked, s.named(g)...)
	}
	return explain.Explain(t.Context(), in, asked)
}

// events implements Input.Events.
func (s *scenario) events(_ context.Context, namespace string, uid types.UID) ([]unstructured.Unstructured, error) {
	s.requests++
	if s.unreadable["events"] {
		return nil, errors.New("refused by the test")
	}
	var items []unstructured.Unstructured
	for key, o := range s.whole {
		about, _, _ := unstructured.NestedString(o.Object, "involvedObject", "uid")
		if strings.HasPrefix(key, "events/"+namespace+"/") && about == string(uid) {
			items = append(items, *o)
		}
	}
	return items, nil
}

const (
	alive = "lease kube-system/kube-controller-manager 5\n"
	node  = `Node/n {"status":{"conditions":[{"type":"Ready","status":"True"}]}}` + "\nlease kube-node-lease/n 5\n"
)

var cases = []struct{ name, cluster, want string }{
	{"pending and young", alive + `
ConfigMap/s/a deleted=5 finalizers=foregroundDeletion`, "ConfigMap/s/a: Pending\n"},
	{"nobody collects", `
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion
ConfigMap/s/b owners=ConfigMap/a!
ConfigMap/s/c deleted=60 finalizers=orphan`, "ConfigMap/s/a: Stuck gc-absent@kube-controller-manager*2\nConfigMap/s/c: Stuck gc-absent@kube-controller-manager*2\n"},
	{"no lease and too early to tell", `
ConfigMap/s/a deleted=5 finalizers=foregroundDeletion`, "ConfigMap/s/a: Unknown gc-absent@kube-controller-manager*1\n"},
	{"stale lease", `
lease kube-system/kube-controller-manager 600
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion`, "ConfigMap/s/a: Stuck gc-absent@kube-controller-manager*1\n"},
	{"an unrelated object that is young", `
ConfigMap/s/a deleted=60 finalizers=orphan
ConfigMap/s/c deleted=2 finalizers=foregroundDeletion`, "ConfigMap/s/a: Stuck gc-absent@kube-controller-manager*1\nConfigMap/s/c: Unknown gc-absent@kube-controller-manager*1\n"},
	{"a dependent of which nothing shows that it can be deleted", `
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion
ConfigMap/s/b owners=ConfigMap/a!`, "ConfigMap/s/a: Unknown gc-absent@kube-controller-manager*1\n"},
	{"a dependent that can be deleted", `
answer PATCH ConfigMap/s/none 403 no
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion
ConfigMap/s/b owners=ConfigMap/a!`, "ConfigMap/s/a: Stuck gc-absent@kube-controller-manager*1\n"},
	{"conversion of another kind", alive + `
CustomResourceDefinition/foos.acme.org {"spec":{"group":"acme.org","names":{"plural":"foos","kind":"Foo"},"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://foo.example"}}}}}
CustomResourceDefinition/bars.acme.org {"spec":{"group":"acme.org","names":{"plural":"bars","kind":"Bar"},"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://bar.example"}}}}}
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionContentFailure","status":"True","reason":"ContentDeletionFailed","message":"conversion webhook for acme.org/v1, Kind=FooList failed: Post: no route","lastTransitionTime":"2026-01-02T03:00:00Z"}]}}
ConfigMap/s/x`, "Namespace/s: Stuck val-conversion-dead@foos.acme.org*1\n"},
	{"a storage that is being initialized", alive + `
CustomResourceDefinition/foos.acme.org {"spec":{"group":"acme.org","names":{"plural":"foos","kind":"Foo"},"versions":[{"name":"v1","served":true}],"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"namespace":"x","name":"y"}}}}}}
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionContentFailure","status":"True","reason":"ContentDeletionFailed","message":"storage is (re)initializing","lastTransitionTime":"2026-01-02T03:04:00Z"}]}}
ConfigMap/s/x`, "Namespace/s: Unknown ns-content-failure@s*1\n"},
	{"a class that is being changed", alive + `
VolumeAttributesClass/gold deleted=60 finalizers=kubernetes.io/vac-protection
PersistentVolumeClaim/s/c {"spec":{"volumeAttributesClassName":"silver"},"status":{"currentVolumeAttributesClassName":"gold","modifyVolumeStatus":{"targetVolumeAttributesClassName":"silver","status":"InProgress"}}}
PersistentVolume/p {"spec":{"volumeAttributesClassName":"gold","claimRef":{"namespace":"s","name":"c"}}}`,
		"VolumeAttributesClass/gold: Unknown vac-in-use@p*1 vac-in-use@c*1\n"},
	{"a claim of a pod that ends by itself", alive + node + `
ResourceClaim/s/c deleted=60 finalizers=resource.kubernetes.io/delete-protection {"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"p"}]}}
Pod/s/p {"spec":{"nodeName":"n","restartPolicy":"Never"},"status":{"phase":"Running"}}`, "ResourceClaim/s/c: Unknown dra-claim-reserved@p*1\n"},
	{"a lease that cannot be read", `
unreadable leases
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion`, "ConfigMap/s/a: Unknown gc-absent@kube-controller-manager*1\n"},
	{"alive but late", alive + `
ConfigMap/s/a deleted=600 finalizers=foregroundDeletion`, "ConfigMap/s/a: Unknown gc-absent@kube-controller-manager*1\n"},
	{"a chain of three levels", alive + `
ConfigMap/s/a deleted=60 finalizers=foregroundDeletion
ConfigMap/s/b deleted=60 finalizers=foregroundDeletion owners=ConfigMap/a!
ConfigMap/s/c deleted=60 finalizers=example.com/x owners=ConfigMap/b!`,
		"ConfigMap/s/a: Stuck fin-absent@c*3\nConfigMap/s/b: Stuck fin-absent@c*3\nConfigMap/s/c: Stuck fin-absent@c*3\n"},
	{"a ring", alive + `
ConfigMap/s/a deleted=1 finalizers=foregroundDeletion owners=ConfigMap/b!
ConfigMap/s/b deleted=1 finalizers=foregroundDeletion owners=ConfigMap/a!`,
		"ConfigMap/s/a: Stuck gc-fg-cycle@a*2\nConfigMap/s/b: Stuck gc-fg-cycle@a*2\n"},
	{"an owner that cannot be judged", alive + `
ConfigMap/s/a deleted=20 finalizers=foregroundDeletion
ConfigMap/s/b owners=ConfigMap/a!,Other/o`, "ConfigMap/s/a: Stuck gc-fg-owner-unresolvable@b*1\n"},
	{"an owner whose name no object can have", alive + `
ConfigMap/s/a deleted=20 finalizers=foregroundDeletion
ConfigMap/s/b owners=ConfigMap/a!,ConfigMap/own%x`, "ConfigMap/s/a: Stuck gc-fg-owner-unresolvable@b*1\n"},
	{"dependents that were not listed", alive + `
unlisted configmaps
Widget/s/w deleted=60 finalizers=foregroundDeletion`, "Widget/s/w: Unknown gc-fg-blocking@w*1\n"},
	{"half deleted", alive + `
ConfigMap/s/a deleted=1`, "ConfigMap/s/a: Stuck half-deleted@a*1\n"},
	{"left without a namespace", alive + `
no namespace s
ConfigMap/s/a deleted=1 finalizers=foregroundDeletion`, "ConfigMap/s/a: Stuck ns-forced-leftovers@s*1\n"},
	{"one cause for many", alive + `
Widget/s/v deleted=1 finalizers=example.com/x
Widget/s/w deleted=1 finalizers=example.com/x`, "Widget/s/v: Stuck fin-absent@v*2\nWidget/s/w: Stuck fin-absent@v*2\n"},
	{"a definition with an instance", alive + `
CustomResourceDefinition/widgets.example.com deleted=300 finalizers=customresourcecleanup.apiextensions.k8s.io
Widget/s/w deleted=1 finalizers=example.com/x`,
		"CustomResourceDefinition/widgets.example.com: Stuck fin-absent@w*2\nWidget/s/w: Stuck fin-absent@w*2\n"},
	{"a definition without instances", alive + `
CustomResourceDefinition/widgets.example.com deleted=3 finalizers=customresourcecleanup.apiextensions.k8s.io`,
		"CustomResourceDefinition/widgets.example.com: Progressing crd-instances@widgets.example.com*1\n"},
	{"a namespace whose conditions hide a pod", alive + node + `
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceContentRemaining","status":"False"}]}}
Pod/s/p deleted=300 grace=10 {"spec":{"nodeName":"n"},"status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}}`,
		"Namespace/s: Stuck pod-kubelet-kill@p*2\nPod/s/p: Stuck pod-kubelet-kill@p*2\n"},
	{"a namespace in progress", alive + `
Namespace/s deleted=3 {"spec":{"finalizers":["kubernetes"]}}
ConfigMap/s/a`, "Namespace/s: Progressing ns-content@s*1\n"},
	{"content that cannot be deleted", alive + `
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionContentFailure","status":"True","reason":"ContentDeletionFailed","message":"denied","lastTransitionTime":"2026-01-02T03:00:00Z"}]}}
ConfigMap/s/a`, "Namespace/s: Stuck ns-content-failure@s*1\n"},
	{"finalizers of others on a namespace", alive + `
Namespace/s deleted=300 finalizers=example.com/m {"spec":{"finalizers":["example.com/s"]}}`,
		"Namespace/s: Stuck ns-meta-finalizers@s*1 ns-spec-finalizers@s*1\n"},
	{"an API that does not answer", alive + `
APIService/v1.m.example.com {"spec":{"service":{"name":"x","namespace":"y"}},"status":{"conditions":[{"type":"Available","status":"False","reason":"ServiceNotFound","message":"gone"}]}}
Namespace/s deleted=300 {"spec":{"finalizers":["kubernetes"]},"status":{"conditions":[{"type":"NamespaceDeletionDiscoveryFailure","status":"True","reason":"DiscoveryFailed","message":"m"}]}}`,
		"Namespace/s: Stuck ns-discovery@v1.m.example.com*1\n"},
	{"pods", alive + node + `
Node/dead {"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}
Pod/s/grace deleted=5 grace=30 {"spec":{"nodeName":"n"}}
Pod/s/gone deleted=60 grace=30 {"spec":{"nodeName":"none"}}
Pod/s/mirror deleted=60 grace=10 {"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"n"}}
Pod/s/silent deleted=60 grace=10 {"spec":{"nodeName":"dead"}}
Pod/s/soon deleted=20 grace=10 {"spec":{"nodeName":"n"},"status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}}
Pod/s/volumes deleted=300 grace=10 {"spec":{"nodeName":"n"},"status":{"containerStatuses":[{"name":"c","state":{"terminated":{}}}]}}`,
		`Pod/s/gone: Progressing pod-node-gone@none*1
Pod/s/grace: Progressing pod-grace@grace*1
Pod/s/mirror: Stuck pod-mirror@mirror*1
Pod/s/silent: Stuck pod-node-notready@dead*1
Pod/s/soon: Progressing pod-grace@soon*1
Pod/s/volumes: Stuck pod-volumes@volumes*1
`},
	{"a node that cannot be read", alive + `
unreadable nodes
Pod/s/p deleted=60 grace=10 {"spec":{"nodeName":"n"}}`, "Pod/s/p: Unknown unread@p*1\n"},
	{"a volume, its claim and a pod", alive + `
PersistentVolume/v deleted=60 finalizers=kubernetes.io/pv-protection {"spec":{"claimRef":{"namespace":"s","name":"c"}},"status":{"phase":"Bound"}}
PersistentVolumeClaim/s/c deleted=60 finalizers=kubernetes.io/pvc-protection
Pod/s/p {"spec":{"nodeName":"n","volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"c"}}]}}
Pod/s/q {"spec":{"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"c"}}]}}`,
		"PersistentVolume/v: Stuck pvc-in-use@p*2\nPersistentVolumeClaim/s/c: Stuck pvc-in-use@p*2\n"},
}

func TestExplain(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, parse(t, c.cluster).explained(t)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
