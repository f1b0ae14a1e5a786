// SPDX-License-Identifier: Apache-2.0

// Package delivery says who deployed an object, by the labels and annotations that tools set, and what a tool's own object says that it has
// deployed. It is the one place for that. Pure.
package delivery

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The types of the tools' own objects, of which controllers delete what they have deployed.
var (
	Kustomizations         = schema.GroupResource{Group: "kustomize.toolkit.fluxcd.io", Resource: "kustomizations"}
	HelmReleases           = schema.GroupResource{Group: "helm.toolkit.fluxcd.io", Resource: "helmreleases"}
	Applications           = schema.GroupResource{Group: "argoproj.io", Resource: "applications"}
	Subscriptions          = schema.GroupResource{Group: "operators.coreos.com", Resource: "subscriptions"}
	ClusterServiceVersions = schema.GroupResource{Group: "operators.coreos.com", Resource: "clusterserviceversions"}
)

// Mark is what an object bears of the one that delivered it.
type Mark struct {
	// Kind is that of the tool's own object, or "Release" of Helm, or "ApplySet". Resource is its type, empty where it has none of its own.
	Kind     string
	Resource schema.GroupResource
	// Namespace is empty where the mark does not say it.
	Namespace, Name string
	// Key is the label or the annotation. Usual: it is a label that many set.
	Key   string
	Usual bool
}

// marking reads the mark of one kind, of which the key names who has it.
type marking struct {
	of   schema.GroupResource
	kind string
	key  string
	read func(labels, annotations map[string]string) Mark
}

// markings are those of all tools, in the order in which they count: the tracking of Argo CD (argo-cd/v3/util/argo/resource_tracking.go),
// the labels of Flux's controllers, those of the Operator Lifecycle Manager (pkg/lib/ownerutil/util.go), the annotations of Helm
// (pkg/action/validate.go), the label of apply sets (k8s.io/kubectl/pkg/cmd/apply/applyset.go), and the usual label of an instance, which
// Argo CD may be set to use.
var markings = []marking{
	{Applications, "Application", tracking, func(_, annotations map[string]string) Mark {
		id, _, _ := strings.Cut(annotations[tracking], ":")
		return application(id)
	}},
	argoLabel("argocd.argoproj.io/instance"),
	flux("Kustomization", Kustomizations),
	flux("HelmRelease", HelmReleases),
	{ClusterServiceVersions, "ClusterServiceVersion", "olm.owner", func(labels, _ map[string]string) Mark {
		if labels["olm.owner.kind"] != "ClusterServiceVersion" {
			return Mark{}
		}
		return Mark{Namespace: labels["olm.owner.namespace"], Name: labels["olm.owner"]}
	}},
	{kind: "Release", key: "meta.helm.sh/release-name", read: func(_, annotations map[string]string) Mark {
		return Mark{Namespace: annotations["meta.helm.sh/release-namespace"], Name: annotations["meta.helm.sh/release-name"]}
	}},
	{kind: "ApplySet", key: "applyset.kubernetes.io/part-of",
		read: func(labels, _ map[string]string) Mark { return Mark{Name: labels["applyset.kubernetes.io/part-of"]} }},
	argoLabel(Instance),
}

func argoLabel(key string) marking {
	return marking{Applications, "Application", key, func(labels, _ map[string]string) Mark { return application(labels[key]) }}
}

// Instance is the label of the marks that are Usual.
const Instance = "app.kubernetes.io/instance"

// kapp is the annotation by which kapp knows what it has deployed (pkg/kapp/resources/identity_annotation.go):
// v1;NAMESPACE/GROUP/KIND/NAME; and the version.
const kapp = "kapp.k14s.io/identity"

// Others are annotations by which further tools know what they have deployed: kapp, and those of Rancher
// (github.com/rancher/wrangler/pkg/apply/desiredset_apply.go).
var Others = []string{kapp, "objectset.rio.cattle.io/id"}

