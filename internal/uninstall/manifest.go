// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/mention"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Item is an object as a manifest or an inventory has it.
type Item struct {
	schema.GroupVersionKind
	Namespace, Name string
	Labels          map[string]string
	// Document is the kind of the document that has the object, and Annotations are those of it: its own, or those of a list, which alone Helm
	// looks at (helm.sh/helm/v3/pkg/releaseutil/manifest_sorter.go; pkg/action/resource_policy.go).
	Document    string
	Annotations map[string]string
	// Passing: Kubernetes deletes it when it has finished.
	Passing bool
	// Needs are objects without which the pods of a Job, or a Pod, are not created, or do not start, by name: those that have a namespace are
	// in its own. PodLabels are those of the pods of a Job, and Scopes those of quotas, with the name of the class of priority.
	Needs     []graph.Identity
	PodLabels map[string]string
	Scopes    map[string]string
	// Finalizers are those with which it is created.
	Finalizers []string
	// text is all of it in JSON; nil for a Secret.
	text json.RawMessage
}

// Identity names the object, which need not exist.
func (i *Item) Identity() graph.Identity {
	r := graph.Resource{Kind: i.Kind, Namespaced: i.Namespace != ""}
	r.Group, r.Version = i.Group, i.Version
	return graph.Identity{Resource: r, Namespace: i.Namespace, Name: i.Name}
}

// document is what is needed of a document of a manifest: what a manifest has of Secrets is in no Item.
type document struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name         string            `json:"name"`
		GenerateName string            `json:"generateName"`
		Namespace    string            `json:"namespace"`
		Labels       map[string]string `json:"labels"`
		Annotations  map[string]string `json:"annotations"`
		Finalizers   []string          `json:"finalizers"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
	// Items makes a list of it, whatever its kind and its name are (apimachinery's unstructuredJSONScheme, decode).
	Items json.RawMessage `json:"items"`
	text  json.RawMessage
}

// needed are the types of what a pod needs, by the kinds that its fields say.
var needed = map[string]schema.GroupVersionResource{
	"ServiceAccount": evidence.ServiceAccounts, "ConfigMap": evidence.ConfigMaps, "Secret": evidence.Secrets, "Claim": evidence.Claims,
	"PriorityClass": evidence.PriorityClasses, "RuntimeClass": evidence.RuntimeClasses,
}

// podNeeds returns what the spec of a pod names that the pod needs.
func podNeeds(spec map[string]any) (needs []graph.Identity) {
	var reader mention.Reader
	for n := range reader.In(&unstructured.Unstructured{Object: map[string]any{"spec": spec}}) {
		if resource, is := needed[n.Kind]; is && !n.Optional {
			needs = append(needs, evidence.Identity(resource, "", n.Text))
		}
	}
	return needs
}

// podScopes are the scopes of quotas that have a pod (pkg/quota/v1/evaluator/core/pods.go).
func podScopes(spec map[string]any) map[string]string {
	var pod corev1.PodSpec
	if runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &pod) != nil {
		return nil
	}
	lasts, effort := corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort
	if pod.ActiveDeadlineSeconds != nil {
		lasts = corev1.ResourceQuotaScopeTerminating
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if len(c.Resources.Requests)+len(c.Resources.Limits) > 0 {
			effort = corev1.ResourceQuotaScopeNotBestEffort
		}
	}
	scopes := map[string]string{string(lasts): "", string(effort): ""}
	if pod.PriorityClassName != "" {
		scopes[string(corev1.ResourceQuotaScopePriorityClass)] = pod.PriorityClassName
	}
	return scopes
}

// anyName is at the end of the name of an item of which the manifest has only the beginning, or nothing.
const anyName = "*"

// ReadManifest returns the objects of a text of YAML or JSON documents, in their order, as kubectl reads it. Lists count as what is in
// them. The error says which document is none, and shows nothing of it.
func ReadManifest(text []byte) ([]Item, error) {
	var items []Item
	decoder := utilyaml.NewYAMLOrJSONDecoder(transform.NewReader(bytes.NewReader(text), unicode.BOMOverride(unicode.UTF8.NewDecoder())), 4096)
	for number := 1; ; number++ {
		var part json.RawMessage
		err := decoder.Decode(&part)
		if errors.Is(err, io.EOF) {
			return items, nil
		}
		var d document
		if err != nil || len(part) > 0 && d.read(part) != nil {
			return nil, errNoObject(number)
		}
		switch text := string(bytes.TrimSpace(part)); {
		case text == "" || text == "null" || text == "{}":
			continue // comments, or nothing
		case d.APIVersion == "" || d.Kind == "":
			return nil, errNoKind(number)
		case strings.HasPrefix(d.APIVersion, "kustomize.config.k8s.io/"):
			return nil, errKustomize(number)
		}
		found, err := d.items(&d)
		if err != nil {
			return nil, errNoObject(number)
		}
		items = append(items, found...)
	}
}

// read reads a document in JSON.
func (d *document) read(text []byte) error {
	if err := json.Unmarshal(text, d); err != nil {
		return err
	}
	if d.Kind != "Secret" {
		d.text = text
	}
	return nil
}

func (d *document) items(of *document) (items []Item, err error) {
	if d.Items != nil {
		var all []json.RawMessage
		if err := json.Unmarshal(d.Items, &all); err != nil {
			return nil, err
		}
		for _, text := range all {
			var inner document
			if err := inner.read(text); err != nil {
				return nil, err
			}
			// The items of a ConfigMapList need not say what they are (apimachinery's unstructuredJSONScheme, decodeToList).
			if is := &inner.TypeMeta; is.Kind == "" || is.APIVersion == "" {
				is.Kind, is.APIVersion = strings.TrimSuffix(d.Kind, "List"), d.APIVersion
			}
			found, err := inner.items(of)
			if err != nil {
				return nil, err
			}
			items = append(items, found...)
		}
		return items, nil
	}
	item := Item{
		GroupVersionKind: schema.FromAPIVersionAndKind(d.APIVersion, d.Kind), Document: of.Kind, Annotations: of.Metadata.Annotations,
		Namespace: d.Metadata.Namespace, Name: cmp.Or(d.Metadata.Name, d.Metadata.GenerateName+anyName), Labels: d.Metadata.Labels,
		Finalizers: d.Metadata.Finalizers, text: d.text,
	}
	var spec map[string]any
	if runs := d.Kind == "Job" || d.Kind == "Pod"; runs && json.Unmarshal(d.Spec, &spec) == nil {
		item.Passing = spec["ttlSecondsAfterFinished"] != nil
		if d.Kind == "Job" {
			item.PodLabels, _, _ = unstructured.NestedStringMap(spec, "template", "metadata", "labels")
			spec, _, _ = unstructured.NestedMap(spec, "template", "spec")
		}
		item.Needs, item.Scopes = podNeeds(spec), podScopes(spec)
	}
	return []Item{item}, nil
}