// Other is the annotation of a tool of which no Mark is known, empty without one. also: the object is certainly that tool's, besides what
// it is by its Marks; of Rancher's, which deploys by Helm, it is not.
func Other(o *unstructured.Unstructured, entry Entry) (key, value string, also bool) {
	for _, key := range Others {
		if value, has := o.GetAnnotations()[key]; has {
			place := strings.Join([]string{entry.Namespace, entry.Group, entry.Kind, entry.Name}, "/")
			return key, value, key == kapp && strings.Contains(value, ";"+place+";")
		}
	}
	return "", "", false
}

// application is the one that Argo CD calls by its name, with its namespace if that is not Argo CD's own.
func application(id string) Mark {
	namespace, name, within := strings.Cut(id, "_")
	if !within {
		namespace, name = "", id
	}
	return Mark{Namespace: namespace, Name: name}
}

// flux are the labels of one of Flux's controllers.
func flux(kind string, resource schema.GroupResource) marking {
	return marking{resource, kind, resource.Group + "/name", func(labels, _ map[string]string) Mark {
		return Mark{Namespace: labels[resource.Group+"/namespace"], Name: labels[resource.Group+"/name"]}
	}}
}

// Marks returns what an object bears, the first one first that counts.
func Marks(o *unstructured.Unstructured) []Mark {
	annotations := o.GetAnnotations()
	if id := annotations[tracking]; id != "" && !tracks(id, o) {
		annotations = maps.Clone(annotations)
		delete(annotations, tracking)
	}
	return MarksOf(o.GetLabels(), annotations)
}

// tracking is the annotation by which Argo CD tracks an object: APPLICATION:GROUP/KIND:NAMESPACE/NAME.
const tracking = "argocd.argoproj.io/tracking-id"

// tracks reports whether a tracking ID is of the object that has it: Argo CD ignores one that was copied from another
// (argo-cd/v3/util/argo/resource_tracking.go, isSelfReferencedObj). That of an object without a namespace has the one of its Application.
func tracks(id string, o *unstructured.Unstructured) bool {
	parts := strings.Split(id, ":")
	namespace, name, is := strings.Cut(parts[len(parts)-1], "/")
	return !is || len(parts) < 3 || name == o.GetName() && (namespace == o.GetNamespace() || o.GetNamespace() == "")
}

// MarksOf returns what labels and annotations are.
func MarksOf(labels, annotations map[string]string) []Mark {
	var marks []Mark
	for i := range markings {
		if m := markings[i].read(labels, annotations); m.Name != "" {
			m.Kind, m.Resource, m.Key = markings[i].kind, markings[i].of, markings[i].key
			m.Usual = m.Key == Instance
			marks = append(marks, m)
		}
	}
	return marks
}

// Written returns when who sets a label or an annotation last wrote to the object, as far as its managed fields tell; zero for unknown.
func Written(o *unstructured.Unstructured, key string) (at time.Time) {
	for _, e := range o.GetManagedFields() {
		if e.FieldsV1 != nil && e.Time != nil && bytes.Contains(e.FieldsV1.Raw, []byte(`"f:`+key+`"`)) && e.Time.After(at) {
			at = e.Time.Time
		}
	}
	return at
}

// Keys returns the labels and annotations of all marks that are not Usual.
func Keys() []string {
	var keys []string
	for i := range markings {
		if key := markings[i].key; key != Instance {
			keys = append(keys, key)
		}
	}
	return keys
}

// Known reports whether it is known what an object of a type has deployed: by its inventory, or by the marks of that.
func Known(resource schema.GroupResource) bool {
	_, has := inventories[resource]
	return has || slices.ContainsFunc(markings, func(m marking) bool { return m.of == resource })
}

// Release is the release of Helm that an object says it is of, zero for none.
func Release(o *unstructured.Unstructured) Mark {
	marks := Marks(o)
	if i := slices.IndexFunc(marks, func(m Mark) bool { return m.Kind == "Release" }); i >= 0 {
		return marks[i]
	}
	return Mark{}
}

// Path is namespace/name, empty for no mark.
func (m Mark) Path() string { return strings.Trim(m.Namespace+"/"+m.Name, "/") }

// Entry is an object of an inventory.
type Entry struct{ Group, Version, Kind, Namespace, Name string }

// inventories read what the objects of a type say that they have deployed.
var inventories = map[schema.GroupResource]struct {
	path []string
	read func(entry map[string]any) Entry
	// stays: its controller deletes nothing of it.
	stays bool
}{
	Applications: {path: []string{"status", "resources"}, read: func(e map[string]any) Entry {
		return Entry{text(e, "group"), text(e, "version"), text(e, "kind"), text(e, "namespace"), text(e, "name")}
	}},
	// NAMESPACE_NAME_GROUP_KIND, where a colon of a name is two underscores (github.com/fluxcd/cli-utils/pkg/object/objmetadata.go,
	// ParseObjMetadata).
	Kustomizations: {path: []string{"status", "inventory", "entries"}, read: func(e map[string]any) Entry {
		namespace, rest, _ := strings.Cut(text(e, "id"), "_")
		rest, kind := cutLast(rest)
		name, group := cutLast(rest)
		return Entry{group, text(e, "v"), kind, namespace, strings.ReplaceAll(name, "__", ":")}
	}},
	ClusterServiceVersions: {stays: true, path: []string{"spec", "customresourcedefinitions", "owned"}, read: func(e map[string]any) Entry {
		return Entry{"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", text(e, "name")}
	}},
}

// Deployers are the types of which objects say what they have deployed, which their controllers delete with them.
func Deployers() []schema.GroupResource {
	return slices.DeleteFunc(slices.Collect(maps.Keys(inventories)), func(r schema.GroupResource) bool { return !Deploys(r) })
}

// Deploys reports whether an object of the type says what it has deployed, which its controller deletes with it.
func Deploys(resource schema.GroupResource) bool {
	how, has := inventories[resource]
	return has && !how.stays
}

var pushSecrets = schema.GroupResource{Group: "external-secrets.io", Resource: "pushsecrets"}

// MaySpare reports whether an object of the type, by a finalizer, may say that its controller is to leave alone what that stands for.
func MaySpare(resource schema.GroupResource, finalizer string) bool {
	return resource == Kustomizations || resource == pushSecrets || finalizer == "finalizer.managedresource.crossplane.io"
}

// Spares reports whether an object says itself that its controller is to leave alone what its finalizer stands for, or what it has
// deployed: kustomize-controller prunes nothing of one that is suspended or does not prune (kustomization_controller.go, finalize), and a
// deletionPolicy may have it stay.
func Spares(resource schema.GroupResource, full *unstructured.Unstructured) bool {
	prunes, stated, _ := unstructured.NestedBool(full.Object, "spec", "prune")
	suspended, _, _ := unstructured.NestedBool(full.Object, "spec", "suspend")
	kept, _, _ := unstructured.NestedString(full.Object, "spec", "deletionPolicy")
	if resource == Kustomizations {
		return suspended || kept == "Orphan" || stated && !prunes && (kept == "" || kept == "MirrorPrune")
	}
	return kept == "Orphan" || resource == pushSecrets && kept != "Delete"
}

// Ends reports whether a tool's own object is being deleted, and its controller deletes with it what it has deployed.
func Ends(resource schema.GroupResource, full *unstructured.Unstructured) bool {
	argo := func(finalizer string) bool {
		return strings.HasPrefix(finalizer, "resources-finalizer.argocd.argoproj.io")
	}
	keeps := strings.Contains(full.GetAnnotations()["argocd.argoproj.io/sync-options"], "Delete=false") // since Argo CD 3.4
	return full.GetDeletionTimestamp() != nil && !Spares(resource, full) &&
		(resource != Applications || !keeps && slices.ContainsFunc(full.GetFinalizers(), argo))
}

// Inventory returns what a tool's own object says that it has deployed: of a ClusterServiceVersion that are its definitions alone.
func Inventory(resource schema.GroupResource, o *unstructured.Unstructured) []Entry {
	return inventory(resource, o, func(map[string]any) bool { return true })
}

// Lists reports whether a tool's own object says that it has an object, in whatever version, and not only until it prunes that.
func Lists(resource schema.GroupResource, o *unstructured.Unstructured, deployed Entry) bool {
	return slices.Contains(Listed(resource, o), deployed)
}

// Listed is what a tool's own object says that it has, in no version: the Inventory without what is only there until it is pruned.
func Listed(resource schema.GroupResource, o *unstructured.Unstructured) []Entry {
	all := inventory(resource, o, func(entry map[string]any) bool { return entry["requiresPruning"] != true })
	for i := range all {
		all[i].Version = ""
	}
	return all
}

// Here reports whether a tool's own object certainly deploys to the cluster that it is in.
func Here(resource schema.GroupResource, o *unstructured.Unstructured) bool {
	if resource == Applications {
		server, _, _ := unstructured.NestedString(o.Object, "spec", "destination", "server")
		name, _, _ := unstructured.NestedString(o.Object, "spec", "destination", "name")
		return name == "" && strings.TrimRight(server, "/") == "https://kubernetes.default.svc" || server == "" && name == "in-cluster"
	}
	_, remote, _ := unstructured.NestedMap(o.Object, "spec", "kubeConfig")
	return !remote
}

// Claims reports whether a tool's own object has what bears a mark of it: it lists the object, or it does not say what it has, or what it
// says may be older than the mark. The mark of one that lists others alone was left on the object.
func Claims(by, o *unstructured.Unstructured, m Mark, entry Entry) bool {
	if !Deploys(m.Resource) || Lists(m.Resource, by, entry) {
		return true
	}
	return !m.Usual && (len(Inventory(m.Resource, by)) == 0 || !settled(m.Resource, by) || Written(o, m.Key).After(changed(by)))
}

// settled reports whether what a tool's own object says that it has is of its last attempt: kustomize-controller notes it only when all was
// applied (github.com/fluxcd/kustomize-controller/internal/controller/kustomization_controller.go, reconcile).
func settled(resource schema.GroupResource, o *unstructured.Unstructured) bool {
	if resource != Kustomizations {
		return true
	}
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	return observed == o.GetGeneration() && slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Ready" && condition["status"] == "True"
	})
}

// changed returns when an object was last written to, as far as its managed fields tell.
func changed(o *unstructured.Unstructured) (at time.Time) {
	for _, e := range o.GetManagedFields() {
		if e.Time != nil && e.Time.After(at) {
			at = e.Time.Time
		}
	}
	return at
}

// Unwanted returns what of that is not wanted any more, and is deleted as soon as the tool's controller acts: of an Application that syncs
// and prunes by itself (argo-cd/v3/controller/appcontroller.go, autoSync). What is like that of other tools they do not say.
func Unwanted(resource schema.GroupResource, o *unstructured.Unstructured) []Entry {
	automated, _, _ := unstructured.NestedMap(o.Object, "spec", "syncPolicy", "automated")
	if enabled, stated := automated["enabled"].(bool); resource != Applications || automated["prune"] != true || stated && !enabled {
		return nil
	}
	return inventory(resource, o, func(entry map[string]any) bool { return entry["requiresPruning"] == true })
}

func inventory(resource schema.GroupResource, o *unstructured.Unstructured, is func(entry map[string]any) bool) []Entry {
	how, has := inventories[resource]
	if !has {
		return nil
	}
	var all []Entry
	entries, _, _ := unstructured.NestedSlice(o.Object, how.path...)
	for _, each := range entries {
		if entry, _ := each.(map[string]any); is(entry) {
			all = append(all, how.read(entry))
		}
	}
	return all
}

func text(entry map[string]any, key string) string {
	value, _ := entry[key].(string)
	return value
}

// cutLast cuts a text at its last underscore.
func cutLast(text string) (before, after string) {
	at := max(strings.LastIndex(text, "_"), 0)
	return text[:at], strings.TrimPrefix(text[at:], "_")
}
